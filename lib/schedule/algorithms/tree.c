/* SPDX-License-Identifier: BSD-3-Clause */
/* Tree: the data is reduced to rank 0 and broadcast from there, up and down a
 * k-nomial tree of radix 4.
 *
 * Cost: 2 ceil(log4 p) rounds, in each of which a node handles up to 3 messages
 * of n bytes, and 2 (p - 1) messages in all, which is the least there is: what
 * recursive doubling does with p log2 p. Pieces of a long buffer follow each
 * other. Extra memory: some pieces. Source: as knomial.c; Thakur, Rabenseifner,
 * Gropp, "Optimization of Collective Communication Operations in MPICH",
 * International Journal of High Performance Computing Applications 19(1), 2005,
 * section 4.1 (reduce and broadcast). */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/knomial.h"

#define PIECE ((size_t)64 << 10)
#define WINDOW 4

void dscomm_priv_tree_all_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const dscomm_knomial_t node = dscomm_priv_knomial(plan, KNOMIAL_RADIX, 0);
    const size_t pieces = count_pieces(args, args->count, PIECE);
    const size_t room = aligned(cut(args, args->count, pieces, 0).bytes);

    dscomm_priv_plan_window(plan, WINDOW, (KNOMIAL_RADIX - 1) * room);
    for (size_t i = 0; i < pieces; i++) {
        piece_t piece = cut(args, args->count, pieces, i);
        dscomm_place_t result = dscomm_priv_at(AT_RECV, piece.offset);

        dscomm_priv_plan_chain(plan);
        dscomm_priv_knomial_up(plan, &node, &piece, result,
                               dscomm_priv_plan_slot(plan), room);
        dscomm_priv_plan_round(plan);
        dscomm_priv_knomial_down(plan, &node, result, piece.bytes);
    }
}
