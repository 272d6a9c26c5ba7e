/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm with a rank that dies, falls silent or is slow, at each of
 * its messages, and with one that makes another call than the others. */
#include "config.h"

#include "tests/lib/case.h"
#include "tests/tap.h"

#include <ctype.h>
#include <string.h>

static const int ranks_tried[] = {2, 3, 4, 5, 8};

static int is_reduction(int coll)
{
    return coll == DSCOMM_COLL_REDUCE || coll == DSCOMM_COLL_ALL_REDUCE ||
           coll == DSCOMM_COLL_REDUCE_SCATTER ||
           coll == DSCOMM_COLL_REDUCE_SCATTER_V;
}

static int has_root(int coll)
{
    return coll == DSCOMM_COLL_BROADCAST || coll == DSCOMM_COLL_REDUCE ||
           coll == DSCOMM_COLL_GATHER || coll == DSCOMM_COLL_GATHER_V ||
           coll == DSCOMM_COLL_SCATTER || coll == DSCOMM_COLL_SCATTER_V;
}

static case_t make_case(const dscomm_algorithm_t *algorithm, int ranks,
                        int root, size_t count)
{
    return (case_t){
        .algorithm = algorithm,
        .ranks = ranks,
        .root = has_root(algorithm->coll) ? root % ranks : -1,
        .dtype = DSCOMM_FLOAT32,
        .op = is_reduction(algorithm->coll) ? DSCOMM_SUM : -1,
        .count = count,
    };
}

static int fits(const case_t *c)
{
    dscomm_coll_args_t args = {.coll = c->algorithm->coll,
                               .dtype = c->dtype,
                               .op = c->op,
                               .count = c->count};

    return !c->algorithm->fits || c->algorithm->fits(&args, c->ranks);
}

/* One try, and what is wrong with it. */
typedef struct {
    case_t c;
    loop_plan_t plan;
    loop_t *loop;
    stage_t stage;
    char why[1024];
} try_t;

typedef struct {
    unsigned tried, failed;
} tally_t;

static void count(const try_t *t, tally_t *tally)
{
    const case_t *c = &t->c;

    tally->tried++;
    if (!*t->why || tally->failed++ >= 3)
        return;
    printf("# %s %s of %zu, %d ranks, root %d; rank %d from operation %u on, "
           "eager %d, seed %llu: %s\n",
           dscomm_coll_name((dscomm_coll_t)c->algorithm->coll),
           c->algorithm->name, c->count, c->ranks, c->root, t->plan.culprit,
           t->plan.after, t->plan.eager, (unsigned long long)t->plan.seed,
           t->why);
}

static void begin(try_t *t)
{
    *t->why = 0;
    t->plan.ranks = t->c.ranks;
    t->loop = loop_new(&t->plan);
    case_begin(&t->c, t->loop, 1 + t->plan.seed % 3, &t->stage);
}

/* Others learn of a failure from the group; then nothing may be left. */
static void end(try_t *t)
{
    for (int r = 0; r < t->c.ranks; r++) {
        dscomm_run_t *run = t->stage.runs[r];

        if (run->status == DSCOMM_OK)
            continue;
        dscomm_priv_run_cancel(run, DSCOMM_ERR_PEER_FAILED);
        if (run->status >= 0 && !*t->why)
            snprintf(t->why, sizeof t->why,
                     "rank %d: cancelled, it is not over", r);
    }
    if (loop_requests(t->loop) && !*t->why)
        snprintf(t->why, sizeof t->why, "%d requests are left over",
                 loop_requests(t->loop));
    case_end(&t->c, &t->stage);
    loop_free(t->loop);
}

/* "... rank 3 ..." */
static int names_rank(const char *text, int rank)
{
    char word[32];
    size_t length = (size_t)snprintf(word, sizeof word, "rank %d", rank);

    for (; (text = strstr(text, word)); text += length)
        if (!isdigit((unsigned char)text[length]))
            return 1;
    return 0;
}

/* Who waits for whom, a bit each, by what the runs say themselves. */
static unsigned waits_for(const dscomm_run_t *run)
{
    char text[256], *c;
    unsigned peers = 0;

    if (run->status != DSCOMM_IN_PROGRESS)
        return 0;
    dscomm_priv_run_explain(run, text, sizeof text);
    for (c = strstr(text, "waits for"); c && *c; c++)
        if (isdigit((unsigned char)*c))
            peers |= 1u << strtoul(c, &c, 10), c--;
    return peers;
}

/* From rank, going on to those who are waited for, one gets to the culprit. */
static int leads_to(const try_t *t, int rank, int culprit)
{
    unsigned seen = 1u << rank, before = 0;

    while (seen != before) {
        before = seen;
        for (int r = 0; r < t->c.ranks; r++)
            if (before >> r & 1)
                seen |= waits_for(t->stage.runs[r]);
    }
    return seen >> culprit & 1;
}

/* A rank that has returned OK has the right result. */
static int check_ended(try_t *t, int rank)
{
    return t->stage.runs[rank]->status != DSCOMM_OK ||
           case_check_rank(&t->c, &t->stage, rank, t->why, sizeof t->why);
}

/* All who wait for the dead fail with its name. */
static void check_dead(try_t *t)
{
    int stuck = 0, failed = 0;

    for (int r = 0; r < t->c.ranks && !*t->why; r++) {
        const dscomm_run_t *run = t->stage.runs[r];

        if (r == t->plan.culprit || !check_ended(t, r))
            continue;
        stuck += run->status == DSCOMM_IN_PROGRESS;
        failed += run->status < 0;
        if (waits_for(run) >> t->plan.culprit & 1)
            snprintf(t->why, sizeof t->why, "rank %d waits for the dead", r);
        if (run->status < 0 && (run->status != DSCOMM_ERR_PEER_FAILED ||
                                !names_rank(run->text, t->plan.culprit)))
            snprintf(t->why, sizeof t->why, "rank %d: %s: %s", r,
                     dscomm_status_name(run->status), run->text);
    }
    if (stuck && !failed && !*t->why)
        snprintf(t->why, sizeof t->why, "%d ranks wait, none has failed",
                 stuck);
}

/* Whoever cannot go on knows whose fault it is, or who knows. */
static void check_silent(try_t *t)
{
    for (int r = 0; r < t->c.ranks && !*t->why; r++) {
        const dscomm_run_t *run = t->stage.runs[r];

        if (!check_ended(t, r))
            return;
        if (run->status < 0)
            snprintf(t->why, sizeof t->why, "rank %d failed: %s", r, run->text);
        else if (run->status == DSCOMM_IN_PROGRESS && r != t->plan.culprit &&
                 !leads_to(t, r, t->plan.culprit))
            snprintf(t->why, sizeof t->why,
                     "rank %d waits, and does not know for the culprit", r);
    }
}

static void check_slow(try_t *t)
{
    if (case_check(&t->c, &t->stage, t->why, sizeof t->why))
        *t->why = 0;
    if (!*t->why && loop_pending(t->loop))
        snprintf(t->why, sizeof t->why, "messages are left over");
}

static const struct {
    int fault;
    const char *name;
    void (*check)(try_t *t);
} faults[] = {
    {LOOP_DEAD, "a dead rank", check_dead},
    {LOOP_SILENT, "a silent rank", check_silent},
    {LOOP_SLOW, "a slow rank", check_slow},
};

#define NFAULTS (sizeof faults / sizeof faults[0])

/* Messages that culprit starts where all goes well. */
static unsigned count_operations(const case_t *c, int culprit)
{
    static try_t t;
    unsigned operations;

    t.c = *c;
    t.plan = (loop_plan_t){.culprit = culprit};
    begin(&t);
    case_drive(&t.c, t.loop, &t.stage);
    operations = loop_started(t.loop, culprit);
    end(&t);
    return operations;
}

static void try_fault(const case_t *c, size_t fault, int culprit,
                      unsigned after, tally_t *tally)
{
    static try_t t;

    t.c = *c;
    t.plan = (loop_plan_t){.seed = tally->tried,
                           .eager = tally->tried % 2,
                           .fault = faults[fault].fault,
                           .culprit = culprit,
                           .after = after};
    begin(&t);
    case_drive(&t.c, t.loop, &t.stage);
    faults[fault].check(&t);
    end(&t);
    count(&t, tally);
}

static void try_culprits(const case_t *c, tally_t *tallies)
{
    if (!fits(c))
        return;
    for (int culprit = 0; culprit < c->ranks; culprit++) {
        unsigned operations = count_operations(c, culprit);

        for (unsigned after = 0; after < operations; after++)
            for (size_t f = 0; f < NFAULTS; f++)
                try_fault(c, f, culprit, after, &tallies[f]);
    }
}

/* Several chains at a time: two of the messages only, since it takes long. */
static void try_long(const dscomm_algorithm_t *algorithm, tally_t *tallies)
{
    case_t c = make_case(algorithm, 3, 1, 300000);
    unsigned operations;

    if (!fits(&c) || algorithm->coll == DSCOMM_COLL_BARRIER)
        return;
    operations = count_operations(&c, 1);
    for (size_t f = 0; f < NFAULTS; f++)
        try_fault(&c, f, 1, operations * (unsigned)(f + 1) / 5, &tallies[f]);
}

static void test_faults(const dscomm_algorithm_t *algorithm)
{
    const size_t sizes = algorithm->coll == DSCOMM_COLL_BARRIER ? 1 : 2;
    tally_t tallies[NFAULTS] = {{0}};

    for (size_t i = 0; i < sizeof ranks_tried / sizeof ranks_tried[0]; i++)
        for (size_t size = 0; size < sizes; size++) {
            const int ranks = ranks_tried[i];
            case_t c = make_case(algorithm, ranks, 0, size ? 600 : 7);

            try_culprits(&c, tallies);
            if (!has_root(algorithm->coll))
                continue;
            c.root = ranks - 1;
            try_culprits(&c, tallies);
        }
    try_long(algorithm, tallies);
    for (size_t f = 0; f < NFAULTS; f++)
        ok(!tallies[f].failed, "%s %s: %s (%u tries)",
           dscomm_coll_name((dscomm_coll_t)algorithm->coll), algorithm->name,
           faults[f].name, tallies[f].tried);
}

/* An argument: only the algorithm of that name. */
int main(int argc, char **argv)
{
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    for (; algorithm->name; algorithm++)
        if (argc < 2 || !strcmp(argv[1], algorithm->name))
            test_faults(algorithm);
    return tap_done();
}
