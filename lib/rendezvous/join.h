/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank joins the others of its world. */
#ifndef LIB_JOIN_H
#define LIB_JOIN_H

#include "lib/rendezvous/join-decision.h"
#include "lib/rendezvous/processes.h"
#include "lib/rendezvous/rendezvous.h"
#include "lib/rendezvous/roster.h"

/* One attempt of this rank to join its world. */
typedef struct {
    const dscomm_join_t *join;
    dscomm_roster_t roster; /* by dscomm_priv_join_roster() */
    dscomm_store_t *base; /* the whole store: its server's reports are outside
                             the world's keys */
    const char *world; /* the world's name in messages */
    const char *token; /* identifies this call: dscomm_priv_roster_token() */
    /* The token of the last call of this process and rank that failed, or "" */
    const char *before;
    dscomm_processes_t *processes; /* learns who rank 0 is */
    /* Becomes 1 if another attempt cannot succeed: the status is rank 0's
     * decision, or rank 0 was there and has ended. */
    int final;
} dscomm_attempt_t;

/* Exchanges records through the store; returns what rank 0 decided. */
dscomm_status_t dscomm_priv_join(dscomm_attempt_t *attempt,
                                 dscomm_join_decision_t *ret_decision);

/* The roster of a world's ranks; store: view of the world's keys. */
dscomm_roster_t dscomm_priv_join_roster(dscomm_store_t *store, int rank,
                                        int size, int64_t deadline);

/* Each rank that has come has set the key that consists of prefix and its
 * number. Returns OK if all have, else ERR_TIMEOUT with the numbers of the
 * missing ranks that were found within half a second. *ret_came: number of
 * ranks that are known to be there. */
dscomm_status_t dscomm_priv_missing_ranks(dscomm_store_t *store,
                                          const char *prefix, int size,
                                          int timeout_ms, int *ret_came);

#endif
