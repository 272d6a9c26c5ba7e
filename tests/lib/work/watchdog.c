/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchdog: a work that nobody waits for or tests passes its deadline. Its
 * thread exists from the first such work to the end of the last world, and
 * blocking calls start none. */
#include "config.h"

#include "lib/base/clock.h"
#include "tests/lib/work/ranks.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#define TIMEOUT_MS 400
#define LIMIT_MS 20000 /* for what must happen */

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;

    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count - 2; /* "." and ".." */
}

/* Threads after the first one has ended, because a sanitizer then has one. */
static int at_start;

/* Waits until no more threads are left than there were: the remains of a joined
 * one may be there for a moment. */
static bool await_threads(void)
{
    const int wanted = at_start;
    const int64_t end = now_ms() + LIMIT_MS;

    while (count_threads() > wanted && now_ms() < end)
        usleep(1000);
    return count_threads() <= wanted;
}

/* Makes no call of the library but this, which looks at one word. */
static dscomm_status_t await_end(dscomm_group_t *group, int limit_ms)
{
    const int64_t end = now_ms() + limit_ms;

    while (dscomm_group_status(group) == DSCOMM_OK && now_ms() < end)
        usleep(1000);
    return dscomm_group_status(group);
}

static atomic_int gone;

/* Rank 1 does not come, and rank 0 does not look. */
static void unwatched(rank_t *self)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;
    dscomm_group_t *group = split_all(self, TIMEOUT_MS);
    dscomm_work_t *work = NULL;
    int32_t x = 1, sum;

    if (self->rank == 0) {
        CHECK(self, !sum_one(group, &x, &sum, &work));
        CHECK(self, await_end(group, LIMIT_MS) == DSCOMM_ERR_TIMEOUT);
        CHECK(self, !dscomm_group_failure(group, &failure));
        CHECK(self, failure.status == DSCOMM_ERR_TIMEOUT);
        CHECK(self, failure.kind == DSCOMM_FAILURE_SILENT);
        CHECK(self, failure.sequence == 1);
        FAILS(self, DSCOMM_ERR_TIMEOUT, " 400 ms", dscomm_work_test(work));
        dscomm_work_free(work);
        atomic_store(&gone, 1);
    }
    while (!atomic_load(&gone))
        usleep(1000);
    CHECK(self, !dscomm_group_free(group));
}

/* All ranks compute for three deadlines; the watchdogs finish the works. */
static void unhurried(rank_t *self)
{
    dscomm_group_t *group = split_all(self, TIMEOUT_MS);
    dscomm_work_t *work = NULL;
    int32_t x = 1, sum = 0;

    CHECK(self, !sum_one(group, &x, &sum, &work));
    CHECK(self, await_end(group, 3 * TIMEOUT_MS) == DSCOMM_OK);
    FINISH(self, work, DSCOMM_OK);
    CHECK(self, sum == self->size);
    CHECK(self, !dscomm_group_free(group));
}

/* A work of a second group has a shorter deadline than the one for which the
 * watchdog sleeps. */
static void shorter(rank_t *self)
{
    dscomm_group_t *slow = split_all(self, 60 * LIMIT_MS);
    dscomm_group_t *fast = split_all(self, TIMEOUT_MS);
    dscomm_work_t *works[2];
    int32_t x, y;

    CHECK(self, !irecv_one(slow, &x, 0, 1, &works[0]));
    usleep(10000); /* the watchdog may sleep by now */
    CHECK(self, !irecv_one(fast, &y, 0, 1, &works[1]));
    CHECK(self, await_end(fast, LIMIT_MS) == DSCOMM_ERR_TIMEOUT);
    CHECK(self, dscomm_group_status(slow) == DSCOMM_OK);
    for (int i = 0; i < 2; i++)
        dscomm_work_free(works[i]);
    CHECK(self, !dscomm_group_free(fast));
    CHECK(self, !dscomm_group_free(slow));
}

/* Two threads start the first works of the process at the same time. */
typedef struct {
    dscomm_group_t *group;
    dscomm_work_t *work;
    pthread_barrier_t *barrier;
    int64_t delay_ns;
    int32_t x;
} starter_t;

static void *start_first(void *arg)
{
    starter_t *starter = arg;
    int64_t end;

    pthread_barrier_wait(starter->barrier);
    end = dscomm_priv_clock() + starter->delay_ns;
    while (dscomm_priv_clock() < end)
        ;
    irecv_one(starter->group, &starter->x, 0, 1, &starter->work);
    return NULL;
}

static int64_t first_delay_ns;

/* The one with the shorter deadline is second, while the other one starts the
 * watchdog. */
static void first_two(rank_t *self)
{
    pthread_barrier_t barrier;
    pthread_t threads[2];
    starter_t starters[2] = {
        {.group = split_all(self, 60 * LIMIT_MS), .barrier = &barrier},
        {.group = split_all(self, 20),
         .barrier = &barrier,
         .delay_ns = first_delay_ns}};

    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, start_first, &starters[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(self, await_end(starters[1].group, LIMIT_MS) == DSCOMM_ERR_TIMEOUT);
    for (int i = 0; i < 2; i++) {
        dscomm_work_free(starters[i].work);
        CHECK(self, !dscomm_group_free(starters[i].group));
    }
    pthread_barrier_destroy(&barrier);
}

static void test_first_two(void)
{
    int failed = 0;

    for (int i = 0; i < 40 && !failed; i++) {
        first_delay_ns = i * 2000;
        failed = ranks_try("memory://", 1, 10000, first_two);
    }
    ok(!failed, "the first works of two threads");
}

/* The watchdog sleeps until there are works again. */
static void rested(rank_t *self)
{
    dscomm_group_t *group = split_all(self, 40);
    dscomm_work_t *work = NULL;
    int32_t x = 7, y = 0;

    for (int i = 0; i < 3; i++) {
        CHECK(self, !irecv_one(group, &y, 0, 1, &work));
        CHECK(self, !dscomm_send(group, &x, 1, DSCOMM_INT32, 0, 1));
        FINISH(self, work, DSCOMM_OK);
        usleep(200000); /* five deadlines */
    }
    CHECK(self, !irecv_one(group, &y, 0, 1, &work));
    CHECK(self, await_end(group, LIMIT_MS) == DSCOMM_ERR_TIMEOUT);
    dscomm_work_free(work);
    CHECK(self, !dscomm_group_free(group));
}

static void threads(rank_t *self)
{
    const int before = count_threads();
    dscomm_group_t *groups[2] = {split_all(self, 0), split_all(self, 0)};
    dscomm_work_t *works[2];
    int32_t x = 1, y = 0;

    for (int i = 0; i < 100; i++)
        CHECK(self, !sum_one(self->world, &x, &y, NULL));
    CHECK(self, count_threads() == before);
    for (int i = 0; i < 2; i++)
        CHECK(self, !irecv_one(groups[i], &y, 0, 1, &works[i]));
    CHECK(self, count_threads() == before + 1);
    for (int i = 0; i < 2; i++) {
        dscomm_work_free(works[i]);
        CHECK(self, !dscomm_group_free(groups[i]));
    }
}

/* Rank 0 waits for rank 1 in blocking calls that schedules carry out, for long
 * enough to look for the reason. */
static void blocking(rank_t *self)
{
    int32_t in[2] = {1, 2}, sum, out[2];
    int before;

    CHECK(self, !sum_one(self->world, in, &sum, NULL));
    before = count_threads();
    if (self->rank == 1)
        usleep(300000);
    CHECK(self, !sum_one(self->world, in, &sum, NULL));
    if (self->rank == 1)
        usleep(300000);
    CHECK(self, !dscomm_coalesce_begin(self->world));
    CHECK(self, !sum_one(self->world, in, &sum, NULL));
    CHECK(self, !exchange_one(self->world, in, out, NULL));
    CHECK(self, !dscomm_coalesce_end(self->world, NULL));
    if (self->rank == 1)
        usleep(300000);
    CHECK(self, !dscomm_monitored_barrier(self->world, 10000));
    CHECK(self, count_threads() == before);
}

/* Runs in a child of a process with a watchdog. */
static void child_run(void)
{
    alarm(LIMIT_MS / 1000);
    if (count_threads() > at_start ||
        ranks_try("memory://", 1, 10000, threads) != 0)
        _exit(1);
    _exit(0);
}

static void forked(rank_t *self)
{
    dscomm_work_t *work = NULL;
    int status = 0;
    int32_t x;
    pid_t pid;

    CHECK(self, !irecv_one(self->world, &x, 0, 1, &work));
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        child_run();
    CHECK(self, waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(self, !dscomm_send(self->world, &x, 1, DSCOMM_INT32, 0, 1));
    FINISH(self, work, DSCOMM_OK);
}

static void unlimited(rank_t *self)
{
    dscomm_group_t *group = split_all(self, TIMEOUT_MS);
    const int before = count_threads();
    dscomm_work_t *work = NULL;
    int32_t x;

    CHECK(self, !irecv_one(group, &x, 0, 1, &work));
    CHECK(self, count_threads() == before);
    CHECK(self, await_end(group, 3 * TIMEOUT_MS) == DSCOMM_OK);
    dscomm_work_free(work);
    CHECK(self, !dscomm_group_free(group));
}

static void test_fork(void)
{
#if defined(__SANITIZE_THREAD__)
    skip("a child of several threads cannot start one under this sanitizer");
    return;
#endif
    ranks_run(1, 10000, forked, "a child has its own");
}

static void *do_nothing(void *arg)
{
    return arg;
}

int main(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, do_nothing, NULL) ||
        pthread_join(thread, NULL))
        bail("no thread");
    usleep(100000); /* its remains may be there for a moment */
    at_start = count_threads();
    ranks_use_modules();
    ranks_run(2, 10000, unwatched, "a work that nobody looks at");
    ranks_run(3, 10000, unhurried, "works of ranks that compute for long");
    ranks_run(1, 10000, shorter, "a shorter deadline");
    test_first_two();
    ranks_run(1, 10000, rested, "works after a pause");
    ok(await_threads(), "no thread is left after the last world");
    ranks_run(1, 10000, threads, "one thread, and none for blocking calls");
    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    ranks_run(2, 10000, blocking, "none for blocking calls that last");
    unsetenv("DSCOMM_ALGORITHM");
    test_fork();
    ok(await_threads(), "no thread is left");
    setenv("DSCOMM_WATCHDOG", "no", 1);
    ranks_run(1, 10000, unlimited, "DSCOMM_WATCHDOG=no");
    return tap_done();
}
