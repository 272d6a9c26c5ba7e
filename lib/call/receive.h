/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that can be taken back as long as no message has come for them, and
 * what is told about a message. */
#ifndef LIB_RECEIVE_H
#define LIB_RECEIVE_H

#include "lib/work/work.h"

#include <dscomm/p2p.h>
#include <stdbool.h>

static inline bool dscomm_priv_receive_is(const dscomm_work_t *work)
{
    return work->call.type == CALL_MESSAGE && work->call.p2p.receive;
}

/* The kind of works that are messages. */
extern const dscomm_work_kind_t dscomm_priv_message_kind;

/* When a receive that begins now is taken back. ERR_INVALID if timeout_ms makes
 * no sense, ERR_UNSUPPORTED if the backend cannot take it back; name is the
 * public call's. */
dscomm_status_t dscomm_priv_receive_deadline(const dscomm_group_t *group,
                                             const char *name, int timeout_ms,
                                             int64_t *ret_deadline_ns);

/* What a probe has set aside; in a list of its group, which frees it. */
struct dscomm_matched {
    dscomm_group_t *group;
    void *taken; /* the backend's */
    int source, tag;
    dscomm_matched_t *next;
};

/* Those of a group that nobody has received. */
extern const dscomm_group_part_t dscomm_priv_matched_part;

/* OK, or why nothing can be sent to peer, or received from it, with tag. */
dscomm_status_t dscomm_priv_check_peer(const dscomm_group_t *group,
                                       const char *name, int peer, int tag,
                                       int receive);

/* ERR_INVALID if info, which may be NULL, has a size that makes no sense. */
dscomm_status_t
dscomm_priv_message_info_check(const dscomm_message_info_t *info,
                               const char *name);
/* Fills in as much as the caller's headers know; NULL is fine. */
void dscomm_priv_message_info_fill(dscomm_message_info_t *ret_info,
                                   dscomm_status_t status,
                                   const dscomm_request_t *request);

#endif
