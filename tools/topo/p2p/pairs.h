/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of copies of a list of tensors between each ordered pair of ends:
 * devices, cores, NUMA nodes or ranks. Times are in microseconds. */
#ifndef TOOLS_TOPO_PAIRS_H
#define TOOLS_TOPO_PAIRS_H

#include <glib.h>
#include <stdbool.h>

/* The tensors that are copied, and how often. */
typedef struct {
    guint tensors;
    gsize elements; /* float32, of each tensor */
    guint iterations, warmups; /* for each figure */
    bool traced; /* repetitions are kept */
} topo_copies_t;

typedef enum {
    TOPO_ALONE, /* one pair at a time */
    TOPO_STAGED, /* the same, through the host, where peer access is possible */
    TOPO_BOTH, /* both directions of one pair at once */
    TOPO_TOGETHER, /* all pairs at once, or as many as have ends of their own */
    TOPO_MODES
} topo_mode_t;

/* How two ends are connected. */
typedef struct {
    char word[12]; /* "NV4", "L3" */
    int distance; /* orders words, nearest first */
    const char *meaning; /* static */
    double limit; /* bytes a second that the path allows; 0: unknown */
    bool network; /* it leads to another host */
} topo_path_t;

typedef struct {
    topo_path_t path;
    double times[TOPO_MODES]; /* medians, of all tensors; 0: not measured */
    double spreads[TOPO_MODES]; /* interquartile ranges over medians */
    double latency; /* of the smallest copy or message; 0: not measured */
    double latency_spread; /* as spreads */
} topo_pair_t;

/* One repetition. */
typedef struct {
    guint from, to;
    topo_mode_t mode;
    double start, length; /* since the first one's clock began */
} topo_slice_t;

typedef struct {
    char *what; /* the ends, in the plural: "cores" */
    char *how; /* the measured copy, in a sentence */
    char *host, *time; /* where and when it was measured; UTC */
    const char *hint; /* where to look if a pair is slow; static */
    char *crowd; /* the warning that ends share processors; NULL: they do not */
    topo_copies_t copies;
    guint count;
    char **names; /* of ends; NULL at the end */
    topo_pair_t *pairs; /* count * count, row: from */
    GArray *slices; /* topo_slice_t */
} topo_pairs_t;

/* Takes names. */
topo_pairs_t *topo_pairs_new(const char *what, const char *how,
                             const char *hint, char **names,
                             const topo_copies_t *copies);
void topo_pairs_free(topo_pairs_t *pairs);

topo_pair_t *topo_pair(const topo_pairs_t *pairs, guint from, guint to);
/* Bytes of all tensors. */
gsize topo_copies_bytes(const topo_copies_t *copies);
/* 10^9 bytes a second, of both directions for TOPO_BOTH; 0: not measured. */
double topo_pair_rate(const topo_pairs_t *pairs, guint from, guint to,
                      topo_mode_t mode);
/* Returns a sentence if ends share processors, or figures spread widely, else
 * NULL; g_free(). */
char *topo_pairs_warning(const topo_pairs_t *pairs);
/* Whether one pair was measured in this mode. */
bool topo_pairs_have(const topo_pairs_t *pairs, topo_mode_t mode);
/* Notes a repetition, if copies are traced. */
void topo_slice_add(topo_pairs_t *pairs, guint from, guint to, topo_mode_t mode,
                    double start, double length);

/* The name of a mode in JSON and traces, and in words; static. */
const char *topo_mode_name(topo_mode_t mode);
const char *topo_mode_words(topo_mode_t mode);

/* The byte of which an end's tensors consist, and the number of bytes that are
 * not that of the end from. */
char topo_pattern(guint end);
gsize topo_wrong(const char *bytes, gsize count, guint from);

/* Sorts values; 0 if there are none. *ret_spread, unless it is NULL, is the
 * interquartile range over the median. */
double topo_median(double *values, guint count, double *ret_spread);
/* Monotonic time in microseconds. */
double topo_now(void);

#endif
