/* SPDX-License-Identifier: BSD-3-Clause */
/* The jobs of a sweep, see sweep.h. A report comes by a file without a name,
 * which a job opens in this process's folder of descriptors, so that nothing is
 * left if a process is killed. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/common/save.h"
#include "tools/perf/picture.h"
#include "tools/perf/sweep.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS_MOST 64

/* Appends the numbers of "4" or "2-8"; false: text is neither. */
static bool append_range(GArray *numbers, const char *text, int most)
{
    char **ends = g_strsplit(text, "-", 2);
    guint64 first = 0, last = 0;
    bool is_range = ends[0] && g_ascii_string_to_unsigned(
                                   ends[0], 10, 1, (guint64)most, &first, NULL);

    last = first;
    if (is_range && ends[1])
        is_range = g_ascii_string_to_unsigned(ends[1], 10, first, (guint64)most,
                                              &last, NULL);
    g_strfreev(ends);
    if (!is_range || last - first >= NUMBERS_MOST)
        return false;
    for (int i = (int)first; i <= (int)last; i++)
        g_array_append_val(numbers, i);
    return numbers->len <= NUMBERS_MOST;
}

int *perf_sweep_read(const char *text, int most)
{
    GArray *numbers = g_array_new(true, false, sizeof(int));
    char **ranges = g_strsplit(text, ",", -1);
    bool is_list = ranges[0] != NULL;

    for (int i = 0; ranges[i] && is_list; i++)
        is_list = append_range(numbers, ranges[i], most);
    g_strfreev(ranges);
    return (int *)(void *)g_array_free(numbers, !is_list);
}

bool perf_sweep_read_part(const char *text, perf_options_t *options)
{
    int end = 0;

    if (sscanf(text, "%d,%d,%n", &options->ranks, &options->part, &end) < 2 ||
        !end || options->ranks < 1 || options->part < 1)
        return false;
    options->report = g_strdup(text + end);
    return true;
}

int perf_sweep_report(const perf_options_t *options, const char *report)
{
    FILE *file = fopen(options->report, "we");
    bool written = file && fputs(report, file) >= 0;

    if (file && fclose(file) != 0)
        written = false;
    if (written)
        return TOOL_OK;
    return tool_fail(TOOL_FAILED, "perf", "the report of %d ranks: %s",
                     options->ranks, g_strerror(errno));
}

/* In the job: it ends with this process, and may be interrupted. */
static void job_setup(gpointer unused)
{
    (void)unused;
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

static int status_of(int wait_status)
{
    if (WIFSIGNALED(wait_status))
        return 128 + WTERMSIG(wait_status);
    return WEXITSTATUS(wait_status);
}

/* Runs the job number part of the sweep. Its output is this process's. */
static int job_run(char *const *words, int ranks, int part, int fd)
{
    GPtrArray *argv = g_ptr_array_new();
    char *self = g_file_read_link("/proc/self/exe", NULL);
    char *option = g_strdup_printf("--sweep-part=%d,%d,/proc/%ld/fd/%d", ranks,
                                   part, (long)getpid(), fd);
    GError *error = NULL;
    int wait_status, status;

    g_ptr_array_add(argv, self ? self : (char *)"dscomm");
    g_ptr_array_add(argv, words[0]);
    g_ptr_array_add(argv, option);
    for (int i = 1; words[i]; i++)
        g_ptr_array_add(argv, words[i]);
    g_ptr_array_add(argv, NULL);
    if (g_spawn_sync(NULL, (char **)argv->pdata, NULL,
                     G_SPAWN_SEARCH_PATH | G_SPAWN_CHILD_INHERITS_STDIN,
                     job_setup, NULL, NULL, NULL, &wait_status, &error))
        status = status_of(wait_status);
    else
        status = tool_fail(TOOL_FAILED, "perf", "%s", error->message);
    g_clear_error(&error);
    g_ptr_array_free(argv, true);
    g_free(option);
    g_free(self);
    return status;
}

/* Runs a job and reads its report; *ret_report is NULL if there is none. */
static int job_report(char *const *words, int ranks, int part,
                      char **ret_report)
{
    const int fd = memfd_create("dscomm-perf", MFD_CLOEXEC);
    char *path;
    int status;

    if (fd < 0)
        return tool_fail(TOOL_FAILED, "perf", "no file for the report: %s",
                         g_strerror(errno));
    path = g_strdup_printf("/proc/self/fd/%d", fd);
    status = job_run(words, ranks, part, fd);
    if (!g_file_get_contents(path, ret_report, NULL, NULL))
        *ret_report = NULL;
    g_free(path);
    close(fd);
    if (*ret_report && **ret_report)
        return status;
    return status ? status : TOOL_FAILED;
}

/* Returns one JSON of all reports but those that cannot be read, whose number
 * *ret_bad has; g_free(). */
static char *join_reports(const GPtrArray *reports, guint *ret_bad)
{
    JsonBuilder *json = json_builder_new();
    GString *text = g_string_new(NULL);

    tool_json_object(json, NULL);
    tool_json_text(json, "format", PERF_SWEEP_FORMAT);
    tool_json_number(json, "format_version", PERF_SWEEP_VERSION);
    tool_json_array(json, "reports");
    for (guint i = 0; i < reports->len; i++) {
        JsonNode *node = json_from_string(reports->pdata[i], NULL);
        if (node)
            json_builder_add_value(json, node);
        else
            ++*ret_bad;
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    tool_json_end(json, true, text);
    return g_string_free(text, false);
}

static int write_reports(const perf_options_t *o, const GPtrArray *reports)
{
    guint bad = 0;
    char *text = join_reports(reports, &bad);
    int status = TOOL_OK;

    if (bad)
        status = tool_fail(TOOL_FAILED, "perf",
                           "%u of %u reports of the sweep cannot be read and "
                           "are left out; measure these numbers of ranks alone",
                           bad, reports->len);
    if (o->json)
        fputs(text, stdout);
    if (o->save) {
        tool_save_t *save = tool_save_new(o->save);
        int error = save ? tool_save_end(save, text) : errno;
        if (error)
            status = tool_fail(TOOL_FAILED, "perf", "--save %s: %s", o->save,
                               g_strerror(error));
    }
    if (o->plot && perf_picture(o->plot, (const char *const *)reports->pdata,
                                reports->len) != TOOL_OK)
        status = TOOL_FAILED;
    g_free(text);
    return status;
}

int perf_sweep(const perf_options_t *options, char *const *words)
{
    GPtrArray *reports = g_ptr_array_new_with_free_func(g_free);
    int status = TOOL_OK;

    /* An interrupt ends the job, and this process then sees that. */
    signal(SIGINT, SIG_IGN);
    for (int i = 0; options->sweep[i] && status == TOOL_OK; i++) {
        char *report = NULL;

        status = job_report(words, options->sweep[i], i + 1, &report);
        if (report && *report)
            g_ptr_array_add(reports, report);
        else
            g_free(report);
    }
    /* A run that failed, by wrong elements too, loses no report before. */
    if (reports->len) {
        const int written = write_reports(options, reports);
        status = status == TOOL_OK ? written : status;
    }
    g_ptr_array_unref(reports);
    return status;
}
