/* SPDX-License-Identifier: BSD-3-Clause */
/* The decision of rank 0 for all ranks of a world, from their records. */
#ifndef LIB_JOIN_DECISION_H
#define LIB_JOIN_DECISION_H

#include "lib/base/node.h"
#include "lib/rendezvous/record.h"
#include "lib/rendezvous/rendezvous.h"
#include "lib/rendezvous/standby.h"

/* The decision of rank 0 for all ranks. */
typedef struct {
    const dscomm_module_t *module; /* the backend */
    /* the backend between nodes of groups with two levels, which groups of any
     * world may have: unless a setting names one, the world's own if that was
     * asked for by name */
    char between[DSCOMM_BETWEEN_MAX];
    dscomm_nodes_t nodes;
    dscomm_nodes_t hosts; /* the ranks that share memory */
    int oversubscribed; /* ranks outnumber processors on a machine */
    int64_t pid; /* of rank 0 */
    char world[DSCOMM_WORLD_ID]; /* its identity */
    /* of rank 0, as in its record */
    char node[DSCOMM_NODE_MAX], host[DSCOMM_HOST_ID_MAX];
    char standby_text[DSCOMM_STANDBY_MAX]; /* see standby.h */
    dscomm_store_t *standby; /* this rank's; NULL: none */
} dscomm_join_decision_t;

void dscomm_priv_join_decision_clear(dscomm_join_decision_t *decision);

/* The decision as text, for g_free(). */
char *dscomm_priv_join_decision_write(const dscomm_join_decision_t *decision);
/* Reads a decision. Fails with the failure that the text has, or if the text
 * has another world size or is malformed. */
dscomm_status_t
dscomm_priv_join_decision_read(const dscomm_join_t *join, const char *text,
                               dscomm_join_decision_t *ret_decision);

/* Key of a world: why its start-up must fail, as the text of a failure. While
 * rank 0 waits for others, it publishes that as its decision. */
#define DSCOMM_JOIN_WRONG "wrong"

/* Puts this thread's last error into store, as the text of a failure with
 * status; it stays the last error. Then it waits until so many ranks have
 * counted up the key read, because the store may end with this process; NULL:
 * for none. Returns status. */
dscomm_status_t dscomm_priv_join_decision_put_failure(dscomm_store_t *store,
                                                      const char *key,
                                                      dscomm_status_t status,
                                                      const char *read,
                                                      int readers);

/* Sets the backends of a decision for these ranks, of which it has
 * oversubscribed; fails if there is none. */
dscomm_status_t dscomm_priv_choose_backend(const dscomm_record_t *records,
                                           int count,
                                           dscomm_join_decision_t *decision);
/* Makes the whole decision, on rank 0; the caller clears it. */
dscomm_status_t dscomm_priv_decide(const dscomm_record_t *records, int size,
                                   dscomm_join_decision_t *ret_decision);

#endif
