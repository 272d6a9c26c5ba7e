/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressors that move to another group: training by 1-bit all_reduce goes on
 * after ranks were killed, or with one more rank. The weights are those of a
 * simulation in this file, which keeps one server error for each element,
 * whatever rank serves it. */
#include "config.h"

#include "tests/backends/inject-memory.h"
#include "tests/backends/job.h"
#include "tests/compression/compress.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#define RANKS 4
#define STEPS 24
#define COUNT_MOST 20000
#define LIMIT_MS 120000
#define DEATHS_MOST 2

/* A rank dies in a step: before its call, or after it has begun the call and
 * tested its work so many times. */
#define BEFORE_CALL (-1)
typedef struct {
    int rank, step, tests;
} death_t;

typedef struct {
    const char *name;
    size_t count;
    dscomm_compressor_attr_t attr;
    int deaths;
    death_t death[DEATHS_MOST];
} plan_t;

/* The report of the ranks, in shared memory. */
typedef struct {
    float weights[RANKS][COUNT_MOST];
    /* for each death: the calls that are complete, and whether the rank's last
     * call had failed, and is complete nowhere */
    uint32_t complete[RANKS][DEATHS_MOST];
    int lost[RANKS][DEATHS_MOST];
} results_t;

static results_t *results;

/* A rank's training. */
typedef struct {
    const plan_t *plan;
    job_rank_t *me;
    dscomm_group_t *group;
    dscomm_compressor_t *c;
    float *weights, gradient[COUNT_MOST];
    int64_t step;
    int deaths; /* seen so far */
} trainer_t;

static void gradient_make(const float *weights, size_t count, int rank,
                          int64_t step, float *ret_gradient)
{
    for (size_t i = 0; i < count; i++)
        ret_gradient[i] =
            noise(i, (uint64_t)(rank * 1000 + step)) + 0.25f * weights[i];
}

static void weights_change(float *weights, const float *mean, size_t count)
{
    for (size_t i = 0; i < count; i++)
        weights[i] -= 0.1f * mean[i];
}

static void trainer_die(trainer_t *t, const death_t *death)
{
    dscomm_work_t *work = NULL;

    if (death->tests != BEFORE_CALL)
        dscomm_compressor_all_reduce(t->c, t->gradient, DSCOMM_FLOAT32, &work);
    for (int i = 0; i < death->tests; i++)
        dscomm_work_test(work);
    raise(SIGKILL);
}

static dscomm_status_t trainer_step(trainer_t *t)
{
    const plan_t *plan = t->plan;
    dscomm_status_t status;

    gradient_make(t->weights, plan->count, t->me->rank, t->step, t->gradient);
    for (int d = 0; d < plan->deaths; d++)
        if (plan->death[d].rank == t->me->rank &&
            plan->death[d].step == t->step)
            trainer_die(t, &plan->death[d]);
    status =
        dscomm_compressor_all_reduce(t->c, t->gradient, DSCOMM_FLOAT32, NULL);
    if (status < 0)
        return status;
    weights_change(t->weights, t->gradient, plan->count);
    t->step++;
    return DSCOMM_OK;
}

/* Gives all ranks the weights of the first one that has made all steps. */
static dscomm_status_t trainer_catch_up(trainer_t *t, int64_t complete)
{
    const int rank = dscomm_group_rank(t->group);
    int root = t->step == complete ? rank : INT32_MAX;
    dscomm_status_t status = dscomm_all_reduce(t->group, &root, &root, 1,
                                               DSCOMM_INT32, DSCOMM_MIN, NULL);

    t->step = complete;
    return status < 0 ? status
                      : dscomm_broadcast(t->group, t->weights, t->plan->count,
                                         DSCOMM_FLOAT32, root, NULL);
}

static dscomm_status_t trainer_go_on(trainer_t *t)
{
    dscomm_compressor_info_t info = {.size = sizeof info};
    dscomm_group_t *smaller;
    float *worker, *server;
    int lost;
    dscomm_status_t status = dscomm_group_shrink(t->group, NULL, &smaller);

    if (status < 0)
        return status;
    lost = dscomm_compressor_errors(t->c, &worker, &server) == DSCOMM_ERR_STATE;
    status = dscomm_compressor_rebind(t->c, smaller);
    if (status < 0)
        return status;
    t->group = smaller;
    dscomm_compressor_info(t->c, &info);
    results->lost[t->me->rank][t->deaths] = lost && t->step == info.calls;
    results->complete[t->me->rank][t->deaths++] = info.calls;
    return trainer_catch_up(t, info.calls);
}

static void train(job_rank_t *me)
{
    static trainer_t t;
    dscomm_status_t status;

    if (job_init(me))
        return;
    t = (trainer_t){.plan = me->arg,
                    .me = me,
                    .group = me->world,
                    .weights = results->weights[me->rank]};
    status =
        dscomm_compressor_create(t.group, t.plan->count, &t.plan->attr, &t.c);
    while (status == DSCOMM_OK && t.step < STEPS) {
        status = trainer_step(&t);
        if (status < 0)
            status = trainer_go_on(&t);
    }
    if (status == DSCOMM_OK)
        status = dscomm_barrier(t.group, NULL);
    dscomm_compressor_free(t.c);
    job_leave(me, status);
}

/* The simulation. */
typedef struct {
    const dscomm_compressor_attr_t *attr;
    size_t count, total, chunk;
    int ranks[RANKS], n; /* the world's numbers of those that take part */
    float worker[RANKS][COUNT_MOST], server[COUNT_MOST];
    float sent[RANKS][COUNT_MOST], weights[COUNT_MOST];
} simulation_t;

static size_t round_to(size_t count, size_t unit)
{
    return (count + unit - 1) / unit * unit;
}

static size_t common_multiple(size_t a, size_t b)
{
    size_t multiple = a;

    while (multiple % b)
        multiple += a;
    return multiple;
}

/* Sets the ranks that take part, bits. Errors of padding that is dropped are
 * lost, those of new padding are zero. */
static void simulation_divide(simulation_t *s, unsigned bits)
{
    size_t n, before = s->total;

    s->n = 0;
    for (int r = 0; r < RANKS; r++)
        if (bits >> r & 1)
            s->ranks[s->n++] = r;
    n = (size_t)s->n;
    s->total = s->count;
    s->chunk = round_to((s->count + n - 1) / n, 1024);
    if (s->attr->geometry == DSCOMM_GEOMETRY_DEEPSPEED) {
        s->total = round_to(s->count, n * common_multiple(n, 8));
        s->chunk = s->total / n;
    }
    for (size_t i = s->total; i < before; i++) {
        s->server[i] = 0;
        for (int r = 0; r < RANKS; r++)
            s->worker[r][i] = 0;
    }
}

static size_t part_begin(const simulation_t *s, int position)
{
    const size_t at = (size_t)position * s->chunk;

    return at < s->total ? at : s->total;
}

static void server_clear(simulation_t *s, int rank)
{
    for (int j = 0; j < s->n; j++)
        for (size_t i = part_begin(s, j);
             s->ranks[j] == rank && i < part_begin(s, j + 1); i++)
            s->server[i] = 0;
}

static float mean_square_root(const float *v, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)v[i] * v[i];
    return (float)sqrt(sum) / (float)sqrt((double)count);
}

/* Encodes the values, which become the errors; ret_sent: values as sent. */
static void encode(float *values, size_t count, float *ret_sent)
{
    const float scale = mean_square_root(values, count);

    for (size_t i = 0; i < count; i++) {
        ret_sent[i] = values[i] < 0 ? -scale : scale;
        values[i] -= ret_sent[i];
    }
}

static void simulation_step(simulation_t *s, int64_t step)
{
    static float gradient[COUNT_MOST], mean[COUNT_MOST];
    const float factor = s->attr->sum ? 1 : 1 / (float)s->n;

    for (int k = 0; k < s->n; k++) {
        float *worker = s->worker[s->ranks[k]];

        gradient_make(s->weights, s->count, s->ranks[k], step, gradient);
        for (size_t i = 0; i < s->count; i++)
            worker[i] += gradient[i];
        encode(worker, s->total, s->sent[k]);
    }
    for (size_t i = 0; i < s->total; i++) {
        float sum = 0;

        for (int k = 0; k < s->n; k++)
            sum += s->sent[k][i] * factor;
        s->server[i] += sum;
    }
    for (int j = 0; j < s->n; j++) {
        const size_t from = part_begin(s, j), to = part_begin(s, j + 1);

        if (to > from)
            encode(s->server + from, to - from, mean + from);
    }
    weights_change(s->weights, mean, s->count);
}

/* A rank dies. Survivors whose call is complete nowhere, and who have not kept
 * the errors from before it, begin with zeros. */
static void simulation_remove(simulation_t *s, const plan_t *plan, int d,
                              unsigned *left)
{
    for (int r = 0; r < RANKS; r++) {
        const int dies = r == plan->death[d].rank;
        const int zero = results->lost[r][d] && !plan->attr.recoverable;

        if (!(*left >> r & 1) || (!dies && !zero))
            continue;
        server_clear(s, r);
        memset(s->worker[r], 0, sizeof s->worker[r]);
    }
    *left &= ~(1u << plan->death[d].rank);
    simulation_divide(s, *left);
}

/* Returns the rank that has other weights; -1: none. The survivors agree on
 * which calls are complete. */
static int simulation_compare(const plan_t *plan, unsigned left,
                              const simulation_t *s)
{
    for (int r = 0; r < RANKS; r++) {
        if (!(left >> r & 1))
            continue;
        for (size_t i = 0; i < plan->count; i++)
            if (!(fabsf(results->weights[r][i] - s->weights[i]) < 1e-4f))
                return r;
        for (int d = 0; d < plan->deaths; d++)
            if (results->complete[r][d] != results->complete[s->ranks[0]][d])
                return r;
    }
    return -1;
}

static int agrees(const plan_t *plan, unsigned survivors)
{
    static simulation_t s;
    unsigned left = (1u << RANKS) - 1;
    int d = 0, other;

    s = (simulation_t){.attr = &plan->attr, .count = plan->count};
    simulation_divide(&s, left);
    for (int64_t step = 0; step < STEPS; step++) {
        const int first = __builtin_ctz(survivors);

        for (; d < plan->deaths && results->complete[first][d] == step; d++)
            simulation_remove(&s, plan, d, &left);
        simulation_step(&s, step);
    }
    other = simulation_compare(plan, survivors, &s);
    if (other >= 0)
        printf("# rank %d has other weights, or another number of calls\n",
               other);
    return other < 0 && d == plan->deaths;
}

static void test_deaths(void)
{
    static plan_t plans[] = {
        {"rank 1 dies before a call",
         20000,
         {.recoverable = 1},
         1,
         {{1, 9, BEFORE_CALL}}},
        {"rank 0 dies in a call", 20000, {.recoverable = 1}, 1, {{0, 9, 0}}},
        {"rank 2 dies late in a call",
         20000,
         {.recoverable = 1},
         1,
         {{2, 9, 40}}},
        {"rank 3, which serves nothing, dies in a call",
         3000,
         {.recoverable = 1},
         1,
         {{3, 9, 0}}},
        {"rank 2, then rank 0",
         9000,
         {.recoverable = 1},
         2,
         {{2, 6, 3}, {0, 15, BEFORE_CALL}}},
        {"a sum", 9000, {.recoverable = 1, .sum = 1}, 1, {{1, 9, 2}}},
        {"the geometry of DeepSpeed",
         1000,
         {.recoverable = 1, .geometry = DSCOMM_GEOMETRY_DEEPSPEED},
         2,
         {{1, 6, BEFORE_CALL}, {3, 15, 1}}},
        {"errors that are lost begin at zero",
         20000,
         {.recoverable = 0},
         1,
         {{1, 9, BEFORE_CALL}}},
        {"the same, in a call", 20000, {.recoverable = 0}, 1, {{0, 9, 0}}},
    };

    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
        plan_t *plan = &plans[p];
        unsigned left = (1u << RANKS) - 1;
        job_t job;

        plan->attr.size = sizeof plan->attr;
        for (int d = 0; d < plan->deaths; d++)
            left &= ~(1u << plan->death[d].rank);
        memset(results, 0, sizeof *results);
        job_make(&job, RANKS, job_slowly(60000), train, plan);
        job_start(&job);
        job_join(&job, LIMIT_MS);
        job_ok(&job,
               job_reported(&job, left, DSCOMM_OK, LIMIT_MS, NULL) &&
                   agrees(plan, left),
               "%s", plan->name);
    }
}

/* The last rank joins ranks that have trained without it. */
static void grow(job_rank_t *me)
{
    const plan_t *plan = me->arg;
    const int is_new = me->rank == RANKS - 1;
    static trainer_t t;
    dscomm_status_t status;

    if (job_init(me))
        return;
    t = (trainer_t){
        .plan = plan, .me = me, .weights = results->weights[me->rank]};
    status = dscomm_group_split(me->world, is_new, 0, NULL, &t.group);
    if (status == DSCOMM_OK && !is_new)
        status =
            dscomm_compressor_create(t.group, plan->count, &plan->attr, &t.c);
    while (status == DSCOMM_OK && !is_new && t.step < STEPS / 2)
        status = trainer_step(&t);
    if (status == DSCOMM_OK)
        status = is_new ? dscomm_compressor_create(me->world, plan->count,
                                                   &plan->attr, &t.c)
                        : dscomm_compressor_rebind(t.c, me->world);
    t.group = me->world;
    if (status == DSCOMM_OK)
        status = trainer_catch_up(&t, STEPS / 2);
    while (status == DSCOMM_OK && t.step < STEPS)
        status = trainer_step(&t);
    dscomm_compressor_free(t.c);
    job_leave(me, status);
}

static void test_grow(void)
{
    static plan_t plan = {"", 20000, DSCOMM_COMPRESSOR_ATTR_INIT, 0, {{0}}};
    static simulation_t s;
    job_t job;

    memset(results, 0, sizeof *results);
    s = (simulation_t){.attr = &plan.attr, .count = plan.count};
    simulation_divide(&s, (1u << (RANKS - 1)) - 1);
    for (int64_t step = 0; step < STEPS; step++) {
        if (step == STEPS / 2)
            simulation_divide(&s, (1u << RANKS) - 1);
        simulation_step(&s, step);
    }
    job_run(&job, RANKS, job_slowly(60000), grow, &plan, LIMIT_MS);
    job_ok(
        &job,
        job_all(&job, DSCOMM_OK) &&
            simulation_compare(&plan, (1u << RANKS) - 1, &s) < 0,
        "a rank more, which makes a compressor while the others move theirs");
}

/* Compressors that do not belong together stay where they are; those that do
 * keep their mask. */
static void quarrel(job_rank_t *me)
{
    dscomm_compressor_t *alone = NULL, *all = NULL, *twin = NULL;
    dscomm_group_t *own = NULL, *other = NULL;
    float x[100] = {1};
    uint8_t mask[100];
    int bad = 0;

    memset(mask, 1, sizeof mask);
    if (job_init(me))
        return;
    bad += dscomm_group_split(me->world, me->rank, 0, NULL, &own) != DSCOMM_OK;
    bad += dscomm_group_split(me->world, 0, 0, NULL, &other) != DSCOMM_OK;
    bad += dscomm_onebit_create(own, 100, NULL, &alone) != DSCOMM_OK;
    bad += dscomm_onebit_create(me->world, 100, NULL, &all) != DSCOMM_OK;
    bad += dscomm_onebit_create(me->world, 100, NULL, &twin) != DSCOMM_OK;
    bad += dscomm_compressor_rebind(alone, other) != DSCOMM_ERR_MISMATCH;
    bad += !strstr(dscomm_last_error(), "come of different groups");
    bad += dscomm_compressor_rebind(me->rank ? twin : all, other) !=
           DSCOMM_ERR_MISMATCH;
    bad += !strstr(dscomm_last_error(), "are different ones of their group");
    bad += dscomm_compressor_rebind(me->rank ? alone : all, other) !=
           DSCOMM_ERR_MISMATCH;
    bad += !strstr(dscomm_last_error(), "come of different groups");
    bad += dscomm_compressor_rebind(me->rank == 2 ? NULL : all, other) !=
           DSCOMM_ERR_INVALID;
    bad += !strstr(dscomm_last_error(), "rank 2 says");
    bad += dscomm_compressor_rebind(all, NULL) != DSCOMM_ERR_INVALID;
    /* all of them stay as they were */
    bad += dscomm_compressor_all_reduce(alone, x, DSCOMM_FLOAT32, NULL) != 0;
    bad += dscomm_compressor_all_reduce(all, x, DSCOMM_FLOAT32, NULL) != 0;
    bad += x[3] == 0;
    mask[3] = 0;
    bad += dscomm_compressor_set_mask(all, mask) != DSCOMM_OK;
    bad += dscomm_compressor_rebind(all, other) != DSCOMM_OK;
    bad += dscomm_compressor_all_reduce(all, x, DSCOMM_FLOAT32, NULL) != 0;
    bad += x[3] != 0 || x[4] == 0;
    bad += dscomm_compressor_free(alone) != DSCOMM_OK;
    bad += dscomm_compressor_free(twin) != DSCOMM_OK;
    bad += dscomm_compressor_free(all) != DSCOMM_OK;
    me->report->value = bad;
    job_leave(me, DSCOMM_OK);
}

static void test_quarrels(void)
{
    int bad = 0;
    job_t job;

    job_run(&job, RANKS, job_slowly(60000), quarrel, NULL, LIMIT_MS);
    for (int r = 0; r < RANKS; r++)
        bad += (int)job.reports[r].value;
    job_ok(&job, job_all(&job, DSCOMM_OK) && !bad,
           "compressors that do not belong together stay; a mask moves along");
}

#define REQUESTS 8

/* The memory request of this thread that fails, counted down; 0: none. */
static _Thread_local int failing;

int inject_memory_fails(void)
{
    return failing && !--failing;
}

/* Rank 1 has no memory for its first call, at one request after the other. A
 * call that no rank has completed does not count, and leaves the errors from
 * before it. Returns the number of wrong results. */
static int call_without_memory(job_rank_t *me, int request)
{
    const dscomm_compressor_attr_t attr = {.size = sizeof attr,
                                           .recoverable = 1};
    dscomm_compressor_info_t info = {.size = sizeof info};
    dscomm_group_t *first = NULL, *second = NULL;
    dscomm_compressor_t *c = NULL;
    float x[100], *worker, *server;
    int bad = 0, complete;

    for (size_t i = 0; i < 100; i++)
        x[i] = (float)i;
    bad += dscomm_group_split(me->world, 0, 0, NULL, &first) != DSCOMM_OK;
    bad += dscomm_group_split(me->world, 0, 0, NULL, &second) != DSCOMM_OK;
    bad += dscomm_onebit_create(first, 100, &attr, &c) != DSCOMM_OK;
    failing = me->rank == 1 ? request : 0;
    complete =
        dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, NULL) == DSCOMM_OK;
    failing = 0;
    bad += dscomm_all_reduce(me->world, &complete, &complete, 1, DSCOMM_INT32,
                             DSCOMM_MAX, NULL) != DSCOMM_OK;
    bad += dscomm_compressor_rebind(c, second) != DSCOMM_OK;
    dscomm_compressor_info(c, &info);
    bad += info.calls != (uint32_t)complete;
    bad += dscomm_compressor_errors(c, &worker, &server) != DSCOMM_OK;
    for (size_t i = 0; i < 100 && !complete && !bad; i++)
        bad += worker[i] != 0;
    dscomm_compressor_free(c);
    dscomm_group_free(second);
    dscomm_group_free(first);
    return bad;
}

static void lack_memory(job_rank_t *me)
{
    if (job_init(me))
        return;
    for (int request = 1; request <= REQUESTS; request++)
        if (call_without_memory(me, request))
            me->report->value |= 1 << request;
    job_leave(me, DSCOMM_OK);
}

static void test_memory(void)
{
    int bad = 0;
    job_t job;

    job_run(&job, RANKS, job_slowly(60000), lack_memory, NULL, LIMIT_MS);
    for (int r = 0; r < RANKS; r++) {
        bad |= (int)job.reports[r].value;
        if (job.reports[r].value)
            printf("# rank %d: bits of failed requests: %#x\n", r,
                   (unsigned)job.reports[r].value);
    }
    job_ok(&job, job_all(&job, DSCOMM_OK) && !bad,
           "a call that fails for want of memory does not count");
}

int main(void)
{
    inject_memory_prepare();
    results = mmap(NULL, sizeof *results, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED)
        bail("no memory: %s", strerror(errno));
    test_deaths();
    test_grow();
    test_quarrels();
    test_memory();
    return job_done();
}
