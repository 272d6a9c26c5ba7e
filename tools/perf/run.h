/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of `dscomm perf`. */
#ifndef TOOLS_PERF_RUN_H
#define TOOLS_PERF_RUN_H

#include "tools/perf/perf.h"

/* Measures all that options say, on world's ranks; topology may be NULL.
 * Returns the exit status. */
int perf_run(const perf_options_t *options,
             const struct tool_topology *topology, dscomm_group_t *world);

#endif
