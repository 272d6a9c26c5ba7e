/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions in place: all ranks can read all inputs and write all outputs,
 * which are of dscomm_mem_alloc() or registered. A rank folds its part directly
 * from all inputs and stores it where it is wanted: all_reduce into all
 * outputs, reduce into the root's, reduce_scatter into its own, which may lie
 * anywhere.
 *
 * With p ranks and n bytes, a rank reads n bytes to fold them, writes n / p,
 * and, for all_reduce, copies these p - 1 times; it awaits 2 (p - 1) flags. */
#include "config.h"

#include "backends/shm/reduce-shared.h"

#define DIRECT_BLOCK (32 * KIB)

enum { STAGE_MEET, STAGE_PART };

/* How all ranks can reach the buffers of all. */
typedef enum { BY_PIECES, BY_READING, IN_PLACE } reach_t;

static reach_t buffers_reach(const shm_t *shm, const shm_op_t *op)
{
    reach_t reach = IN_PLACE;

    for (int r = 0; r < shm->ranks; r++) {
        const uint64_t *word = shm_line(shm, r, op->first)->word;
        const uint64_t input = word[WORD_REFERENCE];
        const uint64_t result =
            shm_rank_wants_all(op, r) ? word[WORD_RESULT] : input;

        if (!input || !result)
            return BY_PIECES;
        if (shm_reference_is_address(input) || shm_reference_is_address(result))
            reach = BY_READING;
    }
    return reach;
}

/* The place of this rank's part in a buffer of rank, whose reference is a word
 * of its line; NULL: it cannot be mapped. */
static unsigned char *direct_place(shm_t *shm, const shm_op_t *op, int rank,
                                   int word, size_t offset)
{
    unsigned char *buffer = shm_heap_resolve(
        shm, rank, shm_line(shm, rank, op->first)->word[word], op->total);

    return buffer ? buffer + offset : NULL;
}

/* The place to which this rank folds its part. */
static unsigned char *direct_dest(shm_t *shm, const shm_op_t *op, size_t offset)
{
    if (shm_op_scatters(op))
        return shm_at(op->args->recv,
                      offset - shm_part_of(op, shm->rank).offset);
    return direct_place(shm, op,
                        shm_wants_all(shm, op) ? shm->rank : op->args->root,
                        WORD_RESULT, offset);
}

/* Folds one block of this rank's part into the outputs that want it. */
static dscomm_status_t direct_block(shm_t *shm, const shm_op_t *op,
                                    size_t offset, size_t bytes)
{
    unsigned char *own = direct_dest(shm, op, offset);

    for (int r = 0; r < shm->ranks; r++) {
        shm->sources[r] = direct_place(shm, op, r, WORD_REFERENCE, offset);
        if (!shm->sources[r] || !own)
            return shm_revoke_last(shm, DSCOMM_ERR_NO_MEMORY);
    }
    shm_op_fold(shm, op, own, bytes);
    if (op->args->coll != DSCOMM_COLL_ALL_REDUCE)
        return DSCOMM_OK;
    dscomm_phase(op->args, DSCOMM_PHASE_COPY_OUT);
    for (int i = 1; i < shm->ranks; i++) {
        const int r = (shm->rank + i) % shm->ranks;
        unsigned char *to = direct_place(shm, op, r, WORD_RESULT, offset);

        if (!to)
            return shm_revoke_last(shm, DSCOMM_ERR_NO_MEMORY);
        if (op->stream)
            shm_copy_stream(to, own, bytes);
        else
            memcpy(to, own, bytes);
    }
    return DSCOMM_OK;
}

static int direct_fold(shm_t *shm, shm_op_t *op)
{
    const shm_part_t part = shm_part_of(op, shm->rank);

    for (size_t from = 0; from < part.bytes; from += DIRECT_BLOCK) {
        dscomm_status_t status = direct_block(
            shm, op, part.offset + from, MIN(DIRECT_BLOCK, part.bytes - from));

        if (status)
            return status;
    }
    shm_raise(shm, op->data);
    op->stage = STAGE_PART;
    shm->moves++;
    return SHM_DONE;
}

/* The reference of a buffer. Reductions that make no single copies tell of
 * buffers in heaps alone. */
static uint64_t direct_reference(shm_t *shm, const shm_op_t *op,
                                 const void *buffer)
{
    if (shm_may_read(op))
        return shm_reference(shm, buffer, op->total, false);
    return shm->own->voided ? 0 : shm_own_reference(shm, buffer, op->total);
}

static int direct_put(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    uint64_t *word = shm_line(shm, shm->rank, op->first)->word;

    if (!shm_writable(shm, op->data))
        return SHM_AGAIN;
    word[WORD_REFERENCE] = direct_reference(shm, op, a->send);
    word[WORD_RESULT] =
        shm_wants_all(shm, op) ? direct_reference(shm, op, a->recv) : 0;
    op->referenced = word[WORD_REFERENCE] || word[WORD_RESULT];
    shm_factor_write(shm, op);
    shm_raise(shm, op->first);
    op->taken = 0;
    shm->moves++;
    return SHM_DONE;
}

/* Begins another algorithm, unless buffers can be used in place. */
static bool go_on(shm_t *shm, shm_op_t *op, reach_t reach)
{
    if (op->args->coll == DSCOMM_COLL_ALL_REDUCE)
        shm->in_heaps = reach == IN_PLACE;
    if (shm_op_scatters(op))
        shm->scatters_elsewhere = reach != IN_PLACE;
    op->referenced = op->referenced && reach != BY_PIECES;
    if (reach == BY_READING)
        shm_read_begin(shm, op);
    else if (reach == BY_PIECES && shm_is_flat(shm, op))
        shm_flat_begin(shm, op);
    else if (reach == BY_PIECES)
        shm_parts_begin(shm, op);
    return reach != IN_PLACE;
}

/* Publishes the position of this rank's buffers. All ranks decide by the
 * positions of all, and so decide the same. */
static int direct_advance(shm_t *shm, shm_op_t *op)
{
    int result = op->taken ? direct_put(shm, op) : SHM_DONE;

    if (result != SHM_DONE)
        return result;
    if (op->stage == STAGE_MEET) {
        if (!shm_all_raised(shm, op, op->first))
            return SHM_AGAIN;
        shm_all_arrived(shm, op->first);
        shm_factors_read(shm, op);
        if (go_on(shm, op, buffers_reach(shm, op)))
            return op->advance(shm, op);
        if ((result = direct_fold(shm, op)) < 0)
            return result;
    }
    if (!shm_all_raised(shm, op, op->data))
        return SHM_AGAIN;
    if (shm_is_revoked_since(shm))
        return (int)shm_revoked(shm);
    if (shm_wants_all(shm, op))
        shm_own_written(shm, op->args->recv, op->total);
    return SHM_DONE;
}

int shm_direct_begin(shm_t *shm, shm_op_t *op)
{
    op->stream = shm_reduce_bypasses(shm, op);
    op->taken = op->first = shm_take(shm, 0);
    op->data = shm_take(shm, 0);
    op->stage = STAGE_MEET;
    op->advance = direct_advance;
    return SHM_AGAIN;
}
