/* SPDX-License-Identifier: BSD-3-Clause */
/* Divides the rows for a rank into packets. */
#include "config.h"

#include "compression/exchange/exchange.h"

#include <dscomm/dscomm.h>

#define PACKET_BYTES ((size_t)256 << 10)
/* From this size on, outputs leave nothing useful in the caches. */
#define STREAM_BYTES ((size_t)16 << 20)

dscomm_status_t dscomm_priv_room_grow(room_t *room, size_t bytes)
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

/* Adds a segment to the last packet, or to a new one if the last is long
 * enough. */
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

/* The number of elements of a row that are sent in one piece; whole blocks. */
static size_t packet_step(const dscomm_compressor_t *c)
{
    return MAX(PACKET_BYTES / MAX(c->block, 1), 1) * (size_t)DSCOMM_CODEC_BLOCK;
}

/* A row is cut between blocks. */
static void packet_cut(dscomm_exchange_t *x, size_t index)
{
    const part_t *part = part_at(x, index);
    const dscomm_compressor_t *c = part->c;
    size_t step = packet_step(c), at = 0;

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

/* Allocates n parts, and the pieces into which they are divided. */
static dscomm_status_t plan_allocate(dscomm_exchange_t *x,
                                     dscomm_compressor_t *const *compressors,
                                     size_t n)
{
    size_t pieces = 0;
    dscomm_status_t status;

    for (size_t i = 0; i < n; i++) {
        size_t step = packet_step(compressors[i]);

        pieces +=
            compressors[i]->chunk / step + (compressors[i]->chunk % step != 0);
    }
    status = dscomm_priv_room_grow(
        &x->plan, n * sizeof *x->parts +
                      pieces * (sizeof *x->segments + sizeof *x->packets));
    if (status < 0)
        return status;
    x->parts = x->plan.at;
    x->segments = (segment_t *)(x->parts + n);
    x->packets = (packet_t *)(x->segments + pieces);
    return status;
}

dscomm_status_t
dscomm_priv_exchange_plan(dscomm_exchange_t *x,
                          dscomm_compressor_t *const *compressors,
                          void *const *buffers, size_t n, dscomm_dtype_t dtype)
{
    dscomm_status_t status = plan_allocate(x, compressors, n);
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
        packet_cut(x, i);
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
