/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills buffers and counts wrong elements, see verify.h. */
#include "config.h"

#include "tools/perf/operations.h"
#include "tools/perf/verify.h"

#include <string.h>

/* A value that no result has, except by chance. */
#define POISON 0xa5

/* Elements of 8 bytes, which every type's fit into. */
typedef guint64 block_t[PERF_PERIOD];

static size_t shape_count(const perf_call_t *call, perf_shape_t shape)
{
    gboolean root = call->rank == call->root;

    switch (shape) {
    case PERF_WHOLE:
        return call->total;
    case PERF_WHOLE_ON_ROOT:
        return root ? call->total : 0;
    case PERF_PART:
        return perf_call_block(call, call->rank).count;
    case PERF_FIRST_TWO:
        return call->rank < 2 ? call->total : 0;
    default:
        return 0;
    }
}

/* count elements that repeat the block. */
static void repeat(const perf_call_t *call, const void *block, char *to,
                   size_t count)
{
    while (count > 0) {
        size_t now = MIN(count, PERF_PERIOD);
        memcpy(to, block, now * call->size);
        to += now * call->size;
        count -= now;
    }
}

/* The buffers of an operation in place overlap: the input goes last. */
void perf_fill(const perf_call_t *call, guint32 seed)
{
    block_t *block = g_new(block_t, 1);
    size_t in = shape_count(call, call->operation->send);
    size_t out = shape_count(call, call->operation->recv);

    perf_pattern(call, seed, call->rank, block);
    memset(call->recv, POISON, out * call->size);
    if (call->operation->send == PERF_NOTHING && call->rank == call->root)
        repeat(call, block, call->recv, out);
    repeat(call, block, call->send, in);
    g_free(block);
}

static int one_piece(perf_piece_t *piece, size_t count, int source,
                     size_t first)
{
    *piece = (perf_piece_t){0, count, source, first};
    return count > 0;
}

/* The result of all_gather: rank i's own elements from its first one on. */
static int gathered_pieces(const perf_call_t *call, perf_piece_t *pieces)
{
    for (int i = 0; i < call->ranks; i++) {
        perf_block_t block = perf_call_block(call, i);
        pieces[i] = (perf_piece_t){block.offset, block.count, i, 0};
    }
    return call->ranks;
}

static int exchanged_pieces(const perf_call_t *call, perf_piece_t *pieces)
{
    size_t offset = 0;

    for (int i = 0; i < call->ranks; i++) {
        perf_block_t block = perf_call_exchanged(call, i, call->rank);
        pieces[i] = (perf_piece_t){offset, block.count, i, block.offset};
        offset += block.count;
    }
    return call->ranks;
}

int perf_pieces(const perf_call_t *call, perf_piece_t *pieces)
{
    perf_block_t own = perf_call_block(call, call->rank);
    gboolean root = call->rank == call->root;
    int previous = (call->rank + call->ranks - 1) % call->ranks;

    switch (call->operation->gets) {
    case PERF_GETS_ROOT:
        return one_piece(pieces, call->total, call->root, 0);
    case PERF_GETS_REDUCED:
        return one_piece(pieces, call->total, -1, 0);
    case PERF_GETS_REDUCED_ON_ROOT:
        return one_piece(pieces, root ? call->total : 0, -1, 0);
    case PERF_GETS_REDUCED_PART:
        return one_piece(pieces, own.count, -1, own.offset);
    case PERF_GETS_ALL:
        return gathered_pieces(call, pieces);
    case PERF_GETS_ALL_ON_ROOT:
        return root ? gathered_pieces(call, pieces) : 0;
    case PERF_GETS_PART:
        return one_piece(pieces, own.count, call->root, own.offset);
    case PERF_GETS_EXCHANGED:
        return exchanged_pieces(call, pieces);
    case PERF_GETS_PREVIOUS:
        return one_piece(pieces, call->total, previous, 0);
    case PERF_GETS_OTHER:
        return one_piece(pieces, call->rank < 2 ? call->total : 0,
                         1 - call->rank, 0);
    case PERF_GETS_FIRST:
        return one_piece(pieces, call->rank == 1 ? call->total : 0, 0, 0);
    default:
        return 0;
    }
}

static gint64 count_differing(const perf_call_t *call, const char *got,
                              const char *want, size_t count)
{
    gint64 wrong = 0;

    if (memcmp(got, want, count * call->size) == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        wrong += memcmp(got + i * call->size, want + i * call->size,
                        call->size) != 0;
    return wrong;
}

static gint64 check_piece(const perf_call_t *call, const perf_piece_t *piece,
                          const void *block)
{
    const char *got = (const char *)call->recv + piece->offset * call->size;
    size_t phase = piece->first % PERF_PERIOD;
    size_t left = piece->count;
    gint64 wrong = 0;

    while (left > 0) {
        size_t now = MIN(left, PERF_PERIOD - phase);
        wrong += count_differing(call, got,
                                 (const char *)block + phase * call->size, now);
        got += now * call->size;
        left -= now;
        phase = 0;
    }
    return wrong;
}

gint64 perf_count_wrong(const perf_call_t *call, guint32 seed)
{
    perf_piece_t *pieces = g_new(perf_piece_t, call->ranks);
    block_t *block = g_new(block_t, 1);
    int count = perf_pieces(call, pieces);
    gint64 wrong = 0;

    for (int i = 0; i < count; i++) {
        if (pieces[i].source < 0)
            perf_reduced(call, seed, block);
        else
            perf_pattern(call, seed, pieces[i].source, block);
        wrong += check_piece(call, &pieces[i], block);
    }
    g_free(block);
    g_free(pieces);
    return wrong;
}
