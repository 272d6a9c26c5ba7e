/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitored barrier names all late ranks, and the group goes on. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <stdatomic.h>

#define SLACK_MS 2000 /* tolerance for busy machines */

static void all_come(rank_t *self)
{
    for (int i = 0; i < 20; i++)
        CHECK(self, !dscomm_monitored_barrier(self->world, -1));
}

/* Makes one call, and checks that it kept its deadline, and that the numbers of
 * the late ranks are want_count ranks from want on. */
static dscomm_status_t enter_late(rank_t *self, int timeout_ms, const int *want,
                                  int want_count)
{
    int64_t start = now_ms();
    int ranks[8], count = -1;
    dscomm_status_t status =
        dscomm_monitored_barrier_late(self->world, timeout_ms, ranks, &count);

    CHECK(self, now_ms() - start < timeout_ms + SLACK_MS);
    CHECK(self, count == want_count &&
                    !memcmp(ranks, want, (size_t)count * sizeof *want));
    return status;
}

static dscomm_status_t enter(rank_t *self, int timeout_ms)
{
    int64_t start = now_ms();
    dscomm_status_t status = dscomm_monitored_barrier(self->world, timeout_ms);

    CHECK(self, now_ms() - start < timeout_ms + SLACK_MS);
    return status;
}

static atomic_int given_up;

/* Waits, without a call, until count ranks have given up. */
static void stay_away(int count)
{
    while (given_up < count)
        usleep(1000);
}

/* Ranks 1 and 3 wait until the others have given up; their later messages do no
 * harm, and they learn the outcome at once. */
static void two_late(rank_t *self)
{
    static const int missing[] = {1, 3};
    int late = self->rank == 1 || self->rank == 3;
    int64_t start;

    CHECK(self, !dscomm_barrier(self->world, NULL));
    if (late)
        stay_away(3);
    start = now_ms();
    FAILS(self, DSCOMM_ERR_TIMEOUT, "dscomm_monitored_barrier",
          enter_late(self, late ? 8000 : 1000, missing, 2));
    CHECK(self, strstr(dscomm_last_error(), "ranks 1, 3 of 5 did not come"));
    if (late) {
        CHECK(self, strstr(dscomm_last_error(), "this rank came too late"));
        CHECK(self, now_ms() - start < 8000);
    }
    given_up++;
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
    CHECK(self, !dscomm_barrier(self->world, NULL));
    for (int i = 0; i < 3; i++)
        CHECK(self, !enter_late(self, 5000, missing, 0));
    FAILS(self, DSCOMM_ERR_INVALID, "ret_ranks is NULL",
          dscomm_monitored_barrier_late(self->world, 5000, NULL, NULL));
}

/* The other ranks give up, each in time; rank 0 learns that when it calls, so
 * the barrier has passed on no rank. The others may wait in the next collective
 * by then, which is no mismatch. */
static void root_late(rank_t *self)
{
    static const int leader = 0;

    if (self->rank == 0) {
        stay_away(2);
        usleep(400000);
        FAILS(self, DSCOMM_ERR_TIMEOUT,
              "gave up, since rank 0 did not come within the 50",
              enter(self, 5000));
        CHECK(self, strstr(dscomm_last_error(), "this rank came too late"));
        CHECK(self, !dscomm_barrier(self->world, NULL));
    } else {
        FAILS(self, DSCOMM_ERR_TIMEOUT, "rank 0 of 3 did not come",
              enter_late(self, 50, &leader, 1));
        given_up++;
        CHECK(self, !dscomm_barrier(self->world, NULL));
    }
    CHECK(self, !dscomm_monitored_barrier(self->world, 5000));
}

/* Rank 2 never calls; the others call one after the other. All name rank 2, and
 * none waits longer than its own time-out. */
static void one_missing(rank_t *self)
{
    const int delays_ms[] = {400, 0, 0, 800};

    if (self->rank != 2) {
        usleep((useconds_t)delays_ms[self->rank] * 1000);
        FAILS(self, DSCOMM_ERR_TIMEOUT,
              ": rank 2 of 4 did not come "
              "within the 2000 ms",
              enter(self, 2000));
        given_up++;
    } else {
        stay_away(3);
    }
    CHECK(self, !dscomm_barrier(self->world, NULL));
}

/* Whichever rank is late, the ranks that try again succeed in the end. A
 * quarter of the time-out is kept for sending the outcome, because a busy
 * machine needs it. */
static void again(rank_t *self, int late)
{
    dscomm_status_t status = DSCOMM_ERR_TIMEOUT;

    if (self->rank == late)
        usleep(2500000);
    for (int i = 0; i < 50 && status == DSCOMM_ERR_TIMEOUT; i++)
        status = enter(self, 1000);
    CHECK(self, status == DSCOMM_OK);
    CHECK(self, !dscomm_barrier(self->world, NULL));
}

static void root_again(rank_t *self)
{
    again(self, 0);
}

static void other_again(rank_t *self)
{
    again(self, 2);
}

/* A receive from any tag does not get the barrier's messages. */
static void any_tag(rank_t *self)
{
    dscomm_work_t *work;
    int x = self->rank, y = -1;

    CHECK(self, !irecv_one(self->world, &y, DSCOMM_ANY_SOURCE, DSCOMM_ANY_TAG,
                           &work));
    CHECK(self, !dscomm_monitored_barrier(self->world, -1));
    CHECK(self, dscomm_work_test(work) == DSCOMM_IN_PROGRESS);
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, !send_one(self->world, &x, 1 - self->rank, 0));
    CHECK(self, !dscomm_work_wait(work, -1) && y == 1 - self->rank);
    dscomm_work_free(work);
}

/* Rank 1 waits for a message that rank 3 does not send. That ends the group:
 * the barrier of the others names rank 3, as the sentence does. */
static void group_ends(rank_t *self)
{
    dscomm_group_t *group = split_all(self, 300);
    int ranks[8] = {-1}, count = -1, x;
    dscomm_work_t *work;

    if (self->rank == 1) {
        CHECK(self, !irecv_one(group, &x, 3, 1, &work));
        FINISH(self, work, DSCOMM_ERR_TIMEOUT);
    } else if (self->rank != 3) {
        FAILS(self, DSCOMM_ERR_TIMEOUT, "rank 3",
              dscomm_monitored_barrier_late(group, 30000, ranks, &count));
        CHECK(self, count == 1 && ranks[0] == 3);
    }
    while (dscomm_group_status(group) == DSCOMM_OK)
        usleep(1000);
    CHECK(self, !dscomm_group_free(group));
}

int main(void)
{
    ranks_use_modules();
    ranks_run(1, 10000, all_come, "alone");
    ranks_run(5, 10000, all_come, "everyone comes");
    ranks_run(5, 10000, two_late, "two are late");
    given_up = 0;
    ranks_run(3, 10000, root_late, "rank 0 is late");
    ranks_run(4, 10000, group_ends, "the group ends meanwhile");
    given_up = 0;
    ranks_run(4, 10000, one_missing, "one never comes");
    ranks_run(3, 10000, root_again, "all try again until rank 0 is there");
    ranks_run(3, 10000, other_again, "all try again until rank 2 is there");
    ranks_run(2, 10000, any_tag, "any tag does not match");
    return tap_done();
}
