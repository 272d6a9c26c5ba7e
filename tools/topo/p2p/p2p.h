/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm topo --p2p`: measures, and writes what was measured. */
#ifndef TOOLS_TOPO_P2P_H
#define TOOLS_TOPO_P2P_H

#include "tools/topo/p2p/pairs.h"
#include "tools/topo/tree.h"

#define TOPO_NOT_GIVEN G_MININT

/* The options; TOPO_NOT_GIVEN and NULL: not given. */
typedef struct {
    const char *command; /* begins sentences */
    gboolean host, ranks; /* else between devices */
    int rank_count; /* -n */
    int tensors, iterations, warmups, most;
    gint64 elements;
    char *backend, *trace, *output, *format;
    const topo_tree_t *tree; /* of the devices; NULL with host or ranks */
} topo_p2p_t;

/* words: the command line, for ranks that are started. Returns the exit
 * status. */
int topo_p2p(topo_p2p_t *options, char **words);

#endif
