/* SPDX-License-Identifier: BSD-3-Clause */
/* Fusion: small coalesced calls of one kind become one call, on their own
 * buffers if these are adjacent, else on a packed buffer. */
#ifndef LIB_FUSION_H
#define LIB_FUSION_H

#include "lib/call/check.h"
#include "lib/work/work.h"

/* Longer calls are limited by bandwidth, not by the cost of a call. */
#define FUSION_PART_MOST ((size_t)32 << 10)
#define FUSION_WHOLE_MOST ((size_t)1 << 20)

/* The fingerprint of fused calls is a polynomial of theirs. So it depends on
 * each count, not only on the sum, and does not depend on how many of the calls
 * were joined before. */
#define FUSION_BASE UINT32_C(0x9e3779b1)

static inline size_t dscomm_priv_fusion_bytes(const dscomm_coll_args_t *args)
{
    return args->count * args->element;
}

/* True if the call can be fused: each element's result depends on that element
 * only. Not for PREMUL_SUM, because factors differ between ranks, so ranks
 * could fuse different calls; nor for a user's operators. */
static inline int dscomm_priv_fusion_can(const dscomm_call_t *call)
{
    const dscomm_coll_args_t *args = &call->coll;

    return call->type == CALL_COLLECTIVE &&
           (args->coll == DSCOMM_COLL_ALL_REDUCE ||
            args->coll == DSCOMM_COLL_BROADCAST) &&
           args->op < DSCOMM_PREMUL_SUM &&
           (call->parts > 1 ||
            dscomm_priv_fusion_bytes(args) <= FUSION_PART_MOST);
}

static inline int dscomm_priv_fusion_alike(const dscomm_coll_args_t *a,
                                           const dscomm_coll_args_t *b)
{
    return a->coll == b->coll && a->dtype == b->dtype && a->op == b->op &&
           a->root == b->root;
}

/* 1 if a call can be fused with last, the collective recorded before it; bytes:
 * the sum of all calls fused so far. */
static inline int dscomm_priv_fusion_joins(const dscomm_call_t *last,
                                           size_t bytes,
                                           const dscomm_coll_args_t *args)
{
    size_t more = dscomm_priv_fusion_bytes(args);

    return dscomm_priv_fusion_alike(&last->coll, args) &&
           dscomm_priv_fusion_can(last) && more <= FUSION_PART_MOST &&
           bytes + more <= FUSION_WHOLE_MOST;
}

/* The number of calls from calls[0] on that can be fused; 1 if the first must
 * run alone. It is equal on all ranks that make the same calls. */
size_t dscomm_priv_fusion_extent(const dscomm_call_t *calls, size_t count);

/* Makes one call of count calls, with a buffer of their inputs,
 * ret_call->bounce, which the caller owns. False: no memory. */
bool dscomm_priv_fusion_new(const dscomm_call_t *calls, size_t count,
                            dscomm_call_t *ret_call);

#endif
