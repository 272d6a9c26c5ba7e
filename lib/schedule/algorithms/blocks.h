/* SPDX-License-Identifier: BSD-3-Clause */
/* What algorithms have in common: the ranks' blocks, with one count or one for
 * each rank, and pieces of long ones. */
#ifndef LIB_ALGORITHMS_BLOCKS_H
#define LIB_ALGORITHMS_BLOCKS_H

#include "lib/schedule/algorithm.h"

/* Chains of one schedule, at most: what is longer has longer pieces. */
#define PIECES_MOST 1024

/* The elements that rank sends, or receives, as one of the ranks' blocks. */
static inline size_t send_count(const dscomm_coll_args_t *args, int rank)
{
    return args->send_counts ? args->send_counts[rank] : args->count;
}

static inline size_t recv_count(const dscomm_coll_args_t *args, int rank)
{
    return args->recv_counts ? args->recv_counts[rank] : args->count;
}

/* Where rank's block is in a buffer with a block for every rank. */
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

/* reduce_scatter: rank's block in send. */
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

/* Into how many pieces of at most so many bytes count elements are cut; 1
 * where there is nothing. */
static inline size_t count_pieces(const dscomm_coll_args_t *args, size_t count,
                                  size_t bytes)
{
    size_t total = count * args->element;
    size_t pieces = total / bytes + (total % bytes != 0);

    return MIN(MAX(pieces, 1), PIECES_MOST);
}

/* Piece number i of so many of a block of count elements. */
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

/* Bytes on cache lines of their own. */
static inline size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static inline int wrap(int rank, int ranks)
{
    return (rank % ranks + ranks) % ranks;
}

#endif
