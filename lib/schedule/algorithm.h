/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms: what turns a collective into a schedule, and which one serves
 * when. */
#ifndef LIB_ALGORITHM_H
#define LIB_ALGORITHM_H

#include "lib/schedule/schedule.h"

/* One way to carry out one collective. Cost and source stand at the head of
 * lib/schedule/algorithms/NAME.c. */
typedef struct dscomm_algorithm {
    int coll; /* dscomm_coll_t */
    const char *name;
    /* 1 where it can carry out args on so many ranks, on nodes, which is NULL
     * where there are not two levels of them; the same answer on all of them.
     * NULL: always. */
    int (*fits)(const dscomm_coll_args_t *args, int ranks,
                const dscomm_nodes_t *nodes);
    void (*build)(dscomm_plan_t *plan);
} dscomm_algorithm_t;

/* All of them; ends with a row whose name is NULL. Numbers are rows. */
extern const dscomm_algorithm_t dscomm_priv_algorithms[];
int dscomm_priv_algorithm_number(const dscomm_algorithm_t *algorithm);
/* 1: it fits powers of two only. */
int dscomm_priv_algorithm_needs_power(const dscomm_algorithm_t *algorithm);
/* 1: it fits two levels of nodes only. */
int dscomm_priv_algorithm_needs_levels(const dscomm_algorithm_t *algorithm);
/* Why an algorithm whose fits refused cannot serve: static, "it needs ...".
 * nodes: as fits got them. */
const char *dscomm_priv_algorithm_unfit(const dscomm_algorithm_t *algorithm,
                                        const dscomm_nodes_t *nodes);

/* 1 where partial results may be made in the dtype itself and folded on: not
 * for floats of 16 and 8 bits, which are rounded once, when all inputs have
 * been added, nor for averages of small integers, whose sum needs more
 * bits. */
int dscomm_priv_foldable(const dscomm_coll_args_t *args);

#endif
