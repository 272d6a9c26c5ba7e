/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving a world: sends are delivered, and a rank that sends no leave message
 * does not delay the others for long. */
#include "config.h"

#include "tests/backends/job.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)4 << 20) /* more than any backend buffers */

/* Starts a send on one group, which matches a receive that the peer has started
 * on it, and frees both works. */
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
    dscomm_group_t *groups[2];

    if (job_init(me) < 0)
        return;
    memset(send, 'a' + me->rank, BYTES);
    for (int i = 0; i < 2; i++)
        if (dscomm_group_new(me->world, both, 2, NULL, &groups[i]) < 0)
            return;
    exchange(groups[me->rank], groups[peer], peer, *(int *)me->arg, send, recv);
    me->started = job_now_ms();
    job_report(me, dscomm_finalize(me->world));
    for (size_t i = 0; i < BYTES; i++)
        me->report->value += recv[i] == 'a' + peer;
}

static void test_sends(int coalesced, const char *what)
{
    const int timeout = job_slowly(4000);
    job_t job;
    int passed;

    passed =
        job_run(&job, 2, timeout, leave_with_sends, &coalesced, 4 * timeout);
    for (int r = 0; r < 2; r++)
        passed &= job.reports[r].ended && !job.reports[r].status &&
                  job.reports[r].took_ms < 0.5 * timeout &&
                  job.reports[r].value == (int64_t)BYTES;
    job_ok(&job, passed, "finalize delivers %s that cross on two groups", what);
}

/* Dies after the final barrier, and after a moment in which the others see its
 * end. */
static void die(void *value)
{
    (void)value;
    usleep(200000);
    raise(SIGKILL);
}

static void leave_badly(job_rank_t *me)
{
    if (job_init(me) < 0)
        return;
    if (me->rank == 1)
        dscomm_group_attach(me->world, me, me, die);
    me->started = job_now_ms();
    job_report(me, dscomm_finalize(me->world));
}

/* Rank 0 serves the store of this world. */
static void test_no_leave_message(void)
{
    const int timeout = 60000;
    job_t job;
    int passed;

    job_make(&job, 2, timeout, leave_badly, NULL);
    job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, timeout / 2) && job.reports[0].ended &&
             !job.reports[0].status && job.reports[0].took_ms < timeout / 4.0;
    job_ok(&job, passed, "a rank dies before its leave message: rank 0 leaves");
}

/* Fails when the world ends. */
static void end_badly(void *value)
{
    (void)value;
    dscomm_barrier(NULL, NULL);
}

/* Rank 1 is busy until long after the deadline. */
static void leave_late(job_rank_t *me)
{
    if (job_init(me) < 0)
        return;
    if (me->rank == 1)
        job_sleep_ms(3 * me->timeout_ms);
    else
        dscomm_group_attach(me->world, me, me, end_badly);
    me->started = job_now_ms();
    job_report(me, dscomm_finalize(me->world));
}

static void test_late(void)
{
    job_t job;
    int passed = job_run(&job, 2, job_slowly(800), leave_late, NULL, 8000) &&
                 job_reported(&job, 1, DSCOMM_ERR_TIMEOUT, 8000,
                              "dscomm_finalize() #", "rank 1", NULL);

    job_ok(&job, passed, "a rank that does not leave is named");
}

/* Rank 1 leaves the job, or frees a group, while rank 0 waits for something
 * that it would have to do. wait is rank 0's part; it ends with ERR_PEER_FAILED
 * and these words. */
typedef struct {
    const char *name;
    dscomm_status_t (*wait)(dscomm_group_t *group);
    int in_group; /* a group of the two ranks, not the world */
    int frees; /* frees that group, and finalizes later */
    int revoked; /* the group is revoked afterwards */
    const char *words;
} gone_t;

static int32_t box;

static dscomm_status_t wait_recv(dscomm_group_t *group)
{
    return dscomm_recv(group, &box, 1, DSCOMM_INT32, 1, 9, NULL, NULL);
}

static dscomm_status_t wait_any_source(dscomm_group_t *group)
{
    return dscomm_recv(group, &box, 1, DSCOMM_INT32, DSCOMM_ANY_SOURCE, 9, NULL,
                       NULL);
}

/* A server, whose receive has no deadline. */
static dscomm_status_t wait_serving(dscomm_group_t *group)
{
    return dscomm_recv_within(group, &box, 1, DSCOMM_INT32, DSCOMM_ANY_SOURCE,
                              9, DSCOMM_TIMEOUT_NONE, NULL);
}

static dscomm_status_t wait_work(dscomm_group_t *group)
{
    dscomm_work_t *work = NULL;
    dscomm_status_t status =
        dscomm_irecv(group, &box, 1, DSCOMM_INT32, 1, 9, &work);

    if (status == DSCOMM_OK)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    return status;
}

static dscomm_status_t wait_tested(dscomm_group_t *group)
{
    dscomm_work_t *work = NULL;
    dscomm_status_t status =
        dscomm_irecv(group, &box, 1, DSCOMM_INT32, 1, 9, &work);

    while (work && (status = dscomm_work_test(work)) == DSCOMM_IN_PROGRESS)
        continue;
    dscomm_work_free(work);
    return status;
}

static dscomm_status_t wait_send(dscomm_group_t *group)
{
    static char large[BYTES];

    return dscomm_send(group, large, BYTES, DSCOMM_INT8, 1, 9);
}

static dscomm_status_t wait_all_reduce(dscomm_group_t *group)
{
    return dscomm_all_reduce(group, &box, &box, 1, DSCOMM_INT32, DSCOMM_SUM,
                             NULL);
}

static dscomm_status_t wait_broadcast(dscomm_group_t *group)
{
    return dscomm_broadcast(group, &box, 1, DSCOMM_INT32, 1, NULL);
}

static dscomm_status_t wait_monitored(dscomm_group_t *group)
{
    return dscomm_monitored_barrier(group, 10000);
}

/* Sends small messages, which are buffered, and a large one, which rank 0
 * receives first. */
static void send_before(dscomm_group_t *group)
{
    static char large[BYTES];
    dscomm_work_t *work;

    for (int32_t tag = 0; tag < 3; tag++) {
        int32_t value = 100 + tag;

        dscomm_send(group, &value, 1, DSCOMM_INT32, 0, tag);
    }
    memset(large, 'x', BYTES);
    dscomm_isend(group, large, BYTES, DSCOMM_INT8, 0, 3, &work);
    dscomm_work_free(work);
}

/* Returns 1 if all of it has arrived. */
static int take_before(dscomm_group_t *group, int first, int last)
{
    static char large[BYTES];
    int good = 1;

    if (last == 3)
        good =
            !dscomm_recv(group, large, BYTES, DSCOMM_INT8, 1, 3, NULL, NULL) &&
            large[0] == 'x' && large[BYTES - 1] == 'x';
    for (int32_t tag = first; tag < 3 && tag <= last; tag++) {
        int32_t value = 0;

        good &=
            !dscomm_recv(group, &value, 1, DSCOMM_INT32, 1, tag, NULL, NULL) &&
            value == 100 + tag;
    }
    return good;
}

static void stay(job_rank_t *me, dscomm_group_t *world, dscomm_group_t *group,
                 const gone_t *gone)
{
    dscomm_status_t status;
    int good = take_before(group, 1, 3);

    if (gone->frees)
        dscomm_barrier(world, NULL);
    job_sleep_ms(100); /* rank 1 leaves during this */
    me->started = job_now_ms();
    status = gone->wait(group);
    job_report(me, status);
    good &= gone->revoked ||
            (take_before(group, 0, 0) && !dscomm_group_status(group));
    me->report->value = good;
    me->report->other_status = dscomm_finalize(world);
}

static void leave_in_order(job_rank_t *me)
{
    const gone_t *gone = me->arg;
    const int both[] = {0, 1};
    dscomm_group_t *group;

    if (job_init(me) < 0)
        return;
    group = me->world;
    if (gone->in_group &&
        dscomm_group_new(me->world, both, 2, NULL, &group) < 0)
        return;
    if (me->rank == 0) {
        stay(me, me->world, group, gone);
        return;
    }
    send_before(group);
    if (gone->frees) {
        dscomm_barrier(me->world, NULL);
        dscomm_group_free(group);
    }
    me->report->other_status = dscomm_finalize(me->world);
    me->report->ended = 1;
}

static void test_gone(void)
{
    static const char finalized[] = "rank 1 has left (dscomm_finalize)";
    static const char freed[] = "rank 1 has left (dscomm_group_free)";
    static const char all_left[] = "all other ranks have left group 'world'";
    static const gone_t cases[] = {
        {"a receive", wait_recv, 0, 0, 0, finalized},
        {"a receive in a group", wait_recv, 1, 0, 0, finalized},
        {"a receive from any source", wait_any_source, 0, 0, 0, all_left},
        {"a server that waits without a deadline", wait_serving, 0, 0, 0,
         all_left},
        {"a receive as a work", wait_work, 0, 0, 0, finalized},
        {"a work that is tested", wait_tested, 1, 0, 0, finalized},
        {"an all_reduce in a group", wait_all_reduce, 1, 0, 1, finalized},
        {"a broadcast in a group", wait_broadcast, 1, 0, 1, finalized},
        {"a receive in a freed group", wait_recv, 1, 1, 0, freed},
        {"a long send in a freed group", wait_send, 1, 1, 1, freed},
        {"an all_reduce in a freed group", wait_all_reduce, 1, 1, 1, freed},
        {"a monitored barrier", wait_monitored, 0, 0, 0,
         "dscomm_monitored_barrier of group 'world': rank 1 has left "
         "(dscomm_finalize)"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int timeout = job_slowly(8000);
        job_t job;
        int passed;

        passed = job_run(&job, 2, timeout, leave_in_order, (void *)&cases[i],
                         2 * timeout) &&
                 job.reports[0].value == 1 &&
                 job_reported(&job, 1, DSCOMM_ERR_PEER_FAILED, 1000,
                              cases[i].words, NULL);
        for (int r = 0; r < 2; r++)
            passed &= job.reports[r].other_status == DSCOMM_OK;
        job_ok(&job, passed, "a rank leaves: %s", cases[i].name);
    }
}

static void monitor(job_rank_t *me)
{
    if (job_init(me) < 0)
        return;
    if (me->rank != 2)
        job_report(me, dscomm_monitored_barrier(me->world, 10000));
    me->report->other_status = dscomm_finalize(me->world);
}

/* Memory in which the other rank can read. */
enum { PLAIN, REGISTERED, ALLOCATED, MEMORY_KINDS };
static const char *const memory_names[] = {"plain", "registered", "allocated"};

/* The call that rank 0 has begun when it frees the group. */
typedef struct {
    int memory, broadcasts;
} begun_t;

static char *begun_memory(dscomm_group_t *group, int memory)
{
    dscomm_mem_t *mem;
    char *bytes = NULL;

    if (memory == ALLOCATED) {
        dscomm_mem_alloc(group, BYTES, (void **)&bytes);
        return bytes;
    }
    bytes = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), BYTES);
    memset(bytes, 0, BYTES);
    if (memory == REGISTERED)
        dscomm_mem_register(group, bytes, BYTES, &mem);
    return bytes;
}

static dscomm_status_t begun_call(dscomm_group_t *group, char *bytes,
                                  int broadcasts, dscomm_work_t **work)
{
    if (broadcasts)
        return dscomm_broadcast(group, bytes, BYTES, DSCOMM_INT8, 0, work);
    return work ? dscomm_isend(group, bytes, BYTES, DSCOMM_INT8, 1, 1, work)
                : dscomm_recv(group, bytes, BYTES, DSCOMM_INT8, 0, 1, NULL,
                              NULL);
}

/* value: the other rank has the bytes, or a failure */
static void free_early(job_rank_t *me)
{
    const begun_t *begun = me->arg;
    const int both[] = {0, 1};
    dscomm_group_t *group;
    dscomm_work_t *work;
    char *bytes;

    if (job_init(me) < 0 ||
        dscomm_group_new(me->world, both, 2, NULL, &group) < 0)
        return;
    bytes = begun_memory(group, me->rank ? PLAIN : begun->memory);
    if (me->rank == 0) {
        memset(bytes, 'x', BYTES);
        begun_call(group, bytes, begun->broadcasts, &work);
        dscomm_work_free(work);
        dscomm_group_free(group);
        dscomm_barrier(me->world, NULL);
    } else {
        dscomm_barrier(me->world, NULL);
        me->report->value =
            begun_call(group, bytes, begun->broadcasts, NULL) < 0 ||
            (bytes[0] == 'x' && bytes[BYTES - 1] == 'x');
    }
    job_report(me, dscomm_finalize(me->world));
    if (me->rank || begun->memory != ALLOCATED)
        free(bytes);
}

static void test_freed_early(void)
{
    for (int i = 0; i < 2 * MEMORY_KINDS; i++) {
        begun_t begun = {i % MEMORY_KINDS, i / MEMORY_KINDS};
        const int timeout = job_slowly(8000);
        job_t job;
        int passed =
            job_run(&job, 2, timeout, free_early, &begun, 2 * timeout) &&
            job.reports[1].value == 1;

        for (int r = 0; r < 2; r++)
            passed &= job.reports[r].ended && !job.reports[r].status;
        job_ok(&job, passed,
               "a group is freed while a %s is under way: %s memory",
               begun.broadcasts ? "broadcast" : "send",
               memory_names[begun.memory]);
    }
}

/* All ranks that have called learn at once which ranks will not call. */
static void test_monitored(void)
{
    job_t job;
    int passed = job_run(&job, 3, 0, monitor, NULL, 15000);

    for (int r = 0; r < 3; r++)
        passed &= job.reports[r].other_status == DSCOMM_OK;
    passed &= job_reported(&job, 3, DSCOMM_ERR_PEER_FAILED, 1000,
                           "dscomm_monitored_barrier", "rank 2", NULL);
    job_ok(&job, passed, "a rank leaves: a monitored barrier of three");
}

int main(void)
{
    test_sends(0, "sends");
    test_sends(1, "coalesced sends");
    test_no_leave_message();
    test_late();
    test_gone();
    test_freed_early();
    test_monitored();
    return job_done();
}
