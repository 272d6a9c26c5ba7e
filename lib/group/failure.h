/* SPDX-License-Identifier: BSD-3-Clause */
/* The failure of a group: how it ends, and why it has. */
#ifndef LIB_GROUP_FAILURE_H
#define LIB_GROUP_FAILURE_H

#include "lib/base/failure.h"
#include "lib/group/group.h"

/* Ends the group for all ranks, unless that has happened before. Any thread. */
void dscomm_priv_group_revoke(dscomm_group_t *group,
                              const dscomm_failure_t *failure);
/* The same for this thread's last failure, which has status; returns status. */
dscomm_status_t dscomm_priv_group_give_up(dscomm_group_t *group,
                                          dscomm_status_t status);
/* OK, or the status with which the backend was revoked, and then *ret_failure
 * unless that is NULL; notes a revocation in state. */
dscomm_status_t dscomm_priv_group_revoked(dscomm_group_t *group,
                                          dscomm_failure_t *ret_failure);
/* A record whose culprit has the number rank in group, or -1, and fails in the
 * collective args, or NULL. */
void dscomm_priv_group_blame(const dscomm_group_t *group,
                             dscomm_status_t status, dscomm_failure_kind_t kind,
                             int rank, const dscomm_coll_args_t *args,
                             dscomm_failure_t *ret_failure);
/* Makes rank of group, or none if it is -1, the culprit of failure. */
void dscomm_priv_group_accuse(const dscomm_group_t *group, int rank,
                              dscomm_failure_t *failure);

#endif
