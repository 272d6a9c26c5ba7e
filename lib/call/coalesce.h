/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording calls between dscomm_coalesce_begin() and _end(). */
#ifndef LIB_COALESCE_H
#define LIB_COALESCE_H

#include "lib/call/fusion.h"

/* Makes an all_reduce a part of the one recorded before it, whose buffers it
 * follows; 0 where it does not, or anything else is the matter. */
static inline int dscomm_priv_coalesce_extend(dscomm_group_t *group,
                                              const void *send,
                                              const void *recv, size_t count,
                                              dscomm_dtype_t dtype,
                                              dscomm_op_t op)
{
    dscomm_sequel_t *sequel = &group->recording.sequel;
    size_t before = sequel->bytes, all = before + count * sequel->element;

    if (!sequel->call || dscomm_priv_group_ended(group) ||
        send != sequel->send + before || recv != sequel->recv + before ||
        dtype != sequel->dtype || op != sequel->op ||
        count - 1 >= sequel->most_count || all > sequel->most)
        return 0;
    sequel->bytes = all;
    sequel->parts++;
    sequel->fingerprint =
        sequel->fingerprint * FUSION_BASE +
        dscomm_priv_fingerprint(DSCOMM_COLL_ALL_REDUCE, (int)dtype, (int)op, -1,
                                count);
    return 1;
}

/* Add a call to the recording. */
dscomm_status_t dscomm_priv_coalesce_collective(dscomm_group_t *group,
                                                const dscomm_coll_args_t *args);
dscomm_status_t dscomm_priv_coalesce_message(dscomm_group_t *group,
                                             const dscomm_call_t *message);
/* ERR_STATE: the call named name cannot be recorded. */
dscomm_status_t dscomm_priv_coalesce_refuse(const dscomm_group_t *group,
                                            const char *name);
/* What is recorded on a group. */
extern const dscomm_group_part_t dscomm_priv_coalesce_part;

#endif
