/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter and all-gather: the root's buffer is cut into a part for every rank;
 * parts go down a binomial tree, and then round a ring.
 *
 * Cost: ceil(log2 p) + p - 1 rounds; a rank gets n bytes once, the root
 * nothing; the root sends (p - 1) / p of n in each of the two parts, no other
 * rank more: about twice the time of one message of n bytes, whatever p.
 * Several pieces of a long buffer are under way. No extra memory.
 * Source: Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, "Interprocessor
 * Collective Communication Library (InterCom)", Scalable High Performance
 * Computing Conference 1994; Thakur, Rabenseifner, Gropp, "Optimization of
 * Collective Communication Operations in MPICH", International Journal of High
 * Performance Computing Applications 19(1), 2005. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"

#define PIECE ((size_t)64 << 10)
#define WINDOW 4

/* Ranks are numbered from the root on. */
static int scatter_rank(const dscomm_plan_t *plan, int number)
{
    return (number + plan->args->root) % plan->ranks;
}

/* The size of the subtree of number: its lowest set bit. */
static int reach_of(const dscomm_plan_t *plan, int number)
{
    int reach = 1;

    while (reach < plan->ranks && !(number & reach))
        reach *= 2;
    return reach;
}

/* After the scatter, number has the parts from its own up to this one,
 * excluded. */
static int scatter_parts_end(const dscomm_plan_t *plan, int number)
{
    return MIN(number + reach_of(plan, number), plan->ranks);
}

/* The parts first ... end - 1 of a piece. */
static piece_t piece_parts(const dscomm_plan_t *plan, const piece_t *piece,
                           int first, int end)
{
    const size_t ranks = (size_t)plan->ranks;
    const size_t element = plan->args->element;
    size_t from = dscomm_priv_part_start(piece->count, ranks, (size_t)first);
    size_t to = dscomm_priv_part_start(piece->count, ranks, (size_t)end);

    return (piece_t){from, to - from, piece->offset + from * element,
                     (to - from) * element};
}

static void piece_scatter(dscomm_plan_t *plan, const piece_t *piece, int number)
{
    const int reach = reach_of(plan, number);

    if (number) {
        piece_t own =
            piece_parts(plan, piece, number, scatter_parts_end(plan, number));

        dscomm_priv_plan_recv(plan, scatter_rank(plan, number - reach),
                              dscomm_priv_at(AT_RECV, own.offset), own.bytes);
        dscomm_priv_plan_round(plan);
    }
    for (int far = reach / 2; far; far /= 2) {
        const int child = number + far;

        if (child < plan->ranks) {
            piece_t part =
                piece_parts(plan, piece, child, scatter_parts_end(plan, child));

            dscomm_priv_plan_send(plan, scatter_rank(plan, child),
                                  dscomm_priv_at(AT_RECV, part.offset),
                                  part.bytes);
        }
    }
    dscomm_priv_plan_round(plan);
}

/* A rank is not sent the parts that it has from the scatter. */
static void scatter_all_gather(dscomm_plan_t *plan, const piece_t *piece,
                               int number)
{
    const int next = (number + 1) % plan->ranks;
    const int end = scatter_parts_end(plan, number),
              next_end = scatter_parts_end(plan, next);

    for (int s = 0; s < plan->ranks - 1; s++) {
        const int out = wrap(number - s, plan->ranks);
        const int in = wrap(number - s - 1, plan->ranks);
        piece_t sent = piece_parts(plan, piece, out, out + 1);
        piece_t got = piece_parts(plan, piece, in, in + 1);

        if (in < number || in >= end)
            dscomm_priv_plan_recv(
                plan, scatter_rank(plan, wrap(number - 1, plan->ranks)),
                dscomm_priv_at(AT_RECV, got.offset), got.bytes);
        if (out < next || out >= next_end)
            dscomm_priv_plan_send(plan, scatter_rank(plan, next),
                                  dscomm_priv_at(AT_RECV, sent.offset),
                                  sent.bytes);
        dscomm_priv_plan_round(plan);
    }
}

void dscomm_priv_scatter_all_gather_broadcast(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const int number = wrap(plan->rank - args->root, plan->ranks);
    const size_t pieces =
        count_pieces(args, args->count, PIECE * (size_t)plan->ranks);

    dscomm_priv_plan_window(plan, WINDOW, 0);
    for (size_t i = 0; i < pieces; i++) {
        piece_t piece = cut(args, args->count, pieces, i);

        dscomm_priv_plan_chain(plan);
        piece_scatter(plan, &piece, number);
        scatter_all_gather(plan, &piece, number);
    }
}
