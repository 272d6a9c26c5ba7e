/* SPDX-License-Identifier: BSD-3-Clause */
/* Early receives. A run without progress for a while posts a receive for the
 * header of every rank, also of ranks whose step comes later or never. So a
 * rank that has made another call is found by its header, not only by the lack
 * of its message. The diagnosis (diagnosis.h) reads reports from the store
 * instead. */
#ifndef LIB_EARLY_H
#define LIB_EARLY_H

#include "lib/schedule/run.h"

#include <stdbool.h>

/* Posts the early receives. Does nothing if run has them already or has ended,
 * or if there is no memory. */
void dscomm_priv_early_begin(dscomm_run_t *run);

/* For lib/schedule/run.c, on a run that has early receives. */

/* True if the message of peer has arrived since the last call. */
bool dscomm_priv_early_arrived(dscomm_run_t *run, int peer);
/* Reads the header of a message that has arrived; false: it has none. */
bool dscomm_priv_early_header(const dscomm_run_t *run, int peer,
                              dscomm_header_t *ret_header);

/* For lib/schedule/run.c, on any run. */

/* Returns the early receive of step's message, for the run to complete; it may
 * be complete already. NULL: there is none. */
dscomm_request_t *dscomm_priv_early_take(dscomm_run_t *run,
                                         const dscomm_step_t *step);
/* If request, which is complete, is an early receive: copies its message to
 * step's stage and returns 1. */
int dscomm_priv_early_give(dscomm_run_t *run, const dscomm_step_t *step,
                           const dscomm_request_t *request);
/* Cancels the early receives that no step has taken. No receive that was taken
 * may be in progress. */
void dscomm_priv_early_end(dscomm_run_t *run);

#endif
