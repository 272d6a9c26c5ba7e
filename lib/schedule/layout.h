/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of a group: which of its ranks each node has. */
#ifndef LIB_LAYOUT_H
#define LIB_LAYOUT_H

#include "lib/rendezvous/nodes.h"

#include <stddef.h>

typedef struct {
    int ranks, nodes;
    /* the node of each rank; nodes are ordered by their first ranks */
    int *node;
    int *local; /* the number of each rank in its node */
    int *order; /* the ranks, node by node */
    int *size; /* the number of ranks of each node */
    int *first; /* where each node's ranks begin in order */
    bool even; /* all nodes have equally many ranks */
    bool sorted; /* order is 0, 1, ... */
    size_t *counts, *displs; /* ranks entries each, for temporary use */
} dscomm_layout_t;

/* nodes: NULL if all ranks are on one. False: no memory. *ret_layout must be
 * cleared in any case. */
bool dscomm_priv_layout_init(const dscomm_nodes_t *nodes, int ranks,
                             dscomm_layout_t *ret_layout);
void dscomm_priv_layout_clear(dscomm_layout_t *layout);

#endif
