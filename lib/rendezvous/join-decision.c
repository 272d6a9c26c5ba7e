/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 decides, from the records, which backend serves the world and which
 * ranks share a node. It publishes the decision as lines of text: "ok",
 * backend, that between nodes, ranks, nodes, hosts, oversubscribed, rank 0's
 * pid, node and host, the standby store, the world's identity; or "error",
 * status, sentence. */
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
    BETWEEN,
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
        "ok\n%s\n%s\n%d\n%s\n%s\n%d\n%lld\n%s\n%s\n%s\n%s",
        decision->module->name, decision->between, decision->nodes.ranks, nodes,
        hosts, decision->oversubscribed, (long long)decision->pid,
        decision->node, decision->host, decision->standby_text,
        decision->world);

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
    g_strlcpy(decision->between, lines[BETWEEN], sizeof decision->between);
    dscomm_priv_tidy(decision->between, sizeof decision->between);
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

/* The facts that a decision depends on. */
typedef struct {
    const dscomm_record_t *records;
    int count, oversubscribed;
    bool by_choice; /* "auto": a backend may serve, and another one be better */
    const dscomm_module_t *between; /* the backend between nodes; NULL: none */
    char *between_why; /* why there is none, or why others are not chosen */
} job_t;

/* Returns NULL, or which rank cannot use a module, and why (to be freed). */
static char *lack_of(const job_t *job, const char *name)
{
    char *word = g_strdup_printf(" %s ", name), *why, *text = NULL;

    for (int rank = 0; rank < job->count && !text; rank++) {
        const dscomm_record_t *record = &job->records[rank];

        if (strstr(record->modules, word))
            continue;
        why = dscomm_priv_record_reason(record, name);
        text = g_strdup_printf("rank %d on %s: %s", rank, record->node, why);
        g_free(why);
    }
    g_free(word);
    return text;
}

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

static int count_hosts(char **hosts)
{
    GHashTable *seen = g_hash_table_new(g_str_hash, g_str_equal);
    int count;

    for (char **host = hosts; *host; host++)
        g_hash_table_add(seen, *host);
    count = (int)g_hash_table_size(seen);
    g_hash_table_unref(seen);
    return count;
}

/* Returns NULL, or why a backend cannot serve ranks on these hosts (to be
 * freed). */
static char *hosts_refuse(const dscomm_backend_t *backend, char **hosts)
{
    if (!backend->usable)
        return NULL;
    return g_strdup(
        backend->usable((const char *const *)hosts, (int)g_strv_length(hosts)));
}

/* Returns NULL, or why a module cannot serve between the nodes of the job (to
 * be freed). */
static char *between_refuse(const job_t *job, const dscomm_module_t *module)
{
    char *hosts[] = {(char *)"one", (char *)"another", NULL}, *why;

    if (dscomm_priv_has_levels(module->name))
        return g_strdup("it is no network");
    why = lack_of(job, module->name);
    return why ? why : hosts_refuse(module->backend, hosts);
}

/* Returns the module of the highest priority that refuse, which gives a reason
 * to be freed, does not refuse; NULL: there is none. Appends the reasons. */
static const dscomm_module_t *
best_module(const job_t *job,
            char *(*refuse)(const job_t *job, const dscomm_module_t *module),
            GString *reasons)
{
    const dscomm_module_t *module, *best = NULL;

    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++) {
        char *why;

        if (module->backend && best &&
            module->backend->priority <= best->backend->priority)
            continue;
        why = module->backend ? refuse(job, module) : g_strdup(module->why);
        if (!why)
            best = module;
        else
            g_string_append_printf(reasons, "; %s: %s", module->name, why);
        g_free(why);
    }
    return best;
}

/* Finds the backend that serves between nodes: the one that the setting names
 * or, if that is auto, the best that all ranks can use. */
static void choose_between(job_t *job)
{
    const dscomm_setting_t *setting =
        dscomm_priv_setting(SETTING_LEVEL_BETWEEN);
    const char *name = dscomm_priv_setting_text(SETTING_LEVEL_BETWEEN);
    GString *reasons;

    if (strcmp(name, "auto")) {
        if (dscomm_priv_module_find(name, &job->between) == DSCOMM_OK)
            return;
        job->between_why =
            g_strdup_printf("%s: %s", setting->name, dscomm_last_error());
        if (job->by_choice)
            dscomm_log(DSCOMM_LOG_WARN, "core",
                       "backend two_level is of no use: %s", job->between_why);
        return;
    }
    reasons = g_string_new(NULL);
    job->between = best_module(job, between_refuse, reasons);
    if (!job->between)
        g_string_prepend(reasons, "no backend serves between nodes");
    job->between_why = g_string_free(reasons, FALSE);
}

/* Returns NULL, or which rank cannot use the backend that a setting names, or
 * that was chosen for it (to be freed). Logs a name of the user that leads
 * nowhere, because another backend may be chosen in spite of it. */
static char *level_refuse(const job_t *job, int setting, const char *name)
{
    const dscomm_setting_t *row = dscomm_priv_setting(setting);
    char *lack = lack_of(job, name), *why;

    if (!lack)
        return NULL;
    why = g_strdup_printf("%s %s: %s", row->name, name, lack);
    g_free(lack);
    if (job->by_choice &&
        strcmp(dscomm_priv_setting_text(setting), row->default_value))
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "backend two_level is of no use: %s", why);
    return why;
}

/* Returns NULL, or why two_level cannot serve the job or, by choice, why one
 * level is better (to be freed). */
static char *levels_refuse(const job_t *job, char **hosts)
{
    const char *inside = dscomm_priv_setting_text(SETTING_LEVEL_INSIDE);
    const dscomm_backend_t *between =
        job->between ? job->between->backend : NULL;
    const int count = count_hosts(hosts);
    char *why = NULL;

    if (job->by_choice && count == 1)
        return g_strdup("all ranks run on one host");
    if (job->by_choice && count == job->count)
        return g_strdup("every rank has a host of its own");
    if (!between)
        return g_strdup(job->between_why);
    why = level_refuse(job, SETTING_LEVEL_BETWEEN, job->between->name);
    if (!why && count < job->count)
        why = level_refuse(job, SETTING_LEVEL_INSIDE, inside);
    if (!why && job->by_choice)
        why = hosts_refuse(between, hosts);
    if (!why && job->by_choice && between->beneath)
        why = g_strdup(between->beneath(job->oversubscribed));
    return why;
}

/* Returns NULL, or why the module cannot serve these ranks or, by choice, why
 * another one is better (to be freed). */
static char *backend_refuse(const job_t *job, const dscomm_module_t *module)
{
    char **hosts = hosts_new(job->records, job->count);
    char *why = lack_of(job, module->name);

    if (!why)
        why = dscomm_priv_has_levels(module->name)
                  ? levels_refuse(job, hosts)
                  : hosts_refuse(module->backend, hosts);
    g_strfreev(hosts);
    return why;
}

/* Appends which rank can share no memory: the first one. It comes before the
 * reasons of backends, because several may have it as their cause, and a long
 * sentence is cut off. */
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

static dscomm_status_t choose_named(const job_t *job,
                                    const dscomm_module_t **ret_module)
{
    const char *name = job->records[0].backend;
    const dscomm_module_t *module;
    dscomm_status_t status;
    GString *causes;
    char *why;

    status = dscomm_priv_module_find(name, &module);
    if (status < 0)
        return dscomm_fail(status, "rank 0 on %s: %s", job->records[0].node,
                           dscomm_last_error());
    why = backend_refuse(job, module);
    if (why) {
        causes = g_string_new(NULL);
        append_alone(job, causes);
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
    const dscomm_module_t *best;
    GString *reasons = g_string_new(NULL);
    dscomm_status_t status = DSCOMM_OK;

    append_alone(job, reasons);
    g_string_append(reasons, dscomm_priv_module_unreadable());
    best = best_module(job, backend_refuse, reasons);
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
                                           int count,
                                           dscomm_join_decision_t *decision)
{
    const char *between = dscomm_priv_setting_text(SETTING_LEVEL_BETWEEN);
    job_t job = {.records = records,
                 .count = count,
                 .oversubscribed = decision->oversubscribed,
                 .by_choice = !strcmp(records[0].backend, "auto")};
    dscomm_status_t status;

    if (dscomm_priv_has_levels(records[0].backend))
        choose_between(&job);
    status = job.by_choice ? choose_best(&job, &decision->module)
                           : choose_named(&job, &decision->module);
    if (status == DSCOMM_OK && dscomm_priv_has_levels(decision->module->name))
        dscomm_log(DSCOMM_LOG_INFO, "core",
                   "backend two_level uses %s between nodes%s",
                   job.between->name, job.between_why ? job.between_why : "");
    if (job.between)
        between = job.between->name;
    else if (status == DSCOMM_OK && !strcmp(between, "auto"))
        between = decision->module->name;
    g_strlcpy(decision->between, between, sizeof decision->between);
    dscomm_priv_tidy(decision->between, sizeof decision->between);
    g_free(job.between_why);
    return status;
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
    status = dscomm_priv_choose_backend(records, size, ret_decision);
    if (status == DSCOMM_OK)
        find_nodes(records, size, &ret_decision->nodes, &ret_decision->hosts);
    return status;
}
