/* SPDX-License-Identifier: BSD-3-Clause */
/* See ranks.h. The pids of the running ranks are the guard's groups. */
#include "config.h"

#include "tools/run/ranks.h"

#include "lib/base/kernel.h"

#include <glib.h>
#include <sys/wait.h>

char *tool_ranks_running(const tool_job_t *job)
{
    GString *text = g_string_new(NULL);
    const char *separator = " ";
    int count = 0;

    for (int i = 0; i < job->ranks; i++) {
        const int first = i;

        if (!job->guard.groups[i])
            continue;
        while (i + 1 < job->ranks && job->guard.groups[i + 1])
            i++;
        g_string_append_printf(text, "%s%d", separator,
                               job->first_rank + first);
        if (i > first)
            g_string_append_printf(text, "-%d", job->first_rank + i);
        separator = ", ";
        count += i - first + 1;
    }
    g_string_prepend(text, count == 1 ? "rank" : "ranks");
    return g_string_free(text, false);
}

char *tool_ranks_failure(const tool_job_t *job, int rank, pid_t pid,
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

bool tool_ranks_only_stopped(const tool_job_t *job)
{
    int stopped = 0;

    for (int i = 0; i < job->ranks; i++) {
        const pid_t pid = job->guard.groups[i];

        if (pid && dscomm_priv_process_state(pid) != 'T')
            return false;
        stopped += pid != 0;
    }
    return stopped > 0 && stopped < job->ranks;
}

char *tool_ranks_stopped(const tool_job_t *job)
{
    char *who = tool_ranks_running(job), *pid = NULL, *text;
    int count = 0;

    for (int i = 0; i < job->ranks; i++) {
        if (!job->guard.groups[i])
            continue;
        g_free(pid);
        pid = g_strdup_printf(" (pid %d)", (int)job->guard.groups[i]);
        count++;
    }
    text = g_strdup_printf("%s%s %s stopped, and all others%s have ended", who,
                           count == 1 ? pid : "", count == 1 ? "is" : "are",
                           job->nodes > 1 ? " of this node" : "");
    g_free(pid);
    g_free(who);
    return text;
}
