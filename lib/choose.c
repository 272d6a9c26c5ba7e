/* SPDX-License-Identifier: BSD-3-Clause */
/* Which backend serves a world, as rank 0 decides it for all. */
#include "config.h"

#include "lib/roster.h"

#include <glib.h>
#include <string.h>

/* The first rank that cannot load the module, or -1. */
static int first_without(const dscomm_record_t *records, int count,
                         const char *name)
{
    char *word = g_strdup_printf(" %s ", name);
    int rank;

    for (rank = 0; rank < count; rank++)
        if (!strstr(records[rank].modules, word))
            break;
    g_free(word);
    return rank < count ? rank : -1;
}

/* What the module says of the hosts; one that can share memory with none is
 * not the host that it seems. */
static char *ask(const dscomm_record_t *records, int count,
                 const char *(*opinion)(const char *const *hosts, int ranks))
{
    const char **hosts = g_new(const char *, (guint)count), *why;
    GString *text = g_string_new(NULL);
    int alone = -1;

    for (int rank = count - 1; rank >= 0; rank--) {
        hosts[rank] = records[rank].host;
        if (*records[rank].alone)
            hosts[alone = rank] = records[rank].alone;
    }
    why = opinion(hosts, count);
    if (why)
        g_string_append(text, why);
    if (why && alone >= 0)
        g_string_append_printf(text, "; rank %d on %s can share no memory (%s)",
                               alone, records[alone].node,
                               records[alone].alone);
    g_free(hosts);
    return g_string_free(text, !why);
}

/* NULL, or why the module cannot serve these ranks, or by its own choice does
 * not (to be freed). */
static char *refuse(const dscomm_record_t *records, int count,
                    const dscomm_module_t *module, int by_choice)
{
    const dscomm_backend_t *backend = module->backend;
    char *why = NULL;
    int rank = first_without(records, count, module->name);

    if (rank >= 0)
        return g_strdup_printf("rank %d on %s cannot load it%s", rank,
                               records[rank].node, records[rank].why);
    if (backend->usable)
        why = ask(records, count, backend->usable);
    if (!why && by_choice && backend->advisable)
        why = ask(records, count, backend->advisable);
    return why;
}

static dscomm_status_t choose_named(const dscomm_record_t *records, int count,
                                    const dscomm_module_t **ret_module)
{
    const char *name = records[0].backend;
    const dscomm_module_t *module;
    dscomm_status_t status;
    char *why;

    for (int rank = 0; rank < count; rank++)
        if (*records[rank].why)
            return dscomm_fail(DSCOMM_ERR_NO_BACKEND, "rank %d on %s: %s", rank,
                               records[rank].node, records[rank].why);
    status = dscomm_priv_module_find(name, &module);
    if (status < 0)
        return status;
    why = refuse(records, count, module, 0);
    if (why) {
        dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                    "backend %s cannot serve this world of %d ranks: %s", name,
                    count, why);
        g_free(why);
        return DSCOMM_ERR_NO_BACKEND;
    }
    *ret_module = module;
    return DSCOMM_OK;
}

static dscomm_status_t choose_best(const dscomm_record_t *records, int count,
                                   const dscomm_module_t **ret_module)
{
    const dscomm_module_t *module, *best = NULL;
    GString *reasons = g_string_new(NULL);
    dscomm_status_t status = DSCOMM_OK;

    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++) {
        char *why;

        if (module->backend && best &&
            module->backend->priority <= best->backend->priority)
            continue;
        why = module->backend ? refuse(records, count, module, 1)
                              : g_strdup(module->why);
        if (!why)
            best = module;
        else
            g_string_append_printf(reasons, "; %s: %s", module->name, why);
        g_free(why);
    }
    if (best)
        *ret_module = best;
    else
        status = dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                             "no backend can serve this world of %d ranks "
                             "(modules in %s)%s%s",
                             count, dscomm_backend_directory(), reasons->str,
                             dscomm_priv_module_unreadable());
    dscomm_log(DSCOMM_LOG_INFO, "core", "backend %s is chosen%s",
               best ? best->name : "none", reasons->str);
    g_string_free(reasons, TRUE);
    return status;
}

dscomm_status_t dscomm_priv_choose_backend(const dscomm_record_t *records,
                                           int count,
                                           const dscomm_module_t **ret_module)
{
    if (strcmp(records[0].backend, "auto"))
        return choose_named(records, count, ret_module);
    return choose_best(records, count, ret_module);
}
