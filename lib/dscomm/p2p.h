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
