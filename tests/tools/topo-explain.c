/* SPDX-License-Identifier: BSD-3-Clause */
/* Explanations of figures that are given, nearness on machines of hwloc's
 * synthetic topologies, and ranks that share processors. */
#include "config.h"

#include "tests/tap.h"
#include "tools/common/crowd.h"
#include "tools/topo/p2p/explain.h"
#include "tools/topo/p2p/near.h"

/* Four ends, in two halves: 0 and 1, 2 and 3. */
#define ENDS 4

static topo_pairs_t *pairs_new(void)
{
    const topo_copies_t copies = {.tensors = 10, .elements = 10000000};
    topo_pairs_t *pairs = topo_pairs_new(
        "devices", "", "look", g_strsplit("d0 d1 d2 d3", " ", -1), &copies);

    for (guint i = 0; i < ENDS * ENDS; i++) {
        const guint from = i / ENDS, to = i % ENDS;
        const topo_path_t near = {
            .word = "NV4", .distance = 1, .meaning = "so many NVLinks"};
        const topo_path_t far = {.word = "SYS",
                                 .distance = 6,
                                 .meaning = "the link between NUMA nodes"};

        pairs->pairs[i].path = from / 2 == to / 2 ? near : far;
        pairs->pairs[i].times[TOPO_ALONE] = from / 2 == to / 2 ? 4.5e3 : 53e3;
    }
    return pairs;
}

static const topo_class_t *class_at(const topo_explanation_t *explanation,
                                    guint index)
{
    return &g_array_index(explanation->classes, topo_class_t, index);
}

static void test_expected(void)
{
    topo_pairs_t *pairs = pairs_new();
    topo_explanation_t *explanation = topo_explain(pairs);

    is_int(explanation->classes->len, 2, "two classes");
    is_int(class_at(explanation, 0)->count, 4, "four pairs are near");
    is_int(class_at(explanation, 1)->count, 8, "eight are far");
    is_str(class_at(explanation, 0)->sentence,
           "d0 -> d1 over NV4 (so many NVLinks, 4 pairs): 4.5 ms, 88.9 GB/s",
           "the nearest");
    is_str(class_at(explanation, 1)->sentence,
           "d0 -> d2 over SYS (the link between NUMA nodes, 8 pairs): 53 ms, "
           "7.55 GB/s, 11.8 times as long as NV4: expected from the path",
           "the other one is longer, as expected");
    is_int(explanation->outliers->len, 0, "no pair is unlike its class");
    topo_explanation_free(explanation);
    topo_pairs_free(pairs);
}

static void test_not_expected(void)
{
    topo_pairs_t *pairs = pairs_new();
    topo_explanation_t *explanation;

    for (guint i = 0; i < ENDS * ENDS; i++)
        if (pairs->pairs[i].path.distance == 6) {
            pairs->pairs[i].times[TOPO_ALONE] = 2.25e3;
            pairs->pairs[i].path.limit = 1000e9;
        }
    topo_pair(pairs, 3, 0)->times[TOPO_ALONE] = 9e3;
    explanation = topo_explain(pairs);
    is_str(class_at(explanation, 1)->sentence,
           "d0 -> d2 over SYS (the link between NUMA nodes, 8 pairs): 2.25 "
           "ms, 178 GB/s, 2 times as fast as NV4, although the path is longer: "
           "not expected; its slowest link allows 1e+03 GB/s, of which this is "
           "18 %",
           "a long path that is faster, and a limit");
    is_int(explanation->outliers->len, 1, "one pair is unlike its class");
    is_int(g_array_index(explanation->outliers, topo_outlier_t, 0).from, 3,
           "from there");
    ok(g_array_index(explanation->outliers, topo_outlier_t, 0).ratio > 3.99 &&
           g_array_index(explanation->outliers, topo_outlier_t, 0).ratio < 4.01,
       "by so much");
    topo_explanation_free(explanation);
    topo_pairs_free(pairs);
}

/* One of eight pairs that take 53 ms takes a quarter. */
static void test_faster(void)
{
    topo_pairs_t *pairs = pairs_new();
    topo_explanation_t *explanation;

    topo_pair(pairs, 1, 2)->times[TOPO_ALONE] = 13.25e3;
    explanation = topo_explain(pairs);
    is_int(explanation->outliers->len, 1, "one pair is faster than its class");
    is_str(g_array_index(explanation->outliers, topo_outlier_t, 0).sentence,
           "d1 -> d2 is 4 times as fast as most over SYS: not expected from "
           "the path; see what slows the others",
           "which is said");
    topo_explanation_free(explanation);
    pairs->crowd = g_strdup("4 ranks share 2 processors");
    explanation = topo_explain(pairs);
    is_int(explanation->outliers->len, 0,
           "which says nothing of ranks that wait for their turn");
    topo_explanation_free(explanation);
    topo_pairs_free(pairs);
}

/* Between hosts, the network may be the cause. */
static void test_network(void)
{
    static const char *const sentences[] = {
        "d1 -> d2 takes 2 times as long as most over HOST: not expected from "
        "the path; look",
        "d1 -> d2 takes 2 times as long as most over NET: not expected from "
        "the path; look, and what else uses their network"};
    topo_pairs_t *pairs = pairs_new();

    for (int other = 0; other < 2; other++) {
        topo_explanation_t *explanation;

        for (guint i = 0; i < ENDS * ENDS; i++)
            pairs->pairs[i].path =
                topo_near_path(other ? TOPO_NEAR_NETWORK : TOPO_NEAR_HOST);
        for (guint i = 0; i < ENDS * ENDS; i++)
            pairs->pairs[i].times[TOPO_ALONE] = i == 6 ? 106e3 : 53e3;
        explanation = topo_explain(pairs);
        is_str(g_array_index(explanation->outliers, topo_outlier_t, 0).sentence,
               sentences[other], "a slow pair, of one host and of two");
        topo_explanation_free(explanation);
    }
    topo_pairs_free(pairs);
}

/* 32 rates and latencies, of which one rate and two latencies spread. */
static void test_warning(void)
{
    topo_pairs_t *pairs = pairs_new();
    char *warning;

    for (guint i = 0; i < ENDS * ENDS; i++) {
        pairs->pairs[i].latency = 1;
        pairs->pairs[i].latency_spread = 0.1;
    }
    warning = topo_pairs_warning(pairs);
    is_str(warning, NULL, "10 %% is no noise");
    g_free(warning);
    topo_pair(pairs, 0, 1)->spreads[TOPO_ALONE] = 0.11;
    topo_pair(pairs, 0, 1)->latency_spread = 0.11;
    topo_pair(pairs, 2, 0)->latency_spread = 3;
    warning = topo_pairs_warning(pairs);
    is_str(warning,
           "3 of 32 figures spread by more than 10%: the machine is noisy; end "
           "what else runs",
           "noise in rates and latencies");
    g_free(warning);
    pairs->crowd = g_strdup("4 ranks share 2 processors");
    warning = topo_pairs_warning(pairs);
    is_str(warning, "4 ranks share 2 processors",
           "ranks that wait for their turn, and no noise");
    g_free(warning);
    topo_pairs_free(pairs);
}

static void test_times(void)
{
    static const struct {
        double time;
        const char *text;
    } cases[] = {
        {0.25, "0.25 us"},
        {999, "999 us"},
        {53e3, "53 ms"},
        {2.5e6, "2.5 s"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *text = topo_time_text(cases[i].time);

        is_str(text, cases[i].text, "%s", cases[i].text);
        g_free(text);
    }
}

static void test_near(void)
{
    static const struct {
        const char *machine;
        unsigned a, b;
        const char *word;
    } cases[] = {
        {"package:2 numa:2 l3:1 core:2 pu:2", 0, 0, "X"},
        {"package:2 numa:2 l3:1 core:2 pu:2", 0, 1, "SMT"},
        {"package:2 numa:2 l3:1 core:2 pu:2", 0, 2, "L3"},
        {"package:2 numa:2 l3:1 core:2 pu:2", 0, 4, "PKG"},
        {"package:2 numa:2 l3:1 core:2 pu:2", 0, 8, "SYS"},
        {"package:1 numa:1 l3:2 l2:1 core:2 pu:1", 0, 1, "L2"},
        {"package:1 numa:1 l3:2 l2:1 core:2 pu:1", 0, 2, "NODE"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        dscomm_topology_t topology = {.hwloc = NULL};
        hwloc_bitmap_t a = hwloc_bitmap_alloc(), b = hwloc_bitmap_alloc();

        hwloc_topology_init(&topology.hwloc);
        hwloc_topology_set_synthetic(topology.hwloc, cases[i].machine);
        hwloc_topology_load(topology.hwloc);
        hwloc_bitmap_only(a, cases[i].a);
        hwloc_bitmap_only(b, cases[i].b);
        is_str(topo_near_path(topo_near(&topology, a, b)).word, cases[i].word,
               "%s: %u and %u", cases[i].machine, cases[i].a, cases[i].b);
        hwloc_bitmap_free(a);
        hwloc_bitmap_free(b);
        hwloc_topology_destroy(topology.hwloc);
    }
}

/* Masks of ranks, on hosts a and b. */
static void test_crowd(void)
{
    static const struct {
        const char *ranks, *text;
    } cases[] = {
        {"a:0 a:1 a:2 a:3", NULL},
        {"a:0 a:0 a:1-3",
         "2 ranks share 1 processor of a and wait for their turn"},
        {"a:1 a:2 a:0 a:0",
         "2 ranks share 1 processor of a and wait for their turn"},
        {"a:0-1 a:0-1 a:0-1",
         "3 ranks share 2 processors of a and wait for their turn"},
        {"a:0-1 a:0 a:2 a:1",
         "3 ranks share 2 processors of a and wait for their turn"},
        {"a:0-1 a:1-2 a:0-2", NULL},
        {"a:0,4 a:1,5 a:2,6 a:3,7", NULL},
        {"a:0 b:0", NULL},
        {"a:0 b:1 b:1",
         "2 ranks share 1 processor of b and wait for their turn"},
        {"a:? a:? a:0", NULL},
        {"a:? a:0 a:0",
         "2 ranks share 1 processor of a and wait for their turn"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char **ranks = g_strsplit(cases[i].ranks, " ", -1), *text;
        tool_place_t places[4];
        hwloc_bitmap_t set = hwloc_bitmap_alloc();
        int count = 0;

        for (; ranks[count]; count++) {
            const char *list = ranks[count] + 2;

            hwloc_bitmap_list_sscanf(set, list);
            tool_place_fill(&places[count], *list == '?' ? NULL : set);
            g_snprintf(places[count].host, sizeof places[count].host, "%c",
                       *ranks[count]);
        }
        text = tool_crowd_text(places, count);
        is_str(text, cases[i].text, "%s", cases[i].ranks);
        g_free(text);
        hwloc_bitmap_free(set);
        g_strfreev(ranks);
    }
}

/* Sets of more digits than a place has are unknown. */
static void test_place(void)
{
    tool_place_t place;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    hwloc_bitmap_set_range(set, 0, 99999);
    tool_place_fill(&place, set);
    is_str(place.processors, "", "100000 processors");
    hwloc_bitmap_only(set, 1000);
    tool_place_fill(&place, set);
    ok(*place.processors, "one of them");
    hwloc_bitmap_free(set);
}

int main(void)
{
    test_crowd();
    test_place();
    test_expected();
    test_not_expected();
    test_faster();
    test_network();
    test_warning();
    test_times();
    test_near();
    return tap_done();
}
