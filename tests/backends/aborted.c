/* SPDX-License-Identifier: BSD-3-Clause */
/* After an abort, every call on every rank returns the abort, and resources can
 * still be released. */
#include "config.h"

#include "tests/backends/conform.h"
#include "tests/collective.h"

#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 1024
#define LONG ((size_t)4 << 20) /* bytes */

static int32_t in[RANKS_MAX], out[RANKS_MAX];
static size_t counts[RANKS_MAX]; /* all 1 */
static void *memory;

static dscomm_status_t make_groups(int which)
{
    dscomm_group_t *group;
    int self = my.rank, all = -1;

    switch (which) {
    case 0:
        return dscomm_group_new(my.group, &self, 1, NULL, &group);
    case 1:
        return dscomm_group_split(my.group, 0, 0, NULL, &group);
    default:
        return dscomm_group_mesh(my.group, &all, 1, &group);
    }
}

static dscomm_status_t take_memory(int which)
{
    void *more;

    (void)which;
    return dscomm_mem_alloc(my.group, 1 << 16, &more);
}

/* colls[which / 2]: a blocking call, or one with a work if which is odd. */
static dscomm_status_t collective(const int *colls, int which, size_t count)
{
    const collective_t call = {.coll = colls[which / 2],
                               .send = in,
                               .recv = out,
                               .count = count,
                               .send_counts = counts,
                               .recv_counts = counts,
                               .dtype = DSCOMM_INT32,
                               .op = DSCOMM_SUM};
    dscomm_work_t *work;

    return collective_call(my.group, &call, which % 2 ? &work : NULL);
}

static dscomm_status_t even(int which)
{
    static const int colls[] = {
        DSCOMM_COLL_BARRIER,    DSCOMM_COLL_BROADCAST,
        DSCOMM_COLL_REDUCE,     DSCOMM_COLL_ALL_REDUCE,
        DSCOMM_COLL_ALL_GATHER, DSCOMM_COLL_REDUCE_SCATTER,
        DSCOMM_COLL_GATHER,     DSCOMM_COLL_SCATTER,
        DSCOMM_COLL_ALL_TO_ALL, DSCOMM_COLL_ALL_REDUCE};

    /* The last one moves nothing. */
    return collective(colls, which, which < 18);
}

static dscomm_status_t uneven(int which)
{
    static const int colls[] = {
        DSCOMM_COLL_ALL_GATHER_V, DSCOMM_COLL_REDUCE_SCATTER_V,
        DSCOMM_COLL_GATHER_V, DSCOMM_COLL_SCATTER_V, DSCOMM_COLL_ALL_TO_ALL_V};

    return collective(colls, which, 1);
}

static dscomm_status_t message(int which)
{
    int peer = (my.rank + which / 4) % my.ranks;
    dscomm_work_t *work;

    switch (which % 4) {
    case 0:
        return dscomm_send(my.group, in, 1, DSCOMM_INT32, peer, 0);
    case 1:
        return dscomm_recv(my.group, out, 1, DSCOMM_INT32, peer, 0, NULL, NULL);
    case 2:
        return dscomm_isend(my.group, in, 1, DSCOMM_INT32, peer, 0, &work);
    default:
        return dscomm_irecv(my.group, out, 1, DSCOMM_INT32, peer, 0, &work);
    }
}

static dscomm_status_t other(int which)
{
    size_t sizes[RANKS_MAX];
    void *blob;

    switch (which) {
    case 0:
        return dscomm_monitored_barrier(my.group, 100);
    case 1:
        return dscomm_broadcast_blob(my.group, in, 4, 0, &blob, sizes);
    case 2:
        return dscomm_all_gather_blob(my.group, in, 4, &blob, sizes);
    case 3:
        return dscomm_coalesce_begin(my.group);
    case 4:
        return dscomm_coalesce_end(my.group, NULL);
    default:
        return dscomm_group_set_stream(my.group, NULL);
    }
}

static const struct {
    const char *what;
    dscomm_status_t (*call)(int which);
    int count;
} kinds[] = {
    {"memory", take_memory, 1},    {"group", make_groups, 3},
    {"even collective", even, 20}, {"_v collective", uneven, 10},
    {"message", message, 8},       {"other call", other, 6},
};
#define KINDS ((int)CONFORM_LENGTH(kinds))

static void await_abort(void)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < 1000 && status == DSCOMM_OK; i++) {
        status = dscomm_group_status(my.group);
        if (status == DSCOMM_OK)
            conform_pause(2);
    }
    check_status(status, DSCOMM_ERR_ABORTED, "dscomm_group_status");
}

static void abort_group(void)
{
    CHECK_OK(dscomm_barrier(my.world, NULL));
    if (my.rank == my.ranks / 2)
        CHECK_OK(dscomm_group_abort(my.group, "the pump is dry"));
    await_abort();
}

/* Each rank and each kind begins with another call, because only the first call
 * after an abort detects it; later calls find it noted. */
static void run_kind(int k)
{
    for (int i = 0; i < kinds[k].count; i++) {
        int which = (i + my.rank) % kinds[k].count;

        check_status(kinds[k].call(which), DSCOMM_ERR_ABORTED,
                     "%s %d after an abort", kinds[k].what, which);
        check_sentence("the pump is dry", kinds[k].what);
    }
}

static void test_every_call(void)
{
    dscomm_group_t *whole = my.group;

    for (size_t i = 0; i < RANKS_MAX; i++)
        counts[i] = 1;
    for (int k = 0; k < KINDS; k++) {
        CHECK_OK(dscomm_group_split(whole, 0, my.rank, NULL, &my.group));
        CHECK_OK(dscomm_mem_alloc(my.group, 1 << 16, &memory));
        abort_group();
        run_kind(k);
        CHECK_OK(dscomm_mem_free(my.group, memory));
        CHECK_OK(dscomm_group_free(my.group));
    }
    my.group = whole;
    CHECK_OK(dscomm_barrier(my.group, NULL));
}

/* Rank 0 never makes the call that the others have begun. */
static void test_while_waiting(void)
{
    dscomm_work_t *work = NULL;

    if (my.rank)
        CHECK_OK(dscomm_barrier(my.group, &work));
    CHECK_OK(dscomm_barrier(my.world, NULL));
    if (!my.rank)
        CHECK_OK(dscomm_group_abort(my.group, "the pump is dry"));
    await_abort();
    if (!my.rank)
        return;
    CHECK_FAILS(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT),
                DSCOMM_ERR_ABORTED);
    check_sentence("the pump is dry", "a work that waits");
    check_sentence("barrier() #", "a work that waits");
    dscomm_work_free(work);
}

/* Rank 0 makes no further call on the group. The other ranks learn of the abort
 * by themselves, before they block for good. */
static void test_unpolled(void)
{
    CHECK_OK(dscomm_barrier(my.world, NULL));
    if (!my.rank)
        CHECK_OK(dscomm_group_abort(my.group, "the pump is dry"));
    for (int r = 1; r < my.ranks && !my.rank; r++)
        conform_notify(r);
    if (!my.rank)
        return;
    conform_await(0);
    conform_pause(20);
    CHECK_FAILS(dscomm_barrier(my.group, NULL), DSCOMM_ERR_ABORTED);
    check_sentence("the pump is dry", "a barrier that nobody else will enter");
}

static void test_while_coalescing(void)
{
    dscomm_work_t *work = NULL;

    CHECK_OK(dscomm_coalesce_begin(my.group));
    CHECK_OK(dscomm_all_reduce(my.group, in, out, 1, DSCOMM_INT32, DSCOMM_SUM,
                               NULL));
    abort_group();
    CHECK_FAILS(
        dscomm_all_reduce(my.group, in, out, 1, DSCOMM_INT32, DSCOMM_SUM, NULL),
        DSCOMM_ERR_ABORTED);
    CHECK_FAILS(dscomm_coalesce_end(my.group, &work), DSCOMM_ERR_ABORTED);
}

/* One long message of each rank to the next one, in a group that the rank in
 * the middle ends after so many looks at its receive and so many ms. */
static void abort_moving(int looks, int ms, area_t *area, const char *from)
{
    dscomm_work_t *send = NULL, *receive = NULL;
    dscomm_group_t *group;

    CHECK_OK(dscomm_group_split(my.world, 0, my.rank, NULL, &group));
    CHECK_OK(dscomm_barrier(my.world, NULL));
    /* These fail if the group has ended before. */
    dscomm_irecv(group, area->data, LONG, DSCOMM_UINT8, prev_rank(), 0,
                 &receive);
    dscomm_isend(group, from, LONG, DSCOMM_UINT8, next_rank(), 0, &send);
    for (int i = 0; my.rank == my.ranks / 2 && i < looks; i++)
        dscomm_work_test(receive);
    if (my.rank == my.ranks / 2 && ms)
        dscomm_work_wait(receive, ms);
    if (my.rank == my.ranks / 2)
        CHECK_OK(dscomm_group_abort(group, "the pump is dry"));
    if (receive)
        dscomm_work_wait(receive, DSCOMM_TIMEOUT_DEFAULT);
    memset(area->data, 0x33, LONG);
    area_keep(area);
    if (send)
        dscomm_work_wait(send, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(receive);
    dscomm_work_free(send);
    CHECK_OK(dscomm_group_free(group));
}

/* What is given up is not written to any more, and other groups go on. */
static void test_while_moving(void)
{
    const int64_t sum = (int64_t)my.ranks * (my.ranks - 1) / 2;
    const char *backend = dscomm_group_backend(my.world);
    char *from;
    area_t area;

    if (!strcmp(backend, "mpi") || !strcmp(backend, "two_level")) {
        conform_skip("MPI may use the buffers of a group that has ended");
        return;
    }
    from = calloc(1, LONG);
    area_make(&area, LONG, 0, NULL);
    for (int turn = 0; turn < 24; turn++) {
        int64_t rank = my.rank, total = 0;

        abort_moving(turn * turn, turn % 2 ? 2 * turn : 0, &area, from);
        CHECK_OK(dscomm_all_reduce(my.world, &rank, &total, 1, DSCOMM_INT64,
                                   DSCOMM_SUM, NULL));
        check(total == sum, "the world's sum is %lld", (long long)total);
        area_check(&area, "a receive that was given up");
    }
    area_drop(&area);
    free(from);
}

static const conform_test_t tests[] = {
    {"every call", test_every_call},
    {"while a collective waits", test_while_waiting},
    {"without a look at the group", test_unpolled},
    {"while calls are recorded", test_while_coalescing},
    {"while long messages move", test_while_moving},
    {NULL, NULL},
};
const conform_area_t conform_aborted = {"aborted", NULL, tests};
