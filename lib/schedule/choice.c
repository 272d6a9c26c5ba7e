/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of choice: the defaults, and the user's, which come first. */
#include "config.h"
#include "lib/schedule/choice.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/base/types.h"

#include <pthread.h>
#include <string.h>

#define ANY INT_MAX
#define END UINT64_MAX
#define K *UINT64_C(1024)

/* One row of defaults, with names; resolved at first use. */
typedef struct {
    int coll, ranks;
    uint64_t to;
    const char *algorithm;
} row_t;

#define COLL(name) DSCOMM_COLL_##name

/* The rows of one collective are adjacent. The first row whose limits hold and
 * whose algorithm fits serves. Thresholds: doc/performance.md. */
static const row_t rows[] = {
    {COLL(BROADCAST), 2, END, "linear"},
    {COLL(BROADCAST), ANY, 16 K, "knomial"},
    {COLL(BROADCAST), ANY, 512 K, "binomial"},
    {COLL(BROADCAST), 16, END, "chain"},
    {COLL(BROADCAST), ANY, 8192 K, "scatter_all_gather"},
    {COLL(BROADCAST), ANY, END, "chain"},
    {COLL(REDUCE), 2, END, "linear"},
    {COLL(REDUCE), ANY, 16 K, "knomial"},
    {COLL(REDUCE), ANY, 512 K, "binomial"},
    {COLL(REDUCE), 16, END, "chain"},
    {COLL(REDUCE), ANY, 8192 K, "halving_doubling"},
    {COLL(REDUCE), ANY, END, "chain"},
    {COLL(REDUCE), ANY, 32 K, "linear"},
    {COLL(REDUCE), ANY, END, "pairwise"},
    {COLL(ALL_REDUCE), 2, 32 K, "linear"},
    {COLL(ALL_REDUCE), ANY, 16 K, "recursive_doubling"},
    {COLL(ALL_REDUCE), 8, 8 K, "linear"},
    {COLL(ALL_REDUCE), ANY, 4 K, "bruck"},
    {COLL(ALL_REDUCE), 16, END, "pairwise"},
    {COLL(ALL_REDUCE), ANY, 1024 K, "halving_doubling"},
    {COLL(ALL_REDUCE), ANY, END, "ring"},
    {COLL(ALL_REDUCE), ANY, END, "pairwise"},
    {COLL(ALL_GATHER), 4, 64 K, "linear"},
    {COLL(ALL_GATHER), ANY, 32 K, "recursive_doubling"},
    {COLL(ALL_GATHER), ANY, 32 K, "bruck"},
    {COLL(ALL_GATHER), 16, 64 K, "linear"},
    {COLL(ALL_GATHER), ANY, END, "ring"},
    {COLL(ALL_GATHER_V), 4, 64 K, "linear"},
    {COLL(ALL_GATHER_V), ANY, 32 K, "bruck"},
    {COLL(ALL_GATHER_V), 16, 64 K, "linear"},
    {COLL(ALL_GATHER_V), ANY, END, "ring"},
    {COLL(REDUCE_SCATTER), 4, END, "pairwise"},
    {COLL(REDUCE_SCATTER), ANY, 32 K, "halving_doubling"},
    {COLL(REDUCE_SCATTER), ANY, END, "pairwise"},
    {COLL(REDUCE_SCATTER_V), 4, END, "pairwise"},
    {COLL(REDUCE_SCATTER_V), ANY, 32 K, "halving_doubling"},
    {COLL(REDUCE_SCATTER_V), ANY, END, "pairwise"},
    {COLL(GATHER), 8, END, "linear"},
    {COLL(GATHER), ANY, 64 K, "binomial"},
    {COLL(GATHER), ANY, END, "linear"},
    {COLL(GATHER_V), ANY, END, "linear"},
    {COLL(SCATTER), 8, END, "linear"},
    {COLL(SCATTER), ANY, 64 K, "binomial"},
    {COLL(SCATTER), ANY, END, "linear"},
    {COLL(SCATTER_V), ANY, END, "linear"},
    {COLL(ALL_TO_ALL), 4, END, "linear"},
    {COLL(ALL_TO_ALL), ANY, 4 K, "bruck"},
    {COLL(ALL_TO_ALL), 8, END, "linear"},
    {COLL(ALL_TO_ALL), ANY, END, "pairwise"},
    {COLL(ALL_TO_ALL_V), 8, END, "linear"},
    {COLL(ALL_TO_ALL_V), ANY, END, "pairwise"},
    {COLL(BARRIER), ANY, END, "dissemination"},
};

/* The rows for two levels of nodes, which come before the others: ranks from
 * least to most, bytes from one limit to the other. They need two ranks a node
 * or more, on average. Figures: doc/performance.md and doc/scaling.md. */
static const struct {
    int coll, least, most;
    uint64_t from, to;
} two_levels[] = {
    {COLL(BROADCAST), 5, ANY, 0, END},
    {COLL(BROADCAST), 4, 4, 256 K, END},
    {COLL(REDUCE), 5, ANY, 0, 512 K},
    {COLL(ALL_REDUCE), 5, 16, 0, 512 K},
    {COLL(ALL_REDUCE), 17, ANY, 0, 4 K},
    {COLL(ALL_GATHER), 5, ANY, 0, 64 K},
    {COLL(REDUCE_SCATTER), 5, ANY, 0, 64 K},
    {COLL(BARRIER), 5, ANY, 0, END},
};

static const dscomm_algorithm_t *algorithm_find(int coll, const char *name)
{
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    for (; algorithm->name; algorithm++)
        if (algorithm->coll == coll &&
            !g_ascii_strcasecmp(algorithm->name, name))
            return algorithm;
    return NULL;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dscomm_choice_t table[G_N_ELEMENTS(rows)];
static const dscomm_choice_t *table_end = table + G_N_ELEMENTS(rows);
/* first row of each collective */
static const dscomm_choice_t *firsts[DSCOMM_COLL_COUNT];
static const dscomm_algorithm_t *levelled[DSCOMM_COLL_COUNT];

static void resolve(void)
{
    for (size_t i = G_N_ELEMENTS(rows); i-- > 0;) {
        table[i] = (dscomm_choice_t){
            .coll = rows[i].coll,
            .ranks = rows[i].ranks,
            .to = rows[i].to,
            .algorithm = algorithm_find(rows[i].coll, rows[i].algorithm),
        };
        firsts[rows[i].coll] = &table[i];
    }
    for (size_t i = 0; i < G_N_ELEMENTS(two_levels); i++)
        levelled[two_levels[i].coll] =
            algorithm_find(two_levels[i].coll, "two_level");
}

const dscomm_choice_t *dscomm_priv_choice_row(size_t index)
{
    pthread_once(&once, resolve);
    return index < G_N_ELEMENTS(rows) ? &table[index] : NULL;
}

static uint64_t sum(const dscomm_coll_args_t *args, int ranks)
{
    const size_t *counts = args->recv_counts;
    uint64_t total = 0;

    if (!counts)
        return (uint64_t)args->count * (uint64_t)ranks;
    for (int r = 0; r < ranks; r++)
        total += counts[r];
    return total;
}

static int is_sized(int coll)
{
    return coll != DSCOMM_COLL_GATHER_V && coll != DSCOMM_COLL_SCATTER_V &&
           coll != DSCOMM_COLL_ALL_TO_ALL_V;
}

uint64_t dscomm_priv_choice_bytes(const dscomm_coll_args_t *args, int ranks)
{
    uint64_t count = args->count;

    if (!is_sized(args->coll))
        return 0;
    if (dscomm_priv_coll_has(args->coll, SHAPE_COUNTS))
        count = sum(args, ranks);
    else if (dscomm_priv_coll_has(args->coll, SHAPE_ALL))
        count *= (uint64_t)ranks;
    return count * args->element;
}

static int matches(const dscomm_choice_t *rule, const dscomm_coll_args_t *args,
                   int ranks, uint64_t bytes)
{
    return rule->coll == args->coll && ranks <= rule->ranks &&
           bytes >= rule->from && bytes <= rule->to;
}

static int fits(const dscomm_algorithm_t *algorithm,
                const dscomm_coll_args_t *args, int ranks,
                const dscomm_nodes_t *nodes)
{
    return !algorithm->fits || algorithm->fits(args, ranks, nodes);
}

/* Returns the first rule, from number from on, that matches and fits.
 * *ret_passed = the first before it that matches but does not fit, or NULL. */
static const dscomm_choice_t *find_rule(const GArray *rules, guint from,
                                        const dscomm_coll_args_t *args,
                                        int ranks, const dscomm_nodes_t *nodes,
                                        uint64_t bytes,
                                        const dscomm_choice_t **ret_passed)
{
    *ret_passed = NULL;
    for (guint i = from; rules && i < rules->len; i++) {
        const dscomm_choice_t *rule = &g_array_index(rules, dscomm_choice_t, i);

        if (!matches(rule, args, ranks, bytes))
            continue;
        if (!rule->algorithm || fits(rule->algorithm, args, ranks, nodes))
            return rule;
        if (!*ret_passed)
            *ret_passed = rule;
    }
    return NULL;
}

/* Returns the algorithm for two levels, or NULL if another one is faster. */
static const dscomm_algorithm_t *find_levelled(const dscomm_coll_args_t *args,
                                               int ranks,
                                               const dscomm_nodes_t *nodes,
                                               uint64_t bytes)
{
    const dscomm_algorithm_t *algorithm = levelled[args->coll];

    if (ranks / 2 < nodes->count)
        return NULL;
    for (size_t i = 0; algorithm && i < G_N_ELEMENTS(two_levels); i++)
        if (two_levels[i].coll == args->coll && ranks >= two_levels[i].least &&
            ranks <= two_levels[i].most && bytes >= two_levels[i].from &&
            bytes <= two_levels[i].to && fits(algorithm, args, ranks, nodes))
            return algorithm;
    return NULL;
}

static const dscomm_algorithm_t *find_default(const dscomm_coll_args_t *args,
                                              int ranks,
                                              const dscomm_nodes_t *nodes,
                                              uint64_t bytes)
{
    const dscomm_choice_t *row;
    const dscomm_algorithm_t *algorithm;

    pthread_once(&once, resolve);
    algorithm = nodes ? find_levelled(args, ranks, nodes, bytes) : NULL;
    if (algorithm)
        return algorithm;
    for (row = firsts[args->coll]; row != table_end && row->coll == args->coll;
         row++)
        if (matches(row, args, ranks, bytes) &&
            fits(row->algorithm, args, ranks, nodes))
            return row->algorithm;
    algorithm = dscomm_priv_algorithms;
    while (algorithm->coll != args->coll ||
           !fits(algorithm, args, ranks, nodes))
        algorithm++;
    return algorithm;
}

const dscomm_choice_t *dscomm_priv_choice_rule(const GArray *rules,
                                               const dscomm_coll_args_t *args,
                                               int ranks,
                                               const dscomm_nodes_t *nodes)
{
    const dscomm_choice_t *passed;

    if (!rules || !rules->len)
        return NULL;
    return find_rule(rules, 0, args, ranks, nodes,
                     dscomm_priv_choice_bytes(args, ranks), &passed);
}

const dscomm_choice_t *dscomm_priv_choice_passed(const GArray *rules,
                                                 guint from,
                                                 const dscomm_coll_args_t *args,
                                                 int ranks,
                                                 const dscomm_nodes_t *nodes)
{
    const dscomm_choice_t *passed;

    find_rule(rules, from, args, ranks, nodes,
              dscomm_priv_choice_bytes(args, ranks), &passed);
    return passed;
}

const dscomm_algorithm_t *
dscomm_priv_choice_default(const dscomm_coll_args_t *args, int ranks,
                           const dscomm_nodes_t *nodes)
{
    return find_default(args, ranks, nodes,
                        dscomm_priv_choice_bytes(args, ranks));
}

/* Returns the smallest limit of choice above bytes, or END. */
static uint64_t beyond(const dscomm_choice_t *choice, uint64_t bytes)
{
    if (choice->from > bytes)
        return choice->from;
    return choice->to >= bytes && choice->to < END ? choice->to + 1 : END;
}

/* The same for the table of two levels. */
static uint64_t beyond_levels(int coll, uint64_t bytes)
{
    uint64_t next = END;

    for (size_t i = 0; i < G_N_ELEMENTS(two_levels); i++) {
        const dscomm_choice_t limits = {.from = two_levels[i].from,
                                        .to = two_levels[i].to};

        if (two_levels[i].coll == coll)
            next = MIN(next, beyond(&limits, bytes));
    }
    return next;
}

/* Returns the next size at which the choice may change. */
static uint64_t next_limit(const GArray *rules, int coll, uint64_t bytes)
{
    const dscomm_choice_t *row;
    uint64_t next = beyond_levels(coll, bytes);

    for (size_t i = 0; (row = dscomm_priv_choice_row(i)); i++)
        if (row->coll == coll)
            next = MIN(next, beyond(row, bytes));
    for (guint i = 0; rules && i < rules->len; i++) {
        row = &g_array_index(rules, dscomm_choice_t, i);
        if (row->coll == coll)
            next = MIN(next, beyond(row, bytes));
    }
    return next;
}

static dscomm_choice_span_t span_from(const GArray *rules,
                                      const dscomm_coll_args_t *args, int ranks,
                                      const dscomm_nodes_t *nodes,
                                      uint64_t bytes)
{
    dscomm_choice_span_t span = {.from = bytes, .to = END};

    span.rule = find_rule(rules, 0, args, ranks, nodes, bytes, &span.passed);
    span.algorithm = find_default(args, ranks, nodes, bytes);
    return span;
}

static int same_rule(const dscomm_choice_t *a, const dscomm_choice_t *b)
{
    return !a == !b && (!a || a->algorithm == b->algorithm);
}

static int same(const dscomm_choice_span_t *a, const dscomm_choice_span_t *b)
{
    return a->algorithm == b->algorithm && same_rule(a->rule, b->rule) &&
           same_rule(a->passed, b->passed);
}

void dscomm_priv_choice_span(const GArray *rules,
                             const dscomm_coll_args_t *args, int ranks,
                             const dscomm_nodes_t *nodes, uint64_t bytes,
                             dscomm_choice_span_t *ret_span)
{
    dscomm_choice_span_t span = span_from(rules, args, ranks, nodes, 0);
    uint64_t at = is_sized(args->coll) ? 0 : END;

    while (at != END && (at = next_limit(rules, args->coll, at)) != END) {
        dscomm_choice_span_t next = span_from(rules, args, ranks, nodes, at);

        if (same(&span, &next))
            continue;
        if (at > bytes) {
            span.to = at - 1;
            break;
        }
        span = next;
    }
    *ret_span = span;
}

static int find_coll(const char *name)
{
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        if (!g_ascii_strcasecmp(name, dscomm_coll_name((dscomm_coll_t)coll)))
            return coll;
    return -1;
}

/* Reads "8K-1M", "64K-" or "-4K"; returns 0 if it is valid. */
static int read_range(const char *text, dscomm_choice_t *rule)
{
    static const dscomm_setting_t bytes = {
        .name = "", .type = DSCOMM_SETTING_BYTES, .max = INT64_MAX};
    char **ends = g_strsplit(text, "-", 2);
    int64_t value;
    int wrong = g_strv_length(ends) < 2;

    for (int i = 0; i < 2 && !wrong; i++)
        g_strstrip(ends[i]);
    if (!wrong && *ends[0]) {
        wrong = dscomm_priv_setting_try(&bytes, ends[0], &value) != 0;
        rule->from = wrong ? 0 : (uint64_t)value;
    }
    if (!wrong && *ends[1]) {
        wrong = dscomm_priv_setting_try(&bytes, ends[1], &value) != 0;
        rule->to = wrong ? 0 : (uint64_t)value;
    }
    g_strfreev(ends);
    return wrong || rule->from > rule->to;
}

static char *algorithm_list_names(int coll)
{
    GString *names = g_string_new("native");
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    for (; algorithm->name; algorithm++)
        if (algorithm->coll == coll)
            g_string_append_printf(names, ", %s", algorithm->name);
    return g_string_free(names, FALSE);
}

static dscomm_status_t algorithm_refuse_name(int coll, const char *name)
{
    char *names = algorithm_list_names(coll), quoted[64];
    dscomm_status_t status = dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "DSCOMM_ALGORITHM: '%s' is no algorithm of %s; there are %s",
        dscomm_priv_quote(name, quoted, sizeof quoted),
        dscomm_coll_name((dscomm_coll_t)coll), names);

    g_free(names);
    return status;
}

static dscomm_status_t refuse_coll(const char *name)
{
    GString *names = g_string_new(NULL);
    char quoted[64];

    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        g_string_append_printf(names, "%s%s", coll ? ", " : "",
                               dscomm_coll_name((dscomm_coll_t)coll));
    dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                "DSCOMM_ALGORITHM: '%s' is no collective; there are %s",
                dscomm_priv_quote(name, quoted, sizeof quoted), names->str);
    g_string_free(names, TRUE);
    return DSCOMM_ERR_ENVIRONMENT;
}

static dscomm_status_t refuse_range(const char *range)
{
    char quoted[64];

    return dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "DSCOMM_ALGORITHM: '%s' is no range of bytes; write FROM-TO in whole "
        "numbers with K, M, G or T, such as 64K-1M, -1536 or 2M-",
        dscomm_priv_quote(range, quoted, sizeof quoted));
}

static dscomm_status_t refuse_rule(const char *text)
{
    char quoted[64];

    return dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "DSCOMM_ALGORITHM: '%s' is no rule; write "
        "COLLECTIVE:[FROM-TO:]ALGORITHM, such as all_reduce:64K-1M:ring",
        dscomm_priv_quote(text, quoted, sizeof quoted));
}

/* Reads COLLECTIVE:[FROM-TO:]ALGORITHM, with blanks anywhere between words. */
static dscomm_status_t read_rule(const char *text, dscomm_choice_t *rule)
{
    char **words = g_strsplit(text, ":", 3);
    guint count = g_strv_length(words);
    const char *name = count ? words[count - 1] : "";
    dscomm_status_t status = DSCOMM_OK;

    for (guint i = 0; i < count; i++)
        g_strstrip(words[i]);
    *rule = (dscomm_choice_t){.ranks = ANY, .to = END};
    rule->coll = count ? find_coll(words[0]) : -1;
    if (count >= 2 && rule->coll < 0)
        status = refuse_coll(words[0]);
    else if (count < 2)
        status = refuse_rule(text);
    else if (count == 3 && read_range(words[1], rule))
        status = refuse_range(words[1]);
    else if (g_ascii_strcasecmp(name, "native") &&
             !(rule->algorithm = algorithm_find(rule->coll, name)))
        status = algorithm_refuse_name(rule->coll, name);
    g_strfreev(words);
    return status;
}

dscomm_status_t dscomm_priv_choices_read(const char *text, GArray **ret_rules)
{
    GArray *rules = g_array_new(FALSE, FALSE, sizeof(dscomm_choice_t));
    char **words = g_strsplit(text ? text : "", ",", -1);
    dscomm_status_t status = DSCOMM_OK;

    for (char **word = words; *word && status == DSCOMM_OK; word++) {
        dscomm_choice_t rule;

        if (!*g_strstrip(*word))
            continue;
        status = read_rule(*word, &rule);
        if (status == DSCOMM_OK)
            g_array_append_val(rules, rule);
    }
    g_strfreev(words);
    if (status < 0)
        g_array_free(rules, TRUE);
    else
        *ret_rules = rules;
    return status;
}
