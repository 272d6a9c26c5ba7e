/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm perf --compress`: a compressed all_reduce beside the plain one. */
#ifndef TOOLS_PERF_COMPRESS_H
#define TOOLS_PERF_COMPRESS_H

#include "tools/perf/perf.h"

/* Measures and reports all sizes. */
int perf_compress(perf_run_t *run);

#endif
