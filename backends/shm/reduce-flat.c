/* SPDX-License-Identifier: BSD-3-Clause */
/* Flat reductions: each rank puts its input into its ring, and each rank that
 * needs the result folds all inputs into it. For short messages.
 *
 * With p ranks and n bytes, a rank copies n bytes to shared memory; a rank that
 * needs the result reads p n bytes and writes n. It awaits p - 1 flags a piece,
 * of at most 32 KiB. */
#include "config.h"

#include "backends/shm/reduce-shared.h"

#define FLAT_PIECE (32 * KIB)
#define AHEAD 2 /* pieces that are put in before one is folded */

/* Whether this rank's buffers allow the next call to go without copies. */
static bool buffers_in_heap(const shm_t *shm, const shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;

    return (shm->heap || shm->regions) && !shm->own->voided &&
           shm_may_be_direct(shm, op) &&
           shm_own_reference(shm, a->send, op->bytes) &&
           shm_own_reference(shm, a->recv, op->bytes);
}

/* Notes whether those of all ranks do. */
static void all_in_heaps(shm_t *shm, const shm_op_t *op)
{
    shm->in_heaps = true;
    for (int r = 0; r < shm->ranks; r++)
        shm->in_heaps =
            shm->in_heaps && shm_line(shm, r, op->first)->word[WORD_REFERENCE];
}

static int flat_publish(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    shm_part_t piece = {op->published * op->chunk, op->chunk};
    unsigned char *to;
    dscomm_status_t status;

    if (!op->taken)
        op->taken = shm_take(shm, op->region);
    if (!shm_writable(shm, op->taken))
        return SHM_AGAIN;
    if (!op->inlined && (status = shm_ring_ready(shm)))
        return status;
    if (piece.offset + piece.bytes > op->bytes)
        piece.bytes = op->bytes - piece.offset;
    to = op->inlined ? shm_line(shm, shm->rank, op->taken)->byte
                     : shm_region(shm, shm->rank, op->taken);
    dscomm_phase(a, DSCOMM_PHASE_COPY_IN);
    if (piece.bytes)
        shm_hand_over(shm, to, shm_at(a->send, piece.offset), piece.bytes);
    if (!op->published && !op->inlined)
        shm_line(shm, shm->rank, op->taken)->word[WORD_REFERENCE] =
            buffers_in_heap(shm, op);
    if (!op->published)
        shm_factor_write(shm, op);
    shm_raise(shm, op->taken);
    op->taken = 0;
    op->published++;
    shm->moves++;
    return SHM_DONE;
}

static int flat_fold(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    uint64_t step = op->data + op->finished;
    size_t offset = op->finished * op->chunk;
    size_t bytes = op->bytes - offset;

    if (!shm_all_raised(shm, op, step))
        return SHM_AGAIN;
    if (!op->finished) {
        shm_all_arrived(shm, op->first);
        shm_factors_read(shm, op);
        if (!op->inlined && shm_may_be_direct(shm, op))
            all_in_heaps(shm, op);
    }
    for (int r = 0; r < shm->ranks; r++)
        shm->sources[r] = op->inlined ? shm_line(shm, r, step)->byte
                                      : shm_region(shm, r, step);
    shm->sources[shm->rank] = shm_at(a->send, offset);
    bytes = bytes < op->chunk ? bytes : op->chunk;
    if (bytes)
        shm_op_fold(shm, op, shm_at(a->recv, offset), bytes);
    op->finished++;
    shm->moves++;
    if (op->finished < op->pieces)
        shm_done(shm, step + 1);
    return SHM_DONE;
}

static int flat_advance(shm_t *shm, shm_op_t *op)
{
    bool folds = shm_wants_all(shm, op);
    int result;

    for (;;) {
        if (op->published < op->pieces &&
            (!folds || op->published - op->finished < AHEAD)) {
            if ((result = flat_publish(shm, op)) < 0)
                return result;
            if (result == SHM_DONE && !folds)
                shm_done(shm, op->data + op->published);
            if (result == SHM_DONE)
                continue;
        }
        if (!folds)
            return op->published == op->pieces ? SHM_DONE : SHM_AGAIN;
        if (op->finished == op->pieces)
            return SHM_DONE;
        if (op->finished == op->published || flat_fold(shm, op) == SHM_AGAIN)
            return SHM_AGAIN;
    }
}

int shm_flat_begin(shm_t *shm, shm_op_t *op)
{
    size_t most =
        op->args->op == DSCOMM_PREMUL_SUM ? SHM_INLINE_PREMUL : SHM_INLINE;
    size_t piece = FLAT_PIECE;

    op->advance = flat_advance;
    op->data = op->first = shm->step;
    op->bytes = op->args->count * op->args->element;
    op->inlined = op->bytes <= most;
    if (piece > shm->layout.ring_size / 8)
        piece = shm->layout.ring_size / 8;
    op->chunk = op->bytes < piece ? op->bytes : piece;
    op->pieces = op->bytes ? (op->bytes + op->chunk - 1) / op->chunk : 1;
    op->region = op->inlined ? 0 : op->chunk;
    return SHM_AGAIN;
}
