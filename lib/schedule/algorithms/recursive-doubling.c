/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive doubling: in round k ranks 2^k apart exchange what they have. If p
 * is not a power of two, the first ranks form pairs, and one of each pair acts
 * for both.
 *
 * Cost: all_reduce: floor(log2 p) rounds of n bytes each way, and 2 more where
 * p is no power of two; n bytes of extra memory. all_gather, of a power of two
 * of ranks only: log2 p rounds, in all (p - 1) / p of the gathered bytes each
 * way, which is the least there is; no extra memory. Source: Thakur,
 * Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
 * MPICH", International Journal of High Performance Computing Applications
 * 19(1), 2005. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"
#include "lib/schedule/algorithms/fold.h"

/* Folds own with what peer sent; the lower rank's part comes first. */
static void doubling_join(dscomm_plan_t *plan, dscomm_place_t own,
                          dscomm_place_t came, int peer, int final)
{
    dscomm_place_t result = dscomm_priv_at(AT_RECV, 0);
    int first = plan->rank < peer;

    dscomm_priv_plan_fold(plan, result, first ? own : came, first ? came : own,
                          plan->args->count, final);
}

void dscomm_priv_recursive_doubling_all_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t bytes = args->count * args->element;
    const fold_t world = fold(plan->rank, plan->ranks);
    const dscomm_place_t result = dscomm_priv_at(AT_RECV, 0);
    const dscomm_place_t came = dscomm_priv_plan_scratch(plan, bytes);
    dscomm_place_t own = dscomm_priv_at(AT_SEND, 0);
    const int paired = fold_paired(&world, plan->rank);
    const int partner = plan->rank ^ 1;

    if (args->op == DSCOMM_PREMUL_SUM) {
        dscomm_priv_plan_load(plan, result, own, args->count);
        own = result;
    }
    if (world.number < 0) {
        dscomm_priv_plan_send(plan, partner, own, bytes);
        dscomm_priv_plan_round(plan);
        dscomm_priv_plan_recv(plan, partner, result, bytes);
        return;
    }
    if (paired) {
        dscomm_priv_plan_recv(plan, partner, came, bytes);
        dscomm_priv_plan_round(plan);
        doubling_join(plan, own, came, partner, 0);
        own = result;
    }
    for (int distance = 1; distance < world.power; distance *= 2) {
        int peer = fold_rank(&world, world.number ^ distance);

        dscomm_priv_plan_send(plan, peer, own, bytes);
        dscomm_priv_plan_recv(plan, peer, came, bytes);
        dscomm_priv_plan_round(plan);
        doubling_join(plan, own, came, peer, 2 * distance == world.power);
        own = result;
    }
    if (paired)
        dscomm_priv_plan_send(plan, partner, result, bytes);
}

void dscomm_priv_recursive_doubling_all_gather(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t bytes = args->count * args->element;

    dscomm_priv_plan_copy(plan, recv_block(args, plan->rank),
                          dscomm_priv_at(AT_SEND, 0), bytes);
    for (int distance = 1; distance < plan->ranks; distance *= 2) {
        const int peer = plan->rank ^ distance;
        const int first = plan->rank & -distance;

        dscomm_priv_plan_recv(plan, peer, recv_block(args, first ^ distance),
                              (size_t)distance * bytes);
        dscomm_priv_plan_send(plan, peer, recv_block(args, first),
                              (size_t)distance * bytes);
        dscomm_priv_plan_round(plan);
    }
}
