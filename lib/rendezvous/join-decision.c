/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 decides, from the records, which backend serves the world and which
 * ranks share a node. It publishes the decision as lines of text: "ok",
 * backend, ranks, nodes, hosts, oversubscribed, rank 0's pid, node and host,
 * the standby store, the world's identity; or "error", status, sentence. */
#include "config.h"

#include "lib/rendezvous/join-decision.h"

#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/rendezvous/roster.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WORD,
    BACKEND,
    SIZE,
    NODES,
    HOSTS,
    OVERSUBSCRIBED,
    PID,
    NODE,
    HOST,
    STANDBY,
    WORLD,
    LINES
};

char *dscomm_priv_join_decision_write(const dscomm_join_decision_t *decision)
{
    char *nodes = dscomm_priv_nodes_write(&decision->nodes);
    char *hosts = dscomm_priv_nodes_write(&decision->hosts);
    char *text = g_strdup_printf(
        "ok\n%s\n%d\n%s\n%s\n%d\n%lld\n%s\n%s\n%s\n%s", decision->module->name,
        decision->nodes.ranks, nodes, hosts, decision->oversubscribed,
        (long long)decision->pid, decision->node, decision->host,
        decision->standby_text, decision->world);

    g_free(hosts);
    g_free(nodes);
    return text;
}

void dscomm_priv_join_decision_clear(dscomm_join_decision_t *decision)
{
    dscomm_priv_nodes_clear(&decision->nodes);
    dscomm_priv_nodes_clear(&decision->hosts);
    dscomm_store_close(decision->standby);
    decision->standby = NULL;
}

dscomm_status_t dscomm_priv_join_decision_put_failure(dscomm_store_t *store,
                                                      const char *key,
                                                      dscomm_status_t status,
                                                      const char *read,
                                                      int readers)
{
    char *text = g_strdup_printf(ROSTER_FAILURE "%d\n%s", (int)status,
                                 dscomm_last_error());

    dscomm_priv_fail_hold();
    if (dscomm_store_set(store, key, text, strlen(text)) == DSCOMM_OK && read)
        dscomm_priv_roster_await_readers(store, read, readers);
    dscomm_priv_fail_release();
    g_free(text);
    return status;
}

void dscomm_priv_world_identify(char ret_id[DSCOMM_WORLD_ID])
{
    uint64_t number;

    if (!dscomm_priv_random(&number, sizeof number))
        number = (uint64_t)dscomm_priv_clock() ^ (uint64_t)getpid() << 48;
    snprintf(ret_id, DSCOMM_WORLD_ID, "%016llx", (unsigned long long)number);
}

static bool is_identity(const char *text)
{
    return strlen(text) == DSCOMM_WORLD_ID - 1 &&
           !text[strspn(text, "0123456789abcdef")];
}

static dscomm_status_t fail_malformed(void)
{
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "what rank 0 published makes no sense; another program "
                       "uses the store");
}

/* ERR_MISMATCH if rank 0's world size differs. Rank 0 does not read the records
 * of ranks beyond its own size, so these ranks check it. */
static dscomm_status_t check_size(const dscomm_join_t *join, const char *size)
{
    char own[16], quoted[32];

    snprintf(own, sizeof own, "%d", join->size);
    if (!strcmp(size, own))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_MISMATCH,
                       "rank 0 was told of %s ranks, rank %d of %s; give all "
                       "the same world size",
                       dscomm_priv_quote(size, quoted, sizeof quoted),
                       join->rank, own);
}

static dscomm_status_t read_good(const dscomm_join_t *join, char **lines,
                                 dscomm_join_decision_t *decision)
{
    dscomm_status_t status = check_size(join, lines[SIZE]);
    gint64 pid = 0;

    if (!status)
        status = dscomm_priv_module_find(lines[BACKEND], &decision->module);
    decision->oversubscribed = strcmp(lines[OVERSUBSCRIBED], "1") == 0;
    if (!status && !decision->oversubscribed &&
        strcmp(lines[OVERSUBSCRIBED], "0"))
        status = fail_malformed();
    if (!status &&
        !g_ascii_string_to_signed(lines[PID], 10, 1, G_MAXINT32, &pid, NULL))
        status = fail_malformed();
    if (!status && !is_identity(lines[WORLD]))
        status = fail_malformed();
    decision->pid = pid;
    g_strlcpy(decision->world, lines[WORLD], sizeof decision->world);
    g_strlcpy(decision->node, lines[NODE], sizeof decision->node);
    dscomm_priv_tidy(decision->node, sizeof decision->node);
    g_strlcpy(decision->host, lines[HOST], sizeof decision->host);
    g_strlcpy(decision->standby_text, lines[STANDBY],
              sizeof decision->standby_text);
    if (!status &&
        (dscomm_priv_nodes_read(lines[NODES], join->size, &decision->nodes) ||
         dscomm_priv_nodes_read(lines[HOSTS], join->size, &decision->hosts)))
        status = fail_malformed();
    return status;
}

static dscomm_status_t read_failure(const char *text)
{
    char **lines = g_strsplit(text, "\n", 3), quoted[DSCOMM_ERROR_MAX];
    dscomm_status_t status;
    gint64 number;

    if (g_strv_length(lines) == 3 &&
        g_ascii_string_to_signed(lines[1], 10, -1000, -1, &number, NULL)) {
        dscomm_priv_quote(lines[2], quoted, sizeof quoted);
        status = dscomm_priv_fail_with((dscomm_status_t)number, quoted);
    } else {
        status = fail_malformed();
    }
    g_strfreev(lines);
    return status;
}

dscomm_status_t
dscomm_priv_join_decision_read(const dscomm_join_t *join, const char *text,
                               dscomm_join_decision_t *ret_decision)
{
    dscomm_join_decision_t decision = {0};
    dscomm_status_t status;
    char **lines;

    if (g_str_has_prefix(text, ROSTER_FAILURE))
        return read_failure(text);
    lines = g_strsplit(text, "\n", LINES + 1);
    if (g_strv_length(lines) == LINES && !strcmp(lines[WORD], "ok"))
        status = read_good(join, lines, &decision);
    else
        status = fail_malformed();
    g_strfreev(lines);
    if (!status)
        *ret_decision = decision;
    else
        dscomm_priv_join_decision_clear(&decision);
    return status;
}

/* Deciding */

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

/* The facts that a decision depends on. */
typedef struct {
    const dscomm_record_t *records;
    int count, oversubscribed;
} job_t;

/* Returns the hosts of the ranks, for g_strfreev(). A rank that cannot share
 * memory counts as a host of its own. */
static char **hosts_new(const dscomm_record_t *records, int count)
{
    char **hosts = g_new0(char *, (gsize)count + 1);

    for (int i = 0; i < count; i++)
        hosts[i] = *records[i].alone
                       ? g_strdup_printf("%d %s", i, records[i].alone)
                       : g_strdup(records[i].host);
    return hosts;
}

/* Returns NULL, or why the backend cannot serve the hosts, or, with by_choice,
 * why another one is better. The text is the backend's. */
static const char *backend_query(const job_t *job,
                                 const dscomm_backend_t *backend, int by_choice)
{
    char **hosts = hosts_new(job->records, job->count);
    const char *const *given = (const char *const *)hosts, *why = NULL;

    if (backend->usable)
        why = backend->usable(given, job->count);
    if (!why && by_choice && backend->advisable)
        why = backend->advisable(given, job->count, job->oversubscribed);
    g_strfreev(hosts);
    return why;
}

/* Returns NULL, or which rank lacks the backend that two_level uses inside
 * nodes (to be freed). Logs one that the user has named. */
static char *inside_refuse(const job_t *job)
{
    const dscomm_setting_t *setting = dscomm_priv_setting(SETTING_LEVEL_INSIDE);
    const char *inside = dscomm_priv_setting_text(SETTING_LEVEL_INSIDE);
    const int rank = first_without(job->records, job->count, inside);
    char *why;

    if (rank < 0)
        return NULL;
    why = g_strdup_printf("rank %d on %s cannot load '%s'", rank,
                          job->records[rank].node, inside);
    if (strcmp(inside, setting->default_value))
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "backend two_level is of no use: %s: %s", setting->name,
                   why);
    return why;
}

/* Returns NULL, or why the module cannot serve these ranks, or, with by_choice,
 * why another one is better (to be freed). */
static char *backend_refuse(const job_t *job, const dscomm_module_t *module,
                            int by_choice)
{
    const int rank = first_without(job->records, job->count, module->name);
    const char *why;

    if (rank >= 0)
        return g_strdup_printf("rank %d on %s cannot load it", rank,
                               job->records[rank].node);
    why = backend_query(job, module->backend, by_choice);
    if (!why && by_choice && !strcmp(module->name, "two_level"))
        return inside_refuse(job);
    return g_strdup(why);
}

/* Appends which rank can share no memory: the first one. */
static void append_alone(const job_t *job, GString *text)
{
    int rank = 0;

    while (rank < job->count && !*job->records[rank].alone)
        rank++;
    if (rank < job->count)
        g_string_append_printf(text, "; rank %d on %s can share no memory (%s)",
                               rank, job->records[rank].node,
                               job->records[rank].alone);
}

/* Appends why the first rank that lacks a module of this process cannot load
 * it. */
static void append_lack(const job_t *job, GString *text)
{
    const dscomm_module_t *module;
    int rank = -1;

    for (size_t i = 0; rank < 0 && (module = dscomm_priv_module_get(i)); i++)
        if (module->backend)
            rank = first_without(job->records, job->count, module->name);
    if (rank >= 0 && *job->records[rank].why)
        g_string_append_printf(text, "; rank %d on %s%s", rank,
                               job->records[rank].node, job->records[rank].why);
}

/* Returns the causes for which several backends may refuse, each once. They
 * come before the reasons of the backends, because a long sentence is cut
 * off. */
static GString *causes_new(const job_t *job)
{
    GString *text = g_string_new(NULL);

    append_alone(job, text);
    append_lack(job, text);
    g_string_append(text, dscomm_priv_module_unreadable());
    return text;
}

static dscomm_status_t choose_named(const job_t *job,
                                    const dscomm_module_t **ret_module)
{
    const char *name = job->records[0].backend;
    const dscomm_module_t *module;
    dscomm_status_t status;
    GString *causes;
    char *why;

    for (int rank = 0; rank < job->count; rank++)
        if (*job->records[rank].why)
            return dscomm_fail(DSCOMM_ERR_NO_BACKEND, "rank %d on %s: %s", rank,
                               job->records[rank].node, job->records[rank].why);
    status = dscomm_priv_module_find(name, &module);
    if (status < 0)
        return status;
    why = backend_refuse(job, module, 0);
    if (why) {
        causes = g_string_new(NULL);
        append_alone(job, causes);
        if (*dscomm_priv_module_unreadable())
            g_string_append_printf(causes, "; so on rank 0 on %s",
                                   job->records[0].node);
        dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                    "backend %s cannot serve this world of %d ranks: %s%s",
                    name, job->count, why, causes->str);
        g_string_free(causes, TRUE);
        g_free(why);
        return DSCOMM_ERR_NO_BACKEND;
    }
    *ret_module = module;
    return DSCOMM_OK;
}

static dscomm_status_t choose_best(const job_t *job,
                                   const dscomm_module_t **ret_module)
{
    const dscomm_module_t *module, *best = NULL;
    GString *reasons = causes_new(job);
    dscomm_status_t status = DSCOMM_OK;

    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++) {
        char *why;

        if (module->backend && best &&
            module->backend->priority <= best->backend->priority)
            continue;
        why = module->backend ? backend_refuse(job, module, 1)
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
        status =
            dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                        "no backend can serve this world of %d ranks "
                        "(modules in %s)%s",
                        job->count, dscomm_backend_directory(), reasons->str);
    dscomm_log(DSCOMM_LOG_INFO, "core", "backend %s is chosen%s",
               best ? best->name : "none", reasons->str);
    g_string_free(reasons, TRUE);
    return status;
}

dscomm_status_t dscomm_priv_choose_backend(const dscomm_record_t *records,
                                           int count, int oversubscribed,
                                           const dscomm_module_t **ret_module)
{
    const job_t job = {records, count, oversubscribed};

    if (strcmp(records[0].backend, "auto"))
        return choose_named(&job, ret_module);
    return choose_best(&job, ret_module);
}

/* The nodes, by hosts and the launcher's numbers; and the hosts, by shared
 * memory alone. */
static void find_nodes(const dscomm_record_t *records, int size,
                       dscomm_nodes_t *ret_nodes, dscomm_nodes_t *ret_hosts)
{
    dscomm_locality_t *localities = g_new0(dscomm_locality_t, (gsize)size);
    char **hosts = hosts_new(records, size);
    GString *warning = g_string_new(NULL);

    for (int i = 0; i < size; i++)
        localities[i] = (dscomm_locality_t){
            .host = records[i].host,
            .local_rank = (int)records[i].local_rank,
            .local_size = (int)records[i].local_size,
            .node_rank = (int)records[i].node_rank,
        };
    dscomm_priv_nodes_find(localities, size, ret_nodes, warning);
    if (warning->len)
        dscomm_log(DSCOMM_LOG_WARN, "core", "%s", warning->str);
    for (int i = 0; i < size; i++)
        localities[i] = (dscomm_locality_t){
            .host = hosts[i],
            .local_rank = -1,
            .local_size = -1,
            .node_rank = -1,
        };
    dscomm_priv_nodes_find(localities, size, ret_hosts, warning);
    g_string_free(warning, TRUE);
    g_strfreev(hosts);
    g_free(localities);
}

static int job_is_oversubscribed(const dscomm_record_t *records, int size)
{
    const char **texts = g_new(const char *, (gsize)size);
    int oversubscribed;

    for (int i = 0; i < size; i++)
        texts[i] = records[i].processors;
    oversubscribed = dscomm_priv_processors_lack(texts, size);
    g_free(texts);
    return oversubscribed;
}

dscomm_status_t dscomm_priv_decide(const dscomm_record_t *records, int size,
                                   dscomm_join_decision_t *ret_decision)
{
    dscomm_status_t status;

    ret_decision->oversubscribed = job_is_oversubscribed(records, size);
    ret_decision->pid = getpid();
    dscomm_priv_world_identify(ret_decision->world);
    g_strlcpy(ret_decision->node, records[0].node, sizeof ret_decision->node);
    g_strlcpy(ret_decision->host, records[0].host, sizeof ret_decision->host);
    status = dscomm_priv_choose_backend(
        records, size, ret_decision->oversubscribed, &ret_decision->module);
    if (status == DSCOMM_OK)
        find_nodes(records, size, &ret_decision->nodes, &ret_decision->hosts);
    return status;
}
