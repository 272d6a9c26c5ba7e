/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a group: what its ranks look at while they wait for each other, so
 * that none waits for one that will not come, and the first reason why the
 * group cannot be made, which all of them then give.
 *
 * The reason travels in two ways. A death ends the group that the new one is
 * made from as well. If the backend detects deaths, that reaches all its ranks,
 * also those that have come further or not so far. Everything else, and all of
 * a world, goes through the new group's part of the store. */
#ifndef LIB_CREATION_H
#define LIB_CREATION_H

#include "lib/group/group.h"

#include <stdbool.h>

typedef struct dscomm_creation {
    dscomm_group_t *parent; /* or NULL */
    int64_t end_ns; /* when the time for open is over, all levels included */
    int64_t next_ns; /* when to look again */
    int pause_ms;
    int learned; /* the processes of this node's ranks are known */
    int lost; /* the store was, and rank 0 that serves it did not end soon */
} dscomm_creation_t;

/* Around the backend's open, which has open_ms: what
 * dscomm_backend_creation_... work on. parent is what group is made from, or
 * NULL; creation stays until the end. */
void dscomm_priv_creation_begin(dscomm_creation_t *creation,
                                dscomm_group_t *group, dscomm_group_t *parent,
                                int open_ms);
/* Returns how much of args->open_ms is left since then, in ms. */
int dscomm_priv_creation_left(const dscomm_backend_args_t *args);
/* Returns status, or where that is a failure the one that all ranks give, with
 * its sentence. A rank 0 whose store the others read that from stays until they
 * have, or are dead, and at most half a second. */
dscomm_status_t dscomm_priv_creation_end(const dscomm_backend_args_t *args,
                                         dscomm_status_t status);

/* Puts failure into store, the group's, for the other ranks, unless there is
 * one: a failure that blames other ranks then becomes that one. Returns the
 * status of the store. A rank that does not come as far as the backend's open
 * calls it instead of the functions above. */
dscomm_status_t dscomm_priv_creation_tell(dscomm_store_t *store,
                                          dscomm_failure_t *failure);

#endif
