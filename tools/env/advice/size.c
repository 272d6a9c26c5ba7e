/* SPDX-License-Identifier: BSD-3-Clause */
/* How large the job is: what is asked for, what the old arguments say, what the
 * scheduler has given. */
#include "config.h"

#include "tools/env/advice/state.h"

#include <string.h>

/* Hosts that old arguments list. */
typedef struct {
    int count; /* 0: unknown */
    int least, most, all; /* slots */
    gboolean said; /* by a number, or by a name that is there twice */
} hosts_t;

int tool_advice_decimal(const char *text, int max)
{
    gint64 number = 0;

    if (!text || !*text || text[strspn(text, "0123456789")])
        return 0;
    for (; *text && number <= max; text++)
        number = number * 10 + *text - '0';
    return number > max ? 0 : (int)number;
}

/* "a" and "a:4", more of which add up; FALSE where word is no name: Open MPI
 * has relative ones, and IPv6 comes in brackets. */
static gboolean add_host(const char *word, GHashTable *slots, GPtrArray *names,
                         hosts_t *hosts)
{
    const char *colon = strchr(word, ':');
    char *name = g_strndup(word, strcspn(word, ":"));
    int more = colon ? tool_advice_decimal(colon + 1, ADVICE_RANKS_MAX) : 1;
    int before = GPOINTER_TO_INT(g_hash_table_lookup(slots, name));
    gboolean good = more > 0 && *name && !strchr("+[", *word);

    hosts->said = hosts->said || colon || before;
    if (!before)
        g_ptr_array_add(names, g_strdup(name));
    g_hash_table_replace(slots, name, GINT_TO_POINTER(before + more));
    return good;
}

/* Each host with as many slots as it has ranks, for Open MPI. */
static void set_list(advice_state_t *state, const GPtrArray *names)
{
    GString *list = g_string_new(NULL);

    for (guint i = 0; i < names->len; i++)
        g_string_append_printf(list, "%s%s:%d", i ? "," : "",
                               (const char *)g_ptr_array_index(names, i),
                               state->advice->ranks_per_node);
    g_hash_table_insert(state->values, g_strdup("hosts"),
                        g_string_free(list, FALSE));
}

static void sum_up(GHashTable *slots, const GPtrArray *names, hosts_t *hosts)
{
    for (guint i = 0; i < names->len; i++) {
        int own = GPOINTER_TO_INT(
            g_hash_table_lookup(slots, g_ptr_array_index(names, i)));

        hosts->least = i ? MIN(hosts->least, own) : own;
        hosts->most = MAX(hosts->most, own);
        hosts->all += own;
    }
    hosts->count = (int)names->len;
}

/* Their names; g_ptr_array_unref(). */
static GPtrArray *read_hosts(const advice_state_t *state, hosts_t *ret_hosts)
{
    gboolean is_file, good = TRUE;
    const advice_old_t *old = tool_advice_hosts(state, &is_file);
    GHashTable *slots =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    char **words =
        g_strsplit(old && !is_file && old->value ? old->value : "", ",", -1);

    *ret_hosts = (hosts_t){0};
    for (int i = 0; words[i] && good; i++)
        good = add_host(words[i], slots, names, ret_hosts);
    if (good && names->len <= ADVICE_NODES_MAX)
        sum_up(slots, names, ret_hosts);
    else
        ret_hosts->said = FALSE;
    g_strfreev(words);
    g_hash_table_unref(slots);
    return names;
}

/* The number of ranks that old arguments give, or 0. */
static int old_ranks(const advice_state_t *state)
{
    static const char *const names[] = {"n", "np", "c"};
    const advice_old_t *old = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(names) && !old; i++)
        old = tool_advice_old_find(state, OLD_OPTION, names[i]);
    return old ? tool_advice_decimal(old->value, ADVICE_JOB_MAX) : 0;
}

/* The K of "ppr:K:node", or 0. */
static int of_mapping(const char *value)
{
    char **words = g_strsplit(value, ":", -1);
    int each = 0;

    if (g_strv_length(words) >= 3 && strcmp(words[0], "ppr") == 0 &&
        strcmp(words[2], "node") == 0)
        each = tool_advice_decimal(words[1], ADVICE_RANKS_MAX);
    g_strfreev(words);
    return each;
}

/* The number of ranks on each node that old arguments give, or 0. */
static int old_each(const advice_state_t *state)
{
    static const char *const names[] = {"npernode", "N", "ppn", "perhost"};
    const advice_old_t *old;
    int each = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(names) && !each; i++) {
        old = tool_advice_old_find(state, OLD_OPTION, names[i]);
        each = old ? tool_advice_decimal(old->value, ADVICE_RANKS_MAX) : 0;
    }
    if (!each && tool_advice_old_find(state, OLD_OPTION, "pernode"))
        each = 1;
    old = tool_advice_old_find(state, OLD_OPTION, "map-by");
    return each || !old || !old->value ? each : of_mapping(old->value);
}

static int divide(int ranks, int nodes)
{
    return ranks / nodes + (ranks % nodes > 0);
}

/* From the old arguments, where ranks on each node are not asked for. */
static void count_old(const advice_state_t *state, const hosts_t *hosts)
{
    tool_advice_t *advice = state->advice;
    int ranks = old_ranks(state), each = old_each(state);

    if (!advice->nodes && each && ranks)
        advice->nodes = MIN(divide(ranks, each), ADVICE_NODES_MAX);
    advice->nodes = MAX(advice->nodes, 1);
    if (!each && !ranks && hosts->said && advice->nodes == hosts->count) {
        each = hosts->most;
        ranks = hosts->all;
    }
    if (ranks)
        each = MAX(each, divide(ranks, advice->nodes));
    advice->ranks_per_node = each;
    advice->ranks = ranks;
}

void tool_advice_size(advice_state_t *state)
{
    const tool_advice_question_t *question = state->question;
    const char *slurm = tool_advice_variable(question, "SLURM_JOB_NUM_NODES");
    tool_advice_t *advice = state->advice;
    hosts_t hosts;
    GPtrArray *names = read_hosts(state, &hosts);

    advice->nodes = question->nodes ? question->nodes : hosts.count;
    if (!advice->nodes)
        advice->nodes = tool_advice_decimal(slurm, ADVICE_NODES_MAX);
    advice->ranks_per_node = question->ranks_per_node;
    if (!advice->ranks_per_node)
        count_old(state, &hosts);
    advice->nodes = MAX(advice->nodes, 1);
    if (!advice->ranks_per_node)
        advice->ranks_per_node = MAX(question->cores, 1);
    if (!advice->ranks)
        advice->ranks = advice->nodes * advice->ranks_per_node;
    if (hosts.count && hosts.least < advice->ranks_per_node)
        state->facts |= FACT_FEW_SLOTS;
    set_list(state, names);
    g_ptr_array_unref(names);
}
