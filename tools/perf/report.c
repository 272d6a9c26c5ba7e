/* SPDX-License-Identifier: BSD-3-Clause */
/* The report, see report.h: to stdout in one form, and to a file. */
#include "config.h"

#include "tools/common/topology.h"
#include "tools/perf/baseline.h"
#include "tools/perf/operations.h"
#include "tools/perf/report.h"
#include "tools/perf/roof.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>

/* One form of lines on stdout; operation may be NULL. */
typedef struct perf_form {
    void (*begin)(const perf_run_t *run);
    void (*operation)(const perf_run_t *run, const perf_operation_t *operation);
    void (*row)(const perf_run_t *run, const perf_row_t *row);
    void (*end)(const perf_run_t *run, char *const *warnings);
} perf_form_t;

/* If the time of a cache line has changed by this factor, ranks have moved
 * between processors. */
#define MOVED 1.5
#define ROOT_TEXT 12
#define TUNING_TEXT 256

/* The numbers of a figure in CSV and JSON. */
static const struct {
    const char *name, *format; /* of printf(3); NULL: a whole number */
    bool json_only;
} columns[] = {
    {"time_us", "%.4f", false},
    {"min_us", "%.4f", false},
    {"p50_us", "%.4f", true},
    {"p99_us", "%.4f", false},
    {"max_us", "%.4f", false},
    {"spread_percent", "%.2f", false},
    {"algbw_gbs", "%.6g", false},
    {"busbw_gbs", "%.6g", false},
    {"roof_us", "%.4f", true},
    {"roof_percent", "%.4f", false},
    {"hidden_percent", "%.4f", false},
    {"speedup", "%.4f", false},
    {"wrong", NULL, false},
    {"batches", NULL, false},
    {"calls", NULL, false},
    {"messages_per_second", "%.6g", false},
    {"page_faults", "%.4g", true},
};
#define COLUMNS G_N_ELEMENTS(columns)

/* Sets the values of the columns; NAN where one is unknown. */
static void figure_values(const perf_run_t *run, const perf_figure_t *f,
                          double ret_values[COLUMNS])
{
    const perf_times_t *times = &f->times;
    const double roof = perf_roof_percent(f);
    const double values[COLUMNS] = {
        times->p50,
        times->min,
        times->p50,
        times->p99,
        times->max,
        times->spread,
        f->algbw,
        f->busbw,
        roof > 0 ? f->roof : NAN,
        roof > 0 ? roof : NAN,
        run->options->overlap ? f->hidden : NAN,
        f->ratio > 0 ? f->ratio : NAN,
        f->wrong >= 0 ? (double)f->wrong : NAN,
        (double)times->batches,
        (double)times->calls,
        f->messages > 0 ? f->messages : NAN,
        times->faults,
    };

    memcpy(ret_values, values, sizeof values);
}

/* Returns the root, a number or "rotate", in text. */
static const char *root_text(const perf_row_t *row, char text[ROOT_TEXT])
{
    if (row->root == PERF_ROOT_ROTATES)
        return "rotate";
    g_snprintf(text, ROOT_TEXT, "%d", row->root);
    return text;
}

/* Writes to text what the backend has chosen by trial on this rank; false:
 * nothing. */
static bool tuning_text(const perf_run_t *run, char text[TUNING_TEXT])
{
    return dscomm_group_tuning(run->group, text, TUNING_TEXT) == DSCOMM_OK &&
           *text;
}

/* Comma-separated values: a line of names, then one line for each figure.
 * Unknown fields are empty; no field contains a comma. */

static void csv_begin(const perf_run_t *run)
{
    if (run->options->part > 1)
        return;
    printf("operation,bytes,count,type,redop,root,place,algorithm,ranks,"
           "backend");
    for (size_t i = 0; i < COLUMNS; i++)
        if (!columns[i].json_only)
            printf(",%s", columns[i].name);
    putchar('\n');
}

static void csv_print_figure(const perf_run_t *run, const perf_row_t *row,
                             perf_place_t place)
{
    double values[COLUMNS];
    char root[ROOT_TEXT];

    figure_values(run, &row->figures[place], values);
    printf("%s,%zu,%zu,%s,%s,%s,%s,%s,%d,%s", row->operation->name, row->bytes,
           row->count, dscomm_dtype_name(row->dtype), perf_row_op(row),
           root_text(row, root), place == PERF_IN_PLACE ? "in" : "out",
           row->algorithm, run->ranks, dscomm_group_backend(run->group));
    for (size_t i = 0; i < COLUMNS; i++) {
        if (columns[i].json_only)
            continue;
        putchar(',');
        if (isfinite(values[i]))
            printf(columns[i].format ? columns[i].format : "%.0f", values[i]);
    }
    putchar('\n');
}

static void csv_row(const perf_run_t *run, const perf_row_t *r)
{
    for (perf_place_t place = 0; place < PERF_PLACES; place++)
        if (r->figures[place].valid)
            csv_print_figure(run, r, place);
}

static void csv_end(const perf_run_t *run, char *const *warnings)
{
    char tuning[TUNING_TEXT];

    if (tuning_text(run, tuning))
        fprintf(stderr, "dscomm perf: chosen by trial: %s\n", tuning);
    for (int i = 0; warnings[i]; i++)
        fprintf(stderr, "dscomm perf: warning: %s\n", warnings[i]);
}

static const perf_form_t form_csv = {csv_begin, NULL, csv_row, csv_end};

/* The table: nccl-tests' columns, byte for byte, so that programs that read
 * its output can read this one; this program's own columns follow them. */

static const char *mode(const perf_options_t *options)
{
    if (options->overlap)
        return "overlapped";
    return options->async ? "async" : "blocking";
}

void perf_report_head(const perf_run_t *run)
{
    const perf_options_t *o = run->options;

    printf("# dscomm %s, backend %s, %d rank%s\n", dscomm_version_string(),
           dscomm_group_backend(run->group), run->ranks,
           run->ranks == 1 ? " (-n N starts N of them)" : "s");
    printf("# minBytes %zu maxBytes %zu step: ", o->min, o->max);
    if (o->step)
        printf("%zu(bytes)", o->step);
    else
        printf("%g(factor)", o->factor);
    printf(" warmup iters: %d iters: ", o->warmup);
    if (o->iterations)
        printf("%d", o->iterations);
    else
        printf("%g s", o->time);
    printf(" agg iters: %d validation: %d mode: %s%s%s%s\n", o->aggregate,
           o->checks, mode(o), o->registered ? ", registered" : "",
           o->accelerator ? ", buffers on " : "",
           o->accelerator ? o->accelerator : "");
    printf("#\n# Using ranks\n");
    for (int i = 0; i < run->ranks; i++) {
        const perf_rank_t *rank = &run->everyone[i];
        printf("#  Rank %2d Pid %6d on %10s processor ", i, rank->pid,
               rank->host);
        if (rank->processor < 0)
            printf("any\n");
        else
            printf("%d\n", rank->processor);
    }
    if (run->line > 0)
        printf("#\n# Cache line, rank 0 to 1: %.0f ns\n", run->line);
    printf("#\n# time: median over batches of the mean time of a call in "
           "the slowest rank\n");
}

/* A column before "algorithm" that only some runs and operations have. */
typedef enum { NO_EXTRA, HIDDEN, SPEEDUP, RATE } extra_t;

static const struct {
    int width;
    const char *lines[2];
} extras[] = {
    [NO_EXTRA] = {0, {"", ""}},
    [HIDDEN] = {7, {"hidden", "(%)"}},
    [SPEEDUP] = {12, {"speedup", "out    in"}},
    [RATE] = {8, {"rate", "(M/s)"}},
};

static extra_t extra_of(const perf_run_t *run,
                        const perf_operation_t *operation)
{
    if (run->options->overlap)
        return HIDDEN;
    if (run->baseline)
        return SPEEDUP;
    return perf_message_rate(operation, run->ranks, 1) > 0 ? RATE : NO_EXTRA;
}

static void operation(const perf_run_t *run, const perf_operation_t *which)
{
    const extra_t extra = extra_of(run, which);
    const int width = extras[extra].width;

    printf("#\n# %s: %s\n", which->name, which->summary);
    printf("# %10s  %12s  %8s  %6s  %6s           out-of-place           "
           "            in-place          \n",
           "", "", "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s "
           "%6s  %7s  %7s  %6s  %5s%*s  %s\n",
           "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
           "#wrong", "time", "algbw", "busbw", "#wrong", "min", "p99", "spread",
           "%roof", width, extras[extra].lines[0], "algorithm");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s "
           "%6s  %7s  %7s  %6s  %5s%*s\n",
           "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
           "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(%)", "(%)", width,
           extras[extra].lines[1]);
}

/* Prints a time in at most seven columns, with as many decimals as fit. */
static void print_time(double time)
{
    int digits = time < 100 ? 3 : time < 1e5 ? 1 : 0;

    printf("  %7.*f", digits, time);
}

static void table_print_figure(const perf_figure_t *figure)
{
    if (!figure->valid) {
        printf("  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    print_time(figure->times.p50);
    printf("  %6.2f  %6.2f  ", figure->algbw, figure->busbw);
    if (figure->wrong < 0)
        printf("%5s", "N/A");
    else
        printf("%5" G_GINT64_FORMAT, figure->wrong);
}

static void print_ratio(const perf_figure_t *figure)
{
    if (figure->valid && figure->ratio > 0)
        printf(" %5.2f", figure->ratio);
    else
        printf(" %5s", "-");
}

static void print_extra(const perf_run_t *run, const perf_row_t *row,
                        const perf_figure_t *figure)
{
    switch (extra_of(run, row->operation)) {
    case HIDDEN:
        printf("  %5.1f", figure->hidden);
        break;
    case SPEEDUP:
        for (perf_place_t place = 0; place < PERF_PLACES; place++)
            print_ratio(&row->figures[place]);
        break;
    case RATE:
        printf("  %6.3f", figure->messages / 1e6);
        break;
    default:
        break;
    }
}

/* Prints this program's own columns, for the first place that was measured. */
static void print_more(const perf_run_t *run, const perf_row_t *row)
{
    const perf_figure_t *figure =
        &row->figures[row->figures[PERF_OUT_OF_PLACE].valid ? PERF_OUT_OF_PLACE
                                                            : PERF_IN_PLACE];
    double roof = perf_roof_percent(figure);

    print_time(figure->times.min);
    print_time(figure->times.p99);
    printf("  %6.1f", figure->times.spread);
    if (roof > 0)
        printf("  %5.1f", roof);
    else
        printf("  %5s", "-");
    print_extra(run, row, figure);
    printf("  %s\n", row->algorithm);
}

static void table_row(const perf_run_t *run, const perf_row_t *r)
{
    char root[ROOT_TEXT];

    printf("%12zu  %12zu  %8s  %6s  %6s", r->bytes, r->count,
           dscomm_dtype_name(r->dtype), perf_row_op(r), root_text(r, root));
    table_print_figure(&r->figures[PERF_OUT_OF_PLACE]);
    table_print_figure(&r->figures[PERF_IN_PLACE]);
    print_more(run, r);
}

static void table_end(const perf_run_t *run, char *const *warnings)
{
    char tuning[TUNING_TEXT];
    size_t bytes;
    double rate;

    if (run->options->checks > 0)
        printf("# Out of bounds values : %" G_GINT64_FORMAT " %s\n", run->wrong,
               run->wrong ? "FAILED" : "OK");
    printf("# Avg bus bandwidth    : %g \n",
           run->figures ? run->busbw_sum / (double)run->figures : 0);
    printf("# Page faults          : at most %.3g in a call\n", run->faults);
    perf_roof_copy(run, &bytes, &rate);
    if (bytes)
        printf("# Copy bandwidth       : %.1f GB/s, all ranks at once, "
               "%zu bytes each\n",
               rate, bytes);
    if (tuning_text(run, tuning))
        printf("# Chosen by trial      : %s\n", tuning);
    printf("#\n");
    for (int i = 0; warnings[i]; i++)
        printf("# Warning: %s\n", warnings[i]);
}

static const perf_form_t form_table = {perf_report_head, operation, table_row,
                                       table_end};

/* JSON: one object that describes the run, with its rows. Numbers have as many
 * digits as are significant. */

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
    tool_json_flag(json, "accelerated", o->accelerator != NULL);
    json_builder_end_object(json);
}

static void rank_add(JsonBuilder *json, const perf_run_t *run, int number)
{
    const perf_rank_t *rank = &run->everyone[number];

    tool_json_object(json, NULL);
    tool_json_number(json, "rank", number);
    tool_json_text(json, "host", rank->host);
    tool_json_number(json, "pid", rank->pid);
    tool_json_real(json, "processor", NULL,
                   rank->processor >= 0 ? rank->processor : NAN);
    json_builder_end_object(json);
}

/* The model of the machine's processors; NULL: unknown. */
static const char *processor_name(const perf_run_t *run)
{
    const hwloc_obj_t package =
        run->topology
            ? hwloc_get_obj_by_type(run->topology->hwloc, HWLOC_OBJ_PACKAGE, 0)
            : NULL;

    return package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
}

/* Begins with what is known before the rows. */
static JsonBuilder *json_new(const perf_run_t *run, const char *format)
{
    JsonBuilder *json = json_builder_new();
    GDateTime *now = g_date_time_new_now_utc();
    char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
    struct utsname system;

    uname(&system);
    tool_json_object(json, NULL);
    tool_json_text(json, "format", format);
    tool_json_number(json, "format_version", PERF_FORMAT_VERSION);
    tool_json_text(json, "dscomm", dscomm_version_string());
    tool_json_text(json, "time", time);
    tool_json_text(json, "kernel", system.release);
    tool_json_text(json, "machine", system.machine);
    tool_json_text(json, "processor", processor_name(run));
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
    double values[COLUMNS];

    if (!f->valid) {
        tool_json_text(json, name, NULL);
        return;
    }
    figure_values(run, f, values);
    tool_json_object(json, name);
    for (size_t i = 0; i < COLUMNS; i++)
        tool_json_real(json, columns[i].name, columns[i].format, values[i]);
    json_builder_end_object(json);
}

void perf_report_row_begin(JsonBuilder *json, const perf_row_t *row)
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
}

static void json_row(const perf_run_t *run, JsonBuilder *json,
                     const perf_row_t *row)
{
    perf_report_row_begin(json, row);
    figure_add(run, json, "out_of_place", &row->figures[PERF_OUT_OF_PLACE]);
    figure_add(run, json, "in_place", &row->figures[PERF_IN_PLACE]);
    json_builder_end_object(json);
}

/* Frees json and returns the text; g_free(). */
static char *json_close(const perf_run_t *run, JsonBuilder *json,
                        char *const *warnings)
{
    GString *text = g_string_new(NULL);

    tool_json_real(json, "wrong", NULL,
                   run->options->checks > 0 ? (double)run->wrong : NAN);
    tool_json_texts(json, "warnings", warnings);
    json_builder_end_object(json);
    tool_json_end(json, true, text);
    return g_string_free(text, false);
}

/* Ends the rows, and adds what is known about all of them. */
static void json_end_rows(const perf_run_t *run, JsonBuilder *json)
{
    double rate;
    char tuning[TUNING_TEXT];
    size_t bytes;

    perf_roof_copy(run, &bytes, &rate);
    json_builder_end_array(json);
    tool_json_real(json, "average_busbw_gbs", "%.4f",
                   run->figures ? run->busbw_sum / (double)run->figures : 0);
    tool_json_object(json, "copy");
    tool_json_number(json, "bytes", (gint64)bytes);
    tool_json_real(json, "gbs", "%.4f", rate);
    json_builder_end_object(json);
    tool_json_real(json, "cache_line_ns", "%.1f",
                   run->line > 0 ? run->line : NAN);
    tool_json_text(json, "chosen_by_trial",
                   tuning_text(run, tuning) ? tuning : NULL);
}

void perf_report_open(const perf_run_t *run, const char *format)
{
    const perf_options_t *o = run->options;
    perf_report_t *report = run->report;

    report->form = o->json ? NULL : o->csv ? &form_csv : &form_table;
    report->warnings = g_ptr_array_new_with_free_func(g_free);
    if (!report->form || o->save || o->plot || o->part)
        report->json = json_new(run, format);
}

void perf_report_begin(const perf_run_t *run)
{
    perf_report_open(run, PERF_FORMAT);
    if (run->report->form)
        run->report->form->begin(run);
}

void perf_report_operation(const perf_run_t *run,
                           const perf_operation_t *operation)
{
    const perf_form_t *form = run->report->form;

    if (form && form->operation)
        form->operation(run, operation);
    fflush(stdout);
}

void perf_report_row(const perf_run_t *run, const perf_row_t *row)
{
    perf_report_t *report = run->report;

    if (report->form)
        report->form->row(run, row);
    fflush(stdout);
    if (report->json)
        json_row(run, report->json, row);
}

static void warn(const perf_run_t *run, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
static void warn(const perf_run_t *run, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_ptr_array_add(run->report->warnings, g_strdup_vprintf(format, args));
    va_end(args);
}

/* Warns about ranks that share a processor: their times measure the
 * scheduler. */
static void warn_of_sharing(const perf_run_t *run)
{
    if (run->crowd)
        g_ptr_array_add(run->report->warnings, g_strdup(run->crowd));
}

static void warn_of_option(const perf_run_t *run, const char *name, bool now)
{
    if (perf_baseline_option(run->baseline, name) != now)
        warn(run, "the baseline is %s%s, this is %s%s", now ? "not " : "", name,
             now ? "" : "not ", name);
}

static void warn_of_baseline(const perf_run_t *run)
{
    const perf_baseline_t *baseline = run->baseline;

    if (!baseline)
        return;
    if (!run->compared)
        warn(run, "the baseline has none of these rows: their operation, size, "
                  "type, operator and root must be the same");
    else if (run->compared < run->figures)
        warn(run, "the baseline lacks %zu of the %zu figures",
             run->figures - run->compared, run->figures);
    warn_of_option(run, "async", run->options->async);
    warn_of_option(run, "overlapped", run->options->overlap);
    warn_of_option(run, "registered", run->options->registered);
    warn_of_option(run, "accelerated", run->options->accelerator != NULL);
    if (perf_baseline_aggregate(baseline) != run->options->aggregate)
        warn(run, "the baseline coalesces %d calls into one (-m), this %d",
             perf_baseline_aggregate(baseline), run->options->aggregate);
    if (perf_baseline_ranks(baseline) != run->ranks)
        warn(run, "the baseline is of %d ranks, this is of %d",
             perf_baseline_ranks(baseline), run->ranks);
    if (strcmp(perf_baseline_backend(baseline),
               dscomm_group_backend(run->group)) != 0)
        warn(run, "the baseline is of backend %s, this is of %s",
             perf_baseline_backend(baseline), dscomm_group_backend(run->group));
}

static void warn_of_noise(const perf_run_t *run, double line_now)
{
    double line = run->line;

    if (line == 0 && perf_roof_has_line(run))
        warn(run, "a cache line's way from rank 0 to rank 1 could not be "
                  "measured: %%roof of small sizes says nothing");
    if (line > 0 && line_now > 0 &&
        (line_now > line * MOVED || line > line_now * MOVED))
        warn(run,
             "a cache line took %.0f ns from rank 0 to rank 1 before, and "
             "%.0f after: the processors were moved, or had other work; "
             "figures do not compare",
             line, line_now);
    if (run->noisy * 10 > run->figures)
        warn(run,
             "%zu of %zu figures spread by more than 10%%: the machine "
             "is noisy; end what else runs, or give more time (-t)",
             run->noisy, run->figures);
}

/* Makes the warnings. Returns them, NULL at the end. */
static char *const *warnings_new(const perf_run_t *run, double line_now)
{
    warn_of_sharing(run);
    warn_of_baseline(run);
    warn_of_noise(run, line_now);
    g_ptr_array_add(run->report->warnings, NULL);
    return (char *const *)run->report->warnings->pdata;
}

static void json_finish(const perf_run_t *run, char *const *warnings)
{
    perf_report_t *report = run->report;

    if (report->json)
        report->text =
            json_close(run, g_steal_pointer(&report->json), warnings);
    if (!report->form && !run->options->part)
        fputs(report->text, stdout);
}

void perf_report_close(const perf_run_t *run, double line_now)
{
    char *const *warnings = warnings_new(run, line_now);
    const perf_form_t *form = run->report->form;

    json_finish(run, warnings);
    for (int i = 0; warnings[i] && form; i++)
        fprintf(form == &form_csv ? stderr : stdout, "%s%s\n",
                form == &form_csv ? "dscomm perf: warning: " : "# Warning: ",
                warnings[i]);
}

void perf_report_end(const perf_run_t *run, double line_now)
{
    char *const *warnings = warnings_new(run, line_now);

    if (run->report->json)
        json_end_rows(run, run->report->json);
    json_finish(run, warnings);
    if (run->report->form)
        run->report->form->end(run, warnings);
}

void perf_report_clear(perf_report_t *report)
{
    if (report->warnings)
        g_ptr_array_unref(report->warnings);
    g_clear_object(&report->json);
    g_free(report->text);
}
