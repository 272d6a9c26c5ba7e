/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that the store at the rendezvous belongs to this job. */
#ifndef LIB_HOST_H
#define LIB_HOST_H

#include "lib/rendezvous/rendezvous.h"

/* 1 if rank 0's process serves the store. */
int dscomm_priv_join_serves(const dscomm_join_t *join);

/* Key that describes the world of a store that rank 0 serves. It is there from
 * the start. */
#define DSCOMM_HOST_KEY "dscomm/host"
/* Its value, for g_free(). */
char *dscomm_priv_host_text(const dscomm_join_t *join);

/* Checks the store of world number at this address. If rank 0 serves it:
 * ERR_MISMATCH if the store is of another job or another world size, after a
 * moment in which that job may end, or of dscomm run. If an agent serves it:
 * ERR_MISMATCH if dscomm run serves it for another run, or a rank 0 does. */
dscomm_status_t dscomm_priv_host_meet(const dscomm_join_t *join,
                                      dscomm_store_t *store, unsigned number,
                                      int64_t deadline);

/* Called if rank 0 cannot serve: makes the sentence, which names another rank 0
 * or dscomm run if one serves there; another rank 0 is notified, too. Returns
 * status. */
dscomm_status_t dscomm_priv_host_taken(const dscomm_join_t *join,
                                       dscomm_status_t status);

#endif
