/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of parts on a device. Parts that one kernel can compute are
 * started together; nothing here waits. Results are valid for work that the
 * program enqueues on its stream after the call; without a stream, at the end
 * of the call. */
#include "config.h"

#include "compression/device/device.h"

#include <dscomm/dscomm.h>
#include <math.h>

#define TOGETHER DSCOMM_DEVICE_TOGETHER

static dscomm_device_format_t format_of(const dscomm_exchange_t *x)
{
    return (dscomm_device_format_t)dscomm_priv_device_format(x->dtype);
}

/* Parts that one kernel computes, and their number. */
typedef struct {
    part_t *at[TOGETHER];
    size_t count;
} batch_t;

static int is_at_work(const part_t *part)
{
    return part->side != NULL;
}

static int is_server(const part_t *part)
{
    return part->side && !part->not_finite && side_server_count(part->c);
}

/* Collects the next parts from *at on, and moves *at. */
static void batch_gather(const dscomm_exchange_t *x, size_t *at, size_t end,
                         int (*wants)(const part_t *part), batch_t *ret_batch)
{
    ret_batch->count = 0;
    for (; *at < end && ret_batch->count < TOGETHER; ++*at)
        if (wants(part_at(x, *at)))
            ret_batch->at[ret_batch->count++] = part_at(x, *at);
}

static char *row_there(const dscomm_exchange_t *x, const part_t *part,
                       char *regions, int rank)
{
    return dscomm_priv_device_there(
        x, dscomm_priv_row(part, region_of(x, regions, rank)));
}

static dscomm_device_rows_t rows_of(const dscomm_exchange_t *x,
                                    const part_t *part, char *regions)
{
    return (dscomm_device_rows_t){row_there(x, part, regions, 0), x->region,
                                  (size_t)x->channel->ranks, part->c->chunk};
}

static void put_headers(const dscomm_exchange_t *x, const part_t *part)
{
    for (int r = 0; r < x->channel->ranks; r++)
        dscomm_priv_put_header(part, part->scale, 0, region_of(x, x->out, r));
}

static int work(const dscomm_exchange_t *x, const batch_t *batch)
{
    dscomm_device_worker_t args[TOGETHER];
    int code = 0;

    for (size_t i = 0; i < batch->count && !code; i++) {
        const part_t *part = batch->at[i];
        dscomm_device_side_t *side = part->side;
        const int now = side->now, next = !now;

        args[i] = (dscomm_device_worker_t){
            .format = format_of(x),
            .x = part->buffer,
            .count = part->c->count,
            .padded = part->c->padded,
            .c = side->worker[now],
            .s = side->scales + now,
            .next = side->worker[next],
            .ret_s = side->scales + next,
            .rows = rows_of(x, part, x->out),
        };
        side->ahead = 1;
        put_headers(x, part);
        if (x->direct)
            code = dscomm_priv_device_headers(x, part, x->out,
                                              x->channel->ranks, 0);
    }
    return code ? code : device_ops()->worker(x->queue, args, batch->count);
}

/* Copies this rank's own part to where the parts of others are received. */
static int keep_own(const dscomm_exchange_t *x)
{
    const int own = x->channel->rank;
    char *from = dscomm_priv_device_there(x, region_of(x, x->out, own));
    char *to = dscomm_priv_device_there(x, region_of(x, x->in, own));

    return device_ops()->copy(x->queue, to, x->region, from, x->region,
                              x->region, 1);
}

/* Packets whose parts are encoded are sent while others are being encoded. */
dscomm_status_t dscomm_priv_device_encode(dscomm_exchange_t *x)
{
    size_t at = 0, p = 0;
    batch_t batch;
    int code = 0;

    if (!x->mirror.memory)
        return DSCOMM_OK;
    x->unfinished = x->queue;
    while (at < x->part_count && !code) {
        batch_gather(x, &at, x->part_count, is_at_work, &batch);
        if (batch.count)
            code = work(x, &batch);
        for (; p < x->packet_count && last_part(x, p) < at && !code; p++)
            code = dscomm_priv_device_down(x, STAGE_ENCODED, p);
    }
    return dscomm_priv_device_result(code ? code : keep_own(x),
                                     "encoding on a device");
}

/* Devices write only the scale of a header; the host writes the rest. */
void dscomm_priv_device_encoded(const dscomm_exchange_t *x, part_t *part)
{
    part->scale = dscomm_priv_scale_of(part, x->out);
    if (!dscomm_priv_keeps(part->c, part->scale))
        part->side->now = !part->side->now;
    put_headers(x, part);
}

static char *result_of(const dscomm_exchange_t *x)
{
    return region_of(x, x->in, x->channel->rank);
}

/* 1 if the part has something to reduce. Writes the header of the result; the
 * device writes the scale later. */
static int part_judge(const dscomm_exchange_t *x, part_t *part,
                      char *const *rows)
{
    part->not_finite = dscomm_priv_not_finite(x, part, rows);
    dscomm_priv_put_header(part, part->not_finite ? NAN : 0, 1, result_of(x));
    return is_server(part)
               ? 0
               : dscomm_priv_device_headers(x, part, result_of(x), 1, 0);
}

static int batch_reduce(const dscomm_exchange_t *x, const batch_t *batch)
{
    dscomm_device_server_t args[TOGETHER];
    int code;

    for (size_t i = 0; i < batch->count; i++) {
        const part_t *part = batch->at[i];
        const dscomm_compressor_t *c = part->c;
        float share = 1.0f / (float)x->channel->ranks;

        args[i] = (dscomm_device_server_t){
            .rows = rows_of(x, part, x->in),
            .factor = c->op == DSCOMM_AVG ? share : 1,
            .count = side_server_count(c),
            .c = part->side->server,
            .s = part->side->scales + 2,
            .ret_row = row_there(x, part, x->in, x->channel->rank),
        };
    }
    code = device_ops()->server(x->queue, args, batch->count);
    for (size_t i = 0; i < batch->count && x->direct && !code; i++)
        code = dscomm_priv_device_headers(x, batch->at[i], result_of(x), 1,
                                          sizeof(float));
    return code;
}

/* Each packet of results is sent as soon as its last part is reduced. */
dscomm_status_t dscomm_priv_device_reduce(dscomm_exchange_t *x, size_t first,
                                          size_t end, char *const *rows)
{
    batch_t batch;
    int code = 0;

    if (!x->queue)
        return DSCOMM_OK;
    for (size_t i = first; i < end && !code; i++)
        if (part_at(x, i)->side)
            code = part_judge(x, part_at(x, i), rows);
    while (first < end && !code) {
        batch_gather(x, &first, end, is_server, &batch);
        if (batch.count)
            code = batch_reduce(x, &batch);
        for (; x->served < x->packet_count && last_part(x, x->served) < first &&
               !code;
             x->served++)
            code = dscomm_priv_device_down(x, STAGE_REDUCED, x->served);
    }
    return dscomm_priv_device_result(code, "reducing on a device");
}

/* Sets the server errors to zero, because their values are lost. */
static int part_forget(const part_t *part)
{
    dscomm_device_side_t *side = part->side;
    int code = device_ops()->clear(side->queue, side->server,
                                   side_server_count(part->c) * sizeof(float));

    return code ? code
                : device_ops()->clear(side->queue, side->scales + 2,
                                      sizeof(float));
}

dscomm_status_t dscomm_priv_device_reduced(const dscomm_exchange_t *x,
                                           part_t *part)
{
    int code = 0;

    part->scale = dscomm_priv_scale_of(part, result_of(x));
    if (is_server(part) && dscomm_priv_keeps(part->c, part->scale))
        code = part_forget(part);
    dscomm_priv_put_header(part, part->scale, 1, result_of(x));
    return dscomm_priv_device_result(code, "reducing on a device");
}

/* Does for the part of rank what dscomm_priv_take_back() does; the errors were
 * materialised before. */
static int part_take_back(const dscomm_exchange_t *x, const part_t *part,
                          int rank)
{
    const dscomm_compressor_t *c = part->c;
    size_t base = (size_t)rank * c->chunk;
    dscomm_device_take_back_t args = {
        .format = format_of(x),
        .x = part->buffer + base * dscomm_dtype_size(x->dtype),
        .count = dscomm_priv_part_count(c, rank),
        .row = row_there(x, part, x->out, rank),
        .c = part->side->worker[part->side->now] + base,
    };

    return args.count ? device_ops()->take_back(x->queue, &args) : 0;
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
            code = part_take_back(x, part, r);
    }
    return code;
}

/* Prepares decoding a packet's rows of a part. Before the first packet, parts
 * without a result are added to the errors again, which needs the whole buffer.
 */
static int unpack_prepare(const dscomm_exchange_t *x, const segment_t *segment,
                          dscomm_device_unpack_t *ret_args)
{
    const part_t *part = part_at(x, segment->part);

    *ret_args = (dscomm_device_unpack_t){
        .format = format_of(x),
        .rows = rows_of(x, part, x->in),
        .count = part->c->count,
        .from = segment->from,
        .to = segment->to,
        .ret_x = part->buffer,
    };
    return segment->from ? 0 : take_back_all(x, part);
}

dscomm_status_t dscomm_priv_device_decode(dscomm_exchange_t *x, size_t p)
{
    const packet_t *packet = packet_at(x, p);
    dscomm_device_unpack_t args[TOGETHER];
    size_t jobs = 0;
    int code = 0;

    for (size_t s = packet->first; s < packet->last && !code; s++) {
        if (part_at(x, segment_at(x, s)->part)->side)
            code = unpack_prepare(x, segment_at(x, s), &args[jobs++]);
        if (code || !jobs || (jobs < TOGETHER && s + 1 < packet->last))
            continue;
        code = device_ops()->unpack(x->queue, args, jobs);
        jobs = 0;
    }
    return dscomm_priv_device_result(code, "decoding on a device");
}

/* Makes streams wait for the end of the call; without streams, the host waits.
 */
dscomm_status_t dscomm_priv_device_complete(dscomm_exchange_t *x)
{
    const part_t *last = NULL;
    int code = 0, waits = 0;

    for (size_t i = 0; i < x->part_count && !code; i++) {
        const part_t *part = part_at(x, i);

        if (!part->side)
            continue;
        if (!part->c->stream)
            waits = 1;
        else if (!last || last->c->stream != part->c->stream)
            code = device_ops()->lead(x->queue, part->c->stream);
        last = part;
    }
    if (!code && waits)
        code = dscomm_priv_device_mark_end(x);
    return dscomm_priv_device_result(code, "decoding on a device");
}
