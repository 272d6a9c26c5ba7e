/* SPDX-License-Identifier: BSD-3-Clause */
/* Several calls that are coalesced into one operation. */
#include "config.h"

#include "tests/backends/conform.h"

#include <string.h>

#define CALLS 12

static void prepare(exchange_t *x, int i, size_t count)
{
    memset(x, 0, sizeof *x);
    x->group = my.group;
    x->coll = i % 13;
    x->dtype = i % 2 ? DSCOMM_INT64 : DSCOMM_FLOAT32;
    x->root = i % my.ranks;
    x->count = conform_scale(count);
    x->seed = (uint64_t)i;
}

/* Ends the recording: as a blocking call, or with a work. */
static void end_recording(int as_work)
{
    dscomm_work_t *work = NULL;

    CHECK_OK(dscomm_coalesce_end(my.group, as_work ? &work : NULL));
    if (!as_work)
        return;
    conform_finish(&work, 1);
}

static void run_collectives(size_t count, int as_work)
{
    exchange_t x[CALLS];

    CHECK_OK(dscomm_coalesce_begin(my.group));
    for (int i = 0; i < CALLS; i++) {
        prepare(&x[i], i, count);
        exchange_start(&x[i], 0);
    }
    end_recording(as_work);
    for (int i = 0; i < CALLS; i++)
        exchange_end(&x[i]);
}

static void test_collectives(void)
{
    run_collectives(7, 0);
    run_collectives(7, 1);
    run_collectives(5000, 0);
    run_collectives(60000, 1);
}

/* Nothing is sent before the end of the recording. */
static void test_recorded(void)
{
    int32_t data = my.rank == 0 ? 5 : 6;

    CHECK_OK(dscomm_coalesce_begin(my.group));
    CHECK_OK(dscomm_broadcast(my.group, &data, 1, DSCOMM_INT32, 0, NULL));
    check(data == (my.rank == 0 ? 5 : 6), "data is %d already", data);
    data = my.rank == 0 ? 7 : 8;
    end_recording(0);
    check(data == 7, "data is %d, want 7", data);
}

/* Sends and receives in any order: none blocks another. */
static void run_messages(size_t bytes, int as_work)
{
    const int next = next_rank(), prev = prev_rank();
    area_t in, out;

    if (!area_make(&in, bytes, 0, NULL) || !area_make(&out, bytes, 0, NULL))
        return;
    pattern_bytes(out.data, 1, (uint64_t)my.rank, 0, bytes);
    area_keep(&out);
    pattern_bytes(area_expect(&in, 0), 1, (uint64_t)prev, 0, bytes);
    CHECK_OK(dscomm_coalesce_begin(my.group));
    CHECK_OK(
        dscomm_isend(my.group, out.data, bytes, DSCOMM_UINT8, next, 1, NULL));
    CHECK_OK(
        dscomm_irecv(my.group, in.data, bytes, DSCOMM_UINT8, prev, 1, NULL));
    end_recording(as_work);
    area_check(&in, "message");
    area_check(&out, "send buffer");
    area_drop(&in);
    area_drop(&out);
}

static void test_messages(void)
{
    run_messages(10, 0);
    run_messages(10, 1);
    run_messages(conform_scale(500000), 0);
    run_messages(conform_scale(500000), 1);
}

/* Like torch's batch_isend_irecv: blocking calls are recorded as well. */
static void test_sendrecv(void)
{
    const int next = next_rank(), prev = prev_rank();
    int32_t in = -1, out = my.rank;

    CHECK_OK(dscomm_coalesce_begin(my.group));
    CHECK_OK(dscomm_send(my.group, &out, 1, DSCOMM_INT32, next, 2));
    CHECK_OK(dscomm_recv(my.group, &in, 1, DSCOMM_INT32, prev, 2, NULL, NULL));
    end_recording(0);
    check(in == prev, "got %d from rank %d", in, prev);
}

/* Some ranks record messages between their collectives, others do not. All must
 * agree on which collectives are fused. */
static void test_between(void)
{
    int32_t one = 1, sums[4] = {0}, in[4] = {-1, -1, -1, -1}, out[4];
    const int last = my.ranks - 1;

    CHECK_OK(dscomm_coalesce_begin(my.group));
    for (int i = 0; i < 4; i++) {
        out[i] = 10 + i;
        if (i && my.rank == 0)
            CHECK_OK(dscomm_isend(my.group, &out[i], 1, DSCOMM_INT32, last, 3,
                                  NULL));
        if (i && my.rank == last)
            CHECK_OK(
                dscomm_irecv(my.group, &in[i], 1, DSCOMM_INT32, 0, 3, NULL));
        CHECK_OK(dscomm_all_reduce(my.group, &one, &sums[i], 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL));
    }
    end_recording(0);
    for (int i = 0; i < 4; i++) {
        check(sums[i] == my.ranks, "sum %d is %d", i, sums[i]);
        check(my.rank != last || !i || in[i] == 10 + i, "message %d is %d", i,
              in[i]);
    }
}

static void test_empty(void)
{
    exchange_t x;

    CHECK_OK(dscomm_coalesce_begin(my.group));
    end_recording(0);
    CHECK_OK(dscomm_coalesce_begin(my.group));
    end_recording(1);
    prepare(&x, DSCOMM_COLL_ALL_REDUCE, 5);
    exchange_run(&x);
}

/* Calls that need an answer at once are refused, and the recording goes on. */
static void test_refused(void)
{
    dscomm_work_t *work = NULL;
    void *blob = NULL;
    size_t size = 0;
    int32_t data = my.rank == 0 ? 5 : 6;

    CHECK_FAILS(dscomm_coalesce_end(my.group, NULL), DSCOMM_ERR_STATE);
    CHECK_OK(dscomm_coalesce_begin(my.group));
    CHECK_FAILS(dscomm_coalesce_begin(my.group), DSCOMM_ERR_STATE);
    CHECK_FAILS(dscomm_monitored_barrier(my.group, 1000), DSCOMM_ERR_STATE);
    CHECK_FAILS(dscomm_broadcast_blob(my.group, "a", 1, 0, &blob, &size),
                DSCOMM_ERR_STATE);
    CHECK_FAILS(dscomm_barrier(my.group, &work), DSCOMM_ERR_STATE);
    CHECK_FAILS(
        dscomm_broadcast(my.group, &data, 1, DSCOMM_INT32, my.ranks, NULL),
        DSCOMM_ERR_INVALID);
    CHECK_OK(dscomm_broadcast(my.group, &data, 1, DSCOMM_INT32, 0, NULL));
    end_recording(0);
    check(data == 5 && !work && !blob, "data %d", data);
}

/* Two recordings that are in progress at the same time, one after the other. */
static void test_two(void)
{
    exchange_t x[2][4];
    dscomm_work_t *works[2] = {NULL, NULL};

    for (int r = 0; r < 2; r++) {
        CHECK_OK(dscomm_coalesce_begin(my.group));
        for (int i = 0; i < 4; i++) {
            prepare(&x[r][i], i + 5 * r, 300);
            exchange_start(&x[r][i], 0);
        }
        CHECK_OK(dscomm_coalesce_end(my.group, &works[r]));
    }
    for (int r = 1; r >= 0; r--)
        CHECK_OK(dscomm_work_wait(works[r], DSCOMM_TIMEOUT_DEFAULT));
    for (int r = 0; r < 2; r++) {
        dscomm_work_free(works[r]);
        for (int i = 0; i < 4; i++)
            exchange_end(&x[r][i]);
    }
}

static const conform_test_t tests[] = {
    {"twelve collectives", test_collectives},
    {"nothing moves before the end", test_recorded},
    {"messages", test_messages},
    {"send and recv", test_sendrecv},
    {"messages between collectives", test_between},
    {"nothing at all", test_empty},
    {"refused calls", test_refused},
    {"two recordings in flight", test_two},
    {NULL, NULL},
};
const conform_area_t conform_coalescing = {"coalescing", NULL, tests};
