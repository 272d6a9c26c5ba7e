/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of alternatives, measured in turn in several rounds, and what follows
 * from them. */
#ifndef TOOLS_TUNE_TIMES_H
#define TOOLS_TUNE_TIMES_H

#include <glib.h>
#include <stdbool.h>

/* Sizes that are measured: one for each class of sizes, which reaches from half
 * of the size to half of the next one. */
#define TUNE_CLASSES 6
#define TUNE_SMALLEST ((gsize)128)
#define TUNE_FACTOR 8
/* The least number of rounds from which something follows. */
#define TUNE_ROUNDS_MIN 3

/* Times of figures. Alternative 0 is that with which others are compared. */
typedef struct {
    gsize alternatives, figures, rounds;
    GArray *values; /* doubles, in microseconds; NAN: not measured */
} tune_times_t;

void tune_times_init(tune_times_t *times, gsize alternatives, gsize figures);
void tune_times_clear(tune_times_t *times);

/* Begins a round, in which nothing is measured yet. */
void tune_times_begin(tune_times_t *times);
/* Sets a time of the last round. */
void tune_times_set(tune_times_t *times, gsize alternative, gsize figure,
                    double time);

/* The gain by an alternative. */
typedef struct {
    double before, after; /* medians, in microseconds */
    /* The median over rounds of before / after of one round, and the value that
     * three quarters of the rounds reach. */
    double ratio, low;
    gsize rounds; /* in which both were measured; 0: the rest is 0 */
} tune_gain_t;

/* The gain in one figure. */
tune_gain_t tune_gain(const tune_times_t *times, gsize alternative,
                      gsize figure);
/* The gain in several figures, which the alternative may lack in part, by
 * geometric means. *ret_worst: the smallest ratio of a figure. */
tune_gain_t tune_gain_mean(const tune_times_t *times, gsize alternative,
                           const bool *figures, double *ret_worst);
/* Whether it is more than 5 %, and a gain in three quarters of the rounds. */
bool tune_gain_is_clear(const tune_gain_t *gain);

/* Size and limits of a class; both limits are included. */
gsize tune_class_size(gsize size_class);
gsize tune_class_from(gsize size_class);
gsize tune_class_to(gsize size_class);
/* The class of a row of dscomm perf, whose size may be rounded down. */
gsize tune_class_of(gsize bytes);

/* Appends rules of DSCOMM_ALGORITHM for groups of so many ranks of backend:
 * adjacent classes with the same algorithm make one. algorithms: of each class;
 * NULL: no rule. sized: false for a collective without a size, which has class
 * 0 only. */
void tune_rules_append(GString *text, const char *collective,
                       const char *backend, int ranks, bool sized,
                       const char *const algorithms[TUNE_CLASSES]);

#endif
