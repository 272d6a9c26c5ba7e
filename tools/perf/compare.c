/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurement of alternatives, see compare.h.
 *
 * All have the same inputs, whose right result is known to the bit in whatever
 * order it is computed (verify.h), and are verified before and after the
 * measurement: so the results of all alternatives are equal, floats too. */
#include "config.h"

#include "tools/perf/compare.h"
#include "tools/perf/measure.h"
#include "tools/perf/options.h"
#include "tools/perf/ranks.h"
#include "tools/perf/report.h"
#include "tools/perf/roof.h"

#include <stdbool.h>
#include <string.h>

#define NOISY 10.0

/* The alternatives of one type and operator: a call each. */
typedef struct {
    perf_run_t *run;
    size_t count;
    perf_call_t *calls;
    GPtrArray *comparisons; /* of the whole run */
} alternatives_t;

static void comparison_free(gpointer data)
{
    perf_comparison_t *comparison = data;

    for (size_t i = 0; i < comparison->count; i++)
        g_free(comparison->entries[i].algorithm);
    g_free(comparison->entries);
    g_free(comparison);
}

static perf_comparison_t *comparison_new(const alternatives_t *a)
{
    perf_comparison_t *comparison = g_new0(perf_comparison_t, 1);

    comparison->count = a->count;
    comparison->crowded = a->run->crowd != NULL;
    comparison->entries = g_new0(perf_entry_t, a->count);
    for (size_t i = 0; i < a->count; i++) {
        perf_call_t *call = &a->calls[i];
        perf_entry_t *entry = &comparison->entries[i];
        const bool rooted = perf_flags(call->operation) & PERF_ROOTED;
        dscomm_native_info_t natives[2];

        perf_call_place(call, PERF_OUT_OF_PLACE, a->run->send, a->run->recv);
        entry->algorithm =
            g_strdup(perf_algorithm(a->run->options, call, natives));
        entry->row = (perf_row_t){.operation = call->operation,
                                  .bytes = call->total * call->size,
                                  .count = call->count,
                                  .dtype = call->dtype,
                                  .op = call->op,
                                  .root = rooted ? a->run->options->root : -1,
                                  .algorithm = entry->algorithm};
        if (rooted && a->run->options->root == PERF_ROOT_ROTATES)
            entry->row.root = PERF_ROOT_ROTATES;
    }
    return comparison;
}

static dscomm_status_t verify(const alternatives_t *a, perf_place_t place,
                              perf_comparison_t *comparison)
{
    dscomm_status_t status = DSCOMM_OK;

    for (size_t i = 0; i < a->count && status == DSCOMM_OK; i++) {
        perf_figure_t *figure = &comparison->entries[i].row.figures[place];
        gint64 wrong = 0;

        status = perf_check(a->run, &a->calls[i], place, &wrong);
        figure->wrong += wrong;
        a->run->wrong += wrong;
    }
    return status;
}

/* The cost of a call that was measured. What the backend tells does not count
 * if its own measurements have changed the algorithm meanwhile. */
static perf_traffic_t cost_of(const perf_run_t *run, const perf_call_t *call,
                              const perf_entry_t *entry, perf_place_t place)
{
    dscomm_native_info_t natives[2];
    const char *now = perf_algorithm(run->options, call, natives);
    const bool same = strcmp(now, entry->algorithm) == 0;

    return perf_traffic(entry->row.operation, entry->algorithm, run->ranks,
                        entry->row.bytes, place, same ? natives : NULL);
}

static void rate(const alternatives_t *a, perf_place_t place,
                 const perf_times_t *times, perf_comparison_t *comparison)
{
    perf_run_t *run = a->run;

    for (size_t i = 0; i < a->count; i++) {
        perf_entry_t *entry = &comparison->entries[i];
        perf_figure_t *figure = &entry->row.figures[place];

        figure->valid = true;
        figure->times = times[i];
        figure->algbw = perf_algbw(entry->row.bytes, times[i].p50);
        figure->busbw =
            perf_busbw(entry->row.operation, run->ranks, figure->algbw);
        entry->costs[place] = cost_of(run, &a->calls[i], entry, place);
        run->figures++;
        run->noisy += times[i].spread > NOISY;
        run->busbw_sum += figure->busbw;
    }
}

static dscomm_status_t measure_place(const alternatives_t *a,
                                     perf_place_t place,
                                     perf_comparison_t *comparison)
{
    const bool checks = a->run->options->checks > 0;
    perf_times_t *times = g_new0(perf_times_t, a->count);
    dscomm_status_t status = DSCOMM_OK;

    for (size_t i = 0; i < a->count; i++) {
        perf_call_place(&a->calls[i], place, a->run->send, a->run->recv);
        comparison->entries[i].row.figures[place].wrong = checks ? 0 : -1;
    }
    if (checks)
        status = verify(a, place, comparison);
    else
        status = perf_buffers_fill(a->run, a->calls, 0);
    if (status == DSCOMM_OK)
        status = perf_time_in_turn(a->run, a->calls, a->count, place, times);
    if (status == DSCOMM_OK && checks)
        status = verify(a, place, comparison);
    if (status == DSCOMM_OK)
        rate(a, place, times, comparison);
    g_free(times);
    return status;
}

static int measure_size(const alternatives_t *a)
{
    perf_comparison_t *comparison = comparison_new(a);
    dscomm_status_t status = DSCOMM_OK;

    for (perf_place_t place = 0; place < PERF_PLACES; place++) {
        bool all = true;

        for (size_t i = 0; i < a->count; i++)
            all = all && a->calls[i].operation->flags & 1u << place;
        if (!all || status != DSCOMM_OK)
            continue;
        perf_progress(a->run, "%zu bytes, %s", comparison->entries->row.bytes,
                      place == PERF_IN_PLACE ? "in place" : "out of place");
        status = measure_place(a, place, comparison);
    }
    perf_progress(a->run, NULL);
    perf_comparison_rate(comparison);
    g_ptr_array_add(a->comparisons, comparison);
    if (status != DSCOMM_OK)
        return perf_fail("compare");
    if (a->run->report)
        perf_compare_row(a->run, comparison);
    return TOOL_OK;
}

/* Measures every size, except sizes that are rounded to the one before. */
static int measure_sizes(const alternatives_t *a)
{
    const perf_options_t *o = a->run->options;
    size_t last = SIZE_MAX;
    int status = TOOL_OK;

    for (size_t bytes = o->min, next; bytes != SIZE_MAX && status == TOOL_OK;
         bytes = next) {
        next = perf_next_size(o, bytes);
        next = next ? next : SIZE_MAX;
        for (size_t i = 0; i < a->count; i++)
            perf_call_size(&a->calls[i], bytes);
        if (a->calls->total == last)
            continue;
        last = a->calls->total;
        status = measure_size(a);
    }
    return status;
}

static void calls_new(alternatives_t *a, dscomm_dtype_t dtype, dscomm_op_t op)
{
    perf_run_t *run = a->run;

    a->calls = g_new0(perf_call_t, a->count);
    for (size_t i = 0; i < a->count; i++)
        a->calls[i] = (perf_call_t){.operation = run->options->operations[i],
                                    .group = run->group,
                                    .rank = run->rank,
                                    .ranks = run->ranks,
                                    .keys = run->keys,
                                    .dtype = dtype,
                                    .size = dscomm_dtype_size(dtype),
                                    .op = op,
                                    .factor = 1 + run->rank % 2,
                                    .root = MAX(run->options->root, 0),
                                    .aggregate = 1,
                                    .counts = g_new0(size_t, run->ranks),
                                    .displs = g_new0(size_t, run->ranks)};
}

static void calls_free(alternatives_t *a)
{
    for (size_t i = 0; i < a->count; i++) {
        g_free(a->calls[i].counts);
        g_free(a->calls[i].displs);
    }
    g_free(a->calls);
}

static bool all_selected(const alternatives_t *a, dscomm_dtype_t dtype,
                         dscomm_op_t op)
{
    const perf_options_t *o = a->run->options;

    for (size_t i = 0; i < a->count; i++)
        if (!perf_is_selected(o, o->operations[i], dtype, op))
            return false;
    return true;
}

static int measure_all(alternatives_t *a)
{
    int status = TOOL_OK;

    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DSCOMM_OP_COUNT; op++) {
            if (status != TOOL_OK ||
                !all_selected(a, (dscomm_dtype_t)dtype, (dscomm_op_t)op))
                continue;
            calls_new(a, (dscomm_dtype_t)dtype, (dscomm_op_t)op);
            status = measure_sizes(a);
            calls_free(a);
        }
    return status;
}

int perf_compare(perf_run_t *run)
{
    alternatives_t a = {.run = run};
    int status;

    a.comparisons = g_ptr_array_new_with_free_func(comparison_free);
    while (run->options->operations[a.count])
        a.count++;
    if (run->report)
        perf_compare_begin(run);
    status = measure_all(&a);
    double line = status == TOOL_OK ? perf_roof_line(run) : 0;
    if (status == TOOL_OK && run->report) {
        GPtrArray *findings = perf_findings(a.comparisons);

        perf_compare_end(run, findings, line);
        g_ptr_array_unref(findings);
    }
    g_ptr_array_unref(a.comparisons);
    if (status == TOOL_OK && run->wrong)
        status = TOOL_FAILED;
    return status;
}
