/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of a job, its hosts, and the host of rank 0. Ranks of several nodes
 * must be told where to meet, because no mpirun does so. */
#include "config.h"

#include "env/nodelist.h"
#include "tools/env/advice/rules.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Hosts that given arguments list. */
typedef struct {
    const advice_given_t *option; /* NULL: no option gives the hosts */
    bool is_file;
    GPtrArray *names;
    GHashTable *slots; /* by name */
    int count; /* 0: unknown */
    int least, most, all; /* slots */
    bool said; /* some host has a number, or is named twice */
} hosts_t;

/* The last argument of the first option that is given, of those that a key of
 * [options 1] lists, and if max is not 0, whose value is from 1 to max; or
 * NULL. */
static const advice_given_t *given_of_list(const advice_state_t *state,
                                           const char *key, int max)
{
    char **names =
        g_strsplit(tool_advice_rules_get(state, "options 1", key), "|", -1);
    const advice_given_t *given = NULL;

    for (int i = 0; names[i] && !given; i++) {
        given = tool_advice_given(state, "option", names[i]);
        if (given && max && !tool_advice_decimal(given->value, max))
            given = NULL;
    }
    g_strfreev(names);
    return given;
}

/* Adds a host "a" or "a:4"; the slots of repeated names add up. Returns false
 * if word is not such a host, for example one of Open MPI's relative names, or
 * an IPv6 address in brackets. */
static bool hosts_add(hosts_t *hosts, const char *word)
{
    const char *colon = strchr(word, ':');
    char *name = g_strndup(word, strcspn(word, ":"));
    int more = colon ? tool_advice_decimal(colon + 1, ADVICE_RANKS_MAX) : 1;
    int before = GPOINTER_TO_INT(g_hash_table_lookup(hosts->slots, name));
    bool good = more > 0 && *name && !strchr("+[", *word);

    hosts->said = hosts->said || colon || before;
    if (!before)
        g_ptr_array_add(hosts->names, g_strdup(name));
    g_hash_table_replace(hosts->slots, name, GINT_TO_POINTER(before + more));
    return good;
}

static void hosts_count(hosts_t *hosts)
{
    for (guint i = 0; i < hosts->names->len; i++) {
        int own = GPOINTER_TO_INT(g_hash_table_lookup(
            hosts->slots, g_ptr_array_index(hosts->names, i)));

        hosts->least = i ? MIN(hosts->least, own) : own;
        hosts->most = MAX(hosts->most, own);
        hosts->all += own;
    }
    hosts->count = (int)hosts->names->len;
}

static void hosts_read(const advice_state_t *state, hosts_t *ret_hosts)
{
    hosts_t *hosts = ret_hosts;
    bool good = true;
    char **words;

    *hosts = (hosts_t){.option = given_of_list(state, "hosts", 0)};
    hosts->is_file = !hosts->option;
    if (hosts->is_file)
        hosts->option = given_of_list(state, "files", 0);
    hosts->names = g_ptr_array_new_with_free_func(g_free);
    hosts->slots = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    words = g_strsplit(
        hosts->is_file || !hosts->option->value ? "" : hosts->option->value,
        ",", -1);
    for (int i = 0; words[i] && good; i++)
        good = hosts_add(hosts, words[i]);
    if (good && hosts->names->len <= ADVICE_NODES_MAX)
        hosts_count(hosts);
    else
        hosts->said = false;
    g_strfreev(words);
}

static void hosts_clear(hosts_t *hosts)
{
    g_ptr_array_unref(hosts->names);
    g_hash_table_unref(hosts->slots);
}

/* Sets the list of hosts with as many slots as ranks, for Open MPI. */
static void hosts_set_list(advice_state_t *state, const hosts_t *hosts)
{
    GString *list = g_string_new(NULL);

    for (guint i = 0; i < hosts->names->len; i++)
        g_string_append_printf(list, "%s%s:%d", i ? "," : "",
                               (const char *)g_ptr_array_index(hosts->names, i),
                               state->advice->ranks_per_node);
    tool_advice_set(state, "hosts", "%s", list->str);
    g_string_free(list, true);
}

/* Returns the K of "ppr:K:node", or 0. */
static int mapping_each(const char *value)
{
    char count[16], object[16];

    if (sscanf(value, "ppr:%15[^:]:%15[^:]", count, object) != 2 ||
        strcmp(object, "node") != 0)
        return 0;
    return tool_advice_decimal(count, ADVICE_RANKS_MAX);
}

/* Returns the number of ranks on each node by the given arguments, or 0. */
static int given_each(const advice_state_t *state)
{
    const advice_given_t *given =
        given_of_list(state, "each", ADVICE_RANKS_MAX);

    if (given)
        return tool_advice_decimal(given->value, ADVICE_RANKS_MAX);
    if (tool_advice_given(state, "option", "pernode"))
        return 1;
    given = tool_advice_given(state, "option", "map-by");
    return given && given->value ? mapping_each(given->value) : 0;
}

static int job_divide(int ranks, int nodes)
{
    return ranks / nodes + (ranks % nodes > 0);
}

/* Sets the counts by the given arguments; called if the number of ranks on
 * each node was not asked for. */
static void job_count_given(const advice_state_t *state, const hosts_t *hosts)
{
    tool_advice_t *advice = state->advice;
    const advice_given_t *given = given_of_list(state, "ranks", 0);
    int ranks = given ? tool_advice_decimal(given->value, ADVICE_JOB_MAX) : 0;
    int each = given_each(state);

    if (!advice->nodes && each && ranks)
        advice->nodes = MIN(job_divide(ranks, each), ADVICE_NODES_MAX);
    advice->nodes = MAX(advice->nodes, 1);
    if (!each && !ranks && hosts->said && advice->nodes == hosts->count) {
        each = hosts->most;
        ranks = hosts->all;
    }
    if (ranks)
        each = MAX(each, job_divide(ranks, advice->nodes));
    advice->ranks_per_node = each;
    advice->ranks = ranks;
}

static void job_count(advice_state_t *state, const hosts_t *hosts)
{
    const tool_advice_question_t *question = state->question;
    tool_advice_t *advice = state->advice;

    advice->nodes = question->nodes ? question->nodes : hosts->count;
    if (!advice->nodes)
        advice->nodes = tool_advice_decimal(
            tool_advice_variable(question, "SLURM_JOB_NUM_NODES"),
            ADVICE_NODES_MAX);
    advice->ranks_per_node = question->ranks_per_node;
    if (!advice->ranks_per_node)
        job_count_given(state, hosts);
    advice->nodes = MAX(advice->nodes, 1);
    if (!advice->ranks_per_node)
        advice->ranks_per_node = MAX(question->cores, 1);
    if (!advice->ranks)
        advice->ranks = advice->nodes * advice->ranks_per_node;
}

/* Returns the first word of text, which ends before one of ends. */
static char *first_word(const char *text, const char *ends)
{
    text += strspn(text, " \t\n");
    return g_strndup(text, strcspn(text, ends));
}

/* Returns the host of a list that is this machine, compared by short names; or
 * NULL. */
static char *master_own(const char *root, const char *list)
{
    char *own = tool_root_file(root, "proc/sys/kernel/hostname");
    char **hosts = g_strsplit(list, ",", -1), *found = NULL;
    const size_t length = own ? strcspn(own, ".\n") : 0;

    for (int i = 0; length && hosts[i] && !found; i++) {
        if (strcspn(hosts[i], ".:") == length &&
            g_ascii_strncasecmp(hosts[i], own, length) == 0)
            found = first_word(hosts[i], ":");
    }
    g_strfreev(hosts);
    g_free(own);
    return found;
}

/* Open MPI 4 puts rank 0 on the node that mpirun runs on, at any position of
 * the list; others on the first host. */
static char *master_by_list(const advice_state_t *state, const char *list)
{
    char *own = tool_advice_holds(state, "openmpi<5")
                    ? master_own(state->question->root, list)
                    : NULL;

    if (own || strchr("[+", *list))
        return own;
    return first_word(list, ",: ");
}

static char *master_by_scheduler(const advice_state_t *state)
{
    const tool_advice_question_t *question = state->question;
    const char *slurm = tool_advice_variable(question, "SLURM_JOB_NODELIST");
    const char *lsf = tool_advice_variable(question, "LSB_MCPU_HOSTS");
    const char *pbs = tool_advice_variable(question, "PBS_NODEFILE");
    char *text, *host = NULL;

    if (slurm) {
        dscomm_priv_nodelist_first(slurm, &host);
        return host;
    }
    /* On systems with CSM the first host runs no ranks. */
    if (lsf && !tool_advice_variable(question, "CSM_ALLOCATION_ID"))
        return first_word(lsf, " \t\n");
    text = pbs ? tool_root_file(question->root, pbs + (*pbs == '/')) : NULL;
    host = text ? first_word(text, " \t\n") : NULL;
    g_free(text);
    return host;
}

static void master_set(advice_state_t *state, const hosts_t *hosts)
{
    char *host = NULL;

    if (state->advice->nodes > 1 && !hosts->option)
        host = master_by_scheduler(state);
    else if (state->advice->nodes > 1 && !hosts->is_file &&
             hosts->option->value)
        host = master_by_list(state, hosts->option->value);
    tool_advice_set(state, "master", "%s", host ? host : "");
    g_free(host);
}

void tool_advice_job(advice_state_t *state)
{
    tool_advice_t *advice = state->advice;
    hosts_t hosts;

    hosts_read(state, &hosts);
    job_count(state, &hosts);
    tool_advice_set(state, "nodes", "%d", advice->nodes);
    tool_advice_set(state, "per_node", "%d", advice->ranks_per_node);
    tool_advice_set(state, "ranks", "%d", advice->ranks);
    tool_advice_set_fact(state, "several", advice->nodes > 1);
    tool_advice_set_fact(state, "hosts-given", hosts.option != NULL);
    tool_advice_set_fact(state, "few-slots",
                         hosts.count && hosts.least < advice->ranks_per_node);
    hosts_set_list(state, &hosts);
    master_set(state, &hosts);
    hosts_clear(&hosts);
}
