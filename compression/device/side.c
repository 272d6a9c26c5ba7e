/* SPDX-License-Identifier: BSD-3-Clause */
/* The errors of a compressor on a device. */
#include "config.h"

#include "compression/device/device.h"

#include <dscomm/dscomm.h>

#define ALIGNMENT 256

/* Reserves bytes at *end, and advances *end. */
static size_t side_reserve(size_t *end, size_t bytes)
{
    size_t at = *end;

    *end += dscomm_priv_round_up(bytes, ALIGNMENT);
    return at;
}

/* DeepSpeed's geometry keeps no errors from before a call, so it needs no
 * second array. */
static dscomm_status_t side_furnish(dscomm_device_side_t *side,
                                    dscomm_compressor_t *c)
{
    size_t end = 0, errors = c->padded * sizeof(float);
    size_t first = side_reserve(&end, errors), second = first, server, scales;
    int code;

    if (c->geometry == DSCOMM_GEOMETRY_NATIVE)
        second = side_reserve(&end, errors);
    server = side_reserve(&end, side_server_count(c) * sizeof(float));
    scales = side_reserve(&end, 3 * sizeof(float));
    if (dscomm_priv_device_is_short(&c->shortage, end))
        return DSCOMM_ERR_NO_MEMORY;
    code = device_ops()->alloc(side->queue, end, 0, (void **)&side->memory);
    dscomm_priv_device_note_try(&c->shortage, end, code);
    if (code)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "%zu bytes of device %d for the errors of %zu "
                           "elements: %s",
                           end, side->device, c->count,
                           device_ops()->text(code));
    side->worker[0] = (float *)(side->memory + first);
    side->worker[1] = (float *)(side->memory + second);
    side->server = (float *)(side->memory + server);
    side->scales = (float *)(side->memory + scales);
    return DSCOMM_OK;
}

/* Waits until the queue is empty. */
static dscomm_status_t side_await(dscomm_device_side_t *side,
                                  const dscomm_compressor_t *c)
{
    const int most_ms = dscomm_priv_channel_timeout(c->channel);
    dscomm_status_t status = dscomm_priv_device_drain(
        NULL, side->queue, NULL,
        c->lost ? MIN(most_ms, DSCOMM_SETTLE_MS) : most_ms);

    if (status == DSCOMM_OK)
        side->late = 0;
    return status;
}

static dscomm_status_t let_go(dscomm_compressor_t *c)
{
    dscomm_status_t status = side_await(c->side, c);

    if (status < 0)
        return status;
    device_ops()->release(c->side->queue, 0, c->side->memory);
    g_free(c->side);
    c->side = NULL;
    return DSCOMM_OK;
}

static void side_retain(dscomm_compressor_t *c)
{
    dscomm_log(DSCOMM_LOG_WARN, "compression",
               "dscomm_compressor_free: %s; the memory of %zu elements' errors "
               "is kept",
               dscomm_last_error(), c->count);
    c->side->kept[0] = c->worker;
    c->side->kept[1] = c->server;
    dscomm_priv_retain(c->side);
    c->worker = c->server = NULL;
    c->side = NULL;
}

void dscomm_priv_device_free(dscomm_compressor_t *c)
{
    if (c->side && let_go(c) < 0)
        side_retain(c);
}

/* Copies bytes in one piece; bytes may be 0. */
static int side_copy(const dscomm_device_side_t *side, void *to,
                     const void *from, size_t bytes)
{
    return bytes ? device_ops()->copy(side->queue, to, bytes, from, bytes,
                                      bytes, 1)
                 : 0;
}

/* Calls put, which copies between the host's errors and the device, and waits
 * for its result. The queue is emptied before that, with a deadline, because
 * put may block until earlier work is done. */
static dscomm_status_t
with_host(dscomm_device_side_t *side, const dscomm_compressor_t *c,
          int (*put)(dscomm_device_side_t *side, const dscomm_compressor_t *c),
          const char *what)
{
    dscomm_status_t status = side_await(side, c);

    if (status < 0)
        return status;
    side->late = 1;
    status = dscomm_priv_device_result(put(side, c), what);
    return status < 0 ? status : side_await(side, c);
}

/* Copies the host's errors to the device, with scales of 0. */
static int side_push(dscomm_device_side_t *side, const dscomm_compressor_t *c)
{
    int code = side_copy(side, side->worker[side->now], c->worker,
                         c->padded * sizeof(float));

    if (!code)
        code = side_copy(side, side->server, c->server,
                         side_server_count(c) * sizeof(float));
    return code ? code
                : device_ops()->clear(side->queue, side->scales,
                                      3 * sizeof(float));
}

static int side_materialise(dscomm_device_side_t *side, float *errors,
                            float *scale, size_t count)
{
    dscomm_device_materialise_t args = {errors, scale, count};

    return device_ops()->materialise(side->queue, &args);
}

int dscomm_priv_device_materialise_worker(dscomm_device_side_t *side,
                                          const dscomm_compressor_t *c)
{
    return side_materialise(side, side->worker[side->now],
                            side->scales + side->now, c->padded);
}

static int side_pull(dscomm_device_side_t *side, const dscomm_compressor_t *c)
{
    size_t server = side_server_count(c);
    int code = dscomm_priv_device_materialise_worker(side, c);

    if (!code && server)
        code = side_materialise(side, side->server, side->scales + 2, server);
    if (!code)
        code = side_copy(side, c->worker, side->worker[side->now],
                         c->padded * sizeof(float));
    return code ? code
                : side_copy(side, c->server, side->server,
                            server * sizeof(float));
}

dscomm_status_t dscomm_priv_device_home(const dscomm_compressor_t *c,
                                        int changes)
{
    dscomm_device_side_t *side = c->side;
    dscomm_status_t status = DSCOMM_OK;

    if (!side)
        return status;
    if (side->ahead)
        status = with_host(side, c, side_pull, "the errors from a device");
    else if (side->late)
        status = side_await(side, c);
    if (status < 0)
        return status;
    side->ahead = 0;
    side->behind |= changes;
    return status;
}

static int side_clear(dscomm_device_side_t *side, const dscomm_compressor_t *c)
{
    size_t server = side_server_count(c) * sizeof(float);
    int code = device_ops()->clear(side->queue, side->worker[side->now],
                                   c->padded * sizeof(float));

    if (!code && server)
        code = device_ops()->clear(side->queue, side->server, server);
    return code ? code
                : device_ops()->clear(side->queue, side->scales,
                                      3 * sizeof(float));
}

/* A failure of the device is reported by the next call. */
dscomm_status_t dscomm_priv_device_discard(const dscomm_compressor_t *c,
                                           int zero)
{
    dscomm_device_side_t *side = c->side;
    dscomm_status_t status = DSCOMM_OK;

    if (side && side->late)
        status = side_await(side, c);
    if (!side || status < 0)
        return status;
    side->ahead = 0;
    side->behind = !zero || side_clear(side, c);
    return status;
}

static dscomm_status_t new_side(dscomm_compressor_t *c, int device)
{
    dscomm_device_side_t *side = g_try_new0(dscomm_device_side_t, 1);
    dscomm_status_t status;

    if (!side)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a device");
    status = dscomm_priv_device_queue(device, &side->queue);
    side->device = device;
    side->behind = 1;
    if (status == DSCOMM_OK)
        status = side_furnish(side, c);
    if (status < 0)
        g_free(side);
    else
        c->side = side;
    return status;
}

dscomm_status_t dscomm_priv_device_take_side(part_t *part, int device)
{
    dscomm_compressor_t *c = part->c;
    dscomm_status_t status = DSCOMM_OK;

    if (c->side && c->side->device != device) {
        status = dscomm_priv_device_home(c, 1);
        if (status == DSCOMM_OK)
            status = let_go(c);
    }
    if (status == DSCOMM_OK && !c->side)
        status = new_side(c, device);
    if (status == DSCOMM_OK && c->side->behind)
        status = with_host(c->side, c, side_push, "the errors to a device");
    if (status < 0)
        return status;
    c->side->behind = 0;
    part->side = c->side;
    return status;
}
