/* SPDX-License-Identifier: BSD-3-Clause */
/* One call: what goes where, and how far it is. */
#ifndef COMPRESSION_EXCHANGE_H
#define COMPRESSION_EXCHANGE_H

#include "compression/core/compressor.h"
#include "compression/device/ops.h"
#include "compression/core/window.h"

/* A compressor and its buffer. */
typedef struct {
    dscomm_compressor_t *c;
    char *buffer;
    size_t offset; /* of its row in a region */
    uint32_t signature; /* of the compressor, with the buffer's dtype */
    float scale; /* of what this rank has reduced */
    double sums[DSCOMM_CODEC_SUMS];
    int spoilt; /* there is no sum, see dscomm_priv_is_spoilt() */
    dscomm_device_side_t *side; /* its arithmetic is a device's; NULL: ours */
    char *origin; /* where buffer is a copy: the device's memory */
    int late; /* a device may still use the copy */
} part_t;

/* Elements of a row that are sent in one piece. */
typedef struct {
    size_t part; /* index */
    size_t from, to; /* elements of the row; header: where from is 0 */
    size_t offset, bytes; /* in a region */
} segment_t;

/* Segments that travel together. */
typedef struct {
    size_t first, last; /* segments; last is the one behind */
    size_t offset, bytes;
} packet_t;

/* Memory that only grows, kept from call to call. */
typedef struct {
    void *at;
    size_t bytes;
} room_t;

/* What is waited for, for a packet, where parts are a device's: this rank's own
 * part is encoded, what is to be reduced has come, the result is encoded, the
 * results have come. */
typedef enum {
    STAGE_ENCODED,
    STAGE_GATHERED,
    STAGE_REDUCED,
    STAGE_SPREAD,
    STAGES
} stage_t;

typedef struct {
    void *event; /* of the device's table, or NULL */
    int is_set;
} mark_t;

/* In the memory of a device: all regions again, as far as its parts go. Kept
 * like the rest, but for what is taken of a window. */
typedef struct {
    dscomm_device_queue_t *queue; /* NULL: none of this */
    char *memory; /* of this call: the next one, or in a window; or NULL */
    char *own;
    size_t room; /* bytes of own */
    dscomm_berth_t berth;
    mark_t *marks; /* for each stage one a packet; two of the call */
    size_t mark_count;
} mirror_t;

/* Marks of STAGES: the call's end, and that others' rows were read. */
enum { MARK_END, MARK_READ, MARKS };

/* Regions hold a row of every part. Region number r of out is for rank r, that
 * of in from it: first what is to be reduced, and once all of that is, its
 * result. The own region of out is reduced where it is, and the own result is
 * encoded to that of in.
 *
 * A rank whose rows are in a window of its own sends of a packet the headers
 * alone, one after the other, or a byte, where there is none: the others read
 * the rest there, which is ready by then. Each of them sends a byte more,
 * behind its results, once it has read all, and with these the call ends. Which
 * form a rank's messages have, its first header says. */
struct dscomm_exchange {
    dscomm_exchange_t *next; /* idle ones */
    dscomm_channel_t *channel;
    const char *name; /* of the public call */
    dscomm_dtype_t dtype;
    int stream;
    room_t plan, works; /* what the next two lines, and the one after, are in */
    part_t *parts;
    segment_t *segments;
    packet_t *packets;
    size_t part_count, segment_count, packet_count;
    dscomm_work_t **sends, **gathers, **spreads; /* NULL: complete */
    dscomm_work_t **thanks; /* from ranks, and then to them */
    size_t region; /* bytes */
    char *memory, *out, *in;
    size_t room; /* bytes of memory */
    dscomm_device_queue_t *queue; /* of the parts' device, or NULL */
    mirror_t mirror;
    int direct; /* messages go from and to it */
    int shows; /* others read in a window what they do not get */
    char *notes; /* what goes to them then, a header's bytes for a segment */
    char *tokens; /* and what comes back, a byte from each */
    char **sights; /* where others have their regions, or NULL; none without
                      windows */
    int thanked; /* those that show theirs */
    int waits; /* the device has not come to a mark yet */
    dscomm_device_queue_t *pinned; /* that memory was taken with, or NULL */
    dscomm_shortage_t unpinned, unmirrored; /* of that, and of the mirror's */
    dscomm_device_queue_t *unfinished; /* may work on memory still, or NULL */
    /* Packets that have come to be reduced, were reduced, encoded by a device,
     * sent on, have come as results, were decoded; parts whose scale is known;
     * sends known to be complete. */
    size_t gathered, reduced, served, spread, fetched, decoded, ready, sent;
    dscomm_work_t *awaited; /* why the call does not go on; NULL: it waits for
                               its device */
    gint64 since; /* microseconds: it has not gone on; 0: unknown */
    gint64 seen; /* somebody has looked */
    int timeout_ms;
    int abandoned; /* its memory may be in use until the process ends */
};

static inline part_t *part_at(const dscomm_exchange_t *x, size_t i)
{
    return &x->parts[i];
}

static inline segment_t *segment_at(const dscomm_exchange_t *x, size_t i)
{
    return &x->segments[i];
}

static inline packet_t *packet_at(const dscomm_exchange_t *x, size_t i)
{
    return &x->packets[i];
}

/* In packets.c. Cuts what goes to a rank into packets; ERR_NO_MEMORY, and there
 * are no parts; */
dscomm_status_t
dscomm_priv_exchange_plan(dscomm_exchange_t *x,
                          dscomm_compressor_t *const *compressors,
                          void *const *buffers, size_t n, dscomm_dtype_t dtype);
/* tells how many bytes of packet p are sent of rank's part, without what is
 * filling at its end; 0: nothing is. */
size_t dscomm_priv_packet_bytes(const dscomm_exchange_t *x, size_t p, int rank);
/* So many bytes at least; what was there is gone. */
dscomm_status_t dscomm_priv_room_grow(room_t *room, size_t bytes);

/* In memory.c. An idle one of channel, or a new one; */
dscomm_exchange_t *dscomm_priv_exchange_new(dscomm_channel_t *channel);
/* finds memory for two regions of each rank, and a place for each work. */
dscomm_status_t dscomm_priv_exchange_room(dscomm_exchange_t *x);
/* How many places for works there are, from the first one, gathers. */
size_t dscomm_priv_exchange_works(const dscomm_exchange_t *x);
/* Back to the idle ones, unless it is abandoned; its compressors may be called
 * again, and freed. */
void dscomm_priv_exchange_retire(dscomm_exchange_t *x);

/* In exchange.c. Posts receives, encodes, sends; and then goes on as far as it
 * goes: OK at the end. */
dscomm_status_t dscomm_priv_exchange_start(dscomm_exchange_t *x);
dscomm_status_t dscomm_priv_exchange_go_on(dscomm_exchange_t *x);

/* In back-off.c. IN_PROGRESS, or a failure if the call's device has not gone on
 * for too long; */
dscomm_status_t dscomm_priv_exchange_watch(dscomm_exchange_t *x, int moved);
/* sleeps until the device has come to a packet's mark, while messages go on. */
dscomm_status_t dscomm_priv_exchange_await(dscomm_exchange_t *x, stage_t stage,
                                           size_t p);
/* In drain.c: sleeps a little, for what nobody tells. */
void dscomm_priv_exchange_rest(const dscomm_exchange_t *x);

/* In blocks.c: arithmetic on one segment. These look at the whole buffer of a
 * part, encode a segment for rank, */
void dscomm_priv_measure(const dscomm_exchange_t *x, part_t *part);
void dscomm_priv_encode(const dscomm_exchange_t *x, part_t *part,
                        const segment_t *segment, int rank, char *region);
/* add what all ranks have sent (rows[rank]: regions) to the server error, */
int dscomm_priv_reduce(const dscomm_exchange_t *x, part_t *part,
                       const segment_t *segment, char *const *rows);
/* finish the sums of a part that was reduced as a whole, */
void dscomm_priv_settle(const dscomm_exchange_t *x, part_t *part);
/* encode it, and decode what rank has encoded into the buffer. -1: the bytes
 * make no sense. */
void dscomm_priv_encode_result(const dscomm_exchange_t *x, part_t *part,
                               const segment_t *segment, char *region);
int dscomm_priv_decode(const dscomm_exchange_t *x, part_t *part,
                       const segment_t *segment, int rank, char *region);
/* Where that is not finite: takes what this rank has sent for it, in region,
 * back into the worker error. Before it is decoded. */
void dscomm_priv_take_back(const dscomm_exchange_t *x, part_t *part,
                           const segment_t *segment, int rank,
                           char *result_region, char *region);

/* What several do: writes the header of a row, reads the scale there, tells
 * whether errors survive it as they do in the native geometry where a scale is
 * not finite, and whether one of a part's rows has such a scale, or all
 * together are too large for a sum. */
void dscomm_priv_put_header(const part_t *part, float scale, uint32_t phase,
                            char *region);
float dscomm_priv_scale_of(const part_t *part, char *region);
int dscomm_priv_keeps(const dscomm_compressor_t *c, float scale);
int dscomm_priv_is_spoilt(const dscomm_exchange_t *x, const part_t *part,
                          char *const *rows);

static inline char *region_of(const dscomm_exchange_t *x, char *regions,
                              int rank)
{
    return regions + (size_t)rank * x->region;
}

/* The index of the last part in a packet. */
static inline size_t last_part(const dscomm_exchange_t *x, size_t p)
{
    return segment_at(x, packet_at(x, p)->last - 1)->part;
}

static inline char *dscomm_priv_row(const part_t *part, char *region)
{
    return region + part->offset;
}

#endif
