/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures that ranks publish in a group's part of the store, for those that
 * nothing else tells: while the group is made, and when ranks time out. */
#ifndef LIB_GROUP_PUBLISHED_H
#define LIB_GROUP_PUBLISHED_H

#include "lib/group/group.h"
#include "lib/group/world.h"

#include <stdbool.h>

/* Key of a group's first failure, a packed record. */
#define DSCOMM_FAILED_KEY "failed"

/* True if rank 0 of the world serves the group's store. */
static inline bool dscomm_priv_group_is_served(const dscomm_group_t *group)
{
    const dscomm_world_t *world = group->identity.world;

    return world->meeting.serves && world->size > 1 &&
           group->life.base == world->meeting.store;
}

/* True if such a failure is that of another rank. */
bool dscomm_priv_failure_blames(dscomm_status_t status);
/* True for a time-out without a culprit. */
bool dscomm_priv_failure_is_unexplained(const dscomm_failure_t *failure);

/* Opens the store of a group for requests that take a second in all. */
dscomm_status_t dscomm_priv_look_store(const dscomm_group_t *group,
                                       dscomm_store_t **ret_store);
/* Likewise; NULL: it does not answer. */
dscomm_store_t *dscomm_priv_group_look_open(const dscomm_group_t *group);

/* Publishes failure in store, the group's, unless there is one already; a
 * time-out without a culprit is replaced by one that names one. If failure
 * blames other ranks, it becomes the one in the store. Returns the status of
 * the store. A rank that does not reach the backend's open calls this instead
 * of the functions of creation.h. */
dscomm_status_t dscomm_priv_failure_publish(dscomm_store_t *store,
                                            dscomm_failure_t *failure);
/* Publishes the failure of a group that was made, likewise. If the store does
 * not answer, failure is left as it is. */
void dscomm_priv_group_share_failure(const dscomm_group_t *group,
                                     dscomm_failure_t *failure);
/* Reads the first failure of a rank of the group, which is in the store. Its
 * status is OK if it is malformed. */
dscomm_status_t dscomm_priv_published_failure(dscomm_store_t *store,
                                              dscomm_failure_t *ret_failure);

/* Adds process and host of a culprit on another machine, which are in the
 * store. Waits 300 ms at most. */
void dscomm_priv_group_learn_culprit(const dscomm_group_t *group,
                                     dscomm_failure_t *failure);

/* Publishes in parent how making a child of it has failed. Ranks of parent that
 * wait for this one may not see for whom it waited. */
void dscomm_priv_child_publish(const dscomm_group_t *parent,
                               const dscomm_failure_t *failure);
/* Returns the culprit of the last such failure, by its rank in the world, if it
 * came after the collective before the one with number sequence; or -1. */
int dscomm_priv_child_culprit(const dscomm_group_t *group, uint64_t sequence);

#endif
