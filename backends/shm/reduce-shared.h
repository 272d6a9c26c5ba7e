/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the algorithms of reductions share. */
#ifndef SHM_REDUCE_SHARED_H
#define SHM_REDUCE_SHARED_H

#include "backends/shm/steps.h"

#define KIB ((size_t)1 << 10)
#define FLAT_MOST (128 * KIB) /* largest size for flat, with two ranks */
/* largest sum of all inputs for flat, with more ranks */
#define FLAT_MOST_READ (48 * KIB)
/* least bytes of an all_reduce without copies, with two ranks, and with more,
 * which take turns on fewer processors and meet twice for it */
#define DIRECT_LEAST (2 * KIB)
#define DIRECT_LEAST_MORE (16 * KIB)
/* least bytes of a rank's input to reduce and reduce_scatter without copies */
#define DIRECT_LEAST_OTHERS (64 * KIB)
/* and from which on ranks of a reduce_scatter meet for it although the last
 * inputs were not in heaps: it costs a tenth of a shorter call */
#define MEETS_LEAST (128 * KIB)

typedef struct {
    size_t offset, bytes;
} shm_part_t;

/* Whether a rank needs the whole result. */
static inline bool shm_rank_wants_all(const shm_op_t *op, int rank)
{
    return op->args->coll == DSCOMM_COLL_ALL_REDUCE ||
           (op->args->coll == DSCOMM_COLL_REDUCE && op->args->root == rank);
}

/* Whether this rank does. */
static inline bool shm_wants_all(const shm_t *shm, const shm_op_t *op)
{
    return shm_rank_wants_all(op, shm->rank);
}

/* Whether each rank needs a part of the result. */
static inline bool shm_op_scatters(const shm_op_t *op)
{
    return op->args->coll == DSCOMM_COLL_REDUCE_SCATTER ||
           op->args->coll == DSCOMM_COLL_REDUCE_SCATTER_V;
}

/* Whether a reduction is so short that it is flat; not if it scatters. What
 * fits into a line is also with many ranks, because peers may run the same call
 * without a state machine. */
static inline bool shm_is_flat(const shm_t *shm, const shm_op_t *op)
{
    const size_t total = op->args->count * op->args->element;

    if (shm_op_scatters(op))
        return false;
    return total <= SHM_INLINE ||
           total <= (shm->ranks == 2
                         ? FLAT_MOST
                         : FLAT_MOST_READ / ((size_t)shm->ranks - 1));
}

/* The part of the input that a rank folds: for all_reduce and reduce, one of p
 * equal parts in whole cache lines; for reduce_scatter, the part that the
 * caller gives. */
static inline shm_part_t shm_part_of(const shm_op_t *op, int rank)
{
    const dscomm_coll_args_t *a = op->args;
    size_t offset = 0, total;

    if (a->recv_counts) {
        for (int r = 0; r < rank; r++)
            offset += a->recv_counts[r];
        return (shm_part_t){offset * a->element,
                            a->recv_counts[rank] * a->element};
    }
    if (shm_op_scatters(op))
        return (shm_part_t){(size_t)rank * op->bytes, op->bytes};
    total = a->count * a->element;
    offset = (size_t)rank * op->bytes;
    if (offset >= total)
        return (shm_part_t){total, 0};
    return (shm_part_t){offset, total - offset < op->bytes ? total - offset
                                                           : op->bytes};
}

/* Least bytes of a rank's input to an operation without copies. */
static inline size_t shm_direct_least(const shm_t *shm, const shm_op_t *op)
{
    if (op->args->coll == DSCOMM_COLL_ALL_REDUCE)
        return shm->ranks == 2 ? DIRECT_LEAST : DIRECT_LEAST_MORE;
    return shm_op_scatters(op) && shm->scatters_elsewhere ? MEETS_LEAST
                                                          : DIRECT_LEAST_OTHERS;
}

/* Whether an operation goes without copies if all buffers are in heaps. */
static inline bool shm_may_be_direct(const shm_t *shm, const shm_op_t *op)
{
    return shm->layout.heap_size && op->total >= shm_direct_least(shm, op) &&
           (op->args->coll == DSCOMM_COLL_ALL_REDUCE || !shm_is_flat(shm, op));
}

/* Whether it goes by single copies if all ranks can only read all buffers:
 * others make as many copies through rings. */
static inline bool shm_may_read(const shm_op_t *op)
{
    return op->args->coll == DSCOMM_COLL_ALL_REDUCE;
}

/* Whether inputs and results of all ranks do not fit into the cache, so that
 * results had better not be read into it before they are written. */
static inline bool shm_reduce_bypasses(const shm_t *shm, const shm_op_t *op)
{
    return op->args->count * op->args->element >=
           shm->cache / 2 / (size_t)shm->ranks;
}

/* Whether all ranks have raised the flag of a step. op->peer remembers how many
 * were checked. */
static inline bool shm_all_raised(shm_t *shm, shm_op_t *op, uint64_t step)
{
    while (op->peer < shm->ranks && shm_raised(shm, op->peer, step))
        op->peer++;
    if (op->peer < shm->ranks)
        return false;
    op->peer = 0;
    return true;
}

/* Set the factors of AVG and PREMUL_SUM for the kernels; the ranks' factors
 * arrive with the first step. */
static inline void shm_factors_read(shm_t *shm, const shm_op_t *op)
{
    shm->factors[0] = shm->ranks;
    if (op->args->op != DSCOMM_PREMUL_SUM)
        return;
    for (int r = 0; r < shm->ranks; r++)
        memcpy(&shm->factors[r],
               &shm_line(shm, r, op->first)->word[WORD_FACTOR], sizeof(double));
}

static inline void shm_factor_write(shm_t *shm, const shm_op_t *op)
{
    if (op->args->op == DSCOMM_PREMUL_SUM)
        memcpy(&shm_line(shm, shm->rank, op->first)->word[WORD_FACTOR],
               &op->args->factor, sizeof(double));
}

/* Folds shm->sources, of so many bytes each, into dest. */
static inline void shm_op_fold(shm_t *shm, const shm_op_t *op, void *dest,
                               size_t bytes)
{
    const size_t count = bytes / op->args->element;

    dscomm_phase(op->args, DSCOMM_PHASE_REDUCE);
    if (op->args->user)
        dscomm_reduce_user(op->args, dest, shm->sources, (size_t)shm->ranks,
                           count);
    else
        op->kernel(dest, shm->sources, (size_t)shm->ranks, count, shm->factors);
}

#endif
