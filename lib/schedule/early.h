/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run does that has not moved for a while: it hears message headers also
 * from ranks whose turn has not come, or never comes. So a rank that was called
 * with something else is known by its call, not only by what it fails to send.
 * What a diagnosis (diagnosis.h) finds is something else. */
#ifndef LIB_LISTEN_H
#define LIB_LISTEN_H

#include "lib/schedule/run.h"

/* From now on run hears message headers from all ranks. Does nothing where it
 * hears already, has ended or memory is short. */
void dscomm_priv_run_listen(dscomm_run_t *run);

/* For lib/schedule/run.c. What has been heard since, which may make the run
 * fail; returns how many messages. */
unsigned dscomm_priv_listen_advance(dscomm_run_t *run);
/* The run comes to step, a receive of a header: the request that receives it
 * already, or has done so, which is the run's from now on; NULL: there is
 * none. */
dscomm_request_t *dscomm_priv_listen_take(dscomm_run_t *run,
                                          const dscomm_step_t *step);
/* request is complete: where it was taken, puts what came into step's stage and
 * returns 1. */
int dscomm_priv_listen_give(dscomm_run_t *run, const dscomm_step_t *step,
                            const dscomm_request_t *request);
/* Hears no more; anything not taken is forgotten. None of what was is under
 * way. */
void dscomm_priv_listen_end(dscomm_run_t *run);

#endif
