/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives. Every rank of the group calls them in the same order with
 * matching arguments; a call that does not match its peers' ends with
 * ERR_MISMATCH and a sentence that names the ranks and their calls.
 *
 * A rank detects a mismatch when it waits for a rank that has made another
 * call. If a call does not wait for all ranks, a rank may return OK although
 * another one disagrees: in broadcast and scatter all wait for root only, and
 * root for no rank; in gather and reduce root waits for all, and the others for
 * no rank (shm's own long reduce and _v forms wait for all). No mismatch is
 * silent: the group is revoked, at least one rank returns the failure, and
 * every other rank returns it from its next call that waits for all, for
 * example a barrier. dscomm_finalize() of a revoked group only frees it.
 *
 * Common to all: p is the group's size; counts and displacements are in
 * elements of dtype; count 0 is valid, and its buffers may be NULL. Send and
 * receive buffers do not overlap, except that they may be the same pointer
 * where a call says "in place"; and the blocks that a _v call receives do not
 * overlap each other, which is not checked: what is in them then is undefined.
 * ret_work == NULL waits, else the call returns at once and *ret_work must be
 * freed; on failure *ret_work is not written. Buffers may be of any alignment.
 *
 * Reductions combine the ranks' inputs in an order that depends on p, the count
 * and the algorithm, never on timing: the same inputs give the same bits on all
 * ranks and in all runs. 16- and 8-bit floats are accumulated in float32 over
 * all inputs and rounded once, to nearest even, whatever the algorithm. shm's
 * own collectives and the algorithms linear, pairwise and bruck combine in rank
 * order, ((x0 op x1) op x2) ...; ring does so from another rank on for each
 * part of the result; the others combine partial results, in the order of a
 * tree.
 *
 * An operator of dscomm_op_create() that does not commute is combined in rank
 * order by all of them that serve it, and its results are what its function
 * makes of the elements.
 *
 * Failures besides the call's own: ERR_INVALID for arguments (nothing was
 * started), ERR_TIMEOUT, ERR_PEER_FAILED, ERR_MISMATCH, ERR_ABORTED (the group
 * is revoked: nothing more can run on it). MT: group. */
#ifndef DSCOMM_COLLECTIVE_H
#define DSCOMM_COLLECTIVE_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies count elements of root's buffer into that of every rank. Always in
 * place. */
DSCOMM_API dscomm_status_t dscomm_broadcast(dscomm_group_t *group, void *buffer,
                                            size_t count, dscomm_dtype_t dtype,
                                            int root, dscomm_work_t **ret_work);

/* recv on root = reduction of all ranks' count elements. recv is not used
 * elsewhere and may be NULL there. In place on root: send == recv. */
DSCOMM_API dscomm_status_t dscomm_reduce(dscomm_group_t *group,
                                         const void *send, void *recv,
                                         size_t count, dscomm_dtype_t dtype,
                                         dscomm_op_t op, int root,
                                         dscomm_work_t **ret_work);

/* recv on every rank = reduction of all ranks' count elements. In place: send
 * == recv. */
DSCOMM_API dscomm_status_t dscomm_all_reduce(dscomm_group_t *group,
                                             const void *send, void *recv,
                                             size_t count, dscomm_dtype_t dtype,
                                             dscomm_op_t op,
                                             dscomm_work_t **ret_work);

/* recv holds p * send_count elements: rank r's at r * send_count. In place:
 * send == recv + rank * send_count. */
DSCOMM_API dscomm_status_t dscomm_all_gather(dscomm_group_t *group,
                                             const void *send, void *recv,
                                             size_t send_count,
                                             dscomm_dtype_t dtype,
                                             dscomm_work_t **ret_work);

/* As all_gather with recv_counts[r] elements from rank r, put at
 * recv + recv_displs[r]; send_count must equal recv_counts[rank]. Both arrays
 * have p entries, and recv_counts is the same on all ranks. recv_displs NULL =
 * packed. In place: send == recv + recv_displs[rank]. */
DSCOMM_API dscomm_status_t dscomm_all_gather_v(
    dscomm_group_t *group, const void *send, size_t send_count, void *recv,
    const size_t *recv_counts, const size_t *recv_displs, dscomm_dtype_t dtype,
    dscomm_work_t **ret_work);

/* send holds p * recv_count elements; recv = the reduction of all ranks'
 * elements rank * recv_count and following. In place: recv == send + rank *
 * recv_count. */
DSCOMM_API dscomm_status_t dscomm_reduce_scatter(
    dscomm_group_t *group, const void *send, void *recv, size_t recv_count,
    dscomm_dtype_t dtype, dscomm_op_t op, dscomm_work_t **ret_work);

/* As reduce_scatter with recv_counts[r] elements for rank r, packed in send in
 * rank order; recv_counts has p entries and is the same on all ranks. In place:
 * recv == send + the sum of the counts before rank's. */
DSCOMM_API dscomm_status_t dscomm_reduce_scatter_v(dscomm_group_t *group,
                                                   const void *send, void *recv,
                                                   const size_t *recv_counts,
                                                   dscomm_dtype_t dtype,
                                                   dscomm_op_t op,
                                                   dscomm_work_t **ret_work);

/* recv on root holds p * send_count elements: rank r's at r * send_count; not
 * used elsewhere. In place on root: send == recv + root * send_count. */
DSCOMM_API dscomm_status_t dscomm_gather(dscomm_group_t *group,
                                         const void *send, void *recv,
                                         size_t send_count,
                                         dscomm_dtype_t dtype, int root,
                                         dscomm_work_t **ret_work);

/* As gather with recv_counts[r] elements from rank r at recv + recv_displs[r].
 * The arrays matter on root only; recv_counts[r] must equal rank r's send_count
 * (ERR_MISMATCH). recv_displs NULL = packed. */
DSCOMM_API dscomm_status_t dscomm_gather_v(
    dscomm_group_t *group, const void *send, size_t send_count, void *recv,
    const size_t *recv_counts, const size_t *recv_displs, dscomm_dtype_t dtype,
    int root, dscomm_work_t **ret_work);

/* send on root holds p * recv_count elements: rank r's at r * recv_count; not
 * used elsewhere. In place on root: recv == send + root * recv_count. */
DSCOMM_API dscomm_status_t dscomm_scatter(dscomm_group_t *group,
                                          const void *send, void *recv,
                                          size_t recv_count,
                                          dscomm_dtype_t dtype, int root,
                                          dscomm_work_t **ret_work);

/* As scatter with send_counts[r] elements for rank r from send +
 * send_displs[r]. The arrays matter on root only; send_counts[r] must equal
 * rank r's recv_count (ERR_MISMATCH). send_displs NULL = packed. */
DSCOMM_API dscomm_status_t dscomm_scatter_v(
    dscomm_group_t *group, const void *send, const size_t *send_counts,
    const size_t *send_displs, void *recv, size_t recv_count,
    dscomm_dtype_t dtype, int root, dscomm_work_t **ret_work);

/* Rank i's elements j * count and following of send go to rank j's i * count
 * and following of recv; both hold p * count elements. Never in place. */
DSCOMM_API dscomm_status_t dscomm_all_to_all(dscomm_group_t *group,
                                             const void *send, void *recv,
                                             size_t count, dscomm_dtype_t dtype,
                                             dscomm_work_t **ret_work);

/* As all_to_all with send_counts[j] elements from send + send_displs[j] for
 * rank j, and recv_counts[i] elements at recv + recv_displs[i] from rank i,
 * which must equal what rank i sends (ERR_MISMATCH). Arrays have p entries;
 * displs NULL = packed. Never in place. */
DSCOMM_API dscomm_status_t dscomm_all_to_all_v(
    dscomm_group_t *group, const void *send, const size_t *send_counts,
    const size_t *send_displs, void *recv, const size_t *recv_counts,
    const size_t *recv_displs, dscomm_dtype_t dtype, dscomm_work_t **ret_work);

/* Returns when every rank has called it. */
DSCOMM_API dscomm_status_t dscomm_barrier(dscomm_group_t *group,
                                          dscomm_work_t **ret_work);

/* A barrier that names the late ranks. No rank waits longer than its own
 * timeout_ms. The barrier ends on all ranks before the earliest of these
 * deadlines: half a second before it, or a quarter of the time that was left,
 * if that is less. If ranks are missing then, all ranks return ERR_TIMEOUT with
 * the numbers of all missing ranks; the missing ranks do so as soon as they
 * call. If rank 0 itself does not call, the sentence of the others, and of rank
 * 0 when it calls, names rank 0. The group is not revoked: the next call on
 * each rank belongs to the next barrier. A missing rank that is found in a
 * collective which the others have not called is a mismatch: it revokes the
 * group, on all ranks with ERR_MISMATCH. Slower than dscomm_barrier(). */
DSCOMM_API dscomm_status_t dscomm_monitored_barrier(dscomm_group_t *group,
                                                    int timeout_ms);
/* The same, with the ranks that its sentence names as numbers: if it fails with
 * ERR_TIMEOUT or ERR_PEER_FAILED, ret_ranks has them in ascending order, and
 * *ret_count says how many they are; otherwise *ret_count is 0. ret_ranks has
 * room for all ranks of the group. */
DSCOMM_API dscomm_status_t dscomm_monitored_barrier_late(dscomm_group_t *group,
                                                         int timeout_ms,
                                                         int *ret_ranks,
                                                         int *ret_count);

/* Byte blobs whose length only their owner has. Blocking. Results are freed
 * with dscomm_blob_free(). */

/* *ret_blob, *ret_size = root's size bytes, on every rank. blob and size matter
 * on root only. */
DSCOMM_API dscomm_status_t dscomm_broadcast_blob(dscomm_group_t *group,
                                                 const void *blob, size_t size,
                                                 int root, void **ret_blob,
                                                 size_t *ret_size);

/* *ret_blob = all ranks' bytes, packed in rank order; ret_sizes (p entries, of
 * the caller) = how many are whose. */
DSCOMM_API dscomm_status_t dscomm_all_gather_blob(dscomm_group_t *group,
                                                  const void *blob, size_t size,
                                                  void **ret_blob,
                                                  size_t *ret_sizes);
DSCOMM_API void dscomm_blob_free(void *blob);

/* PREMUL_SUM: every rank's input is multiplied by that rank's factor (as the
 * accumulation type: float32, or float64 for float64) before the sum. The
 * factor is the caller's own and may differ between ranks. Floating-point
 * dtypes only. */
DSCOMM_API dscomm_status_t dscomm_all_reduce_premul_sum(
    dscomm_group_t *group, const void *send, void *recv, size_t count,
    dscomm_dtype_t dtype, double factor, dscomm_work_t **ret_work);
DSCOMM_API dscomm_status_t dscomm_reduce_premul_sum(
    dscomm_group_t *group, const void *send, void *recv, size_t count,
    dscomm_dtype_t dtype, double factor, int root, dscomm_work_t **ret_work);
DSCOMM_API dscomm_status_t dscomm_reduce_scatter_premul_sum(
    dscomm_group_t *group, const void *send, void *recv, size_t recv_count,
    dscomm_dtype_t dtype, double factor, dscomm_work_t **ret_work);

#ifdef __cplusplus
}
#endif

#endif
