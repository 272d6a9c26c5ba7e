/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording calls between dscomm_coalesce_begin() and _end(). */
#ifndef LIB_RECORDING_H
#define LIB_RECORDING_H

#include "lib/call/fusion.h"

/* Makes an all_reduce a part of the one recorded before it, whose buffers it
 * follows; 0 where it does not, or anything else is the matter. */
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
/* ERR_STATE: the call named name cannot be recorded. */
dscomm_status_t dscomm_priv_recording_refuse(const dscomm_group_t *group,
                                             const char *name);
/* Adds the calls that have become a part of the last one to it. */
void dscomm_priv_recording_settle(dscomm_group_t *group);
/* Clears displacements of args that lie in the group's scratch space: they
 * would not outlive the next call, and are computed again when the call is
 * started. */
void dscomm_priv_recording_forget_scratch(const dscomm_group_t *group,
                                          dscomm_coll_args_t *args);
/* Ends the recording and frees its calls. */
void dscomm_priv_recording_drop(dscomm_group_t *group);
/* Forgets the calls, which have been started; keeps some room for others. */
void dscomm_priv_recording_clear(dscomm_group_t *group);

static inline dscomm_call_t *
dscomm_priv_recording_calls(const dscomm_group_t *group)
{
    return group->recording.calls.data;
}

/* Drops what is recorded when a group ends. */
extern const dscomm_group_part_t dscomm_priv_recording_part;

#endif
