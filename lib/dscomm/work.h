/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: operations that were started and may still run.
 *
 * Collectives of one group start in program order and may end in another; a
 * blocking collective returns after all those before it.
 *
 * A work belongs to its group and follows its thread rule. Its buffers, and the
 * arrays of counts of a _v call, stay untouched until it is complete. Progress
 * is made by every thread that waits or tests on any group of the world, by the
 * progress thread (DSCOMM_PROGRESS=thread) and, now and then, the watchdog. A
 * work must not be used after it was freed, or after dscomm_finalize() of its
 * world; unlike a group (see group.h), a work that is gone is not recognized.
 *
 * A work that ends because its group does (time-out, abort, dscomm_group_free)
 * may leave a message under way. On backend mpi, and on two_level, MPI may then
 * still read or write the buffers of that work, until the peer has gone on or
 * has ended: do not free or reuse them. The same holds on backend tcp for long
 * messages that the kernel sends without a copy (DSCOMM_TCP_ZEROCOPY). Other
 * backends give them back. */
#ifndef DSCOMM_WORK_H
#define DSCOMM_WORK_H

#include <dscomm/p2p.h>
#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until the work is complete and returns its status; or returns
 * IN_PROGRESS after timeout_ms, and the work goes on. May be called again.
 *
 * Time without progress on the group counts against the group's deadline while
 * the program waits for the work or tests it, in however many calls. Time
 * between two such calls counts for at most a quarter of the deadline. When the
 * deadline has passed, the group is revoked, and the call returns ERR_TIMEOUT.
 * If a thread of the library looks at works (the watchdog, which
 * DSCOMM_WATCHDOG=no forbids; DSCOMM_PROGRESS=thread; dscomm_group_fd()), all
 * time counts, because that thread waits for every work. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_wait(dscomm_work_t *work,
                                            int timeout_ms);

/* IN_PROGRESS, or the work's final status; never waits. The group's deadline
 * holds as for dscomm_work_wait(). MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_test(dscomm_work_t *work);

/* Waits until one of count works is complete, sets *ret_index to its index and
 * returns its status. NULL entries are skipped; ERR_INVALID if all are NULL.
 * IN_PROGRESS after timeout_ms. MT: the works' groups. */
DSCOMM_API dscomm_status_t dscomm_work_wait_any(dscomm_work_t *const *works,
                                                size_t count, int timeout_ms,
                                                size_t *ret_index);

/* Waits until all are complete; NULL entries are skipped. OK, or the first
 * failure in order of the array (all are complete then as well), or IN_PROGRESS
 * after timeout_ms. MT: the works' groups. */
DSCOMM_API dscomm_status_t dscomm_work_wait_all(dscomm_work_t *const *works,
                                                size_t count, int timeout_ms);

/* Frees a work, which may be NULL. An incomplete work goes on, and uses its
 * buffers until it is complete. MT: group. */
DSCOMM_API void dscomm_work_free(dscomm_work_t *work);

/* Withdraws a receive that dscomm_irecv() started, if no message has begun to
 * arrive for it: its status is then ERR_CANCELLED, its buffer may be reused,
 * and a later message is kept for another receive. Otherwise the receive goes
 * on. OK in both cases, and for a complete work; dscomm_work_wait() returns the
 * result. ERR_STATE for another operation, ERR_UNSUPPORTED if the backend
 * cannot withdraw. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_cancel(dscomm_work_t *work);

/* Gives a work its own deadline instead of the group's. A receive that
 * dscomm_irecv() started has it timeout_ms from now; see dscomm_recv_within().
 * After that, it ends with ERR_TIMEOUT in the next wait, test or turn of a
 * progress thread, and the group goes on; ERR_UNSUPPORTED if the backend cannot
 * withdraw. Another work has timeout_ms > 0 in place of the group's time-out:
 * when that has passed without progress, the group is revoked. Such a deadline
 * may differ between ranks. ERR_STATE for a work of dscomm_work_create(), which
 * has no deadline. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_set_timeout(dscomm_work_t *work,
                                                   int timeout_ms);

/* Returns the sender's rank in the group, the tag and the bytes received.
 * Outputs may be NULL. ERR_STATE unless the work is a completed receive. MT:
 * group. */
DSCOMM_API dscomm_status_t dscomm_work_received(const dscomm_work_t *work,
                                                int *ret_source, int *ret_tag,
                                                size_t *ret_bytes);

/* The same for one of several receives: number index of those coalesced into
 * the work, counted from 0 in the order of their calls, or the only one of
 * another work. ret_info->status is the status of that receive; the other
 * members are valid with OK and ERR_TRUNCATED. ERR_INVALID if there is no such
 * receive, ERR_STATE before the work is complete. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_received_at(
    const dscomm_work_t *work, size_t index, dscomm_message_info_t *ret_info);

/* The group, or NULL after it was freed, and the operation's sequence number on
 * it. MT: safe. */
DSCOMM_API dscomm_group_t *dscomm_work_group(const dscomm_work_t *work);
DSCOMM_API uint64_t dscomm_work_sequence(const dscomm_work_t *work);

/* A user-defined operation, for example one composed of others. */
typedef struct dscomm_work_ops {
    size_t size; /* of this structure */
    /* Advances the operation without waiting. Returns IN_PROGRESS until it is
     * complete, then its status; the sentence of a failure is
     * dscomm_last_error(). Called first by dscomm_work_create(), then by any
     * thread that makes progress on the group, never by two at a time. It may
     * start, test, abort and free operations on other groups of the world that
     * only this operation uses; it must call nothing on this group. */
    dscomm_status_t (*advance)(void *state);
    /* Called when the group has ended with status (ERR_ABORTED if it was
     * freed); the work has ended too. Must stop using state and buffers at
     * once. advance is not called any more. */
    void (*cancel)(void *state, dscomm_status_t status);
} dscomm_work_ops_t;

/* Starts such an operation as a work of group. It can be waited for and freed
 * like any other, and the progress thread advances it. ops is copied; state
 * must stay valid until advance returns something other than IN_PROGRESS, or
 * cancel is called. The work has no sequence number, matches nothing on other
 * ranks, does not delay blocking collectives, and has no deadline but its own.
 * ERR_INVALID if a pointer is NULL, ops->size is invalid, or ops sets a member
 * that this libdscomm does not know. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_create(dscomm_group_t *group,
                                              const dscomm_work_ops_t *ops,
                                              void *state,
                                              dscomm_work_t **ret_work);

/* Between begin and end, calls on the group with ret_work == NULL are recorded
 * instead of run. end starts all of them as one operation and returns its work,
 * or waits for it if ret_work is NULL. The calls may run at the same time, so
 * none may read or write memory that another one writes. Collectives start
 * first, then messages, each in their order. Calls that need an answer at once
 * (monitored_barrier, the blob calls) and calls with a work return ERR_STATE in
 * between. A refused call is not recorded and does not end the recording. If a
 * call cannot be started, end fails, and the calls before it go on. MT: group.
 */
DSCOMM_API dscomm_status_t dscomm_coalesce_begin(dscomm_group_t *group);
DSCOMM_API dscomm_status_t dscomm_coalesce_end(dscomm_group_t *group,
                                               dscomm_work_t **ret_work);

#ifdef __cplusplus
}
#endif

#endif
