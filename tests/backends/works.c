/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: several in progress on one group and on many, waited for in any order,
 * tested, timed out, freed early. */
#include "config.h"

#include "tests/backends/conform.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define FLIGHT 13

static void prepare(exchange_t *x, int i, dscomm_group_t *group)
{
    memset(x, 0, sizeof *x);
    x->group = group;
    x->coll = i % 13;
    x->dtype = i % 2 ? DSCOMM_FLOAT32 : DSCOMM_INT16;
    x->op = i % 3 ? DSCOMM_SUM : DSCOMM_MAX;
    x->root = i % dscomm_group_size(group);
    x->count = conform_scale(i % 4 == 3 ? 30000 : 11 + (size_t)i);
    x->seed = (uint64_t)i;
    x->in_place = i / 13 % 2;
}

static void begin(exchange_t *x, int i, dscomm_group_t *group)
{
    prepare(x, i, group);
    exchange_start(x, 1);
}

static void end_all(exchange_t *x, int n)
{
    for (int i = 0; i < n; i++)
        exchange_end(&x[i]);
}

/* One at a time, every collective. */
static void test_each(void)
{
    for (int i = 0; i < 26; i++) {
        exchange_t x;

        begin(&x, i, my.group);
        exchange_wait(&x);
        exchange_wait(&x);
        check_status(x.work ? dscomm_work_test(x.work) : DSCOMM_OK, DSCOMM_OK,
                     "dscomm_work_test afterwards");
        exchange_end(&x);
    }
}

static void run_flight(const unsigned char *order)
{
    exchange_t x[FLIGHT];

    for (int i = 0; i < FLIGHT; i++)
        begin(&x[i], i, my.group);
    for (int i = 0; i < FLIGHT; i++)
        exchange_wait(&x[order[i]]);
    end_all(x, FLIGHT);
}

static void test_flight(void)
{
    static const unsigned char orders[][FLIGHT] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
        {12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
        {5, 3, 12, 0, 1, 8, 7, 2, 11, 10, 4, 9, 6},
    };

    for (size_t i = 0; i < CONFORM_LENGTH(orders); i++)
        run_flight(orders[i]);
    /* Each rank has its own order. */
    run_flight(orders[my.rank % 3]);
}

/* A blocking call after works that were not waited for yet. */
static void test_blocking_behind(void)
{
    exchange_t x[4], blocking;

    for (int i = 0; i < 4; i++)
        begin(&x[i], i + 2, my.group);
    prepare(&blocking, 3, my.group);
    exchange_run(&blocking);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    end_all(x, 4);
}

/* The message for which the first rank waits is sent only after a collective,
 * which needs that rank's progress, has completed on the other ranks. */
static void test_message_behind(void)
{
    size_t count = conform_scale(1 << 20);
    float *buffer = calloc(count, sizeof(float));
    dscomm_work_t *work = NULL;
    int last = my.ranks - 1, note = my.rank;

    CHECK_OK(dscomm_all_reduce(my.group, buffer, buffer, count, DSCOMM_FLOAT32,
                               DSCOMM_SUM, &work));
    if (my.rank == 0 && last)
        CHECK_OK(
            dscomm_recv(my.group, &note, 1, DSCOMM_INT32, last, 5, NULL, NULL));
    CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    if (my.rank == last && last)
        CHECK_OK(dscomm_send(my.group, &note, 1, DSCOMM_INT32, 0, 5));
    if (my.rank == 0)
        check(note == last, "the message says %d", note);
    dscomm_work_free(work);
    free(buffer);
}

static void test_wait_all(void)
{
    exchange_t x[FLIGHT];
    dscomm_work_t *works[FLIGHT + 2] = {NULL};

    for (int i = 0; i < FLIGHT; i++) {
        begin(&x[i], i, my.group);
        works[i + 1] = x[i].work;
    }
    CHECK_OK(dscomm_work_wait_all(works, FLIGHT + 2, DSCOMM_TIMEOUT_DEFAULT));
    for (int i = 0; i < FLIGHT; i++) {
        check_status(dscomm_work_test(x[i].work), DSCOMM_OK, "work %d", i);
        exchange_end(&x[i]);
    }
    CHECK_OK(dscomm_work_wait_all(NULL, 0, 0));
}

static void test_wait_any(void)
{
    exchange_t x[FLIGHT];
    dscomm_work_t *works[FLIGHT];
    int left = FLIGHT;

    for (int i = 0; i < FLIGHT; i++) {
        begin(&x[i], i, my.group);
        works[i] = x[i].work;
    }
    for (; left > 0; left--) {
        size_t index = FLIGHT;

        if (!CHECK_OK(dscomm_work_wait_any(works, FLIGHT,
                                           DSCOMM_TIMEOUT_DEFAULT, &index)) ||
            !check(index < FLIGHT && works[index], "index %zu", index))
            break;
        check_status(dscomm_work_test(works[index]), DSCOMM_OK, "work %zu",
                     index);
        works[index] = NULL;
    }
    CHECK_FAILS(dscomm_work_wait_any(works, FLIGHT, 0, &(size_t){0}),
                DSCOMM_ERR_INVALID);
    end_all(x, FLIGHT);
}

/* wait_any finds the work that can complete among those that cannot yet. */
static void test_wait_any_last(void)
{
    dscomm_work_t *works[3] = {NULL};
    int32_t in[3] = {0}, out = 5;
    size_t index = 9;

    for (int i = 0; i < 3; i++)
        CHECK_OK(dscomm_irecv(my.group, &in[i], 1, DSCOMM_INT32, prev_rank(), i,
                              &works[i]));
    CHECK_FAILS(dscomm_work_wait_any(works, 3, 0, &index), DSCOMM_IN_PROGRESS);
    for (int i = 2; i >= 0; i--) {
        CHECK_OK(dscomm_barrier(my.group, NULL));
        CHECK_OK(dscomm_send(my.group, &out, 1, DSCOMM_INT32, next_rank(), i));
        CHECK_OK(
            dscomm_work_wait_any(works, 3, DSCOMM_TIMEOUT_DEFAULT, &index));
        check(index == (size_t)i, "work %zu completed, want %d", index, i);
        dscomm_work_free(works[i]);
        works[i] = NULL;
    }
}

static void test_test(void)
{
    for (int i = 0; i < 13; i++) {
        double start = conform_now_ms();
        exchange_t x;
        dscomm_status_t status = DSCOMM_OK;

        begin(&x, i, my.group);
        while (x.work && conform_now_ms() - start < 20000) {
            status = dscomm_work_test(x.work);
            if (status != DSCOMM_IN_PROGRESS)
                break;
            sched_yield(); /* lets other ranks run if they share a processor */
        }
        check_status(status, DSCOMM_OK, "dscomm_work_test");
        exchange_end(&x);
    }
}

/* A short wait for a work that cannot complete yet does not harm the work. */
static void test_timeout(void)
{
    int32_t in = 0, out = 31 + my.rank;
    int prev = prev_rank();
    dscomm_work_t *work = NULL;
    double start = conform_now_ms();

    CHECK_OK(dscomm_irecv(my.group, &in, 1, DSCOMM_INT32, prev, 1, &work));
    CHECK_FAILS(dscomm_work_wait(work, 0), DSCOMM_IN_PROGRESS);
    CHECK_FAILS(dscomm_work_wait(work, 50), DSCOMM_IN_PROGRESS);
    check(conform_now_ms() - start > 40, "50 ms took %.1f ms",
          conform_now_ms() - start);
    CHECK_FAILS(dscomm_work_wait_all(&work, 1, 20), DSCOMM_IN_PROGRESS);
    CHECK_FAILS(dscomm_work_received(work, NULL, NULL, NULL), DSCOMM_ERR_STATE);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_send(my.group, &out, 1, DSCOMM_INT32, next_rank(), 1));
    CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    check(in == 31 + prev, "got %d", in);
    dscomm_work_free(work);
}

/* A collective that the others join late is in progress until then. */
static void test_late_collective(void)
{
    exchange_t x;
    int late = my.ranks - 1;

    if (my.ranks == 1) {
        conform_skip("needs 2 ranks");
        return;
    }
    prepare(&x, DSCOMM_COLL_ALL_REDUCE, my.group);
    for (int r = 0; r < late && my.rank == late; r++)
        conform_await(r);
    exchange_start(&x, 1);
    if (my.rank != late) {
        CHECK_FAILS(dscomm_work_wait(x.work, 30), DSCOMM_IN_PROGRESS);
        conform_notify(late);
    }
    exchange_end(&x);
}

/* A freed work runs to its end. */
static void test_free_running(void)
{
    exchange_t x[6], after;

    for (int i = 0; i < 6; i++) {
        begin(&x[i], DSCOMM_COLL_ALL_REDUCE + 13 * i, my.group);
        dscomm_work_free(x[i].work);
        x[i].work = NULL;
    }
    prepare(&after, DSCOMM_COLL_ALL_TO_ALL, my.group);
    exchange_run(&after);
    CHECK_OK(dscomm_barrier(my.group, NULL));
    end_all(x, 6);
    dscomm_work_free(NULL);
}

#define GROUPS 4

/* Works of several groups, started in one order and waited for in another. */
static void test_several_groups(void)
{
    dscomm_group_t *groups[GROUPS] = {NULL};
    exchange_t x[GROUPS][3];

    for (int g = 0; g < GROUPS; g++)
        CHECK_OK(dscomm_group_split(my.group, my.rank / (g + 1) % 2, my.rank,
                                    NULL, &groups[g]));
    for (int i = 0; i < 3; i++)
        for (int g = 0; g < GROUPS; g++)
            begin(&x[g][i], i * 4 + g, groups[g]);
    for (int g = GROUPS - 1; g >= 0; g--)
        for (int i = 0; i < 3; i++)
            exchange_wait(&x[(g + my.rank) % GROUPS][2 - i]);
    for (int g = 0; g < GROUPS; g++) {
        end_all(x[g], 3);
        CHECK_OK(dscomm_group_free(groups[g]));
    }
}

/* Two groups, whose ranks wait for different ones first: this works only if
 * waiting on one group makes progress on the other. */
static void test_crossed_groups(void)
{
    dscomm_group_t *groups[2] = {NULL, NULL};
    exchange_t x[2];

    for (int g = 0; g < 2; g++) {
        CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &groups[g]));
        prepare(&x[g], DSCOMM_COLL_ALL_REDUCE, groups[g]);
        x[g].count = conform_scale(200000);
        exchange_start(&x[g], 1);
    }
    exchange_wait(&x[my.rank % 2]);
    exchange_wait(&x[1 - my.rank % 2]);
    end_all(x, 2);
    for (int g = 0; g < 2; g++)
        CHECK_OK(dscomm_group_free(groups[g]));
}

static dscomm_status_t poll_wait(dscomm_work_t *work)
{
    return dscomm_work_wait(work, 0);
}

static dscomm_status_t poll_all(dscomm_work_t *work)
{
    return dscomm_work_wait_all(&work, 1, 0);
}

static dscomm_status_t poll_any(dscomm_work_t *work)
{
    return dscomm_work_wait_any(&work, 1, 0, &(size_t){0});
}

/* The same for ranks that test and never wait. */
static void test_crossed_polls(void)
{
    static dscomm_status_t (*const polls[])(dscomm_work_t *) = {
        dscomm_work_test, poll_wait, poll_all, poll_any};
    dscomm_group_t *groups[2] = {NULL, NULL};

    for (int g = 0; g < 2; g++)
        CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &groups[g]));
    for (size_t i = 0; i < CONFORM_LENGTH(polls); i++) {
        double start = conform_now_ms();
        exchange_t x[2];
        dscomm_status_t status;

        for (int g = 0; g < 2; g++) {
            prepare(&x[g], DSCOMM_COLL_ALL_REDUCE, groups[g]);
            x[g].count = conform_scale(300000);
            exchange_start(&x[g], 1);
        }
        do {
            sched_yield();
            status = polls[i](x[my.rank % 2].work);
        } while (status == DSCOMM_IN_PROGRESS &&
                 conform_now_ms() - start < 20000);
        check_status(status, DSCOMM_OK, "poll %zu", i);
        end_all(x, 2);
    }
    for (int g = 0; g < 2; g++)
        CHECK_OK(dscomm_group_free(groups[g]));
}

static void test_names(void)
{
    dscomm_work_t *first = NULL, *second = NULL;
    uint64_t sequence = 0;

    CHECK_OK(dscomm_barrier(my.group, &first));
    CHECK_OK(dscomm_barrier(my.group, &second));
    sequence = dscomm_work_sequence(first);
    check(dscomm_work_group(first) == my.group, "the work's group");
    check(dscomm_work_sequence(second) == sequence + 1,
          "sequence numbers %llu and %llu", (unsigned long long)sequence,
          (unsigned long long)dscomm_work_sequence(second));
    CHECK_OK(dscomm_work_wait(second, DSCOMM_TIMEOUT_DEFAULT));
    CHECK_FAILS(dscomm_work_received(second, NULL, NULL, NULL),
                DSCOMM_ERR_STATE);
    CHECK_OK(dscomm_work_wait(first, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(first);
    dscomm_work_free(second);
}

/* A refused call does not write *ret_work. */
static void test_not_written(void)
{
    int dummy;
    dscomm_work_t *const mark = (dscomm_work_t *)&dummy;
    dscomm_work_t *work = mark;

    CHECK_FAILS(
        dscomm_broadcast(my.group, NULL, 1, DSCOMM_INT8, my.ranks, &work),
        DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_isend(my.group, &dummy, 1, DSCOMM_INT8, -3, 0, &work),
                DSCOMM_ERR_INVALID);
    check(work == mark, "a refused call wrote its work");
}

/* Repetitions, on a group of its own, so that all ranks need all others. */
typedef struct {
    dscomm_group_t *group;
    dscomm_work_t *both[2];
    int in, out, rounds;
} tour_t;

static dscomm_status_t tour_advance(void *state)
{
    tour_t *tour = state;
    int rank = my.rank, ranks = my.ranks;
    dscomm_status_t status = dscomm_work_wait_all(tour->both, 2, 0);

    if (status != DSCOMM_OK)
        return status;
    dscomm_work_free(tour->both[0]);
    dscomm_work_free(tour->both[1]);
    tour->both[0] = tour->both[1] = NULL;
    if (tour->rounds++ == my.ranks + 1)
        return DSCOMM_OK;
    status = dscomm_irecv(tour->group, &tour->in, 1, DSCOMM_INT32,
                          (rank + ranks - 1) % ranks, 1, &tour->both[0]);
    if (status == DSCOMM_OK)
        status = dscomm_isend(tour->group, &tour->out, 1, DSCOMM_INT32,
                              (rank + 1) % ranks, 1, &tour->both[1]);
    return status < 0 ? status : DSCOMM_IN_PROGRESS;
}

static void tour_cancel(void *state, dscomm_status_t status)
{
    (void)state;
    check(0, "the tour is cancelled with %d", (int)status);
}

/* Rank 0 makes a blocking call before it waits for its work, which the last
 * rank needs. */
static void block_beside(dscomm_work_t *work, int by_message)
{
    int word = 7;

    if (my.rank == my.ranks - 1)
        CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    if (!by_message)
        CHECK_OK(dscomm_barrier(my.group, NULL));
    else if (my.ranks > 1 && my.rank == my.ranks - 1)
        CHECK_OK(dscomm_send(my.group, &word, 1, DSCOMM_INT32, 0, 2));
    else if (my.ranks > 1 && !my.rank)
        CHECK_OK(dscomm_recv(my.group, &word, 1, DSCOMM_INT32, my.ranks - 1, 2,
                             NULL, NULL));
    CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
}

static void test_own(void)
{
    static const dscomm_work_ops_t ops = {sizeof ops, tour_advance,
                                          tour_cancel};

    for (int i = 0; i < 2; i++) {
        tour_t tour = {0};
        dscomm_work_t *work = NULL;

        CHECK_OK(dscomm_group_split(my.group, 0, my.rank, NULL, &tour.group));
        CHECK_OK(dscomm_work_create(my.group, &ops, &tour, &work));
        block_beside(work, i);
        dscomm_work_free(work);
        CHECK_OK(dscomm_group_free(tour.group));
    }
}

static const conform_test_t tests[] = {
    {"each collective as a work", test_each},
    {"all in flight, waited for in any order", test_flight},
    {"a blocking call behind works", test_blocking_behind},
    {"a message behind a collective", test_message_behind},
    {"wait_all", test_wait_all},
    {"wait_any", test_wait_any},
    {"wait_any, the last first", test_wait_any_last},
    {"test", test_test},
    {"a short wait returns in progress", test_timeout},
    {"a late rank keeps the others in progress", test_late_collective},
    {"a freed work runs to its end", test_free_running},
    {"several groups, waited for out of order", test_several_groups},
    {"crossed waits on two groups", test_crossed_groups},
    {"crossed polls on two groups", test_crossed_polls},
    {"blocking calls beside works of one's own", test_own},
    {"group and sequence of a work", test_names},
    {"a refused call writes no work", test_not_written},
    {NULL, NULL},
};
const conform_area_t conform_works = {"works", NULL, tests};
