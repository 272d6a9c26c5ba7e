/* SPDX-License-Identifier: BSD-3-Clause */
/* Introductions: what rank 0 says of its store, and who has heard it. */
#include "config.h"

#include "lib/rendezvous/bootstrap.h"

#include "lib/rendezvous/join.h"
#include "lib/rendezvous/roster.h"
#include "lib/base/clock.h"
#include "lib/store/tcp/interface.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/store/tcp/socket.h"
#include "lib/store/store.h"

#include <glib.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "+JOB SECRET URL", or "-" and why rank 0 serves no store. The launcher has
 * connected the ranks, so that nobody else reads it. */
#define LETTER_MAX 1024
#define TOKEN_MAX 40
/* Keeps rank 0, which has failed, for the others to learn of it. */
#define FAREWELL_MS 500
/* In the store: how many ranks have heard, and each of them; which ones have
 * not, as rank 0 says, and how many have read that. */
#define HEARD_KEY "dscomm/heard"
#define MISSING_KEY "dscomm/absent"
#define READ_KEY "dscomm/read"

typedef struct {
    dscomm_introduction_t told;
    dscomm_join_t *join;
    dscomm_store_t *store;
    int64_t deadline, farewell;
    int begun; /* the ranks are connected */
    dscomm_status_t status; /* of rank 0, where it cannot serve */
    char letter[LETTER_MAX];
} introduction_t;

/* A rank that has come. */
static dscomm_status_t sign(const introduction_t *own)
{
    char key[32];

    snprintf(key, sizeof key, HEARD_KEY "/%d", own->join->rank);
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

/* A choice of NCCL's counts where there is what it names; one of dscomm's own
 * has been looked at. */
static dscomm_status_t list_interfaces(GArray **ret_rows)
{
    const char *variable, *choice = dscomm_priv_interface_choice(&variable);
    dscomm_status_t status = dscomm_priv_interfaces(variable, choice, ret_rows);

    if (status == DSCOMM_OK || !choice)
        return status;
    dscomm_log(DSCOMM_LOG_WARN, "core", "%s", dscomm_last_error());
    return dscomm_priv_interfaces(variable, NULL, ret_rows);
}

/* The addresses that others may reach, comma separated; the loopback only where
 * there is nothing else. */
static dscomm_status_t list_addresses(char **ret_list)
{
    GString *text = g_string_new(NULL);
    GArray *rows;
    int count = 0;
    dscomm_status_t status = list_interfaces(&rows);

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
        status = dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                             "rank 0 has no network interface that is up");
    *ret_list = g_string_free(text, FALSE);
    return status;
}

/* The user's host, if there is one. */
static dscomm_status_t find_host(const dscomm_join_t *join, char **ret_host)
{
    if (join->host) {
        *ret_host = g_strdup(join->host);
        return DSCOMM_OK;
    }
    return list_addresses(ret_host);
}

static char *make_url(const char *host, int port)
{
    return g_strdup_printf(
        strpbrk(host, ":,") ? "tcp://[%s]:%d" : "tcp://%s:%d", host, port);
}

static dscomm_status_t open_at(introduction_t *own, const char *token, int port)
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

/* At the port that the user gave, or where that is taken, as by another world
 * of this job, at any. */
static dscomm_status_t serve(introduction_t *own)
{
    dscomm_join_t *join = own->join;
    char token[TOKEN_MAX], *host = NULL, *url;
    dscomm_status_t status = dscomm_priv_interface_validate();

    make_token(token);
    if (status == DSCOMM_OK && !dscomm_priv_secret_make(join->secret))
        status = dscomm_fail(DSCOMM_ERR_IO,
                             "the system gives no random numbers for a secret "
                             "of the job");
    if (status == DSCOMM_OK)
        status = find_host(join, &host);
    if (status == DSCOMM_OK)
        status = open_at(own, token, join->port);
    if (status == DSCOMM_ERR_IO && join->port)
        status = open_at(own, token, 0);
    if (status == DSCOMM_OK)
        status = sign(own);
    if (status == DSCOMM_OK) {
        url = make_url(host, dscomm_store_port(own->store));
        snprintf(own->letter, LETTER_MAX, "+%s %s %s", token, join->secret,
                 url);
        g_free(url);
    } else {
        snprintf(own->letter, LETTER_MAX, "-%s", dscomm_last_error());
    }
    g_free(host);
    return status;
}

/* All ranks */

static dscomm_status_t fail_letter(void)
{
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "what rank 0 says of its store makes no sense: it has "
                       "another version of libdscomm");
}

static dscomm_status_t read_letter(introduction_t *own)
{
    char *letter = own->letter, **words;
    dscomm_join_t *join = own->join;

    letter[LETTER_MAX - 1] = '\0';
    dscomm_priv_tidy(letter, LETTER_MAX);
    if (*letter == '-')
        return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                           "rank 0 cannot serve the store: %s", letter + 1);
    words = g_strsplit(letter, " ", 4);
    explicit_bzero(letter, LETTER_MAX);
    if (g_strv_length(words) != 3 || *words[0] != '+' ||
        strlen(words[0]) > TOKEN_MAX ||
        strlen(words[1]) != SECRET_MADE_SIZE - 1 ||
        !g_str_has_prefix(words[2], "tcp://")) {
        g_strfreev(words);
        return fail_letter();
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

static dscomm_status_t come(introduction_t *own)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    const dscomm_priv_job_t job = {
        .name = own->join->job, .ports = 1, .secret = own->join->secret};
    int64_t count;
    dscomm_status_t status;

    attr.timeout_ms = MAX(dscomm_priv_clock_left(own->deadline), 1);
    status = dscomm_priv_store_open(own->join->url, &attr, &job, &own->store);
    if (status == DSCOMM_OK)
        status = sign(own);
    if (status == DSCOMM_OK)
        status = dscomm_store_add(own->store, HEARD_KEY, 1, &count);
    return status;
}

/* Rank 0 has failed, or this is the first that this rank hears. */
static int begin(introduction_t *own)
{
    dscomm_status_t status;

    if (own->status < 0)
        return dscomm_priv_clock() < own->farewell ? 0 : (int)own->status;
    status = *own->letter ? read_letter(own) : DSCOMM_OK;
    *own->letter = '\0';
    if (status == DSCOMM_OK && !own->store)
        status = come(own);
    return (int)status;
}

static int has_arrived(void *arg)
{
    introduction_t *own = arg;
    int64_t count = 0;
    int status = *own->letter ? begin(own) : DSCOMM_OK;

    own->begun = 1;
    if (status < 0 || !own->store)
        return status;
    status = (int)dscomm_store_add(own->store, HEARD_KEY, 0, &count);
    return status < 0 ? status : count >= own->told.ranks - 1;
}

/* Who has not heard of rank 0. Such a rank may have come, and wait for what
 * another passes on. */
static dscomm_status_t find_missing(const introduction_t *own, int *ret_came)
{
    const int size = own->told.ranks;
    char *sentence;
    dscomm_status_t status = dscomm_priv_missing_ranks(
        own->store, HEARD_KEY "/", size, own->join->timeout_ms, ret_came);

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

/* Rank 0, while it still has its store. */
static dscomm_status_t publish_missing(const introduction_t *own)
{
    int came;
    dscomm_status_t status = find_missing(own, &came);
    char *sentence = g_strdup(dscomm_last_error());

    if (status == DSCOMM_ERR_TIMEOUT &&
        dscomm_store_set(own->store, MISSING_KEY, sentence, strlen(sentence)) ==
            DSCOMM_OK)
        dscomm_priv_roster_await_readers(own->store, READ_KEY, came - 1);
    if (status < 0)
        dscomm_priv_fail_with(status, sentence);
    g_free(sentence);
    return status;
}

/* Others, which wait a little for its words. */
static dscomm_status_t read_missing(const introduction_t *own)
{
    void *text;
    int64_t count;
    size_t size;
    int came;

    if (dscomm_store_get(own->store, MISSING_KEY, ROSTER_GRACE_MS, &text,
                         &size) < 0)
        return find_missing(own, &came);
    dscomm_store_add(own->store, READ_KEY, 1, &count);
    dscomm_priv_tidy(text, size + 1);
    dscomm_priv_fail_with(DSCOMM_ERR_TIMEOUT, text);
    dscomm_store_free(text);
    return DSCOMM_ERR_TIMEOUT;
}

/* ret_refused: rank 0 has told the others that it cannot serve. */
static dscomm_status_t
introduce(dscomm_join_t *join, const dscomm_module_t *module, int *ret_refused)
{
    introduction_t own = {.join = join};
    dscomm_status_t status;

    join->began = dscomm_priv_clock();
    own.deadline = dscomm_priv_clock_after(join->began, join->timeout_ms);
    own.told = (dscomm_introduction_t){.size = sizeof own.told,
                                       .rank = join->rank,
                                       .ranks = join->size,
                                       .data = own.letter,
                                       .bytes = LETTER_MAX,
                                       .timeout_ms = join->timeout_ms,
                                       .arrived = has_arrived,
                                       .arg = &own};
    if (join->rank == 0)
        own.status = serve(&own);
    own.farewell = dscomm_priv_clock_after(dscomm_priv_clock(), FAREWELL_MS);
    status = module->ops.introduce(&own.told);
    if (status == DSCOMM_ERR_TIMEOUT && own.store && own.begun)
        status = join->rank ? read_missing(&own) : publish_missing(&own);
    *ret_refused = own.status < 0;
    if (status == DSCOMM_OK)
        join->size = own.told.ranks;
    if (status == DSCOMM_OK && join->size > 1)
        dscomm_priv_rendezvous_use(join, own.store);
    else
        dscomm_store_close(own.store);
    return status;
}

/* Whom to ask */

static int can(const dscomm_module_t *module, const dscomm_join_t *join)
{
    dscomm_introduction_t question = {
        .size = sizeof question, .rank = join->rank, .ranks = join->size};

    return module->backend && module->ops.introduce &&
           module->ops.introduce(&question) == DSCOMM_OK;
}

static const dscomm_module_t *find_best(const dscomm_join_t *join)
{
    const dscomm_module_t *module, *best = NULL;

    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++)
        if (module->backend &&
            (!best || module->backend->priority > best->backend->priority) &&
            can(module, join))
            best = module;
    return best;
}

static const dscomm_module_t *find_named(const dscomm_join_t *join)
{
    const dscomm_module_t *module;

    if (dscomm_priv_module_find(join->backend, &module) < 0)
        return NULL;
    return can(module, join) ? module : NULL;
}

/* What it needs is not there, as it has found on trying. */
static int is_not_there(dscomm_status_t status)
{
    return status == DSCOMM_ERR_NO_BACKEND || status == DSCOMM_ERR_ENVIRONMENT;
}

static dscomm_status_t keep_place(const dscomm_join_t *join,
                                  const dscomm_module_t *module)
{
    dscomm_log(DSCOMM_LOG_INFO, "core",
               "backend %s cannot tell the ranks where they meet, so that is "
               "%s: %s",
               module->name, join->url, dscomm_last_error());
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_introduce(dscomm_join_t *join)
{
    const int by_choice = strcmp(join->backend, "auto") == 0;
    const dscomm_module_t *module =
        by_choice ? find_best(join) : find_named(join);
    dscomm_status_t status;
    int refused;

    if (!module)
        return join->url
                   ? DSCOMM_OK
                   : dscomm_fail(DSCOMM_ERR_ENVIRONMENT, "%s", join->problem);
    status = introduce(join, module, &refused);
    if (status < 0)
        return by_choice && join->url && is_not_there(status) && !refused
                   ? keep_place(join, module)
                   : status;
    dscomm_log(DSCOMM_LOG_INFO, "core",
               "backend %s has told the ranks where they meet: %s",
               module->name, join->url);
    return DSCOMM_OK;
}
