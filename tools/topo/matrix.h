/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees as text for a terminal, and as JSON. */
#ifndef TOOLS_TOPO_MATRIX_H
#define TOOLS_TOPO_MATRIX_H

#include "tools/topo/tree.h"

/* Append devices, NUMA nodes, the matrix, and what its words mean. */
void topo_text(const topo_tree_t *tree, GString *text);
void topo_json(const topo_tree_t *tree, GString *text);

#endif
