/* SPDX-License-Identifier: BSD-3-Clause */
/* The _v collectives: blocks of unequal length, empty blocks, gaps between
 * blocks. */
#include "config.h"

#include "tests/backends/conform.h"

#include <string.h>

static void run_coll(int coll)
{
    static const size_t counts[] = {0, 1, 2, 7, 33, 700, 20000};
    exchange_t x = {.group = my.group, .coll = coll};

    for (size_t i = 0; i < CONFORM_LENGTH(counts); i++) {
        for (int variant = 0; variant < 8; variant++) {
            x.dtype = (dscomm_dtype_t)((i + (size_t)variant) % 8);
            x.op = variant % 2 ? DSCOMM_MAX : DSCOMM_SUM;
            x.root = (variant + (int)i) % my.ranks;
            x.count = conform_scale(counts[i]);
            x.seed = i * 8 + (size_t)variant;
            x.gaps = variant & 1;
            x.in_place = variant >> 1 & 1;
            x.offset = variant & 4 ? 1 + i : 0;
            exchange_run(&x);
        }
    }
}

#define RANKS_MAX 64

/* One rank owns all elements. */
static void test_single_owner(void)
{
    int32_t in[1000], out[1000];
    size_t counts[RANKS_MAX] = {0};

    for (int owner = 0; owner < my.ranks && owner < 5; owner++) {
        counts[owner] = 1000;
        for (int i = 0; i < 1000; i++)
            in[i] = owner * 1000 + i;
        memset(out, 0, sizeof out);
        CHECK_OK(dscomm_all_gather_v(my.group, my.rank == owner ? in : NULL,
                                     counts[my.rank], out, counts, NULL,
                                     DSCOMM_INT32, NULL));
        check(memcmp(in, out, sizeof in) == 0, "all_gather_v from rank %d",
              owner);
        memset(out, 0, sizeof out);
        CHECK_OK(dscomm_reduce_scatter_v(my.group, in,
                                         my.rank == owner ? out : NULL, counts,
                                         DSCOMM_INT32, DSCOMM_MAX, NULL));
        check(my.rank != owner || memcmp(in, out, sizeof in) == 0,
              "reduce_scatter_v to rank %d", owner);
        counts[owner] = 0;
    }
}

/* An all_to_all_v in which only neighbours exchange: a halo. */
static void test_halo(void)
{
    size_t send_counts[RANKS_MAX] = {0}, recv_counts[RANKS_MAX] = {0};
    int32_t in[2] = {my.rank * 2, my.rank * 2 + 1}, out[2] = {-1, -1};
    const int next = next_rank(), prev = prev_rank();

    send_counts[next] = 2;
    recv_counts[prev] = 2;
    CHECK_OK(dscomm_all_to_all_v(my.group, in, send_counts, NULL, out,
                                 recv_counts, NULL, DSCOMM_INT32, NULL));
    check(out[0] == prev * 2 && out[1] == prev * 2 + 1,
          "got %d %d from rank %d", out[0], out[1], prev);
}

static const conform_case_t cases[] = {
    {"all_gather_v", run_coll, DSCOMM_COLL_ALL_GATHER_V},
    {"reduce_scatter_v", run_coll, DSCOMM_COLL_REDUCE_SCATTER_V},
    {"gather_v", run_coll, DSCOMM_COLL_GATHER_V},
    {"scatter_v", run_coll, DSCOMM_COLL_SCATTER_V},
    {"all_to_all_v", run_coll, DSCOMM_COLL_ALL_TO_ALL_V},
    {NULL, NULL, 0},
};
static const conform_test_t tests[] = {
    {"one rank owns everything", test_single_owner},
    {"only neighbours exchange", test_halo},
    {NULL, NULL},
};
const conform_area_t conform_variants = {"variants", cases, tests};
