/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives, and messages that arrive. */
#include "config.h"

#include "backends/net/engine.h"

#include <string.h>

void net_request_init(engine_t *engine, const dscomm_message_t *message,
                      request_t *request, int rank)
{
    const dscomm_request_t head = request->head;

    *request = (request_t){.head = head, .engine = engine, .message = *message};
    request->peer = rank < 0 ? -1 : engine->peers[rank];
}

void net_conceal(request_t *receive)
{
    const domain_t *domain = receive->engine->domain;

    if (receive->exposed)
        domain->ops.conceal(domain->wire, receive->peer, receive->exposed,
                            receive->moved == receive->wanted);
    receive->exposed = NULL;
}

void net_request_end(request_t *request, dscomm_status_t status)
{
    net_conceal(request);
    net_id_drop(request->engine->domain, request);
    request->state = REQUEST_ENDED;
    request->engine->moved += !request->starting;
    request->head.status = status;
}

void net_credit_return(domain_t *domain, int peer, uint64_t bytes)
{
    link_t *link = &domain->links[peer];

    link->owed += (int64_t)bytes;
    if (link->owed < LINK_CREDIT / 2 || link->state != LINK_OPEN)
        return;
    net_post(domain, peer,
             (header_t){.type = FRAME_CREDIT, .a = (uint64_t)link->owed});
    link->owed = 0;
    link->peer_stalled = false;
}

/* Notes which message a receive gets. */
static void receive_match(request_t *receive, int peer, int tag, uint64_t bytes)
{
    receive->peer = peer;
    receive->state = REQUEST_ARRIVING;
    receive->head.source = receive->engine->ranks_of[peer];
    receive->head.tag = tag;
    receive->head.bytes = bytes;
    receive->engine->moved++;
}

static void receive_end(request_t *receive)
{
    net_request_end(receive, receive->head.bytes > receive->message.bytes
                                 ? DSCOMM_ERR_TRUNCATED
                                 : DSCOMM_OK);
}

/* Lets the peer write to the memory of a receive, if the wire can; returns the
 * key, which is to be freed, or NULL. */
static void *receive_expose(request_t *receive)
{
    const domain_t *domain = receive->engine->domain;
    unsigned char key[DSCOMM_WIRE_KEY];

    if (domain->ops.expose && receive->wanted &&
        (receive->id & UINT32_MAX) < TAG_INDICES)
        receive->exposed =
            domain->ops.expose(domain->wire, receive->peer,
                               receive->message.recv, receive->wanted, key);
    return receive->exposed ? memcpy(g_malloc(sizeof key), key, sizeof key)
                            : NULL;
}

/* Asks for the bytes of an announced message, as far as there is room. */
static void receive_request(request_t *receive, uint64_t id)
{
    domain_t *domain = receive->engine->domain;
    void *key;

    receive->wanted = MIN(receive->head.bytes, receive->message.bytes);
    net_id_take(domain, receive);
    key = receive_expose(receive);
    net_post_owned(domain, receive->peer,
                   (header_t){.bytes = key ? DSCOMM_WIRE_KEY : 0,
                              .type = FRAME_REQUEST,
                              .context = receive->id,
                              .a = receive->wanted,
                              .b = id},
                   key);
    if (!receive->wanted)
        receive_end(receive);
    else if (!key)
        domain->links[receive->peer].expected += receive->wanted;
}

static void receive_copy(request_t *receive, const void *from)
{
    const size_t bytes = MIN(receive->head.bytes, receive->message.bytes);

    if (bytes)
        memcpy(receive->message.recv, from, bytes);
}

void net_self_deliver(request_t *send, request_t *receive)
{
    receive_match(receive, send->peer, send->message.tag, send->message.bytes);
    receive_copy(receive, send->message.send);
    receive_end(receive);
    net_request_end(send, DSCOMM_OK);
}

/* Gives receive a message that has arrived, wholly or in part, before it. */
static void receive_arrival(request_t *receive, arrival_t *arrival)
{
    engine_t *engine = receive->engine;
    domain_t *domain = engine->domain;

    receive_match(receive, arrival->peer, arrival->tag, arrival->bytes);
    if (!arrival->send && !arrival->id && !arrival->complete) {
        arrival->receive = receive;
        receive->arrival = arrival;
        return;
    }
    net_arrival_remove(engine->space, arrival);
    receive->arrival = NULL;
    if (arrival->send) {
        net_self_deliver(arrival->send, receive);
    } else if (arrival->id) {
        net_credit_return(domain, arrival->peer, MESSAGE_COST);
        receive_request(receive, arrival->id);
    } else {
        receive_copy(receive, arrival->data);
        net_credit_return(domain, arrival->peer, MESSAGE_COST + arrival->bytes);
        receive_end(receive);
    }
    g_free(arrival);
}

/* Returns the older one of oldest and of the first receive in list that is
 * newer than order and may get messages of peer. */
static const request_t *older(const request_t *oldest,
                              const struct requests *list, int peer,
                              uint64_t order)
{
    const request_t *receive;

    TAILQ_FOREACH (receive, list, link) {
        if (oldest && receive->order > oldest->order)
            break;
        if (receive->order > order &&
            (receive->peer < 0 || receive->peer == peer))
            return receive;
    }
    return oldest;
}

void net_ask(domain_t *domain, int peer)
{
    link_t *link = &domain->links[peer];
    const request_t *oldest = NULL;
    const engine_t *engine;

    if (!link->peer_stalled || link->asking)
        return;
    LIST_FOREACH (engine, &domain->engines, in_domain) {
        const space_t *space = engine->space;

        if (!space->posted_count || engine->ranks_of[peer] < 0)
            continue;
        for (int i = 0; i < SPACE_BUCKETS; i++)
            oldest = older(oldest, &space->posted[i], peer, link->refused);
        oldest = older(oldest, &space->wild, peer, link->refused);
    }
    if (!oldest)
        return;
    link->asking = oldest->order;
    net_post(domain, peer,
             (header_t){.type = FRAME_WANT,
                        .tag = oldest->message.tag,
                        .context = oldest->engine->space->context,
                        .a = link->came});
}

bool net_answered(domain_t *domain, int peer, const header_t *header)
{
    link_t *link = &domain->links[peer];

    if (!link->asking || header->a > 1)
        return false;
    if (header->a)
        link->refused = link->asking;
    link->asking = 0;
    net_ask(domain, peer);
    return true;
}

/* Whether peer sends nothing more to this receive. In the world's last barrier,
 * ranks that are leaving still send. */
static bool peer_is_gone(const request_t *receive, int peer)
{
    const engine_t *engine = receive->engine;
    const bool last =
        engine->world && receive->message.tag <= DSCOMM_TAG_COLLECTIVE;

    return engine->space->left[peer] >= (last ? GONE : LEAVING);
}

/* Whether no rank can send to this receive any more. With any source, this rank
 * itself could, unless it waits in this call. */
static bool receive_is_orphaned(const request_t *receive)
{
    const engine_t *engine = receive->engine;

    if (receive->peer >= 0)
        return receive->peer != engine->domain->rank &&
               peer_is_gone(receive, receive->peer);
    for (int r = 0; r < engine->ranks; r++)
        if (r != engine->rank && !peer_is_gone(receive, engine->peers[r]))
            return false;
    return receive->message.waits;
}

static void receive_orphan(request_t *receive)
{
    net_posted_remove(receive->engine->space, receive);
    receive->head.source =
        receive->peer < 0 ? -1 : receive->engine->ranks_of[receive->peer];
    net_request_end(receive, DSCOMM_ERR_PEER_FAILED);
}

static void orphan_list(struct requests *list)
{
    request_t *receive = TAILQ_FIRST(list), *next;

    for (; receive; receive = next) {
        next = TAILQ_NEXT(receive, link);
        if (receive_is_orphaned(receive))
            receive_orphan(receive);
    }
}

void net_receives_orphaned(engine_t *engine, int peer)
{
    (void)peer;
    if (engine->own_left != STAYS && !engine->world)
        return;
    for (int i = 0; i < SPACE_BUCKETS; i++)
        orphan_list(&engine->space->posted[i]);
    orphan_list(&engine->space->wild);
}

/* Makes sure that the source of a receive, or each rank of the group if it may
 * be any, is connected, so that its death is seen, unless the receive is early;
 * and that it sends what waits for credit there. */
static void receive_await(request_t *receive)
{
    engine_t *engine = receive->engine;
    domain_t *domain = engine->domain;

    for (int r = 0; r < engine->ranks; r++) {
        const int peer = receive->peer >= 0 ? receive->peer : engine->peers[r];

        if (!receive->message.early)
            net_link_open(domain, peer);
        net_ask(domain, peer);
        if (receive->peer >= 0)
            break;
    }
    if (receive->state == REQUEST_POSTED && receive_is_orphaned(receive))
        receive_orphan(receive);
}

static void expect_less(domain_t *domain, int peer, size_t bytes)
{
    domain->links[peer].expected -= MIN(domain->links[peer].expected, bytes);
}

/* Takes back a send that waits for credit, and those after it, which would be
 * received in its place. */
static void stalled_forget(request_t *request)
{
    struct requests *stalled =
        &request->engine->domain->links[request->peer].stalled;
    const engine_t *engine = request->engine;
    request_t *next;

    for (; request; request = next) {
        next = TAILQ_NEXT(request, link);
        if (request->engine != engine)
            continue;
        TAILQ_REMOVE(stalled, request, link);
        request->state = REQUEST_ENDED;
    }
}

static void sinks_forget(request_t *request)
{
    sink_t *sink;

    while ((sink = LIST_FIRST(&request->sinks)) != NULL) {
        LIST_REMOVE(sink, in_request);
        sink->request = NULL;
        sink->wire.memory = NULL;
    }
}

static void request_withdraw(engine_t *engine, request_t *request)
{
    switch (request->state) {
    case REQUEST_STALLED:
        stalled_forget(request);
        break;
    case REQUEST_KEPT:
        net_arrival_remove(engine->space, request->arrival);
        g_free(request->arrival);
        break;
    case REQUEST_POSTED:
        net_posted_remove(engine->space, request);
        break;
    case REQUEST_ARRIVING:
        if (request->arrival)
            request->arrival->receive = NULL;
        else if (!request->exposed)
            expect_less(request->engine->domain, request->peer,
                        request->wanted - request->begun);
        break;
    default:
        break;
    }
    net_frames_forget(request);
    sinks_forget(request);
    net_conceal(request);
    net_id_drop(engine->domain, request);
    request->state = REQUEST_ENDED;
}

/* Begins a receive, with the message that is there or by waiting for it. */
static void receive_begin(engine_t *engine, const dscomm_message_t *message,
                          request_t *request)
{
    arrival_t *arrival = message->taken;

    net_request_init(engine, message, request, message->peer);
    if (!arrival)
        arrival = net_arrival_find(engine->space, request->peer, message->tag);
    if (arrival) {
        receive_arrival(request, arrival);
    } else {
        net_posted_add(engine->space, request);
        receive_await(request);
    }
}

/* Whether the group neither has ended nor is about to. */
static bool engine_goes_on(engine_t *engine)
{
    return ending_status(&engine->ending, NULL) == DSCOMM_OK &&
           atomic_load_explicit(&engine->death_pending, memory_order_relaxed) !=
               1;
}

int net_recv_now(void *impl, const dscomm_message_t *message,
                 dscomm_request_t *head, unsigned polls)
{
    engine_t *engine = impl;
    domain_t *domain = engine->domain;
    request_t *request = &engine->awaited;

    if (!engine_goes_on(engine))
        return 0;
    net_enter(domain);
    request->head = (dscomm_request_t){.status = DSCOMM_IN_PROGRESS};
    receive_begin(engine, message, request);
    while (request->head.status == DSCOMM_IN_PROGRESS && polls-- &&
           engine_goes_on(engine)) {
        net_engine_poll(engine);
        if (request->head.status == DSCOMM_IN_PROGRESS) { /* others may enter */
            net_leave(domain);
            net_enter(domain);
        }
    }
    engine->has_awaited = request->head.status != DSCOMM_OK &&
                          request->head.status != DSCOMM_ERR_TRUNCATED;
    *head = request->head;
    net_leave(domain);
    return !engine->has_awaited;
}

/* Goes on with the receive that net_recv_now() has begun. */
static void receive_continue(engine_t *engine, request_t *to)
{
    request_t *from = &engine->awaited;
    sink_t *sink;

    engine->has_awaited = false;
    *to = *from;
    if (from->state == REQUEST_POSTED)
        net_posted_move(engine->space, from, to);
    LIST_INIT(&to->sinks);
    while ((sink = LIST_FIRST(&from->sinks)) != NULL) {
        LIST_REMOVE(sink, in_request);
        LIST_INSERT_HEAD(&to->sinks, sink, in_request);
        sink->request = to;
    }
    if (to->arrival)
        to->arrival->receive = to;
    net_id_move(engine->domain, to);
}

dscomm_status_t net_irecv(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *head)
{
    engine_t *engine = impl;
    request_t *request = (request_t *)head;
    dscomm_status_t status;

    net_engine_resolve(engine);
    net_enter(engine->domain);
    status = ending_check(&engine->ending);
    if (status < 0 && engine->has_awaited) {
        engine->has_awaited = false;
        request_withdraw(engine, &engine->awaited);
    } else if (status == DSCOMM_OK && engine->has_awaited) {
        receive_continue(engine, request);
    } else if (status == DSCOMM_OK) {
        receive_begin(engine, message, request);
    }
    net_leave(engine->domain);
    return status;
}

void net_expect(void *impl, dscomm_request_t *head)
{
    engine_t *engine = impl;
    request_t *request = (request_t *)head;

    net_enter(engine->domain);
    request->message.early = 0;
    if (request->state == REQUEST_POSTED)
        receive_await(request);
    net_leave(engine->domain);
}

/* Messages that arrive. */

/* The space of a frame's group; *ret_discard: it has been closed, or its
 * failure is known. NULL without that: the frame makes no sense, or there is no
 * memory. */
static space_t *arrival_space(domain_t *domain, int peer,
                              const header_t *header, bool *ret_discard)
{
    space_t *space = net_space(domain, header->context);

    *ret_discard = false;
    if (!space) {
        *ret_discard = g_hash_table_contains(domain->closed, &header->context);
        return NULL;
    }
    if (space->engine && space->engine->ranks_of[peer] < 0)
        return NULL;
    if (space->engine && ending_status(&space->engine->ending, NULL) < 0) {
        *ret_discard = true;
        return NULL;
    }
    return space;
}

static dscomm_wire_sink_t *eager_discard(domain_t *domain,
                                         const header_t *header)
{
    return &net_sink(domain, FRAME_EAGER, NULL, header->bytes)->wire;
}

dscomm_wire_sink_t *net_eager_arrives(domain_t *domain, int peer,
                                      const header_t *header)
{
    request_t *receive;
    sink_t *sink;
    space_t *space;
    bool discard;

    if (header->bytes > EAGER_MAX)
        return NULL;
    domain->links[peer].came++;
    space = arrival_space(domain, peer, header, &discard);
    if (!space)
        return discard ? eager_discard(domain, header) : NULL;
    receive = net_posted_take(space, peer, header->tag);
    if (receive && header->bytes <= receive->message.bytes) {
        receive_match(receive, peer, header->tag, header->bytes);
        sink =
            net_sink(domain, FRAME_EAGER, receive->message.recv, header->bytes);
        sink->request = receive;
        LIST_INSERT_HEAD(&receive->sinks, sink, in_request);
        return &sink->wire;
    }
    sink = net_sink(domain, FRAME_EAGER, NULL, header->bytes);
    sink->arrival =
        net_arrival_add(space, peer, header->tag, header->bytes, header->bytes);
    if (!sink->arrival) {
        if (space->engine)
            net_engine_lack(space->engine, "no memory for a message");
        return &sink->wire;
    }
    sink->arrival->sink = sink;
    sink->wire.memory = sink->arrival->data;
    if (receive)
        receive_arrival(receive, sink->arrival);
    return &sink->wire;
}

void net_eager_landed(domain_t *domain, int peer, sink_t *sink)
{
    arrival_t *arrival = sink->arrival;

    if (arrival) {
        arrival->complete = true;
        arrival->sink = NULL;
        if (arrival->receive)
            receive_arrival(arrival->receive, arrival);
        return;
    }
    net_credit_return(domain, peer, MESSAGE_COST + sink->wire.bytes);
    if (sink->request)
        receive_end(sink->request);
}

bool net_announce_arrives(domain_t *domain, int peer, const header_t *header)
{
    bool discard;
    space_t *space = arrival_space(domain, peer, header, &discard);
    request_t *receive;
    arrival_t *arrival;

    if (!header->b)
        return false;
    domain->links[peer].came++;
    if (!space && discard)
        net_credit_return(domain, peer, MESSAGE_COST);
    if (!space)
        return discard;
    receive = net_posted_take(space, peer, header->tag);
    if (receive) {
        net_credit_return(domain, peer, MESSAGE_COST);
        receive_match(receive, peer, header->tag, header->a);
        receive_request(receive, header->b);
        return true;
    }
    arrival = net_arrival_add(space, peer, header->tag, header->a, 0);
    if (arrival)
        arrival->id = header->b;
    else if (space->engine)
        net_engine_lack(space->engine, "no memory for a message");
    return true;
}

dscomm_wire_sink_t *net_piece_arrives(domain_t *domain, int peer,
                                      const header_t *header)
{
    request_t *receive = net_id_find(domain, header->b, peer);
    sink_t *sink;

    if (!header->bytes || header->bytes > PIECE_MAX)
        return NULL;
    if (!receive) /* it was cancelled */
        return &net_sink(domain, 0, NULL, header->bytes)->wire;
    if (receive->state != REQUEST_ARRIVING || header->a > receive->wanted ||
        header->bytes > receive->wanted - header->a ||
        header->bytes > receive->wanted - receive->begun)
        return NULL;
    receive->begun += header->bytes;
    expect_less(domain, peer, header->bytes);
    sink = net_sink(domain, FRAME_PIECE,
                    (char *)receive->message.recv + header->a, header->bytes);
    sink->wire.expected = domain->links[peer].expected;
    sink->request = receive;
    LIST_INSERT_HEAD(&receive->sinks, sink, in_request);
    return &sink->wire;
}

void net_receive_moved(request_t *receive, size_t bytes)
{
    receive->moved += bytes;
    receive->engine->moved++;
    if (receive->moved == receive->wanted)
        receive_end(receive);
}

void net_piece_landed(domain_t *domain, sink_t *sink)
{
    (void)domain;
    if (sink->request)
        net_receive_moved(sink->request, sink->wire.bytes);
}

/* Cancelling and probing. */

void net_cancel(void *impl, dscomm_request_t *head)
{
    engine_t *engine = impl;

    net_enter(engine->domain);
    request_withdraw(engine, (request_t *)head);
    net_leave(engine->domain);
}

int net_withdraw(void *impl, dscomm_request_t *head)
{
    engine_t *engine = impl;
    request_t *request = (request_t *)head;
    int withdrawn;

    net_enter(engine->domain);
    withdrawn = request->state == REQUEST_POSTED;
    if (withdrawn)
        request_withdraw(engine, request);
    net_leave(engine->domain);
    return withdrawn;
}

int net_matched(void *impl, const dscomm_request_t *head)
{
    engine_t *engine = impl;
    int matched;

    net_enter(engine->domain);
    matched = ((const request_t *)head)->state == REQUEST_ARRIVING;
    net_leave(engine->domain);
    return matched;
}

int net_probe(void *impl, const dscomm_message_t *wanted,
              dscomm_request_t *found, void **ret_taken)
{
    engine_t *engine = impl;
    arrival_t *arrival;

    net_enter(engine->domain);
    arrival = net_arrival_find(
        engine->space, wanted->peer < 0 ? -1 : engine->peers[wanted->peer],
        wanted->tag);
    if (arrival) {
        found->source = engine->ranks_of[arrival->peer];
        found->tag = arrival->tag;
        found->bytes = arrival->bytes;
        arrival->taken = ret_taken != NULL;
        if (ret_taken)
            *ret_taken = arrival;
    }
    net_leave(engine->domain);
    return arrival != NULL;
}
