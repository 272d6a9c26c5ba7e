/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement of a group's ranks on a call that makes groups of it: root, one of
 * DSCOMM_ROOT_GROUP_*, says which call that is. Its collectives are named by
 * that call. A mismatch is the same sentence on all ranks. */
#ifndef LIB_AGREE_H
#define LIB_AGREE_H

#include "lib/group/group.h"

/* Gathers size bytes of each rank into recv. */
dscomm_status_t dscomm_priv_agree_gather(dscomm_group_t *group, int root,
                                         const void *send, void *recv,
                                         size_t size);

/* ERR_MISMATCH where hash is not the same on all ranks. what is this rank's
 * call with its arguments; remedy ends the sentence. */
dscomm_status_t dscomm_priv_agree(dscomm_group_t *group, int root,
                                  uint64_t hash, const char *what,
                                  const char *remedy);

/* Fails with ERR_MISMATCH after all ranks have found that what rank odd called
 * does not fit to what rank other called, and with it so many others. */
dscomm_status_t dscomm_priv_agree_fail(dscomm_group_t *group, int root, int odd,
                                       int other, int others, const char *what,
                                       const char *remedy);

#endif
