/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm perf --compress`: a compressed all_reduce beside the plain one. */
#ifndef TOOLS_PERF_COMPRESS_H
#define TOOLS_PERF_COMPRESS_H

#include "tools/perf/perf.h"

/* TOOL_OK if the other options are compatible with --compress. */
int perf_compress_check(const perf_options_t *options, char *const *names);

/* Measures and reports all sizes. */
int perf_compress(perf_run_t *run);

#endif
