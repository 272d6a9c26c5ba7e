/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that consist of messages between two ranks, or between pairs of
 * them. */
#ifndef TOOLS_PERF_MESSAGES_H
#define TOOLS_PERF_MESSAGES_H

#include "tools/perf/perf.h"

#define PERF_TAG 7
/* Messages in flight: as in OSU's bandwidth tests; and for message rates. */
#define PERF_WINDOW 64
#define PERF_WINDOW_LONG 256

/* Waits for all works and frees them; NULL entries were never started. Returns
 * status if that is a failure. */
dscomm_status_t perf_works_finish(dscomm_work_t **works, size_t count,
                                  dscomm_status_t status);

/* Returns this rank's partner: rank i of the lower half and rank i + n / 2 are
 * partners; -1 for the last one of an odd number of ranks. */
int perf_partner(const perf_call_t *call);

/* work is not used. */
dscomm_status_t perf_latency(const perf_call_t *c, dscomm_work_t **work);
dscomm_status_t perf_bandwidth(const perf_call_t *c, dscomm_work_t **work);
dscomm_status_t perf_multi_pair(const perf_call_t *c, dscomm_work_t **work);
dscomm_status_t perf_bidirectional(const perf_call_t *c, dscomm_work_t **work);
dscomm_status_t perf_many_messages(const perf_call_t *c, dscomm_work_t **work);

#endif
