/* SPDX-License-Identifier: BSD-3-Clause */
/* Several jobs side by side, several worlds in one process, and processes that
 * fork. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3

static int all_ok(const job_t *job)
{
    int passed = job_all(job, DSCOMM_OK);

    for (int r = 0; r < job->ranks; r++)
        passed &= job_exited(job, r);
    return passed;
}

/* Sums data of the job's ranks, 400 times, over half a second. */
static void sum_own(job_rank_t *me)
{
    int32_t value = *(int *)me->arg + me->rank, sum = 0;
    int32_t want = me->ranks * *(int *)me->arg + RANKS * (RANKS - 1) / 2;
    dscomm_status_t status = DSCOMM_OK;

    if (job_init(me) < 0)
        return;
    for (int i = 0; i < 400 && status == DSCOMM_OK; i++) {
        me->report->loops++;
        status = dscomm_all_reduce(me->world, &value, &sum, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL);
        me->report->value += status == DSCOMM_OK && sum != want;
        job_sleep_ms(1);
    }
    if (status == DSCOMM_OK)
        job_report(me, dscomm_finalize(me->world));
    else
        job_leave(me, status);
}

static int sums_right(const job_t *job)
{
    int passed = 1;

    for (int r = 0; r < job->ranks; r++)
        passed &= job->reports[r].value == 0;
    return passed;
}

/* Loses one rank. If deaths are not detected, loses all, because the others
 * would wait for their deadline. */
static void lose_rank(const job_t *job)
{
    int seen = (job->reports[0].capabilities & DSCOMM_CAP_DEATH_DETECTION) != 0;

    for (int r = 0; r < job->ranks; r++)
        if (r == 1 || !seen)
            kill(job->pids[r], SIGKILL);
}

/* Runs two jobs at the same time; then one of them loses a rank. */
static void run_side_by_side(int kill_one)
{
    static int values[] = {1000, 70000};
    job_t jobs[2];
    int passed;

    for (int j = 0; j < 2; j++)
        job_make(&jobs[j], RANKS, 0, sum_own, &values[j]);
    for (int r = 0; r < RANKS; r++) {
        job_start_rank(&jobs[0], r);
        job_start_rank(&jobs[1], r);
    }
    passed = job_wait_loops(&jobs[0], 20) && job_wait_loops(&jobs[1], 20);
    if (kill_one)
        lose_rank(&jobs[0]);
    passed &= job_join(&jobs[0], 10000);
    passed &= job_join(&jobs[1], 10000);
    passed &= sums_right(&jobs[0]) && sums_right(&jobs[1]);
    passed &= all_ok(&jobs[1]);
    passed &= all_ok(&jobs[0]) == !kill_one;
    if (!ok(passed, "two jobs side by side%s",
            kill_one ? ", one of which loses a rank" : "")) {
        job_show(&jobs[0]);
        job_show(&jobs[1]);
    }
    job_end(&jobs[0], "first job");
    job_end(&jobs[1], "second job");
}

/* Makes another world, as a library would, with the ranks in reverse order. */
static dscomm_status_t init_other(const job_rank_t *me, dscomm_store_t *store,
                                  dscomm_group_t **ret_world)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

    attr.store = store;
    attr.has_rank = 1;
    attr.rank = me->ranks - 1 - me->rank;
    attr.world_size = me->ranks;
    attr.timeout_ms = me->timeout_ms;
    attr.name = "other";
    return dscomm_init(&attr, ret_world);
}

static dscomm_status_t open_other(const job_rank_t *me,
                                  dscomm_store_t **ret_store)
{
    char url[128];
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    attr.world_size = me->ranks;
    snprintf(url, sizeof url, "%s.other", me->rendezvous);
    return dscomm_store_open(url, &attr, ret_store);
}

/* Gathers ranks on both worlds at once, and waits in opposite orders. */
static dscomm_status_t cross(dscomm_group_t *one, dscomm_group_t *other)
{
    dscomm_group_t *groups[2] = {one, other};
    dscomm_work_t *works[2] = {NULL, NULL};
    dscomm_status_t status = DSCOMM_OK;
    int32_t ranks[2], all[2][RANKS];
    int first = dscomm_group_rank(one) % 2;

    for (int i = 0; i < 2 && status == DSCOMM_OK; i++) {
        ranks[i] = dscomm_group_rank(groups[i]) + 100 * i;
        status = dscomm_all_gather(groups[i], &ranks[i], all[i], 1,
                                   DSCOMM_INT32, &works[i]);
    }
    for (int i = 0; i < 2 && status == DSCOMM_OK; i++)
        status = dscomm_work_wait(works[i ^ first], DSCOMM_TIMEOUT_DEFAULT);
    for (int r = 0; r < RANKS && status == DSCOMM_OK; r++)
        if (all[0][r] != r || all[1][r] != 100 + r)
            status = DSCOMM_ERR_INTERNAL;
    dscomm_work_free(works[0]);
    dscomm_work_free(works[1]);
    return status;
}

static void two_worlds(job_rank_t *me)
{
    dscomm_group_t *other = NULL;
    dscomm_store_t *store = NULL;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = open_other(me, &store);
    if (status == DSCOMM_OK)
        status = init_other(me, store, &other);
    for (int i = 0; i < 50 && status == DSCOMM_OK; i++)
        status = cross(me->world, other);
    if (status == DSCOMM_OK)
        status = dscomm_finalize(me->world);
    for (int i = 0; i < 10 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(other, NULL);
    if (status == DSCOMM_OK)
        status = dscomm_finalize(other);
    job_report(me, status);
    dscomm_store_close(store);
}

static void run_simple(const char *name, job_scenario_t scenario)
{
    job_t job;
    char other[128];

    job_make(&job, RANKS, 0, scenario, NULL);
    snprintf(other, sizeof other, "%s.other", job.path);
    job_start(&job);
    job_ok(&job, job_join(&job, 15000) && all_ok(&job) && sums_right(&job),
           "%s", name);
    unlink(other);
}

/* The n-th call of every rank makes the n-th world. */
static void same_rendezvous(job_rank_t *me)
{
    dscomm_group_t *worlds[3] = {NULL, NULL, NULL};
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < 3 && status == DSCOMM_OK; i++) {
        status = job_init(me);
        worlds[i] = me->world;
    }
    if (status == DSCOMM_OK)
        status = dscomm_barrier(worlds[1], NULL);
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(worlds[i], NULL);
    for (int i = 2; i >= 0 && status == DSCOMM_OK; i--)
        status = dscomm_finalize(worlds[i]);
    job_report(me, status);
}

/* Makes one sum on a world, and leaves the world. */
static dscomm_status_t live_once(job_rank_t *me, dscomm_group_t *world)
{
    int32_t one = 1, sum = 0;
    dscomm_status_t status =
        dscomm_all_reduce(world, &one, &sum, 1, DSCOMM_INT32, DSCOMM_SUM, NULL);

    me->report->value += sum != me->ranks;
    return status < 0 ? status : dscomm_finalize(world);
}

/* Several worlds one after the other, each with its own file. */
static void again_and_again(job_rank_t *me)
{
    dscomm_status_t status = DSCOMM_OK;
    job_rank_t now = *me;
    char url[128];

    now.rendezvous = url;
    for (int i = 0; i < 5 && status == DSCOMM_OK; i++) {
        snprintf(url, sizeof url, "%s.%d", me->rendezvous, i);
        status = job_init(&now);
        if (status == DSCOMM_OK)
            status = live_once(me, now.world);
    }
    job_report(me, status);
}

/* Several worlds one after the other, through one store that stays open. */
static void again_on_one_store(job_rank_t *me)
{
    dscomm_store_t *store = NULL;
    dscomm_status_t status = open_other(me, &store);

    for (int i = 0; i < 5 && status == DSCOMM_OK; i++) {
        dscomm_group_t *world;

        status = init_other(me, store, &world);
        if (status == DSCOMM_OK)
            status = live_once(me, world);
    }
    job_report(me, status);
    dscomm_store_close(store);
}

/* What a forked child may do with the world: calls fail, and its memory can be
 * freed. Returns the child's exit status: a bit for each check that failed. */
static int child_of(dscomm_group_t *world)
{
    int32_t in = 1, out = 0;
    int broken = 0;

    if (dscomm_all_reduce(world, &in, &out, 1, DSCOMM_INT32, DSCOMM_SUM,
                          NULL) >= 0)
        broken |= 1;
    if (strcmp(dscomm_last_error(), "") == 0)
        broken |= 2;
    if (dscomm_send(world, &in, 1, DSCOMM_INT32, 0, 0) >= 0)
        broken |= 4;
    if (dscomm_finalize(world) < 0)
        broken |= 8;
    return broken;
}

static void fork_inside(job_rank_t *me)
{
    int32_t in = 1, out = 0;
    dscomm_status_t status;
    int child_status = -1;
    pid_t child;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL);
    child = fork();
    if (child == 0)
        _exit(child_of(me->world));
    for (int i = 0; i < 100 && status == DSCOMM_OK; i++)
        status = dscomm_all_reduce(me->world, &in, &out, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL);
    waitpid(child, &child_status, 0);
    me->report->value = child_status;
    for (int i = 0; i < 100 && status == DSCOMM_OK; i++)
        status = dscomm_all_reduce(me->world, &in, &out, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL);
    if (status == DSCOMM_OK)
        status = dscomm_finalize(me->world);
    job_report(me, status);
}

/* A child may join its own job. */
static void fork_then_init(job_rank_t *me)
{
    dscomm_group_t *alone = NULL;
    dscomm_status_t status;
    int child_status = -1;
    pid_t child;

    if (job_init(me) < 0)
        return;
    child = fork();
    if (child == 0) {
        dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

        attr.has_rank = 1;
        attr.world_size = 1;
        status = dscomm_init(&attr, &alone);
        if (status == DSCOMM_OK)
            status = dscomm_barrier(alone, NULL);
        if (status == DSCOMM_OK)
            status = dscomm_finalize(alone);
        _exit(status == DSCOMM_OK ? 0 : 1);
    }
    waitpid(child, &child_status, 0);
    me->report->value = child_status;
    status = dscomm_barrier(me->world, NULL);
    if (status == DSCOMM_OK)
        status = dscomm_finalize(me->world);
    job_report(me, status);
}

int main(void)
{
    run_side_by_side(0);
    run_side_by_side(1);
    run_simple("two worlds in one process", two_worlds);
    run_simple("three worlds of one rendezvous", same_rendezvous);
    run_simple("a world after a world, each with its file", again_and_again);
    run_simple("a world after a world on one store", again_on_one_store);
    run_simple("a forked child loses the world, its parent does not",
               fork_inside);
    run_simple("a forked child joins a job of its own", fork_then_init);
    return job_done();
}
