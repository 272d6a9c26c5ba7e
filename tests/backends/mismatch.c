/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that makes another call than its peers: all ranks learn both calls,
 * nothing hangs, and nothing is overwritten. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/collective.h"

#include <stdint.h>
#include <stdlib.h>

#define RANKS 3
#define MANY_RANKS 10
#define SOON_MS 2000
#define ROOT_RANKS 4 /* where roots differ */
#define SPACE 400000

static int32_t in[SPACE], out[SPACE];

/* One call; how selects what the other members do not describe. */
typedef struct {
    int coll;
    size_t count;
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    int root;
} call_t;

/* Two calls that do not match, and what the sentence must contain. */
typedef struct {
    int odd_rank;
    const char *name;
    call_t theirs, odd;
    const char *words[3];
} case_t;

/* One run of a case. */
typedef struct {
    const case_t *c;
    int as_work;
    int late; /* OTHERS or ODD: calls when the rest already waits */
} case_run_t;

enum { ODD = 1, OTHERS };

/* In all_gather_v every rank gives count, the next one root more, as this rank
 * believes; in reduce_scatter_v rank root gets one more. */
static dscomm_status_t make_call(dscomm_group_t *group, const call_t *c,
                                 dscomm_work_t **work)
{
    static size_t counts[ROOT_RANKS]; /* must outlive a work */
    const collective_t call = {.coll = c->coll,
                               .send = in,
                               .recv = out,
                               .count = c->count,
                               .send_counts = counts,
                               .recv_counts = counts,
                               .dtype = c->dtype,
                               .op = c->op,
                               .root = c->root};

    for (int r = 0; r < ROOT_RANKS; r++)
        counts[r] = c->count;
    if (c->coll == DSCOMM_COLL_ALL_GATHER_V)
        counts[(dscomm_group_rank(group) + 1) % RANKS] += (size_t)c->root;
    if (c->coll == DSCOMM_COLL_REDUCE_SCATTER_V)
        counts[c->root]++;
    return collective_call(group, &call, work);
}

static dscomm_status_t make_and_wait(dscomm_group_t *group, const call_t *call,
                                     int as_work)
{
    dscomm_work_t *work = NULL;
    dscomm_status_t status = make_call(group, call, as_work ? &work : NULL);

    if (work)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    return status;
}

/* Makes a few matching calls first. Ranks that have returned before the
 * mismatch was detected learn of it in the next call. */
static void run_rank(job_rank_t *me)
{
    const case_run_t *run = me->arg;
    const case_t *c = run->c;
    const call_t matching = {DSCOMM_COLL_ALL_REDUCE, 3, DSCOMM_INT32,
                             DSCOMM_MAX, 0};
    dscomm_status_t status = DSCOMM_OK;

    if (job_init(me) < 0)
        return;
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = make_and_wait(me->world, &matching, 0);
    me->report->other_status = status;
    if (run->late == ODD && me->rank == c->odd_rank)
        job_sleep_ms(job_slowly(500));
    if (run->late == OTHERS && (me->rank + 1) % RANKS == c->odd_rank)
        job_sleep_ms(50);
    me->started = job_now_ms();
    status =
        make_and_wait(me->world, me->rank == c->odd_rank ? &c->odd : &c->theirs,
                      run->as_work);
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(me->world, NULL);
    job_leave(me, status);
}

static int detects(const job_t *job)
{
    for (int r = 0; r < job->ranks; r++)
        if (job->reports[r].ready &&
            !(job->reports[r].capabilities & DSCOMM_CAP_MISMATCH_DETECTION))
            return 0;
    return 1;
}

static void run_case(const case_t *c, int as_work, int late)
{
    case_run_t run = {c, as_work, late};
    job_t job;
    char who[32];
    int passed = job_run(&job, RANKS, job_slowly(5000), run_rank, &run, 8000);

    if (!detects(&job)) {
        skip("%s: the backend does not promise it", c->name);
        job_end(&job, c->name);
        return;
    }
    snprintf(who, sizeof who, "rank %d", c->odd_rank);
    for (int r = 0; r < RANKS; r++)
        passed &= job.reports[r].other_status == DSCOMM_OK;
    passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_MISMATCH, SOON_MS, who,
                           c->words[0], c->words[1], c->words[2], NULL);
    job_ok(&job, passed, "%s, rank %d, %s", c->name, c->odd_rank,
           as_work ? "works" : "blocking");
}

#define SUM(count)                                                             \
    {                                                                          \
        DSCOMM_COLL_ALL_REDUCE, count, DSCOMM_INT32, DSCOMM_SUM, 0             \
    }

static const case_t cases[] = {
    {1,
     "another collective",
     SUM(5),
     {DSCOMM_COLL_BROADCAST, 5, DSCOMM_INT32, 0, 0},
     {"all_reduce", "broadcast"}},
    {1,
     "other counts of all_gather_v",
     {DSCOMM_COLL_ALL_GATHER_V, 100, DSCOMM_INT32, 0, 0},
     {DSCOMM_COLL_ALL_GATHER_V, 100, DSCOMM_INT32, 0, 7},
     {"all_gather_v(counts 100, 100, 100, sum 300, int32)",
      "all_gather_v(counts 100, 100, 107, sum 307, int32)"}},
    {2,
     "a barrier instead",
     SUM(70000),
     {DSCOMM_COLL_BARRIER, 0, 0, 0, 0},
     {"all_reduce", "barrier"}},
    {0, "another count", SUM(5), SUM(6), {"count 5", "count 6"}},
    {1,
     "another count, long against short",
     SUM(4),
     SUM(90000),
     {"count 4", "count 90000"}},
    {2,
     "another count, long",
     SUM(90000),
     SUM(90001),
     {"count 90000", "count 90001"}},
    {1,
     "another dtype",
     SUM(5),
     {DSCOMM_COLL_ALL_REDUCE, 5, DSCOMM_UINT32, DSCOMM_SUM, 0},
     {" int32", "uint32"}},
    {0,
     "another operator",
     SUM(500),
     {DSCOMM_COLL_ALL_REDUCE, 500, DSCOMM_INT32, DSCOMM_MAX, 0},
     {"sum", "max"}},
    {2,
     "another root",
     {DSCOMM_COLL_BROADCAST, 5, DSCOMM_INT32, 0, 0},
     {DSCOMM_COLL_BROADCAST, 5, DSCOMM_INT32, 0, 1},
     {"root 0", "root 1"}},
    {0,
     "another root, long reduce",
     {DSCOMM_COLL_REDUCE, 60000, DSCOMM_INT32, DSCOMM_SUM, 2},
     {DSCOMM_COLL_REDUCE, 60000, DSCOMM_INT32, DSCOMM_SUM, 0},
     {"root 2", "root 0"}},
    {2,
     "gather with another count",
     {DSCOMM_COLL_GATHER, 9, DSCOMM_INT32, 0, 0},
     {DSCOMM_COLL_GATHER, 8, DSCOMM_INT32, 0, 0},
     {"count 9", "count 8"}},
    {1,
     "all_gather with another count",
     {DSCOMM_COLL_ALL_GATHER, 3000, DSCOMM_INT32, 0, 0},
     {DSCOMM_COLL_ALL_GATHER, 2999, DSCOMM_INT32, 0, 0},
     {"count 3000", "count 2999"}},
    {0,
     "all_to_all with another dtype",
     {DSCOMM_COLL_ALL_TO_ALL, 2, DSCOMM_INT32, 0, 0},
     {DSCOMM_COLL_ALL_TO_ALL, 2, DSCOMM_INT64, 0, 0},
     {"int32", "int64"}},
};

/* A _v call in which rank odd gives one element more than the others in each of
 * its counts of what it sends, and, if it is the root, receives; or, if
 * receives is set, of what it receives in all_to_all_v. */
typedef struct {
    int coll, ranks, odd;
    bool receives;
} counts_case_t;

static void run_rank_v(job_rank_t *me)
{
    const counts_case_t *c = me->arg;
    const size_t n = me->rank == c->odd ? 6 : 5;
    size_t odd[JOB_RANKS_MAX], five[JOB_RANKS_MAX];
    const bool is_root = c->coll != DSCOMM_COLL_ALL_TO_ALL_V;
    const collective_t call = {.coll = c->coll,
                               .send = in,
                               .recv = out,
                               .count = n,
                               .send_counts = c->receives ? five : odd,
                               .recv_counts =
                                   is_root || c->receives ? odd : five,
                               .dtype = DSCOMM_INT32};
    dscomm_status_t status;

    for (int r = 0; r < c->ranks; r++) {
        odd[r] = n;
        five[r] = 5;
    }
    if (job_init(me) < 0)
        return;
    status = collective_call(me->world, &call, NULL);
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(me->world, NULL);
    job_report_failure(me);
    job_leave(me, status);
}

/* The record names the rank that contradicts most others, whether it is the
 * root or not. Among ranks of several hosts it may be the other of a pair. */
static void run_case_v(int coll, int ranks, int odd, bool receives)
{
    counts_case_t c = {coll, ranks, odd, receives};
    job_t job;
    char who[32];
    const char *name = dscomm_coll_name((dscomm_coll_t)coll);
    int passed = job_run(&job, ranks, job_slowly(5000), run_rank_v, &c, 8000);

    snprintf(who, sizeof who, "rank %d ", odd);
    passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_MISMATCH, SOON_MS, who,
                           name, NULL);
    for (int r = 0; r < ranks; r++)
        passed &= job.reports[r].failure.rank == odd || getenv("JOB_HOSTS");
    job_ok(&job, passed,
           "%s: the counts of rank %d of %d contradict the others", name, odd,
           ranks);
}

static void test_counts(void)
{
    for (int odd = 0; odd < RANKS; odd++) {
        run_case_v(DSCOMM_COLL_GATHER_V, RANKS, odd, false);
        run_case_v(DSCOMM_COLL_SCATTER_V, RANKS, odd, false);
        run_case_v(DSCOMM_COLL_ALL_TO_ALL_V, RANKS, odd, false);
    }
    run_case_v(DSCOMM_COLL_GATHER_V, MANY_RANKS, MANY_RANKS - 1, false);
    run_case_v(DSCOMM_COLL_SCATTER_V, MANY_RANKS, MANY_RANKS - 1, false);
    run_case_v(DSCOMM_COLL_ALL_TO_ALL_V, MANY_RANKS, MANY_RANKS - 1, false);
    run_case_v(DSCOMM_COLL_ALL_TO_ALL_V, MANY_RANKS, MANY_RANKS - 1, true);
}

/* Whichever rank comes last, the one that differs from the others is named
 * first. */
static void test_majority(void)
{
    static const struct {
        call_t theirs, odd;
        const char *called; /* the odd rank's call */
    } calls[] = {
        {{DSCOMM_COLL_ALL_GATHER_V, 5, DSCOMM_INT32, 0, 0},
         {DSCOMM_COLL_ALL_GATHER_V, 5, DSCOMM_INT32, 0, 1},
         "all_gather_v(counts "},
        {{DSCOMM_COLL_REDUCE_SCATTER_V, 5, DSCOMM_INT32, DSCOMM_MAX, 1},
         {DSCOMM_COLL_REDUCE_SCATTER_V, 5, DSCOMM_INT32, DSCOMM_MAX, 2},
         "reduce_scatter_v(counts 5, 5, 6, sum 16, int32, max)"},
        {SUM(5), SUM(6), "all_reduce(count 6, int32, sum)"},
        {{DSCOMM_COLL_BARRIER, 0, 0, 0, 0},
         {DSCOMM_COLL_GATHER, 6, DSCOMM_INT8, 0, 1},
         "gather(count 6, int8, root 1)"},
    };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int odd = 0; odd < RANKS; odd++) {
            char first[100], rest[100], called[100];
            const case_t c = {odd,
                              i % 2 ? "another rank comes last"
                                    : "the odd one comes last",
                              calls[i].theirs,
                              calls[i].odd,
                              {first, called, rest}};

            snprintf(first, sizeof first, "group 'world': rank %d (pid ", odd);
            snprintf(called, sizeof called, ") called %s", calls[i].called);
            snprintf(rest, sizeof rest, ") and 1 other called %s",
                     dscomm_coll_name(calls[i].theirs.coll));
            run_case(&c, i % 2, i % 2 ? OTHERS : ODD);
        }
}

/* Time in which a rank must return on a busy machine, in ms. The sentence shows
 * that it did not return because of its deadline. */
#define TOLD_MS 30000

/* Which ranks enter the monitored barrier: bits. The others call all_reduce,
 * after late_ms. */
typedef struct {
    int come, timeout_ms, late_ms;
} monitor_t;

static void monitor(job_rank_t *me)
{
    const monitor_t *plan = me->arg;
    const call_t other = {DSCOMM_COLL_ALL_REDUCE, 5, DSCOMM_INT32, DSCOMM_SUM,
                          0};
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    for (int i = 0; i < 3; i++)
        dscomm_barrier(me->world, NULL);
    dscomm_monitored_barrier(me->world, TOLD_MS);
    me->started = job_now_ms();
    if (plan->come >> me->rank & 1) {
        status =
            dscomm_monitored_barrier(me->world, job_slowly(plan->timeout_ms));
    } else {
        job_sleep_ms(job_slowly(plan->late_ms));
        me->report->value = (int64_t)(job_now_ms() - me->started);
        status = make_and_wait(me->world, &other, 0);
    }
    job_leave(me, status);
}

/* Returns whether a rank called when those in the barrier were about to give
 * up, because the machine was busy. */
static int came_too_late(const job_t *job, const monitor_t *plan)
{
    for (int r = 0; r < RANKS; r++)
        if (job->reports[r].value > job_slowly(plan->timeout_ms) - 1500)
            return 1;
    return 0;
}

/* Returns 0 if some ranks called too late, so that longer times are needed. */
static int run_monitored(const monitor_t *plan, int last)
{
    job_t job;
    int passed = job_run(&job, RANKS, job_slowly(5000), monitor, (void *)plan,
                         TOLD_MS + 2 * plan->late_ms);

    passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_MISMATCH,
                           TOLD_MS + 2 * plan->late_ms,
                           "called all_reduce(count 5, int32, sum)",
                           "called dscomm_monitored_barrier", NULL);
    for (int r = 0; r < RANKS; r++)
        passed &=
            !strstr(job.reports[r].sentence, "group 'world': group 'world'");
    if (!passed && !last && came_too_late(&job, plan)) {
        job_end(&job, "monitored barrier, again");
        return 0;
    }
    if (detects(&job)) {
        job_ok(&job, passed,
               "monitored barrier of some ranks, mask %d, late %d ms",
               plan->come, plan->late_ms);
    } else {
        skip("monitored barrier: the backend does not promise it");
        job_end(&job, "monitored barrier");
    }
    return 1;
}

/* One cause leads to one status, also on the ranks in the barrier. The last
 * call comes in a long pause between checks, but before the barrier ends, after
 * 6 s. */
static void test_monitored(void)
{
    monitor_t plan = {.timeout_ms = 4000};
    monitor_t late = {(1 << RANKS) - 1 - 2, 6500, 3500};

    for (plan.come = 1; plan.come < (1 << RANKS) - 1; plan.come++)
        run_monitored(&plan, 1);
    while (!run_monitored(&late, late.timeout_ms > 50000)) {
        late.timeout_ms *= 2;
        late.late_ms *= 2;
    }
}

/* Rank 0 leaves while the others wait for it. */
static void leave_early(job_rank_t *me)
{
    const call_t *call = me->arg;
    dscomm_status_t status = DSCOMM_OK;

    if (job_init(me) < 0)
        return;
    if (me->rank)
        status = make_and_wait(me->world, call, me->rank == 2);
    for (int i = 0; me->rank && i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(me->world, NULL);
    me->report->failure.size = sizeof me->report->failure;
    if (status < 0 &&
        dscomm_group_failure(me->world, &me->report->failure) == DSCOMM_OK)
        me->report->value = me->report->failure.rank == 0;
    if (status < 0)
        job_leave(me, status);
    else
        job_report(me, dscomm_finalize(me->world));
}

static void run_leaving(call_t call)
{
    const char *name = dscomm_coll_name((dscomm_coll_t)call.coll);
    char called[32];
    job_t job;
    int passed =
        job_run(&job, RANKS, job_slowly(5000), leave_early, &call, 8000);

    snprintf(called, sizeof called, "called %s(", name);
    passed &=
        job_reported(&job, JOB_ALL, DSCOMM_ERR_MISMATCH, SOON_MS,
                     "rank 0 (pid ", "called dscomm_finalize()", called, NULL);
    /* Other backends promise this culprit only if they know a majority. */
    for (int r = 1; r < RANKS && !getenv("DSCOMM_BACKEND"); r++)
        passed &= job.reports[r].value == 1;
    job_ok(&job, passed, "%s, but rank 0 leaves", name);
}

/* Rank `odd` calls with root 1, the others with root 0. Bits of must: the ranks
 * that wait for a rank which disagrees, and so must fail in that call. Which
 * ranks wait for each other depends on shm's algorithm; other ranks may fail
 * later. */
typedef struct {
    int coll;
    size_t count;
    int odd, must;
} root_case_t;

/* other_status: status of the call itself; status: of the first call that
 * failed. */
static void run_rank_root(job_rank_t *me)
{
    const root_case_t *c = me->arg;
    const call_t call = {c->coll, c->count, DSCOMM_INT8, DSCOMM_MAX,
                         me->rank == c->odd};
    const char *algorithm = "";
    dscomm_status_t status;

    if (job_init(me) < 0)
        return;
    dscomm_group_algorithm(me->world, (dscomm_coll_t)c->coll, DSCOMM_INT8,
                           DSCOMM_MAX, c->count, 0, &algorithm);
    me->report->value = strcmp(algorithm, "native") == 0;
    status = make_call(me->world, &call, NULL);
    me->report->other_status = status;
    if (status == DSCOMM_OK)
        status = dscomm_barrier(me->world, NULL);
    job_leave(me, status);
}

static void run_root_case(const root_case_t *c)
{
    const char *name = dscomm_coll_name(c->coll);
    job_t job;
    int passed = job_run(&job, ROOT_RANKS, job_slowly(5000), run_rank_root,
                         (void *)c, 8000);

    for (int r = 0; r < ROOT_RANKS; r++) {
        const job_report_t *report = &job.reports[r];

        passed &= report->other_status == DSCOMM_ERR_MISMATCH ||
                  (report->other_status == DSCOMM_OK &&
                   !(report->value && c->must >> r & 1));
    }
    passed &= job_reported(&job, JOB_ALL, DSCOMM_ERR_MISMATCH, SOON_MS, name,
                           "root 0", "root 1", NULL);
    job_ok(&job, passed, "%s of %zu with root 1 on rank %d", name, c->count,
           c->odd);
}

/* Checks the rules of <dscomm/collective.h> on roots that differ. */
static void test_roots(void)
{
    static const root_case_t roots[] = {
        {DSCOMM_COLL_BROADCAST, 9, 0, 0xf},
        {DSCOMM_COLL_BROADCAST, 9, 1, 0},
        {DSCOMM_COLL_BROADCAST, 9, 3, 1 << 3},
        {DSCOMM_COLL_BROADCAST, 20000, 0, 0xf},
        {DSCOMM_COLL_BROADCAST, 20000, 1, 0},
        {DSCOMM_COLL_BROADCAST, 20000, 3, 1 << 3},
        {DSCOMM_COLL_SCATTER, 3000, 0, 0xf},
        {DSCOMM_COLL_SCATTER, 3000, 1, 0},
        {DSCOMM_COLL_SCATTER, 3000, 3, 1 << 3},
        {DSCOMM_COLL_GATHER, 3000, 0, 0},
        {DSCOMM_COLL_GATHER, 3000, 1, 1 << 0 | 1 << 1},
        {DSCOMM_COLL_GATHER, 3000, 3, 1 << 0},
        {DSCOMM_COLL_REDUCE, 3000, 0, 0},
        {DSCOMM_COLL_REDUCE, 3000, 1, 1 << 0 | 1 << 1},
        {DSCOMM_COLL_REDUCE, 3000, 3, 1 << 0},
        {DSCOMM_COLL_REDUCE, SPACE, 0, 0xf},
        {DSCOMM_COLL_REDUCE, SPACE, 3, 0xf},
        {DSCOMM_COLL_SCATTER_V, 30, 1, 0xf},
        {DSCOMM_COLL_GATHER_V, 30, 0, 0xf},
    };

    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        run_root_case(&roots[i]);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_case(&cases[i], 0, 0);
        run_case(&cases[i], 1, 0);
    }
    test_majority();
    test_monitored();
    test_roots();
    test_counts();
    run_leaving((call_t)SUM(5));
    run_leaving((call_t)SUM(90000));
    run_leaving((call_t){DSCOMM_COLL_BARRIER, 0, 0, 0, 0});
    run_leaving((call_t){DSCOMM_COLL_BROADCAST, 9, DSCOMM_INT32, 0, 1});
    return job_done();
}
