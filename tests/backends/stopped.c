/* SPDX-License-Identifier: BSD-3-Clause */
/* The store's server, which is rank 0 or a separate process, is stopped by
 * SIGSTOP. Each call of the others keeps its one deadline, however many
 * requests it sends to the store, and the sentence names the stopped process.
 * Times are checked with tolerance for slow machines; tests/lib/store/limit.c
 * checks them exactly. */
#include "config.h"

#include "lib/base/kernel.h"
#include "tests/backends/job.h"
#include "tests/tap.h"

#include <dscomm/backend.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3
#define TIMEOUT_MS 2000
/* Time after the deadline, in ms: for the last answers of the store, and for
 * rank 0's decision at start-up; with tolerance for slow machines. */
#define GRACE_MS 2300

static void stop_self(job_rank_t *me)
{
    me->report->loops = 1;
    raise(SIGSTOP);
    exit(0);
}

/* Rank 0 is stopped while it waits for rank 2, which never comes. */
static void start_up(job_rank_t *me)
{
    me->report->loops = 1;
    job_init(me);
}

static void new_group(job_rank_t *me, const int *ranks, int count)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group;

    attr.members_only = 1;
    me->started = job_now_ms();
    job_report(me, dscomm_group_new(me->world, ranks, count, &attr, &group));
}

/* Rank 0 is stopped while rank 1 waits for rank 2, which makes another group:
 * rank 1 lacks rank 2, not the store. */
static void group_without_last(job_rank_t *me)
{
    static const int ranks[2][2] = {{1, 2}, {0, 2}};

    if (job_init(me))
        return;
    me->report->loops = 1;
    while (me->rank == 0)
        pause();
    new_group(me, ranks[me->rank - 1], 2);
}

static const int all[] = {0, 1, 2};

static void group_while_stopped(job_rank_t *me, int stopped, const int *ranks,
                                int count)
{
    if (job_init(me))
        return;
    if (me->rank == stopped)
        stop_self(me);
    usleep(200000);
    new_group(me, ranks, count);
}

/* A group without the rank that serves the store. */
static void group_of_others(job_rank_t *me)
{
    group_while_stopped(me, 0, all + 1, RANKS - 1);
}

/* A group whose rank 0 serves the store. */
static void group_of_all(job_rank_t *me)
{
    group_while_stopped(me, 0, all, RANKS);
}

/* A rank of another host sees that rank 1 is stopped. */
static void group_of_hosts(job_rank_t *me)
{
    setenv("DSCOMM_HOST_ID", me->rank ? "b" : "a", 1);
    setenv("DSCOMM_BACKEND", "two_level", 1);
    setenv("DSCOMM_TWO_LEVEL_BETWEEN", "shm", 1);
    group_while_stopped(me, 1, all, RANKS);
}

static void call_all_reduce(job_rank_t *me)
{
    float in[8] = {0}, out[8];

    me->started = job_now_ms();
    job_report(me, dscomm_all_reduce(me->world, in, out, 8, DSCOMM_FLOAT32,
                                     DSCOMM_SUM, NULL));
}

static void schedule_while_stopped(job_rank_t *me, int stopped)
{
    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    if (job_init(me))
        return;
    if (me->rank == stopped)
        stop_self(me);
    call_all_reduce(me);
}

static void schedule(job_rank_t *me)
{
    schedule_while_stopped(me, 0);
}

/* Only rank 0 is waited for, and no report tells of it. */
static void gather_while_stopped(job_rank_t *me)
{
    enum { COUNT = 1000000 };
    static float in[COUNT];

    setenv("DSCOMM_ALGORITHM", "gather:linear", 1);
    if (job_init(me))
        return;
    if (me->rank == 0)
        stop_self(me);
    me->started = job_now_ms();
    job_report(
        me, dscomm_gather(me->world, in, NULL, COUNT, DSCOMM_FLOAT32, 0, NULL));
    job_report_failure(me);
}

/* Rank 2 runs ahead until it waits for rank 0, which is behind it, although not
 * as far as rank 1. */
static void gather_ahead(job_rank_t *me)
{
    static float in[8], out[8 * RANKS];
    dscomm_status_t status = DSCOMM_OK;
    dscomm_work_t *work;

    if (job_init(me))
        return;
    if (me->rank == 1)
        stop_self(me);
    me->report->value = me->rank == 0;
    if (me->rank == 0)
        dscomm_gather(me->world, in, out, 8, DSCOMM_FLOAT32, 0, &work);
    while (me->rank == 0)
        pause();
    while (status == DSCOMM_OK) {
        me->started = job_now_ms();
        status = dscomm_gather(me->world, in, out, 8, DSCOMM_FLOAT32, 0, NULL);
    }
    job_report(me, status);
    job_report_failure(me);
}

static void gather_ahead_linear(job_rank_t *me)
{
    setenv("DSCOMM_ALGORITHM", "gather:linear", 1);
    gather_ahead(me);
}

static bool is_stopped(const job_rank_t *me, int rank)
{
    return dscomm_priv_process_state(me->report[rank - me->rank].pid) == 'T';
}

/* Rank 1, the root, is stopped after it has written the first pieces, and
 * before the others, without which it cannot end, begin to read. So it is ahead
 * of the ranks that wait for the others. */
static void scatter_behind_root(job_rank_t *me)
{
    enum { COUNT = 1000000 };
    static float in[COUNT * RANKS], out[COUNT];
    dscomm_work_t *work;

    if (job_init(me))
        return;
    if (me->rank == 1) {
        dscomm_scatter(me->world, in, out, COUNT, DSCOMM_FLOAT32, 1, &work);
        stop_self(me);
    }
    while (!is_stopped(me, 1))
        job_sleep_ms(5);
    me->started = job_now_ms();
    job_report(me, dscomm_scatter(me->world, NULL, out, COUNT, DSCOMM_FLOAT32,
                                  1, NULL));
    job_report_failure(me);
}

/* The store works, so all ranks know which rank is late. */
static void schedule_of_other(job_rank_t *me)
{
    schedule_while_stopped(me, 1);
}

/* Makes a turn, and waits until the test, which stops the server, has made the
 * next. */
static void await_stop(job_rank_t *me)
{
    me->report->loops = 2;
    while (me->report->loops < 3)
        job_sleep_ms(5);
    me->started = job_now_ms();
}

/* Joins by a store that a process of its own serves. */
static dscomm_status_t join(job_rank_t *me)
{
    dscomm_store_attr_t store_attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_status_t status;

    store_attr.timeout_ms = me->timeout_ms;
    status = dscomm_store_open(me->rendezvous, &store_attr, &attr.store);
    me->report->loops = 1;
    attr.has_rank = 1;
    attr.rank = me->rank;
    attr.world_size = me->ranks;
    attr.timeout_ms = me->timeout_ms;
    if (status == DSCOMM_OK)
        status = dscomm_init(&attr, &me->world);
    if (status < 0)
        job_report(me, status);
    return status;
}

static dscomm_status_t join_separate(job_rank_t *me)
{
    const dscomm_status_t status = join(me);

    if (status == DSCOMM_OK)
        await_stop(me);
    return status;
}

static void start_up_separate(job_rank_t *me)
{
    join_separate(me);
}

static void group_separate(job_rank_t *me)
{
    if (join_separate(me) == DSCOMM_OK)
        new_group(me, all, RANKS);
}

static void split_separate(job_rank_t *me)
{
    dscomm_group_t *group;

    if (join_separate(me) == DSCOMM_OK)
        job_report(me,
                   dscomm_group_split(me->world, 0, me->rank, NULL, &group));
}

static void mesh_separate(job_rank_t *me)
{
    const int dims[] = {1, RANKS};
    dscomm_group_t *groups[2];

    if (join_separate(me) == DSCOMM_OK)
        job_report(me, dscomm_group_mesh(me->world, dims, 2, groups));
}

/* The last rank makes no call, as its value says. */
static void schedule_separate(job_rank_t *me)
{
    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    if (join_separate(me))
        return;
    me->report->value = me->rank == RANKS - 1;
    while (me->report->value)
        pause();
    call_all_reduce(me);
}

/* The last rank stops, and the server only when the others have waited. Their
 * first diagnosis has read the pids, so the sentence names both. */
static void schedule_both(job_rank_t *me)
{
    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    if (join(me))
        return;
    me->report->value = me->rank == RANKS - 1;
    me->report->loops = 2;
    if (me->report->value)
        raise(SIGSTOP);
    call_all_reduce(me);
}

/* A store that a launcher such as torchrun serves counts the ranks that have
 * left. */
static void finalize_separate(job_rank_t *me)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    char text[16];
    dscomm_status_t status;

    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("TORCHELASTIC_RUN_ID", "stopped", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", strrchr(me->rendezvous, ':') + 1, 1);
    snprintf(text, sizeof text, "%d", me->rank);
    setenv("RANK", text, 1);
    snprintf(text, sizeof text, "%d", me->ranks);
    setenv("WORLD_SIZE", text, 1);
    attr.timeout_ms = me->timeout_ms;
    status = dscomm_init(&attr, &me->world);
    if (status == DSCOMM_OK) {
        await_stop(me);
        status = dscomm_finalize(me->world);
    }
    me->report->loops = 2;
    job_report(me, status);
}

/* The number of the separate process, which is not a rank. */
#define SEPARATE RANKS

static const struct {
    const char *name;
    job_scenario_t scenario;
    int ranks, victim; /* ranks that join, and the one that is stopped */
    /* > 0: the test stops it, so many turns of the others and ms later */
    int outside, after_ms;
    /* expected in the sentence, besides the stopped process */
    const char *says;
} rows[] = {
    {"start-up", start_up, 2, 0, 1, 700, ""},
    {"a group of others", group_of_others, RANKS, 0, 0, 0, ""},
    {"a group of all", group_of_all, RANKS, 0, 0, 0, "': the store at "},
    {"a group without its last", group_without_last, RANKS, 0, 1, 700,
     "': the store at "},
    {"a group of two hosts", group_of_hosts, RANKS, 1, 0, 0, ""},
    {"a schedule", schedule, RANKS, 0, 0, 0, ""},
    {"a gather", gather_while_stopped, RANKS, 0, 0, 0, "to rank 0"},
    {"gathers ahead of the root", gather_ahead, RANKS, 1, 0, 0, ""},
    {"the same by schedules", gather_ahead_linear, RANKS, 1, 0, 0, ""},
    {"a scatter, its root ahead", scatter_behind_root, RANKS, 1, 0, 0, ""},
    {"a schedule, another rank stopped", schedule_of_other, RANKS, 1, 0, 0, ""},
    {"start-up, a separate server", start_up_separate, 2, SEPARATE, 1, 700,
     "the store at "},
    {"a group, a separate server", group_separate, RANKS, SEPARATE, 2, 0,
     "': the store at "},
    {"a split, a separate server", split_separate, RANKS, SEPARATE, 2, 0,
     "': the store at "},
    {"a mesh, a separate server", mesh_separate, RANKS, SEPARATE, 2, 0,
     "': the store at "},
    {"a schedule, a separate server", schedule_separate, RANKS, SEPARATE, 2, 0,
     "; the store at "},
    {"a schedule, a rank and the server", schedule_both, RANKS, SEPARATE, 2,
     TIMEOUT_MS / 2, ") is stopped by a signal; the store at "},
    {"a finalize, a separate server", finalize_separate, RANKS, SEPARATE, 2, 0,
     ""},
};

#define FINALIZE (sizeof rows / sizeof rows[0] - 1) /* which succeeds */

/* Starts the process that serves the store of job. */
static pid_t start_server(const job_t *job)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;
    int ready[2];
    char byte;
    pid_t pid;

    if (pipe(ready))
        bail("no pipe");
    fflush(NULL);
    pid = fork();
    if (pid > 0) {
        close(ready[1]);
        if (read(ready[0], &byte, 1) != 1)
            bail("no server");
        close(ready[0]);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    attr.serve = 1;
    if (dscomm_store_open(job->rendezvous, &attr, &store) == DSCOMM_OK &&
        write(ready[1], "", 1) == 1)
        pause();
    _exit(1);
}

static void await_others(const job_t *job, int ranks, int victim, int limit_ms)
{
    const double end = job_now_ms() + limit_ms;

    for (int r = 0; r < ranks; r++)
        while (r != victim && !job->reports[r].ended &&
               !job->reports[r].value && job_now_ms() < end)
            job_sleep_ms(10);
}

static int is_right(const job_t *job, int rank, int victim, pid_t pid,
                    int timeout_ms, const char *says)
{
    const job_report_t *report = &job->reports[rank];
    char who[64];

    snprintf(who, sizeof who, "(pid %d", (int)pid);
    if (report->took_ms > timeout_ms + job_slowly(GRACE_MS))
        printf("# rank %d took %.0f ms\n", rank, report->took_ms);
    if (report->failure.size && report->failure.rank != victim) {
        printf("# rank %d: the culprit is %d\n", rank, report->failure.rank);
        return 0;
    }
    return report->status == DSCOMM_ERR_TIMEOUT &&
           report->took_ms <= timeout_ms + job_slowly(GRACE_MS) &&
           job_sentence_has(job, rank, "stopped by a signal") &&
           job_sentence_has(job, rank, who) &&
           job_sentence_has(job, rank, says);
}

/* Stops a child and waits until all its threads have stopped: until then, its
 * server may answer. */
static void stop_process(pid_t pid)
{
    siginfo_t info;

    kill(pid, SIGSTOP);
    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT))
        bail("no child to stop");
}

/* Starts the ranks of row i, stops its victim, and waits for the others. */
static pid_t run_row(job_t *job, size_t i, int timeout_ms)
{
    const int ranks = rows[i].ranks;
    pid_t pid = rows[i].victim == SEPARATE ? start_server(job) : 0;

    for (int r = 0; r < ranks; r++)
        job_start_rank(job, r);
    if (!pid)
        pid = job->pids[rows[i].victim];
    job_wait_loops(job, rows[i].outside);
    if (rows[i].outside) {
        job_sleep_ms(job_slowly(rows[i].after_ms));
        stop_process(pid);
    }
    for (int r = 0; r < ranks && rows[i].outside == 2; r++)
        job->reports[r].loops = 3;
    await_others(job, ranks, rows[i].victim,
                 timeout_ms + job_slowly(4 * GRACE_MS));
    kill(pid, SIGKILL);
    if (rows[i].victim == SEPARATE)
        waitpid(pid, NULL, 0);
    for (int r = 0; r < ranks; r++)
        if (job->reports[r].value)
            kill(job->pids[r], SIGKILL);
    job_join(job, 5000);
    return pid;
}

/* With all works done, finalize waits for the store for at most 5 s, whatever
 * its time-out is. */
static void test_finalize(void)
{
    const int timeout = job_slowly(20000);
    int passed = 1;
    job_t job;

    job_make(&job, RANKS, timeout, finalize_separate, NULL);
    job_use_tcp(&job);
    run_row(&job, FINALIZE, timeout);
    for (int r = 0; r < RANKS; r++)
        passed &= job.reports[r].ended && job.reports[r].status == DSCOMM_OK &&
                  job.reports[r].took_ms < timeout;
    job_ok(&job, passed, "a finalize, a separate server: no longer than 5 s");
}

int main(void)
{
    const int timeout = job_slowly(TIMEOUT_MS);

    for (size_t i = 0; i < FINALIZE; i++) {
        int passed = 1;
        pid_t pid;
        job_t job;

        job_make(&job, RANKS, timeout, rows[i].scenario, NULL);
        job_use_tcp(&job);
        pid = run_row(&job, i, timeout);
        for (int r = 0; r < rows[i].ranks; r++)
            passed &=
                r == rows[i].victim || job.reports[r].value ||
                is_right(&job, r, rows[i].victim, pid, timeout, rows[i].says);
        job_ok(&job, passed, "%s: one deadline, and who is stopped",
               rows[i].name);
    }
    test_finalize();
    return job_done();
}
