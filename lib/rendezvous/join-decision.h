/* SPDX-License-Identifier: BSD-3-Clause */
/* What rank 0 decides for all ranks of a world, from their records. */
#ifndef LIB_JOIN_DECISION_H
#define LIB_JOIN_DECISION_H

#include "lib/base/node.h"
#include "lib/rendezvous/record.h"
#include "lib/rendezvous/rendezvous.h"

/* What rank 0 decides for all. */
typedef struct {
    const dscomm_module_t *module; /* the backend */
    dscomm_nodes_t nodes;
    dscomm_nodes_t hosts; /* the ranks that share memory */
    int oversubscribed; /* ranks outnumber processors on a machine */
    int64_t pid; /* of rank 0 */
    /* of rank 0, as in its record */
    char node[DSCOMM_NODE_MAX], host[DSCOMM_HOST_ID_MAX];
} dscomm_join_decision_t;

void dscomm_priv_join_decision_clear(dscomm_join_decision_t *decision);

/* As text, for g_free(); or as the text of a failure. */
char *dscomm_priv_join_decision_write(const dscomm_join_decision_t *decision);
char *dscomm_priv_join_decision_write_failure(dscomm_status_t status,
                                              const char *sentence);
/* And back. Fails with what the text tells of a failure, or if it tells of
 * another size of the world, or makes no sense. */
dscomm_status_t
dscomm_priv_join_decision_read(const dscomm_join_t *join, const char *text,
                               dscomm_join_decision_t *ret_decision);

/* In a world's keys: why it can never meet, as the text of a failure. Rank 0,
 * as long as it waits for others, makes that its decision. */
#define DSCOMM_JOIN_WRONG "wrong"

/* Puts this thread's last error into store, as the text of a failure with
 * status; it stays the last error. Returns status. */
dscomm_status_t dscomm_priv_join_decision_put_failure(dscomm_store_t *store,
                                                      const char *key,
                                                      dscomm_status_t status);

/* The backend for these ranks, or why there is none. */
dscomm_status_t dscomm_priv_choose_backend(const dscomm_record_t *records,
                                           int count, int oversubscribed,
                                           const dscomm_module_t **ret_module);
/* All that rank 0, this process, decides for them; the caller clears it. */
dscomm_status_t dscomm_priv_decide(const dscomm_record_t *records, int size,
                                   dscomm_join_decision_t *ret_decision);

#endif
