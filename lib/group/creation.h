/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a group. While ranks wait for each other they check whether one cannot
 * come any more. The first failure becomes that of all ranks.
 *
 * The failure travels in two ways. A death also revokes the parent, the group
 * from which the new one is made. If the parent's backend detects deaths, all
 * its ranks get that, wherever they are. All other failures, and all failures
 * of a world, go through the new group's part of the store. */
#ifndef LIB_CREATION_H
#define LIB_CREATION_H

#include "lib/group/group.h"

#include <stdbool.h>

typedef struct dscomm_creation {
    dscomm_group_t *parent; /* NULL for a world */
    int64_t end_ns; /* when open must have ended, on all levels */
    int64_t next_ns; /* when to check again */
    int pause_ms;
    int learned; /* this node's processes are known */
    bool
        explained; /* the sentence of a time-out says which ranks are stopped */
    bool parent_awaited; /* it had time to end, after a time-out here */
    int lost; /* the store was lost, but rank 0, which serves it, goes on */
} dscomm_creation_t;

/* Begins before the backend's open, which has open_ms. The functions
 * dscomm_backend_creation_... use creation until the end. parent is the group
 * from which group is made, or NULL. */
void dscomm_priv_creation_begin(dscomm_creation_t *creation,
                                dscomm_group_t *group, dscomm_group_t *parent,
                                int open_ms);
/* Returns how much is left of the time for open, in ms. */
int dscomm_priv_creation_left(const dscomm_backend_args_t *args);
/* Returns status; if it is a failure, the status that all ranks return, with
 * its sentence. If the others read that from rank 0's store, rank 0 waits until
 * they have done so or have ended, at most half a second. */
dscomm_status_t dscomm_priv_creation_end(const dscomm_backend_args_t *args,
                                         dscomm_status_t status);

#endif
