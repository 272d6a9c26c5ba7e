/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds rank and world size of this process, and where the ranks meet:
 * attributes take precedence over init_method, and that over the environment. A
 * contradiction between two of them is an error. */
#include "config.h"

#include "lib/rendezvous/rendezvous.h"

#include "env/env.h"
#include "lib/base/log.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/store/tcp/socket.h"

#include <glib.h>
#include <string.h>

/* An init_method, taken apart. */
typedef struct {
    const char *name; /* name of the attribute or variable from which it came */
    dscomm_status_t wrong; /* status if it is malformed */
    char *url; /* without query; NULL: env:// */
    int has_rank, rank, world_size;
} method_t;

static dscomm_status_t bad_method(const method_t *method, const char *text,
                                  const char *why)
{
    char quoted[256];

    return dscomm_fail(method->wrong,
                       "%s '%s': %s; give env://, tcp://HOST:PORT or "
                       "file:///PATH",
                       method->name,
                       dscomm_priv_quote(text, quoted, sizeof quoted), why);
}

/* One "name=value" of the query; adds 1 for a rank, 2 for a world size to
 * found. false: no number. */
static bool query_read_word(const char *word, method_t *method, int *found)
{
    static const char *const names[] = {"rank=", "world_size="};
    int *const values[] = {&method->rank, &method->world_size};
    int64_t number;

    for (int i = 0; i < 2; i++) {
        if (!g_str_has_prefix(word, names[i]))
            continue;
        word += strlen(names[i]);
        if (!g_ascii_isdigit(*word) ||
            dscomm_priv_parse_decimal(word, &number) || number > G_MAXINT32)
            return false;
        *values[i] = (int)number;
        *found |= i + 1;
    }
    return true;
}

/* NULL, or what is wrong. */
static const char *query_read(const char *query, method_t *method)
{
    int found = 0;
    char word[64]; /* longer words are not numbers */

    for (;; query++) {
        const size_t length = strcspn(query, "&");

        g_strlcpy(word, query, MIN(length + 1, sizeof word));
        if (!query_read_word(word, method, &found))
            return "rank and world_size are whole numbers";
        query += length;
        if (!*query)
            break;
    }
    method->has_rank = found != 0;
    return found == 1 || found == 2 ? "rank and world_size go together" : NULL;
}

/* Returns the port of a tcp:// URL; -1 if it has none, or no host. */
static int port_of(const char *url)
{
    char *host = NULL;
    int port;

    if (dscomm_priv_address_split(url + strlen("tcp://"), &host, &port))
        return -1;
    g_free(host);
    return port;
}

/* NULL, or what is wrong with the form of init_method, also for one rank,
 * because programs are tried with one rank first. */
static const char *form_check(const char *url)
{
    if (g_str_has_prefix(url, "file://"))
        return g_str_has_prefix(url, "file:///") && url[strlen("file:///")]
                   ? NULL
                   : "the path must be absolute";
    if (g_str_has_prefix(url, "tcp://"))
        return port_of(url) >= 0
                   ? NULL
                   : "a host and a port from 0 to 65535 are needed, and "
                     "brackets around an IPv6 address";
    return g_str_has_prefix(url, "env://") ? NULL : "no such method";
}

static dscomm_status_t read_method(const char *text, method_t *method)
{
    const char *query = strchr(text, '?');
    size_t length = query ? (size_t)(query - text) : strlen(text);
    char *url = strndup(text, length);
    const char *why;
    dscomm_status_t status = DSCOMM_OK;

    if (!url)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %s",
                           method->name);
    why = query ? query_read(query + 1, method) : NULL;
    if (!why)
        why = form_check(url);
    if (why)
        status = bad_method(method, text, why);
    if (status < 0 || g_str_has_prefix(url, "env://"))
        g_free(url);
    else
        method->url = url;
    return status;
}

/* 1 if the environment's numbers are those of the world. */
static int env_is_own(const dscomm_env_t *env, const dscomm_join_t *join)
{
    return dscomm_env_rank(env) == join->rank &&
           dscomm_env_world_size(env) == join->size;
}

/* Returns a number if a variable gave it; -1 if it was only inferred. */
static int number_given(const dscomm_env_t *env, dscomm_env_field_t field,
                        int number)
{
    const char *origin = dscomm_env_origin(env, field);

    return origin && !strchr(origin, ' ') ? number : -1;
}

static void join_choose_locality(const dscomm_env_t *env, dscomm_join_t *join)
{
    join->local_rank = join->local_size = join->node_rank = -1;
    if (!env_is_own(env, join))
        return;
    join->local_rank =
        number_given(env, DSCOMM_ENV_LOCAL_RANK, dscomm_env_local_rank(env));
    join->local_size =
        number_given(env, DSCOMM_ENV_LOCAL_SIZE, dscomm_env_local_size(env));
    join->node_rank =
        number_given(env, DSCOMM_ENV_NODE_RANK, dscomm_env_node_rank(env));
}

/* The environment's job is the world's only if the environment's numbers are,
 * too. run_id separates the keys of several jobs in a launcher's store. */
static void choose_job(const dscomm_env_t *env, dscomm_join_t *join)
{
    const char *job = dscomm_env_job(env), *source = dscomm_env_source(env);
    int agent =
        strcmp(source, "torchrun") == 0 || strcmp(source, "dscomm") == 0;

    g_strlcpy(join->run_id, agent && *job ? job : "0", sizeof join->run_id);
    g_strlcpy(join->job, env_is_own(env, join) ? job : "", sizeof join->job);
}

/* An init_method is for several ranks: without numbers, each process would be a
 * job of one rank, so that is an error. */
static dscomm_status_t check_known(const dscomm_init_attr_t *attr,
                                   const method_t *method,
                                   const dscomm_env_t *env)
{
    char quoted[256];

    if (attr->has_rank || attr->store || method->has_rank || !method->url ||
        env->forced || env->family->tier != ENV_TIER_ALONE)
        return DSCOMM_OK;
    return dscomm_fail(method->wrong,
                       "%s '%s': nothing tells which rank of how many this "
                       "process is; add ?rank=R&world_size=N, give rank and "
                       "world_size as attributes or in DSCOMM_RANK and "
                       "DSCOMM_WORLD_SIZE, or use a launcher, as dscomm run",
                       method->name,
                       dscomm_priv_quote(method->url, quoted, sizeof quoted));
}

/* Rank and size of the world: from the attributes, else init_method, else the
 * environment. */
static dscomm_status_t choose_rank(const dscomm_init_attr_t *attr,
                                   const method_t *method,
                                   const dscomm_env_t *env, dscomm_join_t *join)
{
    join->rank = attr->has_rank     ? attr->rank
                 : method->has_rank ? method->rank
                                    : dscomm_env_rank(env);
    join->size = attr->has_rank     ? attr->world_size
                 : method->has_rank ? method->world_size
                                    : dscomm_env_world_size(env);
    if (attr->has_rank && method->has_rank)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "rank and world_size are given in the attributes "
                           "and in init_method; leave one out");
    if (join->size < 1 || join->rank < 0 || join->rank >= join->size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "rank %d of a world of %d ranks; a rank is in 0 ... "
                           "world_size - 1",
                           join->rank, join->size);
    if (join->size > DSCOMM_RANKS_MAX)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "a world of %d ranks; there are at most %d",
                           join->size, DSCOMM_RANKS_MAX);
    return DSCOMM_OK;
}

/* 1 if a variable gave the field, a number or an address. */
static int field_is_given(const dscomm_env_t *env, dscomm_env_field_t field)
{
    return number_given(env, field, 1) == 1;
}

/* 1 if rank 0's address or port may be wrong. Launchers of an MPI do not give
 * them, and rank 0 need not be on the first node of the scheduler's list; it is
 * on the first node of a step's list. */
static int is_unsure(const dscomm_env_t *env, const dscomm_join_t *join)
{
    const env_tier_t tier = env->family->tier;

    if (!env_is_own(env, join) ||
        (tier != ENV_TIER_MANAGER && tier != ENV_TIER_STEP))
        return 0;
    if (!env->address || dscomm_env_master_port(env) < 1)
        return 1;
    return tier == ENV_TIER_MANAGER && !dscomm_priv_env_one_node(env) &&
           !field_is_given(env, DSCOMM_ENV_MASTER_ADDR);
}

/* A copy of text, NULL if text is NULL. Sets join->bad if there is no memory.
 */
static char *join_copy(dscomm_join_t *join, const char *text)
{
    char *own = text ? strdup(text) : NULL;

    join->bad |= text && !own;
    return own;
}

/* Returns a copy of the URL of address and port, in the same way. */
static char *url_of(dscomm_join_t *join, const char *address, int port)
{
    const int is_ipv6 = strchr(address, ':') && *address != '[';
    const size_t size = strlen(address) + sizeof "tcp://[]:65535";
    char *url = g_try_malloc(size);

    if (url)
        g_snprintf(url, size, is_ipv6 ? "tcp://[%s]:%d" : "tcp://%s:%d",
                   address, port);
    join->bad |= !url;
    return url;
}

/* Sets host and port for the bootstrap, as far as the environment gives
 * them. */
static void join_from_env(const dscomm_env_t *env, dscomm_join_t *join)
{
    const int likely = !field_is_given(env, DSCOMM_ENV_MASTER_ADDR) &&
                       !dscomm_priv_env_one_node(env);

    if (!likely)
        join->host = join_copy(join, env->address);
    if (field_is_given(env, DSCOMM_ENV_MASTER_PORT))
        join->port = dscomm_env_master_port(env);
}

/* 1 if all nodes have MUNGE: Slurm installs it. Not if the user gave address
 * and port, because processes without a secret, such as PyTorch's, may come
 * there. */
static bool has_munge(const dscomm_env_t *env, const dscomm_join_t *join)
{
    return join->serve && env_is_own(env, join) &&
           !strcmp(env->family->name, "slurm") &&
           !(field_is_given(env, DSCOMM_ENV_MASTER_ADDR) &&
             field_is_given(env, DSCOMM_ENV_MASTER_PORT));
}

static dscomm_status_t choose_place(const dscomm_init_attr_t *attr,
                                    method_t *method, const dscomm_env_t *env,
                                    dscomm_join_t *join)
{
    const char *address = dscomm_env_master_addr(env);
    int port = dscomm_env_master_port(env);

    join->store = attr->store;
    join->serve = method->url || !dscomm_env_agent_store(env);
    if (join->store || join->size == 1)
        return DSCOMM_OK;
    if (method->url && g_str_has_prefix(method->url, "tcp://") &&
        port_of(method->url) == 0)
        return bad_method(method, method->url,
                          "port 0 is a free one, which other ranks cannot "
                          "know");
    join->url = g_steal_pointer(&method->url);
    if (join->url)
        return DSCOMM_OK;
    join->needs_bootstrap = is_unsure(env, join);
    if (join->needs_bootstrap)
        join_from_env(env, join);
    if (dscomm_env_world_size(env) > 1 && (!*address || port < 1)) {
        const dscomm_status_t status = dscomm_env_check_master(env);

        if (!join->needs_bootstrap)
            return status;
        join->problem = join_copy(join, dscomm_last_error());
        return DSCOMM_OK;
    }
    /* a store at one of several ports is identified by its job */
    join->ports =
        dscomm_priv_env_has_ports(env) && *join->job ? DSCOMM_PORTS : 1;
    if (!*address || port < 1)
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "%s is not set, so that rank %d of %d cannot find "
                           "the others; set MASTER_ADDR and MASTER_PORT, or "
                           "use a launcher, as dscomm run",
                           *address ? "MASTER_PORT" : "MASTER_ADDR", join->rank,
                           join->size);
    join->munge = has_munge(env, join);
    join->url = url_of(join, address, port);
    return DSCOMM_OK;
}

/* If the launcher says that all ranks are on this machine, they meet at the
 * loopback, whatever the machine's name is: other machines cannot reach it. */
static void choose_loopback(dscomm_join_t *join)
{
    char *host = NULL;
    int port;

    if (!join->serve || join->local_size != join->size)
        return;
    if (join->needs_bootstrap && !join->host)
        join->host = join_copy(join, "127.0.0.1");
    if (!join->url || !g_str_has_prefix(join->url, "tcp://") ||
        dscomm_priv_address_split(join->url + strlen("tcp://"), &host, &port))
        return;
    if (!dscomm_priv_is_loopback(host)) {
        g_free(join->url);
        join->url = url_of(join, "127.0.0.1", port);
    }
    g_free(host);
}

static dscomm_status_t choose_world(const dscomm_init_attr_t *attr,
                                    method_t *method, const dscomm_env_t *env,
                                    dscomm_join_t *join)
{
    dscomm_status_t status = check_known(attr, method, env);

    if (status == DSCOMM_OK)
        status = choose_rank(attr, method, env, join);
    if (status != DSCOMM_OK)
        return status;
    join_choose_locality(env, join);
    choose_job(env, join);
    status = choose_place(attr, method, env, join);
    if (status == DSCOMM_OK)
        choose_loopback(join);
    return status;
}

/* 1 if only the number of ranks is missing, which a backend may know. */
static int is_lone(const dscomm_init_attr_t *attr, const method_t *method,
                   const dscomm_env_t *env)
{
    return !attr->has_rank && !attr->store && !method->has_rank &&
           !method->url && env && env->lone_rank >= 0;
}

static void choose_lone(const dscomm_env_t *env, dscomm_join_t *join)
{
    join->rank = env->lone_rank;
    join->local_rank = join->local_size = join->node_rank = -1;
    g_strlcpy(join->run_id, "0", sizeof join->run_id);
    join->serve = join->needs_bootstrap = 1;
    join->problem = join_copy(join, dscomm_last_error());
}

/* The names of sources that are present, but were not taken. */
static void list_losers(const dscomm_env_t *env, char *names, size_t size)
{
    size_t length = 0;

    g_strlcpy(names, "none", size);

    for (size_t i = 0; i < dscomm_priv_env_family_count; i++) {
        const env_family_t *family = dscomm_priv_env_families[i];

        if (env->judgements[i].verdict == DSCOMM_ENV_IGNORED &&
            family->tier != ENV_TIER_ALONE && length < size)
            length += (size_t)g_snprintf(names + length, size - length, "%s%s",
                                         length ? ", " : "", family->name);
    }
}

/* Logs what was discovered, on rank 0, and all warnings. */
static void env_log(const dscomm_env_t *env)
{
    const char *text;

    if (dscomm_env_rank(env) == 0) {
        char losers[256];

        list_losers(env, losers, sizeof losers);
        dscomm_log(DSCOMM_LOG_INFO, "core",
                   "%s: rank 0 of %d, local rank %d of %d, node %d; they meet "
                   "at '%s' port %d; other sources: %s",
                   dscomm_env_source(env), dscomm_env_world_size(env),
                   dscomm_env_local_rank(env), dscomm_env_local_size(env),
                   dscomm_env_node_rank(env), dscomm_env_master_addr(env),
                   dscomm_env_master_port(env), losers);
    }
    for (size_t i = 0; (text = dscomm_env_warning(env, i)); i++)
        dscomm_log(DSCOMM_LOG_WARN, "core", "%s", text);
}

/* Discovery. Errors of the environment count only if its numbers or its address
 * are needed. */
static dscomm_status_t query_launcher(const dscomm_init_attr_t *attr,
                                      const method_t *method,
                                      dscomm_env_t **ret_env)
{
    dscomm_env_attr_t tolerant = DSCOMM_ENV_ATTR_INIT;
    int ranks_known = attr->has_rank || method->has_rank;
    int place_known = attr->store || method->url || attr->world_size == 1;
    dscomm_status_t status;

    tolerant.tolerate = 1;
    status = dscomm_env_discover(&tolerant, ret_env);
    if (status == DSCOMM_OK && !(ranks_known && place_known))
        status = dscomm_env_status(*ret_env);
    if (status == DSCOMM_OK && !ranks_known)
        env_log(*ret_env);
    return status;
}

static dscomm_status_t choose_timeout(const dscomm_init_attr_t *attr,
                                      dscomm_join_t *join)
{
    int64_t timeout_ms = attr->timeout_ms;
    dscomm_status_t status = DSCOMM_OK;

    if (!timeout_ms)
        status = dscomm_priv_setting_number(SETTING_TIMEOUT, &timeout_ms);
    join->timeout_ms = (int)MIN(timeout_ms, G_MAXINT);
    return status;
}

dscomm_status_t dscomm_priv_discover(const dscomm_init_attr_t *attr,
                                     dscomm_join_t *ret_join)
{
    const char *text = attr->init_method;
    const char *backend = attr->backend;
    method_t method = {"init_method", DSCOMM_ERR_INVALID, NULL, 0, 0, 0};
    dscomm_env_t *env = NULL;
    dscomm_join_t join = {0};
    dscomm_status_t status = choose_timeout(attr, &join);

    if (!text) {
        text = dscomm_priv_setting_text(SETTING_INIT_METHOD);
        method.name = "DSCOMM_INIT_METHOD";
        method.wrong = DSCOMM_ERR_ENVIRONMENT;
    }
    if (status == DSCOMM_OK)
        status = read_method(text ? text : "env://", &method);
    if (status == DSCOMM_OK)
        status = query_launcher(attr, &method, &env);
    if (status == DSCOMM_OK) {
        status = choose_world(attr, &method, env, &join);
    } else if (is_lone(attr, &method, env)) {
        choose_lone(env, &join);
        status = DSCOMM_OK;
    }
    dscomm_env_free(env);
    g_free(method.url);
    if (status < 0)
        return status;
    if (!backend)
        backend = dscomm_priv_setting_text(SETTING_BACKEND);
    join.backend = join_copy(&join, backend ? backend : "auto");
    if (join.bad) {
        dscomm_priv_join_clear(&join);
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for where the ranks meet");
    }
    *ret_join = join;
    return DSCOMM_OK;
}

void dscomm_priv_join_clear(dscomm_join_t *join)
{
    g_free(join->url);
    g_free(join->host);
    g_free(join->problem);
    g_free(join->backend);
    explicit_bzero(join->secret, sizeof join->secret);
}
