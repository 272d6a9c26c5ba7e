/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call needs before it begins, and leaves to the next one: packets,
 * memory, places for works. */
#include "config.h"

#include "compression/device/device.h"
#include "compression/exchange/exchange.h"

#include <dscomm/dscomm.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_BYTES ((size_t)256 << 10)
/* Longer outputs leave nothing in the caches that is worth keeping. */
#define STREAM_BYTES ((size_t)16 << 20)
#define ALIGNMENT 64

static dscomm_exchange_t *take_idle(dscomm_channel_t *channel)
{
    dscomm_exchange_t *x;

    pthread_mutex_lock(&channel->idle_lock);
    x = channel->idle;
    if (x)
        channel->idle = x->next;
    pthread_mutex_unlock(&channel->idle_lock);
    return x;
}

dscomm_exchange_t *dscomm_priv_exchange_new(dscomm_channel_t *channel)
{
    dscomm_exchange_t *x = take_idle(channel);

    if (!x)
        x = g_try_new0(dscomm_exchange_t, 1);
    if (!x)
        return NULL;
    x->part_count = x->segment_count = x->packet_count = 0;
    x->next = NULL;
    x->channel = channel;
    x->gathers = x->spreads = x->sends = x->thanks = NULL;
    x->queue = NULL;
    x->direct = x->shows = x->thanked = 0;
    x->gathered = x->reduced = x->served = x->spread = 0;
    x->fetched = x->decoded = x->ready = x->sent = 0;
    x->awaited = NULL;
    x->since = x->seen = 0;
    return x;
}

static dscomm_status_t free_memory(dscomm_exchange_t *x)
{
    dscomm_status_t status = DSCOMM_OK;

    if (x->pinned)
        status =
            dscomm_priv_device_release(x->pinned, 1, x->memory, x->timeout_ms);
    else
        free(x->memory);
    x->memory = NULL;
    x->pinned = NULL;
    x->room = 0;
    return status;
}

static void destroy(dscomm_exchange_t *x)
{
    g_free(x->plan.at);
    g_free(x->works.at);
    free_memory(x);
    dscomm_priv_device_leave(x);
    g_free(x->sights);
    g_free(x);
}

static void abandon(dscomm_exchange_t *x)
{
    x->channel->windows.abandoned |= x->unfinished != NULL;
    x->next = NULL;
    dscomm_priv_park(x);
}

void dscomm_priv_exchange_free(dscomm_exchange_t *x)
{
    while (x) {
        dscomm_exchange_t *next = x->next;

        if (dscomm_priv_device_settle(x, x->timeout_ms) < 0)
            abandon(x);
        else
            destroy(x);
        x = next;
    }
}

void dscomm_priv_exchange_retire(dscomm_exchange_t *x)
{
    dscomm_channel_t *channel = x->channel;

    for (size_t i = 0; i < x->part_count; i++)
        dscomm_priv_device_end(part_at(x, i));
    dscomm_priv_window_give(channel, &x->mirror.berth);
    pthread_mutex_lock(&channel->idle_lock);
    for (size_t i = 0; i < x->part_count; i++)
        g_atomic_int_set(&part_at(x, i)->c->busy, 0);
    x->part_count = x->segment_count = x->packet_count = 0;
    if (x->abandoned) {
        abandon(x);
    } else {
        x->next = channel->idle;
        channel->idle = x;
    }
    pthread_mutex_unlock(&channel->idle_lock);
}

/* What was there is gone. */
static dscomm_status_t grow(room_t *room, size_t bytes)
{
    if (bytes <= room->bytes)
        return DSCOMM_OK;
    g_free(room->at);
    room->at = g_try_malloc(bytes);
    room->bytes = room->at ? bytes : 0;
    return room->at ? DSCOMM_OK
                    : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                                  "no memory for a plan of %zu bytes", bytes);
}

/* A packet grows until it is long enough. */
static void add_segment(dscomm_exchange_t *x, const segment_t *segment)
{
    packet_t *last = x->packet_count ? packet_at(x, x->packet_count - 1) : NULL;
    packet_t packet = {x->segment_count, x->segment_count + 1, segment->offset,
                       segment->bytes};

    if (last && last->bytes < PACKET_BYTES) {
        last->last++;
        last->bytes += segment->bytes;
    } else {
        x->packets[x->packet_count++] = packet;
    }
    x->segments[x->segment_count++] = *segment;
}

/* The elements of a row that are sent in one piece, whole blocks. */
static size_t step_of(const dscomm_compressor_t *c)
{
    return MAX(PACKET_BYTES / MAX(c->block, 1), 1) * (size_t)DSCOMM_CODEC_BLOCK;
}

/* A row is cut between blocks. */
static void cut(dscomm_exchange_t *x, size_t index)
{
    const part_t *part = part_at(x, index);
    const dscomm_compressor_t *c = part->c;
    size_t step = step_of(c), at = 0;

    for (size_t from = 0; from < c->chunk; from += step) {
        size_t to = MIN(from + step, c->chunk);
        size_t end = to == c->chunk ? c->row
                                    : sizeof(dscomm_row_header_t) +
                                          to / DSCOMM_CODEC_BLOCK * c->block;
        segment_t segment = {index, from, to, part->offset + at, end - at};

        add_segment(x, &segment);
        at = end;
    }
}

/* Places for n parts, and for the pieces that they are cut into. */
static dscomm_status_t take_plan(dscomm_exchange_t *x,
                                 dscomm_compressor_t *const *compressors,
                                 size_t n)
{
    size_t pieces = 0;
    dscomm_status_t status;

    for (size_t i = 0; i < n; i++) {
        size_t step = step_of(compressors[i]);

        pieces +=
            compressors[i]->chunk / step + (compressors[i]->chunk % step != 0);
    }
    status =
        grow(&x->plan, n * sizeof *x->parts +
                           pieces * (sizeof *x->segments + sizeof *x->packets));
    if (status < 0)
        return status;
    x->parts = x->plan.at;
    x->segments = (segment_t *)(x->parts + n);
    x->packets = (packet_t *)(x->segments + pieces);
    return status;
}

uint32_t dscomm_priv_row_signature(const dscomm_compressor_t *c,
                                   dscomm_dtype_t dtype)
{
    const int32_t number = (int32_t)dtype;

    return dscomm_priv_hash(&number, sizeof number, c->signature);
}

dscomm_status_t
dscomm_priv_exchange_plan(dscomm_exchange_t *x,
                          dscomm_compressor_t *const *compressors,
                          void *const *buffers, size_t n, dscomm_dtype_t dtype)
{
    dscomm_status_t status = take_plan(x, compressors, n);
    size_t bytes = 0;

    if (status < 0)
        return status;
    x->dtype = dtype;
    x->region = 0;
    for (size_t i = 0; i < n; i++) {
        x->parts[x->part_count++] = (part_t){
            .c = compressors[i],
            .buffer = buffers[i],
            .offset = x->region,
            .signature = dscomm_priv_row_signature(compressors[i], dtype)};
        x->region += compressors[i]->row;
        bytes += compressors[i]->count * dscomm_dtype_size(dtype);
        cut(x, i);
    }
    x->stream = bytes >= STREAM_BYTES;
    x->timeout_ms = dscomm_group_timeout(x->channel->parent);
    return status;
}

size_t dscomm_priv_packet_bytes(const dscomm_exchange_t *x, size_t p, int rank)
{
    const packet_t *packet = packet_at(x, p);
    const segment_t *last = segment_at(x, packet->last - 1);
    const dscomm_compressor_t *c = part_at(x, last->part)->c;
    size_t to = MIN(dscomm_priv_part_count(c, rank), last->to);
    size_t bytes = last->from ? 0 : sizeof(dscomm_row_header_t);

    if (to > last->from)
        bytes += dscomm_priv_code_bytes(c, to - last->from);
    return packet->bytes - last->bytes + bytes;
}

/* What devices copy from and to is memory of their own kind, as long as there
 * is any: then they do with what there is. */
static void *take_pinned(dscomm_exchange_t *x, size_t room)
{
    void *memory = NULL;
    int code = dscomm_priv_device_table()->alloc(x->queue, room, 1, &memory);

    dscomm_priv_device_asked(&x->unpinned, room, code);
    x->pinned = code ? NULL : x->queue;
    return memory;
}

static dscomm_status_t take_memory(dscomm_exchange_t *x, size_t room)
{
    void *memory = NULL;
    dscomm_status_t status = free_memory(x);

    if (status < 0)
        return status;
    if (x->queue && !dscomm_priv_device_is_short(&x->unpinned, room))
        memory = take_pinned(x, room);
    if (!memory && posix_memalign(&memory, ALIGNMENT, room))
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for %zu bytes of messages", room);
    x->memory = memset(memory, 0, room);
    x->room = room;
    return DSCOMM_OK;
}

size_t dscomm_priv_exchange_works(const dscomm_exchange_t *x)
{
    return (4 * x->packet_count + 2) * (size_t)x->channel->ranks;
}

dscomm_status_t dscomm_priv_exchange_room(dscomm_exchange_t *x)
{
    size_t n = (size_t)x->channel->ranks, works = n * x->packet_count;
    size_t all = dscomm_priv_exchange_works(x), regions = 2 * n * x->region;
    size_t notes = 2 * x->segment_count * sizeof(dscomm_row_header_t);
    size_t room = regions + notes + n; /* no address is NULL */
    dscomm_status_t status = grow(&x->works, all * sizeof *x->sends);

    if (status == DSCOMM_OK &&
        (room > x->room || (x->queue && !x->pinned &&
                            !dscomm_priv_device_is_short(&x->unpinned, room))))
        status = take_memory(x, room);
    if (status < 0)
        return status;
    x->out = x->memory;
    x->in = x->out + n * x->region;
    x->notes = x->memory + regions;
    x->tokens = x->notes + notes;
    x->gathers = x->works.at;
    x->spreads = x->gathers + works;
    x->sends = x->spreads + works;
    x->thanks = x->sends + 2 * works;
    memset(x->gathers, 0, all * sizeof *x->gathers);
    return DSCOMM_OK;
}
