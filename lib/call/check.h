/* SPDX-License-Identifier: BSD-3-Clause */
/* Argument checks: an inline predicate, and a slow path that finds the reason
 * and makes the sentence. */
#ifndef LIB_CHECK_H
#define LIB_CHECK_H

#include "lib/base/types.h"
#include "lib/group/group.h"

/* Checks all arguments of a collective: OK, or ERR_INVALID with a sentence.
 * args is complete, except for element if dtype is invalid. */
dscomm_status_t dscomm_priv_check(dscomm_group_t *group,
                                  const dscomm_coll_args_t *args);

/* The inline checks may refuse valid arguments in rare cases (count 0 with NULL
 * buffers; on 32 bits, large counts), but never accept invalid ones. After a
 * refusal, dscomm_priv_check() decides. */

/* True if two buffers of these sizes, in bytes, do not overlap. */
static inline int dscomm_priv_apart(const void *a, size_t a_bytes,
                                    const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x <= y ? y - x >= a_bytes : x - y >= b_bytes;
}

static inline int dscomm_priv_quick(const dscomm_group_t *group,
                                    const void *buffer, size_t count,
                                    dscomm_dtype_t dtype)
{
    return group && buffer && (unsigned)dtype < DSCOMM_DTYPE_COUNT &&
           count <= group->max_count;
}

static inline int dscomm_priv_quick_op(dscomm_op_t op, dscomm_dtype_t dtype)
{
    return (unsigned)op < DSCOMM_PREMUL_SUM &&
           dscomm_priv_applies[op] >> dtype & 1;
}

/* Writes the displacements of adjacent blocks to displs. */
static inline const size_t *dscomm_priv_pack(const size_t *counts, int size,
                                             size_t *displs)
{
    size_t offset = 0;

    for (int i = 0; i < size; i++) {
        displs[i] = offset;
        offset += counts[i];
    }
    return displs;
}

/* Computes the displacements that a _v call has not given, in the group's
 * scratch space. A work makes a copy of them. */
static inline void dscomm_priv_complete_displs(dscomm_group_t *group,
                                               dscomm_coll_args_t *args)
{
    if (args->send_counts && !args->send_displs)
        args->send_displs =
            dscomm_priv_pack(args->send_counts, group->size, group->scratch);
    if (args->recv_counts && !args->recv_displs)
        args->recv_displs = dscomm_priv_pack(args->recv_counts, group->size,
                                             group->scratch + group->size);
}

#endif
