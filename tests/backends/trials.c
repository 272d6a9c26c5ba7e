/* SPDX-License-Identifier: BSD-3-Clause */
/* See trials.h. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/backends/frames.h"
#include "tests/backends/inject.h"
#include "tests/backends/job.h"
#include "tests/backends/trials.h"
#include "tests/descriptors.h"
#include "tests/tap.h"

#include <dlfcn.h>
#include <dscomm/compression.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define RANKS 2
/* Deadlines of calls, and of a job. */
#define TIMEOUT_MS 8000
#define JOB_MS 30000

/* Requests of this process while it is armed; the one that fails; and the words
 * that the sentence of its status must contain. */
static atomic_int armed;
static atomic_long requests;
static long failing;
static const char *volatile expected;
static int shows_trace;

static void show_trace(void)
{
    void *frames[32];
    int armed_before = atomic_exchange(&armed, 0);
    const int count = frames_get(frames, 32);
    Dl_info info;

    for (int i = 0; i < count; i++)
        if (dladdr(frames[i], &info))
            dprintf(STDOUT_FILENO, "%s(%s) [+%#tx]\n", info.dli_fname,
                    info.dli_sname ? info.dli_sname : "?",
                    (char *)frames[i] - (char *)info.dli_fbase);
    atomic_store(&armed, armed_before);
}

INJECT_UNWATCHED int trials_fail(const char *cause)
{
    if (!atomic_load(&armed) || atomic_fetch_add(&requests, 1) + 1 != failing)
        return 0;
    expected = cause;
    if (shows_trace)
        show_trace();
    return 1;
}

/* The requests that one trial makes. */
typedef struct {
    int phase, victim;
    long k;
} trial_t;

static const trial_t *trial;
static int own_rank;
static job_report_t *own_report;
static trials_kind_t kind;

static void arm(int phase)
{
    if (phase != trial->phase || own_rank != trial->victim)
        return;
    failing = trial->k;
    atomic_store(&armed, 1);
}

static void disarm(void)
{
    atomic_store(&armed, 0);
}

/* Phases */

#define COUNT 3000

static float in[COUNT * RANKS], out[COUNT * RANKS];

static dscomm_status_t collectives(dscomm_group_t *group)
{
    static size_t counts[RANKS] = {5, 7}, displs[RANKS] = {0, 9};
    dscomm_status_t status = dscomm_all_reduce(
        group, in, out, COUNT, DSCOMM_FLOAT32, DSCOMM_SUM, NULL);

    THEN(dscomm_all_reduce(group, in, out, 3, DSCOMM_BFLOAT16, DSCOMM_AVG,
                           NULL));
    THEN(dscomm_broadcast(group, out, COUNT, DSCOMM_FLOAT32, 0, NULL));
    THEN(dscomm_reduce(group, in, out, COUNT, DSCOMM_FLOAT32, DSCOMM_MAX, 1,
                       NULL));
    THEN(dscomm_all_gather(group, in, out, COUNT, DSCOMM_FLOAT32, NULL));
    THEN(dscomm_reduce_scatter(group, in, out, COUNT, DSCOMM_FLOAT32,
                               DSCOMM_SUM, NULL));
    THEN(dscomm_gather(group, in, out, COUNT, DSCOMM_FLOAT32, 0, NULL));
    THEN(dscomm_scatter(group, in, out, COUNT, DSCOMM_FLOAT32, 0, NULL));
    THEN(dscomm_all_to_all(group, in, out, COUNT, DSCOMM_FLOAT32, NULL));
    THEN(dscomm_all_gather_v(group, in, counts[dscomm_group_rank(group)], out,
                             counts, displs, DSCOMM_FLOAT32, NULL));
    THEN(dscomm_barrier(group, NULL));
    return status;
}

static dscomm_status_t groups(dscomm_group_t *world)
{
    static const int ranks[RANKS] = {0, 1};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *split = NULL, *apart = NULL;
    dscomm_status_t status =
        dscomm_group_split(world, 0, dscomm_group_rank(world), NULL, &split);

    attr.members_only = 1;
    THEN(dscomm_group_new(world, ranks, RANKS, &attr, &apart));
    THEN(dscomm_barrier(apart, NULL));
    dscomm_group_free(apart);
    dscomm_group_free(split);
    return status;
}

/* Returns status, or, if that is OK, how the works ended. */
static dscomm_status_t end_works(dscomm_work_t *works[], size_t count,
                                 dscomm_status_t status)
{
    const dscomm_status_t ended =
        dscomm_work_wait_all(works, count, DSCOMM_TIMEOUT_DEFAULT);

    for (size_t i = 0; i < count; i++)
        dscomm_work_free(works[i]);
    return status ? status : ended;
}

static dscomm_status_t works(dscomm_group_t *world)
{
    dscomm_work_t *all[20] = {NULL};
    dscomm_status_t status = DSCOMM_OK;
    size_t index;

    for (int i = 0; i < 20 && !status; i++)
        status = dscomm_all_reduce(world, in + i, out + i, 1, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, &all[i]);
    THEN(dscomm_work_wait_any(all, 20, DSCOMM_TIMEOUT_DEFAULT, &index));
    return end_works(all, 20, status);
}

static dscomm_status_t messages(dscomm_group_t *world)
{
    const int other = 1 - dscomm_group_rank(world);
    dscomm_work_t *all[8] = {NULL};
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < 4 && !status; i++)
        status = dscomm_isend(world, in, i % 2 ? COUNT : 1, DSCOMM_FLOAT32,
                              other, i, &all[i]);
    for (int i = 3; i >= 0 && !status; i--)
        status =
            dscomm_irecv(world, out + i * 10, i % 2 ? COUNT : 1, DSCOMM_FLOAT32,
                         i == 2 ? DSCOMM_ANY_SOURCE : other, i, &all[4 + i]);
    if (status)
        dscomm_group_abort(world, "no memory");
    return end_works(all, 8, status);
}

/* A message that arrives before its receive is kept: the awaited one was sent
 * after it. */
static dscomm_status_t unexpected(dscomm_group_t *world)
{
    const int other = 1 - dscomm_group_rank(world);
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < 2 && !status; i++)
        status = dscomm_send(world, in, 1, DSCOMM_FLOAT32, other, i);
    for (int i = 1; i >= 0 && !status; i--)
        status =
            dscomm_recv(world, out, 1, DSCOMM_FLOAT32, other, i, NULL, NULL);
    return status;
}

/* Receives the message with tag that rank other has sent. A receive that had no
 * memory to begin does not consume the message. */
static dscomm_status_t receive_matched(dscomm_group_t *world, int other,
                                       int tag)
{
    dscomm_matched_t *matched = NULL;
    dscomm_status_t status = dscomm_probe_matched(
        world, other, tag, DSCOMM_TIMEOUT_DEFAULT, NULL, &matched);

    THEN(dscomm_recv_matched(matched, out, 1, DSCOMM_FLOAT32, NULL));
    if (status != DSCOMM_ERR_NO_MEMORY || !matched)
        return status;
    status = dscomm_recv_matched(matched, out, 1, DSCOMM_FLOAT32, NULL);
    return status ? DSCOMM_ERR_PROTOCOL : DSCOMM_ERR_NO_MEMORY;
}

/* The receive needs memory, because works are in progress. */
static dscomm_status_t matched(dscomm_group_t *world)
{
    enum { MANY = 16 };
    const int other = 1 - dscomm_group_rank(world);
    dscomm_work_t *all[MANY] = {NULL};
    dscomm_status_t status =
        dscomm_send(world, in, 1, DSCOMM_FLOAT32, other, MANY);
    dscomm_status_t received = DSCOMM_OK;

    for (int i = 0; i < MANY && !status; i++)
        status =
            dscomm_irecv(world, out + i, 1, DSCOMM_FLOAT32, other, i, &all[i]);
    if (!status)
        received = receive_matched(world, other, MANY);
    for (int i = 0; i < MANY && !status; i++)
        status = dscomm_send(world, in, 1, DSCOMM_FLOAT32, other, i);
    if (status)
        dscomm_group_abort(world, "no memory");
    return end_works(all, MANY, status ? status : received);
}

static dscomm_status_t coalesce(dscomm_group_t *world)
{
    dscomm_work_t *work = NULL;
    dscomm_status_t status = dscomm_coalesce_begin(world);

    for (int i = 0; i < 5 && !status; i++)
        status = dscomm_all_reduce(world, in + i * 40, out + i * 40, 17,
                                   DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
    THEN(dscomm_coalesce_end(world, &work));
    THEN(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
    return status;
}

static dscomm_status_t blobs(dscomm_group_t *world)
{
    size_t size = 0, sizes[RANKS];
    void *blob = NULL, *all = NULL;
    dscomm_status_t status =
        dscomm_broadcast_blob(world, "blob", 4, 0, &blob, &size);

    THEN(dscomm_all_gather_blob(world, "some", 4, &all, sizes));
    dscomm_blob_free(blob);
    dscomm_blob_free(all);
    THEN(dscomm_monitored_barrier(world, DSCOMM_TIMEOUT_DEFAULT));
    return status;
}

static dscomm_status_t memory(dscomm_group_t *world)
{
    void *heap = NULL;
    dscomm_status_t status = dscomm_mem_alloc(world, 10000, &heap);

    dscomm_mem_free(world, heap);
    return status;
}

/* The rendezvous at a store that rank 0 serves. */
static const char *rendezvous;

static dscomm_status_t store_client(dscomm_group_t *world)
{
    dscomm_status_t status = DSCOMM_OK;

    if (dscomm_group_rank(world))
        status = trials_use_store(rendezvous, 0);
    return status;
}

static dscomm_status_t stores(dscomm_group_t *world)
{
    char url[64];
    dscomm_status_t status = trials_use_store("memory://", 0);

    (void)world;
    snprintf(url, sizeof url, "file:///tmp/dscomm-no-memory.%d", (int)getpid());
    THEN(trials_use_store(url, 0));
    unlink(url + strlen("file://"));
    return status ? status : trials_use_store("tcp://127.0.0.1:0", 1);
}

static dscomm_status_t compress(dscomm_group_t *world)
{
    dscomm_compressor_t *onebit = NULL;
    dscomm_work_t *work = NULL;
    dscomm_status_t status = dscomm_onebit_create(world, COUNT, NULL, &onebit);

    THEN(dscomm_compressor_all_reduce(onebit, out, DSCOMM_FLOAT32, NULL));
    THEN(dscomm_compressor_all_reduce(onebit, out, DSCOMM_FLOAT32, &work));
    THEN(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
    dscomm_compressor_free(onebit);
    return status;
}

/* Failures need memory for their sentences. */
static dscomm_status_t failures(dscomm_group_t *world)
{
    dscomm_group_t *group = NULL;
    dscomm_work_t *work = NULL;
    dscomm_status_t status =
        dscomm_group_split(world, 0, dscomm_group_rank(world), NULL, &group);

    if (status)
        return status;
    dscomm_all_reduce(group, in, out, 3, DSCOMM_FLOAT32, DSCOMM_SUM, &work);
    dscomm_group_abort(group, "enough");
    dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    dscomm_barrier(group, NULL);
    dscomm_group_free(group);
    status =
        dscomm_group_split(world, 0, dscomm_group_rank(world), NULL, &group);
    if (status)
        return status;
    dscomm_all_reduce(group, in, out, dscomm_group_rank(world) ? 3 : 4,
                      DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
    dscomm_group_free(group);
    return DSCOMM_OK;
}

/* The other rank ends while a group is made. */
static dscomm_status_t deaths(dscomm_group_t *world)
{
    static const int ranks[RANKS] = {0, 1};
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL;
    dscomm_status_t status;

    attr.members_only = 1;
    if (own_rank != trial->victim) {
        own_report->ended = 1;
        _exit(0);
    }
    status = dscomm_group_new(world, ranks, RANKS, &attr, &group);
    return status == DSCOMM_ERR_PEER_FAILED && *dscomm_last_error() ? DSCOMM_OK
                                                                    : status;
}

/* The other rank is late, until the group has ended. */
static dscomm_status_t time_outs(dscomm_group_t *world)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL;
    dscomm_status_t status;

    disarm();
    attr.timeout_ms = 200;
    status =
        dscomm_group_split(world, 0, dscomm_group_rank(world), &attr, &group);
    arm(trial->phase);
    if (status)
        return status;
    if (own_rank == trial->victim)
        status = dscomm_all_reduce(group, in, out, 3, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, NULL);
    while (own_rank != trial->victim && !dscomm_group_status(group))
        usleep(1000);
    dscomm_group_free(group);
    return status == DSCOMM_ERR_TIMEOUT && *dscomm_last_error() ? DSCOMM_OK
                                                                : status;
}

/* Works for the progress thread, and descriptors for event loops. */
static dscomm_status_t events(dscomm_group_t *world)
{
    int fd;
    dscomm_status_t status = dscomm_group_fd(world, &fd);

    return status ? status : works(world);
}

enum { START_UP };

/* steps: number of k in a sample; 0: none. first: first victim; rank 0 serves
 * the store. */
static const struct {
    const char *name;
    dscomm_status_t (*run)(dscomm_group_t *world);
    const char *algorithms; /* DSCOMM_ALGORITHM */
    int steps[TRIALS_KINDS];
    int first;
} phases[] = {
    {"start-up", NULL, NULL, {0, 14}, 0},
    {"groups", groups, NULL, {1, 2}, 0},
    {"collectives", collectives, NULL, {1, 1}, 0},
    {"schedules", collectives, "all_reduce:ring,all_gather:ring", {1, 1}, 0},
    {"works", works, NULL, {1, 1}, 0},
    {"works of schedules", works, "all_reduce:ring", {1, 1}, 0},
    {"events", events, NULL, {1, 1}, 0},
    {"messages", messages, NULL, {1, 1}, 0},
    {"unexpected messages", unexpected, NULL, {1, 1}, 0},
    {"matched receives", matched, NULL, {1, 1}, 0},
    {"coalescing", coalesce, NULL, {1, 1}, 0},
    {"blobs", blobs, NULL, {1, 1}, 0},
    {"memory", memory, NULL, {1, 1}, 0},
    {"store client", store_client, NULL, {1, 1}, 1},
    {"stores", stores, NULL, {3, 5}, 0},
    {"compression", compress, NULL, {1, 2}, 0},
    {"failures", failures, NULL, {1, 4}, 0},
    {"failures of schedules", failures, "all_reduce:ring", {1, 0}, 0},
    {"deaths", deaths, NULL, {1, 0}, 0},
    {"time-outs", time_outs, "all_reduce:ring", {1, 0}, 0},
    {"finalize", NULL, NULL, {1, 1}, 0},
};

#define PHASES ((int)(sizeof phases / sizeof phases[0]))

/* The report of a rank: bits of job_report_t.value. */
enum { REACHED = 1, UNEXPLAINED = 2, LEAKED = 4, UNTOLD = 8 };

/* Returns whether a shared segment is still mapped. */
static int has_segment(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    int found = 0;

    if (!file)
        bail("/proc/self/maps: no access");
    while (fgets(line, sizeof line, file))
        found |= strstr(line, "memfd:dscomm") != NULL;
    fclose(file);
    return found;
}

/* Returns whether a status has a sentence, which on the victim names the
 * cause. */
static int explains(dscomm_status_t status)
{
    return !status || (*dscomm_last_error() &&
                       (!expected || strstr(dscomm_last_error(), expected)));
}

/* If one rank has no memory, all ranks fail, before their deadline. The
 * sentence names that rank, and does not say that a store has ended. */
static int is_failure_named(dscomm_status_t status)
{
    char who[16];

    snprintf(who, sizeof who, "rank %d", trial->victim);
    return kind != TRIALS_MEMORY ||
           (status != DSCOMM_ERR_TIMEOUT &&
            (!status || !strstr(dscomm_last_error(), "is gone")) &&
            (own_rank == trial->victim || status != DSCOMM_ERR_NO_MEMORY ||
             strstr(dscomm_last_error(), who)));
}

/* Returns whether the library itself makes all ranks fail in this phase. */
static int fails_alike(int phase)
{
    return kind == TRIALS_MEMORY &&
           (phases[phase].run == groups || phases[phase].run == time_outs);
}

static dscomm_status_t run_phase(job_rank_t *me, int phase)
{
    dscomm_status_t status;

    arm(START_UP);
    status = job_init(me);
    disarm();
    if (status || !phases[phase].run)
        return status;
    arm(phase);
    status = phases[phase].run(me->world);
    disarm();
    if (!is_failure_named(status))
        me->report->value |= UNTOLD;
    return status;
}

/* Reports the first failure. */
static void run_rank(job_rank_t *me)
{
    const int phase = trial->phase;
    dscomm_status_t status;
    void *frame;
    int before;

    frames_get(&frame, 1); /* may allocate memory the first time */
    own_rank = me->rank;
    own_report = me->report;
    rendezvous = me->rendezvous;
    if (phases[phase].algorithms)
        setenv("DSCOMM_ALGORITHM", phases[phase].algorithms, 1);
    before = descriptors_count();
    status = run_phase(me, phase);
    if (!explains(status))
        me->report->value |= UNEXPLAINED;
    job_report(me, status);
    me->report->ended = 0;
    if (status && me->world && !fails_alike(phase))
        dscomm_group_abort(me->world, "a phase failed");
    arm(PHASES - 1);
    me->report->other_status = dscomm_finalize(me->world);
    disarm();
    if (!status && !explains((dscomm_status_t)me->report->other_status))
        me->report->value |= UNEXPLAINED;
    if (!status)
        job_report(me, (dscomm_status_t)me->report->other_status);
    if (atomic_load(&requests) >= trial->k)
        me->report->value |= REACHED;
    if (descriptors_count() != before || has_segment())
        me->report->value |= LEAKED;
    me->report->ended = 1;
}

/* Returns whether the rank has passed. If there were fewer than k requests,
 * nothing may have failed. */
static int rank_passed(const job_t *job, int rank, int reached)
{
    const job_report_t *report = &job->reports[rank];

    return job_exited(job, rank) && report->ended &&
           !(report->value & (UNEXPLAINED | LEAKED | UNTOLD)) &&
           (reached || (!report->status && !report->other_status));
}

/* *ret_reached: there were k requests. */
static int run_trial(const trial_t *one, int *ret_reached)
{
    int passed;
    job_t job;

    trial = one;
    job_make(&job, RANKS, job_slowly(TIMEOUT_MS), run_rank, NULL);
    job_use_tcp(&job);
    job_start(&job);
    passed = job_join(&job, JOB_MS);
    *ret_reached = !job.reports[one->victim].ended ||
                   job.reports[one->victim].value & REACHED;
    for (int r = 0; r < RANKS; r++)
        passed &= rank_passed(&job, r, *ret_reached);
    if (!passed) {
        printf("# phase %s, k %ld of rank %d\n", phases[one->phase].name,
               one->k, one->victim);
        job_show(&job);
    }
    job_end(&job, phases[one->phase].name);
    return passed;
}

static void try_phase(int phase, int victim, int step, long first)
{
    long failed = 0, tried = -1;
    int reached = 1;

    for (long k = first; reached; k += step) {
        const trial_t one = {phase, victim, k};

        failed += !run_trial(&one, &reached);
        tried++;
    }
    ok(!failed, "%s, rank %d: %ld requests failed, %ld with harm",
       phases[phase].name, victim, tried, failed);
}

static int find_phase(const char *name)
{
    for (int i = 0; i < PHASES; i++)
        if (!strcmp(phases[i].name, name))
            return i;
    bail("no phase '%s'", name);
}

int trials_main(trials_kind_t runs_out, int argc, char **argv)
{
    const int all = argc > 1 && !strcmp(argv[1], "all");
    const int part = argc > 3 ? atoi(argv[2]) : 0;
    const int parts = argc > 3 ? atoi(argv[3]) : 1;
    int reached;

    kind = runs_out;
    if (argc > 3 && !all) {
        const trial_t one = {find_phase(argv[1]), atoi(argv[2]), atol(argv[3])};

        shows_trace = 1;
        ok(run_trial(&one, &reached), "one request");
        return tap_done();
    }
    for (int i = 0; i < PHASES; i++)
        for (int victim = phases[i].first; victim < RANKS; victim++) {
            const int step = phases[i].steps[kind];

            if (argc < 2 || all ? !step : find_phase(argv[1]) != i)
                continue;
            try_phase(i, victim, argc > 1 ? parts : step, 1 + part);
        }
    return job_done();
}
