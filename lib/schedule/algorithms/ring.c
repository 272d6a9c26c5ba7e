/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring: every rank sends to the next one only. Long blocks are cut into
 * pieces, of which several go round at the same time.
 *
 * Cost: reduce_scatter and all_gather p - 1 rounds, all_reduce 2 (p - 1); each
 * link carries (p - 1) / p of the bytes once, all_reduce twice, which is the
 * least there is. Extra memory: a few pieces.
 * Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", Journal of Parallel and Distributed Computing
 * 69(2), 2009. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"

#define PIECE ((size_t)128 << 10)
#define WINDOW 4
/* all_reduce: pieces under way are few, so that they are in the cache when they
 * are folded. */
#define FOLD_PIECE ((size_t)512 << 10)
#define FOLD_WINDOW 2

/* One piece of all_reduce, which has a block for every rank. */
typedef struct {
    piece_t whole;
    dscomm_place_t own, result, came;
} lap_t;

static piece_t block(const dscomm_plan_t *plan, const lap_t *lap, int rank)
{
    return cut(plan->args, lap->whole.count, (size_t)plan->ranks,
               (size_t)wrap(rank, plan->ranks));
}

/* After the lap, block rank + 1 is complete on this rank. */
static void reduce_lap(dscomm_plan_t *plan, const lap_t *lap)
{
    const int next = (plan->rank + 1) % plan->ranks;
    const int before = wrap(plan->rank - 1, plan->ranks);

    for (int s = 0; s < plan->ranks - 1; s++) {
        piece_t out = block(plan, lap, plan->rank - s);
        piece_t in = block(plan, lap, plan->rank - s - 1);
        dscomm_place_t from = s ? lap->result : lap->own;

        dscomm_priv_plan_recv(plan, before, lap->came, in.bytes);
        dscomm_priv_plan_send(plan, next, dscomm_priv_beyond(from, out.offset),
                              out.bytes);
        dscomm_priv_plan_round(plan);
        dscomm_priv_plan_fold(plan, dscomm_priv_beyond(lap->result, in.offset),
                              lap->came,
                              dscomm_priv_beyond(lap->own, in.offset), in.count,
                              s == plan->ranks - 2);
    }
}

static void gather_lap(dscomm_plan_t *plan, const lap_t *lap)
{
    const int next = (plan->rank + 1) % plan->ranks;
    const int before = wrap(plan->rank - 1, plan->ranks);

    for (int s = 0; s < plan->ranks - 1; s++) {
        piece_t out = block(plan, lap, plan->rank + 1 - s);
        piece_t in = block(plan, lap, plan->rank - s);

        dscomm_priv_plan_recv(
            plan, before, dscomm_priv_beyond(lap->result, in.offset), in.bytes);
        dscomm_priv_plan_send(
            plan, next, dscomm_priv_beyond(lap->result, out.offset), out.bytes);
        dscomm_priv_plan_round(plan);
    }
}

void dscomm_priv_ring_all_reduce(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t ranks = (size_t)plan->ranks;
    const size_t pieces = count_pieces(args, args->count, FOLD_PIECE * ranks);
    const size_t most = cut(args, args->count, pieces, 0).count;

    dscomm_priv_plan_window(plan, FOLD_WINDOW, cut(args, most, ranks, 0).bytes);
    for (size_t i = 0; i < pieces; i++) {
        lap_t lap = {.whole = cut(args, args->count, pieces, i)};

        dscomm_priv_plan_chain(plan);
        lap.own = dscomm_priv_at(AT_SEND, lap.whole.offset);
        lap.result = dscomm_priv_at(AT_RECV, lap.whole.offset);
        lap.came = dscomm_priv_plan_slot(plan);
        if (args->op == DSCOMM_PREMUL_SUM) {
            dscomm_priv_plan_load(plan, lap.result, lap.own, lap.whole.count);
            lap.own = lap.result;
        }
        reduce_lap(plan, &lap);
        gather_lap(plan, &lap);
    }
}

/* Passes the same piece of every rank's block round the ring. */
static void gather_piece(dscomm_plan_t *plan, size_t pieces, size_t i)
{
    const dscomm_coll_args_t *args = plan->args;
    const int next = (plan->rank + 1) % plan->ranks;
    const int before = wrap(plan->rank - 1, plan->ranks);
    piece_t own = cut(args, recv_count(args, plan->rank), pieces, i);

    dscomm_priv_plan_copy(
        plan, dscomm_priv_beyond(recv_block(args, plan->rank), own.offset),
        dscomm_priv_at(AT_SEND, own.offset), own.bytes);
    for (int s = 0; s < plan->ranks - 1; s++) {
        int from = wrap(plan->rank - s, plan->ranks);
        int to = wrap(plan->rank - s - 1, plan->ranks);
        piece_t out = cut(args, recv_count(args, from), pieces, i);
        piece_t in = cut(args, recv_count(args, to), pieces, i);

        dscomm_priv_plan_recv(
            plan, before, dscomm_priv_beyond(recv_block(args, to), in.offset),
            in.bytes);
        dscomm_priv_plan_send(
            plan, next, dscomm_priv_beyond(recv_block(args, from), out.offset),
            out.bytes);
        dscomm_priv_plan_round(plan);
    }
}

void dscomm_priv_ring_all_gather(dscomm_plan_t *plan)
{
    size_t most = most_recv_count(plan->args, plan->ranks);
    size_t pieces = count_pieces(plan->args, most, PIECE);

    dscomm_priv_plan_window(plan, WINDOW, 0);
    for (size_t i = 0; i < pieces; i++) {
        dscomm_priv_plan_chain(plan);
        gather_piece(plan, pieces, i);
    }
}

/* Passes partial results of the same piece of every rank's block round the
 * ring. The result of this rank's own block is complete when it arrives here.
 */
static void ring_reduce_piece(dscomm_plan_t *plan, size_t pieces, size_t i,
                              dscomm_place_t scratch, size_t room)
{
    const dscomm_coll_args_t *args = plan->args;
    const int next = (plan->rank + 1) % plan->ranks;
    const int before = wrap(plan->rank - 1, plan->ranks);
    const int premultiply = args->op == DSCOMM_PREMUL_SUM;
    dscomm_place_t loaded = dscomm_priv_beyond(scratch, 2 * room);
    dscomm_place_t from;

    for (int s = 0; s < plan->ranks; s++) {
        int b = wrap(plan->rank - s - 1, plan->ranks);
        dscomm_place_t here = dscomm_priv_beyond(scratch, s % 2 ? room : 0);
        piece_t part = cut(args, recv_count(args, b), pieces, i);
        dscomm_place_t own =
            dscomm_priv_beyond(input_block(args, b), part.offset);
        dscomm_place_t to = here;

        if (premultiply) {
            dscomm_priv_plan_load(plan, s ? loaded : here, own, part.count);
            own = s ? loaded : here;
        }
        if (s == plan->ranks - 1)
            to = dscomm_priv_at(AT_RECV, part.offset);
        if (s)
            dscomm_priv_plan_fold(plan, to, here, own, part.count,
                                  s == plan->ranks - 1);
        from = s ? here : own;
        if (s == plan->ranks - 1)
            break;
        dscomm_priv_plan_send(plan, next, from, part.bytes);
        b = wrap(b - 1, plan->ranks);
        dscomm_priv_plan_recv(plan, before,
                              dscomm_priv_beyond(scratch, s % 2 ? 0 : room),
                              cut(args, recv_count(args, b), pieces, i).bytes);
        dscomm_priv_plan_round(plan);
    }
}

void dscomm_priv_ring_reduce_scatter(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    size_t most = most_recv_count(args, plan->ranks);
    size_t pieces = count_pieces(args, most, PIECE);
    size_t room = aligned(cut(args, most, pieces, 0).bytes);

    dscomm_priv_plan_window(plan, WINDOW, 3 * room);
    for (size_t i = 0; i < pieces; i++) {
        dscomm_priv_plan_chain(plan);
        ring_reduce_piece(plan, pieces, i, dscomm_priv_plan_slot(plan), room);
    }
}
