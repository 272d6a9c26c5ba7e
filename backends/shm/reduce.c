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

static void set_sizes(const shm_t *shm, shm_op_t *op)
{
    shm_part_t last;

    op->bytes = part_bytes(shm, op);
    last = shm_part_of(op, shm->ranks - 1);
    op->total = shm_op_scatters(op) ? last.offset + last.bytes
                                    : op->args->count * op->args->element;
}

int shm_reduce_begin(shm_t *shm, shm_op_t *op)
{
    const bool flat = shm_is_flat(shm, op);

    set_sizes(shm, op);
    if (shm_may_be_direct(shm, op) && (!flat || shm->in_heaps))
        return shm_direct_begin(shm, op);
    return flat ? shm_flat_begin(shm, op) : shm_parts_begin(shm, op);
}

/* One rank's bytes by an algorithm of p ranks: all has those of the whole
 * input, part those of the rank's part; wants: it needs the whole result. They
 * are counted at the heads of the algorithms' files. */
typedef struct {
    dscomm_coll_t coll;
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
    const uint64_t got = (s->p - 1) * s->part;
    const uint64_t folded = (s->p + 1) * s->part;

    if (s->coll == DSCOMM_COLL_ALL_REDUCE)
        shm_info_add(info, 2 * got, folded + 2 * got);
    else /* a part of reduce goes to the root */
        shm_info_add(
            info,
            got + (s->coll == DSCOMM_COLL_REDUCE && !s->wants ? s->part : 0),
            folded);
}

static void read_add(const share_t *s, dscomm_native_info_t *info)
{
    const uint64_t copied = (s->p - 1) * s->part + s->all - s->part;

    shm_info_add(info, copied, (s->p + 1) * s->part + 2 * copied);
}

/* Ways in which a call may go. */
enum {
    FLAT,
    PARTS,
    PARTS_LATE, /* ranks have met, and cannot reach all buffers */
    DIRECT,
    READ,
    WAYS
};

/* steps: the flags of each other rank that are awaited; of scatters if the
 * result is scattered. */
static const struct {
    const char *name;
    int steps, scatters;
    void (*add)(const share_t *share, dscomm_native_info_t *info);
} ways[WAYS] = {
    [FLAT] = {"flat", 1, 1, flat_add},
    [PARTS] = {"parts", 2, 1, parts_add},
    [PARTS_LATE] = {"parts", 3, 2, parts_add},
    [DIRECT] = {"direct", 2, 2, direct_add},
    [READ] = {"read", 3, 0, read_add},
};

/* The way of calls that are repeated with buffers as these on all ranks. */
static int find_way(shm_t *shm, const shm_op_t *op)
{
    const dscomm_coll_args_t *a = op->args;
    const size_t total = op->total;
    const bool flat = shm_is_flat(shm, op);
    uint64_t input, result;

    if (!shm_may_be_direct(shm, op))
        return flat ? FLAT : PARTS;
    input = result = shm_reference_look(shm, a->send, total, false);
    if (shm_wants_all(shm, op))
        result = shm_reference_look(shm, a->recv, total, false);
    if (input && result && !shm_reference_is_address(input) &&
        !shm_reference_is_address(result))
        return DIRECT;
    if (flat)
        return FLAT;
    return input && result && shm_may_read(op) ? READ : PARTS_LATE;
}

void shm_reduce_info(shm_t *shm, shm_op_t *op, dscomm_native_info_t *info)
{
    share_t share = {.coll = (dscomm_coll_t)op->args->coll,
                     .p = (uint64_t)shm->ranks};
    int way;

    set_sizes(shm, op);
    way = find_way(shm, op);
    share.all = op->total;
    info->algorithm = ways[way].name;
    info->steps = shm_op_scatters(op) ? ways[way].scatters : ways[way].steps;
    for (int r = 0; r < shm->ranks; r++) {
        share.part = shm_part_of(op, r).bytes;
        share.wants = shm_rank_wants_all(op, r);
        ways[way].add(&share, info);
    }
}
