/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm, with every number of ranks and with critical counts, over a
 * transport that reorders and delays messages. */
#include "config.h"

#include "tests/lib/schedule/case.h"
#include "tests/tap.h"

#include <string.h>

static const int ranks_tried[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17};

/* Nodes of equal and unequal sizes, alternating, and with one rank alone; as
 * many letters are used as there are ranks. */
static const char *const layouts[] = {"aabbccddeeffgghhi", "abababababababaca",
                                      "aaabbbbccdddddddd", "abbacdbaabbbbaaaa"};

#define NLAYOUTS (sizeof layouts / sizeof layouts[0])

/* Counts of elements: few, about the number of ranks, and about what fits into
 * a message with a header. */
static size_t counts_of(int ranks, size_t element, size_t *ret_counts)
{
    const size_t p = (size_t)ranks,
                 header = dscomm_priv_header_most(ranks) / element;
    const size_t counts[] = {
        0,  1,          2,      3,          p - 1,         p, p + 1, 2 * p + 1,
        97, header - 1, header, header + 1, header * p + 1};

    memcpy(ret_counts, counts, sizeof counts);
    return sizeof counts / sizeof counts[0];
}

/* Counts near the lengths of pieces. */
static size_t long_counts_of(int ranks, size_t element, size_t *ret_counts)
{
    const size_t kib = 1024 / element, p = (size_t)ranks;
    const size_t counts[] = {
        64 * kib,          64 * kib + 1,  128 * kib + 1,        128 * kib * p,
        128 * kib * p + 1, 640 * kib + 3, 128 * kib * p * 5 + 7};

    memcpy(ret_counts, counts, sizeof counts);
    return sizeof counts / sizeof counts[0];
}

/* Pairs of dtype and operator that algorithms treat differently. */
static const struct {
    int dtype, op;
} kinds[] = {
    {DSCOMM_INT32, DSCOMM_SUM},
    {DSCOMM_FLOAT32, DSCOMM_SUM},
    {DSCOMM_BFLOAT16, DSCOMM_SUM},
    {DSCOMM_BFLOAT16, DSCOMM_MAX},
    {DSCOMM_FLOAT64, DSCOMM_AVG},
    {DSCOMM_INT32, DSCOMM_AVG},
    {DSCOMM_INT8, DSCOMM_AVG},
    {DSCOMM_FLOAT32, DSCOMM_PREMUL_SUM},
    {DSCOMM_BFLOAT16, DSCOMM_PREMUL_SUM},
};

static int in_place_means_something(int coll)
{
    return coll != DSCOMM_COLL_BROADCAST && coll != DSCOMM_COLL_ALL_TO_ALL &&
           coll != DSCOMM_COLL_ALL_TO_ALL_V && coll != DSCOMM_COLL_BARRIER;
}

/* Returns whether the result is exact: sums over more ranks would be rounded in
 * a small float. */
static int is_exact(const case_t *c)
{
    return c->dtype != DSCOMM_BFLOAT16 || c->op != DSCOMM_PREMUL_SUM ||
           c->ranks <= 9;
}

typedef struct {
    unsigned tried, failed;
    uint64_t seed;
} tally_t;

static void print_failure(const case_t *c, const loop_plan_t *plan,
                          const char *text)
{
    printf("# %s %s of %zu %s (operator %d), %d ranks, root %d, in place %d, "
           "eager %d, hosts %s, seed %llu: %s\n",
           dscomm_coll_name((dscomm_coll_t)c->algorithm->coll),
           c->algorithm->name, c->count,
           dscomm_dtype_name((dscomm_dtype_t)c->dtype), c->op, c->ranks,
           c->root, c->in_place, plan->eager, c->hosts ? c->hosts : "unknown",
           (unsigned long long)plan->seed, text);
}

static void try_one(const case_t *c, tally_t *tally)
{
    static stage_t stage;
    loop_plan_t plan = {.ranks = c->ranks, .seed = ++tally->seed};
    char text[1024] = "messages are left over";
    loop_t *loop;

    plan.eager = plan.seed % 2;
    loop = loop_new(&plan);
    case_begin(c, loop, 1 + plan.seed % 3, &stage);
    case_drive(c, loop, &stage);
    tally->tried++;
    if (!case_check(c, &stage, text, sizeof text) || loop_pending(loop)) {
        if (tally->failed++ < 5)
            print_failure(c, &plan, text);
    }
    case_end(c, &stage);
    loop_free(loop);
}

static void try_places(case_t *c, tally_t *tally)
{
    const int roots[] = {0, c->ranks / 2, c->ranks - 1};
    const int nroots = case_has_root(c->algorithm->coll) ? 3 : 1;

    if (!is_exact(c))
        return;
    for (int i = 0; i < nroots; i++) {
        c->root = case_has_root(c->algorithm->coll) ? roots[i] : -1;
        for (c->in_place = 0;
             c->in_place <= in_place_means_something(c->algorithm->coll);
             c->in_place++)
            try_one(c, tally);
    }
}

static void try_kinds(case_t *c, size_t kinds_tried, int longer, tally_t *tally)
{
    size_t counts[16];

    for (size_t k = 0; k < kinds_tried; k++) {
        size_t ncounts, element;

        c->dtype = kinds[k].dtype;
        c->op = case_reduces(c->algorithm->coll) ? kinds[k].op : -1;
        element = dscomm_dtype_size((dscomm_dtype_t)c->dtype);
        ncounts = longer ? long_counts_of(c->ranks, element, counts)
                         : counts_of(c->ranks, element, counts);
        for (size_t i = 0; i < ncounts; i++) {
            c->count = counts[i];
            if (case_fits(c))
                try_places(c, tally);
        }
    }
}

/* hosts: of the ranks; most algorithms do not use them. */
static void test_algorithm(const dscomm_algorithm_t *algorithm,
                           const char *hosts)
{
    const char *coll = dscomm_coll_name((dscomm_coll_t)algorithm->coll);
    const size_t all =
        case_reduces(algorithm->coll) ? sizeof kinds / sizeof kinds[0] : 1;

    for (size_t i = 0; i < sizeof ranks_tried / sizeof ranks_tried[0]; i++) {
        case_t c = {
            .algorithm = algorithm, .ranks = ranks_tried[i], .hosts = hosts};
        tally_t tally = {.seed = 1000 * i};

        try_kinds(&c, c.ranks <= 9 ? all : MIN(all, 3), 0, &tally);
        if (c.ranks <= 4 && algorithm->coll != DSCOMM_COLL_BARRIER)
            try_kinds(&c, 1, 1, &tally);
        ok(!tally.failed, "%s %s, %d ranks%s%.*s", coll, algorithm->name,
           c.ranks, hosts ? " on " : "", c.ranks, hosts ? hosts : "");
    }
}

static void test_layouts(const dscomm_algorithm_t *algorithm)
{
    if (strcmp(algorithm->name, "two_level")) {
        test_algorithm(algorithm, NULL);
        return;
    }
    for (size_t i = 0; i < NLAYOUTS; i++)
        test_algorithm(algorithm, layouts[i]);
}

/* Numbers whose sum depends on the order of additions. */
static void fill_rough(const case_t *c, stage_t *stage)
{
    for (int r = 0; r < c->ranks; r++) {
        float *input = (float *)(uintptr_t)stage->args[r].send;
        uint32_t state = 12345 + (uint32_t)r;

        for (size_t k = 0; k < c->count; k++) {
            state = state * 1664525 + 1013904223;
            input[k] = (float)(state >> 8) * (float)(1u << (state >> 27));
        }
    }
}

/* Returns 1 if all ranks have the same bytes; the first rank sets them. */
static int is_same(const case_t *c, uint64_t seed, float *bytes, int *set)
{
    static stage_t stage;
    loop_plan_t plan = {.ranks = c->ranks, .seed = seed, .eager = seed % 2};
    loop_t *loop = loop_new(&plan);
    int same;

    case_begin(c, loop, 1, &stage);
    fill_rough(c, &stage);
    same = case_drive(c, loop, &stage) == c->ranks;
    for (int r = 0; r < c->ranks; r++) {
        if (!stage.args[r].recv)
            continue;
        if (!(*set)++)
            memcpy(bytes, stage.args[r].recv, c->count * sizeof(float));
        same &= !memcmp(bytes, stage.args[r].recv, c->count * sizeof(float));
    }
    case_end(c, &stage);
    loop_free(loop);
    return same;
}

/* All ranks get the same bits, whatever the order of messages, in place or
 * not. */
static void test_bits(const dscomm_algorithm_t *algorithm)
{
    static const int ranks[] = {2, 3, 5, 8, 9};
    int same = 1;

    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        const int rooted = algorithm->coll == DSCOMM_COLL_REDUCE;
        case_t c = {.algorithm = algorithm,
                    .ranks = ranks[i],
                    .hosts = layouts[i % NLAYOUTS],
                    .root = rooted ? 1 : -1,
                    .dtype = DSCOMM_FLOAT32,
                    .op = DSCOMM_SUM,
                    .count = 999};
        float bytes[999];
        int set = 0;

        for (uint64_t seed = 0; seed < 10; seed++) {
            c.in_place = seed % 3 == 0;
            same &= is_same(&c, seed, bytes, &set);
        }
    }
    ok(same, "%s %s: the same bits",
       dscomm_coll_name((dscomm_coll_t)algorithm->coll), algorithm->name);
}

/* Counts the bytes of rank's steps of one kind. */
static size_t count_bytes(const stage_t *stage, int rank, int kind)
{
    const dscomm_schedule_t *schedule = stage->schedules[rank];
    size_t bytes = 0;

    for (uint32_t s = 0; s < schedule->chains[schedule->nchains]; s++)
        if (schedule->steps[s].kind == kind)
            bytes += schedule->steps[s].bytes;
    return bytes;
}

/* In a long call each rank sends, or receives, one copy on each of its levels,
 * whatever the number of nodes; a tree between nodes would cost more. */
static void test_long_levels(const dscomm_algorithm_t *algorithm)
{
    static const char *const hosts[] = {"abcdefgha", "aaaabbbb",
                                        "abcdefghijklmnopqrstuaaa"};
    const int kind =
        algorithm->coll == DSCOMM_COLL_REDUCE ? STEP_RECV : STEP_SEND;

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        static stage_t stage;
        case_t c = {.algorithm = algorithm,
                    .ranks = (int)strlen(hosts[i]),
                    .hosts = hosts[i],
                    .dtype = DSCOMM_INT32,
                    .op = case_reduces(algorithm->coll) ? DSCOMM_SUM : -1,
                    .count = (768 << 10) / sizeof(int32_t)};
        loop_plan_t plan = {.ranks = c.ranks, .seed = i};
        loop_t *loop = loop_new(&plan);
        char text[1024];
        size_t most = 0;

        case_begin(&c, loop, 1, &stage);
        case_drive(&c, loop, &stage);
        for (int r = 0; r < c.ranks; r++)
            most = MAX(most, count_bytes(&stage, r, kind));
        ok(case_check(&c, &stage, text, sizeof text),
           "long %s on two levels, %d ranks",
           dscomm_coll_name((dscomm_coll_t)algorithm->coll), c.ranks);
        is_int((long long)most, 2 * (768 << 10), "  two copies from a rank");
        case_end(&c, &stage);
        loop_free(loop);
    }
}

/* Long inputs are cut into longer pieces. */
static void test_long_pieces(const dscomm_algorithm_t *algorithm)
{
    for (int ranks = 2; ranks <= 4; ranks++) {
        case_t c = {.algorithm = algorithm,
                    .ranks = ranks,
                    .root = algorithm->coll == DSCOMM_COLL_REDUCE ? 0 : -1,
                    .dtype = DSCOMM_INT32,
                    .op = DSCOMM_SUM,
                    .count = ((48 << 20) / sizeof(int32_t)) + 1};
        tally_t tally = {.seed = (uint64_t)ranks};

        try_one(&c, &tally);
        ok(!tally.failed, "%s %s, 48 MiB, %d ranks",
           dscomm_coll_name((dscomm_coll_t)algorithm->coll), algorithm->name,
           ranks);
    }
}

/* Argument: the name of the only algorithm to test. */
int main(int argc, char **argv)
{
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    for (; algorithm->name; algorithm++)
        if (argc < 2 || !strcmp(argv[1], algorithm->name))
            test_layouts(algorithm);
    for (algorithm = dscomm_priv_algorithms; algorithm->name; algorithm++)
        if ((algorithm->coll == DSCOMM_COLL_REDUCE ||
             algorithm->coll == DSCOMM_COLL_ALL_REDUCE) &&
            (argc < 2 || !strcmp(argv[1], algorithm->name)))
            test_bits(algorithm);
    for (algorithm = dscomm_priv_algorithms; algorithm->name; algorithm++)
        if ((algorithm->coll == DSCOMM_COLL_BROADCAST ||
             algorithm->coll == DSCOMM_COLL_REDUCE) &&
            !strcmp(algorithm->name, "two_level") &&
            (argc < 2 || !strcmp(argv[1], algorithm->name)))
            test_long_levels(algorithm);
    for (algorithm = dscomm_priv_algorithms; algorithm->name; algorithm++)
        if ((algorithm->coll == DSCOMM_COLL_REDUCE ||
             algorithm->coll == DSCOMM_COLL_ALL_REDUCE) &&
            !strcmp(algorithm->name, "halving_doubling") &&
            (argc < 2 || !strcmp(argv[1], algorithm->name)))
            test_long_pieces(algorithm);
    return tap_done();
}
