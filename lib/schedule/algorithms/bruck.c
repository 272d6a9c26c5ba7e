/* SPDX-License-Identifier: BSD-3-Clause */
/* Bruck: in round k every rank exchanges messages with the ranks 2^k before and
 * after it, and forwards, in one message, all data for ranks beyond. The number
 * of rounds is the minimum for any number of ranks. all_reduce gathers all
 * inputs and folds them in rank order, so it takes every dtype and operator.
 *
 * Cost: ceil(log2 p) rounds. all_gather(_v): (p - 1) / p of the gathered bytes
 * each way, which is the least there is; all_reduce with n bytes a rank: (p -
 * 1) n; all_to_all with n bytes for each rank: at most n p / 2 a round, so half
 * of log2 p times the least. Extra memory: as much as is gathered; all_to_all n
 * p / 2 for each round and once more. Source: Bruck, Ho, Kipnis, Upfal,
 * Weathersby, "Efficient Algorithms for All-to-All Communications in Multiport
 * Message-Passing Systems", IEEE Transactions on Parallel and Distributed
 * Systems 8(11), 1997. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"

#define PIECE ((size_t)64 << 10)
#define WINDOW 2

/* With PREMUL_SUM: exchanges the factors of count ranks from first on. */
static void exchange_factors(dscomm_plan_t *plan, int peer, int first,
                             int count, int receive)
{
    while (plan->args->op == DSCOMM_PREMUL_SUM && count) {
        const int run = MIN(count, plan->ranks - first);
        const size_t bytes = (size_t)run * sizeof(double);
        dscomm_place_t place = dscomm_priv_plan_factor(plan, first);

        if (receive)
            dscomm_priv_plan_recv(plan, peer, place, bytes);
        else
            dscomm_priv_plan_send(plan, peer, place, bytes);
        first = (first + run) % plan->ranks;
        count -= run;
    }
}

/* Gathers the blocks of all ranks by messages. They come to place in the order
 * of ranks from this one on, with wrap-around. starts[i]: offset of the i-th
 * block in bytes. */
static void bruck_collect(dscomm_plan_t *plan, dscomm_place_t place,
                          const size_t *starts)
{
    for (int have = 1; have < plan->ranks; have *= 2) {
        const int count = MIN(have, plan->ranks - have);
        const int to = wrap(plan->rank - have, plan->ranks);
        const int from = (plan->rank + have) % plan->ranks;

        exchange_factors(plan, from, from, count, 1);
        dscomm_priv_plan_recv(plan, from,
                              dscomm_priv_beyond(place, starts[have]),
                              starts[have + count] - starts[have]);
        exchange_factors(plan, to, plan->rank, count, 0);
        dscomm_priv_plan_send(plan, to, place, starts[count]);
        dscomm_priv_plan_round(plan);
    }
}

void dscomm_priv_bruck_all_gather(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const int ranks = plan->ranks;
    size_t *starts =
        dscomm_priv_plan_memory(plan, (size_t)ranks + 1, sizeof *starts);
    dscomm_place_t place;

    if (!starts)
        return;
    starts[0] = 0;
    for (int i = 0; i < ranks; i++)
        starts[i + 1] = starts[i] + recv_count(args, (plan->rank + i) % ranks) *
                                        args->element;
    place = dscomm_priv_plan_scratch(plan, starts[ranks]);
    dscomm_priv_plan_copy(plan, place, dscomm_priv_at(AT_SEND, 0), starts[1]);
    bruck_collect(plan, place, starts);
    for (int i = 0; i < ranks; i++)
        dscomm_priv_plan_copy(plan, recv_block(args, (plan->rank + i) % ranks),
                              dscomm_priv_beyond(place, starts[i]),
                              starts[i + 1] - starts[i]);
    free(starts);
}

static void bruck_reduce_piece(dscomm_plan_t *plan, const piece_t *piece)
{
    const dscomm_place_t slot = dscomm_priv_plan_slot(plan);
    const int ranks = plan->ranks;
    size_t *starts =
        dscomm_priv_plan_memory(plan, (size_t)ranks + 1, sizeof *starts);
    dscomm_place_t *inputs =
        dscomm_priv_plan_memory(plan, (size_t)ranks, sizeof *inputs);

    for (int i = 0; i <= ranks && !plan->bad; i++)
        starts[i] = (size_t)i * piece->bytes;
    for (int r = 0; r < ranks && !plan->bad; r++)
        inputs[r] = dscomm_priv_input(
            dscomm_priv_beyond(slot, starts[wrap(r - plan->rank, ranks)]), r);
    if (!plan->bad) {
        dscomm_priv_plan_copy(
            plan, slot, dscomm_priv_at(AT_SEND, piece->offset), piece->bytes);
        bruck_collect(plan, slot, starts);
        dscomm_priv_plan_reduce(plan, dscomm_priv_at(AT_RECV, piece->offset),
                                inputs, (uint32_t)ranks, piece->count, 1);
    }
    free(starts);
    free(inputs);
}

void dscomm_priv_bruck_all_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t pieces = count_pieces(args, args->count, PIECE);
    const size_t room = cut(args, args->count, pieces, 0).bytes;

    dscomm_priv_plan_window(plan, WINDOW, room * (size_t)plan->ranks);
    for (size_t i = 0; i < pieces; i++) {
        piece_t piece = cut(args, args->count, pieces, i);

        dscomm_priv_plan_chain(plan);
        bruck_reduce_piece(plan, &piece);
    }
}

/* Round k moves the blocks whose distance to their rank has bit k set, by 2^k
 * ranks. places[i] is the present place of the block with distance i. */
static void pass_on(dscomm_plan_t *plan, dscomm_place_t *places,
                    dscomm_place_t out, int distance)
{
    const size_t bytes = plan->args->count * plan->args->element;
    const size_t most = (size_t)(plan->ranks + 1) / 2;
    dscomm_place_t in = dscomm_priv_plan_scratch(plan, most * bytes);
    size_t count = 0;

    for (int i = distance; i < plan->ranks; i++) {
        if (!(i & distance))
            continue;
        dscomm_priv_plan_copy(plan, dscomm_priv_beyond(out, count * bytes),
                              places[i], bytes);
        places[i] = dscomm_priv_beyond(in, count++ * bytes);
    }
    dscomm_priv_plan_recv(plan, wrap(plan->rank - distance, plan->ranks), in,
                          count * bytes);
    dscomm_priv_plan_send(plan, (plan->rank + distance) % plan->ranks, out,
                          count * bytes);
    dscomm_priv_plan_round(plan);
}

void dscomm_priv_bruck_all_to_all(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const int ranks = plan->ranks;
    const size_t bytes = args->count * args->element;
    const size_t most = (size_t)(ranks + 1) / 2;
    dscomm_place_t *places =
        dscomm_priv_plan_memory(plan, (size_t)ranks, sizeof *places);
    dscomm_place_t out = dscomm_priv_plan_scratch(plan, most * bytes);

    if (!places)
        return;
    for (int i = 0; i < ranks; i++)
        places[i] = send_block(args, (plan->rank + i) % ranks);
    for (int distance = 1; distance < ranks; distance *= 2)
        pass_on(plan, places, out, distance);
    for (int i = 0; i < ranks; i++)
        dscomm_priv_plan_copy(plan,
                              recv_block(args, wrap(plan->rank - i, ranks)),
                              places[i], bytes);
    free(places);
}
