/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of earlier runs, which --save has written, for --against. The format is
 * that of --json, of one run or of a sweep over numbers of ranks. */
#ifndef TOOLS_PERF_BASELINE_H
#define TOOLS_PERF_BASELINE_H

#include "tools/perf/perf.h"

#include <stdbool.h>

#define PERF_FORMAT "dscomm-perf"
#define PERF_FORMAT_VERSION 1

/* Reads a file, of a sweep the run with this number of ranks. Returns TOOL_OK
 * and *ret_baseline; or TOOL_FAILED if the file cannot be read, is not a
 * baseline, or is a sweep that has no such run. */
int perf_baseline_load(const char *path, int ranks,
                       perf_baseline_t **ret_baseline);
void perf_baseline_free(perf_baseline_t *baseline);

/* Returns the median time of the same measurement in the baseline, in
 * microseconds; 0: it has none. */
double perf_baseline_time(const perf_baseline_t *baseline,
                          const perf_row_t *row, perf_place_t place);
/* Returns whether the run of the baseline had an option, such as "async". */
bool perf_baseline_option(const perf_baseline_t *baseline, const char *name);
/* Number of calls that the run of the baseline coalesced into one. */
int perf_baseline_aggregate(const perf_baseline_t *baseline);
int perf_baseline_ranks(const perf_baseline_t *baseline);
const char *perf_baseline_backend(const perf_baseline_t *baseline);

#endif
