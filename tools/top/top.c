/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm top: what the ranks of a job on this machine do. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/common/tool.h"
#include "tools/top/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR 10 /* characters */
#define LONG_S 1.0 /* a call of this duration is coloured */

typedef struct {
    gboolean once, json;
    double interval; /* seconds */
} options_t;

static const char *const states[] = {"running", "stopped", "dead", "left"};

/* Opens the only job of this user on this machine. Returns NULL, or a sentence;
 * g_free(). */
static char *find_job(dscomm_recorder_t *ret_recorder)
{
    GDir *folder = g_dir_open("/proc", 0, NULL);
    dscomm_recorder_t found;
    const char *name;
    char *problem = NULL;
    long first = 0;

    while (folder && !problem && (name = g_dir_read_name(folder))) {
        const long pid = strtol(name, NULL, 10);

        if (pid <= 0 || dscomm_priv_recorder_find(pid, &found))
            continue;
        if (first && strncmp(found.memory->job, ret_recorder->memory->job,
                             sizeof found.memory->job))
            problem = g_strdup_printf("there are several jobs, such as those "
                                      "of processes %ld and %ld; name one",
                                      first, pid);
        if (first) {
            dscomm_priv_recorder_close(&found);
            continue;
        }
        first = pid;
        *ret_recorder = found;
    }
    if (folder)
        g_dir_close(folder);
    return first || problem ? problem
                            : g_strdup("no process of this user is a rank");
}

static bool some_live(const GArray *samples)
{
    for (guint i = 0; i < samples->len; i++)
        if (g_array_index(samples, sample_t, i).state <= SLOT_STOPPED)
            return true;
    return false;
}

/* The job's name, of which any rank may have overwritten the end; g_free(). */
static char *job_name(const dscomm_recorder_t *recorder)
{
    return g_strndup(recorder->memory->job, sizeof recorder->memory->job);
}

static void print_json(const dscomm_recorder_t *recorder, const GArray *samples)
{
    JsonBuilder *builder = json_builder_new();
    GString *text = g_string_new(NULL);
    char *job = job_name(recorder);

    tool_json_object(builder, NULL);
    tool_json_text(builder, "job", job);
    g_free(job);
    tool_json_array(builder, "ranks");
    for (guint i = 0; i < samples->len; i++) {
        const sample_t *sample = &g_array_index(samples, sample_t, i);

        tool_json_object(builder, NULL);
        tool_json_number(builder, "rank", sample->rank);
        tool_json_number(builder, "pid", sample->pid);
        tool_json_text(builder, "process", states[sample->state]);
        tool_json_number(builder, "calls", (gint64)sample->calls);
        tool_json_real(builder, "calls_per_s", "%.1f", sample->calls_per_s);
        tool_json_real(builder, "bytes_per_s", "%.0f", sample->bytes_per_s);
        tool_json_real(builder, "wait", "%.3f", sample->wait);
        tool_json_text(builder, "current",
                       *sample->current ? sample->current : NULL);
        tool_json_real(builder, "seconds", "%.6f", sample->current_s);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    tool_json_end(builder, true, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
}

/* "#####.....", in the terminal's block characters. */
static void print_bar(double part, bool terminal)
{
    const int full = (int)lround(part * BAR);

    for (int i = 0; i < BAR; i++)
        fputs(terminal ? (i < full ? "\u2588" : "\u2591")
                       : (i < full ? "#" : "."),
              stdout);
}

static void print_rank(const sample_t *sample, bool terminal)
{
    const bool bad =
        sample->state == SLOT_DEAD || sample->state == SLOT_STOPPED;
    const bool is_long = *sample->current && sample->current_s >= LONG_S;
    char *current = tool_printable(sample->current);

    if (terminal && (bad || is_long))
        fputs(bad ? "\033[31m" : "\033[33m", stdout);
    printf("%5d %8d %-8s %10.0f %10.3f %4.0f%% ", sample->rank, sample->pid,
           states[sample->state], sample->calls_per_s,
           sample->bytes_per_s / 1e6, 100 * sample->wait);
    print_bar(sample->wait, terminal);
    printf(" %9.3f %s", sample->current_s, *current ? current : "no call");
    if (terminal)
        fputs("\033[0m\033[K", stdout);
    putchar('\n');
    g_free(current);
}

static void print_table(const dscomm_recorder_t *recorder,
                        const GArray *samples, bool terminal)
{
    char *raw = job_name(recorder);
    char *job = tool_printable(raw);

    if (terminal)
        fputs("\033[H\033[J", stdout);
    printf("job %s, %u rank%s on this machine\n", job, samples->len,
           samples->len == 1 ? "" : "s");
    printf("%5s %8s %-8s %10s %10s %5s %-*s %9s %s\n", "rank", "pid", "process",
           "calls/s", "MB/s", "wait", BAR, "", "seconds", "in");
    for (guint i = 0; i < samples->len; i++)
        print_rank(&g_array_index(samples, sample_t, i), terminal);
    fflush(stdout);
    g_free(job);
    g_free(raw);
}

/* Prints a sample each interval, until no rank lives. */
static void show(const dscomm_recorder_t *recorder, const options_t *options)
{
    const bool terminal = isatty(STDOUT_FILENO) && !options->json;
    GArray *before = sample_take(recorder, NULL, 0), *samples;
    gint64 last = g_get_monotonic_time(), now;
    bool again = true;

    while (again) {
        g_usleep((gulong)(options->interval * G_USEC_PER_SEC));
        now = g_get_monotonic_time();
        samples = sample_take(recorder, before,
                              (double)(now - last) / G_USEC_PER_SEC);
        if (options->json)
            print_json(recorder, samples);
        else
            print_table(recorder, samples, terminal && !options->once);
        again = !options->once && some_live(samples) && !ferror(stdout);
        g_array_free(before, true);
        before = samples;
        last = now;
    }
    g_array_free(before, true);
}

static int top(const char *pid, const options_t *options)
{
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT;
    char *end, *problem = NULL;
    const long number = pid ? strtol(pid, &end, 10) : 0;
    const char *why = NULL;
    int status = TOOL_OK;

    if (pid && (number <= 0 || *end))
        return tool_fail(TOOL_USAGE, "top", "'%s' is not a pid", pid);
    if (pid)
        why = dscomm_priv_recorder_find(number, &recorder);
    else
        problem = find_job(&recorder);
    if (why)
        status = tool_fail(TOOL_FAILED, "top", "process %ld: %s", number, why);
    else if (problem)
        status = tool_fail(TOOL_FAILED, "top", "%s", problem);
    else
        show(&recorder, options);
    g_free(problem);
    dscomm_priv_recorder_close(&recorder);
    return status;
}

int tool_top(int argc, char **argv)
{
    options_t options = {.interval = 1};
    const GOptionEntry entries[] = {
        {"once", 0, 0, G_OPTION_ARG_NONE, &options.once,
         "Print one sample, after an interval", NULL},
        {"interval", 'i', 0, G_OPTION_ARG_DOUBLE, &options.interval,
         "Seconds between samples (default: 1)", "SECONDS"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options.json,
         "Print JSON, an object for each sample", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };

    if (!tool_parse(&argc, &argv, entries, "[PID]",
                    "Shows what the ranks of a job on this machine do. PID is "
                    "a rank, or its dscomm run; without it, the job is the "
                    "only one of this user.",
                    false, NULL))
        return TOOL_USAGE;
    if (argc > 2)
        return tool_fail(TOOL_USAGE, "top", "unexpected argument '%s'",
                         argv[2]);
    if (!(options.interval >= 0.01 && options.interval <= 3600))
        return tool_fail(TOOL_USAGE, "top",
                         "--interval is %g; give 0.01 to 3600 seconds",
                         options.interval);
    return top(argc > 1 ? argv[1] : NULL, &options);
}
