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

/* The rates of a matrix that differ, for levels of them: 1, the fastest, to 0,
 * the slowest, or half of the fastest if none is slower than that; on a
 * logarithmic scale. */
typedef struct {
    double low, high; /* 0: nothing was measured */
} topo_rates_t;

topo_rates_t topo_rates(const topo_pairs_t *pairs, topo_mode_t mode);
double topo_rates_level(const topo_rates_t *rates, double rate);

#endif
