/* SPDX-License-Identifier: BSD-3-Clause */
/* The k-nomial tree, for data that goes up or down; with radix 2 it is the
 * binomial tree. */
#ifndef LIB_ALGORITHMS_KNOMIAL_H
#define LIB_ALGORITHMS_KNOMIAL_H

#include "lib/schedule/algorithms/blocks.h"

#define KNOMIAL_RADIX 4 /* of knomial and tree; no tree has more */

/* Ranks are numbered from the root on. The children of a node have its number
 * plus 1, 2, ... radix - 1 times each power of radix below reach. */
typedef struct {
    int radix, root;
    int number, parent; /* parent: a rank, -1 for the root */
    int reach; /* the weight of the number's lowest digit that is not 0; for the
                  root a power of radix >= p */
} dscomm_knomial_t;

dscomm_knomial_t dscomm_priv_knomial(const dscomm_plan_t *plan, int radix,
                                     int root);
/* Sends bytes at place from the root to all ranks. */
void dscomm_priv_knomial_down(dscomm_plan_t *plan, const dscomm_knomial_t *node,
                              dscomm_place_t place, size_t bytes);
/* Folds each rank's piece of AT_SEND into sum of the root; other ranks use
 * theirs for partial results. slot has radix - 1 times room bytes. */
void dscomm_priv_knomial_up(dscomm_plan_t *plan, const dscomm_knomial_t *node,
                            const piece_t *piece, dscomm_place_t sum,
                            dscomm_place_t slot, size_t room);

/* The collectives broadcast and reduce, with the root of the arguments, in
 * pieces. */
void dscomm_priv_knomial_send_down(dscomm_plan_t *plan, int radix);
void dscomm_priv_knomial_fold_up(dscomm_plan_t *plan, int radix);

#endif
