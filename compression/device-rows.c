/* SPDX-License-Identifier: BSD-3-Clause */
/* See device-rows.h. */
#include "config.h"

#include "compression/device-rows.h"

#include <dscomm/dscomm.h>
#include <string.h>

static const dscomm_device_ops_t *ops(void)
{
    return dscomm_priv_device_table();
}

void dscomm_priv_device_leave(dscomm_exchange_t *x)
{
    mirror_t *mirror = &x->mirror;

    for (size_t i = 0; i < mirror->mark_count; i++)
        if (mirror->marks[i].event)
            ops()->unmark(mirror->queue, mirror->marks[i].event);
    g_free(mirror->marks);
    if (mirror->memory)
        dscomm_priv_device_release(mirror->queue, 0, mirror->memory,
                                   x->timeout_ms);
    *mirror = (mirror_t){0};
}

/* Places for marks, of which none is set; events stay. */
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

static dscomm_status_t take_room(dscomm_exchange_t *x, int device, size_t room)
{
    mirror_t *mirror = &x->mirror;
    dscomm_status_t status = DSCOMM_OK;
    void *memory = NULL;
    int code;

    if (room <= mirror->room)
        return DSCOMM_OK;
    if (dscomm_priv_device_is_short(&x->unmirrored, room))
        return DSCOMM_ERR_NO_MEMORY;
    if (mirror->memory)
        status = dscomm_priv_device_release(mirror->queue, 0, mirror->memory,
                                            x->timeout_ms);
    mirror->memory = NULL;
    mirror->room = 0;
    if (status < 0)
        return status;
    code = ops()->alloc(mirror->queue, room, 0, &memory);
    dscomm_priv_device_asked(&x->unmirrored, room, code);
    if (code)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "%zu bytes of device %d for encoded rows: %s", room,
                           device, ops()->text(code));
    mirror->memory = memory;
    mirror->room = room;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_device_regions(dscomm_exchange_t *x, int device)
{
    mirror_t *mirror = &x->mirror;
    dscomm_device_queue_t *queue;
    dscomm_status_t status = dscomm_priv_device_queue(device, &queue);

    if (status < 0)
        return status;
    if (mirror->queue && mirror->queue != queue)
        dscomm_priv_device_leave(x);
    mirror->queue = queue;
    status = take_marks(mirror, STAGES * x->packet_count + 1);
    if (status == DSCOMM_OK)
        status =
            take_room(x, device, 2 * (size_t)x->channel->ranks * x->region);
    if (status == DSCOMM_OK)
        x->queue = queue;
    return status;
}

char *dscomm_priv_device_there(const dscomm_exchange_t *x, const char *here)
{
    return x->mirror.memory + (here - x->memory);
}

/* Bytes in which the host has a part, of a segment that is a device's. */
static size_t seen(const dscomm_exchange_t *x, const segment_t *segment)
{
    if (!part_at(x, segment->part)->side)
        return 0;
    if (!x->direct)
        return segment->bytes;
    return segment->from ? 0 : sizeof(dscomm_row_header_t);
}

/* bytes at offset of regions [first, end). */
typedef struct {
    char *regions;
    int first, end, down;
    size_t offset, bytes;
} piece_t;

static int copy_piece(const dscomm_exchange_t *x, const piece_t *piece)
{
    char *here = region_of(x, piece->regions, piece->first) + piece->offset;
    char *there = dscomm_priv_device_there(x, here);

    if (piece->first >= piece->end || !piece->bytes)
        return 0;
    return ops()->copy(x->queue, piece->down ? here : there, x->region,
                       piece->down ? there : here, x->region, piece->bytes,
                       (size_t)(piece->end - piece->first));
}

/* What is seen of the packet; neighbours go together. piece has the rest. */
static int copy_packet(const dscomm_exchange_t *x, size_t p, piece_t piece,
                       int *ret_any)
{
    const packet_t *packet = packet_at(x, p);
    int code = 0;

    for (size_t s = packet->first; s < packet->last && !code; s++) {
        const segment_t *segment = segment_at(x, s);
        size_t bytes = seen(x, segment);

        if (!bytes)
            continue;
        *ret_any = 1;
        if (piece.offset + piece.bytes != segment->offset) {
            code = copy_piece(x, &piece);
            piece.offset = segment->offset;
            piece.bytes = 0;
        }
        piece.bytes += bytes;
    }
    return code ? code : copy_piece(x, &piece);
}

static int copy_others(const dscomm_exchange_t *x, size_t p, int down,
                       int *ret_any)
{
    const int own = x->channel->rank;
    const piece_t before = {.regions = x->in, .end = own, .down = down};
    const piece_t behind = {.regions = x->in,
                            .first = own + 1,
                            .end = x->channel->ranks,
                            .down = down};
    int code = copy_packet(x, p, before, ret_any);

    return code ? code : copy_packet(x, p, behind, ret_any);
}

static mark_t *mark_at(const dscomm_exchange_t *x, stage_t stage, size_t p)
{
    return &x->mirror.marks[(size_t)stage * x->packet_count + p];
}

static int mark(const dscomm_exchange_t *x, mark_t *mark)
{
    int code = ops()->mark(x->queue, &mark->event);

    mark->is_set = !code;
    return code;
}

int dscomm_priv_device_down(dscomm_exchange_t *x, stage_t stage, size_t p)
{
    const int own = x->channel->rank;
    const piece_t encoded = {
        .regions = x->out, .end = x->channel->ranks, .down = 1};
    const piece_t result = {
        .regions = x->in, .first = own, .end = own + 1, .down = 1};
    int any = 0;
    int code =
        copy_packet(x, p, stage == STAGE_ENCODED ? encoded : result, &any);

    return code || !any ? code : mark(x, mark_at(x, stage, p));
}

int dscomm_priv_device_came(dscomm_exchange_t *x, stage_t stage, size_t p)
{
    int any = 0, code;

    if (!x->queue)
        return 0;
    code = copy_others(x, p, x->direct, &any);
    return code || !any || !x->direct ? code : mark(x, mark_at(x, stage, p));
}

int dscomm_priv_device_headers(const dscomm_exchange_t *x, const part_t *part,
                               const char *first, int ranks, size_t skip)
{
    const char *here = first + part->offset + skip;

    return ops()->copy(x->queue, dscomm_priv_device_there(x, here), x->region,
                       here, x->region, sizeof(dscomm_row_header_t) - skip,
                       (size_t)ranks);
}

int dscomm_priv_device_mark_end(dscomm_exchange_t *x)
{
    return mark(x, &x->mirror.marks[STAGES * x->packet_count]);
}

dscomm_status_t dscomm_priv_device_settle(dscomm_exchange_t *x, int most_ms)
{
    mark_t *last;
    dscomm_status_t status;

    if (!x->unfinished)
        return DSCOMM_OK;
    last = &x->mirror.marks[x->mirror.mark_count - 1];
    status = dscomm_priv_device_drain(x->unfinished, &last->event, most_ms);
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
    code = ops()->reached(x->queue, wanted->event, &is_there);
    if (code)
        return dscomm_priv_device_result(code, "waiting for a device");
    if (is_there)
        wanted->is_set = 0;
    else
        x->waits = 1;
    if (is_there && stage == STAGES)
        x->unfinished = NULL;
    return is_there ? DSCOMM_OK : DSCOMM_IN_PROGRESS;
}
