/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap: rank 0 sends the address and the secret of its store to all
 * ranks, over connections that the launcher has made. In the store, the ranks
 * then count who has arrived. */
#include "config.h"

#include "lib/rendezvous/rendezvous.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/rendezvous/join.h"
#include "lib/rendezvous/roster.h"
#include "lib/store/store.h"
#include "lib/store/tcp/listen.h"

#include <glib.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the bootstrap message: "+JOB SECRET URL", or "-" and the reason why
 * rank 0 cannot serve a store. Only ranks of the job can read it, because it
 * travels over connections of the launcher. */
#define MESSAGE_MAX 1024
#define TOKEN_MAX 40
/* How long rank 0 stays after a failure, so that the others can receive the
 * reason. */
#define GRACE_MS 500
/* Keys in the store: the number of ranks that have arrived, with a key below it
 * for each of them; rank 0's sentence on missing ranks; the number of ranks
 * that have read that sentence. */
#define ARRIVED_KEY "dscomm/heard"
#define MISSING_KEY "dscomm/absent"
#define READ_KEY "dscomm/read"

typedef struct {
    dscomm_bootstrap_t args;
    dscomm_join_t *join;
    dscomm_store_t *store;
    int64_t deadline, grace_end;
    int begun; /* the ranks are connected */
    dscomm_status_t status; /* of rank 0, if it cannot serve a store */
    char message[MESSAGE_MAX];
} bootstrap_t;

/* Notes in the store that this rank has arrived. */
static dscomm_status_t rank_sign(const bootstrap_t *own)
{
    char key[32];

    snprintf(key, sizeof key, ARRIVED_KEY "/%d", own->join->rank);
    return dscomm_store_set(own->store, key, "", 0);
}

/* Rank 0 */

static void make_token(char token[TOKEN_MAX])
{
    uint64_t numbers[2] = {0};

    if (!dscomm_priv_random(numbers, sizeof numbers))
        numbers[0] = (uint64_t)dscomm_priv_clock();
    snprintf(token, TOKEN_MAX, "%016llx%016llx", (unsigned long long)numbers[0],
             (unsigned long long)numbers[1]);
}

/* Lists the addresses of this machine, separated by commas; the loopback only
 * if there is no other. */
static dscomm_status_t list_addresses(char **ret_list)
{
    GString *text = g_string_new(NULL);
    GArray *rows;
    int count = 0;
    bool chosen;
    dscomm_status_t status = dscomm_priv_interfaces_chosen(&rows, &chosen);

    for (guint i = 0; !status && i < rows->len && count < LISTEN_MAX; i++) {
        dscomm_interface_t *row = &g_array_index(rows, dscomm_interface_t, i);
        const struct sockaddr *address = (struct sockaddr *)&row->address;
        char host[LISTEN_HOST_MAX];

        if ((count && dscomm_priv_address_is_loopback(address)) ||
            getnameinfo(address, row->length, host, sizeof host, NULL, 0,
                        NI_NUMERICHOST))
            continue;
        g_string_append_printf(text, "%s%s", count++ ? "," : "", host);
    }
    if (!status)
        g_array_unref(rows);
    if (!status && !count)
        status =
            dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                        "rank 0 has no network interface that is up; bring "
                        "one up, or set MASTER_ADDR and MASTER_PORT");
    *ret_list = g_string_free(text, FALSE);
    return status;
}

static char *make_url(const char *host, int port)
{
    return g_strdup_printf(
        strpbrk(host, ":,") ? "tcp://[%s]:%d" : "tcp://%s:%d", host, port);
}

static dscomm_status_t bootstrap_open_at(bootstrap_t *own, const char *token,
                                         int port)
{
    const char *host = own->join->host ? own->join->host : "*";
    const dscomm_priv_job_t job = {
        .name = token, .ports = 1, .secret = own->join->secret};
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_status_t status;
    char *url = make_url(host, port);

    attr.serve = 1;
    attr.timeout_ms = own->join->timeout_ms;
    status = dscomm_priv_store_open(url, &attr, &job, &own->store);
    g_free(url);
    return status;
}

/* Serves the store at the port that the user gave; if that port is in use, for
 * example by another world of this job, at any free port. */
static dscomm_status_t bootstrap_serve(bootstrap_t *own)
{
    dscomm_join_t *join = own->join;
    char token[TOKEN_MAX], *host = NULL, *url;
    dscomm_status_t status = dscomm_priv_interface_validate();

    make_token(token);
    if (status == DSCOMM_OK && !dscomm_priv_secret_make(join->secret))
        status = dscomm_fail(DSCOMM_ERR_IO,
                             "the system gives no random numbers for a secret "
                             "of the job");
    if (status == DSCOMM_OK && join->host)
        host = g_strdup(join->host);
    else if (status == DSCOMM_OK)
        status = list_addresses(&host);
    if (status == DSCOMM_OK)
        status = bootstrap_open_at(own, token, join->port);
    if (status == DSCOMM_ERR_IO && join->port)
        status = bootstrap_open_at(own, token, 0);
    if (status == DSCOMM_OK)
        status = rank_sign(own);
    if (status == DSCOMM_OK) {
        url = make_url(host, dscomm_store_port(own->store));
        snprintf(own->message, MESSAGE_MAX, "+%s %s %s", token, join->secret,
                 url);
        g_free(url);
    } else {
        snprintf(own->message, MESSAGE_MAX, "-%s", dscomm_last_error());
    }
    g_free(host);
    return status;
}

/* All ranks */

static dscomm_status_t message_read(bootstrap_t *own)
{
    char *message = own->message, **words;
    dscomm_join_t *join = own->join;

    message[MESSAGE_MAX - 1] = '\0';
    dscomm_priv_tidy(message, MESSAGE_MAX);
    if (*message == '-')
        return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                           "rank 0 cannot serve the store: %s", message + 1);
    words = g_strsplit(message, " ", 4);
    explicit_bzero(message, MESSAGE_MAX);
    if (g_strv_length(words) != 3 || *words[0] != '+' ||
        strlen(words[0]) > TOKEN_MAX ||
        strlen(words[1]) != SECRET_MADE_SIZE - 1 ||
        !g_str_has_prefix(words[2], "tcp://")) {
        g_strfreev(words);
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "what rank 0 says of its store makes no sense: it "
                           "has another version of libdscomm");
    }
    g_free(join->url);
    join->url = g_strdup(words[2]);
    g_strlcpy(join->job, words[0] + 1, sizeof join->job);
    g_strlcpy(join->secret, words[1], sizeof join->secret);
    join->ports = 1;
    explicit_bzero(words[1], SECRET_MADE_SIZE);
    g_strfreev(words);
    return DSCOMM_OK;
}

static dscomm_status_t bootstrap_connect(bootstrap_t *own)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    const dscomm_priv_job_t job = {
        .name = own->join->job, .ports = 1, .secret = own->join->secret};
    int64_t count;
    dscomm_status_t status;

    attr.timeout_ms = MAX(dscomm_priv_clock_left(own->deadline), 1);
    status = dscomm_priv_store_open(own->join->url, &attr, &job, &own->store);
    if (status == DSCOMM_OK)
        status = rank_sign(own);
    if (status == DSCOMM_OK)
        status = dscomm_store_add(own->store, ARRIVED_KEY, 1, &count);
    return status;
}

/* Runs when the ranks are connected. Rank 0 that has failed waits until
 * grace_end; another rank reads the message and connects to the store. */
static int bootstrap_begin(bootstrap_t *own)
{
    dscomm_status_t status;

    if (own->status < 0)
        return dscomm_priv_clock() < own->grace_end ? 0 : (int)own->status;
    status = *own->message ? message_read(own) : DSCOMM_OK;
    *own->message = '\0';
    if (status == DSCOMM_OK && !own->store)
        status = bootstrap_connect(own);
    return (int)status;
}

static int bootstrap_has_arrived(void *arg)
{
    bootstrap_t *own = arg;
    int64_t count = 0;
    int status = *own->message ? bootstrap_begin(own) : DSCOMM_OK;

    own->begun = 1;
    if (status < 0 || !own->store)
        return status;
    status = (int)dscomm_store_add(own->store, ARRIVED_KEY, 0, &count);
    return status < 0 ? status : count >= own->args.ranks - 1;
}

/* Finds the ranks that have not arrived at the store. Such a rank may be in
 * dscomm_init() and wait for a message that another rank must pass on. */
static dscomm_status_t missing_find(const bootstrap_t *own, int *ret_came)
{
    const int size = own->args.ranks;
    char *sentence;
    dscomm_status_t status = dscomm_priv_missing_ranks(
        own->store, ARRIVED_KEY "/", size, own->join->timeout_ms, ret_came);

    if (status != DSCOMM_ERR_TIMEOUT || size - *ret_came < 2)
        return status;
    sentence = g_strconcat(dscomm_last_error(),
                           "; some of them may have come, and wait for another "
                           "of them",
                           NULL);
    dscomm_priv_fail_with(status, sentence);
    g_free(sentence);
    return status;
}

/* Rank 0 publishes the sentence on missing ranks, and keeps its store until the
 * others have read it. */
static dscomm_status_t missing_publish(const bootstrap_t *own)
{
    int came;
    dscomm_status_t status = missing_find(own, &came);
    const char *sentence = dscomm_last_error();

    dscomm_priv_fail_hold();
    if (status == DSCOMM_ERR_TIMEOUT &&
        dscomm_store_set(own->store, MISSING_KEY, sentence, strlen(sentence)) ==
            DSCOMM_OK)
        dscomm_priv_roster_await_readers(own->store, READ_KEY, came - 1);
    dscomm_priv_fail_release();
    return status;
}

/* Other ranks wait up to ROSTER_GRACE_MS for that sentence. */
static dscomm_status_t missing_read(const bootstrap_t *own)
{
    void *text;
    int64_t count;
    size_t size;
    int came;

    if (dscomm_store_get(own->store, MISSING_KEY, ROSTER_GRACE_MS, &text,
                         &size) < 0)
        return missing_find(own, &came);
    dscomm_store_add(own->store, READ_KEY, 1, &count);
    dscomm_priv_tidy(text, size + 1);
    dscomm_priv_fail_with(DSCOMM_ERR_TIMEOUT, text);
    dscomm_store_free(text);
    return DSCOMM_ERR_TIMEOUT;
}

/* Runs the bootstrap by module. ret_refused is 1 if rank 0 has sent the others
 * the reason why it cannot serve a store. */
static dscomm_status_t bootstrap_run(dscomm_join_t *join,
                                     const dscomm_module_t *module,
                                     int *ret_refused)
{
    bootstrap_t own = {.join = join};
    dscomm_status_t status;

    join->began = dscomm_priv_clock();
    own.deadline = dscomm_priv_clock_after(join->began, join->timeout_ms);
    own.args = (dscomm_bootstrap_t){.size = sizeof own.args,
                                    .rank = join->rank,
                                    .ranks = join->size,
                                    .data = own.message,
                                    .bytes = MESSAGE_MAX,
                                    .timeout_ms = join->timeout_ms,
                                    .arrived = bootstrap_has_arrived,
                                    .arg = &own};
    if (join->rank == 0)
        own.status = bootstrap_serve(&own);
    own.grace_end = dscomm_priv_clock_after(dscomm_priv_clock(), GRACE_MS);
    status = module->ops.bootstrap(&own.args);
    if (status == DSCOMM_ERR_TIMEOUT && own.store && own.begun)
        status = join->rank ? missing_read(&own) : missing_publish(&own);
    *ret_refused = own.status < 0;
    if (status == DSCOMM_OK)
        join->size = own.args.ranks;
    if (status == DSCOMM_OK && join->size > 1)
        dscomm_priv_rendezvous_use(join, own.store);
    else
        dscomm_store_close(own.store);
    return status;
}

/* Choosing the module */

static int module_can_bootstrap(const dscomm_module_t *module,
                                const dscomm_join_t *join)
{
    dscomm_bootstrap_t question = {
        .size = sizeof question, .rank = join->rank, .ranks = join->size};

    return module->backend && module->ops.bootstrap &&
           module->ops.bootstrap(&question) == DSCOMM_OK;
}

static const dscomm_module_t *module_find_best(const dscomm_join_t *join)
{
    const dscomm_module_t *module, *best = NULL;

    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++)
        if (module->backend &&
            (!best || module->backend->priority > best->backend->priority) &&
            module_can_bootstrap(module, join))
            best = module;
    return best;
}

/* Finds the module that the user has named; with two_level, that is the one
 * between nodes. */
static const dscomm_module_t *module_find_named(const dscomm_join_t *join)
{
    const dscomm_module_t *module;
    const char *name = join->backend;

    if (dscomm_priv_has_levels(name))
        name = dscomm_priv_setting_text(SETTING_LEVEL_BETWEEN);
    if (!strcmp(name, "auto"))
        return module_find_best(join);
    if (dscomm_priv_module_find(name, &module) < 0)
        return NULL;
    return module_can_bootstrap(module, join) ? module : NULL;
}

dscomm_status_t dscomm_priv_bootstrap(dscomm_join_t *join)
{
    const int by_choice = strcmp(join->backend, "auto") == 0;
    const dscomm_module_t *module =
        by_choice ? module_find_best(join) : module_find_named(join);
    dscomm_status_t status;
    int refused;

    if (!module)
        return join->url
                   ? DSCOMM_OK
                   : dscomm_fail(DSCOMM_ERR_ENVIRONMENT, "%s", join->problem);
    status = bootstrap_run(join, module, &refused);
    if (status < 0) {
        /* the module lacks something on this machine */
        const bool unavailable =
            status == DSCOMM_ERR_NO_BACKEND || status == DSCOMM_ERR_ENVIRONMENT;

        if (!by_choice || !join->url || refused || !unavailable)
            return status;
        dscomm_log(DSCOMM_LOG_INFO, "core",
                   "backend %s cannot tell the ranks where they meet, so that "
                   "is %s: %s",
                   module->name, join->url, dscomm_last_error());
        return DSCOMM_OK;
    }
    dscomm_log(DSCOMM_LOG_INFO, "core",
               "backend %s has told the ranks where they meet: %s",
               module->name, join->url);
    return DSCOMM_OK;
}
