/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving a world in which something is wrong. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <signal.h>

/* Rank 1 does not come to finalize. */
static void stay_away(job_rank_t *me)
{
    if (job_init(me) < 0)
        return;
    dscomm_barrier(me->world, NULL);
    me->started = job_now_ms();
    if (me->rank == 1)
        job_sleep_ms(3 * me->timeout_ms);
    job_report(me, dscomm_finalize(me->world));
}

/* The same in a world whose name does not fit into a failure record. */
static void stay_away_from_long(job_rank_t *me)
{
    char name[2 * DSCOMM_FAILURE_GROUP_MAX];

    memset(name, 'w', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    me->name = name;
    stay_away(me);
}

static void test_finalize_timeout(void)
{
    static const struct {
        job_scenario_t scenario;
        const char *name;
    } rows[] = {{stay_away, "finalize names who does not come"},
                {stay_away_from_long, "so it does in a world of a long name"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        job_t job;
        int passed =
            job_run(&job, 3, job_slowly(1000), rows[i].scenario, NULL, 10000);

        passed &= job.reports[1].status == DSCOMM_ERR_TIMEOUT;
        passed &=
            job_reported(&job, 5, DSCOMM_ERR_TIMEOUT, 2500, "rank 1", NULL);
        job_ok(&job, passed, "%s", rows[i].name);
    }
}

/* Rank 1 dies before dscomm_finalize(). Rank 0 calls it at once, rank 2 usually
 * after rank 0 has failed there. */
static void die_before(job_rank_t *me)
{
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    status = dscomm_barrier(me->world, NULL); /* may detect the death already */
    if (me->rank == 1)
        raise(SIGKILL);
    if (me->rank == 2)
        job_sleep_ms(500);
    me->started = job_now_ms();
    job_report(me, status ? status : dscomm_finalize(me->world));
}

static void test_died_before(void)
{
    job_t job;
    int passed = job_run(&job, 3, 0, die_before, NULL, 10000);

    passed &=
        job_reported(&job, 5, DSCOMM_ERR_PEER_FAILED, 10000, "rank 1", NULL);
    job_ok(&job, passed, "a death before the end is told to all survivors");
}

static void finalize_twice(job_rank_t *me)
{
    if (job_init(me) < 0)
        return;
    me->report->value = dscomm_finalize(me->world);
    job_report(me, dscomm_finalize(me->world));
    me->report->other_status = dscomm_finalize(NULL);
}

static void test_finalize_twice(void)
{
    for (int ranks = 1; ranks <= 2; ranks++) {
        job_t job;
        int passed;

        passed = job_run(&job, ranks, 0, finalize_twice, NULL, 5000);
        for (int r = 0; r < ranks; r++)
            passed &= job.reports[r].value == DSCOMM_OK &&
                      job.reports[r].status == DSCOMM_ERR_STATE &&
                      job.reports[r].other_status == DSCOMM_OK &&
                      job_exited(&job, r);
        job_ok(&job, passed, "finalize twice, %d ranks", ranks);
    }
}

int main(void)
{
    test_finalize_timeout();
    test_died_before();
    test_finalize_twice();
    return job_done();
}
