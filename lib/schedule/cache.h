/* SPDX-License-Identifier: BSD-3-Clause */
/* A group's shelf: schedules and runs of shapes that it has seen before, so
 * that a call that comes again builds and allocates nothing. */
#ifndef LIB_SHELF_H
#define LIB_SHELF_H

#include "lib/group/group.h"
#include "lib/schedule/run.h"

/* nodes, or NULL: see lib/schedule/algorithm.h; they must stay. NULL where
 * there is no memory. */
dscomm_shelf_t *dscomm_priv_shelf_new(const dscomm_port_t *port, int rank,
                                      int ranks, const dscomm_nodes_t *nodes);
/* The cache of a group. */
extern const dscomm_group_part_t dscomm_priv_cache_part;

/* All runs must have been given back. */
void dscomm_priv_shelf_free(dscomm_shelf_t *shelf);

/* A run for args, not started; NULL where memory is short. Given back when it
 * has ended or was cancelled. */
dscomm_run_t *dscomm_priv_shelf_take(dscomm_shelf_t *shelf,
                                     const struct dscomm_algorithm *algorithm,
                                     const dscomm_coll_args_t *args);
void dscomm_priv_shelf_give(dscomm_shelf_t *shelf, dscomm_run_t *run);

#endif
