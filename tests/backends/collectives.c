/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective with equal blocks: sizes, alignments, roots, in place. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdio.h>
#include <sys/utsname.h>

/* Sizes near those at which transports change their protocols. */
static const struct {
    dscomm_dtype_t dtype;
    size_t count;
} sizes[] = {
    {DSCOMM_INT8, 0},     {DSCOMM_FLOAT64, 0},     {DSCOMM_INT8, 1},
    {DSCOMM_INT16, 1},    {DSCOMM_FLOAT32, 1},     {DSCOMM_INT8, 3},
    {DSCOMM_UINT8, 7},    {DSCOMM_INT64, 1},       {DSCOMM_INT8, 9},
    {DSCOMM_FLOAT16, 9},  {DSCOMM_INT32, 6},       {DSCOMM_INT32, 7},
    {DSCOMM_INT8, 47},    {DSCOMM_INT8, 55},       {DSCOMM_INT64, 7},
    {DSCOMM_INT8, 57},    {DSCOMM_BFLOAT16, 29},   {DSCOMM_INT8, 63},
    {DSCOMM_FLOAT32, 16}, {DSCOMM_INT8, 65},       {DSCOMM_INT8, 119},
    {DSCOMM_INT64, 16},   {DSCOMM_FLOAT32, 33},    {DSCOMM_INT8, 255},
    {DSCOMM_INT8, 257},   {DSCOMM_INT32, 1024},    {DSCOMM_UINT8, 4097},
    {DSCOMM_INT8, 16385}, {DSCOMM_FLOAT32, 16384}, {DSCOMM_FLOAT64, 8195},
};

/* Other roots than rank 0 alternate with the sizes. */
static void run_sizes(exchange_t x)
{
    size_t first = (size_t)x.root % 3, step = x.root ? 3 : 1;

    for (size_t i = first; i < CONFORM_LENGTH(sizes); i += step) {
        x.dtype = sizes[i].dtype;
        x.count = conform_scale(sizes[i].count);
        for (int variant = 0; variant < 4; variant++) {
            x.offset = variant & 1 ? 1 + i % 7 : 0;
            x.in_place = variant >> 1;
            x.seed++;
            if (!x.in_place || exchange_in_place(x.coll))
                exchange_run(&x);
        }
    }
}

/* True for the first and the last rank, and for one in the middle if there are
 * many. */
static int is_root(int rank)
{
    return my.ranks <= 5 || rank == 0 || rank == my.ranks - 1 ||
           rank == my.ranks / 2;
}

static void run_coll(int coll)
{
    exchange_t x = {.group = my.group, .coll = coll, .seed = 1000};

    for (x.root = 0; x.root < (exchange_rooted(coll) ? my.ranks : 1); x.root++)
        if (is_root(x.root))
            run_sizes(x);
}

/* Over a million elements, an odd number, and misaligned. */
static void test_large(void)
{
    static const int colls[] = {
        DSCOMM_COLL_BROADCAST,      DSCOMM_COLL_REDUCE,
        DSCOMM_COLL_ALL_REDUCE,     DSCOMM_COLL_ALL_GATHER,
        DSCOMM_COLL_REDUCE_SCATTER, DSCOMM_COLL_GATHER,
        DSCOMM_COLL_SCATTER,        DSCOMM_COLL_ALL_TO_ALL,
    };

    for (size_t i = 0; i < CONFORM_LENGTH(colls); i++) {
        int whole = colls[i] <= DSCOMM_COLL_ALL_REDUCE;
        size_t total = (1 << 20) + 3;
        exchange_t x = {.group = my.group,
                        .coll = colls[i],
                        .dtype = i % 2 ? DSCOMM_FLOAT32 : DSCOMM_INT16,
                        .root = my.ranks - 1,
                        .seed = i + 9};

        x.count = conform_scale(whole ? total : total / (size_t)my.ranks + 1);
        exchange_run(&x);
        x.offset = 1;
        x.in_place = 1;
        exchange_run(&x);
    }
}

/* Sequence numbers count collectives, and are equal on all ranks. */
static void test_sequence(void)
{
    exchange_t x = {.group = my.group,
                    .coll = DSCOMM_COLL_ALL_REDUCE,
                    .dtype = DSCOMM_INT32,
                    .count = 5};
    uint64_t before = dscomm_group_sequence(my.group), low = 0, high = 0, now;

    for (int i = 0; i < 10; i++)
        exchange_run(&x);
    now = dscomm_group_sequence(my.group);
    check(now == before + 10, "sequence went from %llu to %llu",
          (unsigned long long)before, (unsigned long long)now);
    CHECK_OK(dscomm_all_reduce(my.group, &now, &low, 1, DSCOMM_UINT64,
                               DSCOMM_MIN, NULL));
    CHECK_OK(dscomm_all_reduce(my.group, &now, &high, 1, DSCOMM_UINT64,
                               DSCOMM_MAX, NULL));
    check(low == high, "sequence differs: %llu and %llu",
          (unsigned long long)low, (unsigned long long)high);
}

/* When a rank entered and left a barrier, and on which host's clock. */
typedef struct {
    double came, left;
    uint64_t host;
} visit_t;

static uint64_t this_host(void)
{
    struct utsname name;
    uint64_t hash = 0;

    uname(&name);
    for (const char *c = name.nodename; *c; c++)
        hash = mix(hash + (unsigned char)*c);
    return hash;
}

/* No rank leaves before the last one enters; each rank is the last one once. */
static void test_barrier(void)
{
    visit_t mine = {0, 0, this_host()}, all[64];

    for (int late = 0; late < my.ranks && late < 5; late++) {
        if (my.rank == late)
            conform_pause(20);
        mine.came = conform_now_ms();
        CHECK_OK(dscomm_barrier(my.group, NULL));
        mine.left = conform_now_ms();
        CHECK_OK(dscomm_all_gather(my.group, &mine, all, sizeof mine,
                                   DSCOMM_UINT8, NULL));
        for (int r = 0; r < my.ranks; r++)
            check(all[r].host != mine.host || mine.left >= all[r].came,
                  "left the barrier %.3f ms before rank %d came",
                  all[r].came - mine.left, r);
    }
    for (int i = 0; i < 200; i++)
        CHECK_OK(dscomm_barrier(my.group, NULL));
}

/* Ranks call in a different order each time. */
static void test_unequal_progress(void)
{
    exchange_t x = {.group = my.group, .count = 100};

    for (int i = 0; i < 26; i++) {
        x.coll = i % 13;
        x.root = i % my.ranks;
        x.seed = (uint64_t)i;
        x.dtype = DSCOMM_INT32;
        if (mix((uint64_t)(i * 64 + my.rank)) % 4 == 0)
            conform_pause(2);
        exchange_run(&x);
    }
}

static void test_monitored_barrier(void)
{
    exchange_t x = {.group = my.group,
                    .coll = DSCOMM_COLL_ALL_GATHER,
                    .dtype = DSCOMM_INT8,
                    .count = 3};

    for (int i = 0; i < 3; i++) {
        CHECK_OK(dscomm_monitored_barrier(my.group, 10000));
        exchange_run(&x);
    }
    CHECK_OK(dscomm_monitored_barrier(my.group, DSCOMM_TIMEOUT_DEFAULT));
}

/* Two ranks call after the others have given up. All sentences name both, and
 * the group can still be used. Of 2400 ms the barrier keeps 500 ms, its
 * maximum, for sending the outcome. */
static void test_monitored_barrier_late(void)
{
    char number[16];
    int last = my.ranks - 1, also = my.ranks > 4 ? my.ranks - 3 : last;
    int late = my.rank == last || my.rank == also;

    if (my.ranks == 1) {
        conform_skip("needs 2 ranks");
        return;
    }
    CHECK_OK(dscomm_barrier(my.group, NULL));
    for (int r = 0; r < my.ranks && late; r++)
        if (r != last && r != also)
            conform_await(r);
    CHECK_FAILS(dscomm_monitored_barrier(my.group, 2400), DSCOMM_ERR_TIMEOUT);
    snprintf(number, sizeof number, "%d", last);
    check_sentence(number, "late rank");
    snprintf(number, sizeof number, "%d", also);
    check_sentence(number, "other late rank");
    if (!late)
        conform_notify(last);
    if (!late && also != last)
        conform_notify(also);
    CHECK_OK(dscomm_group_status(my.group));
}

static const conform_case_t cases[] = {
    {"broadcast", run_coll, DSCOMM_COLL_BROADCAST},
    {"reduce", run_coll, DSCOMM_COLL_REDUCE},
    {"all_reduce", run_coll, DSCOMM_COLL_ALL_REDUCE},
    {"all_gather", run_coll, DSCOMM_COLL_ALL_GATHER},
    {"reduce_scatter", run_coll, DSCOMM_COLL_REDUCE_SCATTER},
    {"gather", run_coll, DSCOMM_COLL_GATHER},
    {"scatter", run_coll, DSCOMM_COLL_SCATTER},
    {"all_to_all", run_coll, DSCOMM_COLL_ALL_TO_ALL},
    {NULL, NULL, 0},
};
static const conform_test_t tests[] = {
    {"a million elements and three", test_large},
    {"sequence numbers", test_sequence},
    {"barrier holds everyone", test_barrier},
    {"ranks come in any order", test_unequal_progress},
    {"monitored_barrier", test_monitored_barrier},
    {"monitored_barrier names the late", test_monitored_barrier_late},
    {NULL, NULL},
};
const conform_area_t conform_collectives = {"collectives", cases, tests};
