/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose the store is that rank 0 serves at the place of a rendezvous. */
#ifndef LIB_HOST_H
#define LIB_HOST_H

#include "lib/rendezvous/rendezvous.h"

/* Whether the store is in rank 0's process. */
int dscomm_priv_join_serves(const dscomm_join_t *join);

/* In a store that a rank 0 serves, from the start: for whom. */
#define DSCOMM_HOST_KEY "dscomm/host"
/* Its value, for g_free(). */
char *dscomm_priv_host_text(const dscomm_join_t *join);

/* Where rank 0 is to serve the store: rank 0 says so in it; ERR_MISMATCH for
 * one of another job, or another world size, after a moment in which that job's
 * rank 0 may leave; and soon where dscomm run serves it. Where an agent is to:
 * ERR_MISMATCH where dscomm run serves it for another run, or a rank 0 does.
 * number is that of the world at this place. */
dscomm_status_t dscomm_priv_host_meet(const dscomm_join_t *join,
                                      dscomm_store_t *store, unsigned number,
                                      int64_t deadline);

/* Rank 0 cannot serve: says whether another rank 0 does, which is told too, or
 * dscomm run. Returns status. */
dscomm_status_t dscomm_priv_host_taken(const dscomm_join_t *join,
                                       dscomm_status_t status);

#endif
