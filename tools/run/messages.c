/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a supervisor about its ranks. */
#include "config.h"

#include "tools/common/errors.h"
#include "tools/common/tool.h"
#include "tools/run/supervisor.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Limits of a rank's message about its failure. */
#define MESSAGE_LINES 20
#define MESSAGE_LINE_MAX 1000

void tool_say(const supervisor_t *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *line = tool_sentence(s->job->command, format, args);
    va_end(args);
    if (s->output)
        tool_output_say(s->output, line);
    else
        fputs(line, stderr);
    g_free(line);
}

char *tool_name_running(const supervisor_t *s)
{
    GString *text = g_string_new(s->running == 1 ? "rank" : "ranks");
    const int first_rank = s->job->first_rank;
    const char *separator = " ";

    for (int i = 0; i < s->job->ranks; i++) {
        int first = i;
        if (!s->pids[i])
            continue;
        while (i + 1 < s->job->ranks && s->pids[i + 1])
            i++;
        g_string_append_printf(text, "%s%d", separator, first_rank + first);
        if (i > first)
            g_string_append_printf(text, "-%d", first_rank + i);
        separator = ", ";
    }
    return g_string_free(text, FALSE);
}

char *tool_name_consequence(const supervisor_t *s, gboolean again)
{
    GString *text = g_string_new(NULL);
    char *others = tool_name_running(s);

    if (s->running > 0)
        g_string_append_printf(text, "; ending %s", others);
    if (again)
        g_string_append_printf(text, "; starting all again (restart %d of %d)",
                               s->job->attempt + 1, s->job->max_restarts);
    g_free(others);
    return g_string_free(text, FALSE);
}

char *tool_name_failure(const tool_job_t *job, int rank, pid_t pid,
                        int wait_status)
{
    const int number = job->first_rank + rank;

    if (!WIFSIGNALED(wait_status))
        return g_strdup_printf("rank %d (pid %d) exited with status %d", number,
                               (int)pid, WEXITSTATUS(wait_status));
    return g_strdup_printf("rank %d (pid %d) was killed by signal %d (%s%s)",
                           number, (int)pid, WTERMSIG(wait_status),
                           g_strsignal(WTERMSIG(wait_status)),
                           WCOREDUMP(wait_status) ? ", core dumped" : "");
}

void tool_quote_rank(const supervisor_t *s, int rank)
{
    const int number = s->job->first_rank + rank;
    char *message = tool_errors_read(s->job->guard.folder, rank);
    char **lines = g_strsplit(message ? message : "", "\n", MESSAGE_LINES + 1);

    for (int i = 0; lines[i]; i++) {
        char *line = g_strndup(g_strchomp(lines[i]), MESSAGE_LINE_MAX);
        if (i == MESSAGE_LINES)
            tool_say(s, "rank %d: ...", number);
        else if (*line)
            tool_say(s, "rank %d: %s", number, line);
        g_free(line);
    }
    g_strfreev(lines);
    g_free(message);
}
