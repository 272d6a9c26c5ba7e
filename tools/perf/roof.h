/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of the machine: the time in which all ranks at once copy a number
 * of bytes, and the time in which a cache line goes from rank 0 to rank 1. */
#ifndef TOOLS_PERF_ROOF_H
#define TOOLS_PERF_ROOF_H

#include "tools/perf/perf.h"

/* Measures run->line, and makes run->copies. Collective. */
void perf_roof_begin(perf_run_t *run);

/* The least time, in microseconds, of a call that makes each rank copy that
 * many bytes. Collective: measures a size that was not measured before.
 * Negative: a call failed. */
double perf_roof_time(perf_run_t *run, size_t bytes);

/* Percent of the roof that a figure reaches; 0: not known. */
double perf_roof_percent(const perf_figure_t *figure);

/* Nanoseconds from rank 0 to rank 1, measured now; 0 if they are not bound to
 * different processors of one host. Collective. */
double perf_roof_line(const perf_run_t *run);
/* Ranks 0 and 1 are bound to different processors of one host. */
gboolean perf_roof_has_line(const perf_run_t *run);

/* The largest copy measured: its bytes a rank, and all ranks' GB/s. */
void perf_roof_copy(const perf_run_t *run, size_t *ret_bytes, double *ret_rate);

#endif
