/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary frames of two peers, while messages are sent, received, cancelled
 * and probed: the message engine refuses those that make no sense, and writes
 * to no memory but that of receives. The input is a list of commands to a wire
 * that exists only here. */
#include "config.h"

#include "backends/net/engine.h"
#include "backends/net/little.h"

#include <stdlib.h>
#include <string.h>

#define RANKS 3
#define REQUESTS 12
#define POSTED_MAX 64 /* frames whose ids are remembered */
#define EXPOSED_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    request_t request; /* first */
    char *buffer; /* NULL: free */
} call_t;

/* The input that is left. Beyond its end all bytes are 0. */
static const uint8_t *next, *end;

static struct {
    const dscomm_wire_calls_t *calls;
    void *arg;
    dscomm_wire_frame_t *frames[RANKS]; /* not sent yet, oldest first */
    dscomm_wire_sink_t *sinks[RANKS][2]; /* on each connection of a peer */
    bool up[RANKS];
    unsigned lost; /* bits of peers whose connection ends at the next poll */
    uint64_t ids[POSTED_MAX]; /* that the engine has sent */
    unsigned id_count;
    struct {
        char *memory; /* NULL: not in use */
        size_t bytes;
        int peer;
    } exposed[EXPOSED_MAX]; /* to which a peer's device may write */
} wire;

static engine_t *engine;
static call_t calls[REQUESTS];

static void must(bool holds)
{
    if (!holds)
        abort();
}

static unsigned draw(unsigned limit)
{
    return next < end ? *next++ % limit : 0;
}

/* A number, often a small one or an id that the engine has used. */
static uint64_t draw_64(void)
{
    uint64_t value = 0;

    switch (draw(4)) {
    case 0:
        return draw(256);
    case 1:
        return wire.id_count
                   ? wire.ids[draw(256) % MIN(wire.id_count, POSTED_MAX)]
                   : 1;
    case 2:
        return (uint64_t)draw(256) << 12;
    default:
        for (int i = 0; i < 8; i++)
            value = value << 8 | draw(256);
        return value;
    }
}

static int draw_tag(void)
{
    static const int tags[] = {
        0, 1, 2, 0x7fffffff, DSCOMM_TAG_COLLECTIVE, DSCOMM_TAG_COLLECTIVE - 1};

    return tags[draw(6)];
}

/* The wire. */

static dscomm_status_t wire_open(const dscomm_wire_args_t *args,
                                 void **ret_wire)
{
    memset(&wire, 0, sizeof wire);
    wire.calls = args->calls;
    wire.arg = args->arg;
    *ret_wire = &wire;
    return DSCOMM_OK;
}

static void frames_drop(int peer)
{
    dscomm_wire_frame_t *frame;

    while ((frame = wire.frames[peer]) != NULL) {
        wire.frames[peer] = frame->next;
        wire.calls->dropped(wire.arg, frame);
    }
}

static void wire_close(void *unused)
{
    (void)unused;
    for (int p = 0; p < RANKS; p++)
        frames_drop(p);
}

static size_t wire_address(void *unused, void *buffer)
{
    (void)unused;
    memcpy(buffer, "here", 4);
    return 4;
}

static dscomm_status_t wire_connect(void *unused, int peer, const void *address,
                                    size_t bytes)
{
    (void)unused;
    must(peer > 0 && peer < RANKS && bytes == 5 &&
         !memcmp(address, "there", 5));
    wire.up[peer] = true;
    return DSCOMM_OK;
}

static void wire_post(void *unused, int peer, dscomm_wire_frame_t *frame)
{
    dscomm_wire_frame_t **last = &wire.frames[peer];
    uint64_t id;

    (void)unused;
    must(peer > 0 && peer < RANKS && wire.up[peer]);
    for (int at = 16; at < DSCOMM_WIRE_HEADER; at += 8) {
        memcpy(&id, frame->header + at, 8);
        wire.ids[wire.id_count++ % POSTED_MAX] = id;
    }
    while (*last)
        last = &(*last)->next;
    frame->next = NULL;
    *last = frame;
}

/* Sends the oldest frame to a peer, and so reads its payload. */
static void frame_send(int peer)
{
    static volatile char sum;
    dscomm_wire_frame_t *frame = wire.frames[peer];

    if (!frame)
        return;
    for (size_t i = 0; frame->data && i < frame->bytes; i += 4096)
        sum = (char)(sum + ((const char *)frame->data)[i]);
    if (frame->data && frame->bytes)
        sum = (char)(sum + ((const char *)frame->data)[frame->bytes - 1]);
    wire.frames[peer] = frame->next;
    wire.calls->sent(wire.arg, frame);
}

static void peer_lose(int peer)
{
    wire.lost |= 1u << peer;
}

static void wire_poll(void *unused)
{
    (void)unused;
    for (int p = 1; p < RANKS; p++)
        if (wire.lost >> p & 1) {
            wire.lost &= ~(1u << p);
            wire.sinks[p][0] = wire.sinks[p][1] = NULL;
            wire.calls->lost(wire.arg, p, DSCOMM_FAILURE_DIED, "so it is");
            frames_drop(p);
        }
}

static size_t wire_unsent(void *unused)
{
    (void)unused;
    return 0;
}

static unsigned wire_depth(void *unused)
{
    (void)unused;
    return 2;
}

static size_t wire_eager(void *unused, int peer)
{
    (void)unused;
    (void)peer;
    return EAGER_MAX;
}

static void *wire_expose(void *unused, int peer, void *memory, size_t bytes,
                         unsigned char *key)
{
    (void)unused;
    memset(key, 0, DSCOMM_WIRE_KEY);
    for (int i = 0; i < EXPOSED_MAX; i++) {
        if (wire.exposed[i].memory)
            continue;
        wire.exposed[i].memory = memory;
        wire.exposed[i].bytes = bytes;
        wire.exposed[i].peer = peer;
        return &wire.exposed[i];
    }
    return NULL;
}

static void wire_conceal(void *unused, int peer, void *exposed, int complete)
{
    (void)unused;
    (void)peer;
    (void)complete;
    for (int i = 0; i < EXPOSED_MAX; i++)
        if (exposed == &wire.exposed[i])
            wire.exposed[i].memory = NULL;
}

static int wire_put(void *unused, int peer, dscomm_wire_frame_t *frame,
                    const dscomm_wire_put_t *put)
{
    (void)put;
    if (draw(4) == 3)
        return 0;
    wire_post(unused, peer, frame);
    return 1;
}

/* The device of a peer writes to memory that is exposed, or says so. */
static void peer_writes(void)
{
    const unsigned i = draw(EXPOSED_MAX);
    const int peer = wire.exposed[i].peer;
    const size_t bytes = draw(2) ? wire.exposed[i].bytes : draw_64();

    if (!wire.exposed[i].memory || wire.lost >> peer & 1 ||
        engine->domain->links[peer].state == LINK_LOST)
        return;
    memset(wire.exposed[i].memory, 7, wire.exposed[i].bytes);
    net_enter(engine->domain);
    wire.calls->written(wire.arg, peer, (uint32_t)draw_64(), bytes);
    net_leave(engine->domain);
}

static const dscomm_wire_ops_t ops = {
    .size = sizeof ops,
    .name = "fuzz",
    .open = wire_open,
    .close = wire_close,
    .address = wire_address,
    .connect = wire_connect,
    .post = wire_post,
    .poll = wire_poll,
    .unsent = wire_unsent,
    .depth = wire_depth,
    .eager = wire_eager,
    .expose = wire_expose,
    .conceal = wire_conceal,
    .put = wire_put,
};

/* Continues with a payload: some bytes of it, or all. */
static void sink_fill(int peer, int channel, bool whole)
{
    dscomm_wire_sink_t *sink = wire.sinks[peer][channel];
    const size_t most = whole ? SIZE_MAX : draw(256);
    size_t bytes;

    if (!sink)
        return;
    bytes = MIN(sink->bytes - sink->done, most);
    if (sink->memory && bytes)
        memset((char *)sink->memory + sink->done, 7, bytes);
    sink->done += bytes;
    if (sink->done < sink->bytes)
        return;
    wire.sinks[peer][channel] = NULL;
    wire.calls->landed(wire.arg, peer, sink);
}

/* A header comes, on a connection that is not within a payload. */
static void frame_arrive(int peer, int channel)
{
    unsigned char header[DSCOMM_WIRE_HEADER];
    const uint64_t type = draw(FRAME_TYPES + 1);
    const uint64_t tag = (uint32_t)draw_tag();
    uint64_t bytes = 0, context = engine->space->context;

    if (!wire.up[peer]) {
        wire.up[peer] = true;
        wire.calls->opened(wire.arg, peer);
    }
    if (type == FRAME_EAGER || type == FRAME_PIECE || type == FRAME_REVOKE)
        bytes = draw(8) ? draw(256) : draw_64();
    if (type == FRAME_REQUEST && draw(2))
        bytes = DSCOMM_WIRE_KEY;
    if (draw(4) == 3)
        context = draw_64();
    put_64(header, bytes);
    put_64(header + 8, type | tag << 32);
    put_64(header + 16, context);
    put_64(header + 24, draw_64());
    put_64(header + 32, draw_64());
    wire.sinks[peer][channel] = wire.calls->arrive(wire.arg, peer, header);
    if (!wire.sinks[peer][channel]) {
        peer_lose(peer);
        return;
    }
    must(wire.sinks[peer][channel]->bytes == bytes);
    wire.sinks[peer][channel]->done = 0;
    sink_fill(peer, channel, draw(2));
}

static void peer_acts(void)
{
    const int peer = 1 + (int)draw(RANKS - 1), channel = (int)draw(2);

    net_enter(engine->domain);
    if (wire.lost >> peer & 1 || engine->domain->links[peer].state == LINK_LOST)
        ;
    else if (wire.sinks[peer][channel])
        sink_fill(peer, channel, draw(2));
    else
        frame_arrive(peer, channel);
    net_leave(engine->domain);
}

static void frame_leave(void)
{
    net_enter(engine->domain);
    frame_send(1 + (int)draw(RANKS - 1));
    net_leave(engine->domain);
}

static void call_begin(void)
{
    static const size_t sizes[] = {
        0, 1, 100, 4096, EAGER_MAX, EAGER_MAX + 1, 3 * PIECE_MAX};
    call_t *call = &calls[draw(REQUESTS)];
    const size_t bytes = sizes[draw(7)];
    const bool receive = draw(2);
    dscomm_message_t message = {.bytes = bytes, .tag = draw_tag()};
    dscomm_status_t status;

    if (call->buffer)
        return;
    call->buffer = calloc(1, bytes ? bytes : 1);
    must(call->buffer != NULL);
    call->request.head = (dscomm_request_t){.status = DSCOMM_IN_PROGRESS};
    message.peer = (int)draw(RANKS);
    if (receive) {
        message.recv = call->buffer;
        message.peer = draw(4) ? message.peer : DSCOMM_ANY_SOURCE;
        message.tag = draw(4) ? message.tag : DSCOMM_ANY_TAG;
        status = net_irecv(engine, &message, &call->request.head);
    } else {
        message.send = call->buffer;
        status = net_isend(engine, &message, &call->request.head);
    }
    if (status < 0)
        g_clear_pointer(&call->buffer, free);
}

static void call_end(call_t *call)
{
    if (!call->buffer)
        return;
    if (call->request.head.status == DSCOMM_IN_PROGRESS)
        net_cancel(engine, &call->request.head);
    g_clear_pointer(&call->buffer, free);
}

/* Frees the buffers of calls that are complete. */
static void calls_look(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        const dscomm_status_t status = calls[i].request.head.status;

        if (!calls[i].buffer || status == DSCOMM_IN_PROGRESS)
            continue;
        must(status == DSCOMM_OK || status == DSCOMM_ERR_TRUNCATED ||
             status == DSCOMM_ERR_PEER_FAILED);
        call_end(&calls[i]);
    }
}

static void probe(void)
{
    dscomm_message_t wanted = {.peer = (int)draw(RANKS), .tag = draw_tag()};
    dscomm_request_t found = {0};
    dscomm_message_t message = {.peer = wanted.peer, .tag = wanted.tag};
    call_t *call = &calls[draw(REQUESTS)];
    void *taken = NULL;

    if (call->buffer ||
        !net_probe(engine, &wanted, &found, draw(2) ? &taken : NULL) || !taken)
        return;
    call->buffer = malloc(1);
    must(call->buffer != NULL);
    call->request.head = (dscomm_request_t){.status = DSCOMM_IN_PROGRESS};
    message.recv = call->buffer;
    message.bytes = 1;
    message.taken = taken;
    if (net_irecv(engine, &message, &call->request.head) < 0)
        g_clear_pointer(&call->buffer, free);
}

static void command(void)
{
    switch (draw(13)) {
    case 0:
    case 1:
        call_begin();
        break;
    case 2:
        call_end(&calls[draw(REQUESTS)]);
        break;
    case 3:
        probe();
        break;
    case 4:
        if (!draw(8))
            peer_lose(1 + (int)draw(RANKS - 1));
        net_progress(engine);
        break;
    case 5:
    case 6:
        frame_leave();
        break;
    case 7:
        peer_writes();
        break;
    default:
        peer_acts();
    }
    calls_look();
}

static void engine_open(dscomm_store_t *store)
{
    static const int world_ranks[RANKS] = {0, 1, 2};
    const dscomm_backend_args_t args = {.size = sizeof args,
                                        .name = "g",
                                        .id = "g",
                                        .ranks = RANKS,
                                        .world_ranks = world_ranks,
                                        .store = store,
                                        .timeout_ms = 1000,
                                        .open_ms = 1000,
                                        .world = 1};
    void *impl;

    must(net_open(&ops, &args, &impl) == DSCOMM_OK);
    engine = impl;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char there[] = "4711 host\nthere";
    static dscomm_store_t *store;

    if (!store)
        must(!dscomm_store_open("memory://", NULL, &store) &&
             !dscomm_store_set(store, "net/1", there, sizeof there - 1) &&
             !dscomm_store_set(store, "net/2", there, sizeof there - 1));
    engine_open(store);
    next = data;
    end = data + size;
    while (next < end)
        command();
    for (int i = 0; i < REQUESTS; i++)
        call_end(&calls[i]);
    net_quiesce(engine);
    net_close(engine);
    return 0;
}
