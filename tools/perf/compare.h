/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm perf --compare`: operations with the same result, measured in turn;
 * what they cost by the model, and which one wins where and why. */
#ifndef TOOLS_PERF_COMPARE_H
#define TOOLS_PERF_COMPARE_H

#include "tools/common/json.h"
#include "tools/perf/operations.h"
#include "tools/perf/traffic.h"

#include <stdbool.h>

/* One alternative of a comparison; arrays are by place. */
typedef struct {
    perf_row_t row;
    char *algorithm; /* also row.algorithm */
    perf_traffic_t costs[PERF_PLACES];
    double ratios[PERF_PLACES]; /* to the fastest one's time; 1: it is that */
} perf_entry_t;

/* All alternatives, with the same size, type and operator. */
typedef struct {
    size_t count;
    bool crowded; /* ranks share processors */
    perf_entry_t *entries;
} perf_comparison_t;

/* A range of sizes in which one alternative is the fastest, in comparison with
 * another one; or, without a loser, its times in place and out of place. */
typedef struct {
    size_t from, to; /* bytes */
    perf_place_t place;
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    const perf_operation_t *winner, *loser;
    double least, most; /* time of the loser over that of the winner */
    char *sentence;
} perf_finding_t;

int perf_compare(perf_run_t *run);

/* Sets the ratios of a comparison, once all figures are there. */
void perf_comparison_rate(perf_comparison_t *comparison);

/* Returns the findings (perf_finding_t) from comparisons (perf_comparison_t) in
 * the order in which they were measured; the sizes of each type and operator
 * increase. Nothing is measured here. g_ptr_array_unref(). */
GPtrArray *perf_findings(const GPtrArray *comparisons);

void perf_compare_begin(const perf_run_t *run);
void perf_compare_row(const perf_run_t *run,
                      const perf_comparison_t *comparison);
void perf_compare_end(const perf_run_t *run, const GPtrArray *findings,
                      double line_now);

#endif
