/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of `dscomm perf --compare`: costs of algorithms, compared with
 * values worked out by hand from their descriptions, and findings from times
 * that are given here. */
#include "config.h"

#include "tests/tap.h"
#include "tools/common/plot.h"
#include "tools/perf/compare.h"

#include <math.h>
#include <string.h>

#define N 4096.0

static int is_near(double got, double want)
{
    return fabs(got - want) <= 1e-9 * (1 + fabs(want));
}

/* Multiples of the row's bytes, for p ranks.
 *
 * Ring, p = 4: each rank sends 6 messages of n / 4. What is sent is read and
 * written, 2 * 6 n in all; each of 3 n additions reads two numbers and writes
 * one, 9 n; a rank has a quarter, 5.25 n. Pairwise: the additions read 4 n and
 * write n. Linear: each of 4 ranks sends n to 3 others and reads 4 inputs to
 * write one. Bruck: the same messages in fewer rounds; each rank reads and
 * writes its own n first. Its all_gather reads and writes a rank's quarter, and
 * then all four. Recursive doubling: 2 rounds, in each of which all ranks send
 * n and add n; p = 3: rank 2 has a partner to which it sends n, and which sends
 * the result back. */
static void test_costs(void)
{
    static const struct {
        const char *operation, *algorithm;
        int ranks;
        perf_place_t place;
        double steps, wire, busiest, memory;
        bool bound;
    } rows[] = {
        {"all_reduce", "ring", 4, PERF_IN_PLACE, 6, 1.5, 1.5, 5.25, false},
        {"all_reduce", "pairwise", 4, PERF_IN_PLACE, 6, 1.5, 1.5, 4.25, false},
        {"all_reduce", "linear", 4, PERF_IN_PLACE, 3, 3, 3, 11, false},
        {"all_reduce", "recursive_doubling", 4, PERF_IN_PLACE, 2, 2, 2, 10,
         false},
        {"all_reduce", "recursive_doubling", 3, PERF_IN_PLACE, 3, 4 / 3.0, 3,
         (2 * 4 + 3 * 3) / 3.0, false},
        {"all_reduce", "bruck", 8, PERF_IN_PLACE, 3, 7, 7, 14 + 9 + 2, false},
        {"all_reduce", "bruck", 8, PERF_OUT_OF_PLACE, 3, 7, 7, 14 + 9 + 2,
         false},
        /* the root has 3 children */
        {"all_reduce", "tree", 4, PERF_IN_PLACE, 6, 1.5, 6, 5.25, false},
        {"broadcast", "binomial", 8, PERF_IN_PLACE, 3, 7 / 8.0, 3, 1.75, false},
        {"broadcast", "chain", 8, PERF_IN_PLACE, 7, 7 / 8.0, 1, 1.75, false},
        /* children of the root: ranks 1, 2, 3, 4, 8, 12 */
        {"broadcast", "knomial", 16, PERF_IN_PLACE, 6, 15 / 16.0, 6, 1.875,
         false},
        {"reduce", "linear", 4, PERF_IN_PLACE, 3, 0.75, 3, (6 + 5) / 4.0,
         false},
        {"reduce_scatter", "pairwise", 4, PERF_IN_PLACE, 3, 0.75, 0.75,
         (6 + 5) / 4.0, false},
        {"all_gather", "ring", 4, PERF_IN_PLACE, 3, 0.75, 0.75, 1.5, false},
        /* each rank copies its quarter */
        {"all_gather", "ring", 4, PERF_OUT_OF_PLACE, 3, 0.75, 0.75, 2, false},
        {"all_gather", "bruck", 4, PERF_IN_PLACE, 2, 0.75, 0.75, 1.5 + 2.5,
         false},
        {"all_gather", "bruck", 4, PERF_OUT_OF_PLACE, 2, 0.75, 0.75, 1.5 + 2.5,
         false},
        {"gather", "linear", 3, PERF_IN_PLACE, 2, 2 / 9.0, 2 / 3.0, 4 / 9.0,
         false},
        /* blocks of ranks 1, 2 and 3 pass 1, 1 and 2 messages */
        {"gather", "binomial", 3, PERF_IN_PLACE, 2, 2 / 9.0, 2 / 3.0, 4 / 9.0,
         false},
        {"gather", "binomial", 4, PERF_IN_PLACE, 2, 4 / 16.0, 0.75, 8 / 16.0,
         false},
        {"scatter", "binomial", 4, PERF_IN_PLACE, 2, 4 / 16.0, 0.75, 8 / 16.0,
         false},
        {"scatter", "binomial", 6, PERF_IN_PLACE, 3, 7 / 36.0, 5 / 6.0,
         14 / 36.0, false},
        {"reduce+broadcast", "linear+linear", 4, PERF_OUT_OF_PLACE, 6, 1.5, 6,
         (6 + 5 + 6) / 4.0, false},
        {"reduce_scatter+all_gather", "pairwise+ring", 4, PERF_OUT_OF_PLACE, 6,
         1.5, 1.5, (6 + 5 + 6) / 4.0, false},
        /* each input is read once, each result written once; in memory that
         * all share, one step is enough */
        {"all_reduce", "native", 4, PERF_IN_PLACE, 1, 1.5, 1.5, 2, true},
        {"reduce+broadcast", "native+native", 4, PERF_IN_PLACE, 2, 1.5, 2,
         1.25 + 1, true},
        {"reduce_scatter+all_gather", "native+native", 4, PERF_IN_PLACE, 2, 1.5,
         1.5, 1.25 + 1, true},
        {"all_reduce", "two_level", 4, PERF_IN_PLACE, 1, 1.5, 1.5, 2, true},
        {"all_reduce", "native", 1, PERF_IN_PLACE, 0, 0, 0, 2, true},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const perf_traffic_t cost = perf_traffic(
            perf_operation_find(rows[i].operation), rows[i].algorithm,
            rows[i].ranks, (size_t)N, rows[i].place, NULL);
        const bool same = is_near(cost.steps, rows[i].steps) &&
                          is_near(cost.wire, rows[i].wire * N) &&
                          is_near(cost.busiest, rows[i].busiest * N) &&
                          is_near(cost.memory, rows[i].memory * N) &&
                          cost.bound == rows[i].bound;
        ok(same, "%s by %s, %d ranks", rows[i].operation, rows[i].algorithm,
           rows[i].ranks);
        if (!same)
            printf("#   %g steps, %g n, %g n, %g n\n", cost.steps,
                   cost.wire / N, cost.busiest / N, cost.memory / N);
    }
}

/* Halves are made while parts have more than 1 KiB, in the last two rounds more
 * than 32 KiB; then ranks exchange all that they have. 8 bytes, p = 4: halves,
 * whole halves, and back; p = 8: two rounds with whole halves. p = 5: rank 4
 * has a partner. */
static void test_halving(void)
{
    static const struct {
        size_t bytes;
        int ranks;
        double steps, wire, busiest, memory;
    } rows[] = {
        {8, 2, 2, 1, 1, 2 + 3 * 0.5},
        {8, 4, 3, 1.5, 1.5, 3 + 3 * 1},
        {8, 8, 4, 2, 2, 4 + 3 * 1.5},
        {1 << 20, 4, 4, 1.5, 1.5, 3 + 3 * 0.75},
        {1 << 20, 8, 6, 1.75, 1.75, 3.5 + 3 * 0.875},
        /* 32 KiB are halved once, the halves are exchanged twice */
        {32 << 10, 8, 4, 2, 2, 4 + 3 * 1.5},
        {1 << 20, 5, 6, 8 / 5.0, 3.5, (2 * 8 + 3 * (3 + 1)) / 5.0},
        {8, 5, 5, 8 / 5.0, 3.5, (2 * 8 + 3 * (4 + 1)) / 5.0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const double bytes = (double)rows[i].bytes;
        const perf_traffic_t cost =
            perf_traffic(perf_operation_find("all_reduce"), "halving_doubling",
                         rows[i].ranks, rows[i].bytes, PERF_IN_PLACE, NULL);

        ok(is_near(cost.steps, rows[i].steps) &&
               is_near(cost.wire, rows[i].wire * bytes) &&
               is_near(cost.busiest, rows[i].busiest * bytes) &&
               is_near(cost.memory, rows[i].memory * bytes),
           "halving_doubling, %d ranks, %zu bytes: %g steps, %g n, %g n, %g n",
           rows[i].ranks, rows[i].bytes, cost.steps, cost.wire / bytes,
           cost.busiest / bytes, cost.memory / bytes);
    }
}

/* Every algorithm of the library's table that is known inside one node has its
 * cost, if its collective may be compared; a new one is a row in traffic.c. */
static void test_all_known(void)
{
    static const dscomm_coll_t colls[] = {
        DSCOMM_COLL_BROADCAST,      DSCOMM_COLL_REDUCE, DSCOMM_COLL_ALL_REDUCE,
        DSCOMM_COLL_ALL_GATHER,     DSCOMM_COLL_GATHER, DSCOMM_COLL_SCATTER,
        DSCOMM_COLL_REDUCE_SCATTER,
    };
    dscomm_algorithm_info_t info = {.size = sizeof info};

    for (size_t i = 0; dscomm_algorithm_info(i, &info) == DSCOMM_OK; i++)
        for (size_t k = 0; k < G_N_ELEMENTS(colls); k++) {
            const char *name = dscomm_coll_name(colls[k]);
            if (info.two_levels || info.coll != (int)colls[k])
                continue;
            ok(!perf_traffic(perf_operation_find(name), info.name, 8, 64,
                             PERF_IN_PLACE, NULL)
                    .bound,
               "the cost of %s by %s is known", name, info.name);
        }
}

/* Blocks of 10 elements for 4 ranks: 3, 3, 2, 2. */
static void test_parts(void)
{
    size_t arrays[2][4];
    perf_call_t call = {.operation =
                            perf_operation_find("reduce_scatter+all_gather"),
                        .ranks = 4,
                        .size = 4,
                        .counts = arrays[0],
                        .displs = arrays[1]};

    perf_call_size(&call, 43);
    is_int((int)call.total, 10, "whole elements, not equal parts");
    is_int((int)(arrays[0][0] * 1000 + arrays[0][1] * 100 + arrays[0][2] * 10 +
                 arrays[0][3]),
           3322, "parts as equal as possible");
    is_int((int)(arrays[1][0] * 1000 + arrays[1][1] * 100 + arrays[1][2] * 10 +
                 arrays[1][3]),
           368, "one after the other");
}

static void test_alike(void)
{
    static const struct {
        const char *a, *b;
        bool alike;
    } rows[] = {
        {"all_reduce", "reduce+broadcast", true},
        {"all_reduce", "reduce_scatter+all_gather", true},
        {"all_gather", "gather+broadcast", true},
        {"broadcast", "scatter+all_gather", true},
        {"barrier", "monitored_barrier", true},
        {"put", "bandwidth", true},
        {"all_reduce", "reduce", false},
        {"all_gather", "all_gather_v", false},
        {"latency", "bandwidth", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        ok(perf_is_alike(perf_operation_find(rows[i].a),
                         perf_operation_find(rows[i].b)) == rows[i].alike,
           "%s and %s", rows[i].a, rows[i].b);
}

/* The ranks together move 12 n and then 3 n, read and write 28 n and 8 n; the
 * busiest one 7 n and 2 n. Of a ring, that is not known. */
static void test_native(void)
{
    const uint64_t n = (uint64_t)N;
    const dscomm_native_info_t natives[2] = {
        {.algorithm = "flat",
         .steps = 1,
         .moved = 12 * n,
         .memory = 28 * n,
         .busiest = 7 * n},
        {.algorithm = "pieces",
         .steps = 1,
         .moved = 3 * n,
         .memory = 8 * n,
         .busiest = 2 * n},
    };
    const dscomm_native_info_t half[2] = {natives[0]};
    perf_traffic_t cost =
        perf_traffic(perf_operation_find("all_reduce"), "native:flat", 4,
                     (size_t)N, PERF_IN_PLACE, natives);

    ok(!cost.bound && cost.steps == 1 && is_near(cost.wire, 3 * N) &&
           isnan(cost.busiest) && is_near(cost.memory, 7 * N) &&
           is_near(cost.most, 7 * N),
       "what a backend tells of a collective");
    cost = perf_traffic(perf_operation_find("reduce+broadcast"),
                        "native:flat+native:pieces", 4, (size_t)N,
                        PERF_IN_PLACE, natives);
    ok(!cost.bound && cost.steps == 2 && is_near(cost.wire, 3.75 * N) &&
           is_near(cost.memory, 9 * N) && is_near(cost.most, 9 * N),
       "of a sequence");
    cost =
        perf_traffic(perf_operation_find("reduce+broadcast"),
                     "native:flat+binomial", 4, (size_t)N, PERF_IN_PLACE, half);
    ok(!cost.bound && cost.steps == 3 && is_near(cost.wire, 3.75 * N) &&
           is_near(cost.memory, (7 + 1.5) * N) && isnan(cost.most),
       "of one of its calls");
    cost =
        perf_traffic(perf_operation_find("reduce+broadcast"),
                     "native:flat+native", 4, (size_t)N, PERF_IN_PLACE, half);
    ok(cost.bound, "a call of which it tells nothing makes a lower bound");
}

/* Two alternatives of a comparison, all_reduce and reduce+broadcast if they are
 * not given, on 4 ranks; times[i] in place, out[i], if any, out of place. */
typedef struct {
    size_t bytes;
    double times[2], out[2];
    double spread; /* of all times, percent */
    const char *algorithms[2];
    const char *names[2];
    size_t batches; /* 0: 10 */
    perf_traffic_t costs[2]; /* if they have steps: what the backend tells */
    bool crowded;
} pair_t;

#define KNOWN                                                                  \
    {                                                                          \
        "recursive_doubling", "binomial+binomial"                              \
    }
#define NATIVE                                                                 \
    {                                                                          \
        "native", "native+native"                                              \
    }

static void figure_set(perf_entry_t *e, const pair_t *pair, perf_place_t place,
                       double time, const char *algorithm)
{
    perf_figure_t *figure = &e->row.figures[place];

    figure->valid = time > 0;
    figure->times.p50 = time;
    figure->times.spread = pair->spread;
    figure->times.batches = pair->batches ? pair->batches : 10;
    e->costs[place] =
        perf_traffic(e->row.operation, algorithm, 4, pair->bytes, place, NULL);
}

static void comparison_free(gpointer data)
{
    perf_comparison_t *c = data;

    g_free(c->entries);
    g_free(c);
}

static perf_comparison_t *comparison_new(const pair_t *pair)
{
    static const char *const names[] = {"all_reduce", "reduce+broadcast"};
    perf_comparison_t *c = g_new0(perf_comparison_t, 1);

    c->count = 2;
    c->entries = g_new0(perf_entry_t, 2);
    for (size_t i = 0; i < 2; i++) {
        perf_entry_t *e = &c->entries[i];
        const char *name = pair->names[i] ? pair->names[i] : names[i];

        e->row.operation = perf_operation_find(name);
        e->row.algorithm = pair->algorithms[i];
        e->row.bytes = pair->bytes;
        e->row.dtype = DSCOMM_FLOAT32;
        figure_set(e, pair, PERF_IN_PLACE, pair->times[i], pair->algorithms[i]);
        figure_set(e, pair, PERF_OUT_OF_PLACE, pair->out[i],
                   pair->algorithms[i]);
        if (pair->costs[i].steps > 0)
            e->costs[PERF_IN_PLACE] = pair->costs[i];
    }
    c->crowded = pair->crowded;
    perf_comparison_rate(c);
    return c;
}

/* Tests that the findings of pairs are these sentences, up to NULL. */
static void are_findings(const char *what, const pair_t *pairs, size_t count,
                         const char *const *sentences)
{
    GPtrArray *comparisons = g_ptr_array_new_with_free_func(comparison_free);
    guint i = 0;

    for (size_t k = 0; k < count; k++)
        g_ptr_array_add(comparisons, comparison_new(&pairs[k]));
    GPtrArray *findings = perf_findings(comparisons);
    for (; sentences[i]; i++) {
        const perf_finding_t *f =
            i < findings->len ? g_ptr_array_index(findings, i) : NULL;
        is_str(f ? f->sentence : NULL, sentences[i], "%s: finding %u", what, i);
    }
    is_int((int)findings->len, (int)i, "%s: no others", what);
    g_ptr_array_unref(findings);
    g_ptr_array_unref(comparisons);
}

/* 8 and 64 bytes take the same time, so that is latency: 2 rounds, and 2 + 2.
 * 1 MiB takes more: in a binomial tree of 4 ranks the root gets, then sends, 2
 * messages of n, so 4 n; a rank of all_reduce sends 2 n. At 4 MiB the other one
 * wins, against the model: a rank of the ring sends 1.5 n. */
static void test_kinds(void)
{
    static const pair_t pairs[] = {
        {8, {10, 20}, .algorithms = KNOWN},
        {64, {11, 33}, .algorithms = KNOWN},
        {1 << 20, {100, 250}, .algorithms = KNOWN},
        {4 << 20, {600, 400}, .algorithms = {"ring", "binomial+binomial"}},
        {16 << 20, {1000, 1001}, .algorithms = KNOWN},
    };
    static const char *const sentences[] = {
        "8 B to 64 B: all_reduce is 2.00 to 3.00 times as fast as "
        "reduce+broadcast: time is latency there, and it takes 2 steps, "
        "reduce+broadcast 4",
        "1 MiB: all_reduce is 2.50 times as fast as reduce+broadcast: its "
        "busiest rank sends or receives 2 n of the n bytes, with "
        "reduce+broadcast 4 n: all of it passes the root's link",
        "4 MiB: reduce+broadcast is 1.50 times as fast as all_reduce: the "
        "model gives no reason: its busiest rank sends or receives, and a rank "
        "reads and writes, no fewer bytes, within 5%, than for all_reduce",
        "16 MiB: all_reduce and reduce+broadcast take the same time, within 5%",
        NULL,
    };

    are_findings("kinds of time", pairs, G_N_ELEMENTS(pairs), sentences);
}

/* The smallest size of a run is the shortest time, whatever it consists of. */
static void test_large(void)
{
    static const pair_t pairs[] = {{4 << 20, {100, 200}, .algorithms = KNOWN}};
    static const char *const sentences[] = {
        "4 MiB: all_reduce is 2.00 times as fast as reduce+broadcast: whether "
        "time is latency there is not known, as no size up to 1 KiB was "
        "measured",
        NULL,
    };

    are_findings("no small size", pairs, G_N_ELEMENTS(pairs), sentences);
}

/* A bound of the winner, at least 1 step, is no reason; that the loser needs at
 * least 2 is one. */
static void test_bounds(void)
{
    static const pair_t pairs[] = {
        {8, {10, 20}, .algorithms = NATIVE},
        {1 << 20, {300, 900}, .algorithms = NATIVE},
    };
    static const char *const sentences[] = {
        "8 B: all_reduce is 2.00 times as fast as reduce+broadcast: the model "
        "has only lower bounds for all_reduce (native), which do not prove why",
        "1 MiB: all_reduce is 3.00 times as fast as reduce+broadcast: the "
        "model has only lower bounds for all_reduce (native), which do not "
        "prove why",
        NULL,
    };
    static const pair_t known[] = {
        {8,
         {10, 20},
         .names = {"broadcast", "scatter+all_gather"},
         .algorithms = {"binomial", "linear+native"}},
    };
    static const char *const reasons[] = {
        "8 B: broadcast is 2.00 times as fast as scatter+all_gather: time is "
        "latency there, and it takes 2 steps, scatter+all_gather at least 4",
        NULL,
    };

    are_findings("bounds of the winner", pairs, G_N_ELEMENTS(pairs), sentences);
    are_findings("bounds of the loser", known, G_N_ELEMENTS(known), reasons);
}

/* Both send all from the root: linear 3 n, binomial 2 n. */
static void test_rooted(void)
{
    static const pair_t pairs[] = {
        {8,
         {10, 10},
         .names = {"broadcast", "broadcast"},
         .algorithms = {"binomial", "linear"}},
        {1 << 20,
         {100, 200},
         .names = {"broadcast", "broadcast"},
         .algorithms = {"binomial", "linear"}},
    };
    static const char *const sentences[] = {
        "8 B: broadcast and broadcast take the same time, within 5%",
        "1 MiB: broadcast is 2.00 times as fast as broadcast: its busiest rank "
        "sends or receives 2 n of the n bytes, with broadcast 3 n",
        NULL,
    };

    are_findings("both have a root", pairs, G_N_ELEMENTS(pairs), sentences);
}

/* 1.2 is within two spreads of 12%, 1.5 is not. */
static void test_noise(void)
{
    static const pair_t pairs[] = {
        {8, {10, 12}, .spread = 12, .algorithms = NATIVE},
        {16, {10, 15}, .spread = 12, .algorithms = NATIVE},
        {32, {10, 14}, .spread = 15, .algorithms = NATIVE},
        {64, {10, 20}, .batches = 2, .algorithms = NATIVE},
    };
    static const char *const sentences[] = {
        "8 B: no difference between all_reduce and reduce+broadcast beyond the "
        "spread of their times, together 24%",
        "16 B to 32 B: all_reduce is 1.40 to 1.50 times as fast as "
        "reduce+broadcast: the model has only lower bounds for all_reduce "
        "(native), which do not prove why (times spread by 15%)",
        "64 B: all_reduce and reduce+broadcast were measured in too few "
        "batches to compare them: raise -i, or leave it out",
        NULL,
    };

    are_findings("noise", pairs, G_N_ELEMENTS(pairs), sentences);
}

/* 8 KiB takes less than twice the time of 8 B, which spreads by 60%. */
static void test_noisy_base(void)
{
    static const pair_t pairs[] = {
        {8, {10, 12}, .spread = 60, .algorithms = KNOWN},
        {8192, {15, 20}, .algorithms = KNOWN},
    };
    static const char *const sentences[] = {
        "8 B: no difference between all_reduce and reduce+broadcast beyond the "
        "spread of their times, together 120%",
        "8 KiB: all_reduce is 1.33 times as fast as reduce+broadcast: whether "
        "time is latency there is not known, as the times of the smallest size "
        "spread too much",
        NULL,
    };

    are_findings("a noisy base", pairs, G_N_ELEMENTS(pairs), sentences);
}

/* Out of place, 8 bytes differ by 2%, and 64 by 50% or 22%; two spreads of 12%
 * are more than the latter. */
static void test_places(void)
{
    static const pair_t pairs[] = {
        {8, {100, 100}, {102, 100}, .algorithms = NATIVE},
        {64, {100, 100}, {150, 122}, .spread = 12, .algorithms = NATIVE},
    };
    static const char *const sentences[] = {
        "8 B to 64 B: no difference between reduce+broadcast and all_reduce "
        "beyond the spread of their times, together 24%",
        "8 B to 64 B: no difference between all_reduce and reduce+broadcast "
        "beyond the spread of their times, together 24%",
        "8 B: all_reduce in place and out of place take the same time, within "
        "5%",
        "64 B: out of place all_reduce takes "
        "1.50 of its time in place (times spread by 12%)",
        "8 B to 64 B: no difference between reduce+broadcast in place and out "
        "of place beyond the spread of their times, together 24%",
        NULL,
    };

    are_findings("places", pairs, G_N_ELEMENTS(pairs), sentences);
}

/* Costs of memory that ranks share, in multiples of n: the mean, and the rank
 * with most. */
#define SHARED(STEPS, N, MEAN, MOST)                                           \
    {                                                                          \
        .steps = STEPS, .busiest = NAN, .memory = (MEAN) * (double)(N),        \
        .most = (MOST) * (double)(N)                                           \
    }
#define FLAT                                                                   \
    {                                                                          \
        "native:flat", "native:flat+native:pieces"                             \
    }

/* 8 bytes: latency. 4 KiB: the root's bytes, 9 n, are 1.29 times those of any
 * rank of all_reduce, which is more than half of 1.5 - 1, and less than half of
 * 3 - 1 and 1.75 - 1: at 1 KiB, a step of 10 us is more than half of 15. On
 * shared processors all bytes count, of which all_reduce has more: no reason,
 * unless it is its one step, of 10 us at 8 bytes: 10 are more than half of 15,
 * not of 25. */
static void test_shared(void)
{
    static const pair_t pairs[] = {
        {8,
         {10, 20},
         .algorithms = FLAT,
         .costs = {SHARED(1, 8, 7, 7), SHARED(2, 8, 5.25, 9)}},
        {1024,
         {20, 35},
         .algorithms = FLAT,
         .costs = {SHARED(1, 1024, 7, 7), SHARED(2, 1024, 5.25, 9)}},
        {2048, {20, 20}, .algorithms = FLAT, .batches = 2},
        {4096,
         {100, 150},
         .algorithms = FLAT,
         .costs = {SHARED(1, 4096, 7, 7), SHARED(2, 4096, 5.25, 9)}},
        {1 << 20,
         {900, 300},
         .algorithms = FLAT,
         .costs = {SHARED(1, 1 << 20, 7, 9), SHARED(2, 1 << 20, 5.25, 7)}},
    };
    static const pair_t crowded[] = {
        {8,
         {10, 20},
         .algorithms = FLAT,
         .costs = {SHARED(1, 8, 7, 7), SHARED(2, 8, 5.25, 9)},
         .crowded = true},
        {4096,
         {100, 115},
         .algorithms = FLAT,
         .costs = {SHARED(1, 4096, 7, 7), SHARED(2, 4096, 5.25, 9)},
         .crowded = true},
        {8192,
         {100, 80},
         .algorithms = FLAT,
         .costs = {SHARED(1, 8192, 7, 7), SHARED(2, 8192, 5.25, 9)},
         .crowded = true},
        {16384,
         {100, 125},
         .algorithms = FLAT,
         .costs = {SHARED(1, 16384, 7, 7), SHARED(2, 16384, 5.25, 9)},
         .crowded = true},
    };
    static const char *const sentences[] = {
        "8 B: all_reduce is 2.00 times as fast as reduce+broadcast: time is "
        "latency there, and it takes 1 step, reduce+broadcast 2",
        "1 KiB: all_reduce is 1.75 times as fast as reduce+broadcast: the "
        "busiest rank of each call reads and writes, in all, 7 n of the n "
        "bytes, with reduce+broadcast 9 n: the others wait for its root; it "
        "takes 1 step, reduce+broadcast 2, which is most of the difference",
        "2 KiB: all_reduce and reduce+broadcast were measured in too few "
        "batches to compare them: raise -i, or leave it out",
        "4 KiB: all_reduce is 1.50 times as fast as reduce+broadcast: the "
        "busiest rank of each call reads and writes, in all, 7 n of the n "
        "bytes, with reduce+broadcast 9 n: the others wait for its root",
        "1 MiB: reduce+broadcast is 3.00 times as fast as all_reduce: the "
        "busiest rank of each call reads and writes, in all, 7 n of the n "
        "bytes, with all_reduce 9 n; that explains only a part of the "
        "difference: 1.29 times as fast is expected from it, 3.00 was measured",
        NULL,
    };
    static const char *const of_all[] = {
        "8 B: all_reduce is 2.00 times as fast as reduce+broadcast: time is "
        "latency there, and it takes 1 step, reduce+broadcast 2",
        "4 KiB: all_reduce is 1.15 times as fast as reduce+broadcast: "
        "ranks share processors, and a rank on average reads and writes no "
        "fewer bytes, within 5%, by the model, but all_reduce takes 1 step, "
        "reduce+broadcast 2, which is most of the difference",
        "8 KiB: reduce+broadcast is 1.25 times as fast as all_reduce: ranks "
        "share processors, and a rank on average reads and writes 5.25 n of "
        "the n bytes, with all_reduce 7 n",
        "16 KiB: all_reduce is 1.25 times as fast as reduce+broadcast: the "
        "model gives no reason: ranks share processors, and a rank on average "
        "reads and writes no fewer bytes, within 5%, than for "
        "reduce+broadcast",
        NULL,
    };

    are_findings("shared memory", pairs, G_N_ELEMENTS(pairs), sentences);
    are_findings("shared processors", crowded, G_N_ELEMENTS(crowded), of_all);
}

/* One winner, whose algorithm changes: 2 steps, then 3. */
static void test_algorithms(void)
{
    static const pair_t pairs[] = {
        {8, {10, 20}, .algorithms = KNOWN},
        {16, {10, 20}, .algorithms = {"linear", "binomial+binomial"}},
    };
    static const char *const sentences[] = {
        "8 B: all_reduce is 2.00 times as fast as reduce+broadcast: time is "
        "latency there, and it takes 2 steps, reduce+broadcast 4",
        "16 B: all_reduce is 2.00 times as fast as reduce+broadcast: time is "
        "latency there, and it takes 3 steps, reduce+broadcast 4; that "
        "explains only a part of the difference: 1.33 times as fast is "
        "expected from it, 2.00 was measured",
        NULL,
    };

    are_findings("algorithms", pairs, G_N_ELEMENTS(pairs), sentences);
}

/* The costs of a model without those of each rank, in multiples of n. */
#define MODEL(STEPS, N, BUSIEST, MEAN, BOUND)                                  \
    {                                                                          \
        .steps = STEPS, .busiest = (BUSIEST) * (double)(N),                    \
        .memory = (MEAN) * (double)(N), .most = NAN, .bound = BOUND            \
    }

/* Copies through rings that are counted for one alternative only do not prove
 * why; a lower bound above does, and one below says nothing. At 64 KiB, the
 * time of all_reduce is still latency, that of the other one is not. */
static void test_counting(void)
{
    static const pair_t pairs[] = {
        {8,
         {10, 20},
         .algorithms = FLAT,
         .costs = {SHARED(1, 8, 7, 7), SHARED(2, 8, 9, 9)}},
        {4096,
         {100, 300},
         .algorithms = FLAT,
         .costs = {MODEL(9, 4096, 2, 4, false), SHARED(2, 4096, 9, 9)}},
        {8192,
         {100, 300},
         .algorithms = FLAT,
         .costs = {SHARED(9, 8192, 4, 4), MODEL(2, 8192, 2, 9, true)}},
        {16384,
         {100, 300},
         .algorithms = NATIVE,
         .costs = {SHARED(9, 16384, 4, 4), MODEL(2, 16384, 2, 2, true)}},
        {65536,
         {15, 300},
         .algorithms = FLAT,
         .costs = {SHARED(1, 65536, 4, 4), SHARED(2, 65536, 9, 9)}},
    };
    static const char *const sentences[] = {
        "8 B: all_reduce is 2.00 times as fast as reduce+broadcast: time is "
        "latency there, and it takes 1 step, reduce+broadcast 2",
        "4 KiB: all_reduce is 3.00 times as fast as reduce+broadcast: the "
        "model gives no reason, as the costs are counted differently, copy by "
        "copy only for reduce+broadcast",
        "8 KiB: all_reduce is 3.00 times as fast as "
        "reduce+broadcast: a rank reads and writes 4 n of the n bytes, with "
        "reduce+broadcast at least 9 n: what the first call stores, the second "
        "one reads again",
        "16 KiB: all_reduce is 3.00 times as fast as reduce+broadcast: the "
        "model has only lower bounds for reduce+broadcast",
        "64 KiB: all_reduce is 20.00 times as fast as reduce+broadcast: the "
        "busiest rank of each call reads and writes, in all, 4 n of the n "
        "bytes, with reduce+broadcast 9 n; that explains only a part of the "
        "difference: 2.25 times as fast is expected from it, 20.00 was "
        "measured",
        NULL,
    };

    are_findings("counting", pairs, G_N_ELEMENTS(pairs), sentences);
}

static void test_labels(void)
{
    static const struct {
        double bytes;
        const char *text;
    } rows[] = {
        {8, "8 B"},        {1000, "1000 B"},     {1024, "1 KiB"},
        {1536, "1.5 KiB"}, {33554432, "32 MiB"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        char *text = tool_plot_bytes(rows[i].bytes);
        is_str(text, rows[i].text, "%g bytes", rows[i].bytes);
        g_free(text);
    }
}

int main(void)
{
    test_costs();
    test_halving();
    test_native();
    test_all_known();
    test_parts();
    test_alike();
    test_kinds();
    test_large();
    test_bounds();
    test_rooted();
    test_noise();
    test_noisy_base();
    test_places();
    test_algorithms();
    test_shared();
    test_counting();
    test_labels();
    return tap_done();
}
