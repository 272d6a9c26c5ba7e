/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree: a rank that has the data forwards it, each time to a rank half
 * as far away; reductions and gathers go the other way.
 *
 * Cost: ceil(log2 p) rounds. Broadcast and reduce: of n bytes; pieces of a long
 * buffer follow each other through the tree. Gather and scatter, with n bytes a
 * rank: the root handles (p - 1) n, others up to half of it. Extra memory:
 * broadcast none, reduce some pieces, gather and scatter up to p n / 2. Source:
 * Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
 * Operations in MPICH", International Journal of High Performance Computing
 * Applications 19(1), 2005. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/knomial.h"

static int binomial_rank(const dscomm_plan_t *plan, int number)
{
    return (number + plan->args->root) % plan->ranks;
}

static dscomm_knomial_t binomial_find_node(const dscomm_plan_t *plan)
{
    return dscomm_priv_knomial(plan, 2, plan->args->root);
}

void dscomm_priv_binomial_broadcast(dscomm_plan_t *plan)
{
    dscomm_priv_knomial_send_down(plan, 2);
}

void dscomm_priv_binomial_reduce(dscomm_plan_t *plan)
{
    dscomm_priv_knomial_fold_up(plan, 2);
}

/* Number of ranks in the subtree of number, itself included; they have
 * consecutive numbers. */
static int subtree_size(const dscomm_plan_t *plan, int number, int reach)
{
    return MIN(reach, plan->ranks - number);
}

/* Finds the root's blocks of the count ranks from first on. If they wrap around
 * the end of the buffer, *ret_place is scratch instead, and 1 is returned. */
static int place_blocks(dscomm_plan_t *plan, dscomm_place_t buffer, int first,
                        int count, dscomm_place_t *ret_place)
{
    const size_t bytes = plan->args->count * plan->args->element;
    const int wraps = first + count > plan->ranks;

    *ret_place = wraps ? dscomm_priv_plan_scratch(plan, (size_t)count * bytes)
                       : dscomm_priv_beyond(buffer, (size_t)first * bytes);
    return wraps;
}

/* Copies the blocks from first on, between the root's buffer and scratch. */
static void copy_blocks(dscomm_plan_t *plan, int first, int count,
                        dscomm_place_t scratch, int to_scratch)
{
    const size_t bytes = plan->args->count * plan->args->element;
    const size_t before = (size_t)(plan->ranks - first) * bytes;
    const int at = to_scratch ? AT_SEND : AT_RECV;
    const dscomm_place_t upper = dscomm_priv_at(at, (size_t)first * bytes);
    const dscomm_place_t lower = dscomm_priv_at(at, 0);
    const dscomm_place_t rest = dscomm_priv_beyond(scratch, before);
    const size_t after = (size_t)count * bytes - before;

    dscomm_priv_plan_copy(plan, to_scratch ? scratch : upper,
                          to_scratch ? upper : scratch, before);
    dscomm_priv_plan_copy(plan, to_scratch ? rest : lower,
                          to_scratch ? lower : rest, after);
}

static void gather_at_root(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t bytes = args->count * args->element;
    int first = 0, count = 0; /* blocks that wrap around */
    dscomm_place_t wrapped = {0};

    for (int far = 1; far < plan->ranks; far *= 2) {
        const int child = binomial_rank(plan, far),
                  all = subtree_size(plan, far, far);
        dscomm_place_t place;

        if (place_blocks(plan, dscomm_priv_at(AT_RECV, 0), child, all,
                         &place)) {
            first = child;
            count = all;
            wrapped = place;
        }
        dscomm_priv_plan_recv(plan, child, place, (size_t)all * bytes);
    }
    dscomm_priv_plan_copy(plan, recv_block(args, plan->rank),
                          dscomm_priv_at(AT_SEND, 0), bytes);
    dscomm_priv_plan_round(plan);
    if (count)
        copy_blocks(plan, first, count, wrapped, 0);
}

void dscomm_priv_binomial_gather(dscomm_plan_t *plan)
{
    const dscomm_knomial_t node = binomial_find_node(plan);
    const int all = subtree_size(plan, node.number, node.reach);
    const size_t bytes = plan->args->count * plan->args->element;
    dscomm_place_t own = dscomm_priv_at(AT_SEND, 0), place = own;

    if (node.parent < 0) {
        gather_at_root(plan);
        return;
    }
    if (all > 1) {
        place = dscomm_priv_plan_scratch(plan, (size_t)all * bytes);
        dscomm_priv_plan_copy(plan, place, own, bytes);
    }
    for (int far = 1; far < all; far *= 2)
        dscomm_priv_plan_recv(
            plan, binomial_rank(plan, node.number + far),
            dscomm_priv_beyond(place, (size_t)far * bytes),
            (size_t)subtree_size(plan, node.number + far, far) * bytes);
    dscomm_priv_plan_round(plan);
    dscomm_priv_plan_send(plan, node.parent, place, (size_t)all * bytes);
}

static void scatter_at_root(dscomm_plan_t *plan, int reach)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t bytes = args->count * args->element;

    for (int far = reach / 2; far; far /= 2) {
        const int child = binomial_rank(plan, far),
                  all = subtree_size(plan, far, far);
        dscomm_place_t place;

        if (place_blocks(plan, dscomm_priv_at(AT_SEND, 0), child, all, &place))
            copy_blocks(plan, child, all, place, 1);
        dscomm_priv_plan_send(plan, child, place, (size_t)all * bytes);
    }
    dscomm_priv_plan_copy(plan, dscomm_priv_at(AT_RECV, 0),
                          send_block(args, plan->rank), bytes);
}

void dscomm_priv_binomial_scatter(dscomm_plan_t *plan)
{
    const dscomm_knomial_t node = binomial_find_node(plan);
    const int all = subtree_size(plan, node.number, node.reach);
    const size_t bytes = plan->args->count * plan->args->element;
    dscomm_place_t own = dscomm_priv_at(AT_RECV, 0), place = own;

    if (node.parent < 0) {
        scatter_at_root(plan, node.reach);
        return;
    }
    if (all > 1)
        place = dscomm_priv_plan_scratch(plan, (size_t)all * bytes);
    dscomm_priv_plan_recv(plan, node.parent, place, (size_t)all * bytes);
    dscomm_priv_plan_round(plan);
    for (int far = node.reach / 2; far; far /= 2)
        if (far < all)
            dscomm_priv_plan_send(
                plan, binomial_rank(plan, node.number + far),
                dscomm_priv_beyond(place, (size_t)far * bytes),
                (size_t)subtree_size(plan, node.number + far, far) * bytes);
    if (all > 1)
        dscomm_priv_plan_copy(plan, own, place, bytes);
}
