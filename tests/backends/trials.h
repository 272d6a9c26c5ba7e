/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of two ranks in which something runs out: the k-th request for it within
 * one phase fails, on rank 1 or on rank 0, which serves the store. Calls may
 * fail then; no process may end by a signal, none may hang, the job can be left
 * in good order, and neither a descriptor nor a segment stays.
 *
 *   PROGRAM                      a sample, some of it thinned out
 *   PROGRAM all [PART PARTS]     every k, or a part of them
 *   PROGRAM PHASE                every k of a phase
 *   PROGRAM PHASE RANK K         one, and a backtrace of the request
 */
#ifndef TESTS_BACKENDS_TRIALS_H
#define TESTS_BACKENDS_TRIALS_H

#include <dscomm/store.h>

/* What runs out; the column of the table of phases. */
typedef enum { TRIALS_MEMORY, TRIALS_CALLS, TRIALS_KINDS } trials_kind_t;

/* Counts a request; 1: this one fails. cause is what the status's sentence must
 * then say, of the failed call, or NULL. Nothing here asks for memory. */
int trials_fail(const char *cause);
int trials_main(trials_kind_t kind, int argc, char **argv);

/* The next call of a phase, unless one has failed before. */
#define THEN(call) (status = status ? status : (call))

/* Opens a store, and makes each call once. */
dscomm_status_t trials_use_store(const char *url, int serves);

#endif
