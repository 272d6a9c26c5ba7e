/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear: a rank that has data for another one sends it there directly. Takes
 * every dtype, operator and count; reductions fold all inputs in rank order.
 *
 * Cost: one round, barrier two; a root, or in all_reduce and all_gather every
 * rank, handles p - 1 messages of n bytes. Extra memory: reductions 2 p pieces.
 * The least latency for few ranks and bytes.
 *
 * Source: Pješivac-Grbović, Angskun, Bosilca, Fagg, Gabriel, Dongarra,
 * "Performance Analysis of MPI Collective Operations", Cluster Computing 10(2),
 * 2007, which calls it linear and flat tree. */
#include "config.h"
#include "lib/schedule/algorithms/algorithms.h"
#include "lib/schedule/algorithms/blocks.h"

#define PIECE ((size_t)64 << 10)
#define WINDOW 2

void dscomm_priv_linear_barrier(dscomm_plan_t *plan)
{
    const dscomm_place_t nowhere = dscomm_priv_at(AT_SCRATCH, 0);

    if (plan->rank) {
        dscomm_priv_plan_send(plan, 0, nowhere, 0);
        dscomm_priv_plan_recv(plan, 0, nowhere, 0);
        return;
    }
    for (int r = 1; r < plan->ranks; r++)
        dscomm_priv_plan_recv(plan, r, nowhere, 0);
    dscomm_priv_plan_round(plan);
    for (int r = 1; r < plan->ranks; r++)
        dscomm_priv_plan_send(plan, r, nowhere, 0);
}

void dscomm_priv_linear_broadcast(dscomm_plan_t *plan)
{
    const dscomm_place_t buffer = dscomm_priv_at(AT_RECV, 0);
    const size_t bytes = plan->args->count * plan->args->element;

    if (plan->rank != plan->args->root) {
        dscomm_priv_plan_recv(plan, plan->args->root, buffer, bytes);
        return;
    }
    for (int r = 0; r < plan->ranks; r++)
        if (r != plan->rank)
            dscomm_priv_plan_send(plan, r, buffer, bytes);
}

void dscomm_priv_linear_all_gather(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const dscomm_place_t own = dscomm_priv_at(AT_SEND, 0);
    const size_t bytes = args->count * args->element;

    for (int i = 1; i < plan->ranks; i++) {
        int from = wrap(plan->rank - i, plan->ranks);

        dscomm_priv_plan_recv(plan, from, recv_block(args, from),
                              recv_count(args, from) * args->element);
        dscomm_priv_plan_send(plan, (plan->rank + i) % plan->ranks, own, bytes);
    }
    dscomm_priv_plan_copy(plan, recv_block(args, plan->rank), own, bytes);
}

void dscomm_priv_linear_gather(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const dscomm_place_t own = dscomm_priv_at(AT_SEND, 0);
    const size_t bytes = args->count * args->element;

    if (plan->rank != args->root) {
        dscomm_priv_plan_send(plan, args->root, own, bytes);
        return;
    }
    for (int r = 0; r < plan->ranks; r++)
        if (r != plan->rank)
            dscomm_priv_plan_recv(plan, r, recv_block(args, r),
                                  recv_count(args, r) * args->element);
    dscomm_priv_plan_copy(plan, recv_block(args, plan->rank), own, bytes);
}

void dscomm_priv_linear_scatter(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const dscomm_place_t own = dscomm_priv_at(AT_RECV, 0);
    const size_t bytes = args->count * args->element;

    if (plan->rank != args->root) {
        dscomm_priv_plan_recv(plan, args->root, own, bytes);
        return;
    }
    for (int r = 0; r < plan->ranks; r++)
        if (r != plan->rank)
            dscomm_priv_plan_send(plan, r, send_block(args, r),
                                  send_count(args, r) * args->element);
    dscomm_priv_plan_copy(plan, own, send_block(args, plan->rank), bytes);
}

void dscomm_priv_linear_all_to_all(dscomm_plan_t *plan)
{
    const dscomm_coll_args_t *args = plan->args;
    const int own = plan->rank;

    for (int i = 1; i < plan->ranks; i++) {
        int from = wrap(own - i, plan->ranks), to = (own + i) % plan->ranks;

        dscomm_priv_plan_recv(plan, from, recv_block(args, from),
                              recv_count(args, from) * args->element);
        dscomm_priv_plan_send(plan, to, send_block(args, to),
                              send_count(args, to) * args->element);
    }
    dscomm_priv_plan_copy(plan, recv_block(args, own), send_block(args, own),
                          send_count(args, own) * args->element);
}

/* Receives all inputs of a piece side by side in the slot, and folds them. */
static void linear_reduce_piece(dscomm_plan_t *plan, const piece_t *piece,
                                size_t room)
{
    const dscomm_place_t slot = dscomm_priv_plan_slot(plan);
    dscomm_place_t *inputs =
        dscomm_priv_plan_memory(plan, (size_t)plan->ranks, sizeof *inputs);

    if (!inputs)
        return;
    for (int r = 0; r < plan->ranks; r++) {
        inputs[r] = dscomm_priv_beyond(slot, (size_t)r * room);
        if (r == plan->rank)
            inputs[r] = dscomm_priv_at(AT_SEND, piece->offset);
        else
            dscomm_priv_plan_recv(plan, r, inputs[r], piece->bytes);
        inputs[r] = dscomm_priv_input(inputs[r], r);
    }
    dscomm_priv_plan_round(plan);
    dscomm_priv_plan_reduce(plan, dscomm_priv_at(AT_RECV, piece->offset),
                            inputs, (uint32_t)plan->ranks, piece->count, 1);
    free(inputs);
}

/* root: the rank that gets the result, or -1 for all. */
static void linear_reduce(dscomm_plan_t *plan, int root)
{
    const dscomm_coll_args_t *args = plan->args;
    const size_t pieces = count_pieces(args, args->count, PIECE);
    const size_t room = aligned(cut(args, args->count, pieces, 0).bytes);
    const int receives = root < 0 || plan->rank == root;

    dscomm_priv_plan_window(plan, WINDOW,
                            receives ? room * (size_t)plan->ranks : 0);
    for (size_t i = 0; i < pieces; i++) {
        piece_t piece = cut(args, args->count, pieces, i);

        dscomm_priv_plan_chain(plan);
        for (int r = 0; r < plan->ranks; r++) {
            if (r == plan->rank)
                continue;
            if (receives)
                dscomm_priv_plan_recv_factor(plan, r);
            if (root >= 0 && r != root)
                continue;
            dscomm_priv_plan_send_factor(plan, r);
            dscomm_priv_plan_send(
                plan, r, dscomm_priv_at(AT_SEND, piece.offset), piece.bytes);
        }
        if (receives)
            linear_reduce_piece(plan, &piece, room);
    }
}

void dscomm_priv_linear_reduce(dscomm_plan_t *plan)
{
    linear_reduce(plan, plan->args->root);
}

void dscomm_priv_linear_all_reduce(dscomm_plan_t *plan)
{
    linear_reduce(plan, -1);
}
