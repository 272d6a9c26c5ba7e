/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h by dscomm. */
#include "config.h"

#include "tests/bench/compare/peer.h"

#include <dscomm/dscomm.h>

static dscomm_group_t *world;

void peer_open(int *ret_rank, int *ret_ranks)
{
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    *ret_rank = dscomm_group_rank(world);
    *ret_ranks = dscomm_group_size(world);
}

void peer_close(void)
{
    DSCOMM_CHECK(dscomm_finalize(world));
}

void *peer_alloc(size_t bytes)
{
    void *memory;

    DSCOMM_CHECK(dscomm_mem_alloc(world, bytes, &memory));
    return memory;
}

void peer_free(void *memory)
{
    DSCOMM_CHECK(dscomm_mem_free(world, memory));
}

void peer_barrier(void)
{
    DSCOMM_CHECK(dscomm_barrier(world, NULL));
}

void peer_all_reduce(const void *in, void *out, size_t count)
{
    DSCOMM_CHECK(dscomm_all_reduce(world, in, out, count, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, NULL));
}

void peer_reduce_scatter(const void *in, void *out, size_t count)
{
    DSCOMM_CHECK(dscomm_reduce_scatter(world, in, out, count, DSCOMM_FLOAT32,
                                       DSCOMM_SUM, NULL));
}

void peer_all_gather(const void *in, void *out, size_t bytes)
{
    DSCOMM_CHECK(dscomm_all_gather(world, in, out, bytes, DSCOMM_UINT8, NULL));
}

void peer_all_to_all(const void *in, void *out, size_t bytes)
{
    DSCOMM_CHECK(dscomm_all_to_all(world, in, out, bytes, DSCOMM_UINT8, NULL));
}

void peer_broadcast(void *data, size_t bytes, int root)
{
    DSCOMM_CHECK(
        dscomm_broadcast(world, data, bytes, DSCOMM_UINT8, root, NULL));
}

void peer_send(const void *data, size_t bytes, int to)
{
    DSCOMM_CHECK(dscomm_send(world, data, bytes, DSCOMM_UINT8, to, 1));
}

void peer_recv(void *data, size_t bytes, int from)
{
    DSCOMM_CHECK(
        dscomm_recv(world, data, bytes, DSCOMM_UINT8, from, 1, NULL, NULL));
}
