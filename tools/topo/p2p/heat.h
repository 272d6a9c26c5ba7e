/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat maps of pairs. */
#ifndef TOOLS_TOPO_HEAT_H
#define TOOLS_TOPO_HEAT_H

#include "tools/topo/p2p/pairs.h"

/* Draws a matrix of each kind of figures of a list of topo_pairs_t, and the
 * explanations, in the picture path. Returns NULL, or a sentence, g_free(). */
char *topo_heat(const GPtrArray *list, const char *path);

#endif
