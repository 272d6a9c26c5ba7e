/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that can be withdrawn before a message has arrived, and information
 * on messages. */
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

/* The function expire of works that are receives. */
int dscomm_priv_receive_expire(dscomm_work_t *work, int64_t now);

/* Returns when a receive that begins now is withdrawn. ERR_INVALID if
 * timeout_ms is invalid, ERR_UNSUPPORTED if the backend cannot withdraw it.
 * name is the public call's. */
dscomm_status_t dscomm_priv_receive_deadline(const dscomm_group_t *group,
                                             const char *name, int timeout_ms,
                                             int64_t *ret_deadline_ns);

/* A message that a probe has set aside; its group lists and frees it. */
struct dscomm_matched {
    dscomm_group_t *group;
    void *taken; /* the backend's */
    int source, tag;
    SLIST_ENTRY(dscomm_matched) link;
};

/* Frees the messages of a group that were set aside and not received. */
extern const dscomm_group_part_t dscomm_priv_matched_part;

/* OK, or the reason why nothing can be sent to peer, or received from it, with
 * tag. */
dscomm_status_t dscomm_priv_check_peer(const dscomm_group_t *group,
                                       const char *name, int peer, int tag,
                                       int receive);

/* ERR_INVALID if the size of info, which may be NULL, is invalid. */
dscomm_status_t
dscomm_priv_message_info_check(const dscomm_message_info_t *info,
                               const char *name);
/* Fills in as many members as the caller's version has. ret_info may be NULL.
 */
void dscomm_priv_message_info_fill(dscomm_message_info_t *ret_info,
                                   dscomm_status_t status,
                                   const dscomm_request_t *request);

#endif
