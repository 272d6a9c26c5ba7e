/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the algorithms, for the table in
 * lib/schedule/algorithm.c. */
#ifndef LIB_ALGORITHMS_ALGORITHMS_H
#define LIB_ALGORITHMS_ALGORITHMS_H

#include "lib/schedule/algorithm.h"

void dscomm_priv_binomial_broadcast(dscomm_plan_t *plan);
void dscomm_priv_binomial_reduce(dscomm_plan_t *plan);
void dscomm_priv_binomial_gather(dscomm_plan_t *plan);
void dscomm_priv_binomial_scatter(dscomm_plan_t *plan);

void dscomm_priv_bruck_all_reduce(dscomm_plan_t *plan);
void dscomm_priv_bruck_all_gather(dscomm_plan_t *plan);
void dscomm_priv_bruck_all_to_all(dscomm_plan_t *plan);

void dscomm_priv_chain_broadcast(dscomm_plan_t *plan);
void dscomm_priv_chain_reduce(dscomm_plan_t *plan);

void dscomm_priv_dissemination_barrier(dscomm_plan_t *plan);

void dscomm_priv_halving_doubling_all_reduce(dscomm_plan_t *plan);
void dscomm_priv_halving_doubling_reduce(dscomm_plan_t *plan);
void dscomm_priv_halving_doubling_reduce_scatter(dscomm_plan_t *plan);

void dscomm_priv_knomial_broadcast(dscomm_plan_t *plan);
void dscomm_priv_knomial_reduce(dscomm_plan_t *plan);

void dscomm_priv_linear_broadcast(dscomm_plan_t *plan);
void dscomm_priv_linear_reduce(dscomm_plan_t *plan);
void dscomm_priv_linear_all_reduce(dscomm_plan_t *plan);
void dscomm_priv_linear_all_gather(dscomm_plan_t *plan);
void dscomm_priv_linear_gather(dscomm_plan_t *plan);
void dscomm_priv_linear_scatter(dscomm_plan_t *plan);
void dscomm_priv_linear_all_to_all(dscomm_plan_t *plan);
void dscomm_priv_linear_barrier(dscomm_plan_t *plan);

void dscomm_priv_pairwise_all_reduce(dscomm_plan_t *plan);
void dscomm_priv_pairwise_reduce(dscomm_plan_t *plan);
void dscomm_priv_pairwise_reduce_scatter(dscomm_plan_t *plan);
void dscomm_priv_pairwise_all_to_all(dscomm_plan_t *plan);

void dscomm_priv_recursive_doubling_all_reduce(dscomm_plan_t *plan);
void dscomm_priv_recursive_doubling_all_gather(dscomm_plan_t *plan);

void dscomm_priv_ring_all_reduce(dscomm_plan_t *plan);
void dscomm_priv_ring_all_gather(dscomm_plan_t *plan);
void dscomm_priv_ring_reduce_scatter(dscomm_plan_t *plan);

void dscomm_priv_scatter_all_gather_broadcast(dscomm_plan_t *plan);

void dscomm_priv_tree_all_reduce(dscomm_plan_t *plan);

#endif
