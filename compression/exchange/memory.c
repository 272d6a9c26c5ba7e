/* SPDX-License-Identifier: BSD-3-Clause */
/* Idle calls of a channel: their memory and room for works. */
#include "config.h"

#include "compression/device/device.h"
#include "compression/exchange/exchange.h"

#include <dscomm/dscomm.h>
#include <stdlib.h>
#include <string.h>

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
    x->gathers = x->spreads = x->sends = x->acks = NULL;
    x->queue = NULL;
    x->direct = x->shows = x->acknowledged = 0;
    x->gathered = x->reduced = x->served = x->spread = 0;
    x->fetched = x->decoded = x->ready = x->sent = 0;
    x->awaited = NULL;
    x->since_ns = x->seen_ns = 0;
    return x;
}

static dscomm_status_t exchange_free_memory(dscomm_exchange_t *x)
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

static void exchange_destroy(dscomm_exchange_t *x)
{
    g_free(x->plan.at);
    g_free(x->works.at);
    exchange_free_memory(x);
    dscomm_priv_device_leave(x);
    g_free(x->mapped);
    g_free(x);
}

static void exchange_abandon(dscomm_exchange_t *x)
{
    x->channel->windows.abandoned |= x->unfinished != NULL;
    x->next = NULL;
    dscomm_priv_retain(x);
}

void dscomm_priv_exchange_free(dscomm_exchange_t *x)
{
    while (x) {
        dscomm_exchange_t *next = x->next;

        if (dscomm_priv_device_settle(x, x->timeout_ms) < 0)
            exchange_abandon(x);
        else
            exchange_destroy(x);
        x = next;
    }
}

void dscomm_priv_exchange_retire(dscomm_exchange_t *x)
{
    dscomm_channel_t *channel = x->channel;

    for (size_t i = 0; i < x->part_count; i++)
        dscomm_priv_device_end(part_at(x, i));
    dscomm_priv_window_give(channel, &x->mirror.slot);
    pthread_mutex_lock(&channel->idle_lock);
    for (size_t i = 0; i < x->part_count; i++)
        g_atomic_int_set(&part_at(x, i)->c->busy, 0);
    x->part_count = x->segment_count = x->packet_count = 0;
    if (x->abandoned) {
        exchange_abandon(x);
    } else {
        x->next = channel->idle;
        channel->idle = x;
    }
    pthread_mutex_unlock(&channel->idle_lock);
}

/* Memory for copies from and to a device is pinned, if possible; if not,
 * ordinary memory is used. */
static void *take_pinned(dscomm_exchange_t *x, size_t room)
{
    void *memory = NULL;
    int code = dscomm_priv_device_table()->alloc(x->queue, room, 1, &memory);

    dscomm_priv_device_note_try(&x->unpinned, room, code);
    x->pinned = code ? NULL : x->queue;
    return memory;
}

static dscomm_status_t exchange_allocate(dscomm_exchange_t *x, size_t room)
{
    void *memory = NULL;
    dscomm_status_t status = exchange_free_memory(x);

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
    dscomm_status_t status =
        dscomm_priv_room_grow(&x->works, all * sizeof *x->sends);

    if (status == DSCOMM_OK &&
        (room > x->room || (x->queue && !x->pinned &&
                            !dscomm_priv_device_is_short(&x->unpinned, room))))
        status = exchange_allocate(x, room);
    if (status < 0)
        return status;
    x->out = x->memory;
    x->in = x->out + n * x->region;
    x->notes = x->memory + regions;
    x->tokens = x->notes + notes;
    x->gathers = x->works.at;
    x->spreads = x->gathers + works;
    x->sends = x->spreads + works;
    x->acks = x->sends + 2 * works;
    memset(x->gathers, 0, all * sizeof *x->gathers);
    return DSCOMM_OK;
}
