/* SPDX-License-Identifier: BSD-3-Clause */
/* A call from beginning to end: encode and send, reduce what came, send that
 * on, decode. Everything travels in packets, so that the arithmetic of one runs
 * while others are on their way. Nothing is allocated once the channel has had
 * a call as large. */
#include "config.h"

#include "compression/device.h"
#include "compression/exchange.h"

#include <dscomm/dscomm.h>
#include <inttypes.h>
#include <string.h>

/* Between looks at the group by a call that blocks. */
#define LOOK_MS 100

static const char name[] = "dscomm_compressor_all_reduce";

/* Where what rank has sent to be reduced lies. */
static char *gathered(const dscomm_exchange_t *x, int rank)
{
    return region_of(x, rank == x->channel->rank ? x->out : x->in, rank);
}

static dscomm_work_t **slot(const dscomm_exchange_t *x, dscomm_work_t **works,
                            size_t packet, int rank)
{
    return &works[packet * (size_t)x->channel->ranks + (size_t)rank];
}

/* All calls send what is to be reduced in the order of the program, with one
 * tag, so that those of ranks that are out of step meet. */
static int tag_of(const dscomm_exchange_t *x, int phase)
{
    return phase ? part_at(x, 0)->c->tag + 1 : 0;
}

/* What the other ranks send of packet p: of this rank's part, or the result of
 * theirs. */
static dscomm_status_t receive(dscomm_exchange_t *x, size_t p,
                               dscomm_work_t **works, int phase)
{
    const int own = x->channel->rank;
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks && status == DSCOMM_OK; r++) {
        size_t bytes = dscomm_priv_packet_bytes(x, p, phase ? r : own);

        if (r != own && bytes)
            status = dscomm_irecv(
                x->channel->group,
                region_of(x, x->in, r) + packet_at(x, p)->offset, bytes,
                DSCOMM_UINT8, r, tag_of(x, phase), slot(x, works, p, r));
    }
    return status;
}

/* The second half of sends is that of results. */
static dscomm_status_t send(dscomm_exchange_t *x, size_t p, const char *region,
                            int rank, int phase)
{
    size_t bytes =
        dscomm_priv_packet_bytes(x, p, phase ? x->channel->rank : rank);

    if (!bytes)
        return DSCOMM_OK;
    return dscomm_isend(
        x->channel->group, region + packet_at(x, p)->offset, bytes,
        DSCOMM_UINT8, rank, tag_of(x, phase),
        slot(x, x->sends, p + (phase ? x->packet_count : 0), rank));
}

/* Each rank begins with the next one, so that not all send to the same. */
static int peer_at(const dscomm_exchange_t *x, int i)
{
    return (x->channel->rank + i) % x->channel->ranks;
}

static dscomm_status_t encode_packet(dscomm_exchange_t *x, size_t p)
{
    const packet_t *packet = packet_at(x, p);
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 1; i <= x->channel->ranks && status == DSCOMM_OK; i++) {
        int r = peer_at(x, i);
        char *region = region_of(x, x->out, r);

        for (size_t s = packet->first; s < packet->last; s++) {
            part_t *part = part_at(x, segment_at(x, s)->part);

            if (!part->side)
                dscomm_priv_encode(x, part, segment_at(x, s), r, region);
        }
        if (r != x->channel->rank)
            status = send(x, p, region, r, 0);
    }
    return status;
}

static dscomm_status_t start(dscomm_exchange_t *x)
{
    dscomm_status_t status = DSCOMM_OK;

    for (size_t p = 0; p < x->packet_count && status == DSCOMM_OK; p++)
        status = receive(x, p, x->gathers, 0);
    if (status == DSCOMM_OK)
        status = dscomm_priv_device_encode(x);
    for (size_t i = 0; i < x->part_count && status == DSCOMM_OK; i++)
        if (!part_at(x, i)->side)
            dscomm_priv_measure(x, part_at(x, i));
    for (size_t p = 0; p < x->packet_count && status == DSCOMM_OK; p++)
        status = encode_packet(x, p);
    return status;
}

static dscomm_status_t fail_order(const dscomm_compressor_t *c, int rank,
                                  const char *what)
{
    return dscomm_fail(
        DSCOMM_ERR_MISMATCH,
        "rank %d sent a part of %s where this rank expects one of call %" PRIu32
        " of a compressor of %zu elements with codec %s: all ranks call for "
        "the same compressors, with the same masks, in the same order",
        rank, what, c->calls, c->count, c->codec->name);
}

/* OK where the work in that place is complete; it is freed. */
static dscomm_status_t look(dscomm_exchange_t *x, dscomm_work_t **work,
                            int rank)
{
    dscomm_status_t status;

    if (!*work)
        return DSCOMM_OK;
    status = dscomm_work_test(*work);
    if (status == DSCOMM_OK)
        g_clear_pointer(work, dscomm_work_free);
    if (status == DSCOMM_IN_PROGRESS) {
        x->awaited = *work;
        x->awaited_rank = rank;
    }
    if (status == DSCOMM_ERR_TRUNCATED)
        status = fail_order(part_at(x, 0)->c, rank, "a longer one");
    return status;
}

static dscomm_status_t look_all(dscomm_exchange_t *x, dscomm_work_t **works,
                                size_t p)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks && status == DSCOMM_OK; r++)
        status = look(x, slot(x, works, p, r), r);
    return status;
}

/* The row of another rank must be one of the same call. */
static dscomm_status_t check_row(const part_t *part, int rank, uint32_t phase,
                                 char *region)
{
    const dscomm_compressor_t *c = part->c;
    dscomm_row_header_t header;

    memcpy(&header, dscomm_priv_row(part, region), sizeof header);
    if (header.signature == c->signature && header.call == c->calls &&
        header.phase == phase)
        return DSCOMM_OK;
    return fail_order(c, rank,
                      header.signature == c->signature ? "another call"
                                                       : "another one");
}

static dscomm_status_t check_rows(const dscomm_exchange_t *x,
                                  const part_t *part, uint32_t phase,
                                  char *regions)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int r = 0; r < x->channel->ranks && status == DSCOMM_OK; r++)
        if (r != x->channel->rank)
            status = check_row(part, r, phase, region_of(x, regions, r));
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

/* A device does whole parts, afterwards. */
static dscomm_status_t reduce_segment(dscomm_exchange_t *x, part_t *part,
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
        rows[r] = gathered(x, r);
    for (size_t s = packet->first; s < packet->last && !status; s++) {
        const segment_t *segment = segment_at(x, s);
        part_t *part = part_at(x, segment->part);

        if (!segment->from)
            status = check_rows(x, part, 0, x->in);
        if (!status)
            status = reduce_segment(x, part, segment, rows);
        if (segment->to == part->c->chunk)
            ready = segment->part + 1;
    }
    if (!status)
        status = dscomm_priv_device_reduce(x, x->ready, ready, rows);
    if (!status)
        x->ready = ready;
    return status;
}

/* Nobody reads what has come to be reduced any more. */
static dscomm_status_t spread_packet(dscomm_exchange_t *x, size_t p)
{
    const packet_t *packet = packet_at(x, p);
    char *region = region_of(x, x->in, x->channel->rank);
    dscomm_status_t status = receive(x, p, x->spreads, 1);

    for (size_t s = packet->first; s < packet->last; s++) {
        part_t *part = part_at(x, segment_at(x, s)->part);

        if (!part->side)
            dscomm_priv_encode_result(x, part, segment_at(x, s), region);
    }
    for (int i = 1; i < x->channel->ranks && status == DSCOMM_OK; i++)
        status = send(x, p, region, peer_at(x, i), 1);
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
    size_t end = x->decoded_parts;
    dscomm_status_t status = DSCOMM_OK;

    for (size_t s = packet->first; s < packet->last && !status; s++) {
        const segment_t *segment = segment_at(x, s);
        part_t *part = part_at(x, segment->part);

        if (!segment->from)
            status = check_rows(x, part, 1, x->in);
        if (!status)
            status = decode_segment(x, part, segment);
        if (segment->to == part->c->chunk)
            end = segment->part + 1;
    }
    if (!status)
        status = dscomm_priv_device_decode(x, x->decoded_parts, end);
    x->decoded_parts = end;
    if (!status && p + 1 == x->packet_count)
        status = dscomm_priv_device_complete(x);
    return status;
}

/* All parts of packet p are reduced. */
static int is_ready(const dscomm_exchange_t *x, size_t p)
{
    return segment_at(x, packet_at(x, p)->last - 1)->part < x->ready;
}

/* One step, if there is one: OK, IN_PROGRESS or a failure. */
static dscomm_status_t reduce_next(dscomm_exchange_t *x)
{
    dscomm_status_t status = look_all(x, x->gathers, x->reduced);

    if (status == DSCOMM_OK)
        status = reduce_packet(x, x->reduced);
    if (status == DSCOMM_OK)
        x->reduced++;
    return status;
}

static dscomm_status_t decode_next(dscomm_exchange_t *x)
{
    dscomm_status_t status = look_all(x, x->spreads, x->decoded);

    if (status == DSCOMM_OK)
        status = decode_packet(x, x->decoded);
    if (status == DSCOMM_OK)
        x->decoded++;
    return status;
}

/* As far as it goes. */
static dscomm_status_t go_on(dscomm_exchange_t *x)
{
    const size_t packets = x->packet_count, n = (size_t)x->channel->ranks;
    dscomm_status_t status = DSCOMM_OK;

    while (x->reduced < packets && status == DSCOMM_OK)
        status = reduce_next(x);
    while (x->spread < packets && status >= 0 && is_ready(x, x->spread)) {
        dscomm_status_t sent = spread_packet(x, x->spread++);

        status = sent < 0 ? sent : status;
    }
    while (x->decoded < x->spread && status == DSCOMM_OK)
        status = decode_next(x);
    for (; x->sent < 2 * packets * n && status == DSCOMM_OK; x->sent++) {
        status = look(x, slot(x, x->sends, 0, 0) + x->sent, (int)(x->sent % n));
        if (status != DSCOMM_OK)
            break;
    }
    return status;
}

/* Frees all works: the group has ended, so none of them touches memory any more
 * once it was asked. */
static void drop(dscomm_exchange_t *x)
{
    size_t works = 4 * (size_t)x->channel->ranks * x->packet_count;

    for (size_t i = 0; x->gathers && i < works; i++) {
        if (!x->gathers[i])
            continue;
        dscomm_work_test(x->gathers[i]);
        dscomm_work_free(x->gathers[i]);
    }
}

/* A failure: the other ranks' calls end as well. The sentence is this thread's
 * afterwards. */
static dscomm_status_t fail(dscomm_exchange_t *x, dscomm_status_t status)
{
    char *text = g_strdup(dscomm_last_error());

    if (x->channel->group)
        dscomm_group_abort(x->channel->group, text);
    drop(x);
    dscomm_priv_device_settle(x);
    status = dscomm_fail(status, "%s on group '%s': %s", name,
                         dscomm_group_name(x->channel->parent), text);
    g_free(text);
    for (size_t i = 0; i < x->part_count; i++)
        part_at(x, i)->c->lost = 1;
    dscomm_priv_exchange_retire(x);
    return status;
}

static dscomm_status_t expire(dscomm_exchange_t *x)
{
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "rank %d waits for rank %d, and nothing has come for %d "
                       "ms",
                       x->channel->rank, x->awaited_rank, x->timeout_ms);
}

/* How far a call has come, in steps. */
static size_t steps(const dscomm_exchange_t *x)
{
    return x->reduced + x->spread + x->decoded + x->sent;
}

/* IN_PROGRESS until the deadline. Only time in which somebody has looked
 * counts: what came while nobody did could not be seen. */
static dscomm_status_t watch(dscomm_exchange_t *x, int moved)
{
    gint64 now = g_get_monotonic_time(), limit = (gint64)x->timeout_ms * 1000;

    if (!x->since || moved || now - x->seen > limit / 4)
        x->since = now;
    x->seen = now;
    return now - x->since > limit ? expire(x) : DSCOMM_IN_PROGRESS;
}

/* As far as it goes, up to the end of the call; with the channel's lock. */
static dscomm_status_t turn(dscomm_exchange_t *x)
{
    size_t before = steps(x);
    dscomm_status_t status = go_on(x);

    if (status == DSCOMM_IN_PROGRESS)
        status = watch(x, steps(x) != before);
    if (status < 0)
        status = fail(x, status);
    else if (status == DSCOMM_OK)
        dscomm_priv_exchange_retire(x);
    return status;
}

static dscomm_status_t advance(void *state)
{
    dscomm_exchange_t *x = state;
    dscomm_channel_t *channel = x->channel;
    dscomm_status_t status;

    if (pthread_mutex_trylock(&channel->lock))
        return DSCOMM_IN_PROGRESS;
    status = turn(x);
    pthread_mutex_unlock(&channel->lock);
    return status;
}

/* Without the channel's lock: this thread may be inside another call of it,
 * whose look at a work has come round to here, or another thread that waits for
 * a lock of ours. */
static void cancel(void *state, dscomm_status_t status)
{
    dscomm_exchange_t *x = state;

    if (dscomm_group_status(x->channel->parent) != status)
        dscomm_fail(status, "the group has ended");
    fail(x, status);
}

/* Where the group has ended, nobody tells the compressors' own. */
static dscomm_status_t run(dscomm_exchange_t *x)
{
    dscomm_channel_t *channel = x->channel;
    dscomm_status_t status;

    for (;;) {
        pthread_mutex_lock(&channel->lock);
        status = dscomm_group_status(channel->parent);
        status = status < 0 ? fail(x, status) : turn(x);
        pthread_mutex_unlock(&channel->lock);
        if (status != DSCOMM_IN_PROGRESS)
            return status;
        /* The result is looked at above. This is no time in which nobody
         * looks, however long it takes. */
        dscomm_work_wait(x->awaited, MIN(LOOK_MS, x->timeout_ms / 8 + 1));
        x->seen = g_get_monotonic_time();
    }
}

dscomm_status_t dscomm_priv_exchange(dscomm_compressor_t *const *compressors,
                                     void *const *buffers, size_t n,
                                     dscomm_dtype_t dtype,
                                     dscomm_work_t **ret_work)
{
    static const dscomm_work_ops_t ops = {sizeof ops, advance, cancel};
    dscomm_channel_t *channel = compressors[0]->channel;
    dscomm_exchange_t *x;
    dscomm_status_t status;

    pthread_mutex_lock(&channel->lock);
    x = dscomm_priv_exchange_new(channel);
    status = dscomm_priv_exchange_plan(x, compressors, buffers, n, dtype);
    for (size_t i = 0; i < n; i++) {
        g_atomic_int_set(&compressors[i]->busy, status == DSCOMM_OK);
        compressors[i]->calls++;
    }
    if (status == DSCOMM_OK)
        status = dscomm_priv_device_begin(x);
    if (status == DSCOMM_OK)
        status = dscomm_priv_exchange_room(x);
    if (status == DSCOMM_OK)
        status = start(x);
    if (status < 0)
        status = fail(x, status);
    pthread_mutex_unlock(&channel->lock);
    if (status < 0)
        return status;
    if (!ret_work)
        return run(x);
    status = dscomm_work_create(channel->parent, &ops, x, ret_work);
    if (status < 0) {
        pthread_mutex_lock(&channel->lock);
        status = fail(x, status);
        pthread_mutex_unlock(&channel->lock);
    }
    return status;
}
