/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes advice for a question: collects the facts, applies the rules to the
 * command line, and decides about the given arguments. */
#include "config.h"

#include "tools/env/advice/rules.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NEWEST 9999 /* a year, at most */

/* The known mpiruns: a mark in the text identifies each; its version number
 * follows `before`. */
static const struct {
    const char *mark, *before, *launcher, *library;
    int oldest;
} makers[] = {
    {"(Open MPI) ", "(Open MPI) ", "openmpi", "Open MPI", 4},
    {"(OpenRTE) ", "(OpenRTE) ", "openmpi", "Open MPI", 4},
    {"Intel(R) MPI Library", "Version ", "intel", "Intel MPI", 2019},
    {"HYDRA build details:", "Version:", "mpich", "MPICH", 3},
};

static char *version_number(const char *text)
{
    size_t length;

    text += strspn(text, " \t");
    length = strspn(text, "0123456789.");
    return length && g_ascii_isdigit(*text) ? g_strndup(text, length) : NULL;
}

/* Sets launcher, library and version of advice from the output of --version;
 * false if no known mpirun prints it. */
static bool version_set(const char *text, tool_advice_t *advice)
{
    for (size_t i = 0; i < G_N_ELEMENTS(makers); i++) {
        const char *mark = strstr(text, makers[i].mark);
        const char *before = mark ? strstr(mark, makers[i].before) : NULL;
        char *version =
            before ? version_number(before + strlen(makers[i].before)) : NULL;
        gint64 major = version ? g_ascii_strtoll(version, NULL, 10) : 0;

        if (major >= makers[i].oldest && major <= NEWEST) {
            advice->launcher = makers[i].launcher;
            advice->library = makers[i].library;
            advice->version = version;
            return true;
        }
        g_free(version);
    }
    return false;
}

/* Sets the facts about how the ranks of a node share its cores and NUMA nodes.
 */
static void facts_set_placement(advice_state_t *state)
{
    const tool_advice_question_t *question = state->question;
    int each = state->advice->ranks_per_node;
    int numa = question->numa_nodes, cores = question->cores;
    bool even = cores >= each && numa && each % numa == 0;

    tool_advice_set(state, "cores", "%d", cores);
    tool_advice_set(state, "numa_nodes", "%d", numa);
    tool_advice_set(state, "per_numa", "%d", numa ? each / numa : 0);
    tool_advice_set(state, "pe", "%d",
                    even ? question->cores_per_numa / (each / numa)
                         : cores / each);
    tool_advice_set_fact(state, "cores-unknown", !cores);
    tool_advice_set_fact(state, "oversubscribed", cores && each > cores);
    tool_advice_set_fact(state, "numa-even", even);
}

/* A given network takes precedence over those of the machine. */
static void facts_set_network(advice_state_t *state)
{
    const advice_given_t *given =
        tool_advice_given(state, "mca", "btl_tcp_if_include");

    if (given && given->value && tool_advice_is_network(given->value)) {
        tool_advice_set(state, "subnet", "%s", given->value);
        tool_advice_set(state, "interface", "the network that was given");
    }
}

static void part_free(void *part)
{
    tool_advice_part_t *p = part;

    g_strfreev(p->words);
    g_free(p->why);
    g_free(p);
}

/* Returns why other nodes need a variable of the environment; NULL if they do
 * not need it, or "" if no reason must be given. A variable that is already
 * passed on is not needed. */
static const char *forward_why(const advice_state_t *state, const char *name)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_";
    char **keys = g_key_file_get_keys(state->file, "forward", NULL, NULL);
    const char *why = NULL;

    for (int i = 0; keys[i] && !why && !name[strspn(name, plain)]; i++) {
        if (tool_advice_matches(state, keys[i], name) &&
            tool_advice_variable(state->question, name) &&
            !tool_advice_given(state, "variable", name))
            why = tool_advice_rules_get(state, "forward", keys[i]);
    }
    g_strfreev(keys);
    return why;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns a part for each variable that other nodes lack, sorted; sets fact
 * forward to their names. g_ptr_array_unref() */
static GPtrArray *forward_parts(advice_state_t *state)
{
    GPtrArray *parts = g_ptr_array_new_with_free_func(part_free);
    char **names = g_strdupv((char **)state->question->environment);
    GString *list = g_string_new(NULL);

    for (char **name = names; *name; name++)
        (*name)[strcspn(*name, "=")] = 0;
    qsort(names, g_strv_length(names), sizeof *names, name_compare);
    for (char **name = names; *name; name++) {
        const char *const words[] = {"-x", *name, NULL};
        const char *why = forward_why(state, *name);

        if (why && *why) {
            tool_advice_part_add(parts, g_strdupv((char **)words), why);
            g_string_append_printf(list, "%s%s", list->len ? ", " : "", *name);
        }
    }
    tool_advice_set(state, "forward", "%s", list->str);
    g_string_free(list, true);
    g_strfreev(names);
    return parts;
}

/* Adds NAME and the value of a rule as words. */
static void part_apply(advice_state_t *state, const advice_rule_t *rule,
                       const char *why)
{
    tool_advice_t *advice = state->advice;
    const char *value = tool_advice_rules_get(state, rule->group, "value");
    char *text = g_strconcat(rule->name, rule->check ? "=" : "",
                             rule->check ? rule->check : "", value ? " " : "",
                             value, NULL);
    char *reason = tool_advice_expand(state, why);

    tool_advice_part_add(strcmp(rule->kind, "front") == 0 ? advice->variables
                                                          : advice->parts,
                         tool_advice_words(state, text), reason);
    g_free(reason);
    g_free(text);
}

/* Applies a note once, or once for each variable of a list that is set. */
static void note_apply(advice_state_t *state, const advice_rule_t *rule,
                       const char *why)
{
    GPtrArray *notes = state->advice->notes;
    const char *each = tool_advice_rules_get(state, rule->group, "each");
    char **names = g_strsplit(each ? each : "", "|", -1);

    if (!each)
        g_ptr_array_add(notes, tool_advice_expand(state, why));
    for (int i = 0; names[i]; i++) {
        tool_advice_set(state, "name", "%s", names[i]);
        if (tool_advice_variable(state->question, names[i]))
            g_ptr_array_add(notes, tool_advice_expand(state, why));
    }
    g_strfreev(names);
}

static void rules_apply(advice_state_t *state, const char *kind,
                        void (*add)(advice_state_t *state,
                                    const advice_rule_t *rule, const char *why))
{
    for (guint i = 0; i < state->rules->len; i++) {
        const advice_rule_t *rule = g_ptr_array_index(state->rules, i);
        const char *why = tool_advice_rules_get(state, rule->group, "why");

        state->group = rule->group;
        if (strcmp(rule->kind, kind) == 0 &&
            tool_advice_holds(state, rule->terms))
            add(state, rule, why);
    }
}

static void judgement_free(void *judgement)
{
    tool_advice_judgement_t *j = judgement;

    g_free(j->text);
    g_free(j->why);
    g_free(j->instead);
    g_free(j);
}

static tool_advice_t *advice_new(const char *program)
{
    tool_advice_t *advice = g_new0(tool_advice_t, 1);

    advice->program = g_strdup(program);
    advice->variables = g_ptr_array_new_with_free_func(part_free);
    advice->parts = g_ptr_array_new_with_free_func(part_free);
    advice->judgements = g_ptr_array_new_with_free_func(judgement_free);
    advice->notes = g_ptr_array_new_with_free_func(g_free);
    return advice;
}

static void facts_find(advice_state_t *state)
{
    tool_advice_set_fact(state, "superuser", state->question->superuser);
    tool_advice_job(state);
    facts_set_placement(state);
    tool_advice_devices(state);
    tool_advice_network(state);
    facts_set_network(state);
    tool_advice_rules_facts(state);
}

static void advice_fill(const tool_advice_question_t *question,
                        tool_advice_t *advice)
{
    advice_state_t state = {.question = question, .advice = advice};
    GPtrArray *forwarded;

    tool_advice_rules_open(&state);
    state.given = g_ptr_array_new_with_free_func(tool_advice_given_free);
    tool_advice_given_read(&state);
    facts_find(&state);
    forwarded = forward_parts(&state);
    rules_apply(&state, "front", part_apply);
    rules_apply(&state, "part", part_apply);
    if (tool_advice_holds(&state, "openmpi several"))
        g_ptr_array_extend_and_steal(advice->parts,
                                     g_steal_pointer(&forwarded));
    tool_advice_given_judge(&state);
    rules_apply(&state, "note", note_apply);
    if (forwarded)
        g_ptr_array_unref(forwarded);
    g_ptr_array_unref(state.given);
    tool_advice_rules_close(&state);
}

char *tool_advice_check(int nodes, int ranks_per_node)
{
    if (nodes >= 0 && nodes <= ADVICE_NODES_MAX && ranks_per_node >= 0 &&
        ranks_per_node <= ADVICE_RANKS_MAX)
        return NULL;
    return g_strdup_printf("nodes are 1 to %d, ranks per node 1 to %d",
                           ADVICE_NODES_MAX, ADVICE_RANKS_MAX);
}

tool_advice_t *tool_advise(const tool_advice_question_t *question,
                           char **ret_problem)
{
    tool_advice_t *advice;

    *ret_problem = tool_advice_check(question->nodes, question->ranks_per_node);
    if (*ret_problem)
        return NULL;
    advice = advice_new(question->program);
    if (!version_set(question->version, advice)) {
        tool_advice_free(advice);
        *ret_problem = g_strdup_printf(
            "'%s --version' names neither Open MPI 4 or later, MPICH 3 or "
            "later, nor Intel MPI 2019 or later",
            question->program);
        return NULL;
    }
    advice_fill(question, advice);
    return advice;
}

void tool_advice_free(tool_advice_t *advice)
{
    if (!advice)
        return;
    g_free(advice->program);
    g_free(advice->version);
    g_ptr_array_unref(advice->variables);
    g_ptr_array_unref(advice->parts);
    g_ptr_array_unref(advice->judgements);
    g_ptr_array_unref(advice->notes);
    g_strfreev(advice->command);
    g_free(advice);
}

static void line_add(GString *line, char *const *words)
{
    char *text = tool_advice_quote(words);

    g_string_append_printf(line, "%s%s", line->len && *text ? " " : "", text);
    g_free(text);
}

static void line_add_parts(GString *line, const GPtrArray *parts)
{
    for (guint i = 0; i < parts->len; i++)
        line_add(line, ((tool_advice_part_t *)parts->pdata[i])->words);
}

char *tool_advice_line(const tool_advice_t *advice)
{
    const char *const program[] = {advice->program, NULL};
    static const char *const placeholder[] = {"PROGRAM", NULL};
    GString *line = g_string_new(NULL);

    line_add_parts(line, advice->variables);
    line_add(line, (char *const *)program);
    line_add_parts(line, advice->parts);
    line_add(line,
             advice->command ? advice->command : (char *const *)placeholder);
    return g_string_free(line, false);
}
