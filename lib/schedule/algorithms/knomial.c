/* SPDX-License-Identifier: BSD-3-Clause */
/* K-nomial tree, of radix 4: like the binomial one, but flatter; a node has up
 * to three children in each round.
 *
 * Cost: ceil(log4 p) rounds, in each of which a node handles up to 3 messages
 * of n bytes; pieces of a long buffer follow each other through the tree. Extra
 * memory: broadcast none, reduce some pieces.
 * Source: Almási, Heidelberger, Archer, Martorell, Erway, Moreira,
 * Steinmacher-Burow, Zheng, "Optimization of MPI Collective Communication on
 * BlueGene/L Systems", ICS 2005; the binomial tree is its radix 2. */
#include "config.h"
#include "lib/schedule/algorithms/knomial.h"
#include "lib/schedule/algorithms/algorithms.h"

#define PIECE ((size_t)64 << 10)
#define WINDOW 4

static int knomial_rank(const dscomm_plan_t *plan, const dscomm_knomial_t *node,
                        int number)
{
    return (number + node->root) % plan->ranks;
}

dscomm_knomial_t dscomm_priv_knomial(const dscomm_plan_t *plan, int radix,
                                     int root)
{
    dscomm_knomial_t node = {
        .radix = radix, .root = root, .parent = -1, .reach = 1};

    node.number = wrap(plan->rank - root, plan->ranks);
    while (node.reach < plan->ranks && node.number / node.reach % radix == 0)
        node.reach *= radix;
    if (node.number) {
        int digit = node.number / node.reach % radix;

        node.parent =
            knomial_rank(plan, &node, node.number - digit * node.reach);
    }
    return node;
}

void dscomm_priv_knomial_down(dscomm_plan_t *plan, const dscomm_knomial_t *node,
                              dscomm_place_t place, size_t bytes)
{
    if (node->parent >= 0) {
        dscomm_priv_plan_recv(plan, node->parent, place, bytes);
        dscomm_priv_plan_round(plan);
    }
    for (int far = node->reach / node->radix; far; far /= node->radix)
        for (int digit = 1; digit < node->radix; digit++) {
            int child = node->number + digit * far;

            if (child < plan->ranks)
                dscomm_priv_plan_send(plan, knomial_rank(plan, node, child),
                                      place, bytes);
        }
}

/* Folds own with the data of the children, which are far, 2 far, ... away. */
static dscomm_place_t knomial_join(dscomm_plan_t *plan,
                                   const dscomm_knomial_t *node,
                                   const piece_t *piece, dscomm_place_t own,
                                   dscomm_place_t sum, dscomm_place_t slot,
                                   size_t room, int far)
{
    const int last = node->parent < 0 && far * node->radix >= plan->ranks;
    dscomm_place_t from[KNOMIAL_RADIX] = {own};
    const uint32_t most = (uint32_t)node->radix;
    uint32_t nfrom = 1;

    for (int child = node->number + far; nfrom < most && child < plan->ranks;
         child += far) {
        from[nfrom] = dscomm_priv_beyond(slot, (nfrom - 1) * room);
        dscomm_priv_plan_recv(plan, knomial_rank(plan, node, child),
                              from[nfrom], piece->bytes);
        nfrom++;
    }
    if (nfrom == 1)
        return own;
    dscomm_priv_plan_round(plan);
    dscomm_priv_plan_reduce(plan, sum, from, nfrom, piece->count, last);
    return sum;
}

void dscomm_priv_knomial_up(dscomm_plan_t *plan, const dscomm_knomial_t *node,
                            const piece_t *piece, dscomm_place_t sum,
                            dscomm_place_t slot, size_t room)
{
    dscomm_place_t own = dscomm_priv_at(AT_SEND, piece->offset);

    if (plan->args->op == DSCOMM_PREMUL_SUM) {
        dscomm_priv_plan_load(plan, sum, own, piece->count);
        own = sum;
    }
    for (int far = 1; far < node->reach; far *= node->radix)
        own = knomial_join(plan, node, piece, own, sum, slot, room, far);
    if (node->parent >= 0)
        dscomm_priv_plan_send(plan, node->parent, own, piece->bytes);
}

void dscomm_priv_knomial_send_down(dscomm_plan_t *plan, int radix)
{
    const dscomm_coll_args_t *args = plan->args;
    const dscomm_knomial_t node = dscomm_priv_knomial(plan, radix, args->root);
    const size_t pieces = count_pieces(args, args->count, PIECE);

    dscomm_priv_plan_window(plan, WINDOW, 0);
    for (size_t i = 0; i < pieces; i++) {
        piece_t piece = cut(args, args->count, pieces, i);

        dscomm_priv_plan_chain(plan);
        dscomm_priv_knomial_down(
            plan, &node, dscomm_priv_at(AT_RECV, piece.offset), piece.bytes);
    }
}

void dscomm_priv_knomial_fold_up(dscomm_plan_t *plan, int radix)
{
    const dscomm_coll_args_t *args = plan->args;
    const dscomm_knomial_t node = dscomm_priv_knomial(plan, radix, args->root);
    const size_t pieces = count_pieces(args, args->count, PIECE);
    const size_t room = aligned(cut(args, args->count, pieces, 0).bytes);
    const size_t others = (size_t)radix - 1; /* messages at a time */

    dscomm_priv_plan_window(plan, WINDOW, (others + 1) * room);
    for (size_t i = 0; i < pieces; i++) {
        piece_t piece = cut(args, args->count, pieces, i);
        dscomm_place_t slot, sum;

        dscomm_priv_plan_chain(plan);
        slot = dscomm_priv_plan_slot(plan);
        sum = node.parent < 0 ? dscomm_priv_at(AT_RECV, piece.offset)
                              : dscomm_priv_beyond(slot, others * room);
        dscomm_priv_knomial_up(plan, &node, &piece, sum, slot, room);
    }
}

void dscomm_priv_knomial_broadcast(dscomm_plan_t *plan)
{
    dscomm_priv_knomial_send_down(plan, KNOMIAL_RADIX);
}

void dscomm_priv_knomial_reduce(dscomm_plan_t *plan)
{
    dscomm_priv_knomial_fold_up(plan, KNOMIAL_RADIX);
}
