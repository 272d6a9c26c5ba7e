/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON: one object of what was measured, where, and its rows. Written as rows
 * come, with as many digits as mean anything. */
#include "config.h"

#include "tools/perf/baseline.h"
#include "tools/perf/report.h"
#include "tools/perf/roof.h"

#include <sys/utsname.h>

/* A string of JSON; text is UTF-8, or becomes it. */
static void print_text(FILE *to, const char *text)
{
    char *valid = g_utf8_make_valid(text, -1);

    fputc('"', to);
    for (const char *at = valid; *at; at++)
        if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if ((guchar)*at < ' ')
            fprintf(to, "\\u%04x", (unsigned)*at);
        else
            fputc(*at, to);
    fputc('"', to);
    g_free(valid);
}

static void print_member(FILE *to, const char *name, const char *text)
{
    fprintf(to, "  \"%s\": ", name);
    print_text(to, text);
    fprintf(to, ",\n");
}

static const char *word(gboolean value)
{
    return value ? "true" : "false";
}

static void print_options(const perf_options_t *o, FILE *to)
{
    fprintf(to, "  \"options\": {\"min_bytes\": %zu, \"max_bytes\": %zu, ",
            o->min, o->max);
    if (o->step)
        fprintf(to, "\"step_bytes\": %zu, ", o->step);
    else
        fprintf(to, "\"factor\": %g, ", o->factor);
    if (o->iterations)
        fprintf(to, "\"iterations\": %d, ", o->iterations);
    else
        fprintf(to, "\"seconds\": %g, ", o->time);
    fprintf(to, "\"warmup\": %d, \"aggregate\": %d, \"checks\": %d, ",
            o->warmup, o->aggregate, o->checks);
    fprintf(to, "\"async\": %s, \"overlapped\": %s, \"registered\": %s},\n",
            word(o->async), word(o->overlap), word(o->registered));
}

static void begin(const perf_run_t *run, FILE *to)
{
    GDateTime *now = g_date_time_new_now_utc();
    char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    struct utsname system;

    uname(&system);
    fprintf(to, "{\n  \"format\": \"%s\",\n  \"format_version\": %d,\n",
            PERF_FORMAT, PERF_FORMAT_VERSION);
    print_member(to, "dscomm", dscomm_version_string());
    print_member(to, "time", time);
    print_member(to, "kernel", system.release);
    print_member(to, "machine", system.machine);
    print_member(to, "cpu_features", dscomm_cpu_features());
    print_member(to, "backend", dscomm_group_backend(run->group));
    print_options(run->options, to);
    fprintf(to, "  \"ranks\": [");
    for (int i = 0; i < run->ranks; i++) {
        const perf_rank_t *rank = &run->everyone[i];
        fprintf(to, "%s\n    {\"rank\": %d, \"host\": ", i ? "," : "", i);
        print_text(to, rank->host);
        fprintf(to, ", \"pid\": %d, ", rank->pid);
        if (rank->processor < 0)
            fprintf(to, "\"processor\": null}");
        else
            fprintf(to, "\"processor\": %d}", rank->processor);
    }
    fprintf(to, "\n  ],\n  \"rows\": [");
    g_free(time);
    g_date_time_unref(now);
}

static void print_known(FILE *to, const char *name, gboolean known,
                        double value)
{
    if (known)
        fprintf(to, ", \"%s\": %.4f", name, value);
    else
        fprintf(to, ", \"%s\": null", name);
}

static void print_figure(const perf_run_t *run, FILE *to, const char *name,
                         const perf_figure_t *f)
{
    double roof = perf_roof_percent(f);

    fprintf(to, ",\n     \"%s\": ", name);
    if (!f->valid) {
        fprintf(to, "null");
        return;
    }
    fprintf(to, "{\"time_us\": %.4f, \"min_us\": %.4f, \"p50_us\": %.4f, ",
            f->times.p50, f->times.min, f->times.p50);
    fprintf(to,
            "\"p99_us\": %.4f, \"max_us\": %.4f, \"spread_percent\": %.2f, ",
            f->times.p99, f->times.max, f->times.spread);
    fprintf(to, "\"batches\": %zu, \"calls\": %zu,\n      ", f->times.batches,
            f->times.calls);
    fprintf(to, "\"algbw_gbs\": %.6g, \"busbw_gbs\": %.6g", f->algbw, f->busbw);
    print_known(to, "roof_us", roof > 0, f->roof);
    print_known(to, "roof_percent", roof > 0, roof);
    print_known(to, "hidden_percent", run->options->overlap, f->hidden);
    print_known(to, "speedup", f->ratio > 0, f->ratio);
    if (f->wrong < 0)
        fprintf(to, ", \"wrong\": null}");
    else
        fprintf(to, ", \"wrong\": %" G_GINT64_FORMAT "}", f->wrong);
}

static void row(const perf_run_t *run, FILE *to, const perf_row_t *r,
                gboolean first)
{
    fprintf(to, "%s\n    {\"operation\": \"%s\", \"bytes\": %zu, ",
            first ? "" : ",", r->operation->name, r->bytes);
    fprintf(to, "\"count\": %zu, \"type\": \"%s\", \"redop\": \"%s\", ",
            r->count, dscomm_dtype_name(r->dtype), perf_row_op(r));
    if (r->root == PERF_ROOT_ROTATES)
        fprintf(to, "\"root\": \"rotate\", \"algorithm\": ");
    else
        fprintf(to, "\"root\": %d, \"algorithm\": ", r->root);
    print_text(to, r->algorithm);
    print_figure(run, to, "out_of_place", &r->figures[PERF_OUT_OF_PLACE]);
    print_figure(run, to, "in_place", &r->figures[PERF_IN_PLACE]);
    fprintf(to, "}");
}

static void end(const perf_run_t *run, FILE *to, char *const *warnings)
{
    double line = perf_roof_first_line(run->roof), rate;
    char tuning[PERF_TUNING_TEXT];
    size_t bytes;

    perf_roof_copy(run, &bytes, &rate);
    fprintf(to, "\n  ],\n  \"wrong\": ");
    if (run->options->checks > 0)
        fprintf(to, "%" G_GINT64_FORMAT, run->wrong);
    else
        fprintf(to, "null");
    fprintf(to, ",\n  \"average_busbw_gbs\": %.4f,\n",
            run->figures ? run->busbw_sum / (double)run->figures : 0);
    fprintf(to, "  \"copy\": {\"bytes\": %zu, \"gbs\": %.4f},\n", bytes, rate);
    if (line > 0)
        fprintf(to, "  \"cache_line_ns\": %.1f,\n", line);
    else
        fprintf(to, "  \"cache_line_ns\": null,\n");
    if (perf_tuning(run->group, tuning))
        print_member(to, "chosen_by_trial", tuning);
    else
        fprintf(to, "  \"chosen_by_trial\": null,\n");
    fprintf(to, "  \"warnings\": [");
    for (int i = 0; warnings[i]; i++) {
        fprintf(to, "%s\n    ", i ? "," : "");
        print_text(to, warnings[i]);
    }
    fprintf(to, "%s]\n}\n", warnings[0] ? "\n  " : "");
}

const perf_form_t perf_form_json = {begin, NULL, row, end};
