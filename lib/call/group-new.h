/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to the calls that make groups. */
#ifndef LIB_GROUP_NEW_H
#define LIB_GROUP_NEW_H

#include "lib/group/group.h"

/* attr checks attributes and fills in the parent's; attr_fill does so for a
 * parent that has failed. child makes a group of the
 * given members (ranks of parent) by deadline, the call's. If discriminator is
 * >= 0, it is appended to the id. refusal is NULL, or the failure for which
 * this rank does not open the group: the others then fail, too. *ret_group is
 * NULL if this rank is not listed. */
dscomm_status_t dscomm_priv_group_attr(dscomm_group_t *parent, const char *name,
                                       const dscomm_group_attr_t *attr,
                                       dscomm_group_attr_t *ret_attr);
dscomm_status_t dscomm_priv_group_child(dscomm_group_t *parent,
                                        const int *ranks, int count,
                                        const dscomm_group_attr_t *attr,
                                        int64_t deadline, int discriminator,
                                        dscomm_failure_t *refusal,
                                        dscomm_group_t **ret_group);
dscomm_status_t dscomm_priv_group_attr_fill(const dscomm_group_t *parent,
                                            const char *name,
                                            const dscomm_group_attr_t *attr,
                                            dscomm_group_attr_t *ret_attr);
/* Makes a group of the members that survived the failure of a group. round is
 * the number of the attempt (shrink.c). */
dscomm_status_t dscomm_priv_group_survivors(dscomm_group_t *failed,
                                            const int *ranks, int count,
                                            const dscomm_group_attr_t *attr,
                                            int64_t deadline, unsigned round,
                                            dscomm_group_t **ret_group);
/* The counts of members_only groups. */
extern const dscomm_group_part_t dscomm_priv_lists_part;

/* Agreement of a group's ranks on a call that makes groups of it: in agree.c.
 * root, one of DSCOMM_ROOT_GROUP_*, identifies the public call, so that
 * failures of its collectives name it. The sentence of a mismatch is the same
 * on all ranks. */

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
