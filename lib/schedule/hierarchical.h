/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a group whose nodes have several ranks, composed of
 * collectives inside nodes and between them. */
#ifndef LIB_HIERARCHICAL_H
#define LIB_HIERARCHICAL_H

#include "lib/schedule/levels.h"
#include "lib/schedule/schedule.h"

/* Builds the schedule of the algorithm two_level; its parts are schedules. */
void dscomm_priv_hierarchical_build(dscomm_plan_t *plan);

/* Returns the collective between nodes of which coll is composed, or -1 if it
 * is not composed. */
int dscomm_priv_hierarchical_between(int coll);
/* Runs args, a composed collective, by blocking calls of the levels. */
dscomm_status_t dscomm_priv_hierarchical_run(dscomm_levels_t *levels,
                                             const dscomm_coll_args_t *args);

#endif
