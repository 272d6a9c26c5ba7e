/* SPDX-License-Identifier: BSD-3-Clause */
/* A group's cache: schedules and runs of shapes that it has seen before, so
 * that a call that comes again builds and allocates nothing. */
#ifndef LIB_CACHE_H
#define LIB_CACHE_H

#include "lib/group/group.h"
#include "lib/schedule/run.h"

/* nodes, or NULL: see lib/schedule/algorithm.h; they must stay. NULL where
 * there is no memory. */
dscomm_schedule_cache_t *dscomm_priv_cache_new(const dscomm_port_t *port,
                                               int rank, int ranks,
                                               const dscomm_nodes_t *nodes);
/* The cache of a group. */
extern const dscomm_group_part_t dscomm_priv_cache_part;

/* All runs must have been given back. */
void dscomm_priv_cache_free(dscomm_schedule_cache_t *cache);

/* A run for args, not started; NULL where memory is short. Given back when it
 * has ended or was cancelled. */
dscomm_run_t *dscomm_priv_cache_take(dscomm_schedule_cache_t *cache,
                                     const struct dscomm_algorithm *algorithm,
                                     const dscomm_coll_args_t *args);
void dscomm_priv_cache_give(dscomm_schedule_cache_t *cache, dscomm_run_t *run);

#endif
