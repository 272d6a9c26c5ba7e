/* SPDX-License-Identifier: BSD-3-Clause */
/* How the operations of `dscomm perf` are called. */
#ifndef TOOLS_PERF_CALLS_H
#define TOOLS_PERF_CALLS_H

#include "tools/perf/perf.h"

/* Messages in flight in bandwidth, as in OSU's. */
#define PERF_WINDOW 64

#define PERF_CALLS_MAP(X)                                                      \
    X(all_reduce)                                                              \
    X(all_reduce_premul)                                                       \
    X(reduce)                                                                  \
    X(reduce_premul)                                                           \
    X(reduce_scatter)                                                          \
    X(reduce_scatter_premul)                                                   \
    X(reduce_scatter_v)                                                        \
    X(broadcast)                                                               \
    X(broadcast_blob)                                                          \
    X(all_gather)                                                              \
    X(all_gather_v)                                                            \
    X(all_gather_blob)                                                         \
    X(gather)                                                                  \
    X(gather_v)                                                                \
    X(scatter)                                                                 \
    X(scatter_v)                                                               \
    X(all_to_all)                                                              \
    X(all_to_all_v)                                                            \
    X(barrier)                                                                 \
    X(monitored_barrier)                                                       \
    X(sendrecv)                                                                \
    X(latency)                                                                 \
    X(bandwidth)

/* perf_run_all_reduce() and so on; ret_work is NULL where the operation has no
 * form with a work. */
#define PERF_CALL(name)                                                        \
    dscomm_status_t perf_run_##name(const perf_call_t *call,                   \
                                    dscomm_work_t **ret_work);
PERF_CALLS_MAP(PERF_CALL)
#undef PERF_CALL

#endif
