/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring loop, and the steps that it repeats: a call, blocking or not,
 * alone or coalesced with others, with or without a computation beside it. */
#ifndef TOOLS_PERF_MEASURE_H
#define TOOLS_PERF_MEASURE_H

#include "tools/perf/operations.h"

/* Returns the step for these options. The last argument of a step is NULL. */
perf_call_fn perf_step(const perf_options_t *options, const perf_call_t *call);

/* Returns the name of the algorithm that serves call, which has its place;
 * "native" for the backend's own, "native:flat" if the backend tells that; "-"
 * if there is none; "one+other" for a sequence; "one/all" for coalesced calls,
 * if all of them as one call would have another. Valid until the next call of
 * this function. natives has what the backend tells of the call, or of the two
 * of a sequence; where it tells nothing, algorithm is NULL. */
const char *perf_algorithm(const perf_options_t *options,
                           const perf_call_t *call,
                           dscomm_native_info_t natives[2]);

/* Measures call, whose size is set, collectively, and fills *ret_row. */
int perf_measure(perf_run_t *run, perf_call_t *call, perf_row_t *ret_row);

/* `dscomm perf --compress`: measures and reports a compressed all_reduce beside
 * the plain one, of all sizes (compress.c). */
int perf_compress(perf_run_t *run);

/* Measures the times of step with call, and counts page faults; they are the
 * same on all ranks. */
dscomm_status_t perf_time(perf_run_t *run, perf_call_t *call, perf_call_fn step,
                          perf_times_t *ret_times);

/* Measures the times of count calls, one batch of each in turn, so that what
 * changes on the machine meanwhile concerns all of them alike. All have the
 * same number of batches. */
dscomm_status_t perf_time_in_turn(perf_run_t *run, perf_call_t *calls,
                                  size_t count, perf_place_t place,
                                  perf_times_t *ret_times);
/* Verifies call, whose buffers are set, as often as the options say; returns
 * the wrong elements of all ranks. Collective. */
dscomm_status_t perf_check(perf_run_t *run, perf_call_t *call,
                           perf_place_t place, gint64 *ret_wrong);

/* Sorts count > 0 times and computes their statistics; does not set the members
 * batches, calls and faults. */
void perf_times_fill(double *times, size_t count, perf_times_t *ret_times);

#endif
