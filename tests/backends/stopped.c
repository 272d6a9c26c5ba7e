/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank 0 that serves the store and is stopped by SIGSTOP: each call of the
 * others keeps its one deadline, however many requests it sends to the store,
 * and the sentence says who is stopped. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define RANKS 3
#define TIMEOUT_MS 2000
/* After the deadline: for the last answers of the store, and for rank 0's
 * decision at start-up; with room for a slow machine. */
#define GRACE_MS 2300

static int count_reports(const job_t *job, int64_t loops)
{
    int count = 0;

    for (int r = 0; r < job->ranks; r++)
        count += job->reports[r].loops >= loops;
    return count;
}

static void stop_self(job_rank_t *me)
{
    me->report->loops = 1;
    raise(SIGSTOP);
    exit(0);
}

/* Rank 0 is stopped while it waits for rank 2, which never comes. */
static void start_up(job_rank_t *me)
{
    const double started = job_now_ms();
    dscomm_group_t *world = NULL;
    dscomm_status_t status;

    me->report->loops = 1;
    status = job_init(me, &world);
    job_tell(me, status, started);
}

static void new_group(job_rank_t *me, const int *ranks, int count)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *world, *group;
    dscomm_status_t status;
    double started;

    if (job_init(me, &world))
        return;
    if (me->rank == 0)
        stop_self(me);
    usleep(200000);
    attr.members_only = 1;
    started = job_now_ms();
    status = dscomm_group_new(world, ranks, count, &attr, &group);
    job_tell(me, status, started);
}

/* Rank 0 is stopped while rank 1 waits for rank 2, which makes another group:
 * what rank 1 lacks is that rank, and not the store. */
static void group_without_last(job_rank_t *me)
{
    static const int ranks[2][2] = {{1, 2}, {0, 2}};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *world, *group;
    dscomm_status_t status;
    double started;

    if (job_init(me, &world))
        return;
    attr.members_only = 1;
    me->report->loops = 1;
    while (me->rank == 0)
        pause();
    started = job_now_ms();
    status = dscomm_group_new(world, ranks[me->rank - 1], 2, &attr, &group);
    job_tell(me, status, started);
}

/* The store's server is no member. */
static void group_of_others(job_rank_t *me)
{
    static const int ranks[] = {1, 2};

    new_group(me, ranks, 2);
}

/* The store's server is the new group's rank 0. */
static void group_of_all(job_rank_t *me)
{
    static const int ranks[] = {0, 1, 2};

    new_group(me, ranks, 3);
}

static void call_all_reduce(job_rank_t *me, int stopped)
{
    float in[8] = {0}, out[8];
    dscomm_group_t *world;
    dscomm_status_t status = DSCOMM_OK;
    double started;

    if (job_init(me, &world))
        return;
    if (me->rank == stopped)
        stop_self(me);
    started = job_now_ms();
    status =
        dscomm_all_reduce(world, in, out, 8, DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
    job_tell(me, status, started);
}

static void schedule(job_rank_t *me)
{
    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    call_all_reduce(me, 0);
}

/* The store goes on, so that all know who is late. */
static void schedule_of_other(job_rank_t *me)
{
    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    call_all_reduce(me, 1);
}

static const struct {
    const char *name;
    job_scenario_t scenario;
    int ranks, victim; /* those that come, and the one that is stopped */
    int outside; /* 1: the test stops it */
    const char *says; /* besides that it is stopped; a part of the sentence */
} rows[] = {
    {"start-up", start_up, 2, 0, 1, ""},
    {"a group of others", group_of_others, RANKS, 0, 0, ""},
    {"a group of all", group_of_all, RANKS, 0, 0, "': rank 0 (pid "},
    {"a group without its last", group_without_last, RANKS, 0, 1, "': rank "},
    {"a schedule", schedule, RANKS, 0, 0, ""},
    {"a schedule, another rank stopped", schedule_of_other, RANKS, 1, 0, ""},
};

static void await_others(const job_t *job, int ranks, int victim, int limit_ms)
{
    const double end = job_now_ms() + limit_ms;

    for (int r = 0; r < ranks; r++)
        while (r != victim && !job->reports[r].ended && job_now_ms() < end)
            job_sleep_ms(10);
}

static int is_right(const job_t *job, int rank, pid_t pid, int timeout_ms,
                    const char *says)
{
    const job_report_t *report = &job->reports[rank];
    char who[64];

    snprintf(who, sizeof who, "(pid %d", (int)pid);
    if (report->took_ms > timeout_ms + job_slowly(GRACE_MS))
        printf("# rank %d took %.0f ms\n", rank, report->took_ms);
    return report->status == DSCOMM_ERR_TIMEOUT &&
           report->took_ms <= timeout_ms + job_slowly(GRACE_MS) &&
           job_sentence_has(job, rank, "stopped by a signal") &&
           job_sentence_has(job, rank, who) &&
           job_sentence_has(job, rank, says);
}

int main(void)
{
    const int timeout = job_slowly(TIMEOUT_MS);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int passed = 1;
        pid_t pid;
        job_t job;

        job_make(&job, RANKS, timeout, rows[i].scenario, NULL);
        job_use_tcp(&job);
        for (int r = 0; r < rows[i].ranks; r++)
            job_start_rank(&job, r);
        pid = job.pids[rows[i].victim];
        while (rows[i].outside && count_reports(&job, 1) < rows[i].ranks)
            job_sleep_ms(10);
        if (rows[i].outside) {
            job_sleep_ms(700);
            kill(pid, SIGSTOP);
        }
        await_others(&job, rows[i].ranks, rows[i].victim,
                     timeout + job_slowly(4 * GRACE_MS));
        kill(pid, SIGKILL);
        job_join(&job, 5000);
        for (int r = 0; r < rows[i].ranks; r++)
            passed &= r == rows[i].victim ||
                      is_right(&job, r, pid, timeout, rows[i].says);
        if (!ok(passed, "%s: one deadline, and who is stopped", rows[i].name))
            job_show(&job);
        job_end(&job, rows[i].name);
    }
    is_int(job_leftovers(), 0, "nothing is left behind");
    return tap_done();
}
