/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: the wire of a world and its links. */
#include "config.h"

#include "backends/net/engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Keys in the store of the world's group. */
#define KEY_SECRET "net/secret"
#define KEY_MAX 32

/* Links. */

/* Notifies a peer, to which there is a connection now, of the groups that this
 * rank has left. */
static void link_opened(domain_t *domain, int peer)
{
    engine_t *engine;

    domain->links[peer].state = LINK_OPEN;
    LIST_FOREACH (engine, &domain->engines, in_domain)
        if (engine->own_left != STAYS && engine->ranks_of[peer] >= 0)
            net_post(domain, peer,
                     (header_t){.type = FRAME_LEAVE,
                                .context = engine->space->context,
                                .a = engine->own_left});
}

static void net_lost(void *arg, int peer, dscomm_failure_kind_t kind,
                     const char *text)
{
    domain_t *domain = arg;
    link_t *link = &domain->links[peer];
    engine_t *engine;

    if (peer == domain->rank) {
        LIST_FOREACH (engine, &domain->engines, in_domain)
            net_engine_lack(engine, text);
        return;
    }
    if (link->state == LINK_LEFT || link->state == LINK_LOST)
        return;
    link->state = LINK_LOST;
    LIST_FOREACH (engine, &domain->engines, in_domain)
        if (engine->ranks_of[peer] >= 0 && !engine->quiet)
            net_engine_lose_peer(engine, peer, kind, text);
}

void net_link_open(domain_t *domain, int peer)
{
    link_t *link = &domain->links[peer];
    char text[DSCOMM_FAILURE_DETAIL_MAX];

    if (link->state != LINK_NONE || peer == domain->rank)
        return;
    if (domain->ops.connect(domain->wire, peer, link->address,
                            link->address_bytes) < 0) {
        g_strlcpy(text, dscomm_last_error(), sizeof text);
        net_lost(domain, peer, DSCOMM_FAILURE_RESOURCE, text);
        return;
    }
    link_opened(domain, peer);
}

static void net_opened(void *arg, int peer)
{
    domain_t *domain = arg;
    link_t *link = &domain->links[peer];

    if (link->state != LINK_NONE)
        return;
    link_opened(domain, peer);
    domain->ops.connect(domain->wire, peer, link->address, link->address_bytes);
}

static const dscomm_wire_calls_t calls = {
    .size = sizeof calls,
    .opened = net_opened,
    .arrive = net_arrive,
    .landed = net_landed,
    .sent = net_sent,
    .dropped = net_dropped,
    .lost = net_lost,
    .written = net_written,
    .refused = net_refused,
};

/* Opening and closing. */

/* Rank 0 makes the secret, and all ranks read it. */
static dscomm_status_t secret_share(domain_t *domain,
                                    const dscomm_backend_args_t *args)
{
    const char *key = KEY_SECRET;
    void *value;
    size_t bytes;
    dscomm_status_t status = DSCOMM_OK;

    if (args->rank == 0) {
        if (getrandom(domain->secret, sizeof domain->secret, 0) !=
            sizeof domain->secret)
            return dscomm_fail(DSCOMM_ERR_IO, "no random bytes: %s",
                               strerror(errno));
        return dscomm_store_set(args->store, key, domain->secret,
                                sizeof domain->secret);
    }
    status = dscomm_backend_creation_get(args, &key, 1, args->open_ms, &value,
                                         &bytes);
    if (status < 0)
        return status;
    if (bytes == sizeof domain->secret)
        memcpy(domain->secret, value, bytes);
    else
        status = dscomm_fail(DSCOMM_ERR_PROTOCOL,
                             "the secret of the job in the store has %zu bytes "
                             "in place of %zu",
                             bytes, sizeof domain->secret);
    dscomm_store_free(value);
    return status;
}

/* Publishes this rank's value, and waits for those of all ranks. The values are
 * for dscomm_store_free(). */
static dscomm_status_t values_exchange(const dscomm_backend_args_t *args,
                                       const void *value, size_t bytes,
                                       void **values, size_t *sizes)
{
    const size_t ranks = (size_t)args->ranks;
    char(*names)[KEY_MAX] = g_try_malloc_n(ranks, KEY_MAX);
    const char **keys = g_try_new(const char *, ranks);
    dscomm_status_t status;

    if (names && keys) {
        for (size_t i = 0; i < ranks; i++) {
            snprintf(names[i], KEY_MAX, "net/%zu", i);
            keys[i] = names[i];
        }
        status = dscomm_store_set(args->store, keys[args->rank], value, bytes);
        if (status == DSCOMM_OK)
            status = dscomm_backend_creation_get(args, keys, ranks,
                                                 args->open_ms, values, sizes);
        if (status == DSCOMM_ERR_TIMEOUT)
            status = dscomm_backend_creation_missing(args, keys);
    } else {
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "no memory for the keys of %zu ranks", ranks);
    }
    g_free(names);
    g_free(keys);
    return status;
}

/* Writes this rank's value: "PID HOST", a newline, and the wire's address. */
static size_t value_write(const domain_t *domain, char *value, size_t size)
{
    char host[DSCOMM_FAILURE_HOST_MAX] = "";
    int length;

    gethostname(host, sizeof host - 1);
    length = snprintf(value, size, "%lld %s\n", (long long)getpid(), host);
    return (size_t)length + domain->ops.address(domain->wire, value + length);
}

/* Takes over the value of a peer, of so many bytes; false: it is malformed. */
static bool value_read(link_t *link, char *value, size_t bytes)
{
    const char *end = memchr(value, '\n', bytes);
    const char *blank = end ? memchr(value, ' ', (size_t)(end - value)) : NULL;

    link->published = value;
    if (!blank)
        return false;
    link->pid = g_ascii_strtoll(value, NULL, 10);
    g_strlcpy(link->host, blank + 1,
              MIN((size_t)(end - blank), sizeof link->host));
    link->address = end + 1;
    link->address_bytes = bytes - (size_t)(end + 1 - value);
    return link->pid > 0;
}

/* Exchanges what the ranks publish, and waits for all of them. A group that
 * uses its parent's domain only waits. */
static dscomm_status_t ranks_meet(domain_t *domain,
                                  const dscomm_backend_args_t *args)
{
    const size_t ranks = (size_t)args->ranks;
    char own[DSCOMM_WIRE_ADDRESS_MAX + DSCOMM_FAILURE_HOST_MAX + 32] = "-";
    void **values = g_try_new0(void *, ranks);
    size_t *sizes = g_try_new0(size_t, ranks);
    const size_t bytes = domain ? value_write(domain, own, sizeof own) : 1;
    dscomm_status_t status;

    status = values && sizes ? values_exchange(args, own, bytes, values, sizes)
                             : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                                           "no memory for %zu ranks", ranks);
    for (size_t i = 0; values && i < ranks && values[i]; i++) {
        if (!domain)
            dscomm_store_free(values[i]);
        else if (!value_read(&domain->links[i], values[i], sizes[i]))
            status = dscomm_fail(DSCOMM_ERR_PROTOCOL,
                                 "what rank %zu has published is malformed", i);
    }
    g_free(values);
    g_free(sizes);
    return status;
}

static domain_t *domain_new(const dscomm_wire_ops_t *ops,
                            const dscomm_backend_args_t *args)
{
    const size_t ranks = (size_t)args->ranks;
    domain_t *domain = g_new0(domain_t, 1);

    domain->ops = *ops;
    domain->rank = args->rank;
    domain->ranks = args->ranks;
    domain->timeout_ms = args->timeout_ms;
    domain->salt = NET_SALT_FIRST;
    domain->spaces = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL,
                                           net_space_free);
    domain->closed =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    domain->ids = g_ptr_array_new();
    domain->free_ids = g_array_new(FALSE, FALSE, sizeof(guint));
    domain->links = g_try_new0(link_t, ranks);
    domain->world_ranks = g_try_new(int, ranks);
    if (domain->links && domain->world_ranks) {
        memcpy(domain->world_ranks, args->world_ranks, ranks * sizeof(int));
        for (size_t i = 0; i < ranks; i++) {
            TAILQ_INIT(&domain->links[i].stalled);
            domain->links[i].credit = LINK_CREDIT;
        }
    }
    pthread_mutex_init(&domain->lock, NULL);
    return domain;
}

static void domain_free(domain_t *domain)
{
    frame_t *frame;
    sink_t *sink;

    if (domain->wire)
        domain->ops.close(domain->wire);
    while ((frame = SLIST_FIRST(&domain->free_frames)) != NULL) {
        SLIST_REMOVE_HEAD(&domain->free_frames, in_free);
        g_free(frame);
    }
    for (int i = 0; domain->links && i < domain->ranks; i++)
        dscomm_store_free(domain->links[i].published);
    g_hash_table_unref(domain->spaces); /* its arrivals have sinks */
    while ((sink = SLIST_FIRST(&domain->sinks)) != NULL) {
        SLIST_REMOVE_HEAD(&domain->sinks, in_all);
        g_free(sink->owned);
        g_free(sink);
    }
    g_hash_table_unref(domain->closed);
    g_ptr_array_unref(domain->ids);
    g_array_unref(domain->free_ids);
    g_free(domain->links);
    g_free(domain->world_ranks);
    pthread_mutex_destroy(&domain->lock);
    g_free(domain);
}

/* Names this rank as the one whose wire cannot be opened. */
static dscomm_status_t wire_refuse(const dscomm_backend_args_t *args,
                                   dscomm_status_t status)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;

    dscomm_backend_failure(args->group, status, DSCOMM_FAILURE_RESOURCE,
                           args->world_ranks[args->rank], 0, &failure);
    dscomm_backend_failure_detail(&failure, "%s", dscomm_last_error());
    return dscomm_backend_fail(&failure);
}

static dscomm_status_t wire_open(domain_t *domain,
                                 const dscomm_backend_args_t *args)
{
    const dscomm_wire_args_t wire = {
        .size = sizeof wire,
        .calls = &calls,
        .arg = domain,
        .rank = domain->rank,
        .ranks = domain->ranks,
        .secret = domain->secret,
        .timeout_ms = args->timeout_ms,
        .oversubscribed = args->oversubscribed,
    };
    dscomm_status_t status = secret_share(domain, args);

    if (status < 0)
        return status;
    status = domain->ops.open(&wire, &domain->wire);
    if (status < 0)
        return wire_refuse(args, status);
    return ranks_meet(domain, args);
}

dscomm_status_t net_domain_open(const dscomm_wire_ops_t *ops,
                                const dscomm_backend_args_t *args,
                                domain_t **ret_domain)
{
    domain_t *domain;
    dscomm_status_t status;

    if (args->parent) {
        status = ranks_meet(NULL, args);
        if (status < 0)
            return status;
        domain = ((engine_t *)args->parent)->domain;
        net_enter(domain);
        domain->users++;
        net_leave(domain);
        *ret_domain = domain;
        return DSCOMM_OK;
    }
    domain = domain_new(ops, args);
    if (domain->links && domain->world_ranks)
        status = wire_open(domain, args);
    else
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %d ranks",
                             args->ranks);
    if (status < 0) {
        domain_free(domain);
        return status;
    }
    domain->users = 1;
    *ret_domain = domain;
    return DSCOMM_OK;
}

void net_domain_drop(domain_t *domain)
{
    const bool last = --domain->users == 0;

    net_leave(domain);
    if (last)
        domain_free(domain);
}

void net_enter(domain_t *domain)
{
    pthread_mutex_lock(&domain->lock);
}

static void domain_notify(domain_t *domain)
{
    engine_t *engine;

    atomic_store(&domain->notify_due, 0);
    LIST_FOREACH (engine, &domain->engines, in_domain)
        net_engine_notify(engine);
}

void net_leave(domain_t *domain)
{
    do {
        if (G_UNLIKELY(atomic_load_explicit(&domain->notify_due,
                                            memory_order_relaxed)))
            domain_notify(domain);
        pthread_mutex_unlock(&domain->lock);
    } while (G_UNLIKELY(atomic_load(&domain->notify_due)) &&
             !pthread_mutex_trylock(&domain->lock));
}
