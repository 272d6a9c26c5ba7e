/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiler plugin of a world, see dscomm/plugin.h. Without DSCOMM_PROFILE
 * all of this does nothing. */
#ifndef LIB_PROFILE_H
#define LIB_PROFILE_H

#include "lib/group/world.h"

/* Before the ranks meet: loads and opens the plugin, unless another world of
 * this process has it. */
dscomm_status_t dscomm_priv_profile_open(dscomm_world_t *world);
/* When the ranks have met. */
void dscomm_priv_profile_begin(dscomm_world_t *world);
/* At the beginning of finalize: collects what this rank has, and writes it to
 * the store for rank 0. Takes some seconds at most. */
void dscomm_priv_profile_collect(dscomm_world_t *world);
/* After the last barrier: rank 0 reads what the others have collected, for some
 * seconds at most, and gives it to the plugin. */
void dscomm_priv_profile_finish(dscomm_world_t *world);
/* Closes the plugin. */
void dscomm_priv_profile_close(dscomm_world_t *world);

#endif
