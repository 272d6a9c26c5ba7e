/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks, their processors, and their memory. */
#ifndef TOOLS_PERF_RANKS_H
#define TOOLS_PERF_RANKS_H

#include "tools/perf/perf.h"

#include <stdbool.h>

/* Fills run->everyone and run->crowd, and binds this rank to a processor if
 * there is one for each rank of its host. Collective over group. */
dscomm_status_t perf_ranks_place(perf_run_t *run, dscomm_group_t *group);

/* Allocates run->send and run->recv and touches them. */
int perf_buffers_new(perf_run_t *run);
void perf_buffers_free(perf_run_t *run);

/* Fills the buffers of call, which are parts of run's, as perf_fill() does; and
 * counts wrong elements as perf_count_wrong(). Buffers of a device are copied
 * from and to host memory. */
dscomm_status_t perf_buffers_fill(const perf_run_t *run,
                                  const perf_call_t *call, guint32 seed);
dscomm_status_t perf_buffers_wrong(const perf_run_t *run,
                                   const perf_call_t *call, guint32 seed,
                                   gint64 *ret_wrong);

/* Returns whether ok is true on all ranks; if not, *ret_first is the first rank
 * on which it is false. Collective. */
dscomm_status_t perf_agree(const perf_run_t *run, bool ok, int *ret_first);

#endif
