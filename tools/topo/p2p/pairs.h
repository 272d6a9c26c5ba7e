/* SPDX-License-Identifier: BSD-3-Clause */
/* What copies of a list of tensors take between each ordered pair of ends:
 * devices, cores, NUMA nodes or ranks. Times are in microseconds. */
#ifndef TOOLS_TOPO_PAIRS_H
#define TOOLS_TOPO_PAIRS_H

#include <glib.h>
#include <stdbool.h>

/* What is copied, and how often. */
typedef struct {
    guint tensors;
    gsize elements; /* float32, of each tensor */
    guint iterations, warmups; /* for each figure */
} topo_copies_t;

typedef enum {
    TOPO_ALONE, /* one pair at a time */
    TOPO_STAGED, /* the same, through the host, where peer access is possible */
    TOPO_BOTH, /* both directions of one pair at once */
    TOPO_TOGETHER, /* all pairs at once, or as many as have ends of their own */
    TOPO_WAYS
} topo_way_t;

/* How two ends are connected. */
typedef struct {
    char word[12]; /* "NV4", "L3" */
    int distance; /* orders words, nearest first */
    const char *meaning; /* static */
    double limit; /* bytes a second that the path allows; 0: unknown */
} topo_path_t;

typedef struct {
    topo_path_t path;
    double times[TOPO_WAYS]; /* medians, of all tensors; 0: not measured */
    double latency; /* of the smallest copy or message; 0: not measured */
} topo_pair_t;

/* One repetition. */
typedef struct {
    guint from, to;
    topo_way_t way;
    double start, length; /* since the first one's clock began */
} topo_slice_t;

typedef struct {
    char *what; /* the ends, in the plural: "cores" */
    char *how; /* the measured copy, in a sentence */
    topo_copies_t copies;
    guint count;
    char **names; /* of ends; NULL at the end */
    topo_pair_t *pairs; /* count * count, row: from */
    GArray *slices; /* topo_slice_t */
} topo_pairs_t;

/* Takes names. */
topo_pairs_t *topo_pairs_new(const char *what, const char *how, char **names,
                             const topo_copies_t *copies);
void topo_pairs_free(topo_pairs_t *pairs);

topo_pair_t *topo_pair(const topo_pairs_t *pairs, guint from, guint to);
/* Bytes of all tensors. */
gsize topo_copies_bytes(const topo_copies_t *copies);
/* 10^9 bytes a second, of both directions for TOPO_BOTH; 0: not measured. */
double topo_pair_rate(const topo_pairs_t *pairs, guint from, guint to,
                      topo_way_t way);
/* Whether one pair was measured in this way. */
bool topo_pairs_have(const topo_pairs_t *pairs, topo_way_t way);
void topo_slice_add(topo_pairs_t *pairs, guint from, guint to, topo_way_t way,
                    double start, double length);

/* The name of a way in JSON and traces, and in words; static. */
const char *topo_way_name(topo_way_t way);
const char *topo_way_words(topo_way_t way);

/* Sorts values; 0 if there are none. */
double topo_median(double *values, guint count);
/* Monotonic time in microseconds. */
double topo_now(void);

#endif
