/* SPDX-License-Identifier: BSD-3-Clause */
/* One compressor's errors on a device, and its part of a call there. The rows
 * of a phase are copied as a whole; calls wait for the device before messages
 * leave, and before the result counts as there. */
#include "config.h"

#include "compression/codecs/codecs.h"
#include "compression/device.h"
#include "lib/device.h"

#include <dscomm/dscomm.h>
#include <math.h>
#include <string.h>

#define ALIGNMENT 256

/* Two arrays for the worker error: what is encoded goes to the other one, and
 * where the scale turns out not to be finite the errors are as before. */
struct dscomm_device_side {
    int device;
    dscomm_device_queue_t *queue;
    char *memory; /* all that follows lies there */
    float *worker[2], *server;
    float *scales; /* of the two worker arrays, and of the server's */
    char *rows; /* one for each rank */
    char *row;
    int now; /* index of the worker array that holds */
    int ahead; /* the host's errors are old */
    int behind; /* the device's are */
};

static const dscomm_device_ops_t *ops(void)
{
    return dscomm_priv_device_table();
}

static size_t server_count(const dscomm_compressor_t *c)
{
    return dscomm_priv_part_count(c, c->channel->rank);
}

/* A place for bytes behind *end, which moves. */
static size_t reserve(size_t *end, size_t bytes)
{
    size_t at = *end;

    *end += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

/* The deepspeed geometry keeps no errors from before a call. */
static dscomm_status_t furnish(dscomm_device_side_t *side,
                               const dscomm_compressor_t *c)
{
    size_t end = 0, errors = c->padded * sizeof(float);
    size_t first = reserve(&end, errors), second = first, server, scales, rows,
           row;
    int code;

    if (c->geometry == DSCOMM_GEOMETRY_NATIVE)
        second = reserve(&end, errors);
    server = reserve(&end, server_count(c) * sizeof(float));
    scales = reserve(&end, 3 * sizeof(float));
    rows = reserve(&end, (size_t)c->channel->ranks * c->row);
    row = reserve(&end, c->row);
    code = ops()->alloc(side->queue, end, 0, (void **)&side->memory);
    if (code)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "%zu bytes of device %d for the errors of %zu "
                           "elements: %s",
                           end, side->device, c->count, ops()->text(code));
    side->worker[0] = (float *)(side->memory + first);
    side->worker[1] = (float *)(side->memory + second);
    side->server = (float *)(side->memory + server);
    side->scales = (float *)(side->memory + scales);
    side->rows = side->memory + rows;
    side->row = side->memory + row;
    return DSCOMM_OK;
}

void dscomm_priv_device_free(dscomm_device_side_t *side)
{
    if (!side)
        return;
    if (side->memory)
        ops()->release(side->queue, 0, side->memory);
    g_free(side);
}

static int copy(const dscomm_device_side_t *side, void *to, const void *from,
                size_t bytes)
{
    return bytes ? ops()->copy(side->queue, to, bytes, from, bytes, bytes, 1)
                 : 0;
}

/* The host's errors, with scales of 0. */
static dscomm_status_t push(dscomm_device_side_t *side,
                            const dscomm_compressor_t *c)
{
    int code = copy(side, side->worker[side->now], c->worker,
                    c->padded * sizeof(float));

    if (!code)
        code = copy(side, side->server, c->server,
                    server_count(c) * sizeof(float));
    if (!code)
        code = ops()->clear(side->queue, side->scales, 3 * sizeof(float));
    if (!code)
        code = ops()->sync(side->queue);
    if (!code)
        side->behind = 0;
    return dscomm_priv_device_result(code, "the errors to a device");
}

static int materialise(dscomm_device_side_t *side, float *errors, float *scale,
                       size_t count)
{
    dscomm_device_materialise_t args = {errors, scale, count};

    return ops()->materialise(side->queue, &args);
}

static int materialise_worker(dscomm_device_side_t *side,
                              const dscomm_compressor_t *c)
{
    return materialise(side, side->worker[side->now], side->scales + side->now,
                       c->padded);
}

static dscomm_status_t pull(dscomm_device_side_t *side,
                            const dscomm_compressor_t *c)
{
    size_t server = server_count(c);
    int code = materialise_worker(side, c);

    if (!code && server)
        code = materialise(side, side->server, side->scales + 2, server);
    if (!code)
        code = copy(side, c->worker, side->worker[side->now],
                    c->padded * sizeof(float));
    if (!code)
        code = copy(side, c->server, side->server, server * sizeof(float));
    if (!code)
        code = ops()->sync(side->queue);
    if (!code)
        side->ahead = 0;
    return dscomm_priv_device_result(code, "the errors from a device");
}

dscomm_status_t dscomm_priv_device_home(const dscomm_compressor_t *c,
                                        int changes)
{
    dscomm_device_side_t *side = c->side;
    dscomm_status_t status = DSCOMM_OK;

    if (!side)
        return status;
    if (side->ahead)
        status = pull(side, c);
    if (status == DSCOMM_OK && changes)
        side->behind = 1;
    return status;
}

static int format_of(dscomm_dtype_t dtype)
{
    return dtype == DSCOMM_FLOAT32    ? DSCOMM_DEVICE_FLOAT32
           : dtype == DSCOMM_FLOAT16  ? DSCOMM_DEVICE_FLOAT16
           : dtype == DSCOMM_BFLOAT16 ? DSCOMM_DEVICE_BFLOAT16
                                      : -1;
}

/* Whether a device can do it. */
static int suits(const dscomm_exchange_t *x, const part_t *part)
{
    const dscomm_compressor_t *c = part->c;

    return c->codec == &dscomm_priv_codec_onebit && c->feedback && !c->mask &&
           format_of(x->dtype) >= 0 &&
           (uintptr_t)part->buffer % dscomm_dtype_size(x->dtype) == 0;
}

static dscomm_status_t new_side(dscomm_compressor_t *c, int device)
{
    dscomm_device_side_t *side = g_new0(dscomm_device_side_t, 1);
    dscomm_status_t status = dscomm_priv_device_queue(device, &side->queue);

    side->device = device;
    side->behind = 1;
    if (status == DSCOMM_OK)
        status = furnish(side, c);
    if (status < 0)
        dscomm_priv_device_free(side);
    else
        c->side = side;
    return status;
}

static dscomm_status_t take_side(dscomm_exchange_t *x, part_t *part, int device)
{
    dscomm_compressor_t *c = part->c;
    dscomm_status_t status = DSCOMM_OK;

    if (c->side && c->side->device != device) {
        status = dscomm_priv_device_home(c, 1);
        if (status < 0)
            return status;
        dscomm_priv_device_free(c->side);
        c->side = NULL;
    }
    if (!c->side)
        status = new_side(c, device);
    if (status == DSCOMM_OK && c->side->behind)
        status = push(c->side, c);
    if (status < 0)
        return status;
    part->side = c->side;
    x->queue = c->side->queue;
    return status;
}

/* Between a device and a copy on the host: by the driver where it knows the
 * memory. */
static dscomm_status_t transfer(char *to, const char *from, const char *origin,
                                size_t bytes)
{
    dscomm_device_queue_t *queue;
    dscomm_status_t status;
    int code, device;

    if (dscomm_priv_device_owns(origin))
        return to == origin ? dscomm_priv_device_to_device(to, from, bytes)
                            : dscomm_priv_device_to_host(to, from, bytes);
    dscomm_priv_device_holds(origin, &device);
    status = dscomm_priv_device_queue(device, &queue);
    if (status < 0)
        return status;
    code = ops()->copy(queue, to, bytes, from, bytes, bytes, 1);
    if (!code)
        code = ops()->sync(queue);
    return dscomm_priv_device_result(code, "copying a buffer");
}

static void *take_host(const char *origin, size_t bytes)
{
    return dscomm_priv_device_owns(origin)
               ? dscomm_priv_device_host_take(origin, bytes)
               : g_try_malloc(bytes);
}

static size_t bytes_of(const dscomm_exchange_t *x, const part_t *part)
{
    return part->c->count * dscomm_dtype_size(x->dtype);
}

static dscomm_status_t take_copy(const dscomm_exchange_t *x, part_t *part)
{
    size_t bytes = bytes_of(x, part);
    char *memory = take_host(part->buffer, bytes);

    if (!memory)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no host memory for %zu bytes of a device", bytes);
    part->origin = part->buffer;
    part->buffer = memory;
    return transfer(memory, part->origin, part->origin, bytes);
}

static dscomm_status_t begin_part(dscomm_exchange_t *x, part_t *part)
{
    dscomm_status_t status = DSCOMM_OK;
    int device;

    if (!part->c->count)
        return status;
    if (!dscomm_priv_device_holds(part->buffer, &device))
        return dscomm_priv_device_home(part->c, 1);
    if (device >= 0 && suits(x, part))
        return take_side(x, part, device);
    status = dscomm_priv_device_home(part->c, 1);
    return status == DSCOMM_OK ? take_copy(x, part) : status;
}

dscomm_status_t dscomm_priv_device_begin(dscomm_exchange_t *x)
{
    dscomm_status_t status = DSCOMM_OK;

    for (size_t i = 0; i < x->part_count && status == DSCOMM_OK; i++)
        status = begin_part(x, part_at(x, i));
    return status;
}

dscomm_status_t dscomm_priv_device_finish(const dscomm_exchange_t *x,
                                          part_t *part)
{
    return transfer(part->origin, part->buffer, part->origin,
                    bytes_of(x, part));
}

void dscomm_priv_device_end(part_t *part)
{
    if (!part->origin)
        return;
    if (dscomm_priv_device_owns(part->origin))
        dscomm_priv_device_host_give(part->buffer);
    else
        g_free(part->buffer);
    part->origin = NULL;
}

static dscomm_device_rows_t rows_of(const part_t *part)
{
    const dscomm_compressor_t *c = part->c;

    return (dscomm_device_rows_t){part->side->rows, c->row,
                                  (size_t)c->channel->ranks, c->chunk};
}

/* All rows of the part, to or from the host's regions. */
static int copy_rows(const dscomm_exchange_t *x, const part_t *part,
                     char *regions, int to_host)
{
    const dscomm_compressor_t *c = part->c;
    char *host = dscomm_priv_row(part, regions), *rows = part->side->rows;
    size_t n = (size_t)c->channel->ranks;

    return to_host ? ops()->copy(part->side->queue, host, x->region, rows,
                                 c->row, c->row, n)
                   : ops()->copy(part->side->queue, rows, c->row, host,
                                 x->region, c->row, n);
}

/* Headers say more than the scale, which is all that devices know of. */
static void put_headers(const dscomm_exchange_t *x, const part_t *part)
{
    for (int r = 0; r < x->channel->ranks; r++)
        dscomm_priv_put_header(part, part->scale, 0, region_of(x, x->out, r));
}

dscomm_status_t dscomm_priv_device_encode(const dscomm_exchange_t *x,
                                          part_t *part)
{
    const dscomm_compressor_t *c = part->c;
    dscomm_device_side_t *side = part->side;
    const int now = side->now, next = !now;
    dscomm_device_worker_t args = {
        .format = (dscomm_device_format_t)format_of(x->dtype),
        .x = part->buffer,
        .count = c->count,
        .padded = c->padded,
        .c = side->worker[now],
        .s = side->scales + now,
        .next = side->worker[next],
        .ret_s = side->scales + next,
        .rows = rows_of(part),
    };
    int code = ops()->worker(side->queue, &args);

    side->ahead = 1;
    if (!code)
        code = copy_rows(x, part, x->out, 1);
    if (!code)
        code = ops()->sync(side->queue);
    if (code)
        return dscomm_priv_device_result(code, "encoding on a device");
    part->scale = dscomm_priv_scale_of(part, x->out);
    if (!dscomm_priv_keeps(c, part->scale))
        side->now = next;
    put_headers(x, part);
    return DSCOMM_OK;
}

static int copy_gathered(const dscomm_exchange_t *x, const part_t *part,
                         char *const *rows)
{
    const dscomm_compressor_t *c = part->c;
    int rank = x->channel->rank;
    int code = copy_rows(x, part, x->in, 0);

    return code ? code
                : copy(part->side, part->side->rows + (size_t)rank * c->row,
                       dscomm_priv_row(part, rows[rank]), c->row);
}

/* The server's work, to region. */
static int serve(const dscomm_exchange_t *x, const part_t *part,
                 char *const *rows, char *region)
{
    const dscomm_compressor_t *c = part->c;
    dscomm_device_side_t *side = part->side;
    dscomm_device_server_t args = {
        .rows = rows_of(part),
        .factor = c->op == DSCOMM_AVG ? 1.0f / (float)x->channel->ranks : 1,
        .count = server_count(c),
        .c = side->server,
        .s = side->scales + 2,
        .ret_row = side->row,
    };
    int code = copy_gathered(x, part, rows);

    if (!code)
        code = ops()->server(side->queue, &args);
    if (!code)
        code = copy(side, dscomm_priv_row(part, region), side->row, c->row);
    return code ? code : ops()->sync(side->queue);
}

/* What was lost is unknown. */
static int forget(const part_t *part)
{
    dscomm_device_side_t *side = part->side;
    int code = ops()->clear(side->queue, side->server,
                            server_count(part->c) * sizeof(float));

    return code ? code
                : ops()->clear(side->queue, side->scales + 2, sizeof(float));
}

dscomm_status_t dscomm_priv_device_reduce(const dscomm_exchange_t *x,
                                          part_t *part, char *const *rows)
{
    char *region = region_of(x, x->in, x->channel->rank);
    int code = 0;

    part->spoilt = dscomm_priv_is_spoilt(x, part, rows);
    part->scale = part->spoilt ? NAN : 0;
    if (!part->spoilt && server_count(part->c)) {
        code = serve(x, part, rows, region);
        if (code)
            return dscomm_priv_device_result(code, "reducing on a device");
        part->scale = dscomm_priv_scale_of(part, region);
        if (dscomm_priv_keeps(part->c, part->scale))
            code = forget(part);
    }
    dscomm_priv_put_header(part, part->scale, 1, region);
    return dscomm_priv_device_result(code, "reducing on a device");
}

/* As dscomm_priv_take_back(), for the part of rank; the errors have been
 * materialised. */
static int take_back(const dscomm_exchange_t *x, const part_t *part, int rank)
{
    const dscomm_compressor_t *c = part->c;
    dscomm_device_side_t *side = part->side;
    size_t base = (size_t)rank * c->chunk;
    dscomm_device_take_back_t args = {
        .format = (dscomm_device_format_t)format_of(x->dtype),
        .x = part->buffer + base * dscomm_dtype_size(x->dtype),
        .count = dscomm_priv_part_count(c, rank),
        .row = side->row,
        .c = side->worker[side->now] + base,
    };
    int code = copy(side, side->row,
                    dscomm_priv_row(part, region_of(x, x->out, rank)), c->row);

    return code || !args.count ? code : ops()->take_back(side->queue, &args);
}

static int take_back_all(const dscomm_exchange_t *x, const part_t *part)
{
    const dscomm_compressor_t *c = part->c;
    int code = 0, ready = 0;

    if (dscomm_priv_keeps(c, dscomm_priv_scale_of(part, x->out)))
        return 0;
    for (int r = 0; r < c->channel->ranks && !code; r++) {
        char *region = region_of(x, x->in, r);

        if (!dscomm_priv_keeps(c, dscomm_priv_scale_of(part, region)))
            continue;
        if (!ready++)
            code = materialise_worker(part->side, c);
        if (!code)
            code = take_back(x, part, r);
    }
    return code;
}

dscomm_status_t dscomm_priv_device_decode(const dscomm_exchange_t *x,
                                          part_t *part)
{
    dscomm_device_unpack_t args = {
        .format = (dscomm_device_format_t)format_of(x->dtype),
        .rows = rows_of(part),
        .count = part->c->count,
        .ret_x = part->buffer,
    };
    int code = take_back_all(x, part);

    if (!code)
        code = copy_rows(x, part, x->in, 0);
    if (!code)
        code = ops()->unpack(part->side->queue, &args);
    if (!code)
        code = ops()->sync(part->side->queue);
    return dscomm_priv_device_result(code, "decoding on a device");
}
