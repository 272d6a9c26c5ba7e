/* SPDX-License-Identifier: BSD-3-Clause */
/* The culprit of messages that wait for each other: the rank at the end of the
 * chain, although the deadline of the rank at its start passes first. */
#include "config.h"

#include "tests/backends/job.h"

#include <stdlib.h>

#define RANKS 4
#define PATIENCE 4 /* a group's longer deadline, as a multiple */

/* Ranks pass a message on, from rank 0 to the last one and back. */
typedef struct {
    const char *name;
    int late[RANKS]; /* when a rank begins, in percent of the deadline */
    int receives; /* rank 0 begins with its receive as well */
    int culprit;
    int own; /* the deadline is that of rank 0's send, the group's is longer */
} case_t;

static const case_t cases[] = {
    {"all wait for the one that is late", {0, 200, 20, 20}, 0, 1, 0},
    {"one of them with its own deadline", {0, 200, 20, 20}, 0, 1, 1},
    {"the end of the chain came late", {0, 200, 200, 75}, 0, 3, 0},
    {"ranks that wait in a circle", {0, 20, 20, 20}, 1, 3, 0},
};

/* Sends more than is buffered, with a deadline of its own, to a rank that waits
 * for another one. */
static dscomm_status_t send_by_work(job_rank_t *me, int to, int timeout_ms)
{
    enum { COUNT = 4000000 };
    static int32_t numbers[COUNT];
    dscomm_work_t *work;
    dscomm_status_t status =
        dscomm_isend(me->world, numbers, COUNT, DSCOMM_INT32, to, 6, &work);

    if (status < 0)
        return status;
    status = dscomm_work_set_timeout(work, timeout_ms);
    if (status == DSCOMM_OK)
        status = dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    return status;
}

/* own_ms: deadline of rank 0, which sends to the last one; 0: the group's. */
static dscomm_status_t pass_on(job_rank_t *me, int receives, int own_ms)
{
    const int from = (me->rank + RANKS - 1) % RANKS;
    const int to = (me->rank + 1) % RANKS;
    int32_t token = 0;
    dscomm_status_t status = DSCOMM_OK;

    if (!receives)
        status = dscomm_send(me->world, &token, 1, DSCOMM_INT32, to, 5);
    if (status == DSCOMM_OK && own_ms && !me->rank)
        status = send_by_work(me, from, own_ms);
    if (status == DSCOMM_OK)
        status = dscomm_recv(me->world, &token, 1, DSCOMM_INT32, from, 5, NULL,
                             NULL);
    if (status == DSCOMM_OK && receives)
        status = dscomm_send(me->world, &token, 1, DSCOMM_INT32, to, 5);
    return status;
}

static void run_rank(job_rank_t *me)
{
    const case_t *c = me->arg;
    const int deadline = me->timeout_ms / (c->own ? PATIENCE : 1);
    dscomm_status_t status;

    if (job_init(me) < 0 || dscomm_barrier(me->world, NULL) < 0)
        return;
    job_sleep_ms(deadline / 100 * c->late[me->rank]);
    status = pass_on(me, me->rank || c->receives, c->own ? deadline : 0);
    job_report_failure(me);
    job_leave(me, status);
}

static void run_case(const case_t *c, const char *backend)
{
    const int timeout = job_slowly(1500);
    job_t job;
    int passed = job_run(&job, RANKS, timeout * (c->own ? PATIENCE : 1),
                         run_rank, (void *)c, 4 * timeout + 4000);

    for (int r = 0; r < RANKS; r++)
        passed &= job.reports[r].ended &&
                  job.reports[r].status == DSCOMM_ERR_TIMEOUT &&
                  job.reports[r].failure.kind == DSCOMM_FAILURE_SILENT &&
                  job.reports[r].failure.rank == c->culprit;
    job_ok(&job, passed, "%s: %s", backend, c->name);
}

int main(void)
{
    static const char *const backends[] = {"shm", "tcp"};

    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        setenv("DSCOMM_BACKEND", backends[b], 1);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            run_case(&cases[i], backends[b]);
    }
    return job_done();
}
