/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions: reduce, all_reduce, reduce_scatter and its _v form. Every element
 * is folded in rank order, by one rank or by all ranks alike. Here is the
 * choice of an algorithm. */
#include "config.h"

#include "backends/shm/reduce-shared.h"

#define FLAT_MOST (128 * KIB) /* largest size for flat, with two ranks */
/* largest sum of all inputs for flat, with more ranks */
#define FLAT_MOST_READ (48 * KIB)

int shm_reduce_begin(shm_t *shm, shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    size_t total = a->count * a->element, p = (size_t)shm->ranks;
    size_t flat = p == 2 ? FLAT_MOST : FLAT_MOST_READ / (p - 1);
    /* Set also with many ranks, because peers may run the same call without a
     * state machine. */
    bool inlined = total <= SHM_INLINE;
    size_t share = (total / p + SHM_LINE - 1) / SHM_LINE * SHM_LINE;

    if (shm_op_scatters(op)) {
        op->bytes = total;
        return shm_parts_begin(shm, op);
    }
    if (total <= flat || inlined)
        return shm_flat_begin(shm, op);
    op->bytes = share * p < total ? share + SHM_LINE : share;
    if (a->coll == DSCOMM_COLL_ALL_REDUCE && shm->layout.heap_size)
        return shm_direct_begin(shm, op);
    return shm_parts_begin(shm, op);
}
