/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that are two collectives, one after the other, with the result of
 * a third one. */
#ifndef TOOLS_PERF_SEQUENCES_H
#define TOOLS_PERF_SEQUENCES_H

#include "tools/perf/perf.h"

/* Like all_reduce. */
dscomm_status_t perf_reduce_broadcast(const perf_call_t *c,
                                      dscomm_work_t **work);
dscomm_status_t perf_reduce_scatter_all_gather(const perf_call_t *c,
                                               dscomm_work_t **work);
/* Like all_gather. */
dscomm_status_t perf_gather_broadcast(const perf_call_t *c,
                                      dscomm_work_t **work);
/* Like broadcast. */
dscomm_status_t perf_scatter_all_gather(const perf_call_t *c,
                                        dscomm_work_t **work);

/* Returns the two collectives of a sequence; NULL if the operation is none. */
const dscomm_coll_t *perf_parts(const perf_operation_t *operation);

/* A collective call, as far as its algorithm depends on it. */
typedef struct {
    dscomm_coll_t coll;
    const void *send;
    void *recv; /* of a broadcast, as send: its buffer */
    size_t count; /* for _v, this is about every rank's */
} perf_part_t;

/* Returns call number 0 or 1 of a sequence; of another operation, number 0 is
 * its collective. The call must have its size and place. */
perf_part_t perf_part(const perf_call_t *call, int number);

/* Returns the _v form of a collective, which a sequence calls if parts are not
 * equal; the collective itself if it has none. */
dscomm_coll_t perf_coll_v(dscomm_coll_t coll);

#endif
