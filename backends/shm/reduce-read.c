/* SPDX-License-Identifier: BSD-3-Clause */
/* all_reduce by single copies: all ranks can read all buffers, but not write
 * all. A rank reads its part of each input, block by block, and folds the
 * blocks into its own output; then it reads the other parts out of the outputs
 * of the ranks that have folded them.
 *
 * With p ranks and n bytes, a rank copies (p - 1) / p n bytes, reads n to fold
 * them and writes n / p, and copies (p - 1) / p n; it awaits 3 (p - 1)
 * flags. */
#include "config.h"

#include "backends/shm/reduce-shared.h"

/* bytes of all inputs' blocks, which stay in the cache */
#define BLOCKS (256 * KIB)

enum { STAGE_FOLD, STAGE_COLLECT, STAGE_DRAIN };

/* Folds one block of this rank's part, by way of its ring. */
static dscomm_status_t read_block(shm_t *shm, const shm_op_t *op, size_t offset,
                                  size_t bytes)
{
    unsigned char *to = shm_region(shm, shm->rank, op->data);
    dscomm_status_t status = DSCOMM_OK;

    dscomm_phase(op->args, DSCOMM_PHASE_COPY_IN);
    for (int r = 0; r < shm->ranks && status == DSCOMM_OK; r++) {
        shm->sources[r] = to + (size_t)r * op->chunk;
        if (r == shm->rank)
            shm->sources[r] = shm_at(op->args->send, offset);
        else
            status = shm_reference_read(
                shm, r, shm_line(shm, r, op->first)->word[WORD_REFERENCE],
                offset, (void *)shm->sources[r], bytes, false);
    }
    if (status == DSCOMM_OK)
        shm_op_fold(shm, op, shm_at(op->args->recv, offset), bytes);
    return status;
}

static int read_fold(shm_t *shm, shm_op_t *op)
{
    const shm_part_t part = shm_part_of(op, shm->rank);
    dscomm_status_t status = shm_ring_ready(shm);

    for (size_t from = 0; from < part.bytes && status == DSCOMM_OK;
         from += op->chunk)
        status = read_block(shm, op, part.offset + from,
                            MIN(op->chunk, part.bytes - from));
    if (status)
        return status;
    /* A result in the heap is read there. */
    shm_own_reference(shm, op->args->recv, op->args->count * op->args->element);
    shm_raise(shm, op->data);
    op->stage = STAGE_COLLECT;
    shm->moves++;
    return SHM_DONE;
}

/* Reads the results of the other ranks, beginning with the next rank. */
static int read_collect(shm_t *shm, shm_op_t *op)
{
    for (; op->next < shm->ranks; op->next++) {
        const int r = (shm->rank + op->next) % shm->ranks;
        const shm_part_t part = shm_part_of(op, r);
        dscomm_status_t status = DSCOMM_OK;

        if (!shm_raised(shm, r, op->data))
            return SHM_AGAIN;
        dscomm_phase(op->args, DSCOMM_PHASE_COPY_OUT);
        if (part.bytes)
            status = shm_reference_read(
                shm, r, shm_line(shm, r, op->first)->word[WORD_RESULT],
                part.offset, shm_at(op->args->recv, part.offset), part.bytes,
                op->stream);
        if (status)
            return status;
        shm->moves++;
    }
    shm_done(shm, shm->step);
    op->stage = STAGE_DRAIN;
    return SHM_DONE;
}

static int read_advance(shm_t *shm, shm_op_t *op)
{
    int result = SHM_DONE;

    if (op->taken) {
        if (!shm_writable(shm, op->taken))
            return SHM_AGAIN;
        op->taken = 0;
    }
    if (op->stage == STAGE_FOLD)
        result = read_fold(shm, op);
    if (result == SHM_DONE && op->stage == STAGE_COLLECT)
        result = read_collect(shm, op);
    if (result != SHM_DONE)
        return result;
    if (shm_is_revoked(shm))
        return (int)shm_revoked(shm);
    /* Others may still read this rank's buffers. */
    return shm->floor >= shm->step || shm_floor_reached(shm, shm->step)
               ? SHM_DONE
               : SHM_AGAIN;
}

int shm_read_begin(shm_t *shm, shm_op_t *op)
{
    const size_t parts = (size_t)shm->ranks;
    const size_t most = MIN(BLOCKS, shm->layout.ring_size / 8);

    op->chunk = MAX(most / parts & ~(SHM_LINE - 1), (size_t)SHM_LINE);
    op->taken = op->data = shm_take(shm, parts * op->chunk);
    op->next = 1;
    op->stage = STAGE_FOLD;
    op->advance = read_advance;
    return SHM_AGAIN;
}
