/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring loop, and the steps that it repeats: a call, blocking or not,
 * alone or coalesced with others, with or without a computation beside it. */
#ifndef TOOLS_PERF_MEASURE_H
#define TOOLS_PERF_MEASURE_H

#include "tools/perf/operations.h"

/* Returns the step for these options. The last argument of a step is NULL. */
perf_call_fn perf_step(const perf_options_t *options, const perf_call_t *call);

/* Measures call, whose size is set, collectively, and fills *ret_row. */
int perf_measure(perf_run_t *run, perf_call_t *call, perf_row_t *ret_row);

/* `dscomm perf --compress`: measures and reports a compressed all_reduce beside
 * the plain one, of all sizes (compress.c). */
int perf_compress(perf_run_t *run);

/* Measures the times of step with call; they are the same on all ranks. */
dscomm_status_t perf_time(perf_run_t *run, perf_call_t *call, perf_call_fn step,
                          perf_times_t *ret_times);

/* Sorts count > 0 times and computes their statistics; does not set the members
 * batches and calls. */
void perf_times_fill(double *times, size_t count, perf_times_t *ret_times);

#endif
