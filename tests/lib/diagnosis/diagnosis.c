/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules without progress: which rank the sentence names. all_to_all, gather
 * and scatter are schedules over the thread backend. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <dscomm/hook.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/file.h>

/* Waits until the group ends, without waiting in a call. */
static void stay_away(rank_t *self)
{
    for (int i = 0; i < 2000 && !dscomm_group_status(self->world); i++)
        usleep(5000);
}

/* Returns whether the last sentence ends with the state of rank 3, which is
 * this process. */
static int names_late(void)
{
    char who[64];

    snprintf(who, sizeof who, ": rank 3 (pid %ld on ", (long)getpid());
    return strstr(dscomm_last_error(), who) &&
           strstr(dscomm_last_error(), ") has not made this call, or stands "
                                       "still");
}

/* Rank 3 makes one call less. */
static void late(rank_t *self)
{
    int32_t x[4] = {0}, y[4];

    CHECK(self, !exchange_one(self->world, x, y, NULL));
    if (self->rank == 3)
        stay_away(self);
    FAILS(self, DSCOMM_ERR_TIMEOUT, "all_to_all(count 1, int32) #2",
          exchange_one(self->world, x, y, NULL));
    CHECK(self, names_late());
}

/* The same for two calls that are started together, with a ring: rank 1 waits
 * for rank 0, which reports before rank 1's deadline for which rank it
 * waits. */
static void late_twice(rank_t *self)
{
    int32_t x[4] = {0}, y[2][4];
    dscomm_work_t *works[2];

    if (self->rank == 3) {
        stay_away(self);
        return;
    }
    for (int i = 0; i < 2; i++)
        CHECK(self, !dscomm_all_reduce(self->world, x, y[i], 4, DSCOMM_INT32,
                                       DSCOMM_SUM, &works[i]));
    if (self->rank == 0)
        usleep(300000);
    CHECK(self, dscomm_work_wait(works[0], DSCOMM_TIMEOUT_DEFAULT) ==
                    DSCOMM_ERR_TIMEOUT);
    CHECK(self, names_late());
    for (int i = 0; i < 2; i++)
        dscomm_work_free(works[i]);
}

static atomic_int has_reported;

/* Rank 2 never comes. Rank 1 waits for it in a gather, and has reported that;
 * rank 0 waits for rank 1 in the next call, an all_to_all, which needs rank 2
 * too, or a scatter, which does not. */
static void chain(rank_t *self, bool scatters)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;
    int32_t x[3] = {0}, y[3];
    dscomm_work_t *work;

    if (self->rank == 2) {
        stay_away(self);
        return;
    }
    CHECK(self, !dscomm_gather(self->world, x, y, 1, DSCOMM_INT32, 1, &work));
    if (self->rank == 1) {
        dscomm_work_wait(work, 1500);
        atomic_store(&has_reported, 1);
        stay_away(self);
        dscomm_work_free(work);
        return;
    }
    CHECK(self, !dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
    while (!atomic_load(&has_reported))
        usleep(1000);
    CHECK(self, DSCOMM_ERR_TIMEOUT ==
                    (scatters ? dscomm_scatter(self->world, x, y, 1,
                                               DSCOMM_INT32, 1, NULL)
                              : exchange_one(self->world, x, y, NULL)));
    CHECK(self, strstr(dscomm_last_error(), ": rank 1 (pid ") &&
                    strstr(dscomm_last_error(), ", rank 2 (pid "));
    CHECK(self, !dscomm_group_failure(self->world, &failure));
    CHECK(self, failure.rank == 2);
}

static void late_chain(rank_t *self)
{
    chain(self, false);
}

static void late_chain_end(rank_t *self)
{
    chain(self, true);
}

/* Nobody sends. */
static void receive_any(rank_t *self)
{
    int32_t x;

    FAILS(self, DSCOMM_ERR_TIMEOUT, "recv from any rank with any tag of ",
          recv_one(self->world, &x, DSCOMM_ANY_SOURCE, DSCOMM_ANY_TAG));
}

/* Rank 2's call sends only to rank 1, which receives nothing from it. */
static void never_meet(rank_t *self)
{
    int32_t x[4] = {0}, y[4];
    int64_t began = now_ms();
    dscomm_status_t status;

    if (self->rank == 2)
        status = dscomm_gather(self->world, x, y, 1, DSCOMM_INT32, 1, NULL);
    else
        status = dscomm_gather(self->world, x, y, 1, DSCOMM_INT32, 0, NULL);
    for (int i = 0; i < 2 && !status; i++)
        status = exchange_one(self->world, x, y, NULL);
    CHECK(self, status == DSCOMM_ERR_MISMATCH);
    CHECK(self, now_ms() - began < 5000);
    CHECK(self, strstr(dscomm_last_error(), "group 'world': rank 2 (pid "));
    CHECK(self, strstr(dscomm_last_error(),
                       ") called gather(count 1, int32, root 1) #1, but "
                       "rank 0 (pid "));
    CHECK(self, strstr(dscomm_last_error(),
                       ") and 2 others called gather(count 1, int32, root 0) "
                       "#1"));
}

/* A broadcast with two roots, which completes on all ranks: no rank waits for
 * another that differs, so only the next collective fails. */
static void silent(rank_t *self)
{
    int32_t x[2] = {0}, y[2];
    dscomm_status_t status;

    status =
        dscomm_scatter(self->world, x, y, 1, DSCOMM_INT32, self->rank, NULL);
    CHECK(self, status == DSCOMM_OK);
    status = exchange_one(self->world, x, y, NULL);
    CHECK(self, status == DSCOMM_ERR_MISMATCH);
    CHECK(self, strstr(dscomm_last_error(),
                       "called scatter(count 1, int32, root 0) #1"));
    CHECK(self, strstr(dscomm_last_error(),
                       "called scatter(count 1, int32, root 1) #1"));
}

/* The same, but rank 1 does not wait for a second after its last call was
 * started, and has reported only its first one. Rank 0 waits for a report that
 * has the call which differs. */
static void silent_late(rank_t *self)
{
    int32_t x[2] = {0}, y[2];
    dscomm_work_t *work;

    if (self->rank == 0)
        usleep(300000);
    CHECK(self, !exchange_one(self->world, x, y, NULL));
    CHECK(self, !dscomm_scatter(self->world, x, y, 1, DSCOMM_INT32, self->rank,
                                NULL));
    CHECK(self, !exchange_one(self->world, x, y, &work));
    if (self->rank == 1)
        usleep(1000000);
    FINISH(self, work, DSCOMM_ERR_MISMATCH);
    CHECK(self, strstr(dscomm_last_error(),
                       "called scatter(count 1, int32, root 0) #2"));
    CHECK(self, strstr(dscomm_last_error(),
                       "called scatter(count 1, int32, root 1) #2"));
}

static char store_path[64];
static pthread_t ended_by; /* rank 0's all_to_all */

static void note_end(const dscomm_op_info_t *info, dscomm_status_t status,
                     uint64_t token, void *arg)
{
    (void)status, (void)token, (void)arg;
    if (info->coll == DSCOMM_COLL_ALL_TO_ALL &&
        dscomm_group_rank(info->group) == 0)
        ended_by = pthread_self();
}

/* number of all_to_alls of rank 0 that another thread ended */
static atomic_int others;

/* While rank 0 queries a store that does not answer, the message for which it
 * waits arrives, and the progress thread takes it. On a loaded machine rank 0
 * may begin the query later, so there are several rounds. */
static void store_stands_still(rank_t *self)
{
    int32_t x[2] = {0}, y[2];

    for (int i = 0; i < 20; i++) {
        int fd = -1;

        CHECK(self, !dscomm_barrier(self->world, NULL));
        if (atomic_load(&others))
            break;
        if (self->rank == 1) {
            fd = open(store_path, O_RDWR | O_CLOEXEC);
            CHECK(self, fd >= 0 && !flock(fd, LOCK_EX));
            usleep(250000);
        }
        CHECK(self, !exchange_one(self->world, x, y, NULL));
        if (self->rank == 0 && !pthread_equal(ended_by, pthread_self()))
            atomic_fetch_add(&others, 1);
        if (fd >= 0)
            close(fd);
    }
    CHECK(self, self->rank != 0 || atomic_load(&others) > 0);
}

static void test_lock(void)
{
    const dscomm_hooks_t hooks = {.size = sizeof hooks, .end = note_end};
    char url[80];

    snprintf(store_path, sizeof store_path, "/tmp/dscomm-test.%d.diagnosis",
             (int)getpid());
    snprintf(url, sizeof url, "file://%s", store_path);
    setenv("DSCOMM_PROGRESS", "thread", 1);
    dscomm_hooks_set(&hooks);
    ranks_run_in(url, 2, 20000, store_stands_still,
                 "a store that stands still holds up nobody else");
    dscomm_hooks_set(NULL);
    unlink(store_path);
}

int main(void)
{
    ranks_use_modules();
    ranks_run(4, 3000, late, "a rank that does not come is named");
    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    ranks_run(4, 4000, late_twice, "and where two calls are under way");
    unsetenv("DSCOMM_ALGORITHM");
    /* rank 1 stops waiting, and a watchdog would end its work before rank 0's
     */
    setenv("DSCOMM_WATCHDOG", "no", 1);
    ranks_run(3, 3000, late_chain, "a rank that waits for another late one");
    atomic_store(&has_reported, 0);
    ranks_run(3, 3000, late_chain_end, "one for which only a late one waits");
    unsetenv("DSCOMM_WATCHDOG");
    ranks_run(2, 2000, receive_any, "a receive from anybody");
    ranks_run(4, 20000, never_meet, "ranks that do not meet");
    ranks_run(2, 20000, silent, "a mismatch that nobody waits for");
    ranks_run(2, 20000, silent_late, "and a rank that reports it late");
    test_lock();
    return tap_done();
}
