/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that dies on a host where no other rank is, while ranks meet or a
 * group is made: the others learn of it from the store that rank 0 serves. A
 * rank that is stopped or leaves is not reported as dead. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/backends/sandbox.h"
#include "tests/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3
#define VICTIM 2 /* the only rank on host b */
#define NOTICE_MS 1000

static void use_hosts(job_rank_t *me)
{
    setenv("DSCOMM_BACKEND", "two_level", 1);
    setenv("DSCOMM_TWO_LEVEL_BETWEEN", "shm", 1);
    setenv("DSCOMM_HOST_ID", me->rank == VICTIM ? "b" : "a", 1);
}

/* The victim dies after it has met the others, when it is about to connect to
 * rank 0. Rank 0 waits for it, and so does rank 1. The connection to the store
 * was made before. */
static void make_world(job_rank_t *me)
{
    dscomm_store_attr_t store_attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    struct rlimit no_core = {0, 0};
    dscomm_group_t *world = NULL;

    setrlimit(RLIMIT_CORE, &no_core);
    use_hosts(me);
    store_attr.serve = me->rank == 0;
    if (dscomm_store_open(me->rendezvous, &store_attr, &attr.store) < 0)
        return;
    if (me->rank == VICTIM &&
        sandbox_filter(SYS_connect, SECCOMP_RET_KILL_PROCESS))
        me->report->value = errno;
    attr.has_rank = 1;
    attr.rank = me->rank;
    attr.world_size = me->ranks;
    attr.timeout_ms = me->timeout_ms;
    me->started = job_now_ms();
    job_report(me, dscomm_init(&attr, &world));
    if (world)
        dscomm_finalize(world);
    else if (me->rank == 0)
        job_sleep_ms(NOTICE_MS); /* the others check the store meanwhile */
    dscomm_store_close(attr.store);
}

/* Writes the pid of the victim as in the sentence. */
static void name(pid_t pid, char text[48])
{
    snprintf(text, 48, "rank %d (pid %d on ", VICTIM, (int)pid);
}

static void test_creation(void)
{
    char who[48];
    int passed;
    job_t job;

    job_make(&job, RANKS, 600000, make_world, NULL);
    job_use_tcp(&job);
    job_start(&job);
    name(job.pids[VICTIM], who);
    passed = job_join(&job, job_slowly(10000));
    if (job_unfiltered(&job, VICTIM))
        return;
    passed &=
        job_reported(&job, ~(1u << VICTIM), DSCOMM_ERR_PEER_FAILED,
                     2 * NOTICE_MS, who, "died", "while group 'world", NULL);
    job_ok(&job, passed, "a rank elsewhere dies while a group is made");
}

static void make_group(job_rank_t *me)
{
    dscomm_group_t *group = NULL;
    int list[RANKS] = {2, 1, 0};

    use_hosts(me);
    if (job_init(me) < 0)
        return;
    me->report->loops = 1;
    if (me->rank == VICTIM)
        raise(SIGSTOP);
    me->started = job_now_ms();
    job_report(me, dscomm_group_new(me->world, list, RANKS, NULL, &group));
    dscomm_finalize(me->world);
}

static void test_stopped(void)
{
    int passed;
    job_t job;

    job_make(&job, RANKS, 600000, make_group, NULL);
    job_use_tcp(&job);
    job_start(&job);
    passed = job_wait_loops(&job, 1);
    job_sleep_ms(3 * NOTICE_MS);
    kill(job.pids[VICTIM], SIGCONT);
    passed &= job_join(&job, job_slowly(10000));
    job_ok(&job, passed && job_all(&job, DSCOMM_OK),
           "a rank elsewhere is stopped for three seconds: all go on");
}

static void meet(job_rank_t *me)
{
    use_hosts(me);
    if (job_init(me) == DSCOMM_OK)
        dscomm_finalize(me->world);
}

/* Rank 1 joins a second after the victim has died. */
static void test_meeting(void)
{
    char who[48];
    int passed;
    job_t job;

    job_make(&job, RANKS, 600000, meet, NULL);
    job_use_tcp(&job);
    job_start_rank(&job, 0);
    job_start_rank(&job, VICTIM);
    name(job.pids[VICTIM], who);
    job_sleep_ms(job_slowly(500));
    job_kill(&job, VICTIM);
    job_sleep_ms(NOTICE_MS);
    job_start_rank(&job, 1);
    passed = job_join(&job, job_slowly(10000));
    passed &=
        job_reported(&job, ~(1u << VICTIM), DSCOMM_ERR_PEER_FAILED,
                     4 * NOTICE_MS, who, "ended before all had come", NULL);
    job_ok(&job, passed, "a rank elsewhere is killed while ranks meet");
}

int main(void)
{
    test_creation();
    test_stopped();
    test_meeting();
    return job_done();
}
