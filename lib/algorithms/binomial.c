/* SPDX-License-Identifier: BSD-3-Clause */
/* Binomial tree: whoever has the data passes it on, each time to a rank half as
 * far away; a reduction goes the other way.
 *
 * Cost: ceil(log2 p) rounds of n bytes; pieces of a long buffer follow each
 * other through the tree. Extra memory: broadcast none, reduce some pieces.
 * Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective
 * Communication Operations in MPICH", International Journal of High Performance
 * Computing Applications 19(1), 2005, sections 3 and 4. */
#include "config.h"
#include "lib/algorithms/algorithms.h"
#include "lib/algorithms/blocks.h"

#define PIECE ((size_t)64 << 10)
#define WINDOW 4

/* Ranks are numbered from the root on. A node's children are itself plus each
 * power of two below its lowest set bit. */
typedef struct {
    int number, parent; /* parent: a rank, -1 for the root */
    int reach; /* the lowest set bit; a power of two >= p for the root */
} node_t;

static int rank_of(const dscomm_plan_t *plan, int number)
{
    return (number + plan->args->root) % plan->ranks;
}

static node_t find_node(const dscomm_plan_t *plan)
{
    node_t node = {.parent = -1, .reach = 1};

    node.number = wrap(plan->rank - plan->args->root, plan->ranks);
    while (node.reach < plan->ranks && !(node.number & node.reach))
        node.reach *= 2;
    if (node.number)
        node.parent = rank_of(plan, node.number - node.reach);
    return node;
}

void dscomm_priv_binomial_broadcast(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const node_t node = find_node(plan);
    const size_t pieces = count_pieces(args, args->count, PIECE);

    dscomm_priv_plan_window(plan, WINDOW, 0);
    for (size_t i = 0; i < pieces; i++) {
        piece_t piece = cut(args, args->count, pieces, i);
        dscomm_place_t place = dscomm_priv_at(AT_RECV, piece.offset);

        dscomm_priv_plan_chain(plan);
        if (node.parent >= 0) {
            dscomm_priv_plan_recv(plan, node.parent, place, piece.bytes);
            dscomm_priv_plan_round(plan);
        }
        for (int far = node.reach / 2; far; far /= 2)
            if (node.number + far < plan->ranks)
                dscomm_priv_plan_send(plan, rank_of(plan, node.number + far),
                                      place, piece.bytes);
    }
}

/* One piece: the children's partial results, near ones first, then on to the
 * parent. */
static void reduce_piece(dscomm_plan_t *plan, const node_t *node,
                         const piece_t *piece, size_t room)
{
    const dscomm_place_t slot = dscomm_priv_plan_slot(plan);
    const dscomm_place_t came = dscomm_priv_beyond(slot, room);
    dscomm_place_t own = dscomm_priv_at(AT_SEND, piece->offset);
    dscomm_place_t sum =
        node->parent < 0 ? dscomm_priv_at(AT_RECV, piece->offset) : slot;

    if (plan->args->op == DSCOMM_PREMUL_SUM) {
        dscomm_priv_plan_load(plan, sum, own, piece->count);
        own = sum;
    }
    for (int far = 1; far < node->reach; far *= 2) {
        int child = node->number + far;
        int last = node->parent < 0 && 2 * far >= plan->ranks;

        if (child >= plan->ranks)
            break;
        dscomm_priv_plan_recv(plan, rank_of(plan, child), came, piece->bytes);
        dscomm_priv_plan_round(plan);
        dscomm_priv_plan_fold(plan, sum, own, came, piece->count, last);
        own = sum;
    }
    if (node->parent >= 0)
        dscomm_priv_plan_send(plan, node->parent, own, piece->bytes);
}

void dscomm_priv_binomial_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const node_t node = find_node(plan);
    const size_t pieces = count_pieces(args, args->count, PIECE);
    const size_t room = aligned(cut(args, args->count, pieces, 0).bytes);

    dscomm_priv_plan_window(plan, WINDOW, 2 * room);
    for (size_t i = 0; i < pieces; i++) {
        piece_t piece = cut(args, args->count, pieces, i);

        dscomm_priv_plan_chain(plan);
        reduce_piece(plan, &node, &piece, room);
    }
}
