/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions: reduce, all_reduce, reduce_scatter and its _v form. Every element
 * is folded in rank order, by one rank or by all ranks alike. Here are the
 * choice of an algorithm and what each costs. */
#include "config.h"

#include "backends/shm/reduce-shared.h"

/* Returns the bytes of a part, but for the last ones. */
static size_t part_bytes(const shm_t *shm, const shm_op_t *op)
{
    const size_t total = op->args->count * op->args->element;
    const size_t p = (size_t)shm->ranks;
    const size_t share = (total / p + SHM_LINE - 1) / SHM_LINE * SHM_LINE;

    if (shm_op_scatters(op))
        return total;
    return share * p < total ? share + SHM_LINE : share;
}

int shm_reduce_begin(shm_t *shm, shm_op_t *op)
{
    const bool flat = shm_is_flat(shm, op);

    op->bytes = part_bytes(shm, op);
    if (shm_op_scatters(op))
        return shm_parts_begin(shm, op);
    if (shm_may_be_direct(shm, op) && (!flat || shm->in_heaps))
        return shm_direct_begin(shm, op);
    return flat ? shm_flat_begin(shm, op) : shm_parts_begin(shm, op);
}

/* One rank's bytes by an algorithm of p ranks: all has those of the whole
 * input, part those of the rank's part; wants: it needs the whole result. They
 * are counted at the heads of the algorithms' files. */
typedef struct {
    uint64_t p, all, part;
    bool wants;
} share_t;

static void flat_add(const share_t *s, dscomm_native_info_t *info)
{
    if (s->wants)
        shm_info_add(info, (s->p - 1) * s->all, (s->p + 3) * s->all);
    else
        shm_info_add(info, 0, 2 * s->all);
}

static void parts_add(const share_t *s, dscomm_native_info_t *info)
{
    const uint64_t others = s->all - s->part;
    const uint64_t folded = (s->p + 1) * s->part;

    shm_info_add(info, (s->p - 1) * s->part + (s->wants ? others : 0),
                 2 * others + folded + (s->wants ? 2 * s->all : 0));
}

static void direct_add(const share_t *s, dscomm_native_info_t *info)
{
    const uint64_t copied = (s->p - 1) * s->part;

    shm_info_add(info, 2 * copied, (s->p + 1) * s->part + 2 * copied);
}

static void read_add(const share_t *s, dscomm_native_info_t *info)
{
    const uint64_t copied = (s->p - 1) * s->part + s->all - s->part;

    shm_info_add(info, copied, (s->p + 1) * s->part + 2 * copied);
}

typedef struct {
    const char *name;
    int steps;
    void (*add)(const share_t *share, dscomm_native_info_t *info);
} way_t;

static const way_t flat_way = {"flat", 1, flat_add};
static const way_t scatter_way = {"parts", 1, parts_add};
static const way_t parts_way = {"parts", 2, parts_add};
/* Ranks meet first, to find that they cannot reach all buffers. */
static const way_t late_parts_way = {"parts", 3, parts_add};
static const way_t direct_way = {"direct", 2, direct_add};
static const way_t read_way = {"read", 3, read_add};

/* The way of calls that are repeated with buffers as these on all ranks. */
static const way_t *find_way(shm_t *shm, const shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    const size_t total = a->count * a->element;
    const bool flat = shm_is_flat(shm, op);
    uint64_t input, result;

    if (shm_op_scatters(op))
        return &scatter_way;
    if (!shm_may_be_direct(shm, op))
        return flat ? &flat_way : &parts_way;
    input = shm_reference_look(shm, a->send, total, false);
    result = shm_reference_look(shm, a->recv, total, false);
    if (input && result && !shm_reference_is_address(input) &&
        !shm_reference_is_address(result))
        return &direct_way;
    if (flat)
        return &flat_way;
    return input && result ? &read_way : &late_parts_way;
}

void shm_reduce_info(shm_t *shm, shm_op_t *op, dscomm_native_info_t *info)
{
    const way_t *way = find_way(shm, op);
    const uint64_t total = op->args->count * op->args->element;
    share_t share = {.p = (uint64_t)shm->ranks};

    op->bytes = part_bytes(shm, op);
    share.all = shm_op_scatters(op) ? share.p * total : total;
    info->algorithm = way->name;
    info->steps = way->steps;
    for (int r = 0; r < shm->ranks; r++) {
        share.part = shm_part_of(op, r).bytes;
        share.wants = shm_rank_wants_all(op, r);
        way->add(&share, info);
    }
}
