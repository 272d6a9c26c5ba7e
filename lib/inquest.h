/* SPDX-License-Identifier: BSD-3-Clause */
/* The inquest: why schedules do not go on. A rank that has waited for a moment
 * puts its account into the world's store, and reads those of the ranks that it
 * waits for; so ranks find out that they make different calls even if none of
 * them sends where another one listens, and a time-out names who is late. A few
 * messages to the store, only where a rank waits for long, each with a short
 * deadline. */
#ifndef LIB_INQUEST_H
#define LIB_INQUEST_H

#include "lib/work.h"

/* A wait of this long is looked into, then each that is twice as long. */
#define INQUEST_MS 100

/* All are called with the group's lock held, for a work that is a schedule.
 * ret_text gets a sentence of at most size - 1 bytes. */

/* ERR_MISMATCH where a rank that is waited for has made another call. */
dscomm_status_t dscomm_priv_inquest_look(dscomm_work_t *work, char *ret_text,
                                         size_t size);
/* After a greeting has shown a mismatch: the same, with all ranks that can be
 * asked, some of which may be about to write their account. */
dscomm_status_t dscomm_priv_inquest_mismatch(dscomm_work_t *work,
                                             char *ret_text, size_t size);
/* At the deadline: the same, else ERR_TIMEOUT with who is waited for and why,
 * or with an empty text. */
dscomm_status_t dscomm_priv_inquest_timeout(dscomm_work_t *work, char *ret_text,
                                            size_t size);

#endif
