/* SPDX-License-Identifier: BSD-3-Clause */
/* From a question to advice: what is the case, what follows for the command
 * line, and what becomes of the old one. */
#include "config.h"

#include "tools/env/advice/state.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *tool_advice_variable(const tool_advice_question_t *question,
                                 const char *name)
{
    size_t length = strlen(name);

    for (char *const *entry = question->environment; entry && *entry; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return (*entry)[length + 1] ? *entry + length + 1 : NULL;
    }
    return NULL;
}

static void free_part(void *part)
{
    tool_advice_part_t *p = part;

    g_strfreev(p->words);
    g_free(p->why);
    g_free(p);
}

static void free_judgement(void *judgement)
{
    tool_advice_judgement_t *j = judgement;

    g_free(j->text);
    g_free(j->why);
    g_free(j->instead);
    g_free(j);
}

static void free_old(void *old)
{
    advice_old_t *o = old;

    g_free(o->name);
    g_free(o->value);
    g_strfreev(o->words);
    g_free(o);
}

void tool_advice_part_add(GPtrArray *parts, char **words, const char *why)
{
    tool_advice_part_t *part = g_new(tool_advice_part_t, 1);

    part->words = words;
    part->why = g_strdup(why);
    g_ptr_array_add(parts, part);
}

char *tool_advice_expand(const advice_state_t *state, const char *text)
{
    GString *result = g_string_new(NULL);
    const char *open;

    while ((open = strchr(text, '{'))) {
        const char *close = strchr(open, '}');
        char *name;

        g_assert(close);
        name = g_strndup(open + 1, (gsize)(close - open - 1));
        g_string_append_len(result, text, open - text);
        g_assert(g_hash_table_contains(state->values, name));
        g_string_append(result, g_hash_table_lookup(state->values, name));
        g_free(name);
        text = close + 1;
    }
    g_string_append(result, text);
    return g_string_free(result, FALSE);
}

char **tool_advice_words(const advice_state_t *state, const char *text)
{
    char **words = g_strsplit(text, " ", -1);

    for (int i = 0; words[i]; i++) {
        char *word = tool_advice_expand(state, words[i]);

        g_free(words[i]);
        words[i] = word;
    }
    return words;
}

static G_GNUC_PRINTF(3, 4) void set(advice_state_t *state, const char *name,
                                    const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_hash_table_insert(state->values, g_strdup(name),
                        g_strdup_vprintf(format, args));
    va_end(args);
}

static G_GNUC_PRINTF(2, 3) void note(advice_state_t *state, const char *format,
                                     ...)
{
    va_list args;

    va_start(args, format);
    g_ptr_array_add(state->advice->notes, g_strdup_vprintf(format, args));
    va_end(args);
}

/* How many ranks share what. */
static void place(advice_state_t *state)
{
    const tool_advice_question_t *question = state->question;
    int each = state->advice->ranks_per_node;
    int numa = question->numa_nodes, cores = question->cores;

    set(state, "cores", "%d", cores);
    set(state, "numa", "%d", numa);
    set(state, "per_numa", "%d", numa ? each / numa : 0);
    set(state, "pe", "%d", cores / each);
    if (!cores)
        state->facts |= FACT_BLIND;
    else if (each > cores)
        state->facts |= FACT_CROWDED;
    else if (numa && each % numa == 0)
        state->facts |= FACT_NUMA;
    if (state->facts & FACT_NUMA)
        set(state, "pe", "%d", question->cores_per_numa / (each / numa));
}

/* What gives mpirun its nodes. */
static const char *const schedulers[] = {"SLURM_JOB_ID", "PBS_JOBID",
                                         "LSB_JOBID"};
static void find_hosts(advice_state_t *state)
{
    gboolean is_file;

    for (size_t i = 0; i < G_N_ELEMENTS(schedulers); i++) {
        if (tool_advice_variable(state->question, schedulers[i]))
            state->facts |= FACT_SCHEDULER;
    }
    if (state->advice->nodes > 1 && !tool_advice_hosts(state, &is_file) &&
        !(state->facts & FACT_SCHEDULER))
        state->facts |= FACT_NO_HOSTS;
}

static void find_network(advice_state_t *state)
{
    tool_advice_machine_t *machine = &state->machine;
    const advice_old_t *old =
        tool_advice_old_find(state, OLD_MCA, "btl_tcp_if_include");

    if (old && old->value && tool_advice_is_network(old->value)) {
        g_free(machine->subnet);
        g_free(machine->interface);
        machine->subnet = g_strdup(old->value);
        machine->interface = g_strdup("the network that was given");
    }
    if (machine->subnet)
        state->facts |= FACT_SUBNET;
    if (machine->choice)
        state->facts |= FACT_CHOICE;
    set(state, "subnet", "%s", machine->subnet ? machine->subnet : "");
    set(state, "interface", "%s", machine->interface ? machine->interface : "");
}

static gboolean may_be_root(const tool_advice_question_t *question)
{
    const char *allow =
        tool_advice_variable(question, "OMPI_ALLOW_RUN_AS_ROOT");
    const char *confirm =
        tool_advice_variable(question, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM");

    return !question->superuser ||
           (allow && confirm && strcmp(allow, "1") == 0 &&
            strcmp(confirm, "1") == 0);
}

/* What uses the device is the user's choice, or the device's own. */
static gboolean has_own_pml(const advice_state_t *state)
{
    const advice_old_t *pml = tool_advice_old_find(state, OLD_MCA, "pml");
    const advice_old_t *mtl = tool_advice_old_find(state, OLD_MCA, "mtl");

    if (pml && !pml->ambient && g_strcmp0(pml->value, "ucx") != 0 &&
        g_strcmp0(pml->value, "ob1") != 0)
        return TRUE;
    if (!pml && mtl && !mtl->ambient && mtl->value && *mtl->value != '^')
        return TRUE;
    return state->machine.fabric && !state->machine.mtl && !state->machine.rdma;
}

/* Open MPI's, MPICH's, and Intel MPI's way to say so. */
static gboolean wants_freedom(const advice_state_t *state)
{
    static const struct {
        advice_kind_t kind;
        const char *name, *value;
    } ways[] = {
        {OLD_OPTION, "bind-to", "none"},
        {OLD_OPTION, "bind-to-none", NULL},
        {OLD_MCA, "hwloc_base_binding_policy", "none"},
        {OLD_VARIABLE, "I_MPI_PIN", "0"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        const advice_old_t *old =
            tool_advice_old_find(state, ways[i].kind, ways[i].name);

        if (old &&
            (!ways[i].value || g_strcmp0(old->value, ways[i].value) == 0))
            return TRUE;
    }
    return FALSE;
}

static void find_facts(advice_state_t *state)
{
    const tool_advice_t *advice = state->advice;

    if (advice->nodes > 1)
        state->facts |= FACT_SEVERAL;
    if (state->machine.rdma)
        state->facts |= FACT_RDMA;
    if (!may_be_root(state->question))
        state->facts |= FACT_SUPERUSER;
    if (state->machine.device)
        state->facts |= FACT_DEVICE;
    if (state->machine.mtl)
        state->facts |= FACT_MTL;
    if (has_own_pml(state))
        state->facts |= FACT_OWN_PML;
    set(state, "nodes", "%d", advice->nodes);
    set(state, "per_node", "%d", advice->ranks_per_node);
    set(state, "ranks", "%d", advice->ranks);
    set(state, "rdma", "%s", state->machine.rdma ? state->machine.rdma : "");
    set(state, "fabric", "%s",
        state->machine.fabric ? state->machine.fabric : "");
    set(state, "mtl", "%s", state->machine.mtl ? state->machine.mtl : "");
    place(state);
    if (wants_freedom(state) && !(state->facts & (FACT_CROWDED | FACT_BLIND)))
        state->facts = (state->facts & ~FACT_NUMA) | FACT_FREE;
    find_hosts(state);
    find_network(state);
    tool_advice_master(state);
}

static void add_notes(advice_state_t *state)
{
    static const char *const stale[] = {
        "RANK",        "WORLD_SIZE",        "LOCAL_RANK",
        "DSCOMM_RANK", "DSCOMM_WORLD_SIZE", "DSCOMM_LOCAL_RANK"};
    static const struct {
        unsigned fact;
        const char *text;
    } notes[] = {
        {FACT_SEVERAL, "the other nodes are taken to be like this one"},
        {FACT_NO_MASTER,
         "MPI tells dscomm's ranks where they meet; programs that need "
         "MASTER_ADDR and MASTER_PORT, as PyTorch's, must be given rank 0's "
         "host and a port that is free there"},
        {FACT_NO_PORT, "programs that need MASTER_PORT, as PyTorch's, must be "
                       "given a port that is free on rank 0's host"},
        {FACT_BLIND, "the number of cores is unknown, so nothing is bound"},
    };
    int major = atoi(state->advice->version);

    if (state->machine.no_rdma)
        note(state, "RDMA device %s", state->machine.no_rdma);
    for (size_t i = 0; i < G_N_ELEMENTS(notes); i++)
        if (state->facts & notes[i].fact)
            note(state, "%s", notes[i].text);
    if (state->wanted && !state->machine.subnet)
        note(state, "no interface here has an IPv4 network and fits '%s'",
             state->wanted);
    if (state->advice->mask == ADVICE_OPENMPI_5 && major > 5)
        note(state, "this table knows Open MPI up to 5.0; try the line first");
    for (size_t i = 0; i < G_N_ELEMENTS(stale); i++) {
        if (tool_advice_variable(state->question, stale[i]))
            note(state,
                 "%s is set here and would reach all ranks, each of which has "
                 "its own: unset it",
                 stale[i]);
    }
}

static tool_advice_t *new_advice(const char *program)
{
    tool_advice_t *advice = g_new0(tool_advice_t, 1);

    advice->program = g_strdup(program);
    advice->variables = g_ptr_array_new_with_free_func(free_part);
    advice->parts = g_ptr_array_new_with_free_func(free_part);
    advice->judgements = g_ptr_array_new_with_free_func(free_judgement);
    advice->notes = g_ptr_array_new_with_free_func(g_free);
    return advice;
}

static void fill(const tool_advice_question_t *question, tool_advice_t *advice)
{
    advice_state_t state = {.question = question, .advice = advice};

    state.wanted = tool_advice_variable(question, "DSCOMM_SOCKET_IFNAME");
    if (!state.wanted)
        state.wanted = tool_advice_variable(question, "NCCL_SOCKET_IFNAME");
    state.values =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    state.old = g_ptr_array_new_with_free_func(free_old);
    tool_advice_machine_read(question->root, state.wanted, &state.machine);
    tool_advice_old_read(&state);
    tool_advice_size(&state);
    find_facts(&state);
    tool_advice_parts(&state);
    tool_advice_old_judge(&state);
    add_notes(&state);
    tool_advice_machine_clear(&state.machine);
    g_ptr_array_unref(state.old);
    g_hash_table_unref(state.values);
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
    advice = new_advice(question->program);
    advice->mask = tool_advice_version(question->version, &advice->library,
                                       &advice->version);
    if (!advice->mask) {
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
