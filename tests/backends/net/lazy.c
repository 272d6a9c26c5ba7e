/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of backend tcp: a rank that waits long has no more than its
 * messages need, and yet sees the death of a rank for which it waits. They have
 * the congestion control that the user has chosen. */
#include "config.h"

#include "tests/backends/job.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>

#define RANKS 5
#define GONE 2
#define LATE_MS 1600 /* then ranks that wait look for mismatched calls */

/* Connections of this process by TCP. */
static int count_connections(void)
{
    int count = 0;

    for (int fd = 0; fd < FD_SETSIZE; fd++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;

        count += !getpeername(fd, (struct sockaddr *)&peer, &size) &&
                 (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
    }
    return count;
}

/* Rank 0 is late with what the others get from it alone. */
static void run_late(job_rank_t *me)
{
    int32_t all[RANKS] = {5, 6, 7, 8, 9}, own = 0;
    dscomm_status_t status = job_init(me);

    if (status == DSCOMM_OK) {
        if (me->rank == 0)
            job_sleep_ms(LATE_MS);
        status = dscomm_scatter(me->world, all, &own, 1, DSCOMM_INT32, 0, NULL);
        me->report->value = count_connections();
        me->report->other_status = own;
        job_sleep_ms(500); /* nobody connects for the last barrier yet */
    }
    job_leave(me, status);
}

static void test_late(void)
{
    job_t job;

    setenv("DSCOMM_ALGORITHM", "scatter:linear", 1);
    job_run(&job, RANKS, 0, run_late, NULL, 30000);
    for (int r = 1; r < RANKS; r++)
        is_int(job.reports[r].value, 1,
               "rank %d has only a connection to rank 0", r);
    job_ok(&job,
           job_all(&job, DSCOMM_OK) && job.reports[RANKS - 1].other_status == 9,
           "ranks that wait for a rank that is late");
    unsetenv("DSCOMM_ALGORITHM");
}

/* Waits until rank 0 has ended, so that only it itself can see the death. */
static void await_root(job_rank_t *me)
{
    const job_report_t *root = me->report - me->rank;
    const double end = job_now_ms() + job_slowly(20000);

    while (!root->ended && job_now_ms() < end)
        job_sleep_ms(20);
}

/* Rank GONE dies without a connection. The root awaits it only after the
 * message of the other rank, which is late. */
static void run_death(job_rank_t *me)
{
    dscomm_status_t status = job_init(me);
    int32_t sum[4] = {0};

    if (status == DSCOMM_OK && me->rank == GONE) {
        job_sleep_ms(200); /* all others have left init */
        raise(SIGKILL);
    }
    if (status == DSCOMM_OK && me->rank == 3 - GONE)
        job_sleep_ms(LATE_MS);
    me->started = job_now_ms();
    if (status == DSCOMM_OK)
        status = dscomm_reduce(me->world, sum, sum, 4, DSCOMM_INT32, DSCOMM_SUM,
                               0, NULL);
    if (me->rank)
        await_root(me);
    job_leave(me, status);
}

static void test_death(void)
{
    job_t job;

    setenv("DSCOMM_ALGORITHM", "reduce:binomial", 1);
    job_run(&job, 3, 60000, run_death, NULL, 60000);
    job_ok(
        &job,
        job_reported(&job, 0x1, DSCOMM_ERR_PEER_FAILED, 8000, "rank 2", NULL),
        "the death of a rank to which there was no connection");
    unsetenv("DSCOMM_ALGORITHM");
}

/* Connections of this process by TCP whose congestion control is name. */
static int count_controlled(const char *name)
{
    int count = 0;

    for (int fd = 0; fd < FD_SETSIZE; fd++) {
        char control[16] = "";
        socklen_t size = sizeof control;

        count += !getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &size) &&
                 !strcmp(control, name);
    }
    return count;
}

static void run_controlled(job_rank_t *me)
{
    dscomm_status_t status = job_init(me);

    if (status == DSCOMM_OK)
        status = dscomm_barrier(me->world, NULL);
    me->report->value = count_controlled("reno");
    if (status == DSCOMM_OK)
        status = dscomm_barrier(me->world, NULL);
    job_leave(me, status);
}

static void test_congestion(void)
{
    job_t job;

    setenv("DSCOMM_TCP_CONGESTION", "reno", 1);
    job_run(&job, 2, 0, run_controlled, NULL, 30000);
    for (int r = 0; r < 2; r++)
        is_int(job.reports[r].value, 1, "rank %d's connection has reno", r);
    job_ok(&job, job_all(&job, DSCOMM_OK), "a job with reno");
    setenv("DSCOMM_TCP_CONGESTION", "carrier_pigeon", 1);
    job_run(&job, 2, 5000, run_controlled, NULL, 30000);
    job_ok(&job,
           job_reported(
               &job, 0x3, DSCOMM_ERR_ENVIRONMENT, 8000,
               "DSCOMM_TCP_CONGESTION: 'carrier_pigeon' cannot be used", NULL),
           "a congestion control that the kernel lacks");
    unsetenv("DSCOMM_TCP_CONGESTION");
}

int main(void)
{
    setenv("DSCOMM_BACKEND", "tcp", 1);
    setenv("DSCOMM_TCP_UNIX", "no", 1);
    test_late();
    test_death();
    test_congestion();
    return job_done();
}
