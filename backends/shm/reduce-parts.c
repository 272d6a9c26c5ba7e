/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions by parts: the input is divided into a part for each rank. A rank
 * folds its own part and, for all_reduce and reduce, puts the result in its
 * place in the ring; the others copy it from there. Pieces overlap: one is put
 * in while the next is folded and the third copied out.
 *
 * With p ranks and n bytes, a rank copies (p - 1) / p n bytes to shared memory,
 * reads n to fold them and writes n / p. A rank that needs the whole result
 * copies n to it. A rank awaits 2 (p - 1) flags a piece, of all parts at most
 * 512 KiB; p - 1 for reduce_scatter. */
#include "config.h"

#include "backends/shm/reduce-shared.h"

/* least bytes of a ring that a piece takes */
#define PARTS_LEAST (32 * KIB)
#define PARTS_MOST (512 * KIB)
#define AHEAD 2 /* pieces that are put in before one is folded */

static shm_part_t reduce_piece(const shm_op_t *op, int rank, size_t piece)
{
    shm_part_t part = shm_part_of(op, rank);
    size_t from = piece * op->chunk;

    if (from >= part.bytes)
        return (shm_part_t){part.offset, 0};
    part.bytes -= from;
    if (part.bytes > op->chunk)
        part.bytes = op->chunk;
    part.offset += from;
    return part;
}

static inline uint64_t input_step(const shm_op_t *op, size_t piece)
{
    return op->data + 2 * piece;
}

static inline uint64_t result_step(const shm_op_t *op, size_t piece)
{
    return op->data + 2 * piece + 1;
}

/* The place of a rank's part of a piece in a ring. */
static inline unsigned char *reduce_slot(const shm_t *shm, const shm_op_t *op,
                                         int ring, int part, size_t piece)
{
    return shm_region(shm, ring, input_step(op, piece)) +
           (size_t)part * op->chunk;
}

static int parts_publish(shm_t *shm, shm_op_t *op)
{
    dscomm_status_t status;

    if (!op->taken) {
        op->taken = shm_take(shm, op->region);
        shm_take(shm, 0);
    }
    if (!shm_writable(shm, op->taken + 1))
        return SHM_AGAIN;
    if ((status = shm_ring_ready(shm)))
        return status;
    dscomm_phase(op->args, DSCOMM_PHASE_COPY_IN);
    for (int i = 1; i < shm->ranks; i++) {
        int r = (shm->rank + i) % shm->ranks;
        shm_part_t piece = reduce_piece(op, r, op->published);

        if (piece.bytes)
            shm_hand_over(shm,
                          reduce_slot(shm, op, shm->rank, r, op->published),
                          shm_at(op->args->send, piece.offset), piece.bytes);
    }
    if (op->taken == op->first)
        shm_factor_write(shm, op);
    shm_raise(shm, op->taken);
    op->taken = 0;
    op->published++;
    shm->moves++;
    return SHM_DONE;
}

static void copy_result(const shm_op_t *op, size_t offset, const void *from,
                        size_t bytes)
{
    unsigned char *to = shm_at(op->args->recv, offset);

    dscomm_phase(op->args, DSCOMM_PHASE_COPY_OUT);
    if (op->stream)
        shm_copy_stream(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* Folds this rank's part into the ring and copies it to its own result; or, if
 * peers are far, the other way round. */
static void show_result(shm_t *shm, shm_op_t *op, shm_part_t piece,
                        unsigned char *own)
{
    unsigned char *recv = shm_at(op->args->recv, piece.offset);
    bool wants = shm_wants_all(shm, op) && piece.bytes;
    bool far = shm->store == SHM_STREAM;

    if (wants && far) {
        shm_op_fold(shm, op, recv, piece.bytes);
        dscomm_phase(op->args, DSCOMM_PHASE_COPY_IN);
        shm_copy_stream(own, recv, piece.bytes);
    } else if (piece.bytes) {
        shm_op_fold(shm, op, own, piece.bytes);
    }
    shm_raise(shm, result_step(op, op->reduced));
    if (wants && !far)
        copy_result(op, piece.offset, own, piece.bytes);
}

/* Folds this rank's part of piece `reduced` and publishes it to the ranks that
 * need it. */
static int parts_fold(shm_t *shm, shm_op_t *op)
{
    shm_part_t piece = reduce_piece(op, shm->rank, op->reduced);
    unsigned char *own =
        reduce_slot(shm, op, shm->rank, shm->rank, op->reduced);

    if (!shm_all_raised(shm, op, input_step(op, op->reduced)))
        return SHM_AGAIN;
    if (!op->reduced) {
        shm_all_arrived(shm, op->first);
        shm_factors_read(shm, op);
    }
    for (int r = 0; r < shm->ranks; r++)
        shm->sources[r] = reduce_slot(shm, op, r, shm->rank, op->reduced);
    shm->sources[shm->rank] = shm_at(op->args->send, piece.offset);
    if (shm_op_scatters(op)) {
        if (piece.bytes)
            shm_op_fold(shm, op,
                        shm_at(op->args->recv, op->reduced * op->chunk),
                        piece.bytes);
    } else {
        show_result(shm, op, piece, own);
    }
    op->reduced++;
    shm->moves++;
    return SHM_DONE;
}

/* Copies the other ranks' results of piece `finished`. */
static int parts_collect(shm_t *shm, shm_op_t *op)
{
    for (; shm_wants_all(shm, op) && op->next < shm->ranks; op->next++) {
        int r = (shm->rank + op->next) % shm->ranks;
        shm_part_t piece = reduce_piece(op, r, op->finished);

        if (!shm_raised(shm, r, result_step(op, op->finished)))
            return SHM_AGAIN;
        if (piece.bytes)
            copy_result(op, piece.offset,
                        reduce_slot(shm, op, r, r, op->finished), piece.bytes);
        shm->moves++;
    }
    op->next = 1;
    op->finished++;
    shm_done(shm, input_step(op, op->finished));
    return SHM_DONE;
}

static int scatter_advance(shm_t *shm, shm_op_t *op)
{
    while (op->finished < op->pieces) {
        uint64_t moves = shm->moves;
        int result;

        if (op->published < op->pieces && op->published - op->reduced < AHEAD &&
            (result = parts_publish(shm, op)) < 0)
            return result;
        if (op->reduced < op->published)
            parts_fold(shm, op);
        if (op->finished < op->reduced &&
            (op->finished + 1 < op->reduced || op->reduced == op->pieces))
            parts_collect(shm, op);
        if (shm->moves == moves)
            return SHM_AGAIN;
    }
    return SHM_DONE;
}

static size_t longest_part(const shm_t *shm, const shm_op_t *op)
{
    size_t longest = 0;

    if (!op->args->recv_counts)
        return shm_part_of(op, 0).bytes;
    for (int r = 0; r < shm->ranks; r++)
        if (op->args->recv_counts[r] > longest)
            longest = op->args->recv_counts[r];
    return longest * op->args->element;
}

int shm_parts_begin(shm_t *shm, shm_op_t *op)
{
    size_t longest = longest_part(shm, op), parts = (size_t)shm->ranks;
    size_t region = longest * parts / 4;
    size_t most = shm->layout.ring_size / 8;

    if (most > PARTS_MOST)
        most = PARTS_MOST;
    region = region < PARTS_LEAST ? PARTS_LEAST : region;
    region = region > most ? most : region;
    op->chunk = region / parts & ~(size_t)(SHM_LINE - 1);
    if (op->chunk < SHM_LINE)
        op->chunk = SHM_LINE;
    if (op->chunk > longest)
        op->chunk = (longest + SHM_LINE - 1) & ~(size_t)(SHM_LINE - 1);
    op->pieces = longest ? (longest + op->chunk - 1) / op->chunk : 1;
    op->region = parts * op->chunk;
    op->data = shm->step;
    op->stream = !shm_op_scatters(op) && shm_reduce_bypasses(shm, op);
    op->next = 1;
    op->advance = scatter_advance;
    return SHM_AGAIN;
}
