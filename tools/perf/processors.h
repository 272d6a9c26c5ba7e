/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors for ranks. */
#ifndef TOOLS_PERF_PROCESSORS_H
#define TOOLS_PERF_PROCESSORS_H

/* Binds this process, the local-th of locals on its host, to a processor of its
 * own, cores before their second threads, if there are enough. One that is
 * bound to a single processor already stays there. Returns the processor, or
 * -1: not bound to a single one. */
int perf_processor_bind(int local, int locals);

/* The only processor that this process may use, or -1. */
int perf_processor_bound(void);

/* How many it may use. */
int perf_processor_count(void);

#endif
