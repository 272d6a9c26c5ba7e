/* SPDX-License-Identifier: BSD-3-Clause */
/* Early receives. A run that has not moved for a while posts a receive for the
 * header of every rank, also of those whose turn has not come or never comes.
 * So a rank that was called with something else is known by its call, not only
 * by the message that it fails to send. The diagnosis (diagnosis.h) asks other
 * ranks through the store instead. */
#ifndef LIB_EARLY_H
#define LIB_EARLY_H

#include "lib/schedule/run.h"

#include <stdbool.h>

/* Posts the early receives. Does nothing if run has some already, has ended, or
 * there is no memory. */
void dscomm_priv_early_begin(dscomm_run_t *run);

/* For lib/schedule/run.c, on a run that has early receives. */

/* Whether the message of peer has arrived since the last question. */
bool dscomm_priv_early_arrived(dscomm_run_t *run, int peer);
/* The header of a message that has arrived; false: it has none. */
bool dscomm_priv_early_header(const dscomm_run_t *run, int peer,
                              dscomm_header_t *ret_header);

/* For lib/schedule/run.c, on any run. */

/* The early receive of step's message, which may be complete; it is the run's
 * from now on. NULL: there is none. */
dscomm_request_t *dscomm_priv_early_take(dscomm_run_t *run,
                                         const dscomm_step_t *step);
/* If request, which is complete, is an early receive: copies its message to
 * step's stage and returns 1. */
int dscomm_priv_early_give(dscomm_run_t *run, const dscomm_step_t *step,
                           const dscomm_request_t *request);
/* Cancels the early receives that were not taken. None that was taken may be
 * under way. */
void dscomm_priv_early_end(dscomm_run_t *run);

#endif
