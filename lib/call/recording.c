/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are recorded between dscomm_coalesce_begin() and _end(). */
#include "config.h"
#include "lib/call/recording.h"
#include "lib/base/op.h"

#include <string.h>

/* Room for calls that a group keeps between recordings. */
#define KEPT_CALLS 1024

void dscomm_priv_recording_forget_scratch(const dscomm_group_t *group,
                                          dscomm_coll_args_t *args)
{
    const size_t *scratch = group->scratch;

    if (args->send_displs == scratch)
        args->send_displs = NULL;
    if (args->recv_displs == scratch + group->size)
        args->recv_displs = NULL;
}

void dscomm_priv_recording_settle(dscomm_group_t *group)
{
    const dscomm_extension_t *extension = &group->recording.extension;
    dscomm_call_t *call = extension->call;

    if (!call)
        return;
    call->coll.count += extension->bytes / extension->element;
    call->coll.fingerprint = extension->fingerprint;
    call->parts += extension->parts;
    group->recording.bytes += extension->bytes;
    group->recording.extension.call = NULL;
}

/* Adds a call to the recording, to be filled in; NULL: no memory. */
static dscomm_call_t *recording_add(dscomm_group_t *group)
{
    dscomm_call_t *call;

    dscomm_priv_recording_settle(group);
    call = dscomm_priv_array_add(&group->recording.calls, sizeof *call);
    if (!call)
        dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                    "a call on group '%s' cannot be recorded: no memory beside "
                    "the %u that are already",
                    group->identity.name, group->recording.calls.len);
    return call;
}

/* Sets the extension of call. Extended calls need buffers that are equal or do
 * not overlap. Calls on device buffers cannot be recorded, so they are not
 * added. */
static void recording_extend_from(dscomm_group_t *group, dscomm_call_t *call)
{
    const dscomm_coll_args_t *args = &call->coll;
    const size_t bytes = dscomm_priv_fusion_bytes(args);
    const uintptr_t send = (uintptr_t)args->send, recv = (uintptr_t)args->recv;
    size_t distance = send < recv ? recv - send : send - recv;

    if (args->coll != DSCOMM_COLL_ALL_REDUCE || !bytes ||
        group->memory.devices || !dscomm_priv_fusion_can(call))
        return;
    if (!distance)
        distance = FUSION_WHOLE_MOST;
    group->recording.extension = (dscomm_extension_t){
        .call = call,
        .send = (const char *)args->send + bytes,
        .recv = (const char *)args->recv + bytes,
        .element = args->element,
        .most_count = FUSION_PART_MOST / args->element,
        .most =
            MIN(FUSION_WHOLE_MOST - group->recording.bytes, distance - bytes),
        .dtype = (dscomm_dtype_t)args->dtype,
        .op = (dscomm_op_t)args->op,
        .fingerprint = args->fingerprint,
    };
}

/* Counts the bytes of calls that args may join. */
static void recording_count_bytes(dscomm_group_t *group,
                                  const dscomm_coll_args_t *args)
{
    const guint last = group->recording.last;
    const dscomm_call_t *call =
        last ? dscomm_priv_recording_calls(group) + (last - 1) : NULL;

    if (!call || !dscomm_priv_fusion_joins(call, group->recording.bytes, args))
        group->recording.bytes = 0;
    group->recording.bytes += dscomm_priv_fusion_bytes(args);
}

dscomm_status_t dscomm_priv_recording_collective(dscomm_group_t *group,
                                                 const dscomm_coll_args_t *args)
{
    dscomm_call_t *call;

    dscomm_priv_recording_settle(group);
    recording_count_bytes(group, args);
    call = recording_add(group);
    if (!call)
        return DSCOMM_ERR_NO_MEMORY;
    memset(call, 0, offsetof(dscomm_call_t, coll));
    call->type = CALL_COLLECTIVE;
    call->async = 1;
    call->coll = *args;
    dscomm_priv_op_hold(args->user);
    dscomm_priv_recording_forget_scratch(group, &call->coll);
    call->parts = 1;
    group->recording.last = group->recording.calls.len;
    recording_extend_from(group, call);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_recording_message(dscomm_group_t *group,
                                              const dscomm_call_t *message)
{
    dscomm_call_t *call = recording_add(group);

    if (!call)
        return DSCOMM_ERR_NO_MEMORY;
    *call = *message;
    call->async = 1;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_recording_refuse(const dscomm_group_t *group,
                                             const char *name)
{
    return dscomm_fail(DSCOMM_ERR_STATE,
                       "%s on group '%s': between coalesce_begin and _end only "
                       "collectives and messages without a work can be "
                       "recorded",
                       name, group->identity.name);
}

static void recording_drop_operators(const dscomm_group_t *group)
{
    for (uint32_t i = 0; i < group->recording.calls.len; i++) {
        const dscomm_call_t *call = dscomm_priv_recording_calls(group) + i;

        if (call->type == CALL_COLLECTIVE)
            dscomm_priv_op_drop(call->coll.user);
    }
}

void dscomm_priv_recording_drop(dscomm_group_t *group)
{
    recording_drop_operators(group);
    dscomm_priv_array_clear(&group->recording.calls);
    group->recording.extension.call = NULL;
    dscomm_priv_group_clear(group, GROUP_COALESCING);
}

const dscomm_group_part_t dscomm_priv_recording_part = {
    .on[PART_END] = dscomm_priv_recording_drop,
    .on[PART_FREE] = dscomm_priv_recording_drop,
};

void dscomm_priv_recording_clear(dscomm_group_t *group)
{
    if (group->recording.calls.len > KEPT_CALLS) {
        dscomm_priv_recording_drop(group);
        return;
    }
    recording_drop_operators(group);
    group->recording.calls.len = 0;
    group->recording.calls.bad = 0;
}
