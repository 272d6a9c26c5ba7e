/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions: reduce, all_reduce, reduce_scatter and its _v form. Every element
 * is folded in rank order, by one rank or by all ranks alike.
 *
 * flat     Each rank puts its input into its ring, and each rank that needs the
 *          result folds all inputs: one step. For short messages.
 *
 * scatter  The input is divided into a part for each rank. A rank folds its own
 *          part and, for all_reduce and reduce, puts the result in its place in
 *          the ring; the others copy it from there. Pieces overlap: one is put
 *          in while the next is folded and the third copied out.
 *
 * direct   All buffers are from dscomm_mem_alloc: a rank folds its part
 *          directly from all inputs and stores it into all outputs. */
#include "config.h"

#include "backends/shm/steps.h"

#define KIB ((size_t)1 << 10)
#define FLAT_MOST (128 * KIB) /* largest size for flat, with two ranks */
/* largest sum of all inputs for flat, with more ranks */
#define FLAT_MOST_READ (48 * KIB)
#define FLAT_PIECE (32 * KIB)
/* least bytes of a ring that a piece takes */
#define SCATTER_LEAST (32 * KIB)
#define SCATTER_MOST (512 * KIB)
#define DIRECT_BLOCK (32 * KIB)
#define AHEAD 2 /* pieces that are put in before one is folded */

enum { STAGE_MEET, STAGE_PIECES, STAGE_PART };

typedef struct {
    size_t offset, bytes;
} part_t;

static bool wants_all(const shm_t *shm, const shm_op_t *op)
{
    return op->args->coll == DSCOMM_COLL_ALL_REDUCE ||
           (op->args->coll == DSCOMM_COLL_REDUCE &&
            op->args->root == shm->rank);
}

static bool op_scatters(const shm_op_t *op)
{
    return op->args->coll == DSCOMM_COLL_REDUCE_SCATTER ||
           op->args->coll == DSCOMM_COLL_REDUCE_SCATTER_V;
}

/* The part of the input that this rank folds: for all_reduce and reduce, one of
 * p equal parts in whole cache lines; for reduce_scatter, the part that the
 * caller gives. */
static part_t part_of(const shm_op_t *op, int rank)
{
    const dscomm_coll_args_t *a = op->args;
    size_t offset = 0, total;

    if (a->recv_counts) {
        for (int r = 0; r < rank; r++)
            offset += a->recv_counts[r];
        return (part_t){offset * a->element, a->recv_counts[rank] * a->element};
    }
    if (op_scatters(op))
        return (part_t){(size_t)rank * op->bytes, op->bytes};
    total = a->count * a->element;
    offset = (size_t)rank * op->bytes;
    if (offset >= total)
        return (part_t){total, 0};
    return (part_t){offset,
                    total - offset < op->bytes ? total - offset : op->bytes};
}

static part_t reduce_piece(const shm_op_t *op, int rank, size_t piece)
{
    part_t part = part_of(op, rank);
    size_t from = piece * op->chunk;

    if (from >= part.bytes)
        return (part_t){part.offset, 0};
    part.bytes -= from;
    if (part.bytes > op->chunk)
        part.bytes = op->chunk;
    part.offset += from;
    return part;
}

/* Whether inputs and results of all ranks do not fit into the cache, so that
 * results had better not be read into it before they are written. */
static bool reduce_bypasses(const shm_t *shm, const shm_op_t *op)
{
    return op->args->count * op->args->element >=
           shm->cache / 2 / (size_t)shm->ranks;
}

/* Sets the factors of AVG and PREMUL_SUM for the kernels; the ranks' factors
 * arrive with the first step. */
static void read_factors(shm_t *shm, const shm_op_t *op)
{
    shm->factors[0] = shm->ranks;
    if (op->args->op != DSCOMM_PREMUL_SUM)
        return;
    for (int r = 0; r < shm->ranks; r++)
        memcpy(&shm->factors[r],
               &shm_line(shm, r, op->first)->word[WORD_FACTOR], sizeof(double));
}

static void write_factor(shm_t *shm, const shm_op_t *op)
{
    if (op->args->op == DSCOMM_PREMUL_SUM)
        memcpy(&shm_line(shm, shm->rank, op->first)->word[WORD_FACTOR],
               &op->args->factor, sizeof(double));
}

static void op_fold(shm_t *shm, const shm_op_t *op, void *dest, size_t bytes)
{
    const size_t count = bytes / op->args->element;

    dscomm_phase(op->args, DSCOMM_PHASE_REDUCE);
    if (op->args->user)
        dscomm_reduce_user(op->args, dest, shm->sources, (size_t)shm->ranks,
                           count);
    else
        op->kernel(dest, shm->sources, (size_t)shm->ranks, count, shm->factors);
}

/* Returns whether all ranks have raised the flag of a step. op->peer remembers
 * how many were checked. */
static bool all_raised(shm_t *shm, shm_op_t *op, uint64_t step)
{
    while (op->peer < shm->ranks && shm_raised(shm, op->peer, step))
        op->peer++;
    if (op->peer < shm->ranks)
        return false;
    op->peer = 0;
    return true;
}

/* --- flat --- */

static int flat_publish(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    part_t piece = {op->published * op->chunk, op->chunk};
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
    if (!op->published)
        write_factor(shm, op);
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

    if (!all_raised(shm, op, step))
        return SHM_AGAIN;
    if (!op->finished) {
        shm_all_arrived(shm, op->first);
        read_factors(shm, op);
    }
    for (int r = 0; r < shm->ranks; r++)
        shm->sources[r] = op->inlined ? shm_line(shm, r, step)->byte
                                      : shm_region(shm, r, step);
    shm->sources[shm->rank] = shm_at(a->send, offset);
    bytes = bytes < op->chunk ? bytes : op->chunk;
    if (bytes)
        op_fold(shm, op, shm_at(a->recv, offset), bytes);
    op->finished++;
    shm->moves++;
    if (op->finished < op->pieces)
        shm_done(shm, step + 1);
    return SHM_DONE;
}

static int flat_advance(shm_t *shm, shm_op_t *op)
{
    bool folds = wants_all(shm, op);
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

static int flat_begin(shm_t *shm, shm_op_t *op)
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

/* --- scatter --- */

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

static int scatter_publish(shm_t *shm, shm_op_t *op)
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
        part_t piece = reduce_piece(op, r, op->published);

        if (piece.bytes)
            shm_hand_over(shm,
                          reduce_slot(shm, op, shm->rank, r, op->published),
                          shm_at(op->args->send, piece.offset), piece.bytes);
    }
    if (op->taken == op->first)
        write_factor(shm, op);
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
static void show_result(shm_t *shm, shm_op_t *op, part_t piece,
                        unsigned char *own)
{
    unsigned char *recv = shm_at(op->args->recv, piece.offset);
    bool wants = wants_all(shm, op) && piece.bytes;
    bool far = shm->store == SHM_STREAM;

    if (wants && far) {
        op_fold(shm, op, recv, piece.bytes);
        dscomm_phase(op->args, DSCOMM_PHASE_COPY_IN);
        shm_copy_stream(own, recv, piece.bytes);
    } else if (piece.bytes) {
        op_fold(shm, op, own, piece.bytes);
    }
    shm_raise(shm, result_step(op, op->reduced));
    if (wants && !far)
        copy_result(op, piece.offset, own, piece.bytes);
}

/* Folds this rank's part of piece `reduced` and publishes it to the ranks that
 * need it. */
static int scatter_fold(shm_t *shm, shm_op_t *op)
{
    part_t piece = reduce_piece(op, shm->rank, op->reduced);
    unsigned char *own =
        reduce_slot(shm, op, shm->rank, shm->rank, op->reduced);

    if (!all_raised(shm, op, input_step(op, op->reduced)))
        return SHM_AGAIN;
    if (!op->reduced) {
        shm_all_arrived(shm, op->first);
        read_factors(shm, op);
    }
    for (int r = 0; r < shm->ranks; r++)
        shm->sources[r] = reduce_slot(shm, op, r, shm->rank, op->reduced);
    shm->sources[shm->rank] = shm_at(op->args->send, piece.offset);
    if (op_scatters(op)) {
        if (piece.bytes)
            op_fold(shm, op, shm_at(op->args->recv, op->reduced * op->chunk),
                    piece.bytes);
    } else {
        show_result(shm, op, piece, own);
    }
    op->reduced++;
    shm->moves++;
    return SHM_DONE;
}

/* Copies the other ranks' results of piece `finished`. */
static int scatter_collect(shm_t *shm, shm_op_t *op)
{
    for (; wants_all(shm, op) && op->next < shm->ranks; op->next++) {
        int r = (shm->rank + op->next) % shm->ranks;
        part_t piece = reduce_piece(op, r, op->finished);

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
            (result = scatter_publish(shm, op)) < 0)
            return result;
        if (op->reduced < op->published)
            scatter_fold(shm, op);
        if (op->finished < op->reduced &&
            (op->finished + 1 < op->reduced || op->reduced == op->pieces))
            scatter_collect(shm, op);
        if (shm->moves == moves)
            return SHM_AGAIN;
    }
    return SHM_DONE;
}

static size_t longest_part(const shm_t *shm, const shm_op_t *op)
{
    size_t longest = 0;

    if (!op->args->recv_counts)
        return part_of(op, 0).bytes;
    for (int r = 0; r < shm->ranks; r++)
        if (op->args->recv_counts[r] > longest)
            longest = op->args->recv_counts[r];
    return longest * op->args->element;
}

static int scatter_begin(shm_t *shm, shm_op_t *op)
{
    size_t longest = longest_part(shm, op), parts = (size_t)shm->ranks;
    size_t region = longest * parts / 4;
    size_t most = shm->layout.ring_size / 8;

    if (most > SCATTER_MOST)
        most = SCATTER_MOST;
    region = region < SCATTER_LEAST ? SCATTER_LEAST : region;
    region = region > most ? most : region;
    op->chunk = region / parts & ~(size_t)(SHM_LINE - 1);
    if (op->chunk < SHM_LINE)
        op->chunk = SHM_LINE;
    if (op->chunk > longest)
        op->chunk = (longest + SHM_LINE - 1) & ~(size_t)(SHM_LINE - 1);
    op->pieces = longest ? (longest + op->chunk - 1) / op->chunk : 1;
    op->region = parts * op->chunk;
    op->data = shm->step;
    op->stream = !op_scatters(op) && reduce_bypasses(shm, op);
    op->next = 1;
    op->stage = STAGE_PIECES;
    op->advance = scatter_advance;
    return SHM_AGAIN;
}

/* --- direct --- */

static bool all_in_heaps(const shm_t *shm, const shm_op_t *op)
{
    for (int r = 0; r < shm->ranks; r++) {
        const shm_line_t *line = shm_line(shm, r, op->first);

        if (!line->word[WORD_REFERENCE] || !line->word[WORD_RESULT])
            return false;
    }
    return true;
}

/* Folds one block of this rank's part into all outputs. */
static dscomm_status_t direct_block(shm_t *shm, const shm_op_t *op,
                                    size_t offset, size_t bytes)
{
    const dscomm_coll_args_t *a = op->args;
    size_t total = a->count * a->element;
    unsigned char *own = shm_heap_resolve(
        shm, shm->rank, shm_line(shm, shm->rank, op->first)->word[WORD_RESULT],
        total);

    if (!own)
        return shm_revoke_last(shm, DSCOMM_ERR_NO_MEMORY);
    own += offset;
    for (int r = 0; r < shm->ranks; r++) {
        const unsigned char *from = shm_heap_resolve(
            shm, r, shm_line(shm, r, op->first)->word[WORD_REFERENCE], total);

        if (!from)
            return shm_revoke_last(shm, DSCOMM_ERR_NO_MEMORY);
        shm->sources[r] = from + offset;
    }
    op_fold(shm, op, own, bytes);
    dscomm_phase(a, DSCOMM_PHASE_COPY_OUT);
    for (int i = 1; i < shm->ranks; i++) {
        int r = (shm->rank + i) % shm->ranks;
        unsigned char *to = shm_heap_resolve(
            shm, r, shm_line(shm, r, op->first)->word[WORD_RESULT], total);

        if (!to)
            return shm_revoke_last(shm, DSCOMM_ERR_NO_MEMORY);
        if (op->stream)
            shm_copy_stream(to + offset, own, bytes);
        else
            memcpy(to + offset, own, bytes);
    }
    return DSCOMM_OK;
}

static int direct_fold(shm_t *shm, shm_op_t *op)
{
    part_t part = part_of(op, shm->rank);
    size_t block = DIRECT_BLOCK;

    for (size_t from = 0; from < part.bytes; from += block) {
        size_t bytes = part.bytes - from < block ? part.bytes - from : block;
        dscomm_status_t status =
            direct_block(shm, op, part.offset + from, bytes);

        if (status)
            return status;
    }
    shm_raise(shm, op->data);
    op->stage = STAGE_PART;
    shm->moves++;
    return SHM_DONE;
}

static int direct_put(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    size_t bytes = a->count * a->element;
    shm_line_t *line = shm_line(shm, shm->rank, op->first);

    if (!shm_writable(shm, op->data))
        return SHM_AGAIN;
    line->word[WORD_REFERENCE] = shm_own_reference(shm, a->send, bytes);
    line->word[WORD_RESULT] = shm_own_reference(shm, a->recv, bytes);
    write_factor(shm, op);
    shm_raise(shm, op->first);
    op->taken = 0;
    shm->moves++;
    return SHM_DONE;
}

/* Publishes the position of this rank's buffers. All ranks decide by the
 * positions of all, and so decide the same. */
static int direct_advance(shm_t *shm, shm_op_t *op)
{
    int result = op->taken ? direct_put(shm, op) : SHM_DONE;

    if (result != SHM_DONE)
        return result;
    if (op->stage == STAGE_MEET) {
        if (!all_raised(shm, op, op->first))
            return SHM_AGAIN;
        shm_all_arrived(shm, op->first);
        read_factors(shm, op);
        if (!all_in_heaps(shm, op)) {
            scatter_begin(shm, op);
            return scatter_advance(shm, op);
        }
        if ((result = direct_fold(shm, op)) < 0)
            return result;
    }
    if (!all_raised(shm, op, op->data))
        return SHM_AGAIN;
    /* Buffers may have been freed meanwhile, but only after a revocation. */
    if (shm_is_revoked(shm))
        return (int)shm_revoked(shm);
    shm_own_written(shm, op->args->recv, op->args->count * op->args->element);
    return SHM_DONE;
}

static int direct_begin(shm_t *shm, shm_op_t *op)
{
    op->stream = reduce_bypasses(shm, op);
    op->taken = op->first = shm_take(shm, 0);
    op->data = shm_take(shm, 0);
    op->stage = STAGE_MEET;
    op->advance = direct_advance;
    return SHM_AGAIN;
}

int shm_reduce_begin(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    size_t total = a->count * a->element, p = (size_t)shm->ranks;
    size_t flat = p == 2 ? FLAT_MOST : FLAT_MOST_READ / (p - 1);
    /* Set also with many ranks, because peers may run the same call without a
     * state machine. */
    bool inlined = total <= SHM_INLINE;
    size_t share = (total / p + SHM_LINE - 1) / SHM_LINE * SHM_LINE;

    if (op_scatters(op)) {
        op->bytes = total;
        return scatter_begin(shm, op);
    }
    if (total <= flat || inlined)
        return flat_begin(shm, op);
    op->bytes = share * p < total ? share + SHM_LINE : share;
    if (a->coll == DSCOMM_COLL_ALL_REDUCE && shm->layout.heap_size)
        return direct_begin(shm, op);
    return scatter_begin(shm, op);
}
