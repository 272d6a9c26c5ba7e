/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of pairs as text, as JSON, and as a trace. */
#ifndef TOOLS_TOPO_WRITE_H
#define TOOLS_TOPO_WRITE_H

#include "tools/topo/p2p/pairs.h"

/* list: topo_pairs_t. */

/* Appends matrices and explanations; coloured: rates by a terminal's
 * colours. */
void topo_pairs_text(const GPtrArray *list, bool coloured, GString *text);
void topo_pairs_json(const GPtrArray *list, GString *text);
/* Appends a trace for Chrome and Perfetto: a process for each end, and in it a
 * thread for each end that copies go to. */
void topo_pairs_trace(const GPtrArray *list, GString *text);

/* How a rate compares with others of its matrix: 1, the fastest, to 0, the
 * slowest, or half of the fastest if none is slower than that; on a logarithmic
 * scale. */
double topo_rate_level(const topo_pairs_t *pairs, topo_way_t way, double rate);

#endif
