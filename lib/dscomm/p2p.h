/* SPDX-License-Identifier: BSD-3-Clause */
/* Point to point. Messages between two ranks of a group with matching tags
 * arrive in the order sent. count is in elements of dtype; tags are 0 ...
 * DSCOMM_TAG_MAX. A send may complete before its receive is posted (small
 * messages are buffered) but a program must not rely on it. Sending to oneself
 * works if the receive is posted first or the send is asynchronous. MT:
 * group. */
#ifndef DSCOMM_P2P_H
#define DSCOMM_P2P_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSCOMM_TAG_MAX 0x7fffffff

/* Sends count elements to rank dest; returns when buffer may be used again. */
DSCOMM_API dscomm_status_t dscomm_send(dscomm_group_t *group,
                                       const void *buffer, size_t count,
                                       dscomm_dtype_t dtype, int dest, int tag);

/* Receives at most count elements from rank source, or DSCOMM_ANY_SOURCE, with
 * tag, or DSCOMM_ANY_TAG. A longer message is ERR_TRUNCATED: the buffer has its
 * beginning, the rest is lost, the group goes on. *ret_source and *ret_bytes
 * are the sender and the length; both may be NULL. If source has begun to leave
 * in order (dscomm_finalize() or dscomm_group_free()) and all that it sent was
 * received, a receive ends with ERR_PEER_FAILED and the group goes on, provided
 * that the backend detects it (shm does). */
DSCOMM_API dscomm_status_t dscomm_recv(dscomm_group_t *group, void *buffer,
                                       size_t count, dscomm_dtype_t dtype,
                                       int source, int tag, int *ret_source,
                                       size_t *ret_bytes);

/* Information on a message. The caller sets size to that of this structure, as
 * DSCOMM_MESSAGE_INFO_INIT does. */
typedef struct dscomm_message_info {
    size_t size;
    dscomm_status_t status; /* OK, or ERR_TRUNCATED */
    int source, tag; /* the sender's rank in the group, and its tag */
    size_t bytes; /* of the message, also if it was truncated */
} dscomm_message_info_t;
#define DSCOMM_MESSAGE_INFO_INIT                                               \
    {                                                                          \
        sizeof(dscomm_message_info_t), DSCOMM_OK, 0, 0, 0                      \
    }

/* Receives like dscomm_recv(), but with its own deadline: if no message has
 * begun to arrive within timeout_ms, the call returns ERR_TIMEOUT without a
 * message, and the group goes on; dscomm_recv() would revoke the group.
 * timeout_ms 0 receives only a message that has arrived already.
 * DSCOMM_TIMEOUT_DEFAULT is the group's time-out. DSCOMM_TIMEOUT_NONE waits
 * until a message comes or the group ends: use it in a server, which may be
 * idle for long. When a message has begun to arrive, the group's deadline
 * holds. *ret_info, which may be NULL, is written with OK and ERR_TRUNCATED.
 * ERR_UNSUPPORTED if the backend cannot withdraw a receive, except with
 * DSCOMM_TIMEOUT_NONE. ERR_STATE while calls are coalesced. MT: group. */
DSCOMM_API dscomm_status_t dscomm_recv_within(dscomm_group_t *group,
                                              void *buffer, size_t count,
                                              dscomm_dtype_t dtype, int source,
                                              int tag, int timeout_ms,
                                              dscomm_message_info_t *ret_info);

/* Looks for a message that dscomm_recv() with source and tag would receive, and
 * describes it in *ret_info, which may be NULL; the message stays. OK, or
 * IN_PROGRESS if none comes within timeout_ms; 0 looks once,
 * DSCOMM_TIMEOUT_DEFAULT is the group's time-out. The group goes on in both
 * cases. A probe does not detect that other ranks have left, and never finds
 * messages for which a receive waits. ERR_UNSUPPORTED if the backend cannot
 * probe. MT: group. */
DSCOMM_API dscomm_status_t dscomm_probe(dscomm_group_t *group, int source,
                                        int tag, int timeout_ms,
                                        dscomm_message_info_t *ret_info);

/* A message that was found and set aside for dscomm_recv_matched(). */
typedef struct dscomm_matched dscomm_matched_t;

/* As dscomm_probe(), and sets the message aside: no other receive or probe
 * finds it. The caller owns *ret_matched until dscomm_recv_matched(), or until
 * the group ends. MT: group. */
DSCOMM_API dscomm_status_t dscomm_probe_matched(dscomm_group_t *group,
                                                int source, int tag,
                                                int timeout_ms,
                                                dscomm_message_info_t *ret_info,
                                                dscomm_matched_t **ret_matched);

/* Receives that message as dscomm_recv() does, and frees matched. With
 * ERR_INVALID, ERR_STATE and ERR_NO_MEMORY the receive has not begun: the
 * message is still set aside, and the call may be made again. MT: group. */
DSCOMM_API dscomm_status_t dscomm_recv_matched(dscomm_matched_t *matched,
                                               void *buffer, size_t count,
                                               dscomm_dtype_t dtype,
                                               dscomm_message_info_t *ret_info);

/* The same with works; ret_work must not be NULL unless the calls are
 * coalesced. dscomm_work_received() returns source, tag and length. */
DSCOMM_API dscomm_status_t dscomm_isend(dscomm_group_t *group,
                                        const void *buffer, size_t count,
                                        dscomm_dtype_t dtype, int dest, int tag,
                                        dscomm_work_t **ret_work);
DSCOMM_API dscomm_status_t dscomm_irecv(dscomm_group_t *group, void *buffer,
                                        size_t count, dscomm_dtype_t dtype,
                                        int source, int tag,
                                        dscomm_work_t **ret_work);

#ifdef __cplusplus
}
#endif

#endif
