/* SPDX-License-Identifier: BSD-3-Clause */
/* The regions of a call in device memory. */
#include "config.h"

#include "compression/device/device.h"

#include <dscomm/dscomm.h>
#include <string.h>

void dscomm_priv_device_leave(dscomm_exchange_t *x)
{
    mirror_t *mirror = &x->mirror;

    for (size_t i = 0; i < mirror->mark_count; i++)
        if (mirror->marks[i].event)
            device_ops()->unmark(mirror->queue, mirror->marks[i].event);
    g_free(mirror->marks);
    if (mirror->own)
        dscomm_priv_device_release(mirror->queue, 0, mirror->own,
                                   x->timeout_ms);
    dscomm_priv_window_give(x->channel, &mirror->slot);
    *mirror = (mirror_t){0};
}

/* Makes room for marks and clears them; events are kept. */
static dscomm_status_t take_marks(mirror_t *mirror, size_t count)
{
    mark_t *marks = mirror->marks;

    if (count > mirror->mark_count) {
        marks = g_try_renew(mark_t, marks, count);
        if (!marks)
            return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %zu marks",
                               count);
        memset(marks + mirror->mark_count, 0,
               (count - mirror->mark_count) * sizeof *marks);
        mirror->marks = marks;
        mirror->mark_count = count;
    }
    for (size_t i = 0; i < mirror->mark_count; i++)
        marks[i].is_set = 0;
    return DSCOMM_OK;
}

static dscomm_status_t take_own(dscomm_exchange_t *x, int device, size_t room)
{
    mirror_t *mirror = &x->mirror;
    dscomm_status_t status = DSCOMM_OK;
    void *memory = NULL;
    int code;

    if (room <= mirror->room)
        return DSCOMM_OK;
    if (dscomm_priv_device_is_short(&x->unmirrored, room))
        return DSCOMM_ERR_NO_MEMORY;
    if (mirror->own)
        status = dscomm_priv_device_release(mirror->queue, 0, mirror->own,
                                            x->timeout_ms);
    mirror->own = NULL;
    mirror->room = 0;
    if (status < 0)
        return status;
    code = device_ops()->alloc(mirror->queue, room, 0, &memory);
    dscomm_priv_device_note_try(&x->unmirrored, room, code);
    if (code)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "%zu bytes of device %d for encoded rows: %s", room,
                           device, device_ops()->text(code));
    mirror->own = memory;
    mirror->room = room;
    /* Waits until the memory is cleared, if messages arrive in it directly. */
    return dscomm_group_capabilities(x->channel->group) &
                   DSCOMM_CAP_DEVICE_MEMORY
               ? dscomm_priv_device_drain(x->channel, mirror->queue, NULL,
                                          x->timeout_ms)
               : DSCOMM_OK;
}

dscomm_status_t dscomm_priv_device_marks(dscomm_exchange_t *x, int device)
{
    mirror_t *mirror = &x->mirror;
    dscomm_device_queue_t *queue;
    dscomm_status_t status = dscomm_priv_device_queue(device, &queue);

    if (status < 0)
        return status;
    if (mirror->queue && mirror->queue != queue)
        dscomm_priv_device_leave(x);
    mirror->queue = queue;
    mirror->memory = NULL;
    status = take_marks(mirror, STAGES * x->packet_count + MARKS);
    if (status == DSCOMM_OK)
        x->queue = queue;
    return status;
}

dscomm_status_t dscomm_priv_device_regions(dscomm_exchange_t *x, int device)
{
    const size_t room = 2 * (size_t)x->channel->ranks * x->region;
    mirror_t *mirror = &x->mirror;
    dscomm_status_t status = dscomm_priv_device_marks(x, device);

    if (status < 0)
        return status;
    mirror->memory =
        dscomm_priv_window_take(x->channel, x->queue, room, &mirror->slot);
    if (mirror->memory)
        return DSCOMM_OK;
    status = take_own(x, device, room);
    if (status == DSCOMM_OK)
        mirror->memory = mirror->own;
    return status;
}

char *dscomm_priv_device_there(const dscomm_exchange_t *x, const char *here)
{
    return x->mirror.memory ? x->mirror.memory + (here - x->memory) : NULL;
}

/* A function that returns how many bytes of a segment are copied. */
typedef size_t (*extent_t)(const dscomm_exchange_t *x,
                           const segment_t *segment);

static size_t all_there(const dscomm_exchange_t *x, const segment_t *segment)
{
    return part_at(x, segment->part)->side ? segment->bytes : 0;
}

static size_t all_here(const dscomm_exchange_t *x, const segment_t *segment)
{
    return part_at(x, segment->part)->side ? 0 : segment->bytes;
}

static size_t header_there(const dscomm_exchange_t *x, const segment_t *segment)
{
    return part_at(x, segment->part)->side && !segment->from
               ? sizeof(dscomm_row_header_t)
               : 0;
}

/* A copy: bytes at offset in each of so many regions, from this one on. */
typedef struct {
    char *to;
    const char *from;
    int regions;
    size_t skip; /* of each header */
    size_t offset, bytes;
} piece_t;

static int copy_piece(const dscomm_exchange_t *x, const piece_t *piece)
{
    if (piece->regions <= 0 || !piece->bytes)
        return 0;
    return device_ops()->copy(x->queue, piece->to + piece->offset, x->region,
                              piece->from + piece->offset, x->region,
                              piece->bytes, (size_t)piece->regions);
}

/* Copies part of the packet; adjacent regions in one copy. piece has the
 * regions. */
static int copy_packet(const dscomm_exchange_t *x, size_t p, piece_t piece,
                       extent_t extent, int *ret_any)
{
    const packet_t *packet = packet_at(x, p);
    int code = 0;

    for (size_t s = packet->first; s < packet->last && !code; s++) {
        const segment_t *segment = segment_at(x, s);
        size_t bytes = extent(x, segment);
        size_t skip = segment->from ? 0 : piece.skip;

        if (bytes <= skip)
            continue;
        *ret_any = 1;
        if (piece.offset + piece.bytes != segment->offset + skip) {
            code = copy_piece(x, &piece);
            piece.offset = segment->offset + skip;
            piece.bytes = 0;
        }
        piece.bytes += bytes - skip;
    }
    return code ? code : copy_piece(x, &piece);
}

/* Copies between the host's regions and the device's, of ranks [first, end). */
static int copy_down(const dscomm_exchange_t *x, size_t p, char *regions,
                     int first, int end, extent_t extent, int *ret_any)
{
    char *here = region_of(x, regions, first);
    const piece_t piece = {.to = here,
                           .from = dscomm_priv_device_there(x, here),
                           .regions = end - first};

    return copy_packet(x, p, piece, extent, ret_any);
}

static int copy_up(const dscomm_exchange_t *x, size_t p, int first, int end,
                   int *ret_any)
{
    char *here = region_of(x, x->in, first);
    const piece_t piece = {.to = dscomm_priv_device_there(x, here),
                           .from = here,
                           .regions = end - first};

    return copy_packet(x, p, piece, all_there, ret_any);
}

static int copy_others(const dscomm_exchange_t *x, size_t p, int *ret_any)
{
    const int own = x->channel->rank, end = x->channel->ranks;
    int code = 0;

    if (!x->direct) {
        code = copy_up(x, p, 0, own, ret_any);
        return code ? code : copy_up(x, p, own + 1, end, ret_any);
    }
    code = copy_down(x, p, x->in, 0, own, header_there, ret_any);
    return code ? code
                : copy_down(x, p, x->in, own + 1, end, header_there, ret_any);
}

/* Reads rank's rows in its window to the device, or to the host, which has the
 * headers and then waits for the rows. */
static int read_mapped(const dscomm_exchange_t *x, stage_t stage, size_t p,
                       int rank, int *ret_waits)
{
    const int own = x->channel->rank, n = x->channel->ranks;
    const int region = stage == STAGE_GATHERED ? own : n + rank;
    char *here = region_of(x, x->in, rank);
    piece_t piece = {.to = here,
                     .from = region_of(x, x->mapped[rank], region),
                     .regions = 1,
                     .skip = sizeof(dscomm_row_header_t)};
    int any = 0, code = copy_packet(x, p, piece, all_here, ret_waits);

    piece.skip = 0;
    piece.to = dscomm_priv_device_there(x, here);
    return code ? code : copy_packet(x, p, piece, all_there, &any);
}

/* Takes the rows of a packet: from windows, and from messages. */
static int read_others(const dscomm_exchange_t *x, stage_t stage, size_t p,
                       int *ret_waits)
{
    const int own = x->channel->rank;
    int any = 0, code = 0;

    for (int r = 0; r < x->channel->ranks && !code; r++) {
        if (r == own ||
            !dscomm_priv_packet_bytes(x, p, stage == STAGE_GATHERED ? own : r))
            continue;
        code = x->mapped[r] ? read_mapped(x, stage, p, r, ret_waits)
                            : copy_up(x, p, r, r + 1, &any);
    }
    return code;
}

static mark_t *mark_at(const dscomm_exchange_t *x, stage_t stage, size_t p)
{
    return &x->mirror.marks[(size_t)stage * x->packet_count + p];
}

static int mirror_mark(const dscomm_exchange_t *x, mark_t *mirror_mark)
{
    int code = device_ops()->mark(x->queue, &mirror_mark->event);

    mirror_mark->is_set = !code;
    return code;
}

int dscomm_priv_device_down(dscomm_exchange_t *x, stage_t stage, size_t p)
{
    const extent_t extent = x->direct || x->shows ? header_there : all_there;
    const int own = x->channel->rank, end = x->channel->ranks;
    int any = 0, code;

    if (stage == STAGE_ENCODED)
        code = copy_down(x, p, x->out, 0, end, extent, &any);
    else
        code = copy_down(x, p, x->in, own, own + 1, extent, &any);
    return code || !any ? code : mirror_mark(x, mark_at(x, stage, p));
}

static int sees(const dscomm_exchange_t *x)
{
    for (int r = 0; x->mapped && r < x->channel->ranks; r++)
        if (x->mapped[r])
            return 1;
    return 0;
}

int dscomm_priv_device_came(dscomm_exchange_t *x, stage_t stage, size_t p)
{
    const int is_last = stage == STAGE_SPREAD && p + 1 == x->packet_count;
    int any = 0, code;

    if (!x->queue)
        return 0;
    if (sees(x)) {
        x->unfinished = x->queue;
        code = read_others(x, stage, p, &any);
        if (!code && is_last)
            code = mirror_mark(x, mark_at(x, STAGES, MARK_READ));
    } else {
        code = copy_others(x, p, &any);
        any &= x->direct;
    }
    return code || !any ? code : mirror_mark(x, mark_at(x, stage, p));
}

int dscomm_priv_device_headers(const dscomm_exchange_t *x, const part_t *part,
                               const char *first, int ranks, size_t skip)
{
    const char *here = first + part->offset + skip;

    return device_ops()->copy(
        x->queue, dscomm_priv_device_there(x, here), x->region, here, x->region,
        sizeof(dscomm_row_header_t) - skip, (size_t)ranks);
}

int dscomm_priv_device_mark_end(dscomm_exchange_t *x)
{
    return mirror_mark(x, mark_at(x, STAGES, MARK_END));
}

dscomm_status_t dscomm_priv_device_settle(dscomm_exchange_t *x, int most_ms)
{
    mark_t *last;
    dscomm_status_t status;

    if (!x->unfinished)
        return DSCOMM_OK;
    last = &x->mirror.marks[x->mirror.mark_count - 1];
    status =
        dscomm_priv_device_drain(NULL, x->unfinished, &last->event, most_ms);
    if (status == DSCOMM_OK)
        x->unfinished = NULL;
    return status;
}

dscomm_status_t dscomm_priv_device_reached(dscomm_exchange_t *x, stage_t stage,
                                           size_t p)
{
    mark_t *wanted;
    int is_there = 1, code;

    if (!x->queue)
        return DSCOMM_OK;
    wanted = mark_at(x, stage, p);
    if (!wanted->is_set)
        return DSCOMM_OK;
    code = device_ops()->reached(x->queue, wanted->event, &is_there);
    if (code)
        return dscomm_priv_device_result(code, "waiting for a device");
    if (is_there)
        wanted->is_set = 0;
    else
        x->waits = 1;
    /* A device without regions only reads windows. */
    if (is_there && stage == STAGES && (p == MARK_END || !x->mirror.memory))
        x->unfinished = NULL;
    return is_there ? DSCOMM_OK : DSCOMM_IN_PROGRESS;
}
