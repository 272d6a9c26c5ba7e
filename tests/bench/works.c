/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a work compared with a blocking call, and of coalesced calls
 * compared with one call of their total size. Not a test.
 *
 *     dscomm run -n 2 tests/bench/works
 *
 * Rank r is bound to processor r modulo their number. Figures are medians of
 * rank 0, in microseconds. */
#include "config.h"

#include "tests/bench/bench.h"

#include <stdio.h>

#include <dscomm/dscomm.h>

#define ROUNDS 1001
#define CALLS 10 /* in a round */
#define PARTS 100
#define PART 64 /* elements of each coalesced call */
#define MOST ((size_t)1 << 18)

static dscomm_group_t *world;
static float in[MOST], out[MOST];

static dscomm_status_t sum(size_t first, size_t count, dscomm_work_t **ret_work)
{
    return dscomm_all_reduce(world, in + first, out + first, count,
                             DSCOMM_FLOAT32, DSCOMM_SUM, ret_work);
}

static void blocking(size_t count)
{
    for (int i = 0; i < CALLS; i++)
        DSCOMM_CHECK(sum(0, count, NULL));
}

static void with_works(size_t count)
{
    for (int i = 0; i < CALLS; i++) {
        dscomm_work_t *work;

        DSCOMM_CHECK(sum(0, count, &work));
        DSCOMM_CHECK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
        dscomm_work_free(work);
    }
}

static void separate(size_t count)
{
    for (size_t i = 0; i < PARTS; i++)
        DSCOMM_CHECK(sum(i * count, count, NULL));
}

static void coalesced(size_t count)
{
    DSCOMM_CHECK(dscomm_coalesce_begin(world));
    separate(count);
    DSCOMM_CHECK(dscomm_coalesce_end(world, NULL));
}

/* Buffers with gaps of their own size. */
static void scattered(size_t count)
{
    DSCOMM_CHECK(dscomm_coalesce_begin(world));
    for (size_t i = 0; i < PARTS; i++)
        DSCOMM_CHECK(sum(2 * i * count, count, NULL));
    DSCOMM_CHECK(dscomm_coalesce_end(world, NULL));
}

static void together(size_t count)
{
    DSCOMM_CHECK(sum(0, PARTS * count, NULL));
}

#define BODIES_MOST 4

/* Measures the median time of each body; rounds of different bodies
 * alternate. */
static void measure(void (*const bodies[])(size_t), int nbodies, size_t count,
                    double *ret_times)
{
    static double times[BODIES_MOST][ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        for (int b = 0; b < nbodies; b++) {
            double start;

            DSCOMM_CHECK(dscomm_barrier(world, NULL));
            start = now_ns();
            bodies[b](count);
            times[b][i] = (now_ns() - start) / 1e3;
        }
    for (int b = 0; b < nbodies; b++)
        ret_times[b] = median(times[b], ROUNDS);
}

static void compare_works(void)
{
    void (*const bodies[])(size_t) = {blocking, with_works};
    const int speaks = dscomm_group_rank(world) == 0;
    double times[2];

    if (speaks)
        printf("%8s %9s %9s\n", "bytes", "blocking", "as a work");
    for (size_t count = 2; count <= MOST; count *= 8) {
        measure(bodies, 2, count, times);
        if (speaks)
            printf("%8zu %9.3f %9.3f\n", count * sizeof(float),
                   times[0] / CALLS, times[1] / CALLS);
    }
}

static void compare_coalesced(void)
{
    void (*const bodies[])(size_t) = {coalesced, scattered, together, separate};
    double times[4];

    measure(bodies, 4, PART, times);
    if (dscomm_group_rank(world) == 0)
        printf("%d calls of %zu bytes: coalesced %.2f, scattered %.2f, one of "
               "the sum %.2f, separate %.2f\n",
               PARTS, PART * sizeof(float), times[0], times[1], times[2],
               times[3]);
}

int main(void)
{
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    bind_rank(dscomm_group_rank(world));
    for (size_t i = 0; i < MOST; i++)
        in[i] = (float)(i % 7);
    compare_works();
    compare_coalesced();
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
