/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that a cache line takes from one processor to another. */
#ifndef TOOLS_PERF_LINE_H
#define TOOLS_PERF_LINE_H

/* The measurement takes less. */
#define PERF_LINE_US 20000

/* Nanoseconds one way between this thread's processor and that one; 0 if it
 * cannot be measured. */
double perf_line_measure(int processor);

#endif
