/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of trees. */
#ifndef TOOLS_TOPO_PICTURE_H
#define TOOLS_TOPO_PICTURE_H

#include "tools/topo/tree.h"

/* Appends a graph for Graphviz. */
void topo_dot(const topo_tree_t *tree, GString *text);
/* Appends the matrix as a heat map in SVG. */
void topo_svg(const topo_tree_t *tree, GString *text);

#endif
