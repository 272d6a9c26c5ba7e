/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of two ranks in which a resource runs out: the k-th request for it
 * within one phase fails, on rank 1 or on rank 0, which serves the store. Calls
 * may then fail. But no process may end by a signal, none may hang, every rank
 * can leave in order, and neither a descriptor nor a segment may be left.
 *
 *   PROGRAM                      a sample, thinned out in some phases
 *   PROGRAM all [PART PARTS]     every k, or a part of them
 *   PROGRAM PHASE                every k of a phase
 *   PROGRAM PHASE RANK K         one k, with a backtrace of the request */
#ifndef TESTS_BACKENDS_TRIALS_H
#define TESTS_BACKENDS_TRIALS_H

#include <dscomm/store.h>

/* The resource; selects the column in the table of phases. */
typedef enum { TRIALS_MEMORY, TRIALS_CALLS, TRIALS_KINDS } trials_kind_t;

/* Counts a request; returns 1 if it fails. cause: what the sentence of the
 * status must then contain about the failed call, or NULL. Allocates no
 * memory. */
int trials_fail(const char *cause);
int trials_main(trials_kind_t kind, int argc, char **argv);

/* The next call of a phase; skipped after a failure. */
#define THEN(call) (status = status ? status : (call))

/* Opens a store, and makes each call once. */
dscomm_status_t trials_use_store(const char *url, int serves);

#endif
