/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the ranks of several nodes meet, which no mpirun tells them. */
#include "config.h"

#include "env/nodelist.h"
#include "tools/env/advice/state.h"

#include <string.h>

/* NULL where it makes no sense. */
static char *first_of_list(const char *text)
{
    char *host = NULL;

    dscomm_priv_nodelist_first(text, &host);
    return host;
}

/* The first word of text, which ends at one of ends. */
static char *first_word(const char *text, const char *ends)
{
    text += strspn(text, " \t\n");
    return g_strndup(text, strcspn(text, ends));
}

/* The first of hosts given by hand; "" where it is no name: Open MPI has
 * relative ones, and IPv6 comes in brackets. */
static char *first_host(const char *value)
{
    return strchr("[+", *value) ? g_strdup("") : first_word(value, ",: ");
}

/* That of a list of hosts which is this one, by short names; NULL where none
 * is. */
static char *find_own(const char *root, const char *list)
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

/* Open MPI 4 begins with the node that mpirun is on, wherever that is in the
 * list. */
static char *by_list(const advice_state_t *state, const char *list)
{
    char *own = state->advice->mask == ADVICE_OPENMPI_4
                    ? find_own(state->question->root, list)
                    : NULL;

    return own ? own : first_host(list);
}

/* Options that give the nodes, of whichever mpirun. */
static const struct {
    const char *name;
    gboolean is_file;
} host_options[] = {
    {"host", FALSE},       {"H", FALSE},       {"hosts", FALSE},
    {"hostfile", TRUE},    {"f", TRUE},        {"default-hostfile", TRUE},
    {"machinefile", TRUE}, {"rankfile", TRUE}, {"rf", TRUE},
};

const advice_old_t *tool_advice_hosts(const advice_state_t *state,
                                      gboolean *ret_is_file)
{
    for (size_t i = 0; i < G_N_ELEMENTS(host_options); i++) {
        const advice_old_t *old =
            tool_advice_old_find(state, OLD_OPTION, host_options[i].name);

        *ret_is_file = host_options[i].is_file;
        if (old)
            return old;
    }
    return NULL;
}

static char *by_scheduler(const advice_state_t *state)
{
    const tool_advice_question_t *question = state->question;
    const char *slurm = tool_advice_variable(question, "SLURM_JOB_NODELIST");
    const char *lsf = tool_advice_variable(question, "LSB_MCPU_HOSTS");
    const char *pbs = tool_advice_variable(question, "PBS_NODEFILE");
    char *text, *host;

    if (slurm)
        return first_of_list(slurm);
    /* With CSM the first host is not one that computes. */
    if (lsf && !tool_advice_variable(question, "CSM_ALLOCATION_ID"))
        return first_word(lsf, " \t\n");
    text = pbs ? tool_root_file(question->root, pbs + (*pbs == '/')) : NULL;
    host = text ? first_word(text, " \t\n") : NULL;
    g_free(text);
    return host;
}

static gboolean is_given(const advice_state_t *state, const char *name)
{
    char *own = g_strconcat("DSCOMM_", name, NULL);
    gboolean given = tool_advice_variable(state->question, name) ||
                     tool_advice_variable(state->question, own) ||
                     tool_advice_old_find(state, OLD_VARIABLE, name) ||
                     tool_advice_old_find(state, OLD_VARIABLE, own);

    g_free(own);
    return given;
}

void tool_advice_master(advice_state_t *state)
{
    const advice_old_t *old;
    gboolean is_file;
    char *host = NULL;

    if (!(state->facts & FACT_SEVERAL))
        return;
    old = tool_advice_hosts(state, &is_file);
    if (!old)
        host = by_scheduler(state);
    else if (!is_file && old->value)
        host = by_list(state, old->value);
    if (host && !*host)
        g_clear_pointer(&host, g_free);
    if (!is_given(state, "MASTER_ADDR"))
        state->facts |= host ? FACT_MASTER : FACT_NO_MASTER;
    /* A port follows from the name of a job, which Hydra's have not. */
    if (state->advice->mask & ADVICE_HYDRA && host &&
        !is_given(state, "MASTER_PORT"))
        state->facts |= FACT_NO_PORT;
    g_hash_table_insert(state->values, g_strdup("master"),
                        host ? host : g_strdup(""));
}
