/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a world: the ranks that share one, and their numbers there. */
#ifndef LIB_NODES_H
#define LIB_NODES_H

#include <glib.h>
#include <stdbool.h>

typedef struct {
    int ranks;
    int count; /* nodes */
    int *node; /* of each rank, 0 ... count - 1 */
    int *local; /* of each rank: its number among those of its node */
} dscomm_nodes_t;

/* One rank's host, and the numbers that its launcher gave. */
typedef struct {
    const char *host; /* equal text = can share memory; its first word is the
                         machine's */
    int local_rank, local_size, node_rank; /* -1: the launcher gives none */
} dscomm_locality_t;

/* Groups ranks into nodes. If the launcher's numbers agree with the hosts, or
 * at least with the machines (containers of a machine may be one node), they
 * are kept; else each host is a node, and its ranks are numbered by rank.
 * warning gets a sentence if numbers of a launcher are not kept. */
void dscomm_priv_nodes_find(const dscomm_locality_t *localities, int ranks,
                            dscomm_nodes_t *ret_nodes, GString *warning);
/* All ranks on one node. */
void dscomm_priv_nodes_one(int ranks, dscomm_nodes_t *ret_nodes);

/* As text: comma-separated runs NODE:LOCAL+RANKS of consecutive ranks on a node
 * with consecutive local ranks. read() returns -1 if text is not one for so
 * many ranks. */
char *dscomm_priv_nodes_write(const dscomm_nodes_t *nodes);
int dscomm_priv_nodes_read(const char *text, int ranks,
                           dscomm_nodes_t *ret_nodes);

/* The nodes of members (count ranks of the world), numbered by their first
 * member; local ranks in the order of members. false: no memory, and ret_nodes
 * is all zero. */
bool dscomm_priv_nodes_within(const dscomm_nodes_t *nodes, const int *members,
                              int count, dscomm_nodes_t *ret_nodes);

/* For members[self]: its local rank, in the order of the world's local ranks;
 * the number of members on its node; and its node's rank among the nodes of
 * members, in the order of the world's node ranks. within: the nodes of
 * members, by dscomm_priv_nodes_within(). */
void dscomm_priv_nodes_place(const dscomm_nodes_t *nodes, const int *members,
                             const dscomm_nodes_t *within, int self,
                             int *ret_local_rank, int *ret_local_size,
                             int *ret_node_rank);

void dscomm_priv_nodes_clear(dscomm_nodes_t *nodes);

#endif
