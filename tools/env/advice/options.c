/* SPDX-License-Identifier: BSD-3-Clause */
/* Old arguments, cut up into options with their values. */
#include "config.h"

#include "tools/env/advice/state.h"

#include <string.h>

/* How many words follow an option, of whichever mpirun. */
static const struct {
    const char *name;
    int values;
    advice_kind_t kind;
} options[] = {
    {"mca", 2, OLD_MCA},
    {"gmca", 2, OLD_MCA},
    {"omca", 2, OLD_MCA},
    {"x", 1, OLD_VARIABLE},
    {"genv", 2, OLD_VARIABLE},
    {"env", 2, OLD_VARIABLE},
    {"prtemca", 2, OLD_OPTION},
    {"pmixmca", 2, OLD_OPTION},
    {"n", 1, OLD_OPTION},
    {"np", 1, OLD_OPTION},
    {"c", 1, OLD_OPTION},
    {"map-by", 1, OLD_OPTION},
    {"bind-to", 1, OLD_OPTION},
    {"rank-by", 1, OLD_OPTION},
    {"npernode", 1, OLD_OPTION},
    {"N", 1, OLD_OPTION},
    {"npersocket", 1, OLD_OPTION},
    {"pernode", 0, OLD_OPTION},
    {"ppn", 1, OLD_OPTION},
    {"perhost", 1, OLD_OPTION},
    {"cpus-per-proc", 1, OLD_OPTION},
    {"cpus-per-rank", 1, OLD_OPTION},
    {"bynode", 0, OLD_OPTION},
    {"byslot", 0, OLD_OPTION},
    {"bycore", 0, OLD_OPTION},
    {"bysocket", 0, OLD_OPTION},
    {"bind-to-core", 0, OLD_OPTION},
    {"bind-to-socket", 0, OLD_OPTION},
    {"bind-to-none", 0, OLD_OPTION},
    {"oversubscribe", 0, OLD_OPTION},
    {"nooversubscribe", 0, OLD_OPTION},
    {"allow-run-as-root", 0, OLD_OPTION},
    {"hostfile", 1, OLD_OPTION},
    {"default-hostfile", 1, OLD_OPTION},
    {"machinefile", 1, OLD_OPTION},
    {"host", 1, OLD_OPTION},
    {"H", 1, OLD_OPTION},
    {"hosts", 1, OLD_OPTION},
    {"f", 1, OLD_OPTION},
    {"rf", 1, OLD_OPTION},
    {"rankfile", 1, OLD_OPTION},
    {"prefix", 1, OLD_OPTION},
    {"wdir", 1, OLD_OPTION},
    {"wd", 1, OLD_OPTION},
    {"iface", 1, OLD_OPTION},
    {"launcher", 1, OLD_OPTION},
    {"bootstrap", 1, OLD_OPTION},
    {"genvall", 0, OLD_OPTION},
    {"genvnone", 0, OLD_OPTION},
    {"genvlist", 1, OLD_OPTION},
    {"prepend-rank", 0, OLD_OPTION},
    {"l", 0, OLD_OPTION},
    {"tag-output", 0, OLD_OPTION},
    {"timestamp-output", 0, OLD_OPTION},
    {"output-filename", 1, OLD_OPTION},
    {"timeout", 1, OLD_OPTION},
    {"report-bindings", 0, OLD_OPTION},
    {"display-map", 0, OLD_OPTION},
    {"display", 1, OLD_OPTION},
    {"use-hwthread-cpus", 0, OLD_OPTION},
    {"pmi-port", 0, OLD_OPTION},
    {"v", 0, OLD_OPTION},
    {"q", 0, OLD_OPTION},
};

/* Sets values and kind; FALSE where it is in no table. */
static gboolean look_up(const char *name, int *ret_values,
                        advice_kind_t *ret_kind)
{
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (strcmp(options[i].name, name) != 0)
            continue;
        *ret_values = options[i].values;
        *ret_kind = options[i].kind;
        return TRUE;
    }
    *ret_values = 0;
    *ret_kind = OLD_OPTION;
    return FALSE;
}

/* What a parameter, or a variable, is called, and its value. */
static void name_pair(advice_old_t *old)
{
    const char *name = old->words[1];
    const char *equals = strchr(name, '=');

    if (old->kind == OLD_OPTION) {
        old->value = g_strdup(name);
        return;
    }
    g_free(old->name);
    old->name = g_strndup(name, strcspn(name, "="));
    if (old->words[2])
        old->value = g_strdup(old->words[2]);
    else if (equals)
        old->value = g_strdup(equals + 1);
}

/* One option from words on; returns how many words it took. */
static int cut(char *const *words, GPtrArray *list)
{
    const char *name = words[0] + 1 + (words[0][1] == '-');
    size_t length = strcspn(name, "=");
    advice_old_t *old = g_new0(advice_old_t, 1);
    int values, taken;

    old->name = g_strndup(name, length);
    old->known = look_up(old->name, &values, &old->kind);
    if (name[length] && old->kind == OLD_OPTION) {
        old->value = g_strdup(name + length + 1);
        values = 0;
    }
    for (taken = 1; taken <= values && words[taken]; taken++)
        ;
    old->words = g_new0(char *, (gsize)taken + 1);
    for (int i = 0; i < taken; i++)
        old->words[i] = g_strdup(words[i]);
    if (taken > 1)
        name_pair(old);
    else if (values)
        old->known = FALSE;
    g_ptr_array_add(list, old);
    return taken;
}

/* The first word may be the old mpirun itself. */
static gboolean is_launcher(const char *word)
{
    char *name = g_path_get_basename(word);
    gboolean launcher =
        g_str_has_prefix(name, "mpirun") || g_str_has_prefix(name, "mpiexec") ||
        strcmp(name, "orterun") == 0 || strcmp(name, "prterun") == 0;

    g_free(name);
    return launcher;
}

/* Parameters that the environment sets are old arguments as well. */
static void read_ambient(advice_state_t *state)
{
    static const char prefix[] = "OMPI_MCA_";
    char *const *entry = state->question->environment;

    for (; entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        advice_old_t *old;

        if (!g_str_has_prefix(*entry, prefix) || !equals || !equals[1])
            continue;
        old = g_new0(advice_old_t, 1);
        old->kind = OLD_MCA;
        old->known = old->ambient = TRUE;
        old->name = g_strndup(*entry + strlen(prefix),
                              (gsize)(equals - *entry) - strlen(prefix));
        old->value = g_strdup(equals + 1);
        old->words = g_new0(char *, 2);
        old->words[0] = g_strdup(*entry);
        g_ptr_array_add(state->old, old);
    }
}

void tool_advice_old_read(advice_state_t *state)
{
    char *const *word = state->question->old;

    if (word && *word && is_launcher(*word))
        word++;
    while (word && *word && (*word)[0] == '-' && (*word)[1]) {
        if (strcmp(*word, "--") == 0) {
            word++;
            break;
        }
        word += cut(word, state->old);
    }
    if (word && *word)
        state->advice->command = g_strdupv((char **)word);
    if (state->advice->mask & ADVICE_OPENMPI)
        read_ambient(state);
}

const advice_old_t *tool_advice_old_find(const advice_state_t *state,
                                         advice_kind_t kind, const char *name)
{
    const advice_old_t *found = NULL;

    for (guint i = 0; i < state->old->len; i++) {
        const advice_old_t *old = g_ptr_array_index(state->old, i);

        if (old->kind == kind && strcmp(old->name, name) == 0 &&
            (!found || !old->ambient))
            found = old;
    }
    return found;
}
