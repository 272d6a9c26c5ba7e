/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups that shrink after a failure: whoever dies, stops or leaves, and
 * whenever it does, the others agree on who is left, keep their order, and
 * communicate. */
#include "config.h"

#include "tests/backends/job.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 4
#define STEPS 5
#define LIMIT_MS 60000
/* Time for ranks that never call, in ms, before job_slowly(). */
#define SHORT_MS 2000

/* A scenario of a job. Ranks are bits. */
typedef struct {
    const char *name;
    unsigned dead; /* kill themselves after STEPS steps */
    /* kills itself while the new group is opened; -1: none */
    int dies_opening;
    int later; /* kills itself in the new group, which shrinks; -1: none */
    bool tcp; /* rank 0 serves the store */
} plan_t;

/* A rank of this process that kills itself when it opens a group. */
static bool armed;

/* The first rank of a group of backend shm makes a segment, the others connect
 * to it. Each rank of a group of backend tcp makes a descriptor. */
DSCOMM_API int epoll_create1(int flags)
{
    if (armed)
        raise(SIGKILL);
    return (int)syscall(SYS_epoll_create1, flags);
}

DSCOMM_API int memfd_create(const char *name, unsigned flags)
{
    if (armed)
        raise(SIGKILL);
    return (int)syscall(SYS_memfd_create, name, flags);
}

DSCOMM_API int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    if (armed && address->sa_family == AF_UNIX)
        raise(SIGKILL);
    return (int)syscall(SYS_connect, fd, address, size);
}

/* Of a job on several hosts: a store that this process serves, as a launcher
 * would, and that reports deaths on all hosts; else NULL. */
static dscomm_store_t *server;

static void make_job(job_t *job, int timeout_ms, job_scenario_t scenario,
                     void *arg)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    job_make(job, RANKS, timeout_ms, scenario, arg);
    attr.serve = 1;
    if (getenv("JOB_HOSTS") &&
        dscomm_store_open("tcp://127.0.0.1:0", &attr, &server))
        bail("%s", dscomm_last_error());
}

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

static dscomm_status_t join(job_rank_t *me)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_status_t status;

    if (!server)
        return job_init(me);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("TORCHELASTIC_RUN_ID", "shrink", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set_number("MASTER_PORT", dscomm_store_port(server));
    set_number("RANK", me->rank);
    set_number("WORLD_SIZE", me->ranks);
    attr.timeout_ms = me->timeout_ms;
    status = dscomm_init(&attr, &me->world);
    if (status < 0)
        job_report(me, status);
    return status;
}

static dscomm_status_t sum_bits(job_rank_t *me, dscomm_group_t *group,
                                int *ret_sum)
{
    const int own = 1 << me->rank;

    return dscomm_all_reduce(group, &own, ret_sum, 1, DSCOMM_INT32, DSCOMM_SUM,
                             NULL);
}

static dscomm_status_t step(job_rank_t *me, dscomm_group_t *group)
{
    int sum;

    me->report->loops++;
    return sum_bits(me, group, &sum);
}

/* Steps until the group fails; a rank that is to die does so after STEPS
 * steps, or when another one has died. */
static dscomm_status_t run_until_failure(job_rank_t *me, dscomm_group_t *group,
                                         bool dies)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; status == DSCOMM_OK && (!dies || i < STEPS); i++)
        status = step(me, group);
    if (dies)
        raise(SIGKILL);
    return status;
}

/* Returns true if the ranks of group are those of bits, in their order. */
static bool has_order(dscomm_group_t *group, int bits)
{
    int before = -1, world_rank;

    for (int r = 0; r < dscomm_group_size(group); r++) {
        if (dscomm_group_to_global(group, r, &world_rank) ||
            world_rank <= before || !(bits >> world_rank & 1))
            return false;
        before = world_rank;
    }
    return __builtin_popcount((unsigned)bits) == dscomm_group_size(group);
}

/* Uses the new group: collectives, a message around the ring, and a group made
 * of it. Reports the sum of its ranks' bits, or -1. */
static dscomm_status_t use_group(job_rank_t *me, dscomm_group_t *group)
{
    const int size = dscomm_group_size(group), rank = dscomm_group_rank(group);
    int sum = 0, got = -1, own = me->rank, again = 0;
    dscomm_group_t *child = NULL;
    dscomm_work_t *work = NULL;
    dscomm_status_t status = sum_bits(me, group, &sum);

    if (status == DSCOMM_OK)
        status = dscomm_isend(group, &own, 1, DSCOMM_INT32, (rank + 1) % size,
                              1, &work);
    if (status == DSCOMM_OK)
        status = dscomm_recv(group, &got, 1, DSCOMM_INT32,
                             (rank + size - 1) % size, 1, NULL, NULL);
    if (status == DSCOMM_OK)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    if (status == DSCOMM_OK)
        status = dscomm_group_split(group, 0, -rank, NULL, &child);
    if (status == DSCOMM_OK)
        status = sum_bits(me, child, &again);
    if (status == DSCOMM_OK)
        status = dscomm_barrier(group, NULL);
    dscomm_group_to_global(group, (rank + size - 1) % size, &own);
    me->report->value = has_order(group, sum) && sum == again && got == own &&
                                dscomm_group_rank(child) == size - 1 - rank
                            ? sum
                            : -1;
    dscomm_group_free(child);
    return status;
}

static void read_failure(job_rank_t *me, dscomm_group_t *group)
{
    me->report->failure = (dscomm_failure_t)DSCOMM_FAILURE_INIT;
    dscomm_group_failure(group, &me->report->failure);
}

/* Shrinks group and uses the result, which is freed unless ret_group is given.
 */
static dscomm_status_t shrink_and_use(job_rank_t *me, dscomm_group_t *group,
                                      const dscomm_group_attr_t *attr,
                                      dscomm_group_t **ret_group)
{
    dscomm_group_t *smaller;
    dscomm_status_t status;

    me->report->loops = 1000;
    me->started = job_now_ms();
    status = dscomm_group_shrink(group, attr, &smaller);
    if (status < 0)
        return status;
    status = use_group(me, smaller);
    read_failure(me, group);
    if (ret_group)
        *ret_group = smaller;
    else
        dscomm_group_free(smaller);
    return status;
}

/* Members die. A receive that is outstanding ends with the failure. */
static void members_die(job_rank_t *me)
{
    const plan_t *plan = me->arg;
    dscomm_group_t *first;
    dscomm_work_t *work;
    dscomm_status_t status;
    int nothing;

    if (join(me))
        return;
    status =
        dscomm_irecv(me->world, &nothing, 1, DSCOMM_INT32, me->rank, 7, &work);
    if (status == DSCOMM_OK)
        run_until_failure(me, me->world, plan->dead >> me->rank & 1);
    armed = me->rank == plan->dies_opening;
    if (status == DSCOMM_OK)
        status = shrink_and_use(me, me->world, NULL, &first);
    me->report->other_status = dscomm_work_test(work);
    dscomm_work_free(work);
    if (status == DSCOMM_OK && plan->later >= 0) {
        run_until_failure(me, first, me->rank == plan->later);
        status = shrink_and_use(me, first, NULL, NULL);
    }
    if (status == DSCOMM_OK)
        dscomm_group_free(first);
    job_leave(me, status);
}

static unsigned bit(int rank)
{
    return rank < 0 ? 0 : 1u << rank;
}

/* Ends a job, with the result of its check. */
static void end_job(job_t *job, bool passed, const char *name)
{
    job_ok(job, passed, "%s", name);
    dscomm_store_close(server);
    server = NULL;
}

/* Returns true if the ranks, bits, have told of a group of these ranks. */
static bool went_on(const job_t *job, unsigned ranks)
{
    bool passed = job_reported(job, ranks, DSCOMM_OK, LIMIT_MS, NULL);

    for (int r = 0; r < job->ranks; r++)
        if (ranks >> r & 1)
            passed =
                passed && job->reports[r].value == ranks && job_exited(job, r);
    return passed;
}

static bool names_dead(const job_t *job, unsigned ranks, unsigned dead)
{
    bool passed = true;

    for (int r = 0; r < job->ranks; r++) {
        const job_report_t *report = &job->reports[r];

        if (ranks >> r & 1)
            passed = passed && report->failure.kind == DSCOMM_FAILURE_DIED &&
                     report->failure.rank >= 0 &&
                     dead >> report->failure.rank & 1 &&
                     report->other_status == DSCOMM_ERR_PEER_FAILED;
    }
    return passed;
}

static void test_deaths(void)
{
    static plan_t plans[] = {
        {"rank 0 dies", 1, -1, -1, false},
        {"rank 1 dies", 2, -1, -1, false},
        {"rank 2 dies", 4, -1, -1, false},
        {"rank 3 dies", 8, -1, -1, false},
        {"ranks 0 and 1 die", 3, -1, -1, false},
        {"ranks 1 and 3 die", 10, -1, -1, false},
        {"all but rank 2 die", 11, -1, -1, false},
        {"rank 1 dies, and rank 0 in the new group", 2, -1, 0, false},
        {"rank 0 dies, and rank 3 in the new group", 1, -1, 3, false},
        {"rank 2 dies, and rank 0 when it opens", 4, 0, -1, false},
        {"rank 0 dies, and rank 1 when it opens", 1, 1, -1, false},
        {"rank 0 dies, and rank 3 when it opens", 1, 3, -1, false},
        {"rank 3 dies, rank 0 serves the store", 8, -1, -1, true},
        {"rank 0 dies, which serves the store", 1, -1, -1, true},
        {"ranks 0 and 1 die, rank 0 serves the store", 3, -1, -1, true},
        {"rank 0 dies, which serves the store, then rank 1", 1, -1, 1, true},
        {"rank 0 dies, which serves the store, rank 1 when it opens", 1, 1, -1,
         true},
    };

    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        plan_t *plan = &plans[i];
        const unsigned dead =
            plan->dead | bit(plan->dies_opening) | bit(plan->later);
        const unsigned left = ~dead & ((1u << RANKS) - 1);
        job_t job;

        make_job(&job, job_slowly(60000), members_die, plan);
        if (plan->tcp)
            job_use_tcp(&job);
        job_start(&job);
        job_join(&job, LIMIT_MS);
        end_job(&job, went_on(&job, left) && names_dead(&job, left, dead),
                plan->name);
    }
}

/* Ranks that live: rank 1 makes another call, aborts, or frees a group. */

static dscomm_status_t make_mismatch(job_rank_t *me, dscomm_group_t *group)
{
    int own = 0, all[RANKS];

    if (me->rank != 1)
        return run_until_failure(me, group, false);
    return dscomm_all_gather(group, &own, all, 1, DSCOMM_INT32, NULL);
}

static dscomm_status_t make_abort(job_rank_t *me, dscomm_group_t *group)
{
    if (me->rank == 1)
        dscomm_group_abort(group, "for the test");
    return run_until_failure(me, group, false);
}

/* Ways to end a group without a death. */
typedef struct {
    const char *name;
    dscomm_status_t (*end)(job_rank_t *me, dscomm_group_t *group);
    dscomm_failure_kind_t kind;
} quarrel_t;

static void quarrel(job_rank_t *me)
{
    const quarrel_t *quarrel = me->arg;

    if (join(me))
        return;
    quarrel->end(me, me->world);
    job_leave(me, shrink_and_use(me, me->world, NULL, NULL));
}

static void test_quarrels(void)
{
    static quarrel_t quarrels[] = {
        {"all go on after a mismatch", make_mismatch, DSCOMM_FAILURE_MISMATCH},
        {"all go on after an abort", make_abort, DSCOMM_FAILURE_ABORTED},
    };

    for (size_t i = 0; i < sizeof quarrels / sizeof *quarrels; i++) {
        bool passed;
        job_t job;

        make_job(&job, job_slowly(60000), quarrel, &quarrels[i]);
        job_start(&job);
        job_join(&job, LIMIT_MS);
        passed = went_on(&job, (1u << RANKS) - 1);
        for (int r = 0; r < RANKS; r++)
            passed = passed && job.reports[r].failure.kind == quarrels[i].kind;
        end_job(&job, passed, quarrels[i].name);
    }
}

/* Rank 3 frees a group while the others wait for it there. */
static void one_leaves(job_rank_t *me)
{
    dscomm_group_t *group;
    dscomm_status_t status;

    if (join(me))
        return;
    status = dscomm_group_split(me->world, 0, 0, NULL, &group);
    if (status == DSCOMM_OK && me->rank == 3) {
        dscomm_group_free(group);
        me->report->value = 7;
    } else if (status == DSCOMM_OK) {
        run_until_failure(me, group, false);
        status = shrink_and_use(me, group, NULL, NULL);
        dscomm_group_free(group);
    }
    if (status == DSCOMM_OK)
        status = dscomm_barrier(me->world, NULL);
    job_leave(me, status);
}

static void test_left(void)
{
    const char *backend = getenv("DSCOMM_BACKEND");
    job_t job;

    if (backend && !strcmp(backend, "tcp")) {
        skip("backend tcp does not see that a rank has freed a group");
        return;
    }
    make_job(&job, job_slowly(60000), one_leaves, NULL);
    job_start(&job);
    job_join(&job, LIMIT_MS);
    end_job(&job,
            went_on(&job, 7) && job_exited(&job, 3) &&
                job.reports[0].failure.kind == DSCOMM_FAILURE_LEFT,
            "a rank that left is left out, and the world goes on");
}

/* A counter that all ranks of a job share. */
static volatile int *shared;

/* The last rank calls when the others have gone on without it. */
static void last_is_late(job_rank_t *me)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_status_t status;

    attr.timeout_ms = job_slowly(SHORT_MS);
    if (join(me))
        return;
    make_abort(me, me->world);
    while (me->rank == RANKS - 1 && *shared < RANKS - 1)
        job_sleep_ms(1);
    status = shrink_and_use(me, me->world, &attr, NULL);
    __atomic_fetch_add((int *)shared, 1, __ATOMIC_SEQ_CST);
    job_leave(me, status);
}

/* The last rank is stopped, and continued when the others have gone on. */
static void last_is_silent(job_rank_t *me)
{
    dscomm_status_t status;

    if (join(me))
        return;
    status = step(me, me->world);
    if (me->rank == RANKS - 1)
        raise(SIGSTOP);
    if (status == DSCOMM_OK)
        run_until_failure(me, me->world, false);
    status = shrink_and_use(me, me->world, NULL, NULL);
    __atomic_fetch_add((int *)shared, 1, __ATOMIC_SEQ_CST);
    job_leave(me, status);
}

/* The last rank is silent until the group has failed, and calls then. */
static void last_is_lazy(job_rank_t *me)
{
    dscomm_status_t status;

    if (join(me))
        return;
    status = step(me, me->world);
    while (me->rank == RANKS - 1 && dscomm_group_status(me->world) == DSCOMM_OK)
        job_sleep_ms(1);
    if (status == DSCOMM_OK)
        run_until_failure(me, me->world, false);
    job_leave(me, shrink_and_use(me, me->world, NULL, NULL));
}

/* Whether it comes in time depends on the machine; all must agree on it. */
static void test_lazy(void)
{
    job_t job;
    bool with;

    make_job(&job, job_slowly(SHORT_MS), last_is_lazy, NULL);
    job_start(&job);
    job_join(&job, LIMIT_MS);
    with = job.reports[RANKS - 1].status == DSCOMM_OK;
    end_job(&job, went_on(&job, with ? 15 : 7),
            "a rank that was silent may still come");
}

static void test_left_out(const char *name, job_scenario_t scenario,
                          int timeout_ms)
{
    const double end = job_now_ms() + job_slowly(LIMIT_MS);
    job_t job;

    *shared = 0;
    make_job(&job, timeout_ms, scenario, NULL);
    job_start(&job);
    while (*shared < RANKS - 1 && job_now_ms() < end)
        job_sleep_ms(1);
    kill(job.pids[RANKS - 1], SIGCONT);
    job_join(&job, LIMIT_MS);
    end_job(&job,
            went_on(&job, 7) &&
                job_reported(&job, 8, DSCOMM_ERR_TIMEOUT, LIMIT_MS,
                             "the others go on without this rank", NULL),
            name);
}

/* A rank is replaced: the survivors and the new process join a new world, in
 * the same store and with the same numbers. */

static void use_world(job_rank_t *me, dscomm_store_t *store)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_status_t status;

    attr.store = store;
    attr.has_rank = 1;
    attr.rank = me->rank;
    attr.world_size = me->ranks;
    attr.timeout_ms = me->timeout_ms;
    me->started = job_now_ms();
    status = dscomm_init(&attr, &me->world);
    if (status == DSCOMM_OK && *shared == 0)
        run_until_failure(me, me->world, me->rank == *(int *)me->arg);
    else if (status == DSCOMM_OK)
        status = use_group(me, me->world);
    job_report(me, status);
    dscomm_finalize(me->world);
}

static void replaced(job_rank_t *me)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;
    const int newcomer = *shared;

    attr.timeout_ms = me->timeout_ms;
    if (dscomm_store_open(me->rendezvous, &attr, &store)) {
        job_report(me, DSCOMM_ERR_IO);
        return;
    }
    if (!newcomer) {
        use_world(me, store);
        while (!*shared)
            job_sleep_ms(1);
    }
    use_world(me, store);
    dscomm_store_close(store);
}

static void test_replaced(int victim)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;
    int status;
    job_t job;

    *shared = 0;
    job_make(&job, RANKS, job_slowly(60000), replaced, &victim);
    attr.serve = 1;
    if (dscomm_store_open("tcp://127.0.0.1:0", &attr, &store))
        bail("%s", dscomm_last_error());
    snprintf(job.rendezvous, sizeof job.rendezvous, "tcp://127.0.0.1:%d",
             dscomm_store_port(store));
    job_start(&job);
    waitpid(job.pids[victim], &status, 0);
    *shared = 1;
    job_start_rank(&job, victim);
    job_join(&job, LIMIT_MS);
    job_ok(&job, went_on(&job, (1u << RANKS) - 1),
           "a new process takes the place of rank %d", victim);
    dscomm_store_close(store);
}

/* Arguments */

static void arguments(job_rank_t *me)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL, *child;
    int bad = 0;

    if (join(me))
        return;
    bad += dscomm_group_shrink(NULL, NULL, &group) != DSCOMM_ERR_INVALID;
    bad += dscomm_group_shrink(me->world, NULL, NULL) != DSCOMM_ERR_INVALID;
    bad += dscomm_group_shrink(me->world, NULL, &group) != DSCOMM_ERR_STATE;
    attr.members_only = 1;
    bad += dscomm_group_shrink(me->world, &attr, &group) != DSCOMM_ERR_INVALID;
    attr = (dscomm_group_attr_t)DSCOMM_GROUP_ATTR_INIT;
    attr.timeout_ms = -1;
    bad += dscomm_group_shrink(me->world, &attr, &group) != DSCOMM_ERR_INVALID;
    bad += group != NULL;
    bad += dscomm_barrier(me->world, NULL) != DSCOMM_OK;
    __atomic_fetch_add((int *)shared, 1, __ATOMIC_SEQ_CST);
    while (me->rank == 0 && *shared < me->ranks) /* all have left the barrier */
        job_sleep_ms(1);
    if (me->rank == 0)
        dscomm_group_abort(me->world, NULL);
    run_until_failure(me, me->world, false);
    attr.timeout_ms = 0;
    attr.backend = "absent";
    if (me->rank == me->ranks - 1)
        job_sleep_ms(100); /* the others find its failure */
    bad +=
        dscomm_group_shrink(me->world, &attr, &group) != DSCOMM_ERR_NO_BACKEND;
    attr.backend = NULL;
    attr.name = "survivors";
    bad += dscomm_group_shrink(me->world, &attr, &group) != DSCOMM_OK;
    bad += strcmp(dscomm_group_name(group), "survivors") != 0;
    bad += dscomm_group_shrink(me->world, &attr, &child) != DSCOMM_ERR_STATE;
    bad += dscomm_barrier(group, NULL) != DSCOMM_OK;
    me->report->value = bad;
    job_leave(me, dscomm_group_free(group));
}

static void test_arguments(int ranks)
{
    bool passed;
    job_t job;

    *shared = 0;
    job_run(&job, ranks, job_slowly(60000), arguments, NULL, LIMIT_MS);
    passed = job_all(&job, DSCOMM_OK);
    for (int r = 0; r < ranks; r++)
        passed = passed && job.reports[r].value == 0;
    job_ok(&job, passed,
           "%d ranks: arguments, no backend, a name, and a second call", ranks);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        bail("no memory: %s", strerror(errno));
    test_arguments(1);
    test_arguments(3);
    test_deaths();
    test_quarrels();
    test_left();
    test_left_out("a rank that calls too late is left out", last_is_late,
                  job_slowly(60000));
    test_left_out("a rank that was silent is left out", last_is_silent,
                  job_slowly(SHORT_MS));
    test_lazy();
    test_replaced(2);
    test_replaced(0);
    return job_done();
}
