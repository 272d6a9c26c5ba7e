/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks with the wire ibverbs, see verbs-ranks.h. */
#include "config.h"

#include "tests/backends/net/verbs-ranks.h"

#define HEADER DSCOMM_WIRE_HEADER

rank_t ranks[RANKS];
static const unsigned char secret[32] = "they know it";

static void opened(void *arg, int peer)
{
    rank_t *me = arg;

    me->opened++;
    verbs_wire.connect(me->wire, peer, ranks[peer].address,
                       ranks[peer].address_bytes);
}

static dscomm_wire_sink_t *arrive(void *arg, int peer,
                                  const unsigned char *header)
{
    rank_t *me = arg;
    uint64_t bytes;

    (void)peer;
    memcpy(&bytes, header, sizeof bytes);
    bytes = GUINT64_FROM_LE(bytes);
    if (header[HEADER - 1] != 0x5a)
        return NULL;
    me->sink = (dscomm_wire_sink_t){.bytes = bytes,
                                    .memory = bytes ? g_malloc(bytes) : NULL};
    return &me->sink;
}

static void landed(void *arg, int peer, dscomm_wire_sink_t *sink)
{
    rank_t *me = arg;

    (void)peer;
    me->landed++;
    if (sink->bytes)
        g_byte_array_append(me->received, sink->memory, (guint)sink->bytes);
    g_free(sink->memory);
    sink->memory = NULL;
}

static void frame_free(dscomm_wire_frame_t *frame)
{
    g_free(frame);
}

static void sent(void *arg, dscomm_wire_frame_t *frame)
{
    ((rank_t *)arg)->sent++;
    frame_free(frame);
}

static void dropped(void *arg, dscomm_wire_frame_t *frame)
{
    ((rank_t *)arg)->dropped++;
    frame_free(frame);
}

static void lost(void *arg, int peer, dscomm_failure_kind_t kind,
                 const char *text)
{
    rank_t *me = arg;

    (void)peer;
    if (me->lost++) /* the first one is the cause */
        return;
    me->kind = kind;
    g_strlcpy(me->why, text, sizeof me->why);
}

static void written(void *arg, int peer, uint32_t tag, size_t bytes)
{
    rank_t *me = arg;

    (void)peer;
    me->written++;
    me->last_tag = tag;
    me->written_bytes += bytes;
}

/* Posts the frame, as the engine does. */
static void refused(void *arg, dscomm_wire_frame_t *frame)
{
    rank_t *me = arg;

    me->refused++;
    verbs_wire.post(me->wire, !me->rank, frame);
}

static const dscomm_wire_calls_t calls = {.size = sizeof calls,
                                          .opened = opened,
                                          .arrive = arrive,
                                          .landed = landed,
                                          .sent = sent,
                                          .dropped = dropped,
                                          .lost = lost,
                                          .written = written,
                                          .refused = refused};

dscomm_status_t rank_open(int rank)
{
    rank_t *me = &ranks[rank];
    const dscomm_wire_args_t args = {.size = sizeof args,
                                     .calls = &calls,
                                     .arg = me,
                                     .rank = rank,
                                     .ranks = RANKS,
                                     .secret = secret,
                                     .timeout_ms = TIMEOUT_MS};
    dscomm_status_t status;

    *me = (rank_t){.rank = rank, .received = g_byte_array_new()};
    status = verbs_wire.open(&args, &me->wire);
    if (status == DSCOMM_OK)
        me->address_bytes = verbs_wire.address(me->wire, me->address);
    else
        g_byte_array_unref(me->received);
    return status;
}

void rank_close(int rank)
{
    rank_t *me = &ranks[rank];

    if (me->wire)
        verbs_wire.close(me->wire);
    g_free(me->sink.memory);
    g_byte_array_unref(me->received);
    me->wire = NULL;
}

void both_open(void)
{
    rank_open(0);
    rank_open(1);
}

dscomm_status_t connect_to(int rank, int peer)
{
    return verbs_wire.connect(ranks[rank].wire, peer, ranks[peer].address,
                              ranks[peer].address_bytes);
}

void poll_both(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        verbs_wire.poll(ranks[0].wire);
        verbs_wire.poll(ranks[1].wire);
    }
}

dscomm_wire_frame_t *frame_new(const void *data, size_t bytes)
{
    dscomm_wire_frame_t *frame = g_new0(dscomm_wire_frame_t, 1);
    const uint64_t little = GUINT64_TO_LE((uint64_t)bytes);

    frame->data = data;
    frame->bytes = bytes;
    memcpy(frame->header, &little, sizeof little);
    frame->header[HEADER - 1] = 0x5a;
    return frame;
}

void post(int rank, int peer, const void *data, size_t bytes)
{
    verbs_wire.post(ranks[rank].wire, peer, frame_new(data, bytes));
}

bool becomes(const unsigned *number, unsigned least, unsigned ms)
{
    for (unsigned i = 0; *number < least && i < ms; i++) {
        poll_both(1);
        g_usleep(1000);
    }
    return *number >= least;
}

void both_connect(void)
{
    both_open();
    connect_to(0, 1);
    post(0, 1, NULL, 0);
    poll_both(10);
}
