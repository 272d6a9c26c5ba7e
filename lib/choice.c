/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules: the defaults, and what users write over them. */
#include "config.h"
#include "lib/choice.h"
#include "env/settings.h"
#include "lib/status.h"

#include <string.h>

#define ANY INT_MAX
#define END UINT64_MAX
#define K *UINT64_C(1024)

/* One row of defaults, by name; resolved when first asked for. */
typedef struct {
    int coll, ranks;
    uint64_t to;
    const char *algorithm;
} row_t;

#define COLL(name) DSCOMM_COLL_##name

/* Of one collective, the first row whose limits hold and whose algorithm
 * fits. Thresholds: doc/performance.md. */
static const row_t rows[] = {
    {COLL(BROADCAST), 2, END, "linear"},
    {COLL(BROADCAST), ANY, END, "binomial"},
    {COLL(REDUCE), 2, END, "linear"},
    {COLL(REDUCE), ANY, 64 K, "binomial"},
    {COLL(REDUCE), ANY, END, "binomial"},
    {COLL(REDUCE), ANY, END, "linear"},
    {COLL(ALL_REDUCE), 2, 32 K, "linear"},
    {COLL(ALL_REDUCE), ANY, 16 K, "recursive_doubling"},
    {COLL(ALL_REDUCE), 8, 8 K, "linear"},
    {COLL(ALL_REDUCE), 16, END, "pairwise"},
    {COLL(ALL_REDUCE), ANY, END, "ring"},
    {COLL(ALL_REDUCE), ANY, END, "pairwise"},
    {COLL(ALL_GATHER), 16, 64 K, "linear"},
    {COLL(ALL_GATHER), ANY, END, "ring"},
    {COLL(ALL_GATHER_V), 16, 64 K, "linear"},
    {COLL(ALL_GATHER_V), ANY, END, "ring"},
    {COLL(REDUCE_SCATTER), ANY, END, "pairwise"},
    {COLL(REDUCE_SCATTER_V), ANY, END, "pairwise"},
    {COLL(GATHER), ANY, END, "linear"},
    {COLL(GATHER_V), ANY, END, "linear"},
    {COLL(SCATTER), ANY, END, "linear"},
    {COLL(SCATTER_V), ANY, END, "linear"},
    {COLL(ALL_TO_ALL), 8, END, "linear"},
    {COLL(ALL_TO_ALL), ANY, END, "pairwise"},
    {COLL(ALL_TO_ALL_V), 8, END, "linear"},
    {COLL(ALL_TO_ALL_V), ANY, END, "pairwise"},
    {COLL(BARRIER), ANY, END, "dissemination"},
};

static const dscomm_algorithm_t *find(int coll, const char *name)
{
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    for (; algorithm->name; algorithm++)
        if (algorithm->coll == coll && !strcmp(algorithm->name, name))
            return algorithm;
    return NULL;
}

static dscomm_choice_t resolve(const row_t *row)
{
    return (dscomm_choice_t){.coll = row->coll,
                             .ranks = row->ranks,
                             .to = row->to,
                             .algorithm = find(row->coll, row->algorithm)};
}

const dscomm_choice_t *dscomm_priv_choice_row(size_t index)
{
    static dscomm_choice_t table[G_N_ELEMENTS(rows)];
    static gsize done;

    if (g_once_init_enter(&done)) {
        for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
            table[i] = resolve(&rows[i]);
        g_once_init_leave(&done, 1);
    }
    return index < G_N_ELEMENTS(rows) ? &table[index] : NULL;
}

static uint64_t sum(const size_t *counts, int ranks)
{
    uint64_t total = 0;

    for (int r = 0; r < ranks; r++)
        total += counts[r];
    return total;
}

uint64_t dscomm_priv_choice_bytes(const dscomm_coll_args_t *args, int ranks)
{
    uint64_t count = args->count;

    switch (args->coll) {
    case DSCOMM_COLL_ALL_GATHER:
    case DSCOMM_COLL_REDUCE_SCATTER:
    case DSCOMM_COLL_GATHER:
    case DSCOMM_COLL_SCATTER:
    case DSCOMM_COLL_ALL_TO_ALL:
        count *= (uint64_t)ranks;
        break;
    case DSCOMM_COLL_ALL_GATHER_V:
    case DSCOMM_COLL_REDUCE_SCATTER_V:
        count = sum(args->recv_counts, ranks);
        break;
    case DSCOMM_COLL_GATHER_V:
    case DSCOMM_COLL_SCATTER_V:
    case DSCOMM_COLL_ALL_TO_ALL_V:
        return 0;
    default:
        break;
    }
    return count * args->element;
}

static int matches(const dscomm_choice_t *rule, const dscomm_coll_args_t *args,
                   int ranks, uint64_t bytes)
{
    return rule->coll == args->coll && ranks <= rule->ranks &&
           bytes >= rule->from && bytes <= rule->to;
}

static int fits(const dscomm_algorithm_t *algorithm,
                const dscomm_coll_args_t *args, int ranks)
{
    return !algorithm->fits || algorithm->fits(args, ranks);
}

const dscomm_choice_t *dscomm_priv_choice_rule(const GArray *rules,
                                               const dscomm_coll_args_t *args,
                                               int ranks)
{
    uint64_t bytes = dscomm_priv_choice_bytes(args, ranks);

    for (guint i = 0; rules && i < rules->len; i++) {
        const dscomm_choice_t *rule = &g_array_index(rules, dscomm_choice_t, i);

        if (matches(rule, args, ranks, bytes) &&
            (!rule->algorithm || fits(rule->algorithm, args, ranks)))
            return rule;
    }
    return NULL;
}

const dscomm_algorithm_t *
dscomm_priv_choice_default(const dscomm_coll_args_t *args, int ranks)
{
    uint64_t bytes = dscomm_priv_choice_bytes(args, ranks);
    const dscomm_choice_t *row;
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    for (size_t i = 0; (row = dscomm_priv_choice_row(i)); i++)
        if (matches(row, args, ranks, bytes) &&
            fits(row->algorithm, args, ranks))
            return row->algorithm;
    while (algorithm->coll != args->coll || !fits(algorithm, args, ranks))
        algorithm++;
    return algorithm;
}

static int find_coll(const char *name)
{
    for (int coll = 0; coll < DSCOMM_COLL_SEND; coll++)
        if (!strcmp(name, dscomm_coll_name((dscomm_coll_t)coll)))
            return coll;
    return -1;
}

/* "8K-1M", "64K-", "-4K"; 0 where it is right. */
static int read_range(const char *text, dscomm_choice_t *rule)
{
    static const dscomm_setting_t bytes = {
        .name = "", .type = DSCOMM_SETTING_BYTES, .max = INT64_MAX};
    char **ends = g_strsplit(text, "-", 2);
    int64_t value;
    int wrong = !ends[0] || !ends[1];

    if (!wrong && *ends[0]) {
        wrong = dscomm_priv_setting_parse(&bytes, ends[0], &value) < 0;
        rule->from = wrong ? 0 : (uint64_t)value;
    }
    if (!wrong && *ends[1]) {
        wrong = dscomm_priv_setting_parse(&bytes, ends[1], &value) < 0;
        rule->to = wrong ? 0 : (uint64_t)value;
    }
    g_strfreev(ends);
    return wrong || rule->from > rule->to;
}

static char *list_names(int coll)
{
    GString *names = g_string_new("native");
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    for (; algorithm->name; algorithm++)
        if (algorithm->coll == coll)
            g_string_append_printf(names, ", %s", algorithm->name);
    return g_string_free(names, FALSE);
}

static dscomm_status_t refuse_name(int coll, const char *name)
{
    char *names = list_names(coll), quoted[64];
    dscomm_status_t status = dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "DSCOMM_ALGORITHM: '%s' is no algorithm of %s; there are %s",
        dscomm_priv_quote(name, quoted, sizeof quoted),
        dscomm_coll_name((dscomm_coll_t)coll), names);

    g_free(names);
    return status;
}

/* COLLECTIVE:[FROM-TO:]ALGORITHM */
static dscomm_status_t read_rule(const char *text, dscomm_choice_t *rule)
{
    char **words = g_strsplit(text, ":", 3), quoted[64];
    guint count = g_strv_length(words);
    const char *name = count ? words[count - 1] : "";
    dscomm_status_t status = DSCOMM_OK;

    *rule = (dscomm_choice_t){.ranks = ANY, .to = END};
    rule->coll = count ? find_coll(words[0]) : -1;
    if (count < 2 || rule->coll < 0 ||
        (count == 3 && read_range(words[1], rule)))
        status = dscomm_fail(
            DSCOMM_ERR_ENVIRONMENT,
            "DSCOMM_ALGORITHM: '%s' is no rule; write "
            "COLLECTIVE:[FROM-TO:]ALGORITHM, such as all_reduce:64K-1M:ring",
            dscomm_priv_quote(text, quoted, sizeof quoted));
    else if (strcmp(name, "native") &&
             !(rule->algorithm = find(rule->coll, name)))
        status = refuse_name(rule->coll, name);
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
