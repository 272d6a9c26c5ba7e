/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording calls between dscomm_coalesce_begin() and _end(), and fusion: small
 * recorded calls of one kind become one call, on their own buffers if these are
 * adjacent, else on a packed buffer. */
#ifndef LIB_RECORDING_H
#define LIB_RECORDING_H

#include "lib/call/check.h"
#include "lib/work/work.h"

/* Longer calls are limited by bandwidth, not by the cost of a call. */
#define FUSION_PART_MOST ((size_t)32 << 10)
#define FUSION_WHOLE_MOST ((size_t)1 << 20)

/* The base of the polynomial by which the fingerprints of fused calls are
 * combined. The combined fingerprint depends on each call's, not only on the
 * sum of counts, and not on the order in which calls were joined. */
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

/* 1 if call can be fused with last, the collective recorded before it; bytes:
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

/* Adds an all_reduce to the one recorded before, if their buffers are adjacent;
 * 0 if it cannot be added. */
static inline int dscomm_priv_recording_extend(dscomm_group_t *group,
                                               const void *send,
                                               const void *recv, size_t count,
                                               dscomm_dtype_t dtype,
                                               dscomm_op_t op)
{
    dscomm_extension_t *extension = &group->recording.extension;
    size_t before = extension->bytes, all = before + count * extension->element;

    if (!extension->call ||
        dscomm_priv_group_bits(group, GROUP_REVOKED | GROUP_FREED) ||
        send != extension->send + before || recv != extension->recv + before ||
        dtype != extension->dtype || op != extension->op ||
        count - 1 >= extension->most_count || all > extension->most)
        return 0;
    extension->bytes = all;
    extension->parts++;
    extension->fingerprint =
        extension->fingerprint * FUSION_BASE +
        dscomm_priv_fingerprint(DSCOMM_COLL_ALL_REDUCE, (int)dtype, (int)op, -1,
                                count);
    return 1;
}

/* These add a call to the recording. */
dscomm_status_t
dscomm_priv_recording_collective(dscomm_group_t *group,
                                 const dscomm_coll_args_t *args);
dscomm_status_t dscomm_priv_recording_message(dscomm_group_t *group,
                                              const dscomm_call_t *message);
/* Fails with ERR_STATE: the call named name cannot be recorded. */
dscomm_status_t dscomm_priv_recording_refuse(const dscomm_group_t *group,
                                             const char *name);
/* Adds the fingerprints and bytes of the joined calls to the extended call. */
void dscomm_priv_recording_settle(dscomm_group_t *group);
/* Clears displacements of args that lie in the group's scratch space: they
 * would not outlive the next call, and are computed again when the call is
 * started. */
void dscomm_priv_recording_forget_scratch(const dscomm_group_t *group,
                                          dscomm_coll_args_t *args);
/* Ends the recording and frees its calls. */
void dscomm_priv_recording_drop(dscomm_group_t *group);
/* Clears the calls, which have been started, and keeps some room. */
void dscomm_priv_recording_clear(dscomm_group_t *group);

static inline dscomm_call_t *
dscomm_priv_recording_calls(const dscomm_group_t *group)
{
    return group->recording.calls.data;
}

/* Drops the recording when a group ends. */
extern const dscomm_group_part_t dscomm_priv_recording_part;

#endif
