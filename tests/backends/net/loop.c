/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend loop: a wire that promises no more than it must. Above the wire tcp,
 * which carries its frames, it holds frames for some polls, lets unordered ones
 * overtake others and be overtaken, and hands payloads to the engine in parts,
 * side by side where the order is free. It writes some long messages to exposed
 * memory itself, as a device would, and never to memory that was concealed.
 * DSCOMM_LOOP_SEED chooses how. */
#include "config.h"

#include "backends/net/tcp/tcp.h"

#include <stdatomic.h>
#include <string.h>

#define HEADER DSCOMM_WIRE_HEADER
#define HELD_ONE_OF 4 /* so many frames, one is held */
#define HELD_POLLS 40 /* at most */
#define WHOLE_ONE_OF 4 /* so many payloads, one is not in parts */
#define EXPOSE_ONE_OF 2 /* so many memories, one can be exposed */
#define PUT_MOST 4 /* so many pieces of it, all but one are put */
#define PAUSE_US 10 /* wait, while frames are held */
/* What the header of a frame of the wire below has behind its length. */
#define IS_UNORDERED 1
#define IS_PUT 2

enum { SETTING_SEED };

static const dscomm_setting_t settings[] = {
    [SETTING_SEED] = {"DSCOMM_LOOP_SEED", DSCOMM_SETTING_INT, "1", 0, INT32_MAX,
                      NULL, "Chooses delays and orders of backend loop."},
    {.name = NULL},
};

/* Where a frame that is put goes; in the place of its header. */
typedef struct {
    uint64_t exposed; /* number */
    uint64_t offset;
    uint32_t tag;
} put_t;
G_STATIC_ASSERT(sizeof(put_t) <= HEADER);

/* A frame of the engine. below is the frame of the wire below that carries it;
 * its payload is packed, the header and the payload of frame. */
typedef struct {
    dscomm_wire_frame_t below;
    dscomm_wire_frame_t *frame;
    int peer;
    uint64_t due; /* number of the poll */
    bool is_put;
    put_t put;
    unsigned char packed[];
} sending_t;

/* A frame that has arrived from the wire below; the engine's sink is NULL
 * before its first part. */
typedef struct {
    dscomm_wire_sink_t below;
    dscomm_wire_sink_t *sink;
    uint64_t due;
    bool unordered, whole, is_put;
    size_t put_done; /* bytes of a put that are in their place */
    unsigned char packed[];
} arriving_t;

/* Memory to which peers may write. */
typedef struct {
    uint64_t number;
    char *memory;
} exposed_t;

typedef struct {
    /* sending_t: in order; in any order; dropped by the wire below */
    GQueue sends, loose_sends, dropped;
    /* arriving_t: incomplete in the wire below; complete, in order or not */
    GQueue incomplete, arrivals, loose_arrivals;
    bool lost, reported;
    dscomm_failure_kind_t kind;
    char *why;
} peer_t;

typedef struct {
    dscomm_wire_args_t args;
    void *below;
    GRand *random;
    uint64_t now; /* number of the poll */
    atomic_uint held; /* frames */
    unsigned depth;
    peer_t *peers;
    GHashTable *exposed; /* exposed_t by number */
    uint64_t exposures;
} loop_t;

static uint64_t due_choose(loop_t *loop)
{
    const bool hold = g_rand_int_range(loop->random, 0, HELD_ONE_OF) == 0;

    return loop->now +
           (hold ? (uint64_t)g_rand_int_range(loop->random, 1, HELD_POLLS) : 0);
}

static uint64_t bytes_of(const unsigned char *header)
{
    uint64_t little;

    memcpy(&little, header, sizeof little);
    return GUINT64_FROM_LE(little);
}

/* Sending. */

static sending_t *frame_hold(loop_t *loop, int p, dscomm_wire_frame_t *frame)
{
    peer_t *peer = &loop->peers[p];
    sending_t *sending = g_new0(sending_t, 1);

    sending->frame = frame;
    sending->due = due_choose(loop);
    loop->held++;
    g_queue_push_tail(frame->unordered ? &peer->loose_sends : &peer->sends,
                      sending);
    return sending;
}

static void loop_post(void *wire, int p, dscomm_wire_frame_t *frame)
{
    frame_hold(wire, p, frame);
}

/* A key is the number of the exposure. */

static void *loop_expose(void *wire, int p, void *memory, size_t bytes,
                         unsigned char *key)
{
    loop_t *loop = wire;
    exposed_t *exposed;

    (void)bytes;
    if (p < 0 || g_rand_int_range(loop->random, 0, EXPOSE_ONE_OF))
        return NULL;
    exposed = g_new(exposed_t, 1);
    *exposed = (exposed_t){.number = ++loop->exposures, .memory = memory};
    memset(key, 0, DSCOMM_WIRE_KEY);
    memcpy(key, &exposed->number, sizeof exposed->number);
    g_hash_table_insert(loop->exposed, &exposed->number, exposed);
    return exposed;
}

static void loop_conceal(void *wire, int p, void *exposed, int complete)
{
    (void)p;
    (void)complete;
    g_hash_table_remove(((loop_t *)wire)->exposed,
                        &((exposed_t *)exposed)->number);
}

static int loop_put(void *wire, int p, dscomm_wire_frame_t *frame,
                    const dscomm_wire_put_t *put)
{
    loop_t *loop = wire;
    sending_t *sending;

    if (!g_rand_int_range(loop->random, 0, PUT_MOST))
        return 0;
    sending = frame_hold(loop, p, frame);
    sending->is_put = true;
    sending->put = (put_t){.offset = put->offset, .tag = put->tag};
    memcpy(&sending->put.exposed, put->key, sizeof sending->put.exposed);
    return 1;
}

/* No frame is pinned. */
static void loop_stop(void *wire, int p, dscomm_wire_frame_t *frame)
{
    (void)wire;
    (void)p;
    (void)frame;
}

/* Gives a frame to the wire below. */
static void frame_pass(loop_t *loop, int p, sending_t *sending)
{
    dscomm_wire_frame_t *frame = sending->frame;
    sending_t *packed;
    const uint64_t bytes = GUINT64_TO_LE(HEADER + (uint64_t)frame->bytes);

    loop->held--;
    if (sending->is_put && !frame->data) { /* it was taken back */
        g_free(sending);
        loop->args.calls->sent(loop->args.arg, frame);
        return;
    }
    packed = g_malloc0(sizeof *packed + HEADER + frame->bytes);
    packed->frame = frame;
    packed->peer = p;
    memcpy(packed->packed, frame->header, HEADER);
    if (sending->is_put)
        memcpy(packed->packed, &sending->put, sizeof sending->put);
    if (frame->bytes)
        memcpy(packed->packed + HEADER, frame->data, frame->bytes);
    packed->below.data = packed->packed;
    packed->below.bytes = HEADER + frame->bytes;
    packed->below.unordered = frame->unordered;
    memcpy(packed->below.header, &bytes, sizeof bytes);
    if (frame->unordered)
        packed->below.header[sizeof bytes] |= IS_UNORDERED;
    if (sending->is_put)
        packed->below.header[sizeof bytes] |= IS_PUT;
    g_free(sending);
    tcp_wire.post(loop->below, p, &packed->below);
}

static void peer_send(loop_t *loop, int p)
{
    peer_t *peer = &loop->peers[p];
    sending_t *sending;

    while ((sending = g_queue_peek_head(&peer->sends)) != NULL &&
           sending->due <= loop->now)
        frame_pass(loop, p, g_queue_pop_head(&peer->sends));
    for (guint n = g_queue_get_length(&peer->loose_sends); n; n--) {
        sending = g_queue_pop_head(&peer->loose_sends);
        if (sending->due <= loop->now)
            frame_pass(loop, p, sending);
        else
            g_queue_push_tail(&peer->loose_sends, sending);
    }
}

static void loop_sent(void *arg, dscomm_wire_frame_t *below)
{
    loop_t *loop = arg;
    sending_t *packed = (sending_t *)below;
    dscomm_wire_frame_t *frame = packed->frame;

    g_free(packed);
    loop->args.calls->sent(loop->args.arg, frame);
}

/* Receiving. */

static dscomm_wire_sink_t *loop_arrive(void *arg, int p,
                                       const unsigned char *header)
{
    loop_t *loop = arg;
    const uint64_t bytes = bytes_of(header);
    arriving_t *arriving = g_malloc0(sizeof *arriving + bytes);

    arriving->below.memory = arriving->packed;
    arriving->below.bytes = bytes;
    arriving->unordered = header[sizeof bytes] & IS_UNORDERED;
    arriving->is_put = header[sizeof bytes] & IS_PUT;
    g_queue_push_tail(&loop->peers[p].incomplete, arriving);
    return &arriving->below;
}

static void loop_landed(void *arg, int p, dscomm_wire_sink_t *below)
{
    loop_t *loop = arg;
    peer_t *peer = &loop->peers[p];
    arriving_t *arriving = (arriving_t *)below;

    arriving->due = due_choose(loop);
    arriving->whole = g_rand_int_range(loop->random, 0, WHOLE_ONE_OF) == 0;
    loop->held++;
    g_queue_remove(&peer->incomplete, arriving);
    g_queue_push_tail(arriving->unordered ? &peer->loose_arrivals
                                          : &peer->arrivals,
                      arriving);
}

/* Writes a part of a put to where it goes; true: it was the last one. */
static bool put_write(loop_t *loop, int p, arriving_t *arriving)
{
    const size_t bytes = arriving->below.bytes - HEADER;
    size_t part = bytes - arriving->put_done;
    const exposed_t *exposed;
    put_t put;

    memcpy(&put, arriving->packed, sizeof put);
    exposed = g_hash_table_lookup(loop->exposed, &put.exposed);
    if (!exposed)
        return true;
    if (part > 1 && !arriving->whole)
        part = (size_t)g_rand_int_range(loop->random, 1, (gint32)part + 1);
    memcpy(exposed->memory + put.offset + arriving->put_done,
           arriving->packed + HEADER + arriving->put_done, part);
    arriving->put_done += part;
    if (arriving->put_done < bytes)
        return false;
    loop->args.calls->written(loop->args.arg, p, put.tag, bytes);
    return true;
}

/* Hands a part to the engine; true: it was the last one. */
static bool part_deliver(loop_t *loop, int p, arriving_t *arriving)
{
    const dscomm_wire_calls_t *calls = loop->args.calls;
    dscomm_wire_sink_t *sink = arriving->sink;
    peer_t *peer = &loop->peers[p];
    size_t part;

    if (arriving->due > loop->now)
        return false;
    if (arriving->is_put)
        return put_write(loop, p, arriving);
    if (!sink) {
        sink = calls->arrive(loop->args.arg, p, arriving->packed);
        if (!sink && !peer->lost) {
            peer->lost = true;
            peer->kind = DSCOMM_FAILURE_PROTOCOL;
            peer->why = g_strdup("the engine has refused a frame");
        }
        if (!sink)
            return true;
        sink->done = 0;
        arriving->sink = sink;
    }
    part = sink->bytes - sink->done;
    if (part > 1 && !arriving->whole)
        part = (size_t)g_rand_int_range(loop->random, 1, (gint32)part + 1);
    if (sink->memory && part)
        memcpy((char *)sink->memory + sink->done,
               arriving->packed + HEADER + sink->done, part);
    sink->done += part;
    if (sink->done < sink->bytes)
        return false;
    calls->landed(loop->args.arg, p, sink);
    return true;
}

static void arriving_end(loop_t *loop, arriving_t *arriving)
{
    loop->held--;
    g_free(arriving);
}

static void peer_receive(loop_t *loop, int p)
{
    peer_t *peer = &loop->peers[p];
    arriving_t *arriving;

    while ((arriving = g_queue_peek_head(&peer->arrivals)) != NULL &&
           part_deliver(loop, p, arriving))
        arriving_end(loop, g_queue_pop_head(&peer->arrivals));
    for (guint n = g_queue_get_length(&peer->loose_arrivals); n; n--) {
        arriving = g_queue_pop_head(&peer->loose_arrivals);
        if (part_deliver(loop, p, arriving))
            arriving_end(loop, arriving);
        else
            g_queue_push_tail(&peer->loose_arrivals, arriving);
    }
}

/* The end of a connection. */

static void loop_opened(void *arg, int p)
{
    const loop_t *loop = arg;

    loop->args.calls->opened(loop->args.arg, p);
}

/* The engine learns so after lost, or in close. */
static void loop_dropped(void *arg, dscomm_wire_frame_t *below)
{
    sending_t *packed = (sending_t *)below;

    g_queue_push_tail(&((loop_t *)arg)->peers[packed->peer].dropped, packed);
}

static void loop_lost(void *arg, int p, dscomm_failure_kind_t kind,
                      const char *text)
{
    peer_t *peer = &((loop_t *)arg)->peers[p];

    if (peer->lost)
        return;
    peer->lost = true;
    peer->kind = kind;
    peer->why = g_strdup(text);
}

static void frames_drop(loop_t *loop, peer_t *peer)
{
    GQueue *const queues[] = {&peer->dropped, &peer->sends, &peer->loose_sends};
    sending_t *sending;

    for (size_t i = 0; i < G_N_ELEMENTS(queues); i++)
        while ((sending = g_queue_pop_head(queues[i])) != NULL) {
            loop->args.calls->dropped(loop->args.arg, sending->frame);
            g_free(sending);
            loop->held -= i > 0;
        }
}

/* Frames that have arrived before the end are delivered before. */
static void peer_end(loop_t *loop, int p)
{
    peer_t *peer = &loop->peers[p];

    if (!peer->lost || !g_queue_is_empty(&peer->arrivals) ||
        !g_queue_is_empty(&peer->loose_arrivals))
        return;
    if (!peer->reported)
        loop->args.calls->lost(loop->args.arg, p, peer->kind, peer->why);
    peer->reported = true;
    frames_drop(loop, peer);
}

static const dscomm_wire_calls_t calls = {
    .size = sizeof calls,
    .opened = loop_opened,
    .arrive = loop_arrive,
    .landed = loop_landed,
    .sent = loop_sent,
    .dropped = loop_dropped,
    .lost = loop_lost,
};

static void loop_poll(void *wire)
{
    loop_t *loop = wire;

    loop->now++;
    tcp_wire.poll(loop->below);
    for (int p = 0; p < loop->args.ranks; p++) {
        peer_receive(loop, p);
        peer_send(loop, p);
        peer_end(loop, p);
    }
}

static void loop_wait(void *wire, unsigned timeout_us)
{
    loop_t *loop = wire;

    if (loop->held)
        g_usleep(MIN(timeout_us, PAUSE_US));
    else
        tcp_wire.wait(loop->below, timeout_us);
}

static void loop_wake(void *wire)
{
    tcp_wire.wake(((loop_t *)wire)->below);
}

static dscomm_status_t loop_connect(void *wire, int p, const void *address,
                                    size_t bytes)
{
    return tcp_wire.connect(((loop_t *)wire)->below, p, address, bytes);
}

static size_t loop_address(void *wire, void *buffer)
{
    return tcp_wire.address(((loop_t *)wire)->below, buffer);
}

static size_t loop_unsent(void *wire)
{
    loop_t *loop = wire;

    return loop->held + tcp_wire.unsent(loop->below);
}

static void loop_describe(void *wire, int p, char *text, size_t size)
{
    tcp_wire.describe(((loop_t *)wire)->below, p, text, size);
}

static unsigned loop_depth(void *wire)
{
    return ((loop_t *)wire)->depth;
}

static void loop_close(void *wire)
{
    loop_t *loop = wire;

    if (loop->below)
        tcp_wire.close(loop->below);
    for (int p = 0; p < loop->args.ranks; p++) {
        peer_t *peer = &loop->peers[p];

        frames_drop(loop, peer);
        g_queue_clear_full(&peer->incomplete, g_free);
        g_queue_clear_full(&peer->arrivals, g_free);
        g_queue_clear_full(&peer->loose_arrivals, g_free);
        g_free(peer->why);
    }
    g_rand_free(loop->random);
    g_hash_table_unref(loop->exposed);
    g_free(loop->peers);
    g_free(loop);
}

static dscomm_status_t loop_wire_open(const dscomm_wire_args_t *args,
                                      void **ret_wire)
{
    loop_t *loop = g_new0(loop_t, 1);
    dscomm_wire_args_t below = *args;
    int64_t seed = 0;
    dscomm_status_t status;

    loop->args = *args;
    loop->peers = g_new0(peer_t, (gsize)args->ranks);
    loop->exposed =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    status = dscomm_setting_number(&settings[SETTING_SEED], &seed);
    loop->random =
        g_rand_new_with_seed((guint32)(seed * args->ranks + args->rank));
    loop->depth = 1 + (unsigned)(seed % 4);
    below.calls = &calls;
    below.arg = loop;
    if (status == DSCOMM_OK)
        status = tcp_wire.open(&below, &loop->below);
    if (status < 0) {
        loop_close(loop);
        return status;
    }
    *ret_wire = loop;
    return DSCOMM_OK;
}

static const dscomm_wire_ops_t loop_wire = {
    .size = sizeof loop_wire,
    .name = "loop",
    .open = loop_wire_open,
    .close = loop_close,
    .address = loop_address,
    .connect = loop_connect,
    .post = loop_post,
    .poll = loop_poll,
    .unsent = loop_unsent,
    .wait = loop_wait,
    .wake = loop_wake,
    .describe = loop_describe,
    .depth = loop_depth,
    .expose = loop_expose,
    .conceal = loop_conceal,
    .put = loop_put,
    .stop = loop_stop,
};

DSCOMM_WIRE_SLOTS(slots, loop_wire);

DSCOMM_BACKEND_EXPORT const dscomm_backend_t dscomm_backend_loop = {
    .abi = DSCOMM_BACKEND_ABI,
    .name = "loop",
    .ops = &slots,
    .settings = settings,
};
