/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm top: what the ranks of a job on this machine do. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/common/sample.h"
#include "tools/common/tool.h"
#include "tools/top/attach.h"
#include "tools/top/remote.h"
#include "tools/top/screen.h"
#include "tools/top/view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define BAR 10 /* characters */

typedef struct {
    gboolean once, json;
    double interval; /* seconds */
} options_t;

static bool some_live(const GArray *samples)
{
    for (guint i = 0; i < samples->len; i++)
        if (g_array_index(samples, sample_t, i).state <= SLOT_STOPPED)
            return true;
    return false;
}

static void print_json(const dscomm_recorder_t *recorder, const GArray *samples)
{
    JsonBuilder *builder = json_builder_new();
    GString *text = g_string_new(NULL);
    char *job = attach_name(recorder);

    tool_json_object(builder, NULL);
    tool_json_text(builder, "job", job);
    g_free(job);
    tool_json_array(builder, "ranks");
    for (guint i = 0; i < samples->len; i++) {
        const sample_t *sample = &g_array_index(samples, sample_t, i);

        tool_json_object(builder, NULL);
        tool_json_number(builder, "rank", sample->rank);
        tool_json_number(builder, "node", sample->node);
        tool_json_number(builder, "pid", sample->pid);
        tool_json_text(builder, "process",
                       dscomm_priv_recorder_state_name(sample->state));
        tool_json_number(builder, "calls", (gint64)sample->calls);
        tool_json_real(builder, "calls_per_s", "%.1f", sample->calls_per_s);
        tool_json_real(builder, "bytes_per_s", "%.0f", sample->bytes_per_s);
        if (sample->wait < 0)
            tool_json_text(builder, "wait", NULL);
        else
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

static void print_rank(const sample_t *sample, bool with_node)
{
    const int full = (int)lround(sample->wait * BAR);
    char wait[8];
    char *current = tool_printable(sample->current);

    if (with_node)
        printf("%4d ", sample->node);
    sample_wait(sample, wait, sizeof wait);
    printf("%5d %8d %-8s %10.0f %10.3f %5s ", sample->rank, sample->pid,
           dscomm_priv_recorder_state_name(sample->state), sample->calls_per_s,
           sample->bytes_per_s / 1e6, wait);
    for (int i = 0; i < BAR; i++)
        putchar(i < full ? '#' : '.');
    printf(" %9.3f %s\n", sample->current_s, *current ? current : "no call");
    g_free(current);
}

static void print_table(const dscomm_recorder_t *recorder,
                        const GArray *samples)
{
    char *raw = attach_name(recorder);
    char *job = tool_printable(raw);

    if (samples_nodes(samples) > 1)
        printf("job %s, %u ranks on %d nodes\nnode ", job, samples->len,
               samples_nodes(samples));
    else
        printf("job %s, %u rank%s on this machine\n", job, samples->len,
               samples->len == 1 ? "" : "s");
    printf("%5s %8s %-8s %10s %10s %5s %-*s %9s %s\n", "rank", "pid", "process",
           "calls/s", "MB/s", "wait", BAR, "", "seconds", "in");
    for (guint i = 0; i < samples->len; i++)
        print_rank(&g_array_index(samples, sample_t, i),
                   samples_nodes(samples) > 1);
    g_free(job);
    g_free(raw);
}

/* The last sample, and its time. */
typedef struct {
    GArray *samples;
    gint64 taken_us;
    remote_t remote;
} last_t;

static void last_take(const dscomm_recorder_t *recorder, last_t *last)
{
    const gint64 now = g_get_monotonic_time();
    GArray *samples =
        sample_take(recorder, last->samples,
                    (double)(now - last->taken_us) / G_USEC_PER_SEC);

    if (last->samples)
        g_array_free(last->samples, true);
    remote_add(&last->remote, samples);
    last->samples = samples;
    last->taken_us = now;
}

/* Prints a sample each interval, until no rank lives. */
static void show_lines(const dscomm_recorder_t *recorder,
                       const options_t *options, last_t *last)
{
    do {
        g_usleep((gulong)(options->interval * G_USEC_PER_SEC));
        last_take(recorder, last);
        if (options->json)
            print_json(recorder, last->samples);
        else
            print_table(recorder, last->samples);
        fflush(stdout);
    } while (!options->once && some_live(last->samples) && !ferror(stdout));
}

static void draw(const dscomm_recorder_t *recorder, const last_t *last,
                 guint first)
{
    GString *out = g_string_new(NULL);
    char *job = attach_name(recorder);
    int rows, columns;

    screen_size(&rows, &columns);
    view_draw(job, last->samples, first, rows, columns, out);
    fwrite(out->str, 1, out->len, stdout);
    fflush(stdout);
    g_free(job);
    g_string_free(out, true);
}

/* Fills the terminal, until a key or a signal ends it, or no rank lives. False:
 * errno. */
static bool show_screen(const dscomm_recorder_t *recorder,
                        const options_t *options, last_t *last)
{
    const gint64 interval_us = (gint64)(options->interval * G_USEC_PER_SEC);
    screen_event_t event = SCREEN_DRAW;
    screen_t screen;
    guint first = 0;

    if (!screen_open(&screen))
        return false;
    while (event != SCREEN_QUIT && !ferror(stdout)) {
        const gint64 left =
            last->taken_us + interval_us - g_get_monotonic_time();

        if (event == SCREEN_TIME && left <= 0) {
            last_take(recorder, last);
            if (!some_live(last->samples))
                break;
        }
        if (event == SCREEN_DOWN && first + 1 < last->samples->len)
            first++;
        if (event == SCREEN_UP && first)
            first--;
        draw(recorder, last, first);
        event = screen_wait(&screen, (int)CLAMP((last->taken_us + interval_us -
                                                 g_get_monotonic_time()) /
                                                        1000 +
                                                    1,
                                                0, 3600000));
    }
    screen_close(&screen);
    if (event != SCREEN_QUIT)
        print_table(recorder, last->samples);
    return true;
}

static int top(const char *job, const options_t *options)
{
    dscomm_recorder_t recorder = DSCOMM_RECORDER_INIT;
    char *problem = attach_job(job, &recorder);
    last_t last = {NULL, g_get_monotonic_time(), {1, 0, NULL}};
    int status = TOOL_OK;

    if (problem) {
        status = tool_fail(TOOL_FAILED, "top", "%s", problem);
        g_free(problem);
        return status;
    }
    last_take(&recorder, &last);
    problem = remote_open(&last.remote, last.samples);
    if (problem)
        tool_fail(TOOL_OK, "top", "%s", problem);
    g_free(problem);
    remote_add(&last.remote, last.samples);
    if (options->once || options->json || !screen_is_there())
        show_lines(&recorder, options, &last);
    else if (!show_screen(&recorder, options, &last))
        status = tool_fail(TOOL_FAILED, "top", "cannot read signals: %s",
                           g_strerror(errno));
    g_array_free(last.samples, true);
    remote_close(&last.remote);
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

    if (!tool_parse(&argc, &argv, entries, "[JOB]",
                    "Shows what the ranks of a job on this machine do. JOB is "
                    "its name, or the pid of a rank or of its dscomm run; "
                    "without it, the job is the only one of this user. Keys: q "
                    "quits, j and k move through the ranks.",
                    false, NULL))
        return TOOL_USAGE;
    if (argc > 2)
        return tool_fail(TOOL_USAGE, "top", "unexpected argument '%s'",
                         argv[2]);
    if (argc > 1 && !tool_is_id(argv[1]))
        return tool_fail(TOOL_USAGE, "top",
                         "'%s' is neither a pid nor the name of a job",
                         argv[1]);
    if (!(options.interval >= 0.01 && options.interval <= 3600))
        return tool_fail(TOOL_USAGE, "top",
                         "--interval is %g; give 0.01 to 3600 seconds",
                         options.interval);
    return top(argc > 1 ? argv[1] : NULL, &options);
}
