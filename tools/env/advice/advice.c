/* SPDX-License-Identifier: BSD-3-Clause */
/* From a question to advice: the facts, what follows from them for the command
 * line by the rules, and what becomes of given arguments. */
#include "config.h"

#include "tools/env/advice/given.h"
#include "tools/env/advice/job.h"
#include "tools/env/advice/machine.h"

#include <string.h>

/* How many ranks share what. */
static void set_placement(advice_state_t *state)
{
    const tool_advice_question_t *question = state->question;
    int each = state->advice->ranks_per_node;
    int numa = question->numa_nodes, cores = question->cores;
    gboolean even = cores >= each && numa && each % numa == 0;

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

/* A network that is given counts more than what the machine has. */
static void set_network(advice_state_t *state,
                        const tool_advice_machine_t *machine)
{
    const advice_given_t *given =
        tool_advice_given(state, "mca", "btl_tcp_if_include");
    gboolean own =
        given && given->value && tool_advice_is_network(given->value);
    const char *subnet = own ? given->value : machine->subnet;
    const char *interface =
        own ? "the network that was given" : machine->interface;

    tool_advice_set(state, "subnet", "%s", subnet ? subnet : "");
    tool_advice_set(state, "interface", "%s", interface ? interface : "");
    tool_advice_set_fact(state, "choice", machine->choice);
}

static void set_devices(advice_state_t *state,
                        const tool_advice_machine_t *machine)
{
    const struct {
        const char *name, *value;
    } facts[] = {
        {"rdma", machine->rdma},
        {"no_rdma", machine->no_rdma},
        {"fabric", machine->fabric},
        {"mtl", machine->mtl},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(facts); i++)
        tool_advice_set(state, facts[i].name, "%s",
                        facts[i].value ? facts[i].value : "");
    tool_advice_set_fact(state, "device", machine->device);
    tool_advice_set_fact(state, "superuser", state->question->superuser);
}

/* Why other nodes need a variable, g_free(); NULL or "": they do not. */
static char *forward_why(const advice_state_t *state, const char *name)
{
    char **keys = g_key_file_get_keys(state->file, "forward", NULL, NULL);
    char *why = NULL;

    for (int i = 0; keys[i] && !why; i++) {
        if (tool_advice_matches(state, keys[i], name))
            why = tool_advice_rules_get(state, "forward", keys[i]);
    }
    g_strfreev(keys);
    return why;
}

static gboolean forward_needs(const advice_state_t *state, const char *name)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_";
    char *why = forward_why(state, name);
    gboolean needs = why && *why && !name[strspn(name, plain)] &&
                     tool_advice_variable(state->question, name) &&
                     !tool_advice_given(state, "variable", name);

    g_free(why);
    return needs;
}

static gint compare(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names, sorted, of variables that other nodes lack; g_ptr_array_unref(). */
static GPtrArray *forward_list(advice_state_t *state)
{
    char *const *entry = state->question->environment;
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    GString *names = g_string_new(NULL);

    for (; entry && *entry; entry++) {
        char *name = g_strndup(*entry, strcspn(*entry, "="));

        if (forward_needs(state, name))
            g_ptr_array_add(list, name);
        else
            g_free(name);
    }
    g_ptr_array_sort(list, compare);
    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(names, "%s%s", i ? ", " : "",
                               (const char *)g_ptr_array_index(list, i));
    tool_advice_set(state, "forward", "%s", names->str);
    g_string_free(names, TRUE);
    return list;
}

static void add_forwarded(advice_state_t *state, const GPtrArray *list)
{
    for (guint i = 0; i < list->len; i++) {
        const char *name = g_ptr_array_index(list, i);
        const char *const words[] = {"-x", name, NULL};
        char *why = forward_why(state, name);

        tool_advice_part_add(state->advice->parts, g_strdupv((char **)words),
                             why);
        g_free(why);
    }
}

/* NAME and the value of a rule, as words. */
static void add_part(advice_state_t *state, const advice_rule_t *rule,
                     GPtrArray *parts)
{
    char *group_why = tool_advice_rules_get(state, rule->group, "why");
    char *value = tool_advice_rules_get(state, rule->group, "value");
    char *why = tool_advice_expand(state, group_why);
    char *text = g_strconcat(rule->name, rule->check ? "=" : "",
                             rule->check ? rule->check : "", value ? " " : "",
                             value, NULL);

    tool_advice_part_add(parts, tool_advice_words(state, text), why);
    g_free(text);
    g_free(why);
    g_free(value);
    g_free(group_why);
}

/* What the rules of a kind add to parts. */
static void add_parts(advice_state_t *state, const char *kind, GPtrArray *parts)
{
    for (guint i = 0; i < state->rules->len; i++) {
        const advice_rule_t *rule = g_ptr_array_index(state->rules, i);

        if (strcmp(rule->kind, kind) == 0 &&
            tool_advice_holds(state, rule->terms))
            add_part(state, rule, parts);
    }
}

/* Once, or for each of a list of variables that is set. */
static void add_note(advice_state_t *state, const advice_rule_t *rule)
{
    char *why = tool_advice_rules_get(state, rule->group, "why");
    char *each = tool_advice_rules_get(state, rule->group, "each");
    char **names = g_strsplit(each ? each : "", "|", -1);

    if (!each)
        g_ptr_array_add(state->advice->notes, tool_advice_expand(state, why));
    for (int i = 0; names[i]; i++) {
        tool_advice_set(state, "name", "%s", names[i]);
        if (tool_advice_variable(state->question, names[i]))
            g_ptr_array_add(state->advice->notes,
                            tool_advice_expand(state, why));
    }
    g_strfreev(names);
    g_free(each);
    g_free(why);
}

static void add_notes(advice_state_t *state)
{
    for (guint i = 0; i < state->rules->len; i++) {
        const advice_rule_t *rule = g_ptr_array_index(state->rules, i);

        if (strcmp(rule->kind, "note") == 0 &&
            tool_advice_holds(state, rule->terms))
            add_note(state, rule);
    }
}

static void part_free(void *part)
{
    tool_advice_part_t *p = part;

    g_strfreev(p->words);
    g_free(p->why);
    g_free(p);
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

static void find_facts(advice_state_t *state)
{
    tool_advice_machine_t machine;
    const char *wanted =
        tool_advice_variable(state->question, "DSCOMM_SOCKET_IFNAME");

    if (!wanted)
        wanted = tool_advice_variable(state->question, "NCCL_SOCKET_IFNAME");
    tool_advice_set(state, "wanted", "%s", wanted ? wanted : "");
    tool_advice_machine_read(state->question->root, wanted, &machine);
    tool_advice_job(state);
    set_placement(state);
    set_network(state, &machine);
    set_devices(state, &machine);
    tool_advice_machine_clear(&machine);
    tool_advice_rules_facts(state);
}

static void fill(const tool_advice_question_t *question, tool_advice_t *advice)
{
    advice_state_t state = {.question = question, .advice = advice};
    GPtrArray *forwarded;

    tool_advice_rules_open(&state);
    state.given = g_ptr_array_new_with_free_func(tool_advice_given_free);
    tool_advice_given_read(&state);
    find_facts(&state);
    forwarded = forward_list(&state);
    add_parts(&state, "front", advice->variables);
    add_parts(&state, "part", advice->parts);
    if (strcmp(advice->launcher, "openmpi") == 0 && advice->nodes > 1)
        add_forwarded(&state, forwarded);
    tool_advice_given_judge(&state);
    add_notes(&state);
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
    if (!tool_advice_version(question->version, advice)) {
        tool_advice_free(advice);
        *ret_problem = g_strdup_printf(
            "'%s --version' names neither Open MPI 4 or later, MPICH 3 or "
            "later, nor Intel MPI 2019 or later",
            question->program);
        return NULL;
    }
    fill(question, advice);
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

static void add_words(GString *line, char *const *words)
{
    static const char plain[] =
        G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-+./:=,@%";

    for (; words && *words; words++) {
        char *quoted = **words && !(*words)[strspn(*words, plain)]
                           ? g_strdup(*words)
                           : g_shell_quote(*words);

        g_string_append_printf(line, "%s%s", line->len ? " " : "", quoted);
        g_free(quoted);
    }
}

char *tool_advice_quote(char *const *words)
{
    GString *line = g_string_new(NULL);

    add_words(line, words);
    return g_string_free(line, FALSE);
}

char *tool_advice_line(const tool_advice_t *advice)
{
    const char *const program[] = {advice->program, NULL};
    static const char *const placeholder[] = {"PROGRAM", NULL};
    GString *line = g_string_new(NULL);

    for (guint i = 0; i < advice->variables->len; i++)
        add_words(line,
                  ((tool_advice_part_t *)advice->variables->pdata[i])->words);
    add_words(line, (char *const *)program);
    for (guint i = 0; i < advice->parts->len; i++)
        add_words(line, ((tool_advice_part_t *)advice->parts->pdata[i])->words);
    add_words(line,
              advice->command ? advice->command : (char *const *)placeholder);
    return g_string_free(line, FALSE);
}
