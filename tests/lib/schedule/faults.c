/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm with a rank that dies, stops sending or is slow, at each of
 * its messages, and with a rank that makes another call. */
#include "config.h"

#include "tests/lib/schedule/case.h"
#include "tests/lib/schedule/find.h"
#include "tests/tap.h"

#include <ctype.h>
#include <string.h>

static const int ranks_tried[] = {2, 3, 4, 5, 8};

static case_t make_case(const dscomm_algorithm_t *algorithm, int ranks,
                        int root, size_t count)
{
    return (case_t){
        .algorithm = algorithm,
        .ranks = ranks,
        .root = case_has_root(algorithm->coll) ? root % ranks : -1,
        .dtype = DSCOMM_FLOAT32,
        .op = case_reduces(algorithm->coll) ? DSCOMM_SUM : -1,
        .count = count,
        .hosts = "aabacbba",
    };
}

/* One trial, and its error. */
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

/* The others learn of a failure from the group; then nothing may be left. */
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

/* Returns whether the text has "... rank 3 ..." */
static int names_rank(const char *text, int rank)
{
    char word[32];
    size_t length = (size_t)snprintf(word, sizeof word, "rank %d", rank);

    for (; (text = strstr(text, word)); text += length)
        if (!isdigit((unsigned char)text[length]))
            return 1;
    return 0;
}

/* Returns for which ranks each rank waits, one bit each, according to the
 * runs. */
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

/* Returns whether the culprit is reached from rank by going on to the ranks
 * that are waited for. */
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

/* Checks that a rank that has returned OK has the right result. */
static int check_ended(try_t *t, int rank)
{
    return t->stage.runs[rank]->status != DSCOMM_OK ||
           case_check_rank(&t->c, &t->stage, rank, t->why, sizeof t->why);
}

/* Checks that all ranks that wait for the dead one fail, and name it. */
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
        if (run->status < 0 &&
            (run->status != DSCOMM_ERR_PEER_FAILED ||
             !names_rank(run->failure.detail, t->plan.culprit)))
            snprintf(t->why, sizeof t->why, "rank %d: %s: %s", r,
                     dscomm_status_name(run->status), run->failure.detail);
    }
    if (stuck && !failed && !*t->why)
        snprintf(t->why, sizeof t->why, "%d ranks wait, none has failed",
                 stuck);
}

/* Checks that each rank that cannot go on names the culprit, or a rank that
 * leads to it. */
static void check_silent(try_t *t)
{
    for (int r = 0; r < t->c.ranks && !*t->why; r++) {
        const dscomm_run_t *run = t->stage.runs[r];

        if (!check_ended(t, r))
            return;
        if (run->status < 0)
            snprintf(t->why, sizeof t->why, "rank %d failed: %s", r,
                     run->failure.detail);
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

/* Counts the messages that culprit starts if nothing fails. */
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
    t.stage.posts_early = tally->tried / 2 % 2;
    case_drive(&t.c, t.loop, &t.stage);
    faults[fault].check(&t);
    end(&t);
    count(&t, tally);
}

static void try_culprits(const case_t *c, tally_t *tallies)
{
    if (!case_fits(c))
        return;
    for (int culprit = 0; culprit < c->ranks; culprit++) {
        unsigned operations = count_operations(c, culprit);

        for (unsigned after = 0; after < operations; after++)
            for (size_t f = 0; f < NFAULTS; f++)
                try_fault(c, f, culprit, after, &tallies[f]);
    }
}

/* Several chains at a time; tries only two of the messages, because it takes
 * long. */
static void try_long(const dscomm_algorithm_t *algorithm, tally_t *tallies)
{
    case_t c = make_case(algorithm, 3, 1, 300000);
    unsigned operations;

    if (!case_fits(&c) || algorithm->coll == DSCOMM_COLL_BARRIER)
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
            if (!case_has_root(algorithm->coll))
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

/* A call that differs from the others' calls. */
typedef struct {
    const char *what;
    case_t c;
} variant_t;

/* Results of mismatches. A mismatch cannot be detected if the ranks that differ
 * exchange no messages, for example because of another root, or because a rank
 * only sends. Then it does no harm, or ends with a time-out. */
typedef struct {
    unsigned reported, waiting, harmless;
} outcomes_t;

/* Returns whether the text has both calls, unless they look the same. */
static int names_calls(const char *text, const case_t *a, const case_t *b)
{
    return strstr(text, dscomm_coll_name((dscomm_coll_t)a->algorithm->coll)) &&
           strstr(text, dscomm_coll_name((dscomm_coll_t)b->algorithm->coll));
}

/* Checks that no rank gets a wrong result, and that each rank that waits names
 * a rank. */
static void judge_rank(try_t *t, const case_t *other, int rank)
{
    const dscomm_run_t *run = t->stage.runs[rank];
    const int culprit = t->plan.culprit;

    if (!case_is_guarded(&t->stage, rank))
        snprintf(t->why, sizeof t->why,
                 "rank %d: bytes beside a buffer were written", rank);
    else if (run->status == DSCOMM_OK)
        case_check_rank(rank == culprit ? other : &t->c, &t->stage, rank,
                        t->why, sizeof t->why);
    else if (run->status < 0 &&
             (run->status != DSCOMM_ERR_MISMATCH ||
              !names_rank(run->failure.detail, culprit) ||
              !names_calls(run->failure.detail, &t->c, other)))
        snprintf(t->why, sizeof t->why, "rank %d: %s: %s", rank,
                 dscomm_status_name(run->status), run->failure.detail);
}

static void count_outcome(try_t *t, const case_t *other, outcomes_t *outcomes)
{
    int reported = 0, waiting = 0;

    for (int r = 0; r < t->c.ranks && !*t->why; r++) {
        judge_rank(t, other, r);
        reported += t->stage.runs[r]->status < 0;
        waiting += t->stage.runs[r]->status == DSCOMM_IN_PROGRESS;
    }
    for (int r = 0; r < t->c.ranks && !reported && !*t->why; r++)
        if (t->stage.runs[r]->status == DSCOMM_IN_PROGRESS &&
            !leads_to(t, r, t->plan.culprit))
            snprintf(t->why, sizeof t->why,
                     "rank %d waits, and does not know for the culprit", r);
    if (reported)
        outcomes->reported++;
    else if (waiting)
        outcomes->waiting++;
    else
        outcomes->harmless++;
}

static void try_variant(const case_t *c, const variant_t *variant, int culprit,
                        tally_t *tally, outcomes_t *outcomes)
{
    static try_t t;

    t.c = *c;
    t.plan = (loop_plan_t){
        .seed = tally->tried, .eager = tally->tried % 2, .culprit = culprit};
    begin(&t);
    case_replace(&variant->c, t.loop, 1 + t.plan.seed % 3, &t.stage, culprit);
    case_drive(&t.c, t.loop, &t.stage);
    case_post_early(&t.c, t.loop, &t.stage);
    count_outcome(&t, &variant->c, outcomes);
    end(&t);
    count(&t, tally);
}

static size_t list_other_arguments(const case_t *c, variant_t *variants)
{
    size_t n = 0;

    if (c->algorithm->coll == DSCOMM_COLL_BARRIER)
        return 0;
    variants[n] = (variant_t){"count", *c};
    variants[n++].c.count += 3;
    variants[n] = (variant_t){"dtype", *c};
    variants[n++].c.dtype = DSCOMM_INT32;
    variants[n] = (variant_t){"longer dtype", *c};
    variants[n++].c.dtype = DSCOMM_FLOAT64;
    if (c->op >= 0) {
        variants[n] = (variant_t){"operator", *c};
        variants[n++].c.op = DSCOMM_MAX;
    }
    if (c->root >= 0) {
        variants[n] = (variant_t){"root", *c};
        variants[n++].c.root = (c->root + 1) % c->ranks;
    }
    return n;
}

#define VARIANTS_MOST 32

/* Lists calls that differ from c in one property; returns their number. */
static size_t list_variants(const case_t *c, variant_t *variants)
{
    static const struct {
        int coll;
        const char *name;
    } others[] = {{DSCOMM_COLL_BARRIER, "dissemination"},
                  {DSCOMM_COLL_BROADCAST, "binomial"},
                  {DSCOMM_COLL_ALL_REDUCE, "ring"},
                  {DSCOMM_COLL_ALL_GATHER, "ring"}};
    const int coll = c->algorithm->coll;
    size_t n = list_other_arguments(c, variants);

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].coll != coll)
            variants[n++] = (variant_t){
                "collective",
                make_case(find_algorithm(others[i].coll, others[i].name),
                          c->ranks, 0, c->count)};
    for (const dscomm_algorithm_t *a = dscomm_priv_algorithms; a->name; a++)
        if (a->coll == coll && a != c->algorithm && n < VARIANTS_MOST) {
            variants[n] = (variant_t){"algorithm", *c};
            variants[n++].c.algorithm = a;
        }
    return n;
}

static void try_variants(const case_t *c, tally_t *tally, outcomes_t *outcomes)
{
    variant_t variants[VARIANTS_MOST];
    size_t n = case_fits(c) ? list_variants(c, variants) : 0;

    for (size_t v = 0; v < n; v++)
        for (int culprit = 0; culprit < c->ranks; culprit++)
            if (case_fits(&variants[v].c))
                try_variant(c, &variants[v], culprit, tally, outcomes);
}

/* Chains whose messages may arrive before the header. */
static void try_long_variants(const dscomm_algorithm_t *algorithm,
                              tally_t *tally, outcomes_t *outcomes)
{
    case_t c = make_case(algorithm, 3, 0, 300000);
    variant_t variants[VARIANTS_MOST];
    size_t n = case_fits(&c) ? list_other_arguments(&c, variants) : 0;

    for (size_t v = 0; v < n; v++)
        try_variant(&c, &variants[v], 1, tally, outcomes);
}

/* Returns whether every rank receives from others and sends to others. */
static int is_even(const dscomm_algorithm_t *algorithm)
{
    static const char *const names[] = {"ring", "bruck", "pairwise",
                                        "dissemination"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(algorithm->name, names[i]))
            return 1;
    return algorithm->coll != DSCOMM_COLL_BARRIER &&
           !case_has_root(algorithm->coll) &&
           !strcmp(algorithm->name, "linear");
}

static void test_mismatches(const dscomm_algorithm_t *algorithm)
{
    const char *coll = dscomm_coll_name((dscomm_coll_t)algorithm->coll);
    tally_t tally = {0};
    outcomes_t outcomes = {0};

    for (size_t i = 0; i < sizeof ranks_tried / sizeof ranks_tried[0]; i++) {
        case_t c = make_case(algorithm, ranks_tried[i], 0, 7);

        try_variants(&c, &tally, &outcomes);
        c = make_case(algorithm, ranks_tried[i], 1, 600);
        try_variants(&c, &tally, &outcomes);
    }
    try_long_variants(algorithm, &tally, &outcomes);
    ok(!tally.failed, "%s %s: another call fools nobody (%u tries)", coll,
       algorithm->name, tally.tried);
    if (is_even(algorithm))
        is_int(outcomes.reported, tally.tried, "  and is always reported");
    else
        ok(outcomes.reported > tally.tried / 2,
           "  and is reported if it can be");
    printf("# reported %u, waiting %u, harmless %u\n", outcomes.reported,
           outcomes.waiting, outcomes.harmless);
}

/* Argument: the name of the only algorithm to test. */
int main(int argc, char **argv)
{
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    for (; algorithm->name; algorithm++)
        if (argc < 2 || !strcmp(argv[1], algorithm->name))
            test_faults(algorithm);
    for (algorithm = dscomm_priv_algorithms; algorithm->name; algorithm++)
        if (argc < 2 || !strcmp(argv[1], algorithm->name))
            test_mismatches(algorithm);
    return tap_done();
}
