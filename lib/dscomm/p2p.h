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
 * tag, or DSCOMM_ANY_TAG. A longer message is ERR_TRUNCATED: the buffer holds
 * its beginning, the rest is gone, the group goes on. *ret_source and
 * *ret_bytes may be NULL; they tell whose message it was, and how long. Where
 * source has begun to leave in good order (dscomm_finalize() or
 * dscomm_group_free()) and all that it sent has been received, a receive ends
 * with ERR_PEER_FAILED, and the group goes on, if the backend can see it (shm
 * can). */
DSCOMM_API dscomm_status_t dscomm_recv(dscomm_group_t *group, void *buffer,
                                       size_t count, dscomm_dtype_t dtype,
                                       int source, int tag, int *ret_source,
                                       size_t *ret_bytes);

/* What is told about a message. size comes first and is set by the caller: of
 * this structure, as DSCOMM_MESSAGE_INFO_INIT sets it. */
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

/* Receives like dscomm_recv(), but with a deadline of its own: if no message
 * has begun to come within timeout_ms, the call ends with ERR_TIMEOUT, nothing
 * was received, and the group goes on; dscomm_recv() revokes the group in that
 * case. 0 takes what has come already, DSCOMM_TIMEOUT_DEFAULT means as long as
 * the group's deadline, and DSCOMM_TIMEOUT_NONE waits until a message comes or
 * the group ends: the form for a server, which may be idle for long. Once a
 * message has begun to come, the group's deadline holds. *ret_info, which may
 * be NULL, is written with OK and ERR_TRUNCATED. ERR_UNSUPPORTED if the
 * backend cannot take back a receive; not with DSCOMM_TIMEOUT_NONE. ERR_STATE
 * while calls are coalesced. MT: group. */
DSCOMM_API dscomm_status_t dscomm_recv_within(dscomm_group_t *group,
                                              void *buffer, size_t count,
                                              dscomm_dtype_t dtype, int source,
                                              int tag, int timeout_ms,
                                              dscomm_message_info_t *ret_info);

/* Looks whether a message has come that dscomm_recv() with source and tag would
 * get, and tells of it in *ret_info, which may be NULL; the message stays. OK,
 * or IN_PROGRESS if none comes within timeout_ms; 0 looks once,
 * DSCOMM_TIMEOUT_DEFAULT means as long as the group's deadline. The group goes
 * on in both cases. A probe does not see that other ranks have left. Messages
 * that a receive waits for are never seen. ERR_UNSUPPORTED if the backend
 * cannot do it. MT: group. */
DSCOMM_API dscomm_status_t dscomm_probe(dscomm_group_t *group, int source,
                                        int tag, int timeout_ms,
                                        dscomm_message_info_t *ret_info);

/* A message that was found and set aside for dscomm_recv_matched(). */
typedef struct dscomm_matched dscomm_matched_t;

/* As dscomm_probe(), and sets the message aside: no other receive or probe gets
 * it. *ret_matched is the caller's until dscomm_recv_matched(), or until its
 * group ends. MT: group. */
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

/* The same as works; ret_work must not be NULL unless the calls are coalesced.
 * dscomm_work_received() tells source, tag and length. */
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
