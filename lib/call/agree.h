/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement of a group's ranks on a call that makes groups of it. root, one of
 * DSCOMM_ROOT_GROUP_*, identifies the public call, so that failures of its
 * collectives name it. The sentence of a mismatch is the same on all ranks. */
#ifndef LIB_AGREE_H
#define LIB_AGREE_H

#include "lib/group/group.h"

/* Gathers size bytes of every rank into recv. */
dscomm_status_t dscomm_priv_agree_gather(dscomm_group_t *group, int root,
                                         const void *send, void *recv,
                                         size_t size);

/* ERR_MISMATCH if hash differs between ranks. what is this rank's call with its
 * arguments; remedy ends the sentence. */
dscomm_status_t dscomm_priv_agree(dscomm_group_t *group, int root,
                                  uint64_t hash, const char *what,
                                  const char *remedy);

/* Fails with ERR_MISMATCH: the call of rank odd does not match that of rank
 * other, which so many others have made too. All ranks must have found that. */
dscomm_status_t dscomm_priv_agree_fail(dscomm_group_t *group, int root, int odd,
                                       int other, int others, const char *what,
                                       const char *remedy);

#endif
