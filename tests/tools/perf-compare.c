/* SPDX-License-Identifier: BSD-3-Clause */
/* What `dscomm perf --compare` computes: costs of algorithms, compared with
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
        /* each input is read once, each result written once */
        {"all_reduce", "native", 4, PERF_IN_PLACE, 2, 1.5, 1.5, 2, true},
        {"reduce+broadcast", "native+native", 4, PERF_IN_PLACE, 4, 1.5, 2,
         1.25 + 1, true},
        {"reduce_scatter+all_gather", "native+native", 4, PERF_IN_PLACE, 4, 1.5,
         1.5, 1.25 + 1, true},
        {"all_reduce", "two_level", 4, PERF_IN_PLACE, 2, 1.5, 1.5, 2, true},
        {"all_reduce", "native", 1, PERF_IN_PLACE, 0, 0, 0, 2, true},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const perf_traffic_t cost = perf_traffic(
            perf_operation_find(rows[i].operation), rows[i].algorithm,
            rows[i].ranks, (size_t)N, rows[i].place);
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
                         rows[i].ranks, rows[i].bytes, PERF_IN_PLACE);

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
                             PERF_IN_PLACE)
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

static const char *const names[] = {"all_reduce", "reduce+broadcast"};
static const char *const algorithms[] = {"native", "native+native"};

/* Adds a comparison of all_reduce with reduce+broadcast on 4 ranks, in place,
 * by their times. */
static void add(GPtrArray *comparisons, size_t bytes, double first,
                double second)
{
    perf_comparison_t *c = g_new0(perf_comparison_t, 1);
    const double times[] = {first, second};

    c->count = 2;
    c->entries = g_new0(perf_entry_t, 2);
    for (size_t i = 0; i < 2; i++) {
        perf_entry_t *e = &c->entries[i];

        e->row.operation = perf_operation_find(names[i]);
        e->row.bytes = bytes;
        e->row.dtype = DSCOMM_FLOAT32;
        e->row.figures[PERF_IN_PLACE].valid = true;
        e->row.figures[PERF_IN_PLACE].times.p50 = times[i];
        e->costs[PERF_IN_PLACE] = perf_traffic(e->row.operation, algorithms[i],
                                               4, bytes, PERF_IN_PLACE);
    }
    perf_comparison_rate(c);
    g_ptr_array_add(comparisons, c);
}

static void is_finding(const GPtrArray *findings, guint index,
                       const char *sentence)
{
    const perf_finding_t *f =
        index < findings->len ? g_ptr_array_index(findings, index) : NULL;

    is_str(f ? f->sentence : NULL, sentence, "finding %u", index);
}

/* 8 and 64 bytes take the same time, so that is latency: at least 2 and 4
 * steps. 1 MiB takes more: the root's link carries at least 2 n, any rank's of
 * all_reduce 1.5 n. At 4 MiB the other one wins, against the model. */
static void test_findings(void)
{
    GPtrArray *comparisons = g_ptr_array_new();

    add(comparisons, 8, 10, 20);
    add(comparisons, 64, 11, 33);
    add(comparisons, 1 << 20, 100, 250);
    add(comparisons, 4 << 20, 600, 400);
    add(comparisons, 16 << 20, 1000, 1001);
    GPtrArray *findings = perf_findings(comparisons);
    is_int((int)findings->len, 4, "ranges");
    is_finding(findings, 0,
               "8 B to 64 B: all_reduce is 2.00 to 3.00 times as fast as "
               "reduce+broadcast: time is latency there, and it takes at least "
               "2 steps, reduce+broadcast at least 4");
    is_finding(findings, 1,
               "1 MiB: all_reduce is 2.50 times as fast as reduce+broadcast: "
               "its busiest rank sends or receives at least 1.5 n of the n "
               "bytes, with reduce+broadcast at least 2 n: all of it passes "
               "the root's link");
    is_finding(findings, 2,
               "4 MiB: reduce+broadcast is 1.50 times as fast as all_reduce: "
               "the model gives no reason, it has no fewer bytes than for "
               "all_reduce");
    is_finding(findings, 3,
               "16 MiB: all_reduce and reduce+broadcast take the same time, "
               "within 5%");
    g_ptr_array_unref(findings);
    for (guint i = 0; i < comparisons->len; i++) {
        perf_comparison_t *c = g_ptr_array_index(comparisons, i);
        g_free(c->entries);
        g_free(c);
    }
    g_ptr_array_unref(comparisons);
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
    test_all_known();
    test_parts();
    test_alike();
    test_findings();
    test_labels();
    return tap_done();
}
