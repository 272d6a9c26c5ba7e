/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatching a checked collective to the backend or to an algorithm. */
#ifndef LIB_DISPATCH_H
#define LIB_DISPATCH_H

#include "lib/call/check.h"
#include "lib/device/device.h"
#include "lib/schedule/choice.h"

/* All cases but the simple one: hooks, works, coalescing, a revoked group, a
 * backend that takes only some collectives. */
dscomm_status_t dscomm_priv_dispatch_slow(dscomm_group_t *group,
                                          dscomm_coll_args_t *args,
                                          dscomm_work_t **ret_work);

/* Runs a blocking collective that has its sequence and algorithm. */
dscomm_status_t dscomm_priv_dispatch_block(dscomm_group_t *group,
                                           struct dscomm_call *call);

/* Returns the algorithm that runs the collective; NULL: the backend. async: it
 * must be able to start the collective. The result is the same on all ranks. No
 * lock is held. peek does not log the choice. */
const dscomm_algorithm_t *
dscomm_priv_dispatch_peek(dscomm_group_t *group, const dscomm_coll_args_t *args,
                          int async);
const dscomm_algorithm_t *
dscomm_priv_dispatch_choose(dscomm_group_t *group,
                            const dscomm_coll_args_t *args, int async);

/* Whether a blocking call may be tried without a work. What is tried needs one
 * if it fails: there must be a free one then. */
static inline bool dscomm_priv_may_be_now(const dscomm_group_t *group)
{
    return group->works.idle &&
           !dscomm_priv_group_bits(group, ~(unsigned)GROUP_SLOW) &&
           !dscomm_priv_device_present();
}

/* The arguments of a collective. common: the count, if all ranks must give the
 * same one; else 0. */
static inline dscomm_coll_args_t
dscomm_priv_args(int coll, const void *send, void *recv, size_t count,
                 size_t common, dscomm_dtype_t dtype, int op, int root)
{
    return (dscomm_coll_args_t){
        .coll = coll,
        .dtype = (int)dtype,
        .op = op,
        .root = root,
        .count = count,
        .element = dscomm_priv_element_of(dtype),
        .send = send,
        .recv = recv,
        .factor = 1.0,
        .fingerprint =
            dscomm_priv_fingerprint(coll, (int)dtype, op, root, common),
    };
}

/* Runs a blocking collective at once if the group is idle. */
static inline dscomm_status_t dscomm_priv_dispatch(dscomm_group_t *group,
                                                   dscomm_coll_args_t *args,
                                                   dscomm_work_t **ret_work)
{
    if (G_UNLIKELY(ret_work || dscomm_priv_group_busy(group) ||
                   dscomm_priv_device_present()))
        return dscomm_priv_dispatch_slow(group, args, ret_work);
    args->sequence = ++group->sequence;
    return dscomm_priv_group_run(group, args);
}

#endif
