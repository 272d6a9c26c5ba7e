/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: at once, when the receiver has room, or when it asks for them. */
#include "config.h"

#include "backends/net/engine.h"

#include <string.h>

/* Posts pieces, as many as the wire may have at a time. The wire may send each
 * at once, and then calls net_request_sent(). */
static void send_pump(request_t *request)
{
    domain_t *domain = request->engine->domain;
    const unsigned depth = domain->ops.depth(domain->wire);
    const size_t piece = depth > 2 ? PIECE_SPREAD : PIECE_MAX;

    request->pumping = true;
    while (request->begun < request->wanted &&
           request->begun - request->moved < depth * piece) {
        const size_t offset = request->begun;
        const size_t bytes = MIN(request->wanted - offset, piece);

        request->begun += bytes;
        net_post_piece(request, offset, bytes);
    }
    request->pumping = false;
    if (request->moved == request->wanted)
        net_request_end(request, DSCOMM_OK);
}

void net_request_sent(request_t *request, size_t bytes)
{
    request->moved += bytes;
    request->engine->moved += !request->starting;
    if (request->id && !request->pumping)
        send_pump(request);
    else if (!request->id && request->moved >= request->wanted &&
             LIST_EMPTY(&request->frames))
        net_request_end(request, DSCOMM_OK);
}

static void send_eager(request_t *request)
{
    request->state = REQUEST_SENDING;
    net_post_payload(request,
                     (header_t){.bytes = request->message.bytes,
                                .type = FRAME_EAGER,
                                .tag = request->message.tag,
                                .context = request->engine->space->context},
                     request->message.send, false, request->message.followed);
}

static void send_announce(request_t *request)
{
    request->state = REQUEST_ANNOUNCED;
    net_id_take(request->engine->domain, request);
    net_post(request->engine->domain, request->peer,
             (header_t){.type = FRAME_ANNOUNCE,
                        .tag = request->message.tag,
                        .context = request->engine->space->context,
                        .a = request->message.bytes,
                        .b = request->id});
}

static bool send_is_eager(const request_t *request)
{
    const domain_t *domain = request->engine->domain;
    const size_t bytes = request->message.bytes;

    return bytes <= EAGER_MAX &&
           bytes <= domain->ops.eager(domain->wire, request->peer);
}

static int64_t send_cost(const request_t *request)
{
    const size_t bytes = request->message.bytes;

    return MESSAGE_COST + (int64_t)(send_is_eager(request) ? bytes : 0);
}

static void send_begin(request_t *request)
{
    link_t *link = &request->engine->domain->links[request->peer];

    link->credit -= send_cost(request);
    link->sent++;
    if (send_is_eager(request))
        send_eager(request);
    else
        send_announce(request);
}

/* Tells the receiver that messages wait for credit. */
static void link_stall(domain_t *domain, int peer)
{
    link_t *link = &domain->links[peer];

    if (link->told_stalled || TAILQ_EMPTY(&link->stalled))
        return;
    link->told_stalled = true;
    net_post(domain, peer, (header_t){.type = FRAME_STALLED});
}

/* A send of a group that has ended is left for the core to cancel: the credit
 * may come because the receiver has ended its group without the message. */
static void stalled_begin(domain_t *domain, request_t *request)
{
    TAILQ_REMOVE(&domain->links[request->peer].stalled, request, link);
    if (ending_status(&request->engine->ending, NULL) == DSCOMM_OK)
        send_begin(request);
    else
        request->state = REQUEST_ENDED;
}

void net_stalled_send(domain_t *domain, int peer)
{
    link_t *link = &domain->links[peer];
    request_t *first;

    while ((first = TAILQ_FIRST(&link->stalled)) != NULL &&
           link->credit >= send_cost(first))
        stalled_begin(domain, first);
    link_stall(domain, peer);
}

/* If messages are on their way, one of them may be for that receive: the
 * receiver has it before the answer, and asks again if it was not. */
void net_wanted_send(domain_t *domain, int peer, const header_t *header)
{
    link_t *link = &domain->links[peer];
    const bool certain = header->a == link->sent;
    request_t *request = NULL;

    if (certain)
        TAILQ_FOREACH (request, &link->stalled, link)
            if (request->engine->space->context == header->context &&
                (request->message.tag == header->tag ||
                 (header->tag == DSCOMM_ANY_TAG && request->message.tag >= 0)))
                break;
    if (request)
        stalled_begin(domain, request);
    else if (certain)
        link->told_stalled = false; /* of messages that stall from now on */
    net_post(domain, peer,
             (header_t){.type = FRAME_ANSWER, .a = certain && !request});
}

/* Adds a message to those that wait for credit. The receiver need not know of
 * it if another one waits before it for the same receives. */
static void send_stall(request_t *request)
{
    domain_t *domain = request->engine->domain;
    struct requests *stalled = &domain->links[request->peer].stalled;
    const request_t *last = TAILQ_LAST(stalled, requests);
    const bool same = last && last->engine == request->engine &&
                      last->message.tag == request->message.tag;

    TAILQ_INSERT_TAIL(stalled, request, link);
    if (!same)
        link_stall(domain, request->peer);
}

bool net_requested_send(domain_t *domain, int peer, const header_t *header,
                        const unsigned char *key)
{
    request_t *request = net_id_find(domain, header->b, peer);

    if (!request) /* it was cancelled */
        return true;
    if (request->state != REQUEST_ANNOUNCED ||
        header->a > request->message.bytes)
        return false;
    request->state = REQUEST_SENDING;
    request->wanted = header->a;
    request->peer_id = header->context;
    request->has_key = key != NULL;
    if (key)
        memcpy(request->key, key, sizeof request->key);
    request->engine->moved++;
    send_pump(request);
    return true;
}

dscomm_status_t net_peer_check(engine_t *engine, int peer)
{
    if (ending_status(&engine->ending, NULL) == DSCOMM_OK &&
        engine->domain->links[peer].state == LINK_LEFT)
        net_engine_lose_peer(engine, peer, DSCOMM_FAILURE_LEFT,
                             "it has closed its connection");
    return ending_check(&engine->ending);
}

/* A message of this rank to itself. */
static dscomm_status_t send_self(request_t *request)
{
    space_t *space = request->engine->space;
    const dscomm_message_t *message = &request->message;
    request_t *receive = net_posted_take(space, request->peer, message->tag);

    if (!receive) {
        request->arrival = net_arrival_add(space, request->peer, message->tag,
                                           message->bytes, 0);
        if (!request->arrival)
            return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a message");
        request->arrival->send = request;
        request->state = REQUEST_KEPT;
        return DSCOMM_OK;
    }
    net_self_deliver(request, receive);
    return DSCOMM_OK;
}

/* Leaves begun what the wire does not take at once: net_isend(), which the core
 * calls next, goes on with it. */
int net_send_now(void *impl, const dscomm_message_t *message)
{
    engine_t *engine = impl;
    domain_t *domain = engine->domain;
    link_t *link = &domain->links[engine->peers[message->peer]];
    request_t *request = &engine->begun;
    bool sent = false;

    if (message->bytes > SEND_NOW_MOST || net_status(engine, NULL) < 0)
        return 0;
    net_enter(domain);
    request->head.status = DSCOMM_IN_PROGRESS;
    net_request_init(engine, message, request, message->peer);
    request->starting = true;
    if (link->state == LINK_OPEN && TAILQ_EMPTY(&link->stalled) &&
        link->credit >= send_cost(request)) {
        send_begin(request);
        sent = request->head.status == DSCOMM_OK;
        engine->has_begun = !sent;
    }
    request->starting = false;
    if (engine->has_begun)
        net_frames_copy(request);
    net_leave(domain);
    return sent;
}

/* Goes on with the message that net_send_now() has begun. */
static void send_continue(engine_t *engine, request_t *request)
{
    engine->has_begun = false;
    request->state = REQUEST_SENDING;
    if (engine->begun.head.status == DSCOMM_OK)
        net_request_end(request, DSCOMM_OK);
    else
        net_frames_move(&engine->begun, request);
}

dscomm_status_t net_isend(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *head)
{
    engine_t *engine = impl;
    domain_t *domain = engine->domain;
    request_t *request = (request_t *)head;
    link_t *link;
    dscomm_status_t status;

    net_engine_resolve(engine);
    net_enter(domain);
    net_request_init(engine, message, request, message->peer);
    request->starting = true;
    link = &domain->links[request->peer];
    if (request->peer != domain->rank)
        net_link_open(domain, request->peer);
    status = net_peer_check(engine, request->peer);
    if (status == DSCOMM_OK && engine->has_begun) {
        send_continue(engine, request);
    } else if (status == DSCOMM_OK && request->peer == domain->rank) {
        status = send_self(request);
    } else if (status == DSCOMM_OK) {
        request->state = REQUEST_STALLED;
        if (TAILQ_EMPTY(&link->stalled) && link->credit >= send_cost(request))
            send_begin(request);
        else
            send_stall(request);
    }
    if (head->status == DSCOMM_IN_PROGRESS)
        request->starting = false;
    net_leave(domain);
    return status;
}
