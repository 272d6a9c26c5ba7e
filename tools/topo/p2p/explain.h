/* SPDX-License-Identifier: BSD-3-Clause */
/* Why copies between pairs differ. */
#ifndef TOOLS_TOPO_EXPLAIN_H
#define TOOLS_TOPO_EXPLAIN_H

#include "tools/topo/p2p/pairs.h"

/* Pairs of different ends that are connected in one mode. */
typedef struct {
    const topo_path_t *path; /* of the pairs */
    guint count; /* pairs */
    guint from, to; /* the pair in the middle, by time */
    double time; /* of that pair */
    double usual; /* what a pair is compared with */
    double ratio; /* of the times of this class and the nearest one */
    char *sentence;
} topo_class_t;

/* A pair that takes much longer than others of its class, or much less. */
typedef struct {
    guint from, to;
    double ratio; /* of its time and the class's */
    char *sentence;
} topo_outlier_t;

typedef struct {
    GArray *classes; /* topo_class_t, nearest first */
    GArray *outliers; /* topo_outlier_t */
} topo_explanation_t;

topo_explanation_t *topo_explain(const topo_pairs_t *pairs);
void topo_explanation_free(topo_explanation_t *explanation);

/* "4.5 ms"; g_free(). */
char *topo_time_text(double time);

#endif
