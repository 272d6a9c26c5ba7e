/* SPDX-License-Identifier: BSD-3-Clause */
/* The diagnosis: why schedules do not go on, and collectives of a backend that
 * has no blocking ones, so that all are known here. A rank that has waited for
 * a moment puts its account into the world's store, and reads those of the
 * ranks that it waits for. Only that finds
 * - a mismatch of ranks that wait without sending to each other,
 * - one in an earlier call, which everybody came through,
 * - who has called the same as most, and whom a time-out is due to.
 * It hears nothing of a rank that does not wait: it has no account. Of such a
 * rank, if it was called with something else and has gone on, there is just the
 * header that it has sent to a rank that does not expect one. That is what a
 * run listens for (listen.h), which needs no store. */
#ifndef LIB_DIAGNOSIS_H
#define LIB_DIAGNOSIS_H

#include "lib/work/work.h"

typedef struct dscomm_diagnosis dscomm_diagnosis_t;

/* With the group's lock held: what this rank has to say of work, which is such
 * a collective. The group's memory stays as long as there is the diagnosis.
 * NULL where there is no store. */
dscomm_diagnosis_t *dscomm_priv_diagnosis_new(const dscomm_work_t *work);
void dscomm_priv_diagnosis_free(dscomm_diagnosis_t *diagnosis);

/* The store may let one wait for up to 750 ms in all, so these are called
 * without the group's lock, which they have no use for; what was true in the
 * beginning need not be so in the end, except that a mismatch remains one.
 * ret_text gets a sentence of at most size - 1 bytes, or is left as it is. */

/* ERR_MISMATCH where a rank that is waited for has made another call. */
dscomm_status_t dscomm_priv_diagnosis_look(dscomm_diagnosis_t *diagnosis,
                                           char *ret_text, size_t size);
/* At the deadline: the same; else OK, and who is late if that is known. */
dscomm_status_t dscomm_priv_diagnosis_timeout(dscomm_diagnosis_t *diagnosis,
                                              char *ret_text, size_t size);
/* After a header has shown a mismatch: the same as the first, with all ranks
 * that can be asked, some of which may be about to write their account. Here
 * the caller keeps the lock: the group is at its end, and whoever got the lock
 * meanwhile would have to wait for the sentence. */
dscomm_status_t dscomm_priv_diagnosis_mismatch(dscomm_diagnosis_t *diagnosis,
                                               char *ret_text, size_t size);

/* In a monitored barrier, to which ranks have not come: ERR_MISMATCH where one
 * of them has called a collective that this rank has not called. It may have
 * been to the barrier before and gone on: the caller makes sure that it has no
 * message of it. Asks the store, until end at most. */
dscomm_status_t dscomm_priv_diagnosis_barrier(dscomm_group_t *group,
                                              const int *ranks, int count,
                                              int64_t end, char *ret_text,
                                              size_t size);

#endif
