/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions: reduce, all_reduce, reduce_scatter and its _v form. Every element
 * is folded in rank order, by one rank or by all ranks alike. Here is the
 * choice of an algorithm. */
#include "config.h"

#include "backends/shm/reduce-shared.h"

int shm_reduce_begin(shm_t *shm, shm_op_t *op)
{
    const size_t total = op->args->count * op->args->element;
    const size_t p = (size_t)shm->ranks;
    const size_t share = (total / p + SHM_LINE - 1) / SHM_LINE * SHM_LINE;
    const bool flat = shm_is_flat(shm, op);

    if (shm_op_scatters(op)) {
        op->bytes = total;
        return shm_parts_begin(shm, op);
    }
    op->bytes = share * p < total ? share + SHM_LINE : share;
    if (shm_may_be_direct(shm, op) && (!flat || shm->in_heaps))
        return shm_direct_begin(shm, op);
    return flat ? shm_flat_begin(shm, op) : shm_parts_begin(shm, op);
}
