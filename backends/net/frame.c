/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: how they are posted, and what is done with those that arrive. */
#include "config.h"

#include "backends/net/engine.h"
#include "backends/net/little.h"

#include <string.h>

#define HEADER_B 32 /* where the header has b */

/* Bytes 8 to 15: type, then the tag, all little-endian. */
static void header_pack(const header_t *header, unsigned char *to)
{
    put_64(to, header->bytes);
    put_64(to + 8,
           (uint64_t)header->type | (uint64_t)(uint32_t)header->tag << 32);
    put_64(to + 16, header->context);
    put_64(to + 24, header->a);
    put_64(to + HEADER_B, header->b);
}

static header_t header_unpack(const unsigned char *from)
{
    const uint64_t what = get_64(from + 8);

    return (header_t){.bytes = get_64(from),
                      .type = (int)(what & 0x7fffffff),
                      .tag = (int)(int32_t)(uint32_t)(what >> 32),
                      .context = get_64(from + 16),
                      .a = get_64(from + 24),
                      .b = get_64(from + HEADER_B)};
}

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
    frame->is_put = frame->reads = false;
    header_pack(header, frame->wire.header);
    return frame;
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

/* Returns whether an announcement to peer comes after another one without a
 * poll between them: it may wait for that poll. */
static bool announces_again(domain_t *domain, int peer)
{
    link_t *link = &domain->links[peer];
    const uint64_t before = link->announced;

    link->announced = domain->polls + 1;
    return before == link->announced;
}

void net_post_owned(domain_t *domain, int peer, header_t header, void *owned)
{
    frame_t *frame = frame_new(domain, &header);

    if (header.type == FRAME_ANNOUNCE)
        frame->wire.deferrable = announces_again(domain, peer);
    frame->owned = owned;
    frame->wire.data = owned;
    domain->ops.post(domain->wire, peer, &frame->wire);
}

void net_post(domain_t *domain, int peer, header_t header)
{
    net_post_owned(domain, peer, header, NULL);
}

void net_post_payload(request_t *request, header_t header, const void *data,
                      bool unordered, bool followed)
{
    domain_t *domain = request->engine->domain;
    frame_t *frame = frame_new(domain, &header);

    frame->request = request;
    frame->wire.data = data;
    frame->wire.unordered = unordered;
    frame->wire.deferrable = followed;
    LIST_INSERT_HEAD(&request->frames, frame, in_request);
    domain->ops.post(domain->wire, request->peer, &frame->wire);
}

/* Gives a frame of a request to the device. */
static bool frame_put(request_t *request, frame_t *frame,
                      const dscomm_wire_put_t *put)
{
    const domain_t *domain = request->engine->domain;

    frame->request = request;
    frame->is_put = true;
    LIST_INSERT_HEAD(&request->frames, frame, in_request);
    if (domain->ops.put(domain->wire, request->peer, &frame->wire, put))
        return true;
    frame->is_put = false;
    return false;
}

void net_post_piece(request_t *request, size_t offset, size_t bytes)
{
    domain_t *domain = request->engine->domain;
    const header_t header = {.bytes = bytes,
                             .type = FRAME_PIECE,
                             .a = offset,
                             .b = request->peer_id};
    const char *data = (const char *)request->message.send + offset;
    dscomm_wire_put_t put = {.size = sizeof put,
                             .message = request->message.send,
                             .bytes = request->wanted};
    frame_t *frame;

    if (!request->has_key) {
        net_post_payload(request, header, data, true, false);
        return;
    }
    frame = frame_new(domain, &header);
    frame->wire.data = data;
    frame->wire.unordered = 1;
    put.offset = offset;
    put.tag = net_id_tag(request->peer_id);
    memcpy(put.key, request->key, sizeof put.key);
    if (!frame_put(request, frame, &put))
        domain->ops.post(domain->wire, request->peer, &frame->wire);
}

/* Makes a piece that has not begun to be sent one for no receive: the message
 * never becomes complete. */
static void piece_void(frame_t *frame)
{
    static char nothing[PIECE_MAX];

    put_64(frame->wire.header + HEADER_B, 0);
    frame->wire.data = nothing;
}

bool net_post_access(request_t *request, const dscomm_access_t *access,
                     bool reads, size_t offset, size_t bytes)
{
    domain_t *domain = request->engine->domain;
    frame_t *frame = frame_new(domain, &(header_t){.bytes = bytes});
    dscomm_wire_put_t put = {.size = sizeof put,
                             .offset = access->offset + offset,
                             .is_access = 1,
                             .reads = reads,
                             .registered = access->registered};

    memcpy(put.key, access->key, sizeof put.key);
    frame->reads = reads;
    frame->wire.data = (const char *)access->data + offset;
    if (frame_put(request, frame, &put))
        return true;
    frame_release(domain, frame);
    return false;
}

static void payload_copy(frame_t *frame)
{
    frame->owned = g_malloc(frame->wire.bytes);
    if (frame->wire.bytes)
        memcpy(frame->owned, frame->wire.data, frame->wire.bytes);
    frame->wire.data = frame->owned;
}

void net_frames_copy(request_t *request)
{
    frame_t *frame;

    LIST_FOREACH (frame, &request->frames, in_request)
        payload_copy(frame);
}

void net_frames_move(request_t *from, request_t *to)
{
    frame_t *frame;

    while ((frame = LIST_FIRST(&from->frames)) != NULL) {
        LIST_REMOVE(frame, in_request);
        LIST_INSERT_HEAD(&to->frames, frame, in_request);
        frame->request = to;
    }
}

/* Takes the data of a put or an access back. What is pinned and goes to the
 * peer stays with the device. */
static void put_forget(const request_t *request, frame_t *frame)
{
    const domain_t *domain = request->engine->domain;

    if (!frame->wire.pinned)
        frame->wire.data = NULL;
    else if (frame->reads)
        domain->ops.stop(domain->wire, request->peer, &frame->wire);
}

void net_frames_forget(request_t *request)
{
    frame_t *frame;

    while ((frame = LIST_FIRST(&request->frames)) != NULL) {
        LIST_REMOVE(frame, in_request);
        frame->request = NULL;
        request->head.held |= frame->wire.pinned && !frame->reads;
        if (frame->owned)
            continue;
        if (frame->is_put)
            put_forget(request, frame);
        else if (frame->wire.unordered && !frame->wire.done)
            piece_void(frame);
        else
            payload_copy(frame);
    }
}

void net_sent(void *arg, dscomm_wire_frame_t *wire)
{
    request_t *request = frame_release(arg, (frame_t *)wire);

    if (request)
        net_request_sent(request, wire->bytes);
}

void net_refused(void *arg, dscomm_wire_frame_t *wire)
{
    domain_t *domain = arg;
    frame_t *frame = (frame_t *)wire;
    request_t *request = frame->request;

    frame->is_put = false;
    if (!request) { /* it was cancelled */
        frame_release(domain, frame);
        return;
    }
    request->has_key = false;
    domain->ops.post(domain->wire, request->peer, wire);
}

/* The request stays incomplete: its group has been revoked. */
void net_dropped(void *arg, dscomm_wire_frame_t *wire)
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
        domain->salt = NET_SALT_FIRST;
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

void net_id_move(domain_t *domain, request_t *request)
{
    if (request->id)
        g_ptr_array_index(domain->ids, request->id & UINT32_MAX) = request;
}

/* The low bits of the index, and above them those of the salt. */
uint32_t net_id_tag(uint64_t id)
{
    return (uint32_t)(id % TAG_INDICES) |
           (uint32_t)(id >> 32) * (uint32_t)TAG_INDICES;
}

static request_t *index_find(const domain_t *domain, uint64_t index, int peer)
{
    request_t *request =
        index < domain->ids->len ? g_ptr_array_index(domain->ids, index) : NULL;

    return request && request->peer == peer ? request : NULL;
}

request_t *net_tag_find(const domain_t *domain, uint32_t tag, int peer)
{
    request_t *request = index_find(domain, tag % TAG_INDICES, peer);

    return request && net_id_tag(request->id) == tag ? request : NULL;
}

request_t *net_id_find(const domain_t *domain, uint64_t id, int peer)
{
    request_t *request = index_find(domain, id & UINT32_MAX, peer);

    return request && request->id == id ? request : NULL;
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
        return net_requested_send(domain, peer, header, NULL);
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

static dscomm_wire_sink_t *keyed_arrives(domain_t *domain,
                                         const header_t *header)
{
    keyed_t *keyed;
    sink_t *sink;

    if (header->bytes != DSCOMM_WIRE_KEY || !domain->ops.put)
        return NULL;
    keyed = g_new(keyed_t, 1);
    keyed->header = *header;
    sink = net_sink(domain, FRAME_REQUEST, keyed->key, header->bytes);
    sink->owned = keyed;
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

dscomm_wire_sink_t *net_arrive(void *arg, int peer, const unsigned char *bytes)
{
    domain_t *domain = arg;
    const header_t header = header_unpack(bytes);

    /* Pieces may be overtaken by the end. */
    if (domain->links[peer].state == LINK_LEFT && header.type != FRAME_PIECE)
        return NULL;
    domain->links[peer].received = true;
    switch (header.type) {
    case FRAME_EAGER:
        return net_eager_arrives(domain, peer, &header);
    case FRAME_PIECE:
        return net_piece_arrives(domain, peer, &header);
    case FRAME_REVOKE:
        return revoke_arrives(domain, &header);
    case FRAME_REQUEST:
        if (header.bytes)
            return keyed_arrives(domain, &header);
        /* fallthrough */
    default:
        if (!control_arrives(domain, peer, &header))
            return NULL;
        domain->nothing.wire.done = 0;
        return &domain->nothing.wire;
    }
}

/* A request that makes no sense is one for no message. */
static void keyed_landed(domain_t *domain, int peer, const keyed_t *keyed)
{
    net_requested_send(domain, peer, &keyed->header, keyed->key);
}

void net_written(void *arg, int peer, uint32_t tag, size_t bytes)
{
    domain_t *domain = arg;
    request_t *receive = net_tag_find(domain, tag, peer);

    if (!receive || !receive->exposed ||
        bytes > receive->wanted - receive->begun)
        return;
    receive->begun += bytes;
    net_receive_moved(receive, bytes);
}

void net_landed(void *arg, int peer, dscomm_wire_sink_t *wire)
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
    else if (sink->type == FRAME_REQUEST)
        keyed_landed(domain, peer, sink->owned);
    g_clear_pointer(&sink->owned, g_free);
    SLIST_INSERT_HEAD(&domain->free_sinks, sink, in_free);
}
