/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: the wire of a world, its links, and the frames that go over them. */
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
#define SALT_FIRST 1

static void put_64(unsigned char *to, uint64_t value)
{
    const uint64_t little = GUINT64_TO_LE(value);

    memcpy(to, &little, sizeof little);
}

static uint64_t get_64(const unsigned char *from)
{
    uint64_t little;

    memcpy(&little, from, sizeof little);
    return GUINT64_FROM_LE(little);
}

/* Bytes 8 to 15: type, then the tag, all little-endian. */
static void header_pack(const header_t *header, unsigned char *to)
{
    put_64(to, header->bytes);
    put_64(to + 8,
           (uint64_t)header->type | (uint64_t)(uint32_t)header->tag << 32);
    put_64(to + 16, header->context);
    put_64(to + 24, header->a);
    put_64(to + 32, header->b);
}

static header_t header_unpack(const unsigned char *from)
{
    const uint64_t what = get_64(from + 8);

    return (header_t){.bytes = get_64(from),
                      .type = (int)(what & 0x7fffffff),
                      .tag = (int)(int32_t)(uint32_t)(what >> 32),
                      .context = get_64(from + 16),
                      .a = get_64(from + 24),
                      .b = get_64(from + 32)};
}

/* Frames. */

static frame_t *frame_new(domain_t *domain, const header_t *header)
{
    frame_t *frame = SLIST_FIRST(&domain->free_frames);

    if (frame)
        SLIST_REMOVE_HEAD(&domain->free_frames, in_free);
    else
        frame = g_new(frame_t, 1);
    domain->frames++;
    frame->wire = (dscomm_wire_frame_t){.bytes = header->bytes};
    frame->request = NULL;
    frame->owned = NULL;
    header_pack(header, frame->wire.header);
    return frame;
}

void net_post_owned(domain_t *domain, int peer, header_t header, void *owned)
{
    frame_t *frame = frame_new(domain, &header);

    frame->owned = owned;
    frame->wire.data = owned;
    domain->ops.post(domain->wire, peer, &frame->wire);
}

void net_post(domain_t *domain, int peer, header_t header)
{
    net_post_owned(domain, peer, header, NULL);
}

void net_post_payload(request_t *request, header_t header, const void *data,
                      bool unordered)
{
    domain_t *domain = request->engine->domain;
    frame_t *frame = frame_new(domain, &header);

    frame->request = request;
    frame->wire.data = data;
    frame->wire.unordered = unordered;
    LIST_INSERT_HEAD(&request->frames, frame, in_request);
    domain->ops.post(domain->wire, request->peer, &frame->wire);
}

/* Takes a frame back; returns its request, or NULL. */
static request_t *frame_release(domain_t *domain, frame_t *frame)
{
    request_t *request = frame->request;

    domain->frames--;
    g_free(frame->owned);
    if (request)
        LIST_REMOVE(frame, in_request);
    SLIST_INSERT_HEAD(&domain->free_frames, frame, in_free);
    return request;
}

static void net_sent(void *arg, dscomm_wire_frame_t *wire)
{
    request_t *request = frame_release(arg, (frame_t *)wire);

    if (request)
        net_request_sent(request, wire->bytes);
}

/* The request stays incomplete: its group has been revoked. */
static void net_dropped(void *arg, dscomm_wire_frame_t *wire)
{
    frame_release(arg, (frame_t *)wire);
}

sink_t *net_sink(domain_t *domain, int type, void *memory, uint64_t bytes)
{
    sink_t *sink = SLIST_FIRST(&domain->free_sinks);

    if (sink) {
        SLIST_REMOVE_HEAD(&domain->free_sinks, in_free);
    } else {
        sink = g_new(sink_t, 1);
        SLIST_INSERT_HEAD(&domain->sinks, sink, in_all);
    }
    sink->wire = (dscomm_wire_sink_t){.memory = memory, .bytes = bytes};
    sink->type = type;
    sink->request = NULL;
    sink->arrival = NULL;
    sink->owned = NULL;
    return sink;
}

/* Ids of long messages. */

bool net_id_take(domain_t *domain, request_t *request)
{
    guint index;

    if (domain->free_ids->len) {
        index =
            g_array_index(domain->free_ids, guint, domain->free_ids->len - 1);
        g_array_set_size(domain->free_ids, domain->free_ids->len - 1);
        g_ptr_array_index(domain->ids, index) = request;
    } else {
        index = domain->ids->len;
        g_ptr_array_add(domain->ids, request);
    }
    request->id = (uint64_t)domain->salt++ << 32 | index;
    if (!domain->salt)
        domain->salt = SALT_FIRST;
    return true;
}

void net_id_drop(domain_t *domain, request_t *request)
{
    const guint index = (guint)(request->id & UINT32_MAX);

    if (!request->id)
        return;
    g_ptr_array_index(domain->ids, index) = NULL;
    g_array_append_val(domain->free_ids, index);
    request->id = 0;
}

request_t *net_id_find(const domain_t *domain, uint64_t id, int peer)
{
    const guint index = (guint)(id & UINT32_MAX);
    request_t *request =
        index < domain->ids->len ? g_ptr_array_index(domain->ids, index) : NULL;

    return request && request->id == id && request->peer == peer ? request
                                                                 : NULL;
}

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

/* Frames that arrive. */

static void peer_leaves(domain_t *domain, int peer, const header_t *header)
{
    space_t *space = net_space(domain, header->context);

    if (!space || header->a <= space->left[peer] || header->a > GONE)
        return;
    space->left[peer] = (unsigned char)header->a;
    if (space->engine)
        net_receives_orphaned(space->engine, peer);
}

/* The peer closes the connection, so it has left all groups. */
static void peer_bye(domain_t *domain, int peer)
{
    engine_t *engine;

    domain->links[peer].state = LINK_LEFT;
    LIST_FOREACH (engine, &domain->engines, in_domain) {
        if (engine->ranks_of[peer] < 0)
            continue;
        engine->space->left[peer] = GONE;
        net_receives_orphaned(engine, peer);
    }
}

static bool peer_credits(domain_t *domain, int peer, const header_t *header)
{
    link_t *link = &domain->links[peer];

    if (header->a > (uint64_t)LINK_CREDIT ||
        link->credit > LINK_CREDIT - (int64_t)header->a)
        return false;
    link->credit += (int64_t)header->a;
    link->told_stalled = false;
    net_stalled_send(domain, peer);
    return true;
}

static void peer_stalls(domain_t *domain, int peer)
{
    link_t *link = &domain->links[peer];

    link->peer_stalled = true;
    link->refused = 0;
    net_ask(domain, peer);
}

/* Handles a frame without payload; false: it makes no sense. */
static bool control_arrives(domain_t *domain, int peer, const header_t *header)
{
    if (header->bytes)
        return false;
    switch (header->type) {
    case FRAME_ANNOUNCE:
        return net_announce_arrives(domain, peer, header);
    case FRAME_REQUEST:
        return net_requested_send(domain, peer, header);
    case FRAME_CREDIT:
        return peer_credits(domain, peer, header);
    case FRAME_STALLED:
        peer_stalls(domain, peer);
        return true;
    case FRAME_WANT:
        net_wanted_send(domain, peer, header);
        return true;
    case FRAME_ANSWER:
        return net_answered(domain, peer, header);
    case FRAME_LEAVE:
        peer_leaves(domain, peer, header);
        return true;
    case FRAME_BYE:
        peer_bye(domain, peer);
        return true;
    default:
        return false;
    }
}

static dscomm_wire_sink_t *revoke_arrives(domain_t *domain,
                                          const header_t *header)
{
    space_t *space = net_space(domain, header->context);
    sink_t *sink;

    if (header->bytes > DSCOMM_FAILURE_PACKED)
        return NULL;
    sink = net_sink(domain, space ? FRAME_REVOKE : 0, NULL, header->bytes);
    sink->context = header->context;
    if (space)
        sink->wire.memory = sink->owned = g_malloc(DSCOMM_FAILURE_PACKED);
    return &sink->wire;
}

/* The group's failure, which another rank has sent. */
static void revoke_landed(domain_t *domain, const sink_t *sink)
{
    space_t *space = net_space(domain, sink->context);
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;

    if (!space ||
        !dscomm_backend_failure_unpack(sink->owned, sink->wire.bytes, &failure))
        return;
    if (!space->engine) {
        if (space->revoked)
            return;
        space->revoked = g_new(dscomm_failure_t, 1);
        *space->revoked = failure;
        return;
    }
    if (!ending_mark(&space->engine->ending, &failure))
        return;
    space->engine->moved++;
    net_engine_pass_on(space->engine, NOTIFY_CONNECTED);
}

static dscomm_wire_sink_t *net_arrive(void *arg, int peer,
                                      const unsigned char *bytes)
{
    domain_t *domain = arg;
    const header_t header = header_unpack(bytes);

    if (domain->links[peer].state == LINK_LEFT)
        return NULL;
    switch (header.type) {
    case FRAME_EAGER:
        return net_eager_arrives(domain, peer, &header);
    case FRAME_PIECE:
        return net_piece_arrives(domain, peer, &header);
    case FRAME_REVOKE:
        return revoke_arrives(domain, &header);
    default:
        if (!control_arrives(domain, peer, &header))
            return NULL;
        domain->nothing.wire.done = 0;
        return &domain->nothing.wire;
    }
}

static void net_landed(void *arg, int peer, dscomm_wire_sink_t *wire)
{
    domain_t *domain = arg;
    sink_t *sink = (sink_t *)wire;

    if (sink == &domain->nothing)
        return;
    if (sink->request)
        LIST_REMOVE(sink, in_request);
    if (sink->type == FRAME_EAGER)
        net_eager_landed(domain, peer, sink);
    else if (sink->type == FRAME_PIECE)
        net_piece_landed(domain, sink);
    else if (sink->type == FRAME_REVOKE)
        revoke_landed(domain, sink);
    g_clear_pointer(&sink->owned, g_free);
    SLIST_INSERT_HEAD(&domain->free_sinks, sink, in_free);
}

static const dscomm_wire_calls_t calls = {
    .size = sizeof calls,
    .opened = net_opened,
    .arrive = net_arrive,
    .landed = net_landed,
    .sent = net_sent,
    .dropped = net_dropped,
    .lost = net_lost,
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
    domain->salt = SALT_FIRST;
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
