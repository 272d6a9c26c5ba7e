/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of a backend above a wire: opening and closing groups, progress,
 * and how a group ends. */
#include "config.h"

#include "backends/net/engine.h"

#include <string.h>
#include <time.h>

/* Time, in ms, in which the last frames of a world reach its peers' kernels
 * before the connections are closed. */
#define FLUSH_MS 2000
#define POLLS_IN_USE 1024 /* of other groups, since the last one of this */
#define FLUSH_LOOK_US 200
#define FLUSH_LOOK_MOST_US 5000 /* many ranks that leave share a processor */

/* A hash of the group's id, which is unique in the world. */
static uint64_t context_of(const char *id)
{
    GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
    unsigned char digest[32];
    gsize size = sizeof digest;
    uint64_t context;

    g_checksum_update(sum, (const guchar *)id, -1);
    g_checksum_get_digest(sum, digest, &size);
    g_checksum_free(sum);
    memcpy(&context, digest, sizeof context);
    return GUINT64_FROM_LE(context);
}

static void engine_free(engine_t *engine)
{
    g_free(engine->name);
    g_free(engine->peers);
    g_free(engine->ranks_of);
    g_free(engine);
}

/* Fills the tables between ranks of the group and peers of the domain. */
static dscomm_status_t ranks_map(engine_t *engine,
                                 const dscomm_backend_args_t *args)
{
    const domain_t *domain = engine->domain;
    GHashTable *peers = g_hash_table_new(NULL, NULL);
    dscomm_status_t status = DSCOMM_OK;

    for (int p = 0; p < domain->ranks; p++) {
        engine->ranks_of[p] = -1;
        g_hash_table_insert(peers, GINT_TO_POINTER(domain->world_ranks[p]),
                            GINT_TO_POINTER(p + 1));
    }
    for (int r = 0; r < args->ranks && status == DSCOMM_OK; r++) {
        const int peer = GPOINTER_TO_INT(g_hash_table_lookup(
                             peers, GINT_TO_POINTER(args->world_ranks[r]))) -
                         1;

        if (peer < 0) {
            status = dscomm_fail(DSCOMM_ERR_INTERNAL,
                                 "rank %d is not in its parent", r);
            break;
        }
        engine->peers[r] = peer;
        engine->ranks_of[peer] = r;
    }
    g_hash_table_unref(peers);
    return status;
}

/* Connects the group with what has arrived for it. */
static dscomm_status_t engine_attach(engine_t *engine,
                                     const dscomm_backend_args_t *args)
{
    domain_t *domain = engine->domain;
    space_t *space;

    net_enter(domain);
    space = net_space(domain, context_of(args->id));
    if (space) {
        engine->space = space;
        space->engine = engine;
        LIST_INSERT_HEAD(&domain->engines, engine, in_domain);
        if (space->revoked)
            ending_mark(&engine->ending, space->revoked);
        for (int r = 0; r < engine->ranks; r++)
            if (domain->links[engine->peers[r]].state == LINK_LOST)
                net_engine_lose_peer(engine, engine->peers[r],
                                     DSCOMM_FAILURE_DIED, "");
    }
    net_leave(domain);
    return space ? DSCOMM_OK
                 : dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a group");
}

static void engine_drop_domain(engine_t *engine)
{
    net_enter(engine->domain);
    net_domain_drop(engine->domain);
}

dscomm_status_t net_open(const dscomm_wire_ops_t *ops,
                         const dscomm_backend_args_t *args, void **ret_impl)
{
    engine_t *engine = g_new0(engine_t, 1);
    dscomm_status_t status = net_domain_open(ops, args, &engine->domain);

    if (status < 0) {
        engine_free(engine);
        return status;
    }
    engine->group = args->group;
    engine->name = g_strdup(args->name);
    engine->rank = args->rank;
    engine->ranks = args->ranks;
    engine->world = args->world;
    engine->peers = g_try_new(int, (gsize)args->ranks);
    engine->ranks_of = g_try_new(int, (gsize)engine->domain->ranks);
    if (!engine->peers || !engine->ranks_of)
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %d ranks",
                             args->ranks);
    else
        status = ranks_map(engine, args);
    if (status == DSCOMM_OK)
        status = engine_attach(engine, args);
    if (status < 0) {
        engine_drop_domain(engine);
        engine_free(engine);
        return status;
    }
    *ret_impl = engine;
    return DSCOMM_OK;
}

/* Whether the connections can be closed. After a failure, and with what this
 * rank's kernel has taken, FLUSH_MS is enough; but a connection that is being
 * made may be one for its peer already, which would see a death. */
static bool domain_flushed(const domain_t *domain, bool orderly, gint64 begun)
{
    const int64_t limit_ms =
        orderly && domain->frames ? domain->timeout_ms : FLUSH_MS;

    return !domain->ops.unsent(domain->wire) ||
           g_get_monotonic_time() - begun >= limit_ms * 1000;
}

/* Tells the peers that this rank closes its connections, and waits until their
 * kernels have what was sent: a connection that is closed before may lose it.
 * Called with the lock. */
static void domain_flush(domain_t *domain, bool orderly)
{
    const gint64 begun = g_get_monotonic_time();
    gulong pause_us = FLUSH_LOOK_US;

    for (int p = 0; p < domain->ranks; p++)
        if (domain->links[p].state == LINK_OPEN)
            net_post(domain, p, (header_t){.type = FRAME_BYE});
    while (!domain_flushed(domain, orderly, begun)) {
        domain->ops.poll(domain->wire);
        g_usleep(pause_us);
        pause_us = MIN(2 * pause_us, FLUSH_LOOK_MOST_US);
    }
}

void net_close(void *impl)
{
    engine_t *engine = impl;
    domain_t *domain = engine->domain;

    net_enter(domain);
    LIST_REMOVE(engine, in_domain);
    net_frames_forget(&engine->begun);
    net_space_close(domain, engine->space);
    if (domain->users == 1)
        domain_flush(domain, engine->quiet);
    net_domain_drop(domain);
    engine_free(engine);
}

void net_wait(void *impl, unsigned timeout_us)
{
    engine_t *engine = impl;

    engine->domain->ops.wait(engine->domain->wire, timeout_us);
}

/* The end of a group. */

void net_engine_notify(engine_t *engine)
{
    domain_t *domain = engine->domain;
    const int whom = atomic_exchange(&engine->notify_due, NOTIFY_NONE);

    if (whom == NOTIFY_NONE)
        return;
    for (int r = 0; r < engine->ranks; r++) {
        const int peer = engine->peers[r];
        unsigned char *packed;
        size_t bytes;

        if (whom == NOTIFY_ALL)
            net_link_open(domain, peer);
        if (r == engine->rank || domain->links[peer].state != LINK_OPEN)
            continue;
        packed = g_malloc(DSCOMM_FAILURE_PACKED);
        bytes = dscomm_backend_failure_pack(&engine->ending.failure, packed);
        net_post_owned(domain, peer,
                       (header_t){.bytes = bytes,
                                  .type = FRAME_REVOKE,
                                  .context = engine->space->context},
                       packed);
    }
}

void net_engine_pass_on(engine_t *engine, notify_t whom)
{
    atomic_store(&engine->notify_due, whom);
    atomic_store(&engine->domain->notify_due, 1);
}

static void engine_mark(engine_t *engine, const dscomm_failure_t *failure)
{
    if (!ending_mark(&engine->ending, failure))
        return;
    engine->moved++;
    net_engine_pass_on(engine, NOTIFY_ALL);
}

void net_engine_revoke(void *impl, const dscomm_failure_t *failure)
{
    engine_t *engine = impl;
    domain_t *domain = engine->domain;

    if (!ending_mark(&engine->ending, failure))
        return;
    net_engine_pass_on(engine, NOTIFY_ALL);
    if (!pthread_mutex_trylock(&domain->lock))
        net_leave(domain);
    domain->ops.wake(domain->wire);
}

/* Whether a call on the group was made lately, so that another one will be. */
static bool is_in_use(const engine_t *engine)
{
    return engine->polled &&
           engine->domain->polls - engine->polled < POLLS_IN_USE;
}

void net_engine_poll(engine_t *engine)
{
    domain_t *domain = engine->domain;

    engine->polled = ++domain->polls;
    domain->ops.poll(domain->wire);
}

void net_engine_lose_peer(engine_t *engine, int peer,
                          dscomm_failure_kind_t kind, const char *text)
{
    const domain_t *domain = engine->domain;
    const link_t *link = &domain->links[peer];
    const bool is_own = kind == DSCOMM_FAILURE_PROTOCOL;
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;

    dscomm_backend_failure(
        engine->group,
        is_own                          ? DSCOMM_ERR_PROTOCOL
        : kind == DSCOMM_FAILURE_SILENT ? DSCOMM_ERR_TIMEOUT
                                        : DSCOMM_ERR_PEER_FAILED,
        kind, domain->world_ranks[is_own ? domain->rank : peer], 0, &failure);
    if (!failure.pid && !is_own) {
        failure.pid = link->pid;
        g_strlcpy(failure.host, link->host, sizeof failure.host);
    }
    if (kind == DSCOMM_FAILURE_DIED) /* the core adds the call */
        dscomm_backend_failure_detail(&failure, "%s%s%s", *text ? "(" : "",
                                      text, *text ? ")" : "");
    else if (kind == DSCOMM_FAILURE_RESOURCE || is_own) /* and the rank */
        dscomm_backend_failure_detail(&failure, "%s", text);
    else
        dscomm_backend_failure_detail(
            &failure, "rank %d (pid %lld on %s) of group '%s': %s",
            failure.group_rank, (long long)failure.pid, failure.host,
            engine->name, text);
    if (kind != DSCOMM_FAILURE_DIED || link->received || !is_in_use(engine)) {
        engine_mark(engine, &failure);
    } else if (ending_status(&engine->ending, NULL) == DSCOMM_OK &&
               !atomic_load(&engine->death_pending)) {
        engine->death = failure;
        atomic_store(&engine->death_pending, 1);
        engine->moved++;
    }
}

void net_engine_resolve(engine_t *engine)
{
    dscomm_failure_t failure;

    if (G_LIKELY(atomic_load_explicit(&engine->death_pending,
                                      memory_order_acquire) != 1) ||
        atomic_exchange(&engine->death_pending, 2) != 1)
        return;
    failure = engine->death;
    dscomm_backend_failure_earlier(engine->group, &failure);
    net_enter(engine->domain);
    engine_mark(engine, &failure);
    net_leave(engine->domain);
}

unsigned net_progress(void *impl)
{
    engine_t *engine = impl;
    domain_t *domain = engine->domain;
    unsigned moved;

    net_engine_resolve(engine);
    net_enter(domain);
    if (engine->moved)
        engine->polled = ++domain->polls;
    else
        net_engine_poll(engine);
    moved = engine->moved;
    engine->moved = 0;
    net_leave(domain);
    return moved;
}

void net_engine_lack(engine_t *engine, const char *text)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;
    const domain_t *domain = engine->domain;

    dscomm_backend_failure(engine->group, DSCOMM_ERR_NO_MEMORY,
                           DSCOMM_FAILURE_RESOURCE,
                           domain->world_ranks[domain->rank], 0, &failure);
    dscomm_backend_failure_detail(&failure, "%s", text);
    engine_mark(engine, &failure);
}

/* Sees what has arrived, at most once per tick of the coarse clock: a rank that
 * makes no calls learns so that the group has ended. */
static void engine_look(engine_t *engine)
{
    domain_t *domain = engine->domain;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_nsec ==
        atomic_load_explicit(&domain->looked, memory_order_relaxed))
        return;
    atomic_store_explicit(&domain->looked, now.tv_nsec, memory_order_relaxed);
    if (pthread_mutex_trylock(&domain->lock))
        return;
    net_engine_poll(engine);
    net_leave(domain);
}

dscomm_status_t net_status(void *impl, dscomm_failure_t *ret_failure)
{
    engine_t *engine = impl;

    engine_look(engine);
    net_engine_resolve(engine);
    return ending_status(&engine->ending, ret_failure);
}

uint64_t net_capabilities(void *impl)
{
    (void)impl;
    return DSCOMM_CAP_ANY_SOURCE | DSCOMM_CAP_DEATH_DETECTION;
}

void net_quiesce(void *impl)
{
    engine_t *engine = impl;

    net_enter(engine->domain);
    engine->quiet = true;
    net_leave(engine->domain);
}

void net_leave_group(void *impl)
{
    engine_t *engine = impl;
    domain_t *domain = engine->domain;

    net_enter(domain);
    engine->own_left = LEAVING;
    for (int r = 0; r < engine->ranks; r++)
        if (domain->links[engine->peers[r]].state == LINK_OPEN)
            net_post(domain, engine->peers[r],
                     (header_t){.type = FRAME_LEAVE,
                                .context = engine->space->context,
                                .a = LEAVING});
    net_leave(domain);
}

/* "rank 1 (pid 12 on b)"; of other hosts' ranks, the link has process and
 * host. */
static void rank_describe(const engine_t *engine, int peer,
                          char text[DSCOMM_CREATION_RANK_MAX])
{
    const link_t *link = &engine->domain->links[peer];

    dscomm_backend_rank(engine->group, engine->domain->world_ranks[peer], 0,
                        text);
    if (link->pid && !strchr(text, '('))
        g_snprintf(text, DSCOMM_CREATION_RANK_MAX, "rank %d (pid %lld on %s)",
                   engine->ranks_of[peer], (long long)link->pid, link->host);
}

/* Names the rank for which a request waits. */
int net_explain(void *impl, const dscomm_request_t *head, char *text,
                size_t size)
{
    engine_t *engine = impl;
    const request_t *request = (const request_t *)head;
    char rank[DSCOMM_CREATION_RANK_MAX], where[408] = "";
    domain_t *domain = engine->domain;

    if (!request || request->peer < 0)
        return -1;
    rank_describe(engine, request->peer, rank);
    if (domain->ops.describe) {
        net_enter(domain);
        domain->ops.describe(domain->wire, request->peer, where, sizeof where);
        net_leave(domain);
    }
    if (head->status == DSCOMM_ERR_PEER_FAILED)
        g_snprintf(text, size,
                   "%s has left (dscomm_finalize) and does nothing "
                   "more on group '%s'",
                   rank, engine->name);
    else
        g_snprintf(text, size, "waiting for %s%s%s", rank, *where ? " " : "",
                   where);
    return engine->ranks_of[request->peer];
}
