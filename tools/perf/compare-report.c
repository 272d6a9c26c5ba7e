/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of comparisons, see compare.h: a table or CSV, a line for each
 * alternative and place, or JSON, whose rows are those of other reports with
 * more members. */
#include "config.h"

#include "tools/perf/compare.h"
#include "tools/perf/report.h"

#include <math.h>

#define FORMAT "dscomm-perf-compare"

/* The numbers of an alternative. */
static const struct {
    const char *name, *format; /* in JSON and CSV; NULL: a whole number */
    const char *title, *unit; /* in the table; NULL: not there */
    int width, decimals;
} columns[] = {
    {"time_us", "%.4f", "time", "(us)", 9, 3},
    {"ratio", "%.4f", "ratio", "", 6, 2},
    {"busbw_gbs", "%.6g", "busbw", "(GB/s)", 7, 2},
    {"algbw_gbs", "%.6g", NULL, NULL, 0, 0},
    {"wrong", NULL, "#wrong", "", 6, 0},
    {"min_us", "%.4f", NULL, NULL, 0, 0},
    {"p99_us", "%.4f", NULL, NULL, 0, 0},
    {"spread_percent", "%.2f", "spread", "(%)", 6, 1},
    {"steps", NULL, "steps", "", 5, 0},
    {"wire_bytes", "%.2f", "wire", "(B)", 11, 0},
    {"busiest_bytes", "%.2f", "busiest", "(B)", 11, 0},
    {"memory_bytes", "%.2f", "memory", "(B)", 11, 0},
    {"most_memory_bytes", "%.2f", "at most", "(B)", 11, 0},
    {"batches", NULL, NULL, NULL, 0, 0},
    {"calls", NULL, NULL, NULL, 0, 0},
};
#define COLUMNS G_N_ELEMENTS(columns)

static void entry_values(const perf_entry_t *e, perf_place_t place,
                         double ret_values[COLUMNS])
{
    const perf_figure_t *f = &e->row.figures[place];
    const perf_traffic_t *cost = &e->costs[place];
    const double values[COLUMNS] = {
        f->times.p50,
        e->ratios[place],
        f->busbw,
        f->algbw,
        f->wrong >= 0 ? (double)f->wrong : NAN,
        f->times.min,
        f->times.p99,
        f->times.spread,
        cost->steps,
        cost->wire,
        cost->busiest,
        cost->memory,
        cost->most,
        (double)f->times.batches,
        (double)f->times.calls,
    };

    memcpy(ret_values, values, sizeof values);
}

static const char *place_name(perf_place_t place)
{
    return place == PERF_IN_PLACE ? "in" : "out";
}

static void table_begin(const perf_run_t *run)
{
    perf_report_head(run);
    printf("# alternatives take turns, batch by batch\n"
           "# ratio: to the time of the fastest; n: the size\n"
           "# by the model of the algorithm; lower bounds, if that is all that "
           "is known, are marked:\n"
           "#   steps: messages one after the other; wire: bytes that a rank "
           "sends to others, mean;\n"
           "#   busiest: those of the rank that sends or receives most; "
           "memory: bytes that a rank\n"
           "#   reads and writes, mean; at most: those of the rank with "
           "most;\n"
           "#   native, of which the backend tells: steps: waits for others; "
           "wire: bytes that a\n"
           "#   rank gets from others, mean\n#\n");
    for (int line = 0; line < 2; line++) {
        printf("# %10s  %12s  %8s  %6s  %5s  %-25s", line ? "(B)" : "size",
               line ? "(elements)" : "count", line ? "" : "type",
               line ? "" : "redop", line ? "" : "place",
               line ? "" : "alternative");
        for (size_t i = 0; i < COLUMNS; i++)
            if (columns[i].title)
                printf("  %*s", columns[i].width,
                       line ? columns[i].unit : columns[i].title);
        printf("%s\n", line ? "" : "  algorithm");
    }
}

static void table_line(const perf_entry_t *e, perf_place_t place)
{
    double values[COLUMNS];

    entry_values(e, place, values);
    printf("%12zu  %12zu  %8s  %6s  %5s  %-25s", e->row.bytes, e->row.count,
           dscomm_dtype_name(e->row.dtype), perf_row_op(&e->row),
           place_name(place), e->row.operation->name);
    for (size_t i = 0; i < COLUMNS; i++)
        if (columns[i].title && isfinite(values[i]))
            printf("  %*.*f", columns[i].width, columns[i].decimals, values[i]);
        else if (columns[i].title)
            printf("  %*s", columns[i].width, "N/A");
    printf("  %s%s\n", e->row.algorithm,
           e->costs[place].bound ? " (bounds)" : "");
}

static void csv_begin(const perf_run_t *run)
{
    if (run->options->part > 1)
        return;
    printf("operation,bytes,count,type,redop,place,algorithm,ranks,backend,"
           "lower_bound");
    for (size_t i = 0; i < COLUMNS; i++)
        printf(",%s", columns[i].name);
    putchar('\n');
}

static void csv_line(const perf_run_t *run, const perf_entry_t *e,
                     perf_place_t place)
{
    double values[COLUMNS];

    entry_values(e, place, values);
    printf("%s,%zu,%zu,%s,%s,%s,%s,%d,%s,%s", e->row.operation->name,
           e->row.bytes, e->row.count, dscomm_dtype_name(e->row.dtype),
           perf_row_op(&e->row), place_name(place), e->row.algorithm,
           run->ranks, dscomm_group_backend(run->group),
           e->costs[place].bound ? "yes" : "no");
    for (size_t i = 0; i < COLUMNS; i++) {
        putchar(',');
        if (isfinite(values[i]))
            printf(columns[i].format ? columns[i].format : "%.0f", values[i]);
    }
    putchar('\n');
}

static void json_figure(JsonBuilder *json, const perf_entry_t *e,
                        perf_place_t place)
{
    const char *name = place == PERF_IN_PLACE ? "in_place" : "out_of_place";
    double values[COLUMNS];

    if (!e->row.figures[place].valid) {
        tool_json_text(json, name, NULL);
        return;
    }
    entry_values(e, place, values);
    tool_json_object(json, name);
    for (size_t i = 0; i < COLUMNS; i++)
        tool_json_real(json, columns[i].name, columns[i].format, values[i]);
    tool_json_flag(json, "lower_bound", e->costs[place].bound);
    json_builder_end_object(json);
}

static void json_entry(JsonBuilder *json, const perf_entry_t *e)
{
    perf_report_row_begin(json, &e->row);
    for (perf_place_t place = 0; place < PERF_PLACES; place++)
        json_figure(json, e, place);
    json_builder_end_object(json);
}

void perf_compare_begin(const perf_run_t *run)
{
    perf_report_open(run, FORMAT);
    if (run->options->json)
        return;
    if (run->options->csv)
        csv_begin(run);
    else
        table_begin(run);
    fflush(stdout);
}

static void lines_print(const perf_run_t *run,
                        const perf_comparison_t *comparison)
{
    for (perf_place_t place = 0; place < PERF_PLACES; place++)
        for (size_t i = 0; i < comparison->count; i++) {
            const perf_entry_t *entry = &comparison->entries[i];

            if (!entry->row.figures[place].valid)
                continue;
            if (run->options->csv)
                csv_line(run, entry, place);
            else
                table_line(entry, place);
        }
    fflush(stdout);
}

void perf_compare_row(const perf_run_t *run,
                      const perf_comparison_t *comparison)
{
    if (!run->options->json)
        lines_print(run, comparison);
    for (size_t i = 0; i < comparison->count && run->report->json; i++)
        json_entry(run->report->json, &comparison->entries[i]);
}

static const char *finding_op(const perf_finding_t *f)
{
    const perf_row_t row = {.operation = f->winner, .op = f->op};

    return perf_row_op(&row);
}

static void json_findings(JsonBuilder *json, const GPtrArray *findings)
{
    tool_json_array(json, "findings");
    for (guint i = 0; i < findings->len; i++) {
        const perf_finding_t *f = g_ptr_array_index(findings, i);

        tool_json_object(json, NULL);
        tool_json_number(json, "from_bytes", (gint64)f->from);
        tool_json_number(json, "to_bytes", (gint64)f->to);
        tool_json_text(json, "type", dscomm_dtype_name(f->dtype));
        tool_json_text(json, "redop", finding_op(f));
        tool_json_text(json, "place", f->loser ? place_name(f->place) : NULL);
        tool_json_text(json, "operation", f->winner->name);
        tool_json_text(json, "slower", f->loser ? f->loser->name : NULL);
        tool_json_real(json, "least", "%.4f", f->least);
        tool_json_real(json, "most", "%.4f", f->most);
        tool_json_text(json, "sentence", f->sentence);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static int finding_head(const perf_finding_t *f)
{
    return f->loser ? (int)f->place : PERF_PLACES;
}

static bool is_under_same_heading(const perf_finding_t *a,
                                  const perf_finding_t *b)
{
    return a->dtype == b->dtype && a->op == b->op &&
           finding_head(a) == finding_head(b);
}

/* Prints type, operator and place. */
static void heading_print(const perf_finding_t *f)
{
    static const char *const heads[] = {"out of place", "in place",
                                        "in place and out of place"};
    const bool reduces = perf_flags(f->winner) & PERF_REDUCES;

    printf("#\n# %s, %s%s%s:\n", dscomm_dtype_name(f->dtype),
           reduces ? finding_op(f) : "", reduces ? ", " : "",
           heads[finding_head(f)]);
}

static void findings_print(const perf_run_t *run, const GPtrArray *findings)
{
    const perf_finding_t *last = NULL;

    printf("#\n");
    if (run->options->checks > 0)
        printf("# Out of bounds values : %" G_GINT64_FORMAT " %s\n", run->wrong,
               run->wrong ? "FAILED"
                          : "OK, all alternatives have the same "
                            "results");
    for (guint i = 0; i < findings->len; i++) {
        const perf_finding_t *f = g_ptr_array_index(findings, i);

        if (!last || !is_under_same_heading(last, f))
            heading_print(f);
        last = f;
        printf("#   %s\n", f->sentence);
    }
    printf("#\n");
}

void perf_compare_end(const perf_run_t *run, const GPtrArray *findings,
                      double line_now)
{
    JsonBuilder *json = run->report->json;

    if (!run->options->json && !run->options->csv)
        findings_print(run, findings);
    if (json) {
        json_builder_end_array(json);
        json_findings(json, findings);
    }
    perf_report_close(run, line_now);
}
