/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that calls something else than its peers: all are told what both
 * called, and nothing hangs or is overwritten. */
#include "config.h"

#include "tests/backends/job.h"

#include <stdint.h>
#include <stdlib.h>

#define RANKS 3
#define ROOT_RANKS 4 /* where roots differ */
#define SPACE 400000

static int32_t in[SPACE], out[SPACE];

/* One call; how says what is not in the fixed arguments. */
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
    int last; /* the odd rank comes when the others wait */
} case_run_t;

/* Every rank gives count, the next one root more, as this rank believes. */
static dscomm_status_t all_gather_v(dscomm_group_t *group, const call_t *c,
                                    dscomm_work_t **work)
{
    static size_t counts[RANKS]; /* must outlive a work */

    for (int r = 0; r < RANKS; r++)
        counts[r] = c->count;
    counts[(dscomm_group_rank(group) + 1) % RANKS] += (size_t)c->root;
    return dscomm_all_gather_v(group, in, c->count, out, counts, NULL, c->dtype,
                               work);
}

static dscomm_status_t reduce_scatter_v(dscomm_group_t *group, const call_t *c,
                                        dscomm_work_t **work)
{
    static size_t counts[RANKS];

    for (int r = 0; r < RANKS; r++)
        counts[r] = c->count + (size_t)(r == c->root);
    return dscomm_reduce_scatter_v(group, in, out, counts, c->dtype, c->op,
                                   work);
}

/* The same of each rank. */
static const size_t *equal_counts(const call_t *c)
{
    static size_t counts[ROOT_RANKS]; /* must outlive a work */

    for (int r = 0; r < ROOT_RANKS; r++)
        counts[r] = c->count;
    return counts;
}

static dscomm_status_t make_call(dscomm_group_t *group, const call_t *c,
                                 dscomm_work_t **work)
{
    switch (c->coll) {
    case DSCOMM_COLL_ALL_REDUCE:
        return dscomm_all_reduce(group, in, out, c->count, c->dtype, c->op,
                                 work);
    case DSCOMM_COLL_BROADCAST:
        return dscomm_broadcast(group, out, c->count, c->dtype, c->root, work);
    case DSCOMM_COLL_REDUCE:
        return dscomm_reduce(group, in, out, c->count, c->dtype, c->op, c->root,
                             work);
    case DSCOMM_COLL_ALL_GATHER:
        return dscomm_all_gather(group, in, out, c->count, c->dtype, work);
    case DSCOMM_COLL_ALL_TO_ALL:
        return dscomm_all_to_all(group, in, out, c->count, c->dtype, work);
    case DSCOMM_COLL_GATHER:
        return dscomm_gather(group, in, out, c->count, c->dtype, c->root, work);
    case DSCOMM_COLL_SCATTER:
        return dscomm_scatter(group, in, out, c->count, c->dtype, c->root,
                              work);
    case DSCOMM_COLL_ALL_GATHER_V:
        return all_gather_v(group, c, work);
    case DSCOMM_COLL_REDUCE_SCATTER_V:
        return reduce_scatter_v(group, c, work);
    case DSCOMM_COLL_GATHER_V:
        return dscomm_gather_v(group, in, c->count, out, equal_counts(c), NULL,
                               c->dtype, c->root, work);
    case DSCOMM_COLL_SCATTER_V:
        return dscomm_scatter_v(group, in, equal_counts(c), NULL, out, c->count,
                                c->dtype, c->root, work);
    default:
        return dscomm_barrier(group, work);
    }
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

/* A few matching calls first. Ranks that were through before the mismatch was
 * seen learn of it by the next call. */
static void run_rank(job_rank_t *me)
{
    const case_run_t *run = me->arg;
    const case_t *c = run->c;
    const call_t matching = {DSCOMM_COLL_ALL_REDUCE, 3, DSCOMM_INT32,
                             DSCOMM_MAX, 0};
    dscomm_status_t status = DSCOMM_OK;
    dscomm_group_t *world;
    double started;

    if (job_init(me, &world) < 0)
        return;
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = make_and_wait(world, &matching, 0);
    me->report->other_status = status;
    if (run->last && me->rank == c->odd_rank)
        job_sleep_ms(job_slowly(500));
    started = job_now_ms();
    status = make_and_wait(
        world, me->rank == c->odd_rank ? &c->odd : &c->theirs, run->as_work);
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(world, NULL);
    job_tell(me, status, started);
    dscomm_finalize(world);
}

static int detects(const job_t *job)
{
    for (int r = 0; r < job->ranks; r++)
        if (job->reports[r].ready &&
            !(job->reports[r].capabilities & DSCOMM_CAP_MISMATCH_DETECTION))
            return 0;
    return 1;
}

static int was_told(const job_t *job, int rank, const char *const *words)
{
    return job_was_told(job, rank, DSCOMM_ERR_MISMATCH, 2000, words);
}

static void run_case(const case_t *c, int as_work, int last)
{
    case_run_t run = {c, as_work, last};
    job_t job;
    char who[32];
    int passed = job_run(&job, RANKS, job_slowly(5000), run_rank, &run, 8000);

    if (!detects(&job)) {
        skip("%s: the backend does not promise it", c->name);
        job_end(&job, c->name);
        return;
    }
    snprintf(who, sizeof who, "rank %d", c->odd_rank);
    for (int r = 0; r < RANKS; r++) {
        const char *const words[] = {who, c->words[0], c->words[1], c->words[2],
                                     NULL};

        passed &= job.reports[r].other_status == DSCOMM_OK;
        passed &= was_told(&job, r, words);
    }
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

/* _v calls whose counts contradict each other: rank 1 sends one element more
 * than the others expect. */
static void run_rank_v(job_rank_t *me)
{
    int which = *(int *)me->arg;
    size_t n = me->rank == 1 ? 6 : 5, more[RANKS] = {5, 5, 5};
    size_t sends[RANKS] = {n, n, n};
    dscomm_group_t *world;
    dscomm_status_t status;
    double started;

    if (job_init(me, &world) < 0)
        return;
    started = job_now_ms();
    if (which == DSCOMM_COLL_GATHER_V)
        status = dscomm_gather_v(world, in, n, out, more, NULL, DSCOMM_INT32, 0,
                                 NULL);
    else if (which == DSCOMM_COLL_SCATTER_V)
        status = dscomm_scatter_v(world, in, more, NULL, out, n, DSCOMM_INT32,
                                  0, NULL);
    else
        status = dscomm_all_to_all_v(world, in, sends, NULL, out, more, NULL,
                                     DSCOMM_INT32, NULL);
    for (int i = 0; i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(world, NULL);
    job_tell(me, status, started);
    dscomm_finalize(world);
}

static void run_case_v(int coll)
{
    job_t job;
    const char *name = dscomm_coll_name(coll);
    const char *const words[] = {"rank 1", name, NULL};
    int passed =
        job_run(&job, RANKS, job_slowly(5000), run_rank_v, &coll, 8000);

    for (int r = 0; r < RANKS; r++)
        passed &= was_told(&job, r, words);
    job_ok(&job, passed, "%s: counts that contradict each other", name);
}

/* When the odd one comes last, all calls are known, and so is who differs. With
 * two levels each compares two of its ranks, perhaps in a later call. */
static void test_majority(void)
{
    const int levels = getenv("JOB_HOSTS") != NULL;
    static const struct {
        call_t theirs, odd;
        const char *called; /* by the odd one */
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
                              "the odd one comes last",
                              calls[i].theirs,
                              calls[i].odd,
                              {first, called, rest}};

            snprintf(first, sizeof first, "rank %d", odd);
            snprintf(called, sizeof called, "called ");
            snprintf(rest, sizeof rest, "but rank");
            if (!levels) {
                snprintf(first, sizeof first, "group 'world': rank %d (pid ",
                         odd);
                snprintf(called, sizeof called, ") called %s", calls[i].called);
                snprintf(rest, sizeof rest, ") and 1 other called %s",
                         dscomm_coll_name(calls[i].theirs.coll));
            }
            run_case(&c, 0, 1);
        }
}

/* For a rank to be told on a busy machine, in ms: what it is told shows that it
 * was not by its deadline. */
#define TOLD_MS 30000

/* Which ranks come to the monitored barrier: bits. The others call all_reduce,
 * after late_ms. */
typedef struct {
    int come, timeout_ms, late_ms;
} monitor_t;

static void monitor(job_rank_t *me)
{
    const monitor_t *plan = me->arg;
    const call_t other = {DSCOMM_COLL_ALL_REDUCE, 5, DSCOMM_INT32, DSCOMM_SUM,
                          0};
    dscomm_group_t *world;
    dscomm_status_t status;
    double started;

    if (job_init(me, &world) < 0)
        return;
    for (int i = 0; i < 3; i++)
        dscomm_barrier(world, NULL);
    dscomm_monitored_barrier(world, TOLD_MS);
    started = job_now_ms();
    if (plan->come >> me->rank & 1) {
        status = dscomm_monitored_barrier(world, job_slowly(plan->timeout_ms));
    } else {
        job_sleep_ms(job_slowly(plan->late_ms));
        me->report->value = (int64_t)(job_now_ms() - started);
        status = make_and_wait(world, &other, 0);
    }
    job_tell(me, status, started);
    dscomm_finalize(world);
}

/* Whether a rank came when those in the barrier were about to give up: the
 * machine was busy. */
static int came_too_late(const job_t *job, const monitor_t *plan)
{
    for (int r = 0; r < RANKS; r++)
        if (job->reports[r].value > job_slowly(plan->timeout_ms) - 1500)
            return 1;
    return 0;
}

/* 0: some ranks came too late, so that longer times are needed. */
static int run_monitored(const monitor_t *plan, int last)
{
    static const char *const words[] = {
        "called all_reduce(count 5, int32, sum)",
        "called dscomm_monitored_barrier", NULL};

    job_t job;
    int passed = job_run(&job, RANKS, job_slowly(5000), monitor, (void *)plan,
                         TOLD_MS + 2 * plan->late_ms);

    for (int r = 0; r < RANKS; r++)
        passed &=
            job_was_told(&job, r, DSCOMM_ERR_MISMATCH,
                         TOLD_MS + 2 * plan->late_ms, words) &&
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

/* One cause, one status: of those in the barrier, too. The last call comes
 * between looks that are far apart, but before the barrier ends, after 6 s. */
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

/* Rank 0 leaves while the others want something of it. */
static void leave_early(job_rank_t *me)
{
    const call_t *call = me->arg;
    dscomm_group_t *world;
    dscomm_status_t status = DSCOMM_OK;
    double started;

    if (job_init(me, &world) < 0)
        return;
    started = job_now_ms();
    if (me->rank)
        status = make_and_wait(world, call, me->rank == 2);
    for (int i = 0; me->rank && i < 3 && status == DSCOMM_OK; i++)
        status = dscomm_barrier(world, NULL);
    if (status < 0) {
        job_tell(me, status, started);
        dscomm_finalize(world);
    } else {
        job_tell(me, dscomm_finalize(world), started);
    }
}

static void run_leaving(call_t call)
{
    const char *name = dscomm_coll_name((dscomm_coll_t)call.coll);
    char called[32];
    const char *const words[] = {"rank 0 (pid ", "called dscomm_finalize()",
                                 called, NULL};
    job_t job;
    int passed =
        job_run(&job, RANKS, job_slowly(5000), leave_early, &call, 8000);

    snprintf(called, sizeof called, "called %s(", name);
    for (int r = 0; r < RANKS; r++)
        passed &= was_told(&job, r, words);
    job_ok(&job, passed, "%s, but rank 0 leaves", name);
}

/* A call of rank `odd` with root 1, of the others with root 0. Bits of must:
 * the ranks that wait for one which disagrees, and so are told in that call;
 * by which algorithm the ranks wait for each other is shm's own affair, and
 * others may be told later. */
typedef struct {
    int coll;
    size_t count;
    int odd, must;
} root_case_t;

/* other_status: of the call itself; status: of the first that failed. */
static void run_rank_root(job_rank_t *me)
{
    const root_case_t *c = me->arg;
    const call_t call = {c->coll, c->count, DSCOMM_INT8, DSCOMM_MAX,
                         me->rank == c->odd};
    const char *algorithm = "";
    dscomm_group_t *world;
    dscomm_status_t status;
    double started;

    if (job_init(me, &world) < 0)
        return;
    started = job_now_ms();
    dscomm_group_algorithm(world, (dscomm_coll_t)c->coll, DSCOMM_INT8,
                           DSCOMM_MAX, c->count, 0, &algorithm);
    me->report->value = strcmp(algorithm, "native") == 0;
    status = make_call(world, &call, NULL);
    me->report->other_status = status;
    if (status == DSCOMM_OK)
        status = dscomm_barrier(world, NULL);
    job_tell(me, status, started);
    dscomm_finalize(world);
}

static void run_root_case(const root_case_t *c)
{
    const char *name = dscomm_coll_name(c->coll);
    const char *const words[] = {name, "root 0", "root 1", NULL};
    job_t job;
    int passed = job_run(&job, ROOT_RANKS, job_slowly(5000), run_rank_root,
                         (void *)c, 8000);

    for (int r = 0; r < ROOT_RANKS; r++) {
        const job_report_t *report = &job.reports[r];

        passed &= report->other_status == DSCOMM_ERR_MISMATCH ||
                  (report->other_status == DSCOMM_OK &&
                   !(report->value && c->must >> r & 1));
        passed &= was_told(&job, r, words);
    }
    job_ok(&job, passed, "%s of %zu with root 1 on rank %d", name, c->count,
           c->odd);
}

/* What <dscomm/collective.h> says of roots that differ. */
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
    run_case_v(DSCOMM_COLL_GATHER_V);
    run_case_v(DSCOMM_COLL_SCATTER_V);
    run_case_v(DSCOMM_COLL_ALL_TO_ALL_V);
    run_leaving((call_t)SUM(5));
    run_leaving((call_t)SUM(90000));
    run_leaving((call_t){DSCOMM_COLL_BARRIER, 0, 0, 0, 0});
    run_leaving((call_t){DSCOMM_COLL_BROADCAST, 9, DSCOMM_INT32, 0, 1});
    is_int(job_leftovers(), 0, "nothing is left of any job");
    return tap_done();
}
