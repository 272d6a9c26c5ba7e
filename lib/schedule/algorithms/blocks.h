/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to algorithms: blocks of the ranks, with one count or one for each
 * rank, and pieces of long blocks. */
#ifndef LIB_ALGORITHMS_BLOCKS_H
#define LIB_ALGORITHMS_BLOCKS_H

#include "lib/schedule/algorithm.h"

/* Largest number of chains in a schedule; longer buffers have longer pieces. */
#define PIECES_MOST 1024

/* The elements that rank sends, or receives, in its block. */
static inline size_t send_count(const dscomm_coll_args_t *args, int rank)
{
    return args->send_counts ? args->send_counts[rank] : args->count;
}

static inline size_t recv_count(const dscomm_coll_args_t *args, int rank)
{
    return args->recv_counts ? args->recv_counts[rank] : args->count;
}

/* The place of rank's block in a buffer with a block for every rank. */
static inline dscomm_place_t send_block(const dscomm_coll_args_t *args,
                                        int rank)
{
    size_t first = args->send_displs ? args->send_displs[rank]
                                     : (size_t)rank * args->count;

    return dscomm_priv_at(AT_SEND, first * args->element);
}

static inline dscomm_place_t recv_block(const dscomm_coll_args_t *args,
                                        int rank)
{
    size_t first = args->recv_displs ? args->recv_displs[rank]
                                     : (size_t)rank * args->count;

    return dscomm_priv_at(AT_RECV, first * args->element);
}

/* The place of rank's block in send, in reduce_scatter. */
static inline dscomm_place_t input_block(const dscomm_coll_args_t *args,
                                         int rank)
{
    dscomm_place_t block = recv_block(args, rank);

    block.at = AT_SEND;
    return block;
}

static inline size_t most_recv_count(const dscomm_coll_args_t *args, int ranks)
{
    size_t most = args->count;

    for (int r = 0; args->recv_counts && r < ranks; r++)
        most = MAX(most, args->recv_counts[r]);
    return most;
}

/* The number of pieces of count elements, each of at most so many bytes; 1 if
 * there are none. */
static inline size_t count_pieces(const dscomm_coll_args_t *args, size_t count,
                                  size_t bytes)
{
    size_t total = count * args->element;
    size_t pieces = total / bytes + (total % bytes != 0);

    return MIN(MAX(pieces, 1), PIECES_MOST);
}

/* Piece i of a block of count elements. */
typedef struct {
    size_t first, count; /* elements */
    size_t offset, bytes;
} piece_t;

static inline piece_t cut(const dscomm_coll_args_t *args, size_t count,
                          size_t pieces, size_t i)
{
    size_t first = dscomm_priv_part_start(count, pieces, i);
    size_t part = dscomm_priv_part_size(count, pieces, i);

    return (piece_t){first, part, first * args->element, part * args->element};
}

/* Rounds bytes up to cache lines. */
static inline size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static inline int wrap(int rank, int ranks)
{
    return (rank % ranks + ranks) % ranks;
}

#endif
