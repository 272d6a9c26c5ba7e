/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.h by dscomm. */
#include "config.h"

#include "tests/bench/hosts/exchange.h"

#include <dscomm/dscomm.h>

#define WINDOW 16

static dscomm_group_t *world;
static int other;

void peer_open(int *ret_rank, int *ret_ranks)
{
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    *ret_rank = dscomm_group_rank(world);
    *ret_ranks = dscomm_group_size(world);
    other = !*ret_rank;
}

void peer_close(void)
{
    DSCOMM_CHECK(dscomm_finalize(world));
}

void peer_send(const char *data, size_t bytes)
{
    DSCOMM_CHECK(dscomm_send(world, data, bytes, DSCOMM_INT8, other, 1));
}

void peer_recv(char *data, size_t bytes)
{
    DSCOMM_CHECK(
        dscomm_recv(world, data, bytes, DSCOMM_INT8, other, 1, NULL, NULL));
}

void peer_stream(int rank, char *data, size_t bytes, int times)
{
    dscomm_work_t *works[WINDOW];

    for (int begun = 0, count; begun < times; begun += count) {
        for (count = 0; count < WINDOW && begun + count < times; count++)
            DSCOMM_CHECK(rank ? dscomm_irecv(world, data, bytes, DSCOMM_INT8,
                                             other, 1, &works[count])
                              : dscomm_isend(world, data, bytes, DSCOMM_INT8,
                                             other, 1, &works[count]));
        for (int i = 0; i < count; i++) {
            DSCOMM_CHECK(dscomm_work_wait(works[i], -1));
            dscomm_work_free(works[i]);
        }
    }
}

void peer_all_reduce(const float *in, float *out, size_t count)
{
    DSCOMM_CHECK(dscomm_all_reduce(world, in, out, count, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, NULL));
}
