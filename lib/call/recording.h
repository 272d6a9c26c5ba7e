/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording calls between dscomm_coalesce_begin() and _end(). */
#ifndef LIB_RECORDING_H
#define LIB_RECORDING_H

#include "lib/call/fusion.h"

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

    if (!extension->call || dscomm_priv_group_ended(group) ||
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

/* Add a call to the recording. */
dscomm_status_t
dscomm_priv_recording_collective(dscomm_group_t *group,
                                 const dscomm_coll_args_t *args);
dscomm_status_t dscomm_priv_recording_message(dscomm_group_t *group,
                                              const dscomm_call_t *message);
/* Fails with ERR_STATE: the call named name cannot be recorded. */
dscomm_status_t dscomm_priv_recording_refuse(const dscomm_group_t *group,
                                             const char *name);
/* Adds to the last call the calls that were joined with it. */
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
