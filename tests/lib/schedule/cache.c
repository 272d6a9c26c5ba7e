/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache: which schedules and runs are reused, and which are not kept. */
#include "config.h"

#include "lib/call/check.h"
#include "lib/schedule/algorithm.h"
#include "lib/schedule/cache.h"
#include "tests/lib/schedule/find.h"
#include "tests/lib/schedule/loop.h"
#include "tests/lib/work/hungry.h"
#include "tests/tap.h"

#include <string.h>

static dscomm_run_t *take(dscomm_schedule_cache_t *cache, size_t count)
{
    const dscomm_coll_args_t args = {
        .coll = DSCOMM_COLL_ALL_REDUCE,
        .dtype = DSCOMM_FLOAT32,
        .op = DSCOMM_SUM,
        .root = -1,
        .count = count,
        .element = 4,
        .fingerprint = dscomm_priv_fingerprint(
            DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT32, DSCOMM_SUM, -1, count),
    };

    return dscomm_priv_cache_take(
        cache, find_algorithm(DSCOMM_COLL_ALL_REDUCE, "ring"), &args);
}

static void test_same(dscomm_schedule_cache_t *cache)
{
    dscomm_run_t *one = take(cache, 5), *two = take(cache, 5);
    dscomm_run_t *other = take(cache, 6);

    ok(one != two && one->schedule == two->schedule,
       "two of a shape share a schedule");
    ok(other->schedule != one->schedule, "another shape has its own");
    dscomm_priv_cache_give(cache, one);
    ok(take(cache, 5) == one, "a run that was given back serves again");
    dscomm_priv_cache_give(cache, one);
    dscomm_priv_cache_give(cache, two);
    dscomm_priv_cache_give(cache, other);
}

#define MANY 600 /* more than there is room for */

/* A run keeps a shape that was evicted until the run is given back. */
static void test_many(dscomm_schedule_cache_t *cache)
{
    dscomm_run_t *runs[MANY], *again;
    size_t own = 0, kept = 0;

    for (size_t i = 0; i < MANY; i++)
        runs[i] = take(cache, 100 + i);
    for (size_t i = 0; i < MANY; i++)
        own += runs[i]->schedule->header.count == 100 + i;
    is_int((int)own, MANY, "so many shapes under way");
    for (size_t i = MANY; i-- > 0;) {
        const dscomm_schedule_t *before = runs[i]->schedule;

        again = take(cache, 100 + i);
        kept += again->schedule == before;
        dscomm_priv_cache_give(cache, again);
        if (i == MANY - 1)
            ok(kept == 1, "the latest is still there");
    }
    ok(kept >= 100 && kept < MANY, "%zu are still there, others are not", kept);
    for (size_t i = 0; i < MANY; i++)
        dscomm_priv_cache_give(cache, runs[i]);
}

/* A program that has very many shapes, in turn. */
static void test_turns(dscomm_schedule_cache_t *cache)
{
    const dscomm_schedule_t *seen[60];
    int kept = 0;

    for (size_t turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < 60; i++) {
            dscomm_run_t *run = take(cache, 2000 + i);

            kept += turn && run->schedule == seen[i];
            seen[i] = run->schedule;
            dscomm_priv_cache_give(cache, run);
        }
    ok(kept >= 50, "of 60 shapes in turn %d are found again", kept);
}

/* 64 ranks forward 64 GiB in pieces of 64 blocks: some 300 steps for each
 * piece. */
static void test_long(dscomm_schedule_cache_t *cache)
{
    const size_t count = (size_t)16 << 30;
    dscomm_run_t *small = take(cache, 5), *one = take(cache, count), *two;

    if (!one) {
        skip("no room for some MiB of addresses");
        dscomm_priv_cache_give(cache, small);
        return;
    }
    ok(one->schedule->bytes > (size_t)16 << 20, "a schedule of %zu MiB",
       one->schedule->bytes >> 20);
    two = take(cache, count);
    ok(two && two->schedule != one->schedule, "is not kept");
    dscomm_priv_cache_give(cache, one);
    dscomm_priv_cache_give(cache, two);
    dscomm_priv_cache_give(cache, small);
    two = take(cache, 5);
    ok(two == small, "and makes nobody leave");
    dscomm_priv_cache_give(cache, two);
}

/* Sums of sizes that do not wrap around to small ones. */
static void test_too_long(dscomm_schedule_cache_t *cache)
{
    is_int(take(cache, SIZE_MAX / 8) == NULL, 1,
           "there is no memory for all there could be");
}

int main(void)
{
    const loop_plan_t plan = {.ranks = 64, .seed = 1};
    loop_t *loop = loop_new(&plan);
    const dscomm_port_t port = {loop_ops(), loop_impl(loop, 0), "loop", NULL,
                                NULL};
    dscomm_schedule_cache_t *cache = dscomm_priv_cache_new(&port, 0, 64, NULL);

    test_same(cache);
    test_turns(cache);
    test_many(cache);
    if (sizeof(size_t) > 4) {
        test_long(cache);
        test_too_long(cache);
    }
    dscomm_priv_cache_free(cache);
    loop_free(loop);
    return tap_done();
}
