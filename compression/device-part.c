/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a call whose buffers are on a device: those that a device can do
 * go there together, as many as there are, and the call waits for it before
 * messages leave; the others go by a copy. Results count as there when the
 * program's stream comes to them, or, without one, at the end of the call. */
#include "config.h"

#include "compression/codecs/codecs.h"
#include "compression/device-side.h"
#include "lib/device.h"

#include <dscomm/dscomm.h>
#include <math.h>
#include <string.h>

#define TOGETHER DSCOMM_DEVICE_TOGETHER

static const dscomm_device_ops_t *ops(void)
{
    return dscomm_priv_device_table();
}

static size_t server_count(const dscomm_compressor_t *c)
{
    return dscomm_priv_part_count(c, c->channel->rank);
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

/* Between a device and a copy on the host, after what the stream has; waits. */
static dscomm_status_t transfer(const dscomm_compressor_t *c, char *to,
                                const char *from, const char *origin,
                                size_t bytes)
{
    dscomm_device_queue_t *queue;
    dscomm_status_t status;
    int code, device;

    dscomm_priv_device_holds(origin, &device);
    if (device < 0)
        return to == origin
                   ? dscomm_priv_device_to_device(to, from, bytes, c->stream)
                   : dscomm_priv_device_to_host(to, from, bytes, c->stream);
    status = dscomm_priv_device_queue(device, &queue);
    if (status < 0)
        return status;
    code = ops()->follow(queue, c->stream);
    if (!code)
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
    return transfer(part->c, memory, part->origin, part->origin, bytes);
}

static dscomm_status_t follow(const part_t *part)
{
    return dscomm_priv_device_result(
        ops()->follow(part->side->queue, part->c->stream),
        "beginning with a device");
}

/* Said once: the device is as full at the next call. */
static void tell_full(void)
{
    static gint told;

    if (g_atomic_int_compare_and_exchange(&told, 0, 1))
        dscomm_log(DSCOMM_LOG_WARN, "compression",
                   "%s; what finds no room there is compressed in host memory, "
                   "on a copy",
                   dscomm_last_error());
}

static dscomm_status_t begin_part(dscomm_exchange_t *x, part_t *part)
{
    dscomm_status_t status;
    int device;

    if (!part->c->count)
        return DSCOMM_OK;
    if (!dscomm_priv_device_holds(part->buffer, &device))
        return dscomm_priv_device_home(part->c, 1);
    if (device >= 0 && suits(x, part)) {
        status = dscomm_priv_device_take_side(x, part, device);
        if (status != DSCOMM_ERR_NO_MEMORY)
            return status == DSCOMM_OK ? follow(part) : status;
        tell_full();
    }
    status = dscomm_priv_device_home(part->c, 1);
    return status == DSCOMM_OK ? take_copy(x, part) : status;
}

static int sync_all(const dscomm_exchange_t *x, size_t first, size_t end)
{
    const dscomm_device_queue_t *last = NULL;
    int code = 0;

    for (; first < end && !code; first++) {
        const part_t *part = part_at(x, first);

        if (!part->side || part->side->queue == last)
            continue;
        code = ops()->sync(part->side->queue);
        last = part->side->queue;
    }
    return code;
}

dscomm_status_t dscomm_priv_device_settle(dscomm_exchange_t *x)
{
    int code = sync_all(x, 0, x->part_count);

    if (!code && x->unfinished)
        code = ops()->sync(x->unfinished);
    x->unfinished = NULL;
    return dscomm_priv_device_result(code, "waiting for a device");
}

dscomm_status_t dscomm_priv_device_begin(dscomm_exchange_t *x)
{
    dscomm_status_t status = dscomm_priv_device_settle(x);

    for (size_t i = 0; i < x->part_count && status == DSCOMM_OK; i++)
        status = begin_part(x, part_at(x, i));
    return status;
}

dscomm_status_t dscomm_priv_device_finish(const dscomm_exchange_t *x,
                                          part_t *part)
{
    return transfer(part->c, part->origin, part->buffer, part->origin,
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

/* Parts of one queue that one kernel does, and how many they are. */
typedef struct {
    part_t *at[TOGETHER];
    size_t count;
    dscomm_device_queue_t *queue;
} batch_t;

typedef int (*launch_t)(const dscomm_exchange_t *x, const batch_t *batch);

static int is_at_work(const part_t *part)
{
    return part->side != NULL;
}

static int is_server(const part_t *part)
{
    return part->side && !part->spoilt && server_count(part->c);
}

/* The next ones from *at, which moves on. */
static void gather(const dscomm_exchange_t *x, size_t *at, size_t end,
                   int (*wants)(const part_t *part), batch_t *ret_batch)
{
    ret_batch->count = 0;
    for (; *at < end && ret_batch->count < TOGETHER; ++*at) {
        part_t *part = part_at(x, *at);

        if (!wants(part))
            continue;
        if (ret_batch->count && part->side->queue != ret_batch->queue)
            break;
        ret_batch->queue = part->side->queue;
        ret_batch->at[ret_batch->count++] = part;
    }
}

/* All of parts [first, end) that are wanted. */
static int launch_all(const dscomm_exchange_t *x, size_t first, size_t end,
                      int (*wants)(const part_t *part), launch_t launch)
{
    batch_t batch;
    int code = 0;

    while (!code) {
        gather(x, &first, end, wants, &batch);
        if (!batch.count)
            break;
        code = launch(x, &batch);
    }
    return code;
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

static int work(const dscomm_exchange_t *x, const batch_t *batch)
{
    dscomm_device_worker_t args[TOGETHER];
    int code;

    for (size_t i = 0; i < batch->count; i++) {
        const part_t *part = batch->at[i];
        dscomm_device_side_t *side = part->side;
        const int now = side->now, next = !now;

        args[i] = (dscomm_device_worker_t){
            .format = (dscomm_device_format_t)format_of(x->dtype),
            .x = part->buffer,
            .count = part->c->count,
            .padded = part->c->padded,
            .c = side->worker[now],
            .s = side->scales + now,
            .next = side->worker[next],
            .ret_s = side->scales + next,
            .rows = rows_of(part),
        };
        side->ahead = 1;
    }
    code = ops()->worker(batch->queue, args, batch->count);
    for (size_t i = 0; i < batch->count && !code; i++)
        code = copy_rows(x, batch->at[i], x->out, 1);
    return code;
}

dscomm_status_t dscomm_priv_device_encode(dscomm_exchange_t *x)
{
    int code = launch_all(x, 0, x->part_count, is_at_work, work);

    if (!code)
        code = sync_all(x, 0, x->part_count);
    if (code)
        return dscomm_priv_device_result(code, "encoding on a device");
    for (size_t i = 0; i < x->part_count; i++) {
        part_t *part = part_at(x, i);

        if (!part->side)
            continue;
        part->scale = dscomm_priv_scale_of(part, x->out);
        if (!dscomm_priv_keeps(part->c, part->scale))
            part->side->now = !part->side->now;
        put_headers(x, part);
    }
    return DSCOMM_OK;
}

static int copy_gathered(const dscomm_exchange_t *x, const part_t *part)
{
    const dscomm_compressor_t *c = part->c;
    const int rank = x->channel->rank;
    int code = copy_rows(x, part, x->in, 0);

    if (code)
        return code;
    return dscomm_priv_device_copy(
        part->side, part->side->rows + (size_t)rank * c->row,
        dscomm_priv_row(part, region_of(x, x->out, rank)), c->row);
}

static char *result_of(const dscomm_exchange_t *x)
{
    return region_of(x, x->in, x->channel->rank);
}

static int serve(const dscomm_exchange_t *x, const batch_t *batch)
{
    dscomm_device_server_t args[TOGETHER];
    int code = 0;

    for (size_t i = 0; i < batch->count && !code; i++) {
        const part_t *part = batch->at[i];
        const dscomm_compressor_t *c = part->c;
        float share = 1.0f / (float)x->channel->ranks;

        args[i] = (dscomm_device_server_t){
            .rows = rows_of(part),
            .factor = c->op == DSCOMM_AVG ? share : 1,
            .count = server_count(c),
            .c = part->side->server,
            .s = part->side->scales + 2,
            .ret_row = part->side->row,
        };
        code = copy_gathered(x, part);
    }
    if (!code)
        code = ops()->server(batch->queue, args, batch->count);
    for (size_t i = 0; i < batch->count && !code; i++)
        code = dscomm_priv_device_copy(
            batch->at[i]->side, dscomm_priv_row(batch->at[i], result_of(x)),
            batch->at[i]->side->row, batch->at[i]->c->row);
    return code;
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

/* Once the row is here. */
static int conclude(const dscomm_exchange_t *x, part_t *part)
{
    int code = 0;

    part->scale = part->spoilt ? NAN : 0;
    if (is_server(part)) {
        part->scale = dscomm_priv_scale_of(part, result_of(x));
        if (dscomm_priv_keeps(part->c, part->scale))
            code = forget(part);
    }
    dscomm_priv_put_header(part, part->scale, 1, result_of(x));
    return code;
}

dscomm_status_t dscomm_priv_device_reduce(dscomm_exchange_t *x, size_t first,
                                          size_t end, char *const *rows)
{
    int code;

    for (size_t i = first; i < end; i++)
        if (part_at(x, i)->side)
            part_at(x, i)->spoilt =
                dscomm_priv_is_spoilt(x, part_at(x, i), rows);
    code = launch_all(x, first, end, is_server, serve);
    if (!code)
        code = sync_all(x, first, end);
    for (size_t i = first; i < end && !code; i++)
        if (part_at(x, i)->side)
            code = conclude(x, part_at(x, i));
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
    int code = dscomm_priv_device_copy(
        side, side->row, dscomm_priv_row(part, region_of(x, x->out, rank)),
        c->row);

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
            code = dscomm_priv_device_materialise_worker(part->side, c);
        if (!code)
            code = take_back(x, part, r);
    }
    return code;
}

static int unpack(const dscomm_exchange_t *x, const batch_t *batch)
{
    dscomm_device_unpack_t args[TOGETHER];
    int code = 0;

    for (size_t i = 0; i < batch->count && !code; i++) {
        const part_t *part = batch->at[i];

        args[i] = (dscomm_device_unpack_t){
            .format = (dscomm_device_format_t)format_of(x->dtype),
            .rows = rows_of(part),
            .count = part->c->count,
            .ret_x = part->buffer,
        };
        code = take_back_all(x, part);
        if (!code)
            code = copy_rows(x, part, x->in, 0);
    }
    return code ? code : ops()->unpack(batch->queue, args, batch->count);
}

dscomm_status_t dscomm_priv_device_decode(dscomm_exchange_t *x, size_t first,
                                          size_t end)
{
    return dscomm_priv_device_result(
        launch_all(x, first, end, is_at_work, unpack), "decoding on a device");
}

/* The stream waits for the part, and the host does not, but where there are
 * several devices. */
static int hand_over(dscomm_exchange_t *x, const part_t *part)
{
    dscomm_device_queue_t *queue = part->side->queue;
    int code = ops()->lead(queue, part->c->stream);

    if (!code && x->unfinished && x->unfinished != queue)
        code = ops()->sync(queue);
    else
        x->unfinished = queue;
    return code;
}

dscomm_status_t dscomm_priv_device_complete(dscomm_exchange_t *x)
{
    const part_t *last = NULL;
    int code = 0;

    for (size_t i = 0; i < x->part_count && !code; i++) {
        const part_t *part = part_at(x, i);

        if (!part->side || (last && last->side->queue == part->side->queue &&
                            last->c->stream == part->c->stream))
            continue;
        code = part->c->stream ? hand_over(x, part)
                               : ops()->sync(part->side->queue);
        last = part;
    }
    return dscomm_priv_device_result(code, "decoding on a device");
}
