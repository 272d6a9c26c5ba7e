/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of algorithms. */
#include "config.h"
#include "lib/schedule/algorithm.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/hierarchical.h"

#include <stdbool.h>

int dscomm_priv_foldable(const dscomm_coll_args_t *args)
{
    const int narrow =
        args->dtype == DSCOMM_FLOAT16 || args->dtype == DSCOMM_BFLOAT16 ||
        args->dtype == DSCOMM_FLOAT8_E4M3 || args->dtype == DSCOMM_FLOAT8_E5M2;
    const int exact = args->op == DSCOMM_MIN || args->op == DSCOMM_MAX;

    if (args->user)
        return args->user->commutative;
    if (args->op == DSCOMM_AVG && args->dtype <= DSCOMM_UINT32)
        return 0;
    return !narrow || exact;
}

static int algorithm_folds(const dscomm_coll_args_t *args, int ranks,
                           const dscomm_nodes_t *nodes)
{
    (void)ranks, (void)nodes;
    return dscomm_priv_foldable(args);
}

static int is_power(const dscomm_coll_args_t *args, int ranks,
                    const dscomm_nodes_t *nodes)
{
    (void)args, (void)nodes;
    return !(ranks & (ranks - 1));
}

static bool are_levels(const dscomm_nodes_t *nodes)
{
    return nodes && nodes->count < nodes->ranks;
}

static int has_levels(const dscomm_coll_args_t *args, int ranks,
                      const dscomm_nodes_t *nodes)
{
    (void)args, (void)ranks;
    return are_levels(nodes);
}

static int folds_on_levels(const dscomm_coll_args_t *args, int ranks,
                           const dscomm_nodes_t *nodes)
{
    (void)ranks;
    return are_levels(nodes) && dscomm_priv_foldable(args);
}

#define COLL(name) DSCOMM_COLL_##name

/* The table. For each collective, the first row that fits serves if the table
 * of choices has none. */
const dscomm_algorithm_t dscomm_priv_algorithms[] = {
    {COLL(BROADCAST), "binomial", NULL, dscomm_priv_binomial_broadcast},
    {COLL(BROADCAST), "linear", NULL, dscomm_priv_linear_broadcast},
    {COLL(BROADCAST), "knomial", NULL, dscomm_priv_knomial_broadcast},
    {COLL(BROADCAST), "chain", NULL, dscomm_priv_chain_broadcast},
    {COLL(BROADCAST), "scatter_all_gather", NULL,
     dscomm_priv_scatter_all_gather_broadcast},
    {COLL(BROADCAST), "two_level", has_levels, dscomm_priv_hierarchical_build},
    {COLL(REDUCE), "linear", NULL, dscomm_priv_linear_reduce},
    {COLL(REDUCE), "pairwise", NULL, dscomm_priv_pairwise_reduce},
    {COLL(REDUCE), "binomial", algorithm_folds, dscomm_priv_binomial_reduce},
    {COLL(REDUCE), "knomial", algorithm_folds, dscomm_priv_knomial_reduce},
    {COLL(REDUCE), "chain", algorithm_folds, dscomm_priv_chain_reduce},
    {COLL(REDUCE), "halving_doubling", algorithm_folds,
     dscomm_priv_halving_doubling_reduce},
    {COLL(REDUCE), "two_level", folds_on_levels,
     dscomm_priv_hierarchical_build},
    {COLL(ALL_REDUCE), "pairwise", NULL, dscomm_priv_pairwise_all_reduce},
    {COLL(ALL_REDUCE), "linear", NULL, dscomm_priv_linear_all_reduce},
    {COLL(ALL_REDUCE), "bruck", NULL, dscomm_priv_bruck_all_reduce},
    {COLL(ALL_REDUCE), "recursive_doubling", algorithm_folds,
     dscomm_priv_recursive_doubling_all_reduce},
    {COLL(ALL_REDUCE), "tree", algorithm_folds, dscomm_priv_tree_all_reduce},
    {COLL(ALL_REDUCE), "ring", algorithm_folds, dscomm_priv_ring_all_reduce},
    {COLL(ALL_REDUCE), "halving_doubling", algorithm_folds,
     dscomm_priv_halving_doubling_all_reduce},
    {COLL(ALL_REDUCE), "two_level", folds_on_levels,
     dscomm_priv_hierarchical_build},
    {COLL(ALL_GATHER), "ring", NULL, dscomm_priv_ring_all_gather},
    {COLL(ALL_GATHER), "linear", NULL, dscomm_priv_linear_all_gather},
    {COLL(ALL_GATHER), "bruck", NULL, dscomm_priv_bruck_all_gather},
    {COLL(ALL_GATHER), "recursive_doubling", is_power,
     dscomm_priv_recursive_doubling_all_gather},
    {COLL(ALL_GATHER), "two_level", has_levels, dscomm_priv_hierarchical_build},
    {COLL(ALL_GATHER_V), "ring", NULL, dscomm_priv_ring_all_gather},
    {COLL(ALL_GATHER_V), "linear", NULL, dscomm_priv_linear_all_gather},
    {COLL(ALL_GATHER_V), "bruck", NULL, dscomm_priv_bruck_all_gather},
    {COLL(REDUCE_SCATTER), "pairwise", NULL,
     dscomm_priv_pairwise_reduce_scatter},
    {COLL(REDUCE_SCATTER), "ring", algorithm_folds,
     dscomm_priv_ring_reduce_scatter},
    {COLL(REDUCE_SCATTER), "halving_doubling", algorithm_folds,
     dscomm_priv_halving_doubling_reduce_scatter},
    {COLL(REDUCE_SCATTER), "two_level", folds_on_levels,
     dscomm_priv_hierarchical_build},
    {COLL(REDUCE_SCATTER_V), "pairwise", NULL,
     dscomm_priv_pairwise_reduce_scatter},
    {COLL(REDUCE_SCATTER_V), "ring", algorithm_folds,
     dscomm_priv_ring_reduce_scatter},
    {COLL(REDUCE_SCATTER_V), "halving_doubling", algorithm_folds,
     dscomm_priv_halving_doubling_reduce_scatter},
    {COLL(GATHER), "linear", NULL, dscomm_priv_linear_gather},
    {COLL(GATHER), "binomial", NULL, dscomm_priv_binomial_gather},
    {COLL(GATHER_V), "linear", NULL, dscomm_priv_linear_gather},
    {COLL(SCATTER), "linear", NULL, dscomm_priv_linear_scatter},
    {COLL(SCATTER), "binomial", NULL, dscomm_priv_binomial_scatter},
    {COLL(SCATTER_V), "linear", NULL, dscomm_priv_linear_scatter},
    {COLL(ALL_TO_ALL), "pairwise", NULL, dscomm_priv_pairwise_all_to_all},
    {COLL(ALL_TO_ALL), "linear", NULL, dscomm_priv_linear_all_to_all},
    {COLL(ALL_TO_ALL), "bruck", NULL, dscomm_priv_bruck_all_to_all},
    {COLL(ALL_TO_ALL_V), "pairwise", NULL, dscomm_priv_pairwise_all_to_all},
    {COLL(ALL_TO_ALL_V), "linear", NULL, dscomm_priv_linear_all_to_all},
    {COLL(BARRIER), "dissemination", NULL, dscomm_priv_dissemination_barrier},
    {COLL(BARRIER), "linear", NULL, dscomm_priv_linear_barrier},
    {COLL(BARRIER), "two_level", has_levels, dscomm_priv_hierarchical_build},
    {0, NULL, NULL, NULL},
};

int dscomm_priv_algorithm_number(const dscomm_algorithm_t *algorithm)
{
    return (int)(algorithm - dscomm_priv_algorithms);
}

int dscomm_priv_algorithm_needs_power(const dscomm_algorithm_t *algorithm)
{
    return algorithm->fits == is_power;
}

int dscomm_priv_algorithm_needs_levels(const dscomm_algorithm_t *algorithm)
{
    return algorithm->fits == has_levels || algorithm->fits == folds_on_levels;
}

const char *dscomm_priv_algorithm_unfit(const dscomm_algorithm_t *algorithm,
                                        const dscomm_nodes_t *nodes)
{
    if (algorithm->fits == is_power)
        return "it needs as many ranks as a power of two";
    if (!are_levels(nodes) && dscomm_priv_algorithm_needs_levels(algorithm))
        return "it needs several nodes, and several ranks on some of them";
    return "it needs a type and an operator whose partial results are exact "
           "enough, or a commutative operator of the program's own";
}
