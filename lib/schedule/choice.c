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

#define SHARED (-1) /* nodes: several, of two ranks or more on average */

/* One row of defaults, with names; resolved at first use. Ranks from least to
 * most, on nodes or more; bytes from one limit to the other. */
typedef struct {
    int coll, least, most, nodes;
    uint64_t from, to;
    const char *algorithm;
} row_t;

#define COLL(name) DSCOMM_COLL_##name

/* The rows of one collective are adjacent. Those for two levels of nodes come
 * first, or are SHARED. The first row whose limits hold and whose algorithm
 * fits serves. Thresholds: doc/performance.md; of two levels: doc/scaling.md.
 */
static const row_t rows[] = {
    {COLL(BROADCAST), 5, ANY, 0, 0, END, "two_level"},
    {COLL(BROADCAST), 4, 4, 0, 256 K, END, "two_level"},
    {COLL(BROADCAST), 0, 2, 0, 0, END, "linear"},
    {COLL(BROADCAST), 0, ANY, 0, 0, 16 K, "knomial"},
    {COLL(BROADCAST), 0, ANY, 0, 0, 512 K, "binomial"},
    {COLL(BROADCAST), 0, 16, 0, 0, END, "chain"},
    {COLL(BROADCAST), 0, ANY, 0, 0, 8192 K, "scatter_all_gather"},
    {COLL(BROADCAST), 0, ANY, 0, 0, END, "chain"},
    {COLL(REDUCE), 5, ANY, 0, 0, 512 K, "two_level"},
    {COLL(REDUCE), 0, 2, 0, 0, END, "linear"},
    {COLL(REDUCE), 0, ANY, 0, 0, 16 K, "knomial"},
    {COLL(REDUCE), 0, ANY, 0, 0, 512 K, "binomial"},
    {COLL(REDUCE), 0, 16, 0, 0, END, "chain"},
    {COLL(REDUCE), 0, ANY, 0, 0, 8192 K, "halving_doubling"},
    {COLL(REDUCE), 0, ANY, 0, 0, END, "chain"},
    {COLL(REDUCE), 0, ANY, 0, 0, 32 K, "linear"},
    {COLL(REDUCE), 0, ANY, 0, 0, END, "pairwise"},
    {COLL(ALL_REDUCE), 4, 4, SHARED, 8 K + 1, 64 K, "halving_doubling"},
    {COLL(ALL_REDUCE), 8, 8, SHARED, 8 K + 1, 64 K, "halving_doubling"},
    {COLL(ALL_REDUCE), 5, 8, SHARED, 0, 64 K, "two_level"},
    {COLL(ALL_REDUCE), 9, 16, SHARED, 0, 512 K, "two_level"},
    {COLL(ALL_REDUCE), 17, ANY, SHARED, 0, 4 K, "two_level"},
    {COLL(ALL_REDUCE), 0, 2, 0, 0, 32 K, "linear"},
    {COLL(ALL_REDUCE), 0, 2, 2, 0, 64 K, "linear"},
    {COLL(ALL_REDUCE), 0, 2, 2, 0, 1024 K, "recursive_doubling"},
    {COLL(ALL_REDUCE), 0, 2, 2, 0, END, "halving_doubling"},
    {COLL(ALL_REDUCE), 3, 8, 2, 0, 64 K, "recursive_doubling"},
    {COLL(ALL_REDUCE), 4, 4, 2, 0, END, "halving_doubling"},
    {COLL(ALL_REDUCE), 8, 8, 2, 0, END, "halving_doubling"},
    {COLL(ALL_REDUCE), 16, 16, SHARED, 512 K, END, "halving_doubling"},
    {COLL(ALL_REDUCE), 0, ANY, 0, 0, 16 K, "recursive_doubling"},
    {COLL(ALL_REDUCE), 0, 8, 0, 0, 8 K, "linear"},
    {COLL(ALL_REDUCE), 0, ANY, 0, 0, 4 K, "bruck"},
    {COLL(ALL_REDUCE), 0, 16, 0, 0, END, "pairwise"},
    {COLL(ALL_REDUCE), 0, ANY, 0, 0, 1024 K, "halving_doubling"},
    {COLL(ALL_REDUCE), 0, ANY, 0, 0, END, "ring"},
    {COLL(ALL_REDUCE), 0, ANY, 0, 0, END, "pairwise"},
    {COLL(ALL_GATHER), 5, ANY, 0, 0, 64 K, "two_level"},
    {COLL(ALL_GATHER), 0, 4, 0, 0, 64 K, "linear"},
    {COLL(ALL_GATHER), 0, ANY, 0, 0, 32 K, "recursive_doubling"},
    {COLL(ALL_GATHER), 0, ANY, 0, 0, 32 K, "bruck"},
    {COLL(ALL_GATHER), 0, 16, 0, 0, 64 K, "linear"},
    {COLL(ALL_GATHER), 0, ANY, 0, 0, END, "ring"},
    {COLL(ALL_GATHER_V), 0, 4, 0, 0, 64 K, "linear"},
    {COLL(ALL_GATHER_V), 0, ANY, 0, 0, 32 K, "bruck"},
    {COLL(ALL_GATHER_V), 0, 16, 0, 0, 64 K, "linear"},
    {COLL(ALL_GATHER_V), 0, ANY, 0, 0, END, "ring"},
    {COLL(REDUCE_SCATTER), 5, ANY, 0, 0, 64 K, "two_level"},
    {COLL(REDUCE_SCATTER), 0, 4, 0, 0, END, "pairwise"},
    {COLL(REDUCE_SCATTER), 0, ANY, 0, 0, 32 K, "halving_doubling"},
    {COLL(REDUCE_SCATTER), 0, ANY, 0, 0, END, "pairwise"},
    {COLL(REDUCE_SCATTER_V), 0, 4, 0, 0, END, "pairwise"},
    {COLL(REDUCE_SCATTER_V), 0, ANY, 0, 0, 32 K, "halving_doubling"},
    {COLL(REDUCE_SCATTER_V), 0, ANY, 0, 0, END, "pairwise"},
    {COLL(GATHER), 0, 8, 0, 0, END, "linear"},
    {COLL(GATHER), 0, ANY, 0, 0, 64 K, "binomial"},
    {COLL(GATHER), 0, ANY, 0, 0, END, "linear"},
    {COLL(GATHER_V), 0, ANY, 0, 0, END, "linear"},
    {COLL(SCATTER), 0, 8, 0, 0, END, "linear"},
    {COLL(SCATTER), 0, ANY, 0, 0, 64 K, "binomial"},
    {COLL(SCATTER), 0, ANY, 0, 0, END, "linear"},
    {COLL(SCATTER_V), 0, ANY, 0, 0, END, "linear"},
    {COLL(ALL_TO_ALL), 0, 4, 0, 0, END, "linear"},
    {COLL(ALL_TO_ALL), 0, ANY, 0, 0, 4 K, "bruck"},
    {COLL(ALL_TO_ALL), 0, 8, 0, 0, END, "linear"},
    {COLL(ALL_TO_ALL), 0, ANY, 0, 0, END, "pairwise"},
    {COLL(ALL_TO_ALL_V), 0, 8, 0, 0, END, "linear"},
    {COLL(ALL_TO_ALL_V), 0, ANY, 0, 0, END, "pairwise"},
    {COLL(BARRIER), 5, ANY, 0, 0, END, "two_level"},
    {COLL(BARRIER), 0, ANY, 0, 0, END, "dissemination"},
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
/* The first row of each collective: not for two levels, of all. */
static const dscomm_choice_t *firsts[2][DSCOMM_COLL_COUNT];

static void rows_resolve(void)
{
    for (size_t i = G_N_ELEMENTS(rows); i-- > 0;) {
        table[i] = (dscomm_choice_t){
            .coll = rows[i].coll,
            .least = rows[i].least,
            .ranks = rows[i].most,
            .from = rows[i].from,
            .to = rows[i].to,
            .nodes = rows[i].nodes,
            .algorithm = algorithm_find(rows[i].coll, rows[i].algorithm),
        };
        firsts[1][rows[i].coll] = &table[i];
        if (!dscomm_priv_algorithm_needs_levels(table[i].algorithm))
            firsts[0][rows[i].coll] = &table[i];
    }
}

const dscomm_choice_t *dscomm_priv_choice_row(size_t index)
{
    pthread_once(&once, rows_resolve);
    return index < G_N_ELEMENTS(rows) ? &table[index] : NULL;
}

static uint64_t counts_sum(const dscomm_coll_args_t *args, int ranks)
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
        count = counts_sum(args, ranks);
    else if (dscomm_priv_coll_has(args->coll, SHAPE_ALL))
        count *= (uint64_t)ranks;
    return count * args->element;
}

/* Whether the nodes have two ranks or more, on average. */
static bool nodes_are_shared(const dscomm_nodes_t *nodes, int ranks)
{
    return nodes && ranks / 2 >= nodes->count;
}

/* Whether rule is for groups of that backend, if it is known, and so many
 * ranks. */
static int rule_is_for(const dscomm_choice_t *rule, int ranks,
                       const char *backend)
{
    return ranks >= rule->least && ranks <= rule->ranks &&
           (!rule->backend || !backend ||
            !g_ascii_strcasecmp(rule->backend, backend));
}

uint32_t dscomm_priv_choices_ruled(const GArray *rules, int ranks,
                                   const char *backend)
{
    uint32_t ruled = 0;

    for (guint i = 0; i < rules->len; i++) {
        const dscomm_choice_t *rule = &g_array_index(rules, dscomm_choice_t, i);

        if (rule_is_for(rule, ranks, backend))
            ruled |= UINT32_C(1) << rule->coll;
    }
    return ruled;
}

static int rule_matches(const dscomm_choice_t *rule,
                        const dscomm_coll_args_t *args, int ranks,
                        const char *backend, const dscomm_nodes_t *nodes,
                        uint64_t bytes)
{
    return rule->coll == args->coll && rule_is_for(rule, ranks, backend) &&
           bytes >= rule->from && bytes <= rule->to &&
           (rule->nodes != SHARED || nodes_are_shared(nodes, ranks)) &&
           (rule->nodes < 2 || (nodes && nodes->count >= rule->nodes));
}

static int algorithm_fits(const dscomm_algorithm_t *algorithm,
                          const dscomm_coll_args_t *args, int ranks,
                          const dscomm_nodes_t *nodes)
{
    return !algorithm->fits || algorithm->fits(args, ranks, nodes);
}

/* Returns the first rule, from number from on, that matches and fits.
 * *ret_passed = the first before it that matches but does not fit, or NULL. */
static const dscomm_choice_t *
find_rule(const GArray *rules, guint from, const dscomm_coll_args_t *args,
          int ranks, const char *backend, const dscomm_nodes_t *nodes,
          uint64_t bytes, const dscomm_choice_t **ret_passed)
{
    *ret_passed = NULL;
    for (guint i = from; rules && i < rules->len; i++) {
        const dscomm_choice_t *rule = &g_array_index(rules, dscomm_choice_t, i);

        if (!rule_matches(rule, args, ranks, backend, nodes, bytes))
            continue;
        if (!rule->algorithm ||
            algorithm_fits(rule->algorithm, args, ranks, nodes))
            return rule;
        if (!*ret_passed)
            *ret_passed = rule;
    }
    return NULL;
}

static const dscomm_algorithm_t *find_default(const dscomm_coll_args_t *args,
                                              int ranks,
                                              const dscomm_nodes_t *nodes,
                                              uint64_t bytes)
{
    const bool levels = nodes_are_shared(nodes, ranks);
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;
    const dscomm_choice_t *row;

    pthread_once(&once, rows_resolve);
    for (row = firsts[levels][args->coll];
         row != table_end && row->coll == args->coll; row++)
        if (rule_matches(row, args, ranks, NULL, nodes, bytes) &&
            algorithm_fits(row->algorithm, args, ranks, nodes))
            return row->algorithm;
    while (algorithm->coll != args->coll ||
           !algorithm_fits(algorithm, args, ranks, nodes))
        algorithm++;
    return algorithm;
}

const dscomm_choice_t *dscomm_priv_choice_rule(const GArray *rules,
                                               const dscomm_coll_args_t *args,
                                               int ranks, const char *backend,
                                               const dscomm_nodes_t *nodes)
{
    const dscomm_choice_t *passed;

    if (!rules || !rules->len)
        return NULL;
    return find_rule(rules, 0, args, ranks, backend, nodes,
                     dscomm_priv_choice_bytes(args, ranks), &passed);
}

const dscomm_choice_t *dscomm_priv_choice_passed(const GArray *rules,
                                                 guint from,
                                                 const dscomm_coll_args_t *args,
                                                 int ranks, const char *backend,
                                                 const dscomm_nodes_t *nodes)
{
    const dscomm_choice_t *passed;

    find_rule(rules, from, args, ranks, backend, nodes,
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
static uint64_t choice_limit_above(const dscomm_choice_t *choice,
                                   uint64_t bytes)
{
    if (choice->from > bytes)
        return choice->from;
    return choice->to >= bytes && choice->to < END ? choice->to + 1 : END;
}

/* Returns the next size at which the choice may change. */
static uint64_t next_limit(const GArray *rules, int coll, uint64_t bytes)
{
    const dscomm_choice_t *row;
    uint64_t next = END;

    for (size_t i = 0; (row = dscomm_priv_choice_row(i)); i++)
        if (row->coll == coll)
            next = MIN(next, choice_limit_above(row, bytes));
    for (guint i = 0; rules && i < rules->len; i++) {
        row = &g_array_index(rules, dscomm_choice_t, i);
        if (row->coll == coll)
            next = MIN(next, choice_limit_above(row, bytes));
    }
    return next;
}

static dscomm_choice_span_t span_from(const GArray *rules,
                                      const dscomm_coll_args_t *args, int ranks,
                                      const dscomm_nodes_t *nodes,
                                      uint64_t bytes)
{
    dscomm_choice_span_t span = {.from = bytes, .to = END};

    span.rule =
        find_rule(rules, 0, args, ranks, NULL, nodes, bytes, &span.passed);
    span.algorithm = find_default(args, ranks, nodes, bytes);
    return span;
}

static int rule_is_same(const dscomm_choice_t *a, const dscomm_choice_t *b)
{
    return !a == !b && (!a || a->algorithm == b->algorithm);
}

static int span_is_same(const dscomm_choice_span_t *a,
                        const dscomm_choice_span_t *b)
{
    return a->algorithm == b->algorithm && rule_is_same(a->rule, b->rule) &&
           rule_is_same(a->passed, b->passed);
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

        if (span_is_same(&span, &next))
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
    uint64_t *const limits[] = {&rule->from, &rule->to};
    int64_t value = 0;
    int wrong = g_strv_length(ends) < 2;

    for (int i = 0; i < 2 && !wrong; i++)
        if (*g_strstrip(ends[i])) {
            wrong = dscomm_priv_setting_try(&bytes, ends[i], &value) != 0;
            *limits[i] = (uint64_t)value;
        }
    g_strfreev(ends);
    return wrong || rule->from > rule->to;
}

/* Fails: text is not what there must be. */
static dscomm_status_t rule_refuse(const char *text, const char *what)
{
    const char *file =
        dscomm_priv_setting_file(dscomm_priv_setting(SETTING_ALGORITHM));
    char quoted[64], path[160] = "";

    if (file)
        dscomm_priv_quote(file, path, sizeof path);
    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                       "%s%s%sDSCOMM_ALGORITHM: '%s' is no %s",
                       file ? "tuning file " : "", path, file ? ": " : "",
                       dscomm_priv_quote(text, quoted, sizeof quoted), what);
}

static dscomm_status_t refuse_coll(const char *name)
{
    GString *what = g_string_new("collective; there are ");

    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        g_string_append_printf(what, "%s%s", coll ? ", " : "",
                               dscomm_coll_name((dscomm_coll_t)coll));
    rule_refuse(name, what->str);
    g_string_free(what, TRUE);
    return DSCOMM_ERR_ENVIRONMENT;
}

/* Reads "4", "4-8", "4-" or "-8"; returns 0 if it is valid. */
static int read_ranks(const char *text, dscomm_choice_t *rule)
{
    char **ends = g_strsplit(text, "-", 2);
    int *const limits[] = {&rule->least, &rule->ranks};
    const bool one = g_strv_length(ends) == 1;
    int64_t value = 0;
    int wrong = 0;

    for (int i = 0; i < 2 && !wrong; i++) {
        const char *end = ends[one ? 0 : i];

        if (!*end)
            continue;
        wrong = dscomm_priv_parse_decimal(end, &value) || value < 1 ||
                value > DSCOMM_RANKS_MAX;
        *limits[i] = (int)value;
    }
    g_strfreev(ends);
    return wrong || rule->least > rule->ranks;
}

/* Reads the groups to which a rule applies: RANKS, BACKEND or BACKEND/RANKS. */
static dscomm_status_t read_where(char *text, dscomm_choice_t *rule)
{
    char *ranks = strchr(text, '/');
    const bool named = ranks || g_ascii_isalpha(*text);

    if (ranks)
        *ranks++ = '\0';
    else if (!named)
        ranks = text;
    if (named && !*g_strstrip(text))
        return rule_refuse("", "backend; write @BACKEND, @RANKS or "
                               "@BACKEND/RANKS, such as @shm/4");
    if (named)
        rule->backend = g_intern_string(text);
    if (ranks && (!*g_strstrip(ranks) || read_ranks(ranks, rule)))
        return rule_refuse(ranks, "number of ranks; write RANKS or FROM-TO, "
                                  "such as 4 or 2-8");
    return DSCOMM_OK;
}

/* Reads COLLECTIVE or COLLECTIVE@WHERE. */
static dscomm_status_t read_subject(char *text, dscomm_choice_t *rule)
{
    char *where = strchr(text, '@');

    if (where)
        *where++ = '\0';
    rule->coll = find_coll(g_strstrip(text));
    if (rule->coll < 0)
        return refuse_coll(text);
    return where ? read_where(g_strstrip(where), rule) : DSCOMM_OK;
}

static dscomm_status_t refuse_algorithm(int coll, const char *name)
{
    GString *what = g_string_new(NULL);
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    g_string_printf(what, "algorithm of %s; there are native",
                    dscomm_coll_name((dscomm_coll_t)coll));
    for (; algorithm->name; algorithm++)
        if (algorithm->coll == coll)
            g_string_append_printf(what, ", %s", algorithm->name);
    rule_refuse(name, what->str);
    g_string_free(what, TRUE);
    return DSCOMM_ERR_ENVIRONMENT;
}

/* Reads COLLECTIVE[@WHERE]:[FROM-TO:]ALGORITHM, with blanks anywhere between
 * words. */
static dscomm_status_t read_rule(const char *text, dscomm_choice_t *rule)
{
    char **words = g_strsplit(text, ":", 3);
    guint count = g_strv_length(words);
    const char *name = count ? words[count - 1] : "";
    dscomm_status_t status = DSCOMM_OK;

    for (guint i = 0; i < count; i++)
        g_strstrip(words[i]);
    *rule = (dscomm_choice_t){.ranks = ANY, .to = END};
    if (count < 2)
        status = rule_refuse(
            text, "rule; write COLLECTIVE[@WHERE]:[FROM-TO:]ALGORITHM, such as "
                  "all_reduce:64K-1M:ring");
    else
        status = read_subject(words[0], rule);
    if (status == DSCOMM_OK && count == 3 && read_range(words[1], rule))
        status = rule_refuse(
            words[1], "range of bytes; write FROM-TO in whole numbers with "
                      "K, M, G or T, such as 64K-1M, -1536 or 2M-");
    else if (status == DSCOMM_OK && g_ascii_strcasecmp(name, "native") &&
             !(rule->algorithm = algorithm_find(rule->coll, name)))
        status = refuse_algorithm(rule->coll, name);
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
