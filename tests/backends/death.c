/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that die or stop making progress: the others learn soon which rank it
 * was, and nothing hangs. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/backends/sandbox.h"

#include <regex.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3
#define LARGE 600000

/* Time in which survivors must know; their deadline, 20 s, is much later. */
#define NOTICE_MS 5000

static float in[LARGE], out[LARGE * RANKS];

typedef dscomm_status_t (*turn_t)(dscomm_group_t *group);

/* The rank at that distance in the ring of all ranks. */
static int neighbour(dscomm_group_t *group, int distance)
{
    return (dscomm_group_rank(group) + distance + RANKS) % RANKS;
}

static dscomm_status_t turn_small(dscomm_group_t *group)
{
    return dscomm_all_reduce(group, in, out, 4, DSCOMM_FLOAT32, DSCOMM_SUM,
                             NULL);
}

static dscomm_status_t turn_large(dscomm_group_t *group)
{
    return dscomm_all_reduce(group, in, out, LARGE, DSCOMM_FLOAT32, DSCOMM_SUM,
                             NULL);
}

static dscomm_status_t turn_barrier(dscomm_group_t *group)
{
    return dscomm_barrier(group, NULL);
}

static dscomm_status_t turn_monitored(dscomm_group_t *group)
{
    return dscomm_monitored_barrier(group, 10000);
}

static dscomm_status_t turn_all_to_all(dscomm_group_t *group)
{
    return dscomm_all_to_all(group, in, out, 20000, DSCOMM_FLOAT32, NULL);
}

static dscomm_status_t turn_gather(dscomm_group_t *group)
{
    return dscomm_gather(group, in, out, 3000, DSCOMM_FLOAT32, 0, NULL);
}

static dscomm_status_t turn_broadcast(dscomm_group_t *group)
{
    return dscomm_broadcast(group, out, 3000, DSCOMM_FLOAT32, RANKS - 1, NULL);
}

static dscomm_status_t turn_works(dscomm_group_t *group)
{
    dscomm_work_t *works[4] = {NULL};
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < 4 && status == DSCOMM_OK; i++)
        status = dscomm_all_reduce(group, in + i * 5000, out + i * 5000, 5000,
                                   DSCOMM_FLOAT32, DSCOMM_SUM, &works[i]);
    if (status == DSCOMM_OK)
        status = dscomm_work_wait_all(works, 4, DSCOMM_TIMEOUT_DEFAULT);
    for (int i = 0; i < 4; i++)
        dscomm_work_free(works[i]);
    return status;
}

static dscomm_status_t ring(dscomm_group_t *group, size_t count)
{
    dscomm_work_t *work = NULL;
    dscomm_status_t status;

    status = dscomm_isend(group, in, count, DSCOMM_FLOAT32, neighbour(group, 1),
                          1, &work);
    if (status == DSCOMM_OK)
        status = dscomm_recv(group, out, count, DSCOMM_FLOAT32,
                             neighbour(group, -1), 1, NULL, NULL);
    if (status == DSCOMM_OK)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    return status;
}

static dscomm_status_t turn_ring(dscomm_group_t *group)
{
    return ring(group, 10);
}

static dscomm_status_t turn_large_ring(dscomm_group_t *group)
{
    return ring(group, LARGE);
}

/* Every rank but the victim waits for a message that never comes. */
static dscomm_status_t turn_never(dscomm_group_t *group)
{
    return dscomm_recv(group, out, 1, DSCOMM_FLOAT32, neighbour(group, 1), 9,
                       NULL, NULL);
}

static dscomm_status_t turn_any_source(dscomm_group_t *group)
{
    return dscomm_recv(group, out, 1, DSCOMM_FLOAT32, DSCOMM_ANY_SOURCE,
                       DSCOMM_ANY_TAG, NULL, NULL);
}

/* Nobody ever waits. */
static dscomm_status_t test_only(dscomm_work_t *work)
{
    dscomm_status_t status;

    do
        status = dscomm_work_test(work);
    while (status == DSCOMM_IN_PROGRESS);
    dscomm_work_free(work);
    return status;
}

static dscomm_status_t turn_tested(dscomm_group_t *group)
{
    dscomm_work_t *work;
    dscomm_status_t status = dscomm_barrier(group, &work);

    return status == DSCOMM_OK ? test_only(work) : status;
}

static dscomm_status_t turn_tested_receive(dscomm_group_t *group)
{
    dscomm_work_t *work;
    dscomm_status_t status = dscomm_irecv(group, out, 1, DSCOMM_FLOAT32,
                                          neighbour(group, 1), 9, &work);

    return status == DSCOMM_OK ? test_only(work) : status;
}

/* Repeats turns until something fails, then leaves. */
static void loop(job_rank_t *me)
{
    turn_t turn = *(turn_t *)me->arg;
    dscomm_status_t status = DSCOMM_OK;

    if (job_init(me) < 0)
        return;
    while (status == DSCOMM_OK) {
        me->report->loops++;
        me->started = job_now_ms();
        status = turn(me->world);
    }
    job_report_failure(me);
    job_report(me, status);
    me->started = job_now_ms();
    dscomm_finalize(me->world);
    me->report->value = (int64_t)(job_now_ms() - me->started);
}

/* Checks that a survivor has learned in time which rank and pid died. */
static int survivor_knows(const job_t *job, int rank, int victim, pid_t pid,
                          double killed)
{
    const job_report_t *report = &job->reports[rank];
    char who[32], process[32];
    int passed = report->ended && report->status == DSCOMM_ERR_PEER_FAILED;

    if (!passed)
        printf("# rank %d: ended %d, %s: %s\n", rank, report->ended,
               dscomm_status_name(report->status), report->sentence);
    if (!passed)
        return 0;
    if (report->failure.size &&
        (report->failure.kind != DSCOMM_FAILURE_DIED ||
         report->failure.rank != victim || report->failure.pid != pid)) {
        printf("# rank %d: the record has kind %d, rank %d, pid %lld: %s\n",
               rank, report->failure.kind, report->failure.rank,
               (long long)report->failure.pid, report->failure.detail);
        passed = 0;
    }
    snprintf(who, sizeof who, "rank %d", victim);
    snprintf(process, sizeof process, "%d", (int)pid);
    passed &= job_sentence_has(job, rank, who);
    passed &= job_sentence_has(job, rank, process);
    if (report->at_ms - killed > job_slowly(NOTICE_MS)) {
        printf("# rank %d knew after %.0f ms\n", rank, report->at_ms - killed);
        passed = 0;
    }
    if (report->value > job_slowly(NOTICE_MS)) {
        printf("# rank %d: finalize took %d ms\n", rank, (int)report->value);
        passed = 0;
    }
    return passed && job_exited(job, rank);
}

static void join_and_leave(job_rank_t *me)
{
    if (job_init(me) == DSCOMM_OK)
        job_report(me, dscomm_finalize(me->world));
}

/* Returns whether the backend detects deaths on this system. */
static int sees_deaths(void)
{
    job_t job;
    int promised = 1;

    ok(job_run(&job, RANKS, 0, join_and_leave, NULL, 10000),
       "ranks join and leave");
    for (int r = 0; r < RANKS; r++)
        promised &= !job.reports[r].ready || (job.reports[r].capabilities &
                                              DSCOMM_CAP_DEATH_DETECTION) != 0;
    job_end(&job, "join and leave");
    return promised;
}

/* Rank 1 never makes the call that the others have begun. */
static void begin_without_one(job_rank_t *me)
{
    dscomm_work_t *work = NULL;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    dscomm_barrier(me->world, NULL);
    if (me->rank != 1)
        dscomm_barrier(me->world, &work);
    me->report->loops = 1;
    if (me->rank == 1)
        pause();
    me->started = job_now_ms();
    status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    job_report_failure(me);
    job_report(me, status);
    dscomm_work_free(work);
    dscomm_finalize(me->world);
}

/* An operator that never returns on rank 1. */
static void add_or_stop(void *left, const void *right, size_t count,
                        dscomm_dtype_t dtype, void *arg)
{
    job_rank_t *me = arg;

    (void)dtype;
    me->report->loops = 1;
    while (me->rank == 1)
        pause();
    for (size_t i = 0; i < count; i++)
        ((float *)left)[i] += ((const float *)right)[i];
}

static void stop_in_operator(job_rank_t *me)
{
    dscomm_op_attr_t attr = DSCOMM_OP_ATTR_INIT;
    dscomm_op_t op;
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    dscomm_barrier(me->world, NULL);
    attr.arg = me;
    attr.commutative = 1;
    if (dscomm_op_create(add_or_stop, &attr, &op) < 0)
        return;
    me->started = job_now_ms();
    status =
        dscomm_all_reduce(me->world, in, out, RANKS, DSCOMM_FLOAT32, op, NULL);
    job_report_failure(me);
    job_leave(me, status);
}

/* The victim dies while the others are in other calls. */
static void be_elsewhere(job_rank_t *me)
{
    if (job_init(me) < 0)
        return;
    dscomm_barrier(me->world, NULL);
    me->report->loops = 1;
    if (me->rank == 1)
        pause();
    job_sleep_ms(600);
    me->started = job_now_ms();
    job_leave(me, dscomm_barrier(me->world, NULL));
}

/* Rank 1 dies in dscomm_finalize(), where it waits with rank 0 for a rank that
 * comes later. */
static void die_leaving(job_rank_t *me)
{
    if (job_init(me) < 0)
        return;
    dscomm_barrier(me->world, NULL);
    me->report->loops = 1;
    if (me->rank == 2)
        job_sleep_ms(job_slowly(1500));
    me->started = job_now_ms();
    job_report(me, dscomm_finalize(me->world));
}

/* A child of the victim lives on with all its file descriptors. */
static void loop_with_child(job_rank_t *me)
{
    turn_t turn = turn_small;
    dscomm_status_t status = DSCOMM_OK;

    if (job_init(me) < 0)
        return;
    if (me->rank == 1) {
        pid_t child = fork();

        if (child == 0) {
            job_sleep_ms(job_slowly(3500));
            _exit(0);
        }
        me->report->value = child;
    }
    while (status == DSCOMM_OK) {
        me->report->loops++;
        status = turn(me->world);
    }
    job_leave(me, status);
}

typedef struct {
    const char *name;
    turn_t turn; /* is repeated by all ranks; each rank is the victim once */
    const char *words; /* expected in the survivors' sentences, or NULL */
    int64_t loops; /* before the kill */
    job_scenario_t scenario; /* used instead of turn; rank 1 is the victim */
    int delay_ms; /* from the last loop to the kill; random with turn */
    int told; /* bits: the ranks that must learn of it; 0: all others */
    /* number of the barrier that the survivors' records have; -1: they have no
     * collective; ANY: they have one; 0: not checked */
    int sequence;
} kill_t;

#define ANY (-2)

/* Checks the collective in the failure record of a survivor. */
static int record_has(const job_t *job, int rank, int sequence)
{
    const dscomm_failure_t *failure = &job->reports[rank].failure;
    const int coll = sequence > 0 ? (int)DSCOMM_COLL_BARRIER : -1;
    const uint64_t number = sequence > 0 ? (uint64_t)sequence : 0;

    if (!sequence ||
        (failure->size && failure->coll == coll &&
         failure->sequence == number) ||
        (sequence == ANY && failure->coll >= 0 && failure->sequence))
        return 1;
    printf("# rank %d: the record has collective %d #%llu\n", rank,
           failure->coll, (unsigned long long)failure->sequence);
    return 0;
}

static void end_child(const job_t *job)
{
    const pid_t child = (pid_t)job->reports[1].value;

    if (child > 0 && kill(child, SIGKILL) == 0)
        waitpid(child, NULL, 0);
}

static void run_kill(const kill_t *c, int victim)
{
    const int told = c->told ? c->told : (1 << RANKS) - 1 - (1 << victim);
    turn_t turn = c->turn;
    char prefix[40] = "";
    job_t job;
    pid_t pid;
    double killed;
    int passed;

    job_make(&job, RANKS, 0, turn ? loop : c->scenario, &turn);
    job_start(&job);
    passed = job_wait_loops(&job, c->loops);
    job_sleep_ms(turn ? (int)job_draw(15) : c->delay_ms);
    pid = job.pids[victim];
    killed = job_now_ms();
    kill(pid, SIGKILL);
    passed &= job_join(&job, 5000);
    for (int r = 0; r < RANKS; r++)
        if (told >> r & 1)
            passed &= survivor_knows(&job, r, victim, pid, killed) &&
                      record_has(&job, r, c->sequence) &&
                      (!c->words || job_sentence_has(&job, r, c->words));
    if (c->scenario == loop_with_child)
        end_child(&job);
    if (turn)
        snprintf(prefix, sizeof prefix, "kill -9 of rank %d: ", victim);
    job_ok(&job, passed, "%s%s", prefix, c->name);
}

static void test_kill(void)
{
    /* A rank of another host cannot know whether the dead one had called. */
    static const kill_t elsewhere = {
        "a collective that it has not called is named with its number",
        NULL,
        " barrier() #2",
        1,
        begin_without_one,
        0,
        0,
        2};
    static const kill_t cases[] = {
        {"small all_reduce", turn_small, "all_reduce", 200, NULL, 0, 0, ANY},
        {"large all_reduce", turn_large, "all_reduce", 5, NULL, 0, 0, 0},
        {"barrier", turn_barrier, "barrier", 200, NULL, 0, 0, ANY},
        {"monitored_barrier", turn_monitored, "dscomm_monitored_barrier", 100,
         NULL, 0, 0, 0},
        {"all_to_all", turn_all_to_all, "all_to_all", 10, NULL, 0, 0, 0},
        {"gather to rank 0", turn_gather, "gather", 20, NULL, 0, 0, 0},
        {"broadcast from the last rank", turn_broadcast, "broadcast", 20, NULL,
         0, 0, 0},
        {"works in flight", turn_works, "all_reduce", 10, NULL, 0, 0, 0},
        {"ring of small messages", turn_ring, NULL, 100, NULL, 0, 0, 0},
        {"ring of large messages", turn_large_ring, NULL, 5, NULL, 0, 0, 0},
        {"a receive that waits", turn_never, NULL, 1, NULL, 0, 0, -1},
        {"a receive from any source", turn_any_source, NULL, 1, NULL, 0, 0, -1},
        {"works that are only tested", turn_tested, "barrier", 20, NULL, 0, 0,
         0},
        {"a receive that is only tested", turn_tested_receive, NULL, 1, NULL, 0,
         0, -1},
        {"a collective that it has not called is named with its number", NULL,
         " died before barrier() #2", 1, begin_without_one, 0, 0, 2},
        {"a rank that died between calls is named by the next one", NULL, NULL,
         1, be_elsewhere, 100, 0, 0},
        {"a rank that dies in dscomm_finalize() has not left", NULL, "died", 1,
         die_leaving, 200, 1 << 0, 0},
        {"a death is seen although the dead rank's child lives on", NULL, NULL,
         20, loop_with_child, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int victim = 0; victim < RANKS; victim++)
            if (cases[i].turn || victim == 1)
                run_kill(cases[i].scenario == begin_without_one &&
                                 getenv("JOB_HOSTS")
                             ? &elsewhere
                             : &cases[i],
                         victim);
}

/* The messages of a collective do not name it, but the record does. */
static void test_kill_in_messages(void)
{
    static const kill_t begun = {
        "a barrier made of messages is named with its number",
        NULL,
        " died before barrier() #2",
        1,
        begin_without_one,
        0,
        0,
        2};

    setenv("DSCOMM_SHM_NATIVE", "0", 1);
    run_kill(&begun, 1);
    unsetenv("DSCOMM_SHM_NATIVE");
}

/* The rank has called, also if its call is no work. In a ring each rank applies
 * the operator. */
static void test_kill_in_operator(void)
{
    static const kill_t stopped = {
        "a rank that dies in its operator has called the collective",
        NULL,
        " died during all_reduce(",
        1,
        stop_in_operator,
        100,
        0,
        ANY};

    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    run_kill(&stopped, 1);
    unsetenv("DSCOMM_ALGORITHM");
}

/* Repeats the kill at other moments, with the smallest and the largest
 * sizes. */
static void test_kill_repeated(void)
{
    static const kill_t again[] = {
        {"large all_reduce again", turn_large, "all_reduce", 1, NULL, 0, 0, 0},
        {"small all_reduce again", turn_small, "all_reduce", 50, NULL, 0, 0,
         ANY},
    };

    for (int i = 0; i < 12; i++) {
        kill_t c = again[i % 2];

        c.loops = 1 + i / 2 * c.loops;
        run_kill(&c, i / 2 % RANKS);
    }
}

/* Rank 1 dies after the last barrier, when it is about to send its leave
 * message. */
static void die_leaving_message(job_rank_t *me)
{
    struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
    if (job_init(me) < 0)
        return;
    dscomm_barrier(me->world, NULL);
    if (me->rank == 1 && sandbox_filter(SYS_sendto, SECCOMP_RET_KILL_PROCESS))
        me->report->value = errno;
    me->started = job_now_ms();
    job_report(me, dscomm_finalize(me->world));
}

/* hosts: a letter for each rank, or NULL. Nobody sees processes of other hosts
 * end. */
static void test_died_after_barrier(const char *hosts)
{
    job_t job;
    int passed;

    if (hosts) {
        setenv("JOB_HOSTS", hosts, 1);
        setenv("DSCOMM_BACKEND", "two_level", 1);
        setenv("DSCOMM_TWO_LEVEL_BETWEEN", "shm", 1);
    }
    job_make(&job, RANKS, 0, die_leaving_message, NULL);
    job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, 10000);
    passed &= job_reported(&job, 5, DSCOMM_OK, NOTICE_MS, NULL);
    if (!job_unfiltered(&job, 1))
        job_ok(&job, passed && !job.reports[1].ended,
               "a rank that dies after the last barrier keeps nobody, %s",
               hosts ? "another host" : "same host");
    if (hosts) {
        unsetenv("JOB_HOSTS");
        unsetenv("DSCOMM_BACKEND");
        unsetenv("DSCOMM_TWO_LEVEL_BETWEEN");
    }
}

/* Leaves by exit(), like a program that forgets dscomm_finalize(). */
static void leave_early(job_rank_t *me)
{
    if (job_init(me) < 0)
        return;
    dscomm_barrier(me->world, NULL);
    if (me->rank == 1)
        _exit(0);
    me->started = job_now_ms();
    job_report(me, dscomm_finalize(me->world));
}

static void test_left_early(void)
{
    job_t job;
    int passed;

    passed = job_run(&job, RANKS, 0, leave_early, NULL, 5000);
    for (int r = 0; r < RANKS; r += 2)
        passed &= job.reports[r].ended &&
                  job.reports[r].took_ms < job_slowly(NOTICE_MS);
    job_ok(&job, passed,
           "finalize does not wait for a rank that has left (%.0f ms)",
           job.reports[0].took_ms);
}

/* Returns whether the sentence names the rank: alone, or among ranks whose
 * peers wait for it one call earlier. */
static int names_rank(const job_t *job, int reader, int rank)
{
    char pattern[64], alone[32];
    regex_t regex;
    int found;

    snprintf(alone, sizeof alone, "rank %d", rank);
    snprintf(pattern, sizeof pattern, "ranks? ([0-9]+, )*%d([^0-9]|$)", rank);
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB))
        return 0;
    found = !regexec(&regex, job->reports[reader].sentence, 0, NULL, 0);
    regfree(&regex);
    return found || job_sentence_has(job, reader, alone);
}

/* After SIGSTOP the deadline of the others passes; after SIGCONT the stopped
 * rank returns the same failure. A rank that waits for one that waits itself
 * names that one: named is 0. */
static void run_stop(const char *name, turn_t turn, const char *coll,
                     int victim, int named)
{
    job_t job;
    int passed, timeout = job_slowly(1200);

    job_make(&job, RANKS, timeout, loop, &turn);
    job_start(&job);
    passed = job_wait_loops(&job, 3);
    kill(job.pids[victim], SIGSTOP);
    job_sleep_ms(2 * timeout);
    kill(job.pids[victim], SIGCONT);
    passed &= job_join(&job, 6000);
    for (int r = 0; r < RANKS; r++) {
        passed &= job.reports[r].status == DSCOMM_ERR_TIMEOUT;
        if (r != victim)
            passed &= job.reports[r].took_ms > timeout * 0.8 &&
                      job.reports[r].took_ms < timeout * 2.5;
        passed &= named ? names_rank(&job, r, victim)
                        : job_sentence_has(&job, r, "rank ");
        passed &= !coll || job_sentence_has(&job, r, coll);
    }
    job_ok(&job, passed, "a stopped rank %d is noticed: %s", victim, name);
}

static void test_stop(void)
{
    run_stop("small all_reduce", turn_small, "all_reduce", 0, 1);
    run_stop("large all_reduce", turn_large, "all_reduce", 1, 1);
    run_stop("barrier", turn_barrier, "barrier", 2, 1);
    run_stop("works", turn_works, "all_reduce", 1, 1);
    run_stop("ring", turn_ring, NULL, 2, 0);
}

int main(void)
{
    if (sees_deaths()) {
        test_kill();
        if (!getenv("JOB_HOSTS")) /* other hosts cannot know */
            test_kill_in_operator();
        test_kill_repeated();
        if (!getenv("DSCOMM_BACKEND")) {
            test_kill_in_messages();
            test_died_after_barrier(NULL);
            test_died_after_barrier("aba");
        }
        test_left_early();
    } else {
        skip("kill -9: the backend does not see deaths here");
    }
    test_stop();
    return job_done();
}
