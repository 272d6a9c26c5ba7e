/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as parts: how they are sent, and what is done with those that come. */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"
#include "backends/net/little.h"

#include <errno.h>
#include <string.h>

#define HEADER ((size_t)DSCOMM_WIRE_HEADER)
/* A peer to which nothing was sent for so long is probed. */
#define PROBE_NS (INT64_C(1000) * 1000000)

/* Sending. */

static void queue_add(pair_t *pair, dscomm_wire_frame_t *frame)
{
    frame->next = NULL;
    *pair->queue.last = frame;
    pair->queue.last = &frame->next;
    pair->queue.bytes += HEADER + frame->bytes;
}

static dscomm_wire_frame_t *queue_take(pair_t *pair)
{
    dscomm_wire_frame_t *frame = pair->queue.first;

    pair->queue.first = frame->next;
    if (!pair->queue.first)
        pair->queue.last = &pair->queue.first;
    return frame;
}

static void op_give(verbs_t *verbs, op_t *op)
{
    op->kind = OP_SEND;
    op->reads = false;
    SLIST_INSERT_HEAD(&verbs->sends, op, in_free);
    verbs->free_sends++;
}

void verbs_put_end(verbs_t *verbs, op_t *op, bool succeeded)
{
    dscomm_wire_frame_t *frame = op->frame;

    verbs->pairs[op->peer].flying -= op->bytes;
    if (op->slot && op->reads && succeeded && frame->data)
        memcpy((void *)(uintptr_t)frame->data, op->slot, op->bytes);
    if (op->region)
        verbs_region_drop(op->region);
    if (op->slot)
        op_give(verbs, op);
    else
        SLIST_INSERT_HEAD(&verbs->puts, op, in_free);
    if (succeeded)
        verbs->calls->sent(verbs->args.arg, frame);
    else
        verbs->calls->dropped(verbs->args.arg, frame);
}

static void puts_drop(verbs_t *verbs, struct op_queue *puts)
{
    while (!TAILQ_EMPTY(puts)) {
        op_t *op = TAILQ_FIRST(puts);

        TAILQ_REMOVE(puts, op, in_pair);
        verbs_put_end(verbs, op, false);
    }
}

void verbs_frames_drop(verbs_t *verbs, pair_t *pair)
{
    while (pair->queue.first)
        verbs->calls->dropped(verbs->args.arg, queue_take(pair));
    pair->queue.bytes = 0;
    puts_drop(verbs, &pair->accesses);
    puts_drop(verbs, &pair->writes.waiting);
}

/* Copies as much of a frame as there is room for to a part. */
static size_t frame_copy(dscomm_wire_frame_t *frame, char *to, size_t room)
{
    size_t header = 0, bytes;

    if (!frame->done) {
        if (room < HEADER)
            return 0;
        memcpy(to, frame->header, HEADER);
        header = frame->done = HEADER;
    }
    bytes = MIN(room - header, HEADER + frame->bytes - frame->done);
    if (bytes)
        memcpy(to + header, (const char *)frame->data + frame->done - HEADER,
               bytes);
    frame->done += bytes;
    return header + bytes;
}

/* Fills a part from the queue. Frames that are complete in it have been sent:
 * they are put on a list of their own, because what the engine then posts has
 * to come after this part. */
static size_t part_fill(pair_t *pair, char *to, size_t room,
                        dscomm_wire_frame_t **ret_sent)
{
    dscomm_wire_frame_t **last = ret_sent;
    size_t bytes = 0;

    *last = NULL;
    while (pair->queue.first) {
        dscomm_wire_frame_t *frame = pair->queue.first;
        const size_t copied = frame_copy(frame, to + bytes, room - bytes);

        bytes += copied;
        if (!copied || frame->done < HEADER + frame->bytes)
            break;
        *last = queue_take(pair);
        last = &frame->next;
        *last = NULL;
    }
    pair->queue.bytes -= bytes;
    return bytes;
}

static bool can_send(const verbs_t *verbs, const pair_t *pair)
{
    return pair->state == PAIR_UP && !pair->failed && !verbs->is_down;
}

/* Posts a work request, of op and with its bytes; false: this rank's device
 * does not take it. */
static bool request_post(verbs_t *verbs, op_t *op, const void *data,
                         struct ibv_send_wr *wr)
{
    pair_t *pair = &verbs->pairs[op->peer];
    const bool signals = op->kind != OP_SEND || !op->bytes ||
                         pair->unsignaled + 1 >= SIGNAL_ONE_OF ||
                         verbs->free_sends < SENDS / 2;
    struct ibv_sge part = {.addr = (uintptr_t)data,
                           .length = (uint32_t)op->bytes,
                           .lkey = op->lkey};
    struct ibv_send_wr *bad;
    int error;

    wr->wr_id = (uintptr_t)op;
    if (signals)
        wr->send_flags |= IBV_SEND_SIGNALED;
    if (op->slot && !op->reads && op->bytes <= verbs->max_inline)
        wr->send_flags |= IBV_SEND_INLINE;
    wr->sg_list = &part;
    wr->num_sge = op->bytes > 0;
    error = ibv_post_send(op->kind == OP_PUT ? pair->writes.qp : pair->qp, wr,
                          &bad);
    if (error) {
        verbs_lack(verbs, "no more work requests", error);
        verbs_pair_fail(verbs, op->peer, DSCOMM_FAILURE_RESOURCE,
                        "the device of this rank takes no more work requests");
        return false;
    }
    if (op->kind == OP_PUT) {
        pair->writes.posted++;
        TAILQ_INSERT_TAIL(&pair->writes.flying, op, in_pair);
        return true;
    }
    pair->posted++;
    pair->unsignaled = signals ? 0 : pair->unsignaled + 1;
    TAILQ_INSERT_TAIL(&pair->flying_ops, op, in_pair);
    return true;
}

/* Posts what is in the slot of an op. */
static bool slot_send(verbs_t *verbs, int peer, op_t *op, size_t bytes,
                      struct ibv_send_wr *wr)
{
    op->peer = peer;
    op->bytes = bytes;
    if (!request_post(verbs, op, op->slot, wr)) {
        op_give(verbs, op);
        return false;
    }
    verbs->pairs[peer].flying += bytes;
    return true;
}

/* An op for what is sent to a pair; NULL: none is free. */
static op_t *op_take(verbs_t *verbs, const pair_t *pair)
{
    op_t *op = SLIST_FIRST(&verbs->sends);

    verbs->starved |= !op;
    if (!op || pair->posted >= SEND_DEPTH)
        return NULL;
    SLIST_REMOVE_HEAD(&verbs->sends, in_free);
    verbs->free_sends--;
    return op;
}

#define BACK_SLOTS 0x7f
#define BACK_TELLS 0x40 /* one of these: the part is no frames */
#define BACK_POLLS 0x80
#define BACK_RING 8 /* bits below the parts of the ring */

uint16_t verbs_back_give(pair_t *pair)
{
    const unsigned back = pair->owed | pair->rings.owed << BACK_RING |
                          (pair->rings.polled ? BACK_POLLS : 0);

    pair->owed = 0;
    pair->rings.owed = 0;
    return (uint16_t)back;
}

static bool back_take(pair_t *pair, uint16_t back)
{
    const unsigned slots = back & BACK_SLOTS, parts = back >> BACK_RING;

    if (slots > WINDOW - pair->window || parts > RING_SLOTS - pair->rings.room)
        return false;
    pair->window += slots;
    pair->rings.room += parts;
    pair->rings.is_polled = (back & BACK_POLLS) && pair->rings.rkey;
    return true;
}

/* Sends a part to a slot. One without bytes has no number. */
static void part_send(verbs_t *verbs, int peer, op_t *op, size_t bytes,
                      unsigned tells)
{
    pair_t *pair = &verbs->pairs[peer];
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM,
                             .imm_data =
                                 htobe32((uint32_t)pair->next_sent << 16 |
                                         verbs_back_give(pair) | tells)};

    if (bytes) {
        pair->next_sent++;
        pair->window--;
        pair->has_written = false;
    }
    slot_send(verbs, peer, op, bytes, &wr);
}

/* Fills a part and sends it. */
static void queue_send(verbs_t *verbs, int peer, op_t *op, bool by_ring)
{
    pair_t *pair = &verbs->pairs[peer];
    struct ibv_send_wr wr = {.wr_id = 0};
    dscomm_wire_frame_t *sent, *next;
    const size_t bytes =
        part_fill(pair, op->slot, by_ring ? RING_BYTES : SLOT_BYTES, &sent);

    if (pair->rings.is_polled)
        pair->rings.sent_ns = verbs_now();
    if (by_ring)
        slot_send(verbs, peer, op, verbs_ring_pack(pair, op->slot, bytes, &wr),
                  &wr);
    else
        part_send(verbs, peer, op, bytes, 0);
    for (; sent; sent = next) {
        next = sent->next;
        verbs->calls->sent(verbs->args.arg, sent);
    }
}

/* Lets the device write the first put, which cannot be taken back then. */
static void put_send(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    op_t *op = TAILQ_FIRST(&pair->writes.waiting);
    dscomm_wire_frame_t *frame = op->frame;
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .imm_data = htobe32(op->tag),
        .wr.rdma = {.remote_addr = op->remote, .rkey = op->rkey}};

    TAILQ_REMOVE(&pair->writes.waiting, op, in_pair);
    if (!frame->data) {
        verbs_put_end(verbs, op, true);
    } else if (request_post(verbs, op, frame->data, &wr)) {
        frame->done = 1;
        frame->pinned = 1;
        pair->window--;
    } else { /* it is dropped with the connection */
        TAILQ_INSERT_HEAD(&pair->writes.waiting, op, in_pair);
    }
}

/* Sends the puts that wait. */
static void puts_send(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    writes_t *writes = &pair->writes;

    while (writes->state == WRITES_UP && !TAILQ_EMPTY(&writes->waiting) &&
           pair->window && can_send(verbs, pair) &&
           writes->posted < WRITE_DEPTH)
        put_send(verbs, peer);
}

/* Sends what is due about a connection for puts, which is asked for when puts
 * wait for it. */
static void tells_send(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    op_t *op;

    if (pair->writes.state == WRITES_NONE &&
        !TAILQ_EMPTY(&pair->writes.waiting) && can_send(verbs, pair))
        verbs_writes_open(verbs, peer);
    while ((pair->writes.ask_due || pair->writes.answer_due) && pair->window &&
           can_send(verbs, pair) && (op = op_take(verbs, pair)) != NULL) {
        verbs_tell_pack(pair, op->slot);
        part_send(verbs, peer, op, TELL_BYTES, BACK_TELLS);
    }
}

/* Returns an op for an access whose data are copied by a slot; NULL: none is
 * free. */
static op_t *access_copy(verbs_t *verbs, op_t *access)
{
    const pair_t *pair = &verbs->pairs[access->peer];
    dscomm_wire_frame_t *frame = access->frame;
    op_t *op = op_take(verbs, pair);

    if (!op)
        return NULL;
    op->kind = OP_ACCESS;
    op->peer = access->peer;
    op->bytes = access->bytes;
    op->frame = frame;
    op->region = NULL;
    op->reads = access->reads;
    op->remote = access->remote;
    op->rkey = access->rkey;
    if (!op->reads)
        memcpy(op->slot, frame->data, op->bytes);
    frame->done = 1;
    SLIST_INSERT_HEAD(&verbs->puts, access, in_free);
    return op;
}

/* Lets the device make the first access; false: it cannot now. */
static bool access_send(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    op_t *op = TAILQ_FIRST(&pair->accesses);
    dscomm_wire_frame_t *frame = op->frame;
    struct ibv_send_wr wr = {
        .opcode = op->reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
        .wr.rdma = {.remote_addr = op->remote, .rkey = op->rkey}};

    /* The rest is for what gives slots back: it is not to wait for accesses. */
    if (pair->posted >= SEND_DEPTH - SPARE)
        return false;
    TAILQ_REMOVE(&pair->accesses, op, in_pair);
    if (!frame->data) {
        verbs_put_end(verbs, op, true);
        return true;
    }
    if (op->region) {
        frame->done = 1;
        frame->pinned = 1;
    } else {
        op_t *by_slot = access_copy(verbs, op);

        if (!by_slot) {
            TAILQ_INSERT_HEAD(&pair->accesses, op, in_pair);
            return false;
        }
        op = by_slot;
    }
    if (!request_post(verbs, op, op->region ? frame->data : op->slot, &wr)) {
        /* It is dropped with the connection. */
        TAILQ_INSERT_HEAD(&pair->accesses, op, in_pair);
        return false;
    }
    pair->has_written |= !op->reads;
    return true;
}

/* Frames that are posted after an access are sent after it. What is due about
 * a connection for puts comes first: there may be frames without end. */
void verbs_send(verbs_t *verbs, int peer)
{
    pair_t *pair = &verbs->pairs[peer];
    bool follows = true;
    op_t *op;

    tells_send(verbs, peer);
    while (follows && !TAILQ_EMPTY(&pair->accesses))
        follows = can_send(verbs, pair) && access_send(verbs, peer);
    while (follows && pair->queue.first && can_send(verbs, pair)) {
        const bool by_ring = verbs_ring_fits(pair);

        if ((!by_ring && !pair->window) || (op = op_take(verbs, pair)) == NULL)
            break;
        queue_send(verbs, peer, op, by_ring);
    }
    puts_send(verbs, peer);
    if ((pair->owed >= WINDOW / 2 || pair->rings.owed >= RING_SLOTS / 2) &&
        can_send(verbs, pair) && (op = op_take(verbs, pair)) != NULL)
        part_send(verbs, peer, op, 0, 0);
}

void verbs_post(void *wire, int peer, dscomm_wire_frame_t *frame)
{
    verbs_t *verbs = wire;
    pair_t *pair = &verbs->pairs[peer];

    frame->done = 0;
    queue_add(pair, frame);
    if (pair->state == PAIR_LOST)
        verbs->failed++; /* the next poll drops it */
    else if (pair->queue.first == frame)
        verbs_send(verbs, peer);
}

static void op_end(verbs_t *verbs, pair_t *pair, op_t *op, bool succeeded)
{
    TAILQ_REMOVE(&pair->flying_ops, op, in_pair);
    pair->posted--;
    if (op->kind != OP_SEND) {
        verbs_put_end(verbs, op, succeeded);
        return;
    }
    pair->flying -= op->bytes;
    op_give(verbs, op);
}

/* A failed request has a completion in any case, and so have those after it; it
 * also stands for those before it, which have succeeded. */
void verbs_ops_ended(verbs_t *verbs, op_t *op, bool succeeded)
{
    pair_t *pair = &verbs->pairs[op->peer];
    op_t *first;

    pair->sent_ns = verbs_now();
    while ((first = TAILQ_FIRST(&pair->flying_ops)) != op)
        op_end(verbs, pair, first, true);
    pair->unsignaled = MIN(pair->unsignaled, pair->posted - 1);
    op_end(verbs, pair, op, succeeded);
}

void verbs_ops_drop(verbs_t *verbs, pair_t *pair)
{
    while (!TAILQ_EMPTY(&pair->flying_ops))
        op_end(verbs, pair, TAILQ_FIRST(&pair->flying_ops), false);
    while (!TAILQ_EMPTY(&pair->writes.flying))
        verbs_put_completed(verbs, TAILQ_FIRST(&pair->writes.flying), false);
}

/* Sends nothing, which the device of the peer acknowledges. */
static void nothing_send(verbs_t *verbs, int peer)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    op_t *op = op_take(verbs, &verbs->pairs[peer]);

    if (op)
        slot_send(verbs, peer, op, 0, &wr);
}

void verbs_signal(verbs_t *verbs, int peer)
{
    const pair_t *pair = &verbs->pairs[peer];

    if (can_send(verbs, pair) && pair->unsignaled)
        nothing_send(verbs, peer);
}

void verbs_probe(verbs_t *verbs, int peer, int64_t now)
{
    const pair_t *pair = &verbs->pairs[peer];

    if (can_send(verbs, pair) && pair->posted == pair->unsignaled &&
        now - pair->sent_ns >= PROBE_NS)
        nothing_send(verbs, peer);
}

/* Keys: u64 address, u64 bytes, u32 rkey, little-endian. */

static void key_write(unsigned char *key, const void *memory, size_t bytes,
                      const region_t *region)
{
    memset(key, 0, DSCOMM_WIRE_KEY);
    put_64(key, (uintptr_t)memory);
    put_64(key + 8, bytes);
    put_32(key + 16, verbs_region_rkey(region));
}

void *verbs_expose(void *wire, int peer, void *memory, size_t bytes,
                   unsigned char *key)
{
    const verbs_t *verbs = wire;
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                       (peer < 0 ? IBV_ACCESS_REMOTE_READ : 0);
    region_t *region;

    if (peer < 0 && !verbs->own.reads)
        return NULL;
    region = verbs_region_take(verbs->regions, memory, bytes, access);
    if (region)
        key_write(key, memory, bytes, region);
    return region;
}

void *verbs_expose_device(void *wire, const dscomm_dma_buf_t *memory,
                          unsigned char *key)
{
    const verbs_t *verbs = wire;
    region_t *region = NULL;

    if (verbs->own.reads)
        region = verbs_region_take_device(verbs->regions, memory,
                                          IBV_ACCESS_LOCAL_WRITE |
                                              IBV_ACCESS_REMOTE_WRITE |
                                              IBV_ACCESS_REMOTE_READ);
    else
        dscomm_log(DSCOMM_LOG_INFO, "ibverbs",
                   "%s serves no reads: memory of devices is not registered",
                   ibv_get_device_name(verbs->context->device));
    if (region)
        key_write(key, memory->address, memory->bytes, region);
    return region;
}

void verbs_conceal(void *wire, int peer, void *exposed, int complete)
{
    (void)wire;
    (void)peer;
    if (complete)
        verbs_region_drop(exposed);
    else
        verbs_region_end(exposed);
}

/* An op without a slot; the last freed one, or a new one. */
static op_t *put_op(verbs_t *verbs)
{
    op_t *op = SLIST_FIRST(&verbs->puts);

    if (op)
        SLIST_REMOVE_HEAD(&verbs->puts, in_free);
    else
        op = g_new0(op_t, 1);
    return op;
}

int verbs_put(void *wire, int peer, dscomm_wire_frame_t *frame,
              const dscomm_wire_put_t *put)
{
    verbs_t *verbs = wire;
    pair_t *pair = &verbs->pairs[peer];
    struct op_queue *puts =
        put->is_access ? &pair->accesses : &pair->writes.waiting;
    const uint64_t bytes = get_64(put->key + 8);
    const bool by_slot =
        put->is_access && !put->registered && frame->bytes <= SLOT_BYTES;
    region_t *region = NULL;
    op_t *op;

    if ((!put->is_access &&
         (!can_send(verbs, pair) || pair->writes.state >= WRITES_ENDING)) ||
        (put->reads && verbs->device.max_qp_init_rd_atom <= 0) ||
        frame->bytes > verbs->port.max_msg_sz || put->offset > bytes ||
        frame->bytes > bytes - put->offset)
        return 0;
    if (put->registered)
        region = verbs_region_share(put->registered);
    else if (!put->is_access)
        region = verbs_region_take(verbs->regions, put->message, put->bytes, 0);
    else if (!by_slot)
        region = verbs_region_take(verbs->regions, frame->data, frame->bytes,
                                   put->reads ? IBV_ACCESS_LOCAL_WRITE : 0);
    if (!by_slot && !region)
        return 0;
    op = put_op(verbs);
    op->kind = put->is_access ? OP_ACCESS : OP_PUT;
    op->peer = peer;
    op->bytes = frame->bytes;
    op->frame = frame;
    op->region = region;
    op->lkey = region ? verbs_region_lkey(region) : 0;
    op->reads = put->reads;
    op->remote = get_64(put->key) + put->offset;
    op->rkey = get_32(put->key + 16);
    op->tag = put->tag;
    frame->done = 0;
    pair->flying += op->bytes;
    TAILQ_INSERT_TAIL(puts, op, in_pair);
    if (pair->state == PAIR_LOST)
        verbs->failed++; /* the next poll drops it */
    else if (TAILQ_FIRST(puts) == op)
        verbs_send(verbs, peer);
    return 1;
}

/* The device then refuses what it reads, which ends the connection. */
void verbs_stop(void *wire, int peer, dscomm_wire_frame_t *frame)
{
    const verbs_t *verbs = wire;
    op_t *op;

    TAILQ_FOREACH (op, &verbs->pairs[peer].flying_ops, in_pair)
        if (op->kind == OP_ACCESS && op->frame == frame && op->region) {
            verbs_region_end(op->region);
            op->region = NULL;
        }
}

/* Receiving. */

void verbs_slot_post(verbs_t *verbs, op_t *op)
{
    struct ibv_sge slot = {
        .addr = (uintptr_t)op->slot, .length = SLOT_BYTES, .lkey = op->lkey};
    struct ibv_recv_wr wr = {
        .wr_id = (uintptr_t)op, .sg_list = &slot, .num_sge = 1};
    struct ibv_recv_wr *bad;
    const int error = ibv_post_srq_recv(verbs->srq, &wr, &bad);

    if (error)
        verbs_lack(verbs, "no more receives", error);
}

/* Gives bytes of a part to the engine; false: they make no sense. */
static bool bytes_use(verbs_t *verbs, int peer, const char *from, size_t bytes)
{
    pair_t *pair = &verbs->pairs[peer];

    while (bytes && pair->state == PAIR_UP && !pair->broken) {
        size_t some;

        if (!pair->sink) {
            if (bytes < HEADER)
                return false;
            pair->sink = verbs->calls->arrive(verbs->args.arg, peer,
                                              (const unsigned char *)from);
            if (!pair->sink ||
                pair->sink->bytes != get_64((const unsigned char *)from))
                return false;
            pair->sink->done = 0;
            from += HEADER;
            bytes -= HEADER;
        }
        some = MIN(bytes, pair->sink->bytes - pair->sink->done);
        if (pair->sink->memory && some)
            memcpy((char *)pair->sink->memory + pair->sink->done, from, some);
        pair->sink->done += some;
        from += some;
        bytes -= some;
        if (pair->sink->done == pair->sink->bytes) {
            dscomm_wire_sink_t *sink = pair->sink;

            pair->sink = NULL;
            verbs->calls->landed(verbs->args.arg, peer, sink);
        }
    }
    return true;
}

void verbs_written(verbs_t *verbs, int peer, op_t *op, size_t bytes,
                   uint32_t tag)
{
    verbs->pairs[peer].owed++;
    verbs_slot_post(verbs, op);
    if (!verbs->pairs[peer].broken)
        verbs->calls->written(verbs->args.arg, peer, tag, bytes);
    verbs_send(verbs, peer);
}

static void part_refuse(verbs_t *verbs, int peer)
{
    verbs->pairs[peer].broken = true;
    verbs_pair_fail(verbs, peer, DSCOMM_FAILURE_DIED,
                    "it has sent a frame that makes no sense");
}

bool verbs_part_use(verbs_t *verbs, int peer, const char *from, size_t bytes,
                    uint16_t back)
{
    if (back_take(&verbs->pairs[peer], back) &&
        bytes_use(verbs, peer, from, bytes))
        return true;
    part_refuse(verbs, peer);
    return false;
}

/* A part without frames. */
static void part_tells(verbs_t *verbs, int peer, const char *from, size_t bytes,
                       uint16_t back)
{
    pair_t *pair = &verbs->pairs[peer];

    if (pair->state != PAIR_UP || pair->broken)
        return;
    if (!back_take(pair, back) || !verbs_told(verbs, peer, from, bytes))
        part_refuse(verbs, peer);
}

/* The device has written the parts of the ring that were sent before this one.
 */
void verbs_part(verbs_t *verbs, int peer, op_t *op, size_t bytes,
                uint32_t immediate)
{
    pair_t *pair = &verbs->pairs[peer];
    uint16_t back = (uint16_t)immediate;

    if (bytes) {
        while (pair->next_came != immediate >> 16 && pair->rings.polled &&
               verbs_ring_take(verbs, peer))
            continue;
        if (pair->next_came != immediate >> 16)
            back = BACK_NONSENSE;
        pair->next_came++;
        pair->owed++;
        verbs_ring_warm(verbs, peer, bytes);
    }
    if (bytes && (back & BACK_TELLS) && back != BACK_NONSENSE)
        part_tells(verbs, peer, op->slot, bytes, back ^ BACK_TELLS);
    else
        verbs_part_use(verbs, peer, op->slot, bytes, back);
    verbs_slot_post(verbs, op);
    verbs_send(verbs, peer);
}
