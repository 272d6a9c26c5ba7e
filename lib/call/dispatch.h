/* SPDX-License-Identifier: BSD-3-Clause */
/* From a checked collective to the backend. */
#ifndef LIB_DISPATCH_H
#define LIB_DISPATCH_H

#include "lib/call/check.h"
#include "lib/device/device.h"
#include "lib/schedule/choice.h"

/* Everything but the simple case: hooks, works, coalescing, a revoked group, a
 * backend that takes only some collectives. */
dscomm_status_t dscomm_priv_dispatch_slow(dscomm_group_t *group,
                                          dscomm_coll_args_t *args,
                                          dscomm_work_t **ret_work);

/* A blocking collective, numbered and with its algorithm, to its end. */
dscomm_status_t dscomm_priv_dispatch_block(dscomm_group_t *group,
                                           struct dscomm_call *call);

/* What runs the collective: NULL for the backend itself; async: it must be able
 * to start it. The answer is the same on all ranks. No lock is held. peek does
 * not tell the log. */
const dscomm_algorithm_t *
dscomm_priv_dispatch_peek(dscomm_group_t *group, const dscomm_coll_args_t *args,
                          int async);
const dscomm_algorithm_t *
dscomm_priv_dispatch_choose(dscomm_group_t *group,
                            const dscomm_coll_args_t *args, int async);

/* A call in the backend's words. common: the count, where every rank has to
 * give the same one, else 0. */
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

/* A blocking collective on a group where nothing else is going on runs at
 * once. */
static inline dscomm_status_t dscomm_priv_dispatch(dscomm_group_t *group,
                                                   dscomm_coll_args_t *args,
                                                   dscomm_work_t **ret_work)
{
    if (G_UNLIKELY(ret_work || dscomm_priv_group_busy(group) ||
                   dscomm_priv_device_present()))
        return dscomm_priv_dispatch_slow(group, args, ret_work);
    args->sequence = ++group->sequence;
    return group->run(group->impl, args);
}

#endif
