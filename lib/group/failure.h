/* SPDX-License-Identifier: BSD-3-Clause */
/* The failure of a group: revoking it, and the record of the cause. */
#ifndef LIB_GROUP_FAILURE_H
#define LIB_GROUP_FAILURE_H

#include "lib/base/failure.h"
#include "lib/group/group.h"

/* Revokes the group on all ranks, unless it was revoked before. Any thread. */
void dscomm_priv_group_revoke(dscomm_group_t *group,
                              const dscomm_failure_t *failure);
/* Revokes the group with this thread's last failure, which has status; returns
 * status. */
dscomm_status_t dscomm_priv_group_give_up(dscomm_group_t *group,
                                          dscomm_status_t status);
/* Notes that the group has ended during a collective, for its failure record.
 * Later calls change nothing. Called with works.lock held. */
void dscomm_priv_group_interrupt(dscomm_group_t *group,
                                 const dscomm_coll_args_t *args);
/* Returns OK, or the status with which the backend was revoked; then also sets
 * GROUP_REVOKED, and *ret_failure unless that is NULL. */
dscomm_status_t dscomm_priv_group_revoked(dscomm_group_t *group,
                                          dscomm_failure_t *ret_failure);
/* Makes a record. Its culprit has the number rank in group, or -1: none; args
 * is the collective that fails, or NULL. */
void dscomm_priv_group_blame(const dscomm_group_t *group,
                             dscomm_status_t status, dscomm_failure_kind_t kind,
                             int rank, const dscomm_coll_args_t *args,
                             dscomm_failure_t *ret_failure);
/* Makes rank of group, or none if it is -1, the culprit of failure. */
void dscomm_priv_group_accuse(const dscomm_group_t *group, int rank,
                              dscomm_failure_t *failure);
/* The same by a rank of the world (-1: none). A rank outside group is not
 * accused. */
void dscomm_priv_group_accuse_world(const dscomm_group_t *group, int rank,
                                    dscomm_failure_t *failure);

/* dscomm_backend_failure_follow(), for a message that has waited so long. */
void dscomm_priv_failure_follow(const dscomm_group_t *group, int timeout_ms,
                                dscomm_failure_t *failure);

/* Messages of a collective that a rank has got, besides the one that failed. */
typedef struct {
    int agree, differ; /* with what the rank expects */
} dscomm_messages_seen_t;

/* dscomm_backend_mismatch_counts(), by messages from other machines as well. */
void dscomm_priv_mismatch_counts(const dscomm_group_t *group,
                                 const dscomm_messages_seen_t *messages,
                                 dscomm_failure_t *failure);

#endif
