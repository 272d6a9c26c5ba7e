/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of trees. */
#ifndef TOOLS_TOPO_PICTURE_H
#define TOOLS_TOPO_PICTURE_H

#include "tools/topo/tree.h"

/* Appends a graph for Graphviz. */
void topo_dot(const topo_tree_t *tree, GString *text);
/* Draws the matrix in the picture path. Returns NULL, or a sentence,
 * g_free(). */
char *topo_picture(const topo_tree_t *tree, const char *path);

#endif
