/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: operations that were started and may still run.
 *
 * Collectives of one group start in program order and may end in another; a
 * blocking collective returns after all those before it.
 *
 * A work belongs to its group and follows its thread rule. Its buffers, and the
 * arrays of counts of a _v call, stay untouched until it is complete. Progress
 * is made by whoever waits or tests on any group of the world, or by the
 * progress thread (DSCOMM_PROGRESS=thread). A work must not be used after it
 * was freed, or after dscomm_finalize() of its world, which frees all; unlike a
 * group (see group.h), a work that is gone is not recognized.
 *
 * A work that ends because its group does (time-out, abort, dscomm_group_free)
 * may leave a message under way. On backend mpi, and on two_level, MPI may then
 * still read or write the buffers of that work, until the peer has gone on or
 * has ended: do not free or reuse them. Other backends give them back. */
#ifndef DSCOMM_WORK_H
#define DSCOMM_WORK_H

#include <dscomm/p2p.h>
#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until the work is complete and returns its status. A timeout_ms that
 * passes before returns IN_PROGRESS, and the work goes on. May be called again.
 *
 * Time in which a work is waited for or tested, in however many calls, while
 * nothing moves on its group, counts against the group's deadline; what the
 * program does between two of those calls counts for at most a quarter of it.
 * When the deadline has passed the group is revoked, and the call returns
 * ERR_TIMEOUT. Where a thread of the library makes progress
 * (DSCOMM_PROGRESS=thread, dscomm_group_fd()), all time counts: the thread
 * waits for every work. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_wait(dscomm_work_t *work,
                                            int timeout_ms);

/* IN_PROGRESS, or the work's final status; never waits. The group's deadline
 * holds as for dscomm_work_wait(). MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_test(dscomm_work_t *work);

/* Waits until one of count works is complete; *ret_index is its index, the
 * return its status. NULL entries are skipped; ERR_INVALID where all are NULL.
 * IN_PROGRESS after timeout_ms. MT: the works' groups. */
DSCOMM_API dscomm_status_t dscomm_work_wait_any(dscomm_work_t *const *works,
                                                size_t count, int timeout_ms,
                                                size_t *ret_index);

/* Waits until all are complete; NULL entries are skipped. OK, or the first
 * failure in order of the array (all are complete then as well), or IN_PROGRESS
 * after timeout_ms. MT: the works' groups. */
DSCOMM_API dscomm_status_t dscomm_work_wait_all(dscomm_work_t *const *works,
                                                size_t count, int timeout_ms);

/* Frees a work; NULL is fine. One that still runs goes on to its end on its
 * own, and its buffers stay in use until then. MT: group. */
DSCOMM_API void dscomm_work_free(dscomm_work_t *work);

/* Takes back a receive that dscomm_irecv() started, if no message has begun to
 * come for it: its status is ERR_CANCELLED then, its buffer is the caller's
 * again, and a message that comes later is kept for another receive. Else the
 * receive goes on. OK in both cases, and for a work that is complete: what
 * became of it, dscomm_work_wait() tells. ERR_STATE for another operation,
 * ERR_UNSUPPORTED where the backend cannot do it. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_cancel(dscomm_work_t *work);

/* Gives a receive that dscomm_irecv() started a deadline of its own, timeout_ms
 * from now, in place of the group's; see dscomm_recv_within(). When it has
 * passed and somebody waits for the work or tests it, or a thread of the
 * library makes progress, the work ends with ERR_TIMEOUT, and the group goes
 * on. Errors as dscomm_work_cancel(). MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_set_timeout(dscomm_work_t *work,
                                                   int timeout_ms);

/* After a receive: the sender's rank in the group, its tag and the bytes
 * received. Outputs may be NULL. ERR_STATE unless the work is a completed
 * receive. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_received(const dscomm_work_t *work,
                                                int *ret_source, int *ret_tag,
                                                size_t *ret_bytes);

/* The same of one of several: number index of the receives that were coalesced
 * into the work, counted from 0 in the order of their calls, or the only one of
 * another work. ret_info->status tells how that receive ended; the rest counts
 * if that is OK or ERR_TRUNCATED. ERR_INVALID where there is no such receive,
 * ERR_STATE before the work is complete. MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_received_at(
    const dscomm_work_t *work, size_t index, dscomm_message_info_t *ret_info);

/* The group, NULL once it was freed, and the operation's sequence number on it.
 * MT: safe. */
DSCOMM_API dscomm_group_t *dscomm_work_group(const dscomm_work_t *work);
DSCOMM_API uint64_t dscomm_work_sequence(const dscomm_work_t *work);

/* An operation of the caller's own, made of others perhaps. */
typedef struct dscomm_work_ops {
    size_t size; /* of this structure */
    /* Goes on without waiting: IN_PROGRESS until the operation is complete,
     * then its status, whose sentence is dscomm_last_error(). Called once from
     * dscomm_work_create(), then again and again by whoever makes progress on
     * the group, never by two threads at a time. May call what starts, tests,
     * aborts and frees on other groups of the world that are the operation's
     * own, that is, with which nobody waits otherwise; nothing on this one. */
    dscomm_status_t (*advance)(void *state);
    /* The group has ended with status (ERR_ABORTED where it was freed), and so
     * has the work: lets go of state and buffers at once. advance is not called
     * any more. */
    void (*cancel)(void *state, dscomm_status_t status);
} dscomm_work_ops_t;

/* Starts such an operation as a work of group like any other: it can be waited
 * for and freed, and the progress thread sees to it. ops is copied; state stays
 * until advance returns something else than IN_PROGRESS, or cancel. It has no
 * sequence number, matches nothing on other ranks and does not delay blocking
 * collectives; its deadlines are its own. ERR_INVALID if a pointer is NULL,
 * ops->size makes no sense or a member is set that this libdscomm does not
 * know.
 * MT: group. */
DSCOMM_API dscomm_status_t dscomm_work_create(dscomm_group_t *group,
                                              const dscomm_work_ops_t *ops,
                                              void *state,
                                              dscomm_work_t **ret_work);

/* Between begin and end, calls on the group with ret_work == NULL are recorded
 * instead of run; end starts all of them as one operation, whose work it
 * returns, or waits for it where ret_work is NULL. They may run at the same
 * time: none reads or writes memory that another one writes. Collectives start
 * first, then messages, each in their order. Calls that need an answer
 * at once (monitored_barrier, the blob calls) and calls with a work are
 * ERR_STATE in between. A call that is refused is not recorded and does not end
 * the recording. Where one cannot be started, end fails, and those before it go
 * on to their end on their own. MT: group. */
DSCOMM_API dscomm_status_t dscomm_coalesce_begin(dscomm_group_t *group);
DSCOMM_API dscomm_status_t dscomm_coalesce_end(dscomm_group_t *group,
                                               dscomm_work_t **ret_work);

#ifdef __cplusplus
}
#endif

#endif
