/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds where the buffers of a call are, which parts a device computes, and how
 * their rows travel. A part in device memory that the device cannot compute
 * uses a copy on the host. */
#include "config.h"

#include "compression/codecs/codecs.h"
#include "compression/device/device.h"

#include <dscomm/dscomm.h>
#include <string.h>

int dscomm_priv_device_format(dscomm_dtype_t dtype)
{
    return dtype == DSCOMM_FLOAT32    ? DSCOMM_DEVICE_FLOAT32
           : dtype == DSCOMM_FLOAT16  ? DSCOMM_DEVICE_FLOAT16
           : dtype == DSCOMM_BFLOAT16 ? DSCOMM_DEVICE_BFLOAT16
                                      : -1;
}

/* 1 if a device can compute the part. */
static int part_suits(const dscomm_exchange_t *x, const part_t *part)
{
    const dscomm_compressor_t *c = part->c;

    return c->codec == &dscomm_priv_codec_onebit && c->feedback && !c->mask &&
           !c->recoverable && dscomm_priv_device_format(x->dtype) >= 0 &&
           (uintptr_t)part->buffer % dscomm_dtype_size(x->dtype) == 0;
}

static size_t part_bytes(const dscomm_exchange_t *x, const part_t *part)
{
    return part->c->count * dscomm_dtype_size(x->dtype);
}

static const char what[] = "copying a buffer";

/* Copies between a device and the host, after earlier work on the program's
 * stream; waits for the copy. */
static dscomm_status_t part_transfer(const dscomm_exchange_t *x, part_t *part,
                                     char *to, const char *from)
{
    const size_t bytes = part_bytes(x, part);
    void *stream = part->c->stream;
    dscomm_device_queue_t *queue;
    dscomm_status_t status;
    int device;

    dscomm_priv_device_holds(part->origin, &device);
    if (device < 0)
        return dscomm_device_copy(to, from, bytes, stream);
    status = dscomm_priv_device_queue(device, &queue);
    if (status == DSCOMM_OK)
        status = dscomm_priv_device_result(device_ops()->follow(queue, stream),
                                           what);
    /* Drains the queue before, with a deadline, because a copy may block until
     * earlier work is done. */
    if (status == DSCOMM_OK)
        status =
            dscomm_priv_device_drain(x->channel, queue, NULL, x->timeout_ms);
    if (status < 0)
        return status;
    part->late = 1;
    status = dscomm_priv_device_result(
        device_ops()->copy(queue, to, bytes, from, bytes, bytes, 1), what);
    if (status == DSCOMM_OK)
        status =
            dscomm_priv_device_drain(x->channel, queue, NULL, x->timeout_ms);
    part->late = status < 0;
    return status;
}

static void *part_allocate_host(const char *origin, size_t bytes)
{
    return dscomm_device_owns(origin)
               ? dscomm_device_staging_alloc(origin, bytes)
               : g_try_malloc(bytes);
}

static dscomm_status_t take_copy(const dscomm_exchange_t *x, part_t *part)
{
    size_t bytes = part_bytes(x, part);
    char *memory = part_allocate_host(part->buffer, bytes);

    if (!memory)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no host memory for %zu bytes of a device", bytes);
    part->origin = part->buffer;
    part->buffer = memory;
    return part_transfer(x, part, memory, part->origin);
}

static dscomm_status_t part_follow(const part_t *part)
{
    return dscomm_priv_device_result(
        device_ops()->follow(part->side->queue, part->c->stream),
        "beginning with a device");
}

/* Logs once that the device is full, because it may be full and not full in
 * turn. */
static void log_full(void)
{
    static gint logged;

    if (g_atomic_int_compare_and_exchange(&logged, 0, 1))
        dscomm_log(DSCOMM_LOG_WARN, "compression",
                   "%s; what finds no room there is compressed in host memory, "
                   "on a copy",
                   dscomm_last_error());
}

/* The call's device is that of the first part that a device computes. It gets
 * regions there, if there is room; reading other ranks' windows needs a device.
 */
static dscomm_status_t find_device(dscomm_exchange_t *x)
{
    const dscomm_windows_t *windows = &x->channel->windows;
    dscomm_status_t status;
    int device;

    for (size_t i = 0; i < x->part_count; i++) {
        const part_t *part = part_at(x, i);

        if (!part->c->count || !part_suits(x, part) ||
            !dscomm_priv_device_holds(part->buffer, &device) || device < 0)
            continue;
        status = dscomm_priv_device_regions(x, device);
        if (status != DSCOMM_ERR_NO_MEMORY)
            return status;
        log_full();
        break;
    }
    x->queue = NULL;
    return windows->newest ? dscomm_priv_device_marks(x, windows->device)
                           : DSCOMM_OK;
}

static int is_device_of(const dscomm_exchange_t *x, int device)
{
    dscomm_device_queue_t *queue;

    return x->queue && x->mirror.memory && device >= 0 &&
           dscomm_priv_device_queue(device, &queue) == DSCOMM_OK &&
           queue == x->queue;
}

static dscomm_status_t begin_part(dscomm_exchange_t *x, part_t *part)
{
    dscomm_status_t status;
    int device;

    if (!part->c->count)
        return DSCOMM_OK;
    if (!dscomm_priv_device_holds(part->buffer, &device))
        return dscomm_priv_device_home(part->c, 1);
    if (part_suits(x, part) && is_device_of(x, device)) {
        status = dscomm_priv_device_take_side(part, device);
        if (status != DSCOMM_ERR_NO_MEMORY)
            return status == DSCOMM_OK ? part_follow(part) : status;
        log_full();
    }
    status = dscomm_priv_device_home(part->c, 1);
    return status == DSCOMM_OK ? take_copy(x, part) : status;
}

typedef enum { WAY_HOST, WAY_DIRECT, WAY_WINDOW } way_t;

/* Logs the way of the rows, once for each group and way. */
static void log_way(const dscomm_exchange_t *x, way_t way)
{
    dscomm_channel_t *channel = x->channel;
    const char *name = dscomm_group_name(channel->group);
    const char *backend = dscomm_group_backend(channel->group);
    const char *why = channel->windows.why;

    if (channel->windows.newest && !channel->windows.refused)
        why = "a call has rows elsewhere than in its window";
    if (channel->logged & 1 << way)
        return;
    channel->logged |= 1 << way;
    if (way == WAY_WINDOW)
        dscomm_log(DSCOMM_LOG_INFO, "compression",
                   "group '%s': encoded rows of a device are read there by the "
                   "other ranks",
                   name);
    else
        dscomm_log(DSCOMM_LOG_INFO, "compression",
                   "group '%s': encoded rows of a device go %s backend %s%s%s",
                   name,
                   way == WAY_DIRECT
                       ? "as they are to"
                       : "by host memory, since device memory is not for",
                   backend, way == WAY_HOST && *why ? ", and " : "",
                   way == WAY_HOST ? why : "");
}

/* Tells the group that rows are ready when they are sent, so that messages need
 * not wait for a stream. Does nothing without CUDA's driver. */
static dscomm_status_t take_stream(const dscomm_exchange_t *x)
{
    dscomm_status_t status = dscomm_group_set_stream(
        x->channel->group, device_ops()->idle(x->queue));

    return status == DSCOMM_ERR_UNSUPPORTED ? DSCOMM_OK : status;
}

/* Chooses whether messages use device memory: all rows must be there. */
static dscomm_status_t choose_way(dscomm_exchange_t *x)
{
    dscomm_group_t *group = x->channel->group;
    dscomm_status_t status = DSCOMM_OK;
    int takes, all = 1, any = 0;

    for (size_t i = 0; i < x->part_count; i++) {
        any |= part_at(x, i)->side != NULL;
        all &= part_at(x, i)->side || !part_at(x, i)->c->count;
    }
    if (!any)
        x->mirror.memory = NULL;
    if (!any && !x->channel->windows.newest)
        x->queue = NULL;
    if (!any || !group)
        return status;
    takes = (dscomm_group_capabilities(group) & DSCOMM_CAP_DEVICE_MEMORY) != 0;
    if (takes && !x->channel->logged)
        status = take_stream(x);
    if (status < 0)
        return status;
    x->direct = takes && all;
    x->shows = all && x->mirror.slot.window;
    log_way(x, takes ? WAY_DIRECT : x->shows ? WAY_WINDOW : WAY_HOST);
    return status;
}

/* Clears what is known of other ranks' windows. */
static dscomm_status_t mapped_clear(dscomm_exchange_t *x)
{
    const size_t ranks = (size_t)x->channel->ranks;

    if (!x->channel->windows.newest)
        return DSCOMM_OK;
    if (!x->mapped)
        x->mapped = g_try_new0(char *, ranks);
    if (!x->mapped)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %zu ranks",
                           ranks);
    memset(x->mapped, 0, ranks * sizeof *x->mapped);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_device_begin(dscomm_exchange_t *x)
{
    dscomm_status_t status = dscomm_priv_device_settle(x, x->timeout_ms);

    if (status == DSCOMM_OK)
        status = mapped_clear(x);
    if (status == DSCOMM_OK)
        status = find_device(x);
    for (size_t i = 0; i < x->part_count && status == DSCOMM_OK; i++)
        status = begin_part(x, part_at(x, i));
    return status == DSCOMM_OK ? choose_way(x) : status;
}

dscomm_status_t dscomm_priv_device_finish(const dscomm_exchange_t *x,
                                          part_t *part)
{
    return part_transfer(x, part, part->origin, part->buffer);
}

void dscomm_priv_device_end(part_t *part)
{
    if (!part->origin)
        return;
    if (part->late)
        dscomm_priv_retain(part->buffer);
    else if (dscomm_device_owns(part->origin))
        dscomm_device_staging_free(part->buffer);
    else
        g_free(part->buffer);
    part->origin = NULL;
}
