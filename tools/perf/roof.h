/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of the machine: the time in which all ranks, at the same time,
 * copy a number of bytes; and the time in which a cache line is transferred
 * from rank 0 to rank 1. */
#ifndef TOOLS_PERF_ROOF_H
#define TOOLS_PERF_ROOF_H

#include "tools/perf/perf.h"

#include <stdbool.h>

/* Measures run->line, and makes run->copies. Collective. */
void perf_roof_begin(perf_run_t *run);

/* Returns the least time, in microseconds, of a call in which each rank must
 * copy that many bytes. Collective: measures a size that was not measured
 * before. Negative: a call failed. */
double perf_roof_time(perf_run_t *run, size_t bytes);

/* Returns the percentage of the roof that a figure reaches; 0: not known. */
double perf_roof_percent(const perf_figure_t *figure);

/* Measures how long a cache line takes from rank 0 to rank 1, in nanoseconds; 0
 * if these are not bound to different processors of one host. Collective. */
double perf_roof_line(const perf_run_t *run);
/* Returns whether ranks 0 and 1 are bound to different processors of one
 * host. */
bool perf_roof_has_line(const perf_run_t *run);

/* Returns the largest copy that was measured: bytes of a rank, and GB/s of all
 * ranks. */
void perf_roof_copy(const perf_run_t *run, size_t *ret_bytes, double *ret_rate);

#endif
