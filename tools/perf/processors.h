/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors for ranks. A topology of NULL is unknown: no processor is counted,
 * and nothing is bound. */
#ifndef TOOLS_PERF_PROCESSORS_H
#define TOOLS_PERF_PROCESSORS_H

#include "tools/common/topology.h"

/* Binds this thread, of the local-th of locals ranks on its host, to a
 * processor of its own, cores before their second threads, if there are enough.
 * One that is bound to a single processor already stays there. Returns the
 * processor, or -1: not bound to a single one. */
int perf_processor_bind(const tool_topology_t *topology, int local, int locals);

/* The only processor that this process was started on, or -1. */
int perf_processor_bound(const tool_topology_t *topology);

/* How many it was started on. */
int perf_processor_count(const tool_topology_t *topology);

#endif
