/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a call: encode and send, reduce the received parts, send the
 * results, decode. All data travels in packets, so that arithmetic on one
 * packet overlaps with the messages of others, and a device's work up to their
 * marks. */
#include "config.h"

#include "compression/device/device.h"

#include <dscomm/dscomm.h>
#include <inttypes.h>
#include <string.h>

static dscomm_work_t **work_slot(const dscomm_exchange_t *x,
                                 dscomm_work_t **works, size_t packet, int rank)
{
    return &works[packet * (size_t)x->channel->ranks + (size_t)rank];
}

/* The tag of a phase. All calls use one tag for parts to be reduced, in program
 * order, so that calls of ranks that are out of step meet and are found to
 * differ. */
static int tag_of(const dscomm_exchange_t *x, int phase)
{
    return phase ? part_at(x, 0)->c->tag + 1 : 0;
}

/* Returns the address that messages use for `here`: on the device, if messages
 * use device memory. */
static char *on_wire(const dscomm_exchange_t *x, char *here)
{
    return x->direct ? dscomm_priv_device_there(x, here) : here;
}

/* Posts receives of packet p from all other ranks: of this rank's part, or of
 * their results. */
static dscomm_status_t packet_receive(dscomm_exchange_t *x, size_t p,
                                      dscomm_work_t **works, int phase)
{
    const int own = x->channel->rank;
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks && status == DSCOMM_OK; r++) {
        size_t bytes = dscomm_priv_packet_bytes(x, p, phase ? r : own);

        if (r != own && bytes)
            status = dscomm_irecv(
                x->channel->group,
                on_wire(x, region_of(x, x->in, r) + packet_at(x, p)->offset),
                bytes, DSCOMM_UINT8, r, tag_of(x, phase),
                work_slot(x, works, p, r));
    }
    return status;
}

/* A header's phase also has SHOWS if the rank's rows are in a window, and then
 * the page in the window. */
#define PHASE 1
#define SHOWS 2
#define PAGE_SHIFT 2

/* The message for a packet whose rows other ranks read in a window: the
 * packet's headers, or one byte of any value if it has none. */
static char *note_of(const dscomm_exchange_t *x, size_t p, int phase)
{
    size_t at = packet_at(x, p)->first + (phase ? x->segment_count : 0);

    return x->notes + at * sizeof(dscomm_row_header_t);
}

static size_t headers_of(const dscomm_exchange_t *x, size_t p)
{
    const packet_t *packet = packet_at(x, p);
    size_t headers = 0;

    for (size_t s = packet->first; s < packet->last; s++)
        headers += !segment_at(x, s)->from;
    return headers;
}

static void take_notes(const dscomm_exchange_t *x, size_t p, char *region,
                       int phase)
{
    const packet_t *packet = packet_at(x, p);
    const uint32_t page = dscomm_priv_window_page(&x->mirror.slot);
    char *note = note_of(x, p, phase);
    dscomm_row_header_t header;

    for (size_t s = packet->first; s < packet->last; s++) {
        const segment_t *segment = segment_at(x, s);

        if (segment->from)
            continue;
        memcpy(&header, region + segment->offset, sizeof header);
        header.phase |= SHOWS | page << PAGE_SHIFT;
        memcpy(note, &header, sizeof header);
        note += sizeof header;
    }
}

/* Moves headers received in this form to their places in the region. The last
 * one is moved first, because the place of a header is never before its
 * position in the message. */
static void put_notes(const dscomm_exchange_t *x, size_t p, char *region)
{
    const packet_t *packet = packet_at(x, p);
    const char *note = region + packet->offset +
                       headers_of(x, p) * sizeof(dscomm_row_header_t);

    for (size_t s = packet->last; s-- > packet->first;) {
        if (segment_at(x, s)->from)
            continue;
        note -= sizeof(dscomm_row_header_t);
        memmove(region + segment_at(x, s)->offset, note,
                sizeof(dscomm_row_header_t));
    }
}

/* Posts the sends of a packet. The first half of the array sends is for parts,
 * the second for results. */
static dscomm_status_t packet_send(dscomm_exchange_t *x, size_t p, char *region,
                                   int rank, int phase)
{
    size_t bytes =
        dscomm_priv_packet_bytes(x, p, phase ? x->channel->rank : rank);
    char *from = on_wire(x, region + packet_at(x, p)->offset);

    if (!bytes)
        return DSCOMM_OK;
    if (x->shows) {
        from = note_of(x, p, phase);
        bytes = MAX(headers_of(x, p) * sizeof(dscomm_row_header_t), 1);
    }
    return dscomm_isend(
        x->channel->group, from, bytes, DSCOMM_UINT8, rank, tag_of(x, phase),
        work_slot(x, x->sends, p + (phase ? x->packet_count : 0), rank));
}

/* Each rank begins with the next rank, so that not all send to the same one. */
static int peer_at(const dscomm_exchange_t *x, int i)
{
    return (x->channel->rank + i) % x->channel->ranks;
}

/* Marks parts on a device, which were encoded as a whole before, as encoded. */
static void note_encoded(const dscomm_exchange_t *x, const packet_t *packet)
{
    for (size_t s = packet->first; s < packet->last; s++) {
        const segment_t *segment = segment_at(x, s);

        if (part_at(x, segment->part)->side && !segment->from)
            dscomm_priv_device_encoded(x, part_at(x, segment->part));
    }
}

static dscomm_status_t encode_packet(dscomm_exchange_t *x, size_t p)
{
    const packet_t *packet = packet_at(x, p);
    dscomm_status_t status = dscomm_priv_exchange_await(x, STAGE_ENCODED, p);

    if (status == DSCOMM_OK)
        note_encoded(x, packet);
    if (status == DSCOMM_OK && x->shows)
        take_notes(x, p, x->out, 0);
    for (int i = 1; i <= x->channel->ranks && status == DSCOMM_OK; i++) {
        int r = peer_at(x, i);
        char *region = region_of(x, x->out, r);

        for (size_t s = packet->first; s < packet->last; s++) {
            part_t *part = part_at(x, segment_at(x, s)->part);

            if (!part->side)
                dscomm_priv_encode(x, part, segment_at(x, s), r, region);
        }
        if (r != x->channel->rank)
            status = packet_send(x, p, region, r, 0);
    }
    return status;
}

dscomm_status_t dscomm_priv_exchange_start(dscomm_exchange_t *x)
{
    dscomm_status_t status = DSCOMM_OK;

    for (size_t p = 0; p < x->packet_count && status == DSCOMM_OK; p++)
        status = packet_receive(x, p, x->gathers, 0);
    if (status == DSCOMM_OK)
        status = dscomm_priv_device_encode(x);
    for (size_t i = 0; i < x->part_count && status == DSCOMM_OK; i++)
        if (!part_at(x, i)->side)
            dscomm_priv_measure(x, part_at(x, i));
    for (size_t p = 0; p < x->packet_count && status == DSCOMM_OK; p++)
        status = encode_packet(x, p);
    return status;
}

static const char another[] = "another compressor, or one with another mask,";

static dscomm_status_t fail_order(const dscomm_compressor_t *c, int rank,
                                  const char *what)
{
    return dscomm_fail(
        DSCOMM_ERR_MISMATCH,
        "rank %d sent a part of %s where this rank expects one of call %" PRIu32
        " of a compressor of %zu elements with codec %s: all ranks call for "
        "the same compressors, with the same masks and dtype, in the same "
        "order",
        rank, what, c->calls, c->count, c->codec->name);
}

/* Returns OK if the work in that slot is complete; it is then freed. */
static dscomm_status_t work_look(dscomm_exchange_t *x, dscomm_work_t **work,
                                 int rank)
{
    dscomm_status_t status;

    if (!*work)
        return DSCOMM_OK;
    status = dscomm_work_test(*work);
    if (status == DSCOMM_OK)
        g_clear_pointer(work, dscomm_work_free);
    if (status == DSCOMM_IN_PROGRESS)
        x->awaited = *work;
    if (status == DSCOMM_ERR_TRUNCATED)
        status = fail_order(part_at(x, 0)->c, rank, "a longer one");
    return status;
}

static dscomm_status_t look_all(dscomm_exchange_t *x, dscomm_work_t **works,
                                size_t p)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks && status == DSCOMM_OK; r++)
        status = work_look(x, work_slot(x, works, p, r), r);
    return status;
}

/* Maps rank's window, if the first header of its call says that its rows are
 * there. */
static dscomm_status_t window_map(dscomm_exchange_t *x, int rank)
{
    dscomm_row_header_t header;

    memcpy(&header, region_of(x, x->in, rank) + packet_at(x, 0)->offset,
           sizeof header);
    if (!(header.phase & SHOWS))
        return DSCOMM_OK;
    x->mapped[rank] =
        dscomm_priv_window_find(x->channel, rank, header.phase >> PAGE_SHIFT,
                                2 * (size_t)x->channel->ranks * x->region);
    return x->mapped[rank] ? DSCOMM_OK
                           : fail_order(part_at(x, 0)->c, rank, another);
}

/* Reads the headers of a packet that has arrived. */
static dscomm_status_t look_for_notes(dscomm_exchange_t *x, stage_t stage,
                                      size_t p)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks && status == DSCOMM_OK; r++) {
        if (r == x->channel->rank)
            continue;
        if (stage == STAGE_GATHERED && p == 0)
            status = window_map(x, r);
        if (x->mapped[r])
            put_notes(x, p, region_of(x, x->in, r));
    }
    return status;
}

/* Names the call that sent a row with signature got, although want was
 * expected. */
static const char *what_came(const dscomm_compressor_t *c, uint32_t want,
                             uint32_t got)
{
    static const struct {
        dscomm_dtype_t dtype;
        const char *text;
    } others[] = {
        {DSCOMM_FLOAT16, "a call with a float16 buffer"},
        {DSCOMM_BFLOAT16, "a call with a bfloat16 buffer"},
        {DSCOMM_FLOAT32, "a call with a float32 buffer"},
        {DSCOMM_FLOAT64, "a call with a float64 buffer"},
    };

    if (got == want)
        return "another call";
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (got == dscomm_priv_row_signature(c, others[i].dtype))
            return others[i].text;
    return another;
}

/* Fails if the row of another rank is not of the same call. */
static dscomm_status_t check_row(const dscomm_exchange_t *x, const part_t *part,
                                 int rank, uint32_t phase, char *region)
{
    const dscomm_compressor_t *c = part->c;
    dscomm_row_header_t header;

    memcpy(&header, dscomm_priv_row(part, region), sizeof header);
    if (x->mapped && x->mapped[rank])
        header.phase &= PHASE;
    if (header.signature == part->signature && header.call == c->calls &&
        header.phase == phase)
        return DSCOMM_OK;
    return fail_order(c, rank, what_came(c, part->signature, header.signature));
}

static dscomm_status_t check_rows(const dscomm_exchange_t *x,
                                  const part_t *part, uint32_t phase,
                                  char *regions)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks && status == DSCOMM_OK; r++)
        if (r != x->channel->rank)
            status = check_row(x, part, r, phase, region_of(x, regions, r));
    return status;
}

static dscomm_status_t fail_code(const dscomm_exchange_t *x, const part_t *part,
                                 const char *what)
{
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "the %s of codec %s that came on group '%s' make no "
                       "sense",
                       what, part->c->codec->name,
                       dscomm_group_name(x->channel->parent));
}

/* Leaves parts on a device out: these are reduced as a whole later. */
static dscomm_status_t exchange_reduce_segment(dscomm_exchange_t *x,
                                               part_t *part,
                                               const segment_t *segment,
                                               char *const *rows)
{
    if (part->side)
        return DSCOMM_OK;
    if (dscomm_priv_reduce(x, part, segment, rows))
        return fail_code(x, part, "parts");
    if (segment->to == part->c->chunk)
        dscomm_priv_settle(x, part);
    return DSCOMM_OK;
}

static dscomm_status_t reduce_packet(dscomm_exchange_t *x, size_t p)
{
    const packet_t *packet = packet_at(x, p);
    char **rows = g_newa(char *, (gsize)x->channel->ranks);
    size_t ready = x->ready;
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks; r++)
        rows[r] = region_of(x, r == x->channel->rank ? x->out : x->in, r);
    for (size_t s = packet->first; s < packet->last && !status; s++) {
        const segment_t *segment = segment_at(x, s);
        part_t *part = part_at(x, segment->part);

        if (!segment->from)
            status = check_rows(x, part, 0, x->in);
        if (!status)
            status = exchange_reduce_segment(x, part, segment, rows);
        if (segment->to == part->c->chunk)
            ready = segment->part + 1;
    }
    if (!status)
        status = dscomm_priv_device_reduce(x, x->ready, ready, rows);
    if (!status)
        x->ready = ready;
    return status;
}

static dscomm_status_t encode_result(const dscomm_exchange_t *x, size_t s,
                                     char *region)
{
    const segment_t *segment = segment_at(x, s);
    part_t *part = part_at(x, segment->part);

    if (!part->side)
        dscomm_priv_encode_result(x, part, segment, region);
    else if (!segment->from)
        return dscomm_priv_device_reduced(x, part);
    return DSCOMM_OK;
}

/* Posts receives of acknowledgements from all other ranks: each shows that the
 * rank has read this rank's window. */
static dscomm_status_t await_acks(dscomm_exchange_t *x)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks && status == DSCOMM_OK; r++)
        if (r != x->channel->rank)
            status =
                dscomm_irecv(x->channel->group, x->tokens + r, 1, DSCOMM_UINT8,
                             r, tag_of(x, 1), work_slot(x, x->acks, 0, r));
    return status;
}

/* Encodes and sends results. The region of parts may be overwritten now. */
static dscomm_status_t spread_packet(dscomm_exchange_t *x, size_t p)
{
    const packet_t *packet = packet_at(x, p);
    char *region = region_of(x, x->in, x->channel->rank);
    dscomm_status_t status = packet_receive(x, p, x->spreads, 1);

    for (size_t s = packet->first; s < packet->last && status == DSCOMM_OK; s++)
        status = encode_result(x, s, region);
    if (status == DSCOMM_OK && x->shows)
        take_notes(x, p, region, 1);
    for (int i = 1; i < x->channel->ranks && status == DSCOMM_OK; i++)
        status = packet_send(x, p, region, peer_at(x, i), 1);
    if (status == DSCOMM_OK && x->shows && p + 1 == x->packet_count)
        status = await_acks(x);
    return status;
}

static dscomm_status_t decode_segment(dscomm_exchange_t *x, part_t *part,
                                      const segment_t *segment)
{
    const int is_last = segment->to == part->c->chunk;

    if (part->side)
        return DSCOMM_OK;
    for (int r = 0; r < x->channel->ranks; r++) {
        char *region = region_of(x, x->in, r);

        dscomm_priv_take_back(x, part, segment, r, region,
                              region_of(x, x->out, r));
        if (dscomm_priv_decode(x, part, segment, r, region))
            return fail_code(x, part, "results");
    }
    return is_last && part->origin ? dscomm_priv_device_finish(x, part)
                                   : DSCOMM_OK;
}

static dscomm_status_t decode_packet(dscomm_exchange_t *x, size_t p)
{
    const packet_t *packet = packet_at(x, p);
    dscomm_status_t status = DSCOMM_OK;

    for (size_t s = packet->first; s < packet->last && !status; s++) {
        const segment_t *segment = segment_at(x, s);
        part_t *part = part_at(x, segment->part);

        if (!segment->from)
            status = check_rows(x, part, 1, x->in);
        if (!status)
            status = decode_segment(x, part, segment);
    }
    if (!status && x->queue)
        status = dscomm_priv_device_decode(x, p);
    if (!status && x->queue && p + 1 == x->packet_count)
        status = dscomm_priv_device_complete(x);
    return status;
}

/* Steps of a call: OK if a step was done, IN_PROGRESS if it is not possible yet
 * or none is left. */

static dscomm_status_t receive_next(dscomm_exchange_t *x, dscomm_work_t **works,
                                    stage_t stage, size_t *packet)
{
    dscomm_status_t status = look_all(x, works, *packet);

    if (status == DSCOMM_OK && x->mapped)
        status = look_for_notes(x, stage, *packet);
    if (status == DSCOMM_OK)
        status = dscomm_priv_device_result(
            dscomm_priv_device_came(x, stage, *packet),
            "taking rows to a device");
    if (status == DSCOMM_OK)
        ++*packet;
    return status;
}

static dscomm_status_t gather_next(dscomm_exchange_t *x)
{
    return x->gathered < x->packet_count
               ? receive_next(x, x->gathers, STAGE_GATHERED, &x->gathered)
               : DSCOMM_IN_PROGRESS;
}

/* Does work with a packet if the device has reached its mark. */
static dscomm_status_t
work_next(dscomm_exchange_t *x, int may, int stage,
          dscomm_status_t (*work)(dscomm_exchange_t *, size_t), size_t *packet)
{
    dscomm_status_t status = DSCOMM_IN_PROGRESS;

    if (may)
        status = dscomm_priv_device_reached(x, stage, *packet);
    if (status == DSCOMM_OK)
        status = work(x, *packet);
    if (status == DSCOMM_OK)
        ++*packet;
    return status;
}

static dscomm_status_t reduce_next(dscomm_exchange_t *x)
{
    return work_next(x, x->reduced < x->gathered, STAGE_GATHERED, reduce_packet,
                     &x->reduced);
}

/* The results of a packet are sent after all of its parts are reduced. */
static dscomm_status_t spread_next(dscomm_exchange_t *x)
{
    return work_next(
        x, x->spread < x->packet_count && last_part(x, x->spread) < x->ready,
        STAGE_REDUCED, spread_packet, &x->spread);
}

static dscomm_status_t fetch_next(dscomm_exchange_t *x)
{
    return x->reduced == x->packet_count && x->fetched < x->spread
               ? receive_next(x, x->spreads, STAGE_SPREAD, &x->fetched)
               : DSCOMM_IN_PROGRESS;
}

static dscomm_status_t decode_next(dscomm_exchange_t *x)
{
    return work_next(x, x->decoded < x->fetched, STAGE_SPREAD, decode_packet,
                     &x->decoded);
}

/* Acknowledges to ranks with windows that their rows were read. */
static dscomm_status_t rows_acknowledge(dscomm_exchange_t *x)
{
    dscomm_status_t status = DSCOMM_IN_PROGRESS;

    if (!x->acknowledged && x->fetched == x->packet_count)
        status = dscomm_priv_device_reached(x, STAGES, MARK_READ);
    for (int r = 0; x->mapped && r < x->channel->ranks && status == DSCOMM_OK;
         r++)
        if (x->mapped[r])
            status = dscomm_isend(x->channel->group,
                                  x->tokens + x->channel->rank, 1, DSCOMM_UINT8,
                                  r, tag_of(x, 1), work_slot(x, x->acks, 1, r));
    if (status == DSCOMM_OK)
        x->acknowledged = 1;
    return status;
}

/* The number of all sends; acknowledgements, received and sent, follow them in
 * the same array. */
static size_t all_sends(const dscomm_exchange_t *x)
{
    return 2 * (x->packet_count + 1) * (size_t)x->channel->ranks;
}

static dscomm_status_t finish_send(dscomm_exchange_t *x)
{
    dscomm_status_t status = DSCOMM_IN_PROGRESS;

    if (x->decoded == x->packet_count && x->acknowledged &&
        x->sent < all_sends(x))
        status = work_look(x, work_slot(x, x->sends, 0, 0) + x->sent,
                           (int)(x->sent % (size_t)x->channel->ranks));
    if (status == DSCOMM_OK)
        x->sent++;
    return status;
}

dscomm_status_t dscomm_priv_exchange_go_on(dscomm_exchange_t *x)
{
    static dscomm_status_t (*const steps[])(dscomm_exchange_t *) = {
        gather_next, reduce_next,      spread_next, fetch_next,
        decode_next, rows_acknowledge, finish_send};
    dscomm_status_t status;

    x->awaited = NULL;
    x->waits = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        do
            status = steps[i](x);
        while (status == DSCOMM_OK);
        if (status < 0)
            return status;
    }
    if (x->decoded < x->packet_count || x->sent < all_sends(x))
        return DSCOMM_IN_PROGRESS;
    return dscomm_priv_device_reached(x, STAGES, MARK_END);
}
