/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks that a launcher has started meet: without a port, beside other
 * jobs, with wrong local numbers, and if rank 0 dies meanwhile. The launchers
 * are represented by their variables. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The output of mpirun. */
typedef struct {
    const char *name; /* the job's name; NULL: not given */
    const char *address, *port; /* NULL: not told */
    int local_rank[4], local_size; /* -1: not told */
    int want[4]; /* local ranks */
    const char *warning;
} launch_t;

static char warned[600];

static void remember(dscomm_log_level_t level, const char *domain,
                     const char *message, void *arg)
{
    (void)domain;
    (void)arg;
    if (level == DSCOMM_LOG_WARN)
        snprintf(warned, sizeof warned, "%s", message);
}

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    set(name, value < 0 ? NULL : text);
}

static void set_all(const job_rank_t *me, const launch_t *launch)
{
    set_number("OMPI_COMM_WORLD_RANK", me->rank);
    set_number("OMPI_COMM_WORLD_SIZE", me->ranks);
    set_number("OMPI_COMM_WORLD_LOCAL_RANK", launch->local_rank[me->rank]);
    set_number("OMPI_COMM_WORLD_LOCAL_SIZE", launch->local_size);
    set("PMIX_NAMESPACE", launch->name);
    set("MASTER_ADDR", launch->address);
    set("MASTER_PORT", launch->port);
}

/* Joins, sums ranks, reports its local rank and the warning of the log,
 * leaves. */
static void join_and_leave(job_rank_t *me)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    int32_t own = me->rank, sum = -1;
    dscomm_group_t *world;
    dscomm_status_t status;

    set_all(me, me->arg);
    dscomm_log_set_handler(remember, NULL);
    attr.timeout_ms = me->timeout_ms;
    status = dscomm_init(&attr, &world);
    if (status == DSCOMM_OK) {
        me->report->value = dscomm_group_local_rank(world);
        me->report->loops = dscomm_group_local_size(world) * 100 +
                            dscomm_group_node_rank(world);
        status = dscomm_all_reduce(world, &own, &sum, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL);
        me->report->other_status = sum;
        if (status == DSCOMM_OK)
            status = dscomm_finalize(world);
    }
    job_report(me, status);
    if (status == DSCOMM_OK)
        snprintf(me->report->sentence, sizeof me->report->sentence, "%s",
                 warned);
}

static void print_reports(const job_t *job)
{
    for (int r = 0; r < job->ranks; r++)
        printf("# rank %d: ended %d, %s after %.0f ms, %lld, %lld: %s\n", r,
               job->reports[r].ended,
               dscomm_status_name(job->reports[r].status),
               job->reports[r].took_ms, (long long)job->reports[r].value,
               (long long)job->reports[r].loops, job->reports[r].sentence);
}

static void check_joined(job_t *job, const launch_t *launch, const char *what)
{
    const int ranks = job->ranks;
    int passed = 1;

    for (int r = 0; r < ranks; r++)
        passed &= job->reports[r].ended &&
                  job->reports[r].status == DSCOMM_OK &&
                  job->reports[r].other_status == ranks * (ranks - 1) / 2 &&
                  job->reports[r].value == launch->want[r] &&
                  job->reports[r].loops == ranks * 100;
    if (launch->warning && *launch->warning)
        passed &= strstr(job->reports[0].sentence, launch->warning) != NULL;
    else if (launch->warning)
        passed &= !*job->reports[0].sentence;
    if (!ok(passed, "%s", what))
        print_reports(job);
}

static void test_local_ranks(void)
{
    static const struct {
        const char *what;
        launch_t launch;
    } rows[] = {
        {"what agrees is kept, without a word",
         {"a", NULL, NULL, {0, 1, 2, 3}, 4, {0, 1, 2, 3}, ""}},
        {"the launcher's order is kept",
         {"b", NULL, NULL, {3, 0, 2, 1}, 4, {3, 0, 2, 1}, ""}},
        {"one number for all is counted anew, with a warning",
         {"c",
          NULL,
          NULL,
          {0, 0, 0, 0},
          4,
          {0, 1, 2, 3},
          "not all with a number of their own"}},
        {"two nodes that are one, too",
         {"d",
          "127.0.0.1",
          NULL,
          {0, 1, 0, 1},
          2,
          {0, 1, 2, 3},
          "local rank 0 of 2, but its host has 4 ranks"}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        job_t job;

        job_make(&job, 4, 0, join_and_leave, (void *)&rows[i].launch);
        job_start(&job);
        job_join(&job, 20000);
        check_joined(&job, &rows[i].launch, rows[i].what);
        job_end(&job, rows[i].what);
    }
}

/* Four jobs at once, two of which first try the same port. */
static void test_many_jobs(void)
{
    static const launch_t launches[] = {
        {"one", NULL, NULL, {0, 1}, 2, {0, 1}, ""},
        {"two", NULL, NULL, {0, 1}, 2, {0, 1}, ""},
        {"three", NULL, NULL, {0, 1}, 2, {0, 1}, ""},
        {"four", NULL, NULL, {0, 1}, 2, {0, 1}, ""},
    };
    job_t jobs[4];

    for (int j = 0; j < 4; j++) {
        job_make(&jobs[j], 2, 0, join_and_leave, (void *)&launches[j]);
        job_start_rank(&jobs[j], 1);
    }
    for (int j = 0; j < 4; j++)
        job_start_rank(&jobs[j], 0);
    for (int j = 0; j < 4; j++) {
        job_join(&jobs[j], 20000);
        check_joined(&jobs[j], &launches[j], "a job beside three, no port");
    }
    for (int j = 0; j < 4; j++)
        job_end(&jobs[j], "many jobs");
}

/* The user gave one port to two jobs. The job that already uses it is not
 * disturbed. */
static void test_two_jobs(void)
{
    char port[16];
    launch_t first = {"first", "127.0.0.1", port, {0, 1, 2}, 3, {0, 1, 2}, ""};
    launch_t second = first;
    job_t job, other;
    int number, passed;

    close(job_listen(&number));
    snprintf(port, sizeof port, "%d", number);
    second.name = "second";
    job_make(&job, 3, 0, join_and_leave, &first);
    job_make(&other, 3, job_slowly(8000), join_and_leave, &second);
    job_start_rank(&job, 0);
    job_start_rank(&job, 1);
    job_sleep_ms(job_slowly(300));
    job_start(&other);
    passed = job_join(&other, 30000);
    passed &=
        job_reported(&other, 1, DSCOMM_ERR_IO, 30000, port, "in use", NULL);
    passed &= job_reported(&other, 6, DSCOMM_ERR_MISMATCH, 15000, port,
                           "/first'", "/second'", NULL);
    if (!ok(passed, "the second job at a port is told of the first"))
        print_reports(&other);
    job_start_rank(&job, 2);
    job_join(&job, 20000);
    check_joined(&job, &first, "the first one meets all the same");
    job_end(&other, "second job");
    job_end(&job, "first job");
}

/* Rank 0 dies while it serves the store of ranks that wait for it. */
static void test_leader_dies(void)
{
    char port[16];
    launch_t launch = {"dies", "127.0.0.1", port, {0, 1, 2}, 3, {0}, NULL};
    job_t job;
    int number, passed;

    close(job_listen(&number));
    snprintf(port, sizeof port, "%d", number);
    job_make(&job, 3, job_slowly(20000), join_and_leave, &launch);
    job_start_rank(&job, 0);
    job_start_rank(&job, 1);
    job_sleep_ms(job_slowly(600));
    job_kill(&job, 0);
    job_sleep_ms(job_slowly(3000));
    passed = job_reported(&job, 2, DSCOMM_ERR_PEER_FAILED, 20000,
                          "rank 0 (pid ", NULL);
    if (!ok(passed, "rank 0 dies before all have come: rank 1 says so soon"))
        print_reports(&job);
    job_join(&job, 30000);
    job_end(&job, "leader dies");
}

static void join_nowhere(job_rank_t *me)
{
    set("DSCOMM_SOCKET_IFNAME", "=nosuch0");
    join_and_leave(me);
}

static void test_no_interface(void)
{
    launch_t launch = {"none", NULL, NULL, {0, 1}, 2, {0, 1}, ""};
    job_t job;
    int passed = job_run(&job, 2, 0, join_nowhere, &launch, 10000);

    passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_ENVIRONMENT, 10000,
                           "DSCOMM_SOCKET_IFNAME='=nosuch0'", NULL);
    if (!ok(passed, "an interface that does not exist is an error"))
        print_reports(&job);
    job_end(&job, "no interface");
}

int main(void)
{
    test_local_ranks();
    test_many_jobs();
    test_two_jobs();
    test_leader_dies();
    test_no_interface();
    return job_done();
}
