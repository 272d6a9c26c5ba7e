/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving: what is under way is delivered, and who does not say goodbye holds
 * nobody up. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)4 << 20) /* more than any backend buffers */

static void tell_all(const job_t *job)
{
    for (int r = 0; r < job->ranks; r++)
        printf("# rank %d: %s after %.0f ms: %s; value %lld\n", r,
               dscomm_status_name(job->reports[r].status),
               job->reports[r].took_ms, job->reports[r].sentence,
               (long long)job->reports[r].value);
}

/* Starts a send on one group, to a receive that the peer has started on it, and
 * frees both works. */
static void exchange(dscomm_group_t *out, dscomm_group_t *in, int peer,
                     int coalesced, char *send, char *recv)
{
    dscomm_work_t *works[2];

    dscomm_irecv(in, recv, BYTES, DSCOMM_INT8, peer, 1, &works[0]);
    if (coalesced) {
        dscomm_coalesce_begin(out);
        dscomm_isend(out, send, BYTES, DSCOMM_INT8, peer, 1, NULL);
        dscomm_coalesce_end(out, &works[1]);
    } else {
        dscomm_isend(out, send, BYTES, DSCOMM_INT8, peer, 1, &works[1]);
    }
    dscomm_work_free(works[0]);
    dscomm_work_free(works[1]);
}

/* Each rank sends on another group than its peer. */
static void leave_with_sends(job_rank_t *me)
{
    static char send[BYTES], recv[BYTES];
    const int both[] = {0, 1}, peer = 1 - me->rank;
    dscomm_group_t *world, *groups[2];
    double started;

    if (job_init(me, &world) < 0)
        return;
    memset(send, 'a' + me->rank, BYTES);
    for (int i = 0; i < 2; i++)
        if (dscomm_group_new(world, both, 2, NULL, &groups[i]) < 0)
            return;
    exchange(groups[me->rank], groups[peer], peer, *(int *)me->arg, send, recv);
    started = job_now_ms();
    job_tell(me, dscomm_finalize(world), started);
    for (size_t i = 0; i < BYTES; i++)
        me->report->value += recv[i] == 'a' + peer;
}

static void test_sends(int coalesced, const char *what)
{
    const int timeout = job_slowly(4000);
    job_t job;
    int passed;

    job_make(&job, 2, timeout, leave_with_sends, &coalesced);
    job_start(&job);
    passed = job_join(&job, 4 * timeout);
    for (int r = 0; r < 2; r++)
        passed &= job.reports[r].ended && !job.reports[r].status &&
                  job.reports[r].took_ms < 0.5 * timeout &&
                  job.reports[r].value == (int64_t)BYTES;
    if (!ok(passed, "finalize delivers %s that cross on two groups", what))
        tell_all(&job);
    job_end(&job, what);
}

/* After the final barrier, and a moment for the others to see its end. */
static void die(const dscomm_op_info_t *info, dscomm_status_t status,
                uint64_t token, void *arg)
{
    (void)status, (void)token, (void)arg;
    if (info->coll != DSCOMM_COLL_BARRIER)
        return;
    usleep(200000);
    raise(SIGKILL);
}

static void leave_badly(job_rank_t *me)
{
    const dscomm_hooks_t hooks = {.size = sizeof hooks, .end = die};
    dscomm_group_t *world;
    double started;

    if (job_init(me, &world) < 0)
        return;
    if (me->rank == 1)
        dscomm_hooks_set(&hooks);
    started = job_now_ms();
    job_tell(me, dscomm_finalize(world), started);
}

/* Rank 0 serves the store of this world. */
static void test_no_goodbye(void)
{
    const int timeout = 60000;
    job_t job;
    int passed;

    job_make(&job, 2, timeout, leave_badly, NULL);
    job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, timeout / 2) && job.reports[0].ended &&
             !job.reports[0].status && job.reports[0].took_ms < timeout / 4.0;
    if (!ok(passed, "a rank dies before it says goodbye: rank 0 leaves"))
        tell_all(&job);
    job_end(&job, "no goodbye");
}

/* Rank 1 is busy until long after the deadline. */
static void leave_late(job_rank_t *me)
{
    dscomm_group_t *world;
    double started;

    if (job_init(me, &world) < 0)
        return;
    if (me->rank == 1)
        job_sleep_ms(3 * me->timeout_ms);
    started = job_now_ms();
    job_tell(me, dscomm_finalize(world), started);
}

static void test_late(void)
{
    job_t job;
    int passed;

    job_make(&job, 2, job_slowly(800), leave_late, NULL);
    job_start(&job);
    passed = job_join(&job, 8000) && job.reports[0].ended &&
             job.reports[0].status == DSCOMM_ERR_TIMEOUT &&
             job_sentence_has(&job, 0, "dscomm_finalize() #") &&
             job_sentence_has(&job, 0, "rank 1");
    if (!ok(passed, "a rank that does not leave is named"))
        tell_all(&job);
    job_end(&job, "late");
}

int main(void)
{
    test_sends(0, "sends");
    test_sends(1, "coalesced sends");
    test_no_goodbye();
    test_late();
    is_int(job_leftovers(), 0, "nothing is left of any job");
    return tap_done();
}
