/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call needs before it begins, and leaves to the next one: packets,
 * memory, places for works. */
#include "config.h"

#include "compression/device.h"
#include "compression/exchange.h"

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

    if (!x) {
        x = g_new0(dscomm_exchange_t, 1);
        x->parts = g_array_new(FALSE, FALSE, sizeof(part_t));
        x->segments = g_array_new(FALSE, FALSE, sizeof(segment_t));
        x->packets = g_array_new(FALSE, FALSE, sizeof(packet_t));
        x->sends = g_ptr_array_new();
        x->gathers = g_ptr_array_new();
        x->spreads = g_ptr_array_new();
    }
    x->next = NULL;
    x->channel = channel;
    x->queue = NULL;
    x->reduced = x->spread = x->decoded = x->ready = x->sent = 0;
    x->awaited = NULL;
    x->since = x->seen = 0;
    return x;
}

static void free_memory(dscomm_exchange_t *x)
{
    if (x->pinned)
        dscomm_priv_device_table()->release(x->pinned, 1, x->memory);
    else
        free(x->memory);
    x->memory = NULL;
    x->pinned = NULL;
    x->room = 0;
}

void dscomm_priv_exchange_free(dscomm_exchange_t *x)
{
    while (x) {
        dscomm_exchange_t *next = x->next;

        g_array_free(x->parts, TRUE);
        g_array_free(x->segments, TRUE);
        g_array_free(x->packets, TRUE);
        g_ptr_array_free(x->sends, TRUE);
        g_ptr_array_free(x->gathers, TRUE);
        g_ptr_array_free(x->spreads, TRUE);
        free_memory(x);
        g_free(x);
        x = next;
    }
}

void dscomm_priv_exchange_retire(dscomm_exchange_t *x)
{
    dscomm_channel_t *channel = x->channel;

    for (size_t i = 0; i < x->parts->len; i++)
        dscomm_priv_device_end(part_at(x, i));
    pthread_mutex_lock(&channel->idle_lock);
    for (size_t i = 0; i < x->parts->len; i++)
        g_atomic_int_set(&part_at(x, i)->c->busy, 0);
    g_array_set_size(x->parts, 0);
    g_array_set_size(x->segments, 0);
    g_array_set_size(x->packets, 0);
    g_ptr_array_set_size(x->sends, 0);
    g_ptr_array_set_size(x->gathers, 0);
    g_ptr_array_set_size(x->spreads, 0);
    x->next = channel->idle;
    channel->idle = x;
    pthread_mutex_unlock(&channel->idle_lock);
}

/* A packet grows until it is long enough. */
static void add_segment(dscomm_exchange_t *x, const segment_t *segment)
{
    packet_t *last = x->packets->len ? packet_at(x, x->packets->len - 1) : NULL;
    packet_t packet = {x->segments->len, x->segments->len + 1, segment->offset,
                       segment->bytes};

    if (last && last->bytes < PACKET_BYTES) {
        last->last++;
        last->bytes += segment->bytes;
    } else {
        g_array_append_val(x->packets, packet);
    }
    g_array_append_vals(x->segments, segment, 1);
}

/* A row is cut between blocks. */
static void cut(dscomm_exchange_t *x, size_t index)
{
    const part_t *part = part_at(x, index);
    const dscomm_compressor_t *c = part->c;
    size_t block = c->codec->bytes(&c->args, DSCOMM_CODEC_BLOCK);
    size_t step =
        MAX(PACKET_BYTES / MAX(block, 1), 1) * (size_t)DSCOMM_CODEC_BLOCK;
    size_t at = 0;

    for (size_t from = 0; from < c->chunk; from += step) {
        size_t to = MIN(from + step, c->chunk);
        size_t end = to == c->chunk ? c->row
                                    : sizeof(dscomm_row_header_t) +
                                          c->codec->bytes(&c->args, to);
        segment_t segment = {index, from, to, part->offset + at, end - at};

        add_segment(x, &segment);
        at = end;
    }
}

void dscomm_priv_exchange_plan(dscomm_exchange_t *x,
                               dscomm_compressor_t *const *compressors,
                               void *const *buffers, size_t n,
                               dscomm_dtype_t dtype)
{
    size_t bytes = 0;

    x->dtype = dtype;
    x->region = 0;
    for (size_t i = 0; i < n; i++) {
        part_t part = {
            .c = compressors[i], .buffer = buffers[i], .offset = x->region};

        g_array_append_val(x->parts, part);
        x->region += part.c->row;
        bytes += part.c->count * dscomm_dtype_size(dtype);
        cut(x, i);
    }
    x->stream = bytes >= STREAM_BYTES;
    x->timeout_ms = dscomm_group_timeout(x->channel->parent);
}

/* What devices copy from and to is memory of their own kind. */
static dscomm_status_t take_memory(dscomm_exchange_t *x, size_t room)
{
    void *memory = NULL;
    int failed;

    free_memory(x);
    if (x->queue)
        failed = dscomm_priv_device_table()->alloc(x->queue, room, 1, &memory);
    else
        failed = posix_memalign(&memory, ALIGNMENT, room);
    if (failed)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for %zu bytes of messages", room);
    x->memory = memset(memory, 0, room);
    x->room = room;
    x->pinned = x->queue;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_exchange_room(dscomm_exchange_t *x)
{
    size_t n = (size_t)x->channel->ranks, works = n * x->packets->len;
    size_t room = 3 * n * x->region;
    dscomm_status_t status = DSCOMM_OK;

    if (room > x->room || (x->queue && !x->pinned))
        status = take_memory(x, room);
    if (status < 0)
        return status;
    x->out = x->memory;
    x->in = x->out + n * x->region;
    x->results = x->in + n * x->region;
    g_ptr_array_set_size(x->gathers, (gint)works);
    g_ptr_array_set_size(x->spreads, (gint)works);
    g_ptr_array_set_size(x->sends, 2 * (gint)works);
    return DSCOMM_OK;
}
