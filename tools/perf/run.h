/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of `dscomm perf`. */
#ifndef TOOLS_PERF_RUN_H
#define TOOLS_PERF_RUN_H

#include "tools/perf/perf.h"

/* TOOL_OK if the files of the options can be read and written: complaints that
 * every rank would have are made once, before there are any. */
int perf_check_files(const perf_options_t *options);

/* Measures all that options say, on world's ranks; topology may be NULL.
 * Returns the exit status. */
int perf_run(const perf_options_t *options,
             const struct tool_topology *topology, dscomm_group_t *world);

#endif
