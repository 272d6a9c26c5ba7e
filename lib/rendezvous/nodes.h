/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks of a world share a node, and their numbers there. */
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

/* What one rank says. */
typedef struct {
    const char *host; /* equal text = can share memory; its first word is the
                         machine's */
    int local_rank, local_size, node_rank; /* -1: it does not know */
} dscomm_seat_t;

/* Finds out from what ranks say. Where the launcher's numbers agree with the
 * hosts, or at least with the machines (whose containers may be one node), they
 * stay; else hosts are nodes, and their ranks are counted anew. doubt gets a
 * sentence on numbers that were told and are not kept. */
void dscomm_priv_nodes_find(const dscomm_seat_t *seats, int ranks,
                            dscomm_nodes_t *ret_nodes, GString *doubt);
/* All of them on one. */
void dscomm_priv_nodes_one(int ranks, dscomm_nodes_t *ret_nodes);

/* As text, of runs NODE:LOCAL+RANKS of ranks whose numbers follow each other,
 * comma separated; and back, -1 where text makes no sense for so many ranks. */
char *dscomm_priv_nodes_write(const dscomm_nodes_t *nodes);
int dscomm_priv_nodes_read(const char *text, int ranks,
                           dscomm_nodes_t *ret_nodes);

/* The nodes of members (count ranks of the world), numbered anew by their first
 * member; and members by their order. false where there is no memory: ret_nodes
 * is all zero then. */
bool dscomm_priv_nodes_within(const dscomm_nodes_t *nodes, const int *members,
                              int count, dscomm_nodes_t *ret_nodes);

/* For the one of members with index self: its number among those of them on its
 * node, in the order of local numbers; how many these are; and the number of
 * its node among theirs, in the order of node numbers. within: the nodes of
 * members, by dscomm_priv_nodes_within(). */
void dscomm_priv_nodes_place(const dscomm_nodes_t *nodes, const int *members,
                             const dscomm_nodes_t *within, int self,
                             int *ret_local_rank, int *ret_local_size,
                             int *ret_node_rank);

void dscomm_priv_nodes_clear(dscomm_nodes_t *nodes);

#endif
