/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms: each turns a collective into a schedule, if it fits. */
#ifndef LIB_ALGORITHM_H
#define LIB_ALGORITHM_H

#include "lib/schedule/schedule.h"

/* One way to carry out one collective. lib/schedule/algorithms/NAME.c gives
 * cost and source. */
typedef struct dscomm_algorithm {
    int coll; /* dscomm_coll_t */
    const char *name;
    /* 1 if the algorithm can carry out args on so many ranks; the result is the
     * same on all ranks. nodes: which ranks share memory; NULL: all do.
     * NULL: always fits. */
    int (*fits)(const dscomm_coll_args_t *args, int ranks,
                const dscomm_nodes_t *nodes);
    void (*build)(dscomm_plan_t *plan);
} dscomm_algorithm_t;

/* The table; it ends with a row whose name is NULL. The number of an algorithm
 * is the index of its row. */
extern const dscomm_algorithm_t dscomm_priv_algorithms[];
int dscomm_priv_algorithm_number(const dscomm_algorithm_t *algorithm);
/* 1 if the algorithm fits only powers of two. */
int dscomm_priv_algorithm_needs_power(const dscomm_algorithm_t *algorithm);
/* 1 if the algorithm fits only two levels of nodes. */
int dscomm_priv_algorithm_needs_levels(const dscomm_algorithm_t *algorithm);
/* The reason why fits refused, "it needs ..."; static text. nodes: as for fits.
 */
const char *dscomm_priv_algorithm_unfit(const dscomm_algorithm_t *algorithm,
                                        const dscomm_nodes_t *nodes);

/* 1 if partial results may be made in the dtype itself. Not for floats of 16
 * and 8 bits, which are rounded once, after all inputs were added; nor for
 * averages of small integers, whose sum needs more bits. */
int dscomm_priv_foldable(const dscomm_coll_args_t *args);

#endif
