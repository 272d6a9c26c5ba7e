/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedule cache of a group: schedules, and runs of them, so that a
 * repeated call builds and allocates nothing. */
#ifndef LIB_CACHE_H
#define LIB_CACHE_H

#include "lib/group/group.h"
#include "lib/schedule/run.h"

/* nodes: see lib/schedule/algorithm.h; must stay valid. NULL: no memory. */
dscomm_schedule_cache_t *dscomm_priv_cache_new(const dscomm_port_t *port,
                                               int rank, int ranks,
                                               const dscomm_nodes_t *nodes);
/* The cache of a group. */
extern const dscomm_group_part_t dscomm_priv_cache_part;

/* All runs must have been returned. */
void dscomm_priv_cache_free(dscomm_schedule_cache_t *cache);

/* take returns a run for args that is not started; NULL: no memory. give
 * returns it when it has ended or was cancelled. */
dscomm_run_t *dscomm_priv_cache_take(dscomm_schedule_cache_t *cache,
                                     const struct dscomm_algorithm *algorithm,
                                     const dscomm_coll_args_t *args);
void dscomm_priv_cache_give(dscomm_schedule_cache_t *cache, dscomm_run_t *run);

#endif
