/* SPDX-License-Identifier: BSD-3-Clause */
/* The diagnosis finds why a schedule makes no progress. A rank that waited for
 * a moment writes a report into the world's store: its last calls, and the
 * ranks that it waits for. It reads the reports of those ranks. Only reports
 * can show
 * - a mismatch between ranks that wait and do not send to each other,
 * - a mismatch in an earlier call that no rank had to wait in,
 * - which call most ranks have made, and which rank caused a time-out.
 * A rank that does not wait writes no report. If such a rank has made another
 * call and has gone on, the only trace is the message header that it sent to a
 * rank which does not expect one. Early receives find that header (early.h),
 * without the store. */
#ifndef LIB_DIAGNOSIS_H
#define LIB_DIAGNOSIS_H

#include "lib/work/work.h"

typedef struct dscomm_diagnosis dscomm_diagnosis_t;

/* Makes the diagnosis of work, which must be a schedule, with this rank's
 * report. Called with the group's lock held. The diagnosis keeps the
 * group's memory. NULL if the world has no store, or there is no memory. */
dscomm_diagnosis_t *dscomm_priv_diagnosis_new(const dscomm_work_t *work);
void dscomm_priv_diagnosis_free(dscomm_diagnosis_t *diagnosis);

/* The next functions wait for the store, up to 750 ms in all, so they are
 * called without the group's lock. The state of the group may change meanwhile;
 * but a mismatch, once found, stays true. *ret_failure is the record of the
 * mismatch. */

/* Returns ERR_MISMATCH if a rank that this one waits for has made another call,
 * else OK. */
dscomm_status_t dscomm_priv_diagnosis_look(dscomm_diagnosis_t *diagnosis,
                                           dscomm_failure_t *ret_failure);
/* As above, at the deadline; if the result is OK, and it is known which ranks
 * are late, one that most likely waits for no other becomes the culprit of
 * *ret_failure, a record of the group, and its detail names them. */
dscomm_status_t dscomm_priv_diagnosis_timeout(dscomm_diagnosis_t *diagnosis,
                                              dscomm_failure_t *ret_failure);
/* As the first, after a header has shown a mismatch: reads the reports of more
 * ranks, and waits GRACE_MS, or VOTE_MS if no call has a majority, for reports
 * that are about to be written. peer: the header's sender if a call before this
 * one differs, else -1; its report is waited for up to 2 s. The caller keeps
 * the group's lock: the group is being revoked, and another thread with the
 * lock could only wait for the sentence. */
dscomm_status_t dscomm_priv_diagnosis_mismatch(dscomm_diagnosis_t *diagnosis,
                                               int peer,
                                               dscomm_failure_t *ret_failure);

/* For a monitored barrier in which ranks are missing: ERR_MISMATCH if one of
 * them has called a collective that this rank has not called. Such a rank may
 * have passed the barrier before; the caller must make sure that it has no
 * message of that rank. Waits for the store until end (ns) at most. */
dscomm_status_t dscomm_priv_diagnosis_barrier(dscomm_group_t *group,
                                              const int *ranks, int count,
                                              int64_t end,
                                              dscomm_failure_t *ret_failure);

#endif
