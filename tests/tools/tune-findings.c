/* SPDX-License-Identifier: BSD-3-Clause */
/* The conclusions of dscomm tune from times, which are invented here, and the
 * rules that it makes, as the library understands them. */
#include "config.h"

#include "tools/tune/findings.h"

#include <dscomm/dscomm.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define FIGURES ((gsize)TUNE_OPERATIONS * TUNE_CLASSES)
#define ROUNDS_MOST 8

/* Times of rounds before and after, and what follows; the medians, ratios and
 * quartiles are computed by hand. */
static const struct {
    double before[ROUNDS_MOST], after[ROUNDS_MOST]; /* 0: the end; -1: none */
    double want_before, want_after, ratio, low;
    bool clear;
} gains[] = {
    {{10, 10, 10}, {5, 5, 5}, 10, 5, 2, 2, true},
    {{10, 10}, {5, 5}, 10, 5, 2, 2, false},
    {{10, 10, 10}, {10, 10, 10}, 10, 10, 1, 1, false},
    {{104, 104, 104}, {100, 100, 100}, 104, 100, 1.04, 1.04, false},
    {{106, 106, 106}, {100, 100, 100}, 106, 100, 1.06, 1.06, true},
    {{12, 12, 12, 12, 12}, {10, 10, 10, 10, 24}, 12, 10, 1.2, 1.2, true},
    {{12, 12, 12, 12, 12}, {10, 10, 10, 16, 24}, 12, 10, 1.2, 0.75, false},
    {{20, 10, 40}, {10, 8, 20}, 20, 10, 2, 1.625, true},
    {{20, -1, 40, 10}, {10, 8, 20, -1}, 30, 15, 2, 2, false},
    {{8, 4, 2, 16}, {4, 4, 4, 4}, 6, 4, 1.5, 0.875, false},
    {{5, 20}, {-1, -1}, 0, 0, 0, 0, false},
};

static void is_near(double got, double want, const char *what)
{
    ok(fabs(got - want) < 1e-9, "%s is %g, want %g", what, got, want);
}

static void test_gains(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(gains); i++) {
        tune_times_t times;
        tune_gain_t gain;

        tune_times_init(&times, 2, 3);
        for (int r = 0; r < ROUNDS_MOST && gains[i].before[r] != 0; r++) {
            tune_times_begin(&times);
            if (gains[i].before[r] > 0)
                tune_times_set(&times, 0, 1, gains[i].before[r]);
            if (gains[i].after[r] > 0)
                tune_times_set(&times, 1, 1, gains[i].after[r]);
        }
        tune_times_begin(&times);
        tune_times_set(&times, 0, 1, 1000); /* a round that was cut off */
        gain = tune_gain(&times, 1, 1);
        is_near(gain.before, gains[i].want_before, "the time before");
        is_near(gain.after, gains[i].want_after, "the time after");
        is_near(gain.ratio, gains[i].ratio, "the ratio");
        is_near(gain.low, gains[i].low, "the lower quartile");
        is_int(tune_gain_is_clear(&gain), gains[i].clear, "case %zu: clear", i);
        is_int((int)tune_gain(&times, 1, 0).rounds, 0, "another figure: none");
        tune_times_clear(&times);
    }
}

/* Means over figures: 2 * 8 = 4 * 4, so the mean of 1/2 and 1/8 is 1/4. */
static void test_mean(void)
{
    const bool both[] = {true, true, false}, one[] = {true, false, false};
    tune_times_t times;
    tune_gain_t gain;
    double worst;

    tune_times_init(&times, 2, 3);
    for (int r = 0; r < 3; r++) {
        tune_times_begin(&times);
        for (gsize figure = 0; figure < 3; figure++)
            tune_times_set(&times, 0, figure, 16);
        tune_times_set(&times, 1, 0, 8);
        tune_times_set(&times, 1, 1, 2);
        tune_times_set(&times, 1, 2, 32);
    }
    gain = tune_gain_mean(&times, 1, both, &worst);
    is_near(gain.ratio, 4, "the mean of two figures");
    is_near(gain.after, 4, "the mean of their times");
    is_near(worst, 2, "the worse one");
    gain = tune_gain_mean(&times, 1, one, &worst);
    is_near(gain.ratio, 2, "the mean of one");
    tune_times_clear(&times);
}

static void test_classes(void)
{
    static const struct {
        gsize bytes, size_class;
    } rows[] = {{0, 0},      {8, 0},      {128, 0},     {120, 0},
                {1024, 1},   {1020, 1},   {8190, 2},    {65536, 3},
                {524286, 4}, {524288, 4}, {4194300, 5}, {4194304, 5},
                {8388608, 5}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        is_int((int)tune_class_of(rows[i].bytes), (int)rows[i].size_class,
               "the class of %zu bytes", rows[i].bytes);
    is_int((int)tune_class_from(0), 0, "the first class begins at 0");
    for (gsize i = 0; i + 1 < TUNE_CLASSES; i++)
        is_int((int)tune_class_to(i) + 1, (int)tune_class_from(i + 1),
               "classes are adjacent");
}

/* Rules of some classes, and what the library takes them for. */
static void test_rules(void)
{
    static const struct {
        const char *algorithms[TUNE_CLASSES], *want;
    } rows[] = {
        {{NULL}, ""},
        {{"ring"}, "all_reduce@shm/4:-511:ring"},
        {{"ring", "ring"}, "all_reduce@shm/4:-4095:ring"},
        {{NULL, "tree", "tree", "ring"},
         "all_reduce@shm/4:512-32767:tree,all_reduce@shm/4:32K-262143:ring"},
        {{"tree", NULL, "tree", NULL, NULL, "ring"},
         "all_reduce@shm/4:-511:tree,all_reduce@shm/4:4K-32767:tree,"
         "all_reduce@shm/4:2048K-16777215:ring"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        GString *text = g_string_new(NULL);

        tune_rules_append(text, "all_reduce", "shm", 4, true,
                          rows[i].algorithms);
        is_str(text->str, rows[i].want, "rules %zu", i);
        setenv("DSCOMM_ALGORITHM", text->str, 1);
        for (gsize c = 0; c < TUNE_CLASSES; c++) {
            dscomm_choice_info_t info = {.size = sizeof info};

            if (dscomm_choice_info(4, 1, DSCOMM_COLL_ALL_REDUCE, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, tune_class_size(c), &info) < 0)
                bail("%s", dscomm_last_error());
            is_str(info.by_setting, rows[i].algorithms[c],
                   "  what serves %zu bytes", tune_class_size(c));
        }
        g_string_free(text, TRUE);
    }
    unsetenv("DSCOMM_ALGORITHM");
}

static gsize figure_of(const char *operation, gsize size_class)
{
    return (gsize)tune_operation_find(operation) * TUNE_CLASSES + size_class;
}

/* Sets all times of three rounds to 10, with exceptions by set(). */
static void times_fill(tune_times_t *times, gsize alternatives,
                       void (*set)(tune_times_t *times))
{
    tune_times_init(times, alternatives, FIGURES);
    for (int r = 0; r < 3; r++) {
        tune_times_begin(times);
        for (gsize a = 0; a < alternatives; a++)
            for (gsize figure = 0; figure < FIGURES; figure++)
                tune_times_set(times, a, figure, 10);
        set(times);
    }
}

/* Candidate 1 and 2 are algorithms number 0 and 1 of each collective. */
static void set_algorithms(tune_times_t *times)
{
    tune_times_set(times, 1, figure_of("broadcast", 2), 5);
    tune_times_set(times, 2, figure_of("broadcast", 2), 4);
    tune_times_set(times, 2, figure_of("broadcast", 3), 9.9);
    tune_times_set(times, 1, figure_of("barrier", 0), 2);
}

static void test_algorithms(void)
{
    GArray *findings = g_array_new(FALSE, FALSE, sizeof(tune_finding_t));
    GPtrArray *candidates = tune_candidates_algorithms(3);
    const tune_candidate_t *second = candidates->pdata[2];
    const int broadcast = tune_operation_find("broadcast");
    const tune_candidate_t *first = candidates->pdata[1];
    tune_times_t times;
    char *rules, *want;

    times_fill(&times, candidates->len, set_algorithms);
    tune_find_algorithms(candidates, &times, findings);
    is_int((int)findings->len, 2, "two algorithms are faster");
    rules = tune_findings_rules(findings, "tcp", 3);
    want = g_strdup_printf("broadcast@tcp/3:4K-32767:%s,barrier@tcp/3:%s",
                           second->algorithms[broadcast],
                           first->algorithms[tune_operation_find("barrier")]);
    is_str(rules, want, "the best one, for this number of ranks");
    g_free(rules);
    g_free(want);
    tune_times_clear(&times);
    g_array_free(findings, TRUE);
    g_ptr_array_free(candidates, TRUE);
}

/* A setting that is faster in one figure and as much slower in another. */
static void set_settings(tune_times_t *times)
{
    tune_times_set(times, 1, figure_of("latency", 3), 5);
    tune_times_set(times, 2, figure_of("latency", 3), 5);
    tune_times_set(times, 2, figure_of("sendrecv", 3), 12);
}

static void test_settings(void)
{
    GArray *findings = g_array_new(FALSE, FALSE, sizeof(tune_finding_t));
    GPtrArray *candidates = g_ptr_array_new_with_free_func(tune_candidate_free);
    static const char *const values[] = {NULL, "1", "2"};
    tune_candidate_t *all;
    tune_times_t times;

    for (int i = 0; i < 3; i++) {
        tune_candidate_t *candidate =
            tune_candidate_new(i ? "DSCOMM_X" : NULL, values[i]);

        candidate->operations[tune_operation_find("latency")] = true;
        candidate->operations[tune_operation_find("sendrecv")] = true;
        candidate->first = candidate->last = 3;
        g_ptr_array_add(candidates, candidate);
    }
    times_fill(&times, 3, set_settings);
    tune_find_settings(candidates, &times, findings);
    is_int((int)findings->len, 1, "one value is found");
    is_str(g_array_index(findings, tune_finding_t, 0).value, "1",
           "the one that makes nothing slower");
    all = tune_findings_candidate(findings, "shm", 2);
    is_str(all->environment[0], "DSCOMM_X=1", "it is measured once more");
    is_str(all->value, NULL, "without rules");
    ok(all->operations[tune_operation_find("latency")] && all->first == 3 &&
           all->last == 3,
       "in what it is about");
    tune_candidate_free(all);
    is_int((int)tune_findings_confirm(&times, findings), 0, "and confirmed");
    tune_times_clear(&times);
    times_fill(&times, 3, set_algorithms);
    is_int((int)tune_findings_confirm(&times, findings), 1, "or not");
    is_int((int)findings->len, 0, "and then gone");
    tune_times_clear(&times);
    g_array_free(findings, TRUE);
    g_ptr_array_free(candidates, TRUE);
}

/* The remark agrees with the findings beside it, which are written. */
static void test_remark(void)
{
    GArray *findings = g_array_new(FALSE, TRUE, sizeof(tune_finding_t));
    char text[160];

    tune_findings_remark(findings, false, text, sizeof text);
    is_str(text, "Nothing is clearly faster than the defaults.", "no findings");
    tune_findings_remark(findings, true, text, sizeof text);
    ok(strstr(text, "nothing follows") && strstr(text, "--time"),
       "too few rounds of all: %s", text);
    g_array_set_size(findings, 1);
    tune_findings_remark(findings, true, text, sizeof text);
    ok(!strstr(text, "nothing") && strstr(text, "--time"),
       "too few rounds of some: %s", text);
    tune_findings_remark(findings, false, text, sizeof text);
    is_str(text, "", "findings alone");
    g_array_free(findings, TRUE);
}

/* A setting of the user is not tried. */
static void test_given(void)
{
    GPtrArray *candidates;
    guint all;

    candidates = tune_candidates_settings("shm");
    all = candidates->len;
    ok(all > 1, "there are settings of shm");
    g_ptr_array_free(candidates, TRUE);
    setenv("DSCOMM_SHM_RING", "1M", 1);
    setenv("DSCOMM_ALGORITHM", "all_reduce:ring", 1);
    candidates = tune_candidates_settings("shm");
    ok(candidates->len < all && candidates->len > 1, "one is given");
    g_ptr_array_free(candidates, TRUE);
    candidates = tune_candidates_algorithms(2);
    is_int((int)candidates->len, 1, "and so are algorithms");
    g_ptr_array_free(candidates, TRUE);
    unsetenv("DSCOMM_SHM_RING");
    unsetenv("DSCOMM_ALGORITHM");
    candidates = tune_candidates_settings("self");
    is_int((int)candidates->len, 1, "a backend without settings");
    g_ptr_array_free(candidates, TRUE);
}

/* A tuning file may give every setting that is tried, by a valid value. */
static void test_tunable(void)
{
    GPtrArray *candidates = tune_candidates_settings("shm");

    for (guint i = 1; i < candidates->len; i++) {
        const tune_candidate_t *candidate = candidates->pdata[i];
        dscomm_setting_info_t info = {.size = sizeof info};
        bool found = false;

        setenv(candidate->name, candidate->value, 1);
        for (size_t k = 0; dscomm_setting_info(k, &info) == DSCOMM_OK; k++)
            if (!strcmp(info.name, candidate->name))
                found = !info.refused;
        ok(found, "%s=%s is accepted", candidate->name, candidate->value);
        unsetenv(candidate->name);
    }
    g_ptr_array_free(candidates, TRUE);
}

int main(void)
{
    unsetenv("DSCOMM_ALGORITHM");
    test_gains();
    test_mean();
    test_classes();
    test_rules();
    test_algorithms();
    test_settings();
    test_remark();
    test_given();
    test_tunable();
    return tap_done();
}
