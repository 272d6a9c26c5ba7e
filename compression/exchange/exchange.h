/* SPDX-License-Identifier: BSD-3-Clause */
/* One compressed call: its plan, and its progress. */
#ifndef COMPRESSION_EXCHANGE_H
#define COMPRESSION_EXCHANGE_H

#include "compression/core/compressor.h"
#include "compression/core/window.h"
#include "compression/device/ops.h"

/* A compressor and its buffer. */
typedef struct {
    dscomm_compressor_t *c;
    char *buffer;
    size_t offset; /* of the part's row in a region */
    uint32_t signature; /* of the compressor, with the buffer's dtype */
    float scale; /* of this rank's reduced part */
    double sums[DSCOMM_CODEC_SUMS];
    int not_finite; /* 1: no sum is made, see dscomm_priv_not_finite() */
    dscomm_device_side_t *side; /* a device computes; NULL: the host does */
    char *origin; /* the device memory that buffer is a copy of; or NULL */
    int late; /* 1: a device may still use the copy */
} part_t;

/* A range of elements of a row that is sent in one piece. */
typedef struct {
    size_t part; /* index */
    size_t from, to; /* elements of the row; the header is before 0 */
    size_t offset, bytes; /* in a region */
} segment_t;

/* Segments that travel together. */
typedef struct {
    size_t first, last; /* segments [first, last) */
    size_t offset, bytes;
} packet_t;

/* Memory that only grows and is kept from call to call. */
typedef struct {
    void *at;
    size_t bytes;
} room_t;

/* A packet of a device's parts passes these stages: the device has encoded this
 * rank's part; all ranks' parts are on the device; it has encoded the result;
 * all results are on the device. */
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

/* The mirror: device memory for all regions of the parts that the device
 * computes. It is kept for later calls, except a slot of a window. */
typedef struct {
    dscomm_device_queue_t *queue; /* NULL: there is no mirror */
    /* memory of this call: its own, or a slot of a window; or NULL */
    char *memory;
    char *own;
    size_t room; /* bytes of own */
    dscomm_window_slot_t slot;
    mark_t *marks; /* one for each stage and packet, and MARKS of the call */
    size_t mark_count;
} mirror_t;

/* Marks of the call (stage STAGES): its end, and that other ranks' rows were
 * read. */
enum { MARK_END, MARK_READ, MARKS };

/* A region has a row of every part. Region r of out is sent to rank r; region r
 * of in is received from it, first its part to be reduced, later its result.
 * This rank's region of out is reduced in place, and this rank's result is
 * encoded into its region of in.
 *
 * If a rank's rows are in a window, its messages have only the headers of a
 * packet, or one byte for a packet without headers; the other ranks read the
 * rest in the window, where it is complete by then. After a rank has read all
 * of it, it acknowledges that with a message of one byte, and the call ends
 * with these. A rank's first header tells which form its messages have. */
struct dscomm_exchange {
    dscomm_exchange_t *next; /* idle ones */
    dscomm_channel_t *channel;
    const char *name; /* of the public call */
    dscomm_dtype_t dtype;
    int stream;
    /* memory of the arrays from parts to packets, and of the works */
    room_t plan, works;
    part_t *parts;
    segment_t *segments;
    packet_t *packets;
    size_t part_count, segment_count, packet_count;
    dscomm_work_t **sends, **gathers, **spreads; /* NULL: complete */
    /* acknowledgements: received from all ranks, then sent to all */
    dscomm_work_t **acks;
    size_t region; /* bytes */
    char *memory, *out, *in;
    size_t room; /* bytes of memory */
    dscomm_device_queue_t *queue; /* of the parts' device, or NULL */
    mirror_t mirror;
    int direct; /* 1: messages read and write device memory */
    int shows; /* 1: the other ranks read rows in this rank's window */
    /* messages to other ranks if shows is 1: a header for each segment */
    char *notes;
    char *tokens; /* acknowledgements of the other ranks, one byte each */
    char **mapped; /* other ranks' regions by rank, NULL: not mapped; NULL
                     without windows */
    int acknowledged; /* 1: this rank has acknowledged the other ranks' rows */
    int waits; /* 1: the device has not reached a mark yet */
    /* the queue that has allocated pinned memory; or NULL */
    dscomm_device_queue_t *pinned;
    /* shortage of pinned host memory, and of memory for the mirror */
    dscomm_shortage_t unpinned, unmirrored;
    /* the queue that may still use memory; or NULL */
    dscomm_device_queue_t *unfinished;
    /* Numbers of packets: received to be reduced, reduced, encoded by a device,
     * sent as results, received as results, decoded. Number of parts whose
     * scale is known; number of sends that are complete. */
    size_t gathered, reduced, served, spread, fetched, decoded, ready, sent;
    dscomm_work_t *awaited; /* what the call waits for; NULL: its device */
    int64_t began_ns;
    int64_t since_ns; /* time of the last progress; 0: unknown */
    int64_t seen_ns; /* time of the last look at the device */
    int timeout_ms;
    int abandoned; /* 1: the memory may be in use until the process ends */
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

/* In packets.c. Divides the rows for a rank into packets. ERR_NO_MEMORY: the
 * call then has no parts. */
dscomm_status_t
dscomm_priv_exchange_plan(dscomm_exchange_t *x,
                          dscomm_compressor_t *const *compressors,
                          void *const *buffers, size_t n, dscomm_dtype_t dtype);
/* The bytes of packet p that are sent of rank's part, without padding at its
 * end; 0: none. */
size_t dscomm_priv_packet_bytes(const dscomm_exchange_t *x, size_t p, int rank);
/* Makes room for at least so many bytes; old contents are lost. */
dscomm_status_t dscomm_priv_room_grow(room_t *room, size_t bytes);

/* In memory.c. An idle exchange of channel, or a new one. */
dscomm_exchange_t *dscomm_priv_exchange_new(dscomm_channel_t *channel);
/* Allocates two regions for each rank, and room for the works. */
dscomm_status_t dscomm_priv_exchange_room(dscomm_exchange_t *x);
/* The number of works that there is room for, beginning with gathers. */
size_t dscomm_priv_exchange_works(const dscomm_exchange_t *x);
/* Returns x to the idle exchanges unless it is abandoned. Its compressors may
 * be used again, and freed. */
void dscomm_priv_exchange_retire(dscomm_exchange_t *x);

/* In exchange.c. Starts the call: posts receives, encodes, sends. go_on() makes
 * all progress that is possible; OK: the call is complete. */
dscomm_status_t dscomm_priv_exchange_start(dscomm_exchange_t *x);
dscomm_status_t dscomm_priv_exchange_go_on(dscomm_exchange_t *x);

/* In back-off.c. IN_PROGRESS, or ERR_TIMEOUT if the call's device has made no
 * progress for too long. */
dscomm_status_t dscomm_priv_exchange_watch(dscomm_exchange_t *x, int moved);
/* Waits until the device reaches a packet's mark, while messages progress. */
dscomm_status_t dscomm_priv_exchange_await(dscomm_exchange_t *x, stage_t stage,
                                           size_t p);

/* In blocks.c: arithmetic on one segment. measure() reads the whole buffer of a
 * part; encode() encodes a segment for rank. */
void dscomm_priv_measure(const dscomm_exchange_t *x, part_t *part);
void dscomm_priv_encode(const dscomm_exchange_t *x, part_t *part,
                        const segment_t *segment, int rank, char *region);
/* Adds the rows of all ranks (rows[rank]: regions) to the server error. -1: a
 * row is malformed. */
int dscomm_priv_reduce(const dscomm_exchange_t *x, part_t *part,
                       const segment_t *segment, char *const *rows);
/* Computes the scale of a part after all of it was reduced. */
void dscomm_priv_settle(const dscomm_exchange_t *x, part_t *part);
/* Encodes a result; decodes rank's result into the buffer. -1: the bytes are
 * malformed. */
void dscomm_priv_encode_result(const dscomm_exchange_t *x, part_t *part,
                               const segment_t *segment, char *region);
int dscomm_priv_decode(const dscomm_exchange_t *x, part_t *part,
                       const segment_t *segment, int rank, char *region);
/* If rank's result is not finite: adds what this rank sent for it, which is in
 * region, to the worker error again. Called before the result is decoded. */
void dscomm_priv_take_back(const dscomm_exchange_t *x, part_t *part,
                           const segment_t *segment, int rank,
                           char *result_region, char *region);

/* put_header() writes the header of a row, scale_of() reads its scale. keeps():
 * 1 if a call with this scale leaves the errors as they were, as it does in the
 * native geometry if the scale is not finite. not_finite(): 1 if one of a
 * part's rows has such a scale, or if their sum would be beyond float32. */
void dscomm_priv_put_header(const part_t *part, float scale, uint32_t phase,
                            char *region);
float dscomm_priv_scale_of(const part_t *part, char *region);
int dscomm_priv_keeps(const dscomm_compressor_t *c, float scale);
int dscomm_priv_not_finite(const dscomm_exchange_t *x, const part_t *part,
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
