/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of a group: which of its ranks each node has. */
#ifndef LIB_LAYOUT_H
#define LIB_LAYOUT_H

#include "lib/rendezvous/nodes.h"

#include <stddef.h>

typedef struct {
    int ranks, nodes;
    int *node; /* of each rank; nodes are numbered by their first ranks */
    int *local; /* of each rank: its number among those of its node */
    int *order; /* the ranks, node by node */
    int *size; /* of each node: its ranks */
    int *first; /* of each node: where its ranks begin in order */
    bool even; /* all nodes have equally many ranks */
    bool sorted; /* order is 0, 1, ... */
    size_t *counts, *displs; /* ranks entries, for whoever needs some */
} dscomm_layout_t;

/* nodes: NULL if all ranks are on one. Returns false if there is no memory;
 * *ret_layout is to be cleared in any case. */
bool dscomm_priv_layout_init(const dscomm_nodes_t *nodes, int ranks,
                             dscomm_layout_t *ret_layout);
void dscomm_priv_layout_clear(dscomm_layout_t *layout);

#endif
