/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedules of the model of dscomm perf compared with those that the
 * library builds for all ranks: messages and bytes of the busiest rank and way,
 * bytes that reductions and copies touch, and the longest way of dependent
 * messages. */
#include "config.h"

#include "lib/base/types.h"
#include "tests/lib/schedule/find.h"
#include "tests/tap.h"
#include "tools/perf/model.h"

#include <dscomm/dscomm.h>
#include <math.h>

#include "lib/schedule/choice.h"

/* Counts of the busiest rank; shared: bytes on the busiest node's link. */
typedef struct {
    double messages, bytes, reduced, copied, shared;
} load_t;

/* The schedules of all ranks. */
typedef struct {
    int ranks;
    dscomm_schedule_t **all;
    dscomm_nodes_t nodes;
} job_t;

static void job_begin(job_t *job, int ranks, int local)
{
    job->ranks = ranks;
    job->all = g_new0(dscomm_schedule_t *, ranks);
    dscomm_priv_nodes_one(ranks, &job->nodes);
    for (int r = 0; r < ranks; r++) {
        job->nodes.node[r] = r / local;
        job->nodes.local[r] = r % local;
    }
    job->nodes.count = (ranks + local - 1) / local;
}

static void job_build(job_t *job, int coll, const char *name, double bytes)
{
    static char buffer[64];
    const bool parts = dscomm_priv_coll_has(coll, SHAPE_ALL);
    dscomm_coll_args_t args = {.coll = coll,
                               .dtype = DSCOMM_FLOAT32,
                               .op = DSCOMM_SUM,
                               .count = (size_t)bytes / sizeof(float) /
                                        (parts ? (size_t)job->ranks : 1),
                               .element = sizeof(float),
                               .send = buffer,
                               .recv = buffer + 32,
                               .factor = 1.0};

    for (int r = 0; r < job->ranks; r++)
        job->all[r] = dscomm_priv_schedule_new(
            find_algorithm(coll, name), &args, r, job->ranks,
            job->nodes.count > 1 ? &job->nodes : NULL,
            dscomm_priv_choice_default);
}

static void job_discard(job_t *job)
{
    for (int r = 0; r < job->ranks; r++)
        dscomm_priv_schedule_free(job->all[r]);
}

static void job_end(job_t *job)
{
    dscomm_priv_nodes_clear(&job->nodes);
    g_free(job->all);
}

/* Whether a step only announces a long message. */
static bool is_header(const dscomm_step_t *step)
{
    return step->has_header && !step->bytes && step->total;
}

/* Bytes that a rank's steps move; far: between nodes only. */
static load_t rank_load(const job_t *job, int rank, bool far)
{
    const dscomm_schedule_t *schedule = job->all[rank];
    const int *node = job->nodes.node;
    double messages[2] = {0}, bytes[2] = {0};
    load_t load = {0};

    for (uint32_t i = 0; i < schedule->chains[schedule->nchains]; i++) {
        const dscomm_step_t *step = &schedule->steps[i];
        const int way = step->kind == STEP_RECV;

        if (step->kind == STEP_REDUCE)
            load.reduced += (double)(step->nsources + 1) * (double)step->bytes *
                            sizeof(float);
        else if (step->kind == STEP_COPY)
            load.copied += 2.0 * (double)step->bytes;
        else if ((!far || node[step->peer] != node[rank]) && !is_header(step)) {
            messages[way]++;
            bytes[way] += (double)step->bytes;
        }
    }
    load.messages = MAX(messages[0], messages[1]);
    load.bytes = MAX(bytes[0], bytes[1]);
    return load;
}

/* Returns the bytes between nodes, of the busiest node and way. */
static double node_bytes(const job_t *job)
{
    const int *node = job->nodes.node;
    double *bytes = g_new0(double, 2 * job->nodes.count), most = 0;

    for (int r = 0; r < job->ranks; r++) {
        const dscomm_schedule_t *schedule = job->all[r];

        for (uint32_t i = 0; i < schedule->chains[schedule->nchains]; i++) {
            const dscomm_step_t *step = &schedule->steps[i];

            if (step->kind <= STEP_RECV && node[step->peer] != node[r])
                bytes[2 * node[r] + step->kind] += (double)step->bytes;
        }
    }
    for (int i = 0; i < 2 * job->nodes.count; i++)
        most = MAX(most, bytes[i]);
    g_free(bytes);
    return most;
}

/* The model's rank of two_level is a leader: others may have more messages, but
 * fewer bytes. */
static load_t job_load(const job_t *job, bool far, bool leader)
{
    load_t most = {.shared = node_bytes(job)};

    for (int r = 0; r < (leader ? 1 : job->ranks); r++) {
        const load_t load = rank_load(job, r, far);

        most.messages = MAX(most.messages, load.messages);
        most.bytes = MAX(most.bytes, load.bytes);
        most.reduced = MAX(most.reduced, load.reduced);
        most.copied = MAX(most.copied, load.copied);
    }
    return most;
}

/* Counts by the model, for its rank. */
static load_t model_load(const perf_schedule_t *schedule, bool far)
{
    double messages[2] = {0}, bytes[2] = {0}, shared[2] = {0};
    const double pieces = (double)schedule->pieces;
    load_t load = {0};

    for (guint i = 0; i < schedule->rounds->len; i++) {
        const perf_round_t *round =
            &g_array_index(schedule->rounds, perf_round_t, i);
        const double times = pieces * round->repeat;
        const double count = (far ? 0 : round->near) + round->far;

        for (int way = 0; way < 2; way++)
            if (round->ways & 1 << way) {
                messages[way] += times * count;
                bytes[way] += times * count * round->bytes;
                shared[way] += times * round->far * round->share * round->bytes;
            }
        load.reduced += times * round->reduced;
        load.copied += times * round->copied;
    }
    load.messages = MAX(messages[0], messages[1]);
    load.bytes = MAX(bytes[0], bytes[1]);
    load.shared = MAX(shared[0], shared[1]);
    return load;
}

static bool is_near(double got, double want)
{
    return fabs(got - want) <= 0.01 * want + 8;
}

static bool compare(const char *what, load_t got, load_t want, bool shared)
{
    const bool same = is_near(got.messages, want.messages) &&
                      is_near(got.bytes, want.bytes) &&
                      is_near(got.reduced, want.reduced) &&
                      is_near(got.copied, want.copied) &&
                      (is_near(got.shared, want.shared) || !shared);

    if (!same)
        printf("# %s: messages %.0f, want %.0f; bytes %.0f, want %.0f; reduced "
               "%.0f, want %.0f; copied %.0f, want %.0f; shared %.0f, want "
               "%.0f\n",
               what, got.messages, want.messages, got.bytes, want.bytes,
               got.reduced, want.reduced, got.copied, want.copied, got.shared,
               want.shared);
    return same;
}

/* Ranks that carry out a chain, without time for anything but the way of a
 * message, which is 1. */
typedef struct {
    const job_t *job;
    GArray **sent; /* of each pair: when messages were sent */
    guint *taken; /* of each pair: messages that were waited for */
    uint32_t *next; /* step of each rank */
    double *time;
    bool *posted; /* the round's messages were sent */
} walk_t;

static int walk_pair(const walk_t *walk, int from, int to)
{
    return from * walk->job->ranks + to;
}

/* Sends the messages of a round of so many steps. */
static void walk_send(walk_t *walk, int rank, const dscomm_step_t *step,
                      uint32_t steps)
{
    for (; steps--; step++)
        if (step->kind == STEP_SEND)
            g_array_append_val(walk->sent[walk_pair(walk, rank, step->peer)],
                               walk->time[rank]);
}

/* Waits for the messages of that round. false: one was not sent yet. */
static bool walk_wait(walk_t *walk, int rank, const dscomm_step_t *step,
                      uint32_t steps)
{
    double end = walk->time[rank];

    for (; steps--; step++) {
        const int pair = walk_pair(walk, step->peer, rank);
        double sent;

        if (step->kind == STEP_SEND)
            end = MAX(end, walk->time[rank] + 1);
        if (step->kind != STEP_RECV)
            continue;
        if (walk->taken[pair] == walk->sent[pair]->len)
            return false;
        sent = g_array_index(walk->sent[pair], double, walk->taken[pair]++);
        end = MAX(end, sent + 1);
    }
    walk->time[rank] = end;
    return true;
}

/* Carries out a rank's round as far as possible. */
static bool walk_step(walk_t *walk, int rank)
{
    const dscomm_schedule_t *schedule = walk->job->all[rank];
    const dscomm_step_t *step = &schedule->steps[walk->next[rank]];
    const size_t pairs = (size_t)(walk->job->ranks * walk->job->ranks);
    const uint32_t left = schedule->chains[1] - walk->next[rank];
    const bool first = !walk->posted[rank];
    guint *taken;
    uint32_t steps = 0;

    if (!left)
        return false;
    while (steps < left && !step[steps].last)
        steps++;
    steps += steps < left;
    if (first)
        walk_send(walk, rank, step, steps);
    taken = g_new(guint, pairs);
    memcpy(taken, walk->taken, pairs * sizeof *taken);
    walk->posted[rank] = !walk_wait(walk, rank, step, steps);
    if (walk->posted[rank])
        memcpy(walk->taken, taken, pairs * sizeof *taken);
    else
        walk->next[rank] += steps;
    g_free(taken);
    return first || !walk->posted[rank];
}

/* Returns the messages on the longest way. */
static double job_latency(const job_t *job)
{
    const int ranks = job->ranks;
    walk_t walk = {.job = job,
                   .sent = g_new(GArray *, ranks * ranks),
                   .taken = g_new0(guint, ranks * ranks),
                   .next = g_new0(uint32_t, ranks),
                   .time = g_new0(double, ranks),
                   .posted = g_new0(bool, ranks)};
    double end = 0;

    for (int i = 0; i < ranks * ranks; i++)
        walk.sent[i] = g_array_new(FALSE, FALSE, sizeof(double));
    for (bool moves = true; moves;) {
        moves = false;
        for (int r = 0; r < ranks; r++)
            moves |= walk_step(&walk, r);
    }
    for (int r = 0; r < ranks; r++)
        end = MAX(end, walk.time[r]);
    for (int i = 0; i < ranks * ranks; i++)
        g_array_free(walk.sent[i], TRUE);
    g_free(walk.sent);
    g_free(walk.taken);
    g_free(walk.next);
    g_free(walk.time);
    g_free(walk.posted);
    return end;
}

/* Compares the longest way of messages that wait for each other. The model may
 * have one more each way, because the last branch of a tree may be short; and
 * more in two_level, whose leader need not wait for pieces one by one. */
static bool compare_latency(const job_t *job, int coll, const char *name,
                            const perf_layout_t *layout, const char *what,
                            double bytes)
{
    const perf_cost_t one = {.pieces = {{1, 0}}, .split = INFINITY};
    const perf_model_t model = {
        .near = {one, one, 0},
        .far = {one, one, 0},
    };
    const int more = strcmp(name, "two_level") == 0  ? 8
                     : job->ranks & (job->ranks - 1) ? 2
                                                     : 0;
    const double got = perf_model_time(&model, coll, name, layout, bytes);
    const double want = job_latency(job);

    if (got > want - 0.5 && got < want + more + 0.5)
        return true;
    printf("# %s: %g messages on the longest way, want %g\n", what, got, want);
    return false;
}

/* Compares one call; true as well if the model has no schedule for it. */
static bool try(job_t *job, int coll, const char *name, int local, double bytes)
{
    const perf_layout_t layout = {
        .ranks = job->ranks, .local = local, .rails = 1};
    const bool leader = strcmp(name, "two_level") == 0;
    /* The model's root also has the longest hop of the ring. */
    const bool is_shared = strcmp(name, "scatter_all_gather") != 0;
    char what[32];
    perf_schedule_t schedule;
    bool same;

    if (!perf_schedule_init(&schedule, coll, name, &layout, bytes))
        return true;
    snprintf(what, sizeof what, "%.0f bytes", bytes);
    job_build(job, coll, name, bytes);
    same = compare(what, model_load(&schedule, false),
                   job_load(job, false, leader), is_shared);
    if (local < job->ranks && is_shared)
        same &= compare(what, model_load(&schedule, true),
                        job_load(job, true, leader), true);
    if (job->all[0]->nchains == 1)
        same &= compare_latency(job, coll, name, &layout, what, bytes);
    job_discard(job);
    perf_schedule_clear(&schedule);
    return same;
}

static void try_sizes(job_t *job, int coll, const char *name, int local)
{
    const double sizes[] = {0, 64, 4096, 65536, 1048576, 16777216};
    const bool is_sized = coll != DSCOMM_COLL_BARRIER;
    bool same = true;

    for (size_t k = is_sized; k < (is_sized ? G_N_ELEMENTS(sizes) : 1); k++)
        same &= try(job, coll, name, local, sizes[k] * job->ranks);
    ok(same, "%s by %s, %d ranks, %d a node",
       dscomm_coll_name((dscomm_coll_t)coll), name, job->ranks, local);
}

static void try_all(int ranks, int local)
{
    const char *name;
    int coll;
    job_t job;

    job_begin(&job, ranks, local);
    for (size_t i = 0; (name = perf_model_algorithm(i, &coll)); i++)
        try_sizes(&job, coll, name, local);
    job_end(&job);
}

/* The model has each algorithm that the library has, but for _v. */
static void test_table(void)
{
    const dscomm_algorithm_t *row = dscomm_priv_algorithms;
    const char *name;
    int coll;

    for (; row->name; row++) {
        size_t i = 0;

        if (g_str_has_suffix(dscomm_coll_name((dscomm_coll_t)row->coll), "_v"))
            continue;
        while ((name = perf_model_algorithm(i, &coll)) &&
               (coll != row->coll || strcmp(name, row->name) != 0))
            i++;
        ok(name != NULL, "%s by %s is in the model",
           dscomm_coll_name((dscomm_coll_t)row->coll), row->name);
    }
}

int main(void)
{
    static const int all[] = {2, 3, 4, 5, 8, 13, 16, 32};

    test_table();
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        try_all(all[i], all[i]);
    try_all(8, 4);
    try_all(16, 4);
    try_all(16, 1);
    try_all(32, 8);
    return tap_done();
}
