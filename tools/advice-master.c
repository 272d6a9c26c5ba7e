/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the ranks of several nodes meet, which no mpirun tells them. */
#include "config.h"

#include "tools/advice-state.h"
#include "tools/processors.h"

#include <string.h>

/* The first host of Slurm's list, as "rack[1-2]-n[08-10],login": the first
 * number of each range. */
static char *first_of_list(const char *text)
{
    GString *host = g_string_new(NULL);

    while (*text && *text != ',') {
        if (*text != '[') {
            g_string_append_c(host, *text++);
            continue;
        }
        text++;
        g_string_append_len(host, text, (gssize)strcspn(text, "-,]"));
        text += strcspn(text, "]");
        text += *text == ']';
    }
    return g_string_free(host, FALSE);
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

static char *by_arguments(const advice_state_t *state)
{
    static const char *const names[] = {"host", "H", "hosts"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const advice_old_t *old =
            tool_advice_old_find(state, OLD_OPTION, names[i]);

        if (old && old->value)
            return first_host(old->value);
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

static gboolean has_file(const advice_state_t *state)
{
    static const char *const names[] = {
        "hostfile", "default-hostfile", "machinefile", "f", "rf", "rankfile"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (tool_advice_old_find(state, OLD_OPTION, names[i]))
            return TRUE;
    }
    return FALSE;
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
    char *host;

    if (!(state->facts & FACT_SEVERAL))
        return;
    host = by_arguments(state);
    if (!host && !has_file(state))
        host = by_scheduler(state);
    if (host && !*host)
        g_clear_pointer(&host, g_free);
    if (!is_given(state, "MASTER_ADDR"))
        state->facts |= host ? FACT_MASTER : FACT_NO_MASTER;
    if (!is_given(state, "MASTER_PORT") &&
        !tool_advice_variable(state->question, "SLURM_JOB_ID"))
        state->facts |= FACT_NO_PORT;
    g_hash_table_insert(state->values, g_strdup("master"),
                        host ? host : g_strdup(""));
}
