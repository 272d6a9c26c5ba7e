/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks whose processes are stopped (SIGSTOP, a debugger): a cause of time-outs
 * that only the kernel of their machine knows. */
#ifndef LIB_STOPPED_H
#define LIB_STOPPED_H

#include "lib/rendezvous/rendezvous.h"

/* Appends "; rank 3 (pid 812) is stopped by a signal" to text for each of the
 * given ranks of the world that is stopped on this machine, and for rank 0
 * where it serves the store. Text that is too long is cut off. Asks the store
 * for pids, a fraction of a second at most; one that does not answer is not
 * asked, and the text says so. */
void dscomm_priv_stopped_append(const dscomm_meeting_t *meeting,
                                const int *world_ranks, int count, char *text,
                                size_t size);

/* Replaces the sentence of a call that has passed its deadline, status
 * ERR_TIMEOUT, if the store does not answer: that is the cause then, and what a
 * rank knows of others may be out of date. prefix, "group 'world': " or "",
 * begins the new one; by_rank_0: rank 0 serves the store. Returns status. */
dscomm_status_t dscomm_priv_stopped_store(const dscomm_store_t *store,
                                          bool by_rank_0, const char *prefix,
                                          dscomm_status_t status);

#endif
