/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON: one object of what was measured, where, and its rows, with as many
 * digits as mean anything. */
#include "config.h"

#include "tools/perf/baseline.h"
#include "tools/perf/report.h"
#include "tools/perf/roof.h"

#include <sys/utsname.h>

static void options_add(JsonBuilder *json, const perf_options_t *o)
{
    tool_json_object(json, "options");
    tool_json_number(json, "min_bytes", (gint64)o->min);
    tool_json_number(json, "max_bytes", (gint64)o->max);
    if (o->step)
        tool_json_number(json, "step_bytes", (gint64)o->step);
    else
        tool_json_real(json, "factor", "%g", o->factor);
    if (o->iterations)
        tool_json_number(json, "iterations", o->iterations);
    else
        tool_json_real(json, "seconds", "%g", o->time);
    tool_json_number(json, "warmup", o->warmup);
    tool_json_number(json, "aggregate", o->aggregate);
    tool_json_number(json, "checks", o->checks);
    tool_json_flag(json, "async", o->async);
    tool_json_flag(json, "overlapped", o->overlap);
    tool_json_flag(json, "registered", o->registered);
    json_builder_end_object(json);
}

/* Adds a number; null if it is unknown. */
static void number_add(JsonBuilder *json, const char *name, gboolean known,
                       gint64 number)
{
    if (known)
        tool_json_number(json, name, number);
    else
        tool_json_text(json, name, NULL);
}

static void real_add(JsonBuilder *json, const char *name, const char *format,
                     gboolean known, double number)
{
    if (known)
        tool_json_real(json, name, format, number);
    else
        tool_json_text(json, name, NULL);
}

static void rank_add(JsonBuilder *json, const perf_run_t *run, int number)
{
    const perf_rank_t *rank = &run->everyone[number];

    tool_json_object(json, NULL);
    tool_json_number(json, "rank", number);
    tool_json_text(json, "host", rank->host);
    tool_json_number(json, "pid", rank->pid);
    number_add(json, "processor", rank->processor >= 0, rank->processor);
    json_builder_end_object(json);
}

JsonBuilder *perf_json_new(const perf_run_t *run)
{
    JsonBuilder *json = json_builder_new();
    GDateTime *now = g_date_time_new_now_utc();
    char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    struct utsname system;

    uname(&system);
    tool_json_object(json, NULL);
    tool_json_text(json, "format", PERF_FORMAT);
    tool_json_number(json, "format_version", PERF_FORMAT_VERSION);
    tool_json_text(json, "dscomm", dscomm_version_string());
    tool_json_text(json, "time", time);
    tool_json_text(json, "kernel", system.release);
    tool_json_text(json, "machine", system.machine);
    tool_json_text(json, "cpu_features", dscomm_cpu_features());
    tool_json_text(json, "backend", dscomm_group_backend(run->group));
    options_add(json, run->options);
    tool_json_array(json, "ranks");
    for (int i = 0; i < run->ranks; i++)
        rank_add(json, run, i);
    json_builder_end_array(json);
    tool_json_array(json, "rows");
    g_free(time);
    g_date_time_unref(now);
    return json;
}

static void figure_add(const perf_run_t *run, JsonBuilder *json,
                       const char *name, const perf_figure_t *f)
{
    const double roof = perf_roof_percent(f);

    if (!f->valid) {
        tool_json_text(json, name, NULL);
        return;
    }
    tool_json_object(json, name);
    tool_json_real(json, "time_us", "%.4f", f->times.p50);
    tool_json_real(json, "min_us", "%.4f", f->times.min);
    tool_json_real(json, "p50_us", "%.4f", f->times.p50);
    tool_json_real(json, "p99_us", "%.4f", f->times.p99);
    tool_json_real(json, "max_us", "%.4f", f->times.max);
    tool_json_real(json, "spread_percent", "%.2f", f->times.spread);
    tool_json_number(json, "batches", (gint64)f->times.batches);
    tool_json_number(json, "calls", (gint64)f->times.calls);
    tool_json_real(json, "algbw_gbs", "%.6g", f->algbw);
    tool_json_real(json, "busbw_gbs", "%.6g", f->busbw);
    real_add(json, "roof_us", "%.4f", roof > 0, f->roof);
    real_add(json, "roof_percent", "%.4f", roof > 0, roof);
    real_add(json, "hidden_percent", "%.4f", run->options->overlap, f->hidden);
    real_add(json, "speedup", "%.4f", f->ratio > 0, f->ratio);
    number_add(json, "wrong", f->wrong >= 0, f->wrong);
    json_builder_end_object(json);
}

void perf_json_row(const perf_run_t *run, JsonBuilder *json,
                   const perf_row_t *row)
{
    tool_json_object(json, NULL);
    tool_json_text(json, "operation", row->operation->name);
    tool_json_number(json, "bytes", (gint64)row->bytes);
    tool_json_number(json, "count", (gint64)row->count);
    tool_json_text(json, "type", dscomm_dtype_name(row->dtype));
    tool_json_text(json, "redop", perf_row_op(row));
    if (row->root == PERF_ROOT_ROTATES)
        tool_json_text(json, "root", "rotate");
    else
        tool_json_number(json, "root", row->root);
    tool_json_text(json, "algorithm", row->algorithm);
    figure_add(run, json, "out_of_place", &row->figures[PERF_OUT_OF_PLACE]);
    figure_add(run, json, "in_place", &row->figures[PERF_IN_PLACE]);
    json_builder_end_object(json);
}

char *perf_json_end(const perf_run_t *run, JsonBuilder *json,
                    char *const *warnings)
{
    GString *text = g_string_new(NULL);
    double line = perf_roof_first_line(run->roof), rate;
    char tuning[PERF_TUNING_TEXT];
    size_t bytes;

    perf_roof_copy(run, &bytes, &rate);
    json_builder_end_array(json);
    number_add(json, "wrong", run->options->checks > 0, run->wrong);
    tool_json_real(json, "average_busbw_gbs", "%.4f",
                   run->figures ? run->busbw_sum / (double)run->figures : 0);
    tool_json_object(json, "copy");
    tool_json_number(json, "bytes", (gint64)bytes);
    tool_json_real(json, "gbs", "%.4f", rate);
    json_builder_end_object(json);
    real_add(json, "cache_line_ns", "%.1f", line > 0, line);
    tool_json_text(json, "chosen_by_trial",
                   perf_tuning(run->group, tuning) ? tuning : NULL);
    tool_json_texts(json, "warnings", warnings);
    json_builder_end_object(json);
    tool_json_end(json, TRUE, text);
    return g_string_free(text, FALSE);
}
