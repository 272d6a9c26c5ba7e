/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairwise: every rank exchanges with every other one, block by block and
 * directly. A reduction folds all inputs of a block on the rank that owns the
 * block, in rank order, so it takes every dtype and operator.
 *
 * Cost: p - 1 messages of a block each way; all_reduce, which gathers what it
 * has scattered, 2 (p - 1); reduce p, the root 2 (p - 1). Each rank sends (p -
 * 1) / p of the bytes, all_reduce twice that, which is the least there is; in
 * reduce the root gets twice that, others all. Extra memory: reductions some
 * pieces of p blocks. Source: Thakur, Rabenseifner, Gropp, "Optimization of
 * Collective Communication Operations in MPICH", International Journal of High
 * Performance Computing Applications 19(1), 2005. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"

#define PIECE ((size_t)512 << 10)
#define PIECE_LEAST ((size_t)4 << 10)
/* bytes of a reduction's scratch, if pieces allow it */
#define SCRATCH ((size_t)64 << 20)
/* Few pieces under way, so that they are in the cache when they are folded. */
#define WINDOW 2
#define PARTNERS 8 /* all_to_all: exchanges under way */

void dscomm_priv_pairwise_all_to_all(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const int own = plan->rank;

    dscomm_priv_plan_window(plan, PARTNERS, 0);
    for (int i = 0; i < plan->ranks; i++) {
        int from = wrap(own - i, plan->ranks), to = (own + i) % plan->ranks;

        dscomm_priv_plan_chain(plan);
        if (i == 0) {
            dscomm_priv_plan_copy(plan, recv_block(args, own),
                                  send_block(args, own),
                                  send_count(args, own) * args->element);
            continue;
        }
        dscomm_priv_plan_recv(plan, from, recv_block(args, from),
                              recv_count(args, from) * args->element);
        dscomm_priv_plan_send(plan, to, send_block(args, to),
                              send_count(args, to) * args->element);
    }
}

/* Bytes of a piece of a block; with many ranks the pieces are small. */
static size_t piece_of(size_t ranks)
{
    return CLAMP(SCRATCH / WINDOW / ranks, PIECE_LEAST, PIECE);
}

/* The same piece of all blocks. blocks[r] is the place of rank r's block in
 * send. The fold of this rank's block goes to result. */
typedef struct {
    const dscomm_place_t *inputs;
    const piece_t *pieces;
    dscomm_place_t result, slot;
    size_t room;
} exchange_t;

static void parts_exchange(dscomm_plan_t *plan, const exchange_t *all)
{
    const piece_t *own = &all->pieces[plan->rank];
    dscomm_place_t *came =
        dscomm_priv_plan_memory(plan, (size_t)plan->ranks, sizeof *came);

    if (!came)
        return;
    came[plan->rank] = dscomm_priv_input(all->inputs[plan->rank], plan->rank);
    for (int i = 1; i < plan->ranks; i++) {
        int from = wrap(plan->rank - i, plan->ranks);
        int to = (plan->rank + i) % plan->ranks;

        came[from] = dscomm_priv_input(
            dscomm_priv_beyond(all->slot, (size_t)(i - 1) * all->room), from);
        dscomm_priv_plan_recv_factor(plan, from);
        dscomm_priv_plan_recv(plan, from, came[from], own->bytes);
        dscomm_priv_plan_send_factor(plan, to);
        dscomm_priv_plan_send(plan, to, all->inputs[to], all->pieces[to].bytes);
    }
    dscomm_priv_plan_round(plan);
    dscomm_priv_plan_reduce(plan, all->result, came, (uint32_t)plan->ranks,
                            own->count, 1);
    free(came);
}

void dscomm_priv_pairwise_reduce_scatter(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t ranks = (size_t)plan->ranks;
    const size_t most = most_recv_count(args, plan->ranks);
    const size_t pieces = count_pieces(args, most, piece_of(ranks));
    const size_t room = aligned(cut(args, most, pieces, 0).bytes);
    dscomm_place_t *inputs =
        dscomm_priv_plan_memory(plan, ranks, sizeof *inputs);
    piece_t *parts = dscomm_priv_plan_memory(plan, ranks, sizeof *parts);

    dscomm_priv_plan_window(plan, WINDOW, room * (ranks - 1));
    for (size_t i = 0; i < pieces && !plan->bad; i++) {
        dscomm_priv_plan_chain(plan);
        for (int r = 0; r < plan->ranks; r++) {
            parts[r] = cut(args, recv_count(args, r), pieces, i);
            inputs[r] =
                dscomm_priv_beyond(input_block(args, r), parts[r].offset);
        }
        parts_exchange(plan, &(exchange_t){
                                 .inputs = inputs,
                                 .pieces = parts,
                                 .result = dscomm_priv_at(
                                     AT_RECV, parts[plan->rank].offset),
                                 .slot = dscomm_priv_plan_slot(plan),
                                 .room = room,
                             });
    }
    free(inputs);
    free(parts);
}

/* Sends each rank's result to all ranks. */
static void pairwise_spread(dscomm_plan_t *plan, const dscomm_place_t *results,
                            const piece_t *parts)
{
    for (int i = 1; i < plan->ranks; i++) {
        int from = wrap(plan->rank - i, plan->ranks);
        int to = (plan->rank + i) % plan->ranks;

        dscomm_priv_plan_recv(plan, from, results[from], parts[from].bytes);
        dscomm_priv_plan_send(plan, to, results[plan->rank],
                              parts[plan->rank].bytes);
    }
}

/* Sends each rank's result to the root. */
static void results_send(dscomm_plan_t *plan, const dscomm_place_t *results,
                         const piece_t *parts)
{
    const int root = plan->args->root;

    if (plan->rank != root) {
        dscomm_priv_plan_send(plan, root, results[plan->rank],
                              parts[plan->rank].bytes);
        return;
    }
    for (int i = 1; i < plan->ranks; i++) {
        int from = wrap(plan->rank - i, plan->ranks);

        dscomm_priv_plan_recv(plan, from, results[from], parts[from].bytes);
    }
}

/* root: -1 if all ranks get the result. */
static void pairwise_reduce(dscomm_plan_t *plan, int root)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t ranks = (size_t)plan->ranks;
    const size_t pieces =
        count_pieces(args, args->count, piece_of(ranks) * ranks);
    const size_t most = cut(args, args->count, pieces, 0).count;
    const size_t room = aligned(cut(args, most, ranks, 0).bytes);
    dscomm_place_t *inputs =
        dscomm_priv_plan_memory(plan, ranks, sizeof *inputs);
    dscomm_place_t *results =
        dscomm_priv_plan_memory(plan, ranks, sizeof *results);
    piece_t *parts = dscomm_priv_plan_memory(plan, ranks, sizeof *parts);

    dscomm_priv_plan_window(plan, WINDOW, room * ranks);
    for (size_t i = 0; i < pieces && !plan->bad; i++) {
        piece_t whole = cut(args, args->count, pieces, i);

        dscomm_priv_plan_chain(plan);
        for (size_t r = 0; r < ranks; r++) {
            parts[r] = cut(args, whole.count, ranks, r);
            inputs[r] = dscomm_priv_at(AT_SEND, whole.offset + parts[r].offset);
            results[r] =
                dscomm_priv_at(AT_RECV, whole.offset + parts[r].offset);
        }
        if (root >= 0 && plan->rank != root)
            results[plan->rank] = dscomm_priv_beyond(
                dscomm_priv_plan_slot(plan), room * (ranks - 1));
        parts_exchange(plan, &(exchange_t){
                                 .inputs = inputs,
                                 .pieces = parts,
                                 .result = results[plan->rank],
                                 .slot = dscomm_priv_plan_slot(plan),
                                 .room = room,
                             });
        if (root < 0)
            pairwise_spread(plan, results, parts);
        else
            results_send(plan, results, parts);
    }
    free(inputs);
    free(results);
    free(parts);
}

void dscomm_priv_pairwise_all_reduce(dscomm_plan_t *plan)
{
    pairwise_reduce(plan, -1);
}

void dscomm_priv_pairwise_reduce(dscomm_plan_t *plan)
{
    pairwise_reduce(plan, plan->args->root);
}
