/* SPDX-License-Identifier: BSD-3-Clause */
/* Different groups in different threads, and abort from another thread. */
#include "config.h"

#include "tests/backends/conform.h"

#include <pthread.h>
#include <string.h>

#define THREADS 3

typedef struct {
    dscomm_group_t *group;
    int number;
} task_t;

static void *run_collectives(void *arg)
{
    const task_t *task = arg;
    int steps = my.ranks > 8 ? 10 : 60;

    for (int i = 0; i < steps; i++) {
        exchange_t x = {.group = task->group,
                        .coll = (i + task->number) % 13,
                        .dtype = DSCOMM_INT32,
                        .root = i % my.ranks,
                        .count = i % 9 == 8 ? 9000 : (size_t)i,
                        .seed = (uint64_t)(i + 100 * task->number)};

        exchange_run(&x);
    }
    return NULL;
}

static void *run_messages(void *arg)
{
    const task_t *task = arg;
    const int next = next_rank(), prev = prev_rank();

    for (int i = 0; i < 40; i++) {
        const size_t bytes = i % 8 == 7 ? 60000 : (size_t)i * 3;
        message_t in = message_with(prev, i, bytes, (uint64_t)(prev + 64 * i));
        message_t out =
            message_with(next, i, bytes, (uint64_t)(my.rank + 64 * i));

        in.group = out.group = task->group;
        message_isend(&out);
        message_recv(&in);
        message_end(&out);
    }
    return NULL;
}

static void *run_works(void *arg)
{
    const task_t *task = arg;
    exchange_t x[4];

    for (int round = 0; round < 6; round++) {
        memset(x, 0, sizeof x);
        for (int i = 0; i < 4; i++) {
            x[i] = (exchange_t){.group = task->group,
                                .coll = DSCOMM_COLL_ALL_REDUCE + i % 2,
                                .dtype = DSCOMM_FLOAT32,
                                .count = 100 * (size_t)(i + round),
                                .seed = (uint64_t)(i + round)};
            exchange_start(&x[i], 1);
        }
        for (int i = 3; i >= 0; i--)
            exchange_end(&x[i]);
    }
    return NULL;
}

/* Makes groups of the task's own group, while other threads make groups with
 * other first ranks. */
static void *run_groups(void *arg)
{
    const task_t *task = arg;

    for (int i = 0; i < 10; i++) {
        dscomm_group_t *child = NULL;
        int32_t one = 1, sum = 0;

        CHECK_OK(dscomm_group_split(
            task->group, 0, (my.rank + task->number) % my.ranks, NULL, &child));
        CHECK_OK(dscomm_all_reduce(child, &one, &sum, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL));
        check(sum == my.ranks, "the sum of %d ones is %d", my.ranks, (int)sum);
        CHECK_OK(dscomm_group_free(child));
    }
    return NULL;
}

static void run_threads(void *(*const bodies[THREADS])(void *))
{
    pthread_t threads[THREADS];
    task_t tasks[THREADS];
    int started = 0;

    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (task_t){NULL, i};
        CHECK_OK(dscomm_group_split(my.group, 0, 0, NULL, &tasks[i].group));
    }
    for (; started < THREADS; started++)
        if (!check(pthread_create(&threads[started], NULL, bodies[started],
                                  &tasks[started]) == 0,
                   "no thread"))
            break;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_OK(dscomm_group_free(tasks[i].group));
}

static void test_collectives(void)
{
    run_threads((void *(*const[])(void *)){run_collectives, run_collectives,
                                           run_collectives});
}

static void test_mixed(void)
{
    run_threads(
        (void *(*const[])(void *)){run_collectives, run_messages, run_works});
}

static void test_groups(void)
{
    run_threads((void *(*const[])(void *)){run_groups, run_groups, run_groups});
}

static void *abort_later(void *arg)
{
    conform_pause(150);
    CHECK_OK(dscomm_group_abort(arg, "enough"));
    return NULL;
}

static double aborted_wait_ms;

/* Another thread ends a wait that would never end by itself. */
static dscomm_status_t wait_for_abort(dscomm_work_t *work)
{
    pthread_t thread;
    dscomm_status_t status;
    double start;

    CHECK_OK(
        /* every rank has something to wait for */
        dscomm_barrier(my.world, NULL));
    start = conform_now_ms();
    if (my.rank == 0 &&
        !check(pthread_create(&thread, NULL, abort_later, my.group) == 0,
               "no thread"))
        return DSCOMM_ERR_INTERNAL;
    status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    aborted_wait_ms = conform_now_ms() - start;
    if (my.rank == 0)
        pthread_join(thread, NULL);
    return status;
}

static void test_abort_while_waiting(void)
{
    int32_t in = 0;
    dscomm_work_t *work = NULL;

    CHECK_OK(
        dscomm_irecv(my.group, &in, 1, DSCOMM_INT32, next_rank(), 0, &work));
    CHECK_FAILS(wait_for_abort(work), DSCOMM_ERR_ABORTED);
    check_sentence("enough", "reason");
    check(aborted_wait_ms < 10000, "abort took %.0f ms", aborted_wait_ms);
    dscomm_work_free(work);
    CHECK_FAILS(dscomm_group_status(my.group), DSCOMM_ERR_ABORTED);
}

/* The same in a blocking collective: the last rank never calls it. */
static void test_abort_blocking(void)
{
    pthread_t thread;
    int32_t in = 0, out = 0;
    double start = conform_now_ms();

    if (my.ranks == 1) {
        conform_skip("needs 2 ranks");
        return;
    }
    if (dscomm_group_capabilities(my.group) & DSCOMM_CAP_SEPARATE_MATCHING) {
        conform_skip("blocking calls are the transport's own");
        return;
    }
    if (my.rank == my.ranks - 1) {
        conform_pause(200);
        CHECK_OK(dscomm_group_abort(my.group, "enough"));
        return;
    }
    /* One of the waiting ranks aborts as well. */
    if (my.rank == 0 &&
        !check(pthread_create(&thread, NULL, abort_later, my.group) == 0,
               "no thread"))
        return;
    CHECK_FAILS(dscomm_all_reduce(my.group, &in, &out, 1, DSCOMM_INT32,
                                  DSCOMM_SUM, NULL),
                DSCOMM_ERR_ABORTED);
    check_sentence("enough", "reason");
    check(conform_now_ms() - start < 10000, "abort took %.0f ms",
          conform_now_ms() - start);
    if (my.rank == 0)
        pthread_join(thread, NULL);
}

static void *fail_once(void *arg)
{
    int data = 0;

    (void)arg;
    check(strcmp(dscomm_last_error(), "") == 0,
          "a new thread's last sentence is \"%s\"", dscomm_last_error());
    CHECK_FAILS(dscomm_broadcast(my.group, &data, 1, DSCOMM_INT32, -4, NULL),
                DSCOMM_ERR_INVALID);
    check_sentence("-4", "this thread's sentence");
    return NULL;
}

/* Each thread has its own last sentence. */
static void test_sentences(void)
{
    pthread_t thread;
    int data = 0;

    CHECK_FAILS(dscomm_broadcast(my.group, &data, 1, DSCOMM_INT32, 4711, NULL),
                DSCOMM_ERR_INVALID);
    if (check(pthread_create(&thread, NULL, fail_once, NULL) == 0, "no thread"))
        pthread_join(thread, NULL);
    check_sentence("4711", "the first thread's sentence");
}

static const conform_test_t tests[] = {
    {"collectives in three threads", test_collectives},
    {"collectives, messages and works in three threads", test_mixed},
    {"groups made in three threads", test_groups},
    {"abort ends a wait", test_abort_while_waiting},
    {"abort ends a blocking call", test_abort_blocking},
    {"every thread has its own sentence", test_sentences},
    {NULL, NULL},
};
const conform_area_t conform_threads = {"threads", NULL, tests};
