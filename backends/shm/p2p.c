/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages. A small one travels in a frame; if its receive is not posted yet,
 * it stays there or is copied aside. The bytes of a longer one follow in
 * chunks, at once (AHEAD), as long as there is room for them; they are copied
 * aside only if other chunks behind them are received first. For a large one a
 * READY frame is sent; when its receive is posted, a GRANT frame comes back and
 * the bytes follow in chunks. If it lies in the sender's heap, or single copies
 * pay off (single.c), the receiver reads it in place and sends FINISHED back.
 */
#include "config.h"

#include "backends/shm/copy.h"
#include "backends/shm/p2p.h"

#include <string.h>

#include <glib.h>

#define REFERENCE_MIN ((size_t)16 << 10)
/* longest message for shm->message_spin */
#define SPIN_MOST ((size_t)8 << 10)
/* Longest message whose bytes do not wait for its receive. */
#define AHEAD_MOST ((size_t)256 << 10)
/* Bytes of a message that is granted at once. */
#define PREFETCHED ((size_t)17 * SHM_LINE)

/* Reserves the channel to a rank before its first use. */
static dscomm_status_t channel_open(shm_t *shm, int rank)
{
    shm_pair_t *pair = shm_pair(shm, rank);
    const uint64_t size = shm->layout.channel_size;
    const uint64_t offset =
        shm->layout.channel +
        ((uint64_t)shm->rank * (uint64_t)shm->ranks + (uint64_t)rank) * size;
    dscomm_status_t status;

    if (pair->sends)
        return DSCOMM_OK;
    status =
        shm_segment_reserve(shm, shm->base + offset, offset, size, "channel");
    if (status)
        return shm_revoke_last(shm, status);
    shm_end_init(&pair->out, shm, shm->rank, rank);
    atomic_store_explicit(&shm->own->channel[rank], 1, memory_order_release);
    pair->sends = true;
    return DSCOMM_OK;
}

/* Returns whether frames of a rank can be read: its channel has memory from the
 * moment that the rank says so. */
static bool channel_is_ready(shm_t *shm, int rank)
{
    shm_pair_t *pair = shm_pair(shm, rank);

    if (!pair->receives &&
        atomic_load_explicit(&shm_control(shm, rank)->channel[shm->rank],
                             memory_order_acquire)) {
        shm_end_init(&pair->in, shm, rank, shm->rank);
        pair->receives = true;
    }
    return pair->receives;
}

/* --- frames out --- */

/* Writes the first line last, see shm_frame_reserve(). */
static void fill_frame(const shm_end_t *end, shm_frame_t *frame,
                       const dscomm_message_t *message)
{
    const unsigned char *send = message->send;
    unsigned char *to = shm_frame_payload(end, frame, message->bytes);
    size_t first = SHM_LINE - FRAME_HEAD;

    if (to != frame->payload)
        first = 0;
    if (message->bytes > first)
        shm_path_copy(end->path, &end->credit->frames, to + first, send + first,
                      message->bytes - first);
    else
        first = message->bytes;
    shm_copy_words(to, send, first);
}

/* Fills a frame that is about a large message, and numbers that. */
static shm_frame_kind_t fill_large(shm_t *shm, shm_frame_t *frame,
                                   shm_request_t *request, shm_pair_t *pair)
{
    const dscomm_message_t *message = &request->p2p.message;

    frame->bytes = message->bytes;
    frame->id = request->p2p.id = ++pair->next_id;
    frame->reference =
        message->bytes >= REFERENCE_MIN
            ? shm_reference(shm, message->send, message->bytes, true)
            : 0;
    request->p2p.reference = frame->reference;
    return frame->reference || message->bytes > AHEAD_MOST ? FRAME_READY
                                                           : FRAME_AHEAD;
}

/* Sends the next frame of a request; false if there is no room. Afterwards the
 * request is complete, or in the list in which it waits. */
static bool send_message(shm_t *shm, shm_request_t *request, shm_pair_t *pair)
{
    const dscomm_message_t *message = &request->p2p.message;
    bool eager = message->bytes <= pair->out.eager;
    size_t payload = eager ? message->bytes : FRAME_LARGE;
    shm_frame_t *frame = shm_frame_reserve(&pair->out, payload);
    shm_frame_kind_t kind = FRAME_EAGER;

    if (!frame)
        return false;
    if (eager)
        fill_frame(&pair->out, frame, message);
    else
        kind = fill_large(shm, frame, request, pair);
    frame->kind = (uint16_t)kind;
    frame->size = (uint16_t)payload;
    frame->tag = message->tag;
    shm_frame_commit(&pair->out, frame, payload);
    if (eager) {
        shm_completed(shm, request, DSCOMM_OK);
        return true;
    }
    shm_list_append(kind == FRAME_AHEAD ? &pair->sending : &pair->waiting,
                    request);
    shm_want(shm, message->peer);
    return true;
}

/* Answers a large message with its receive: GRANT, or FINISHED if it was read
 * in place (moved is then all of it). */
static bool send_answer(shm_t *shm, shm_request_t *request, shm_pair_t *pair)
{
    bool finished = request->p2p.moved > 0;
    shm_frame_t *frame = shm_frame_reserve(&pair->out, FRAME_LARGE);

    if (!frame)
        return false;
    frame->kind = finished ? FRAME_FINISHED : FRAME_GRANT;
    frame->tag = request->head.tag;
    frame->bytes = request->p2p.total;
    frame->id = request->p2p.id;
    frame->reference = 0;
    shm_frame_commit(&pair->out, frame, FRAME_LARGE);
    if (finished) {
        shm_received(shm, request, request->head.source, request->head.tag,
                     request->p2p.total);
    } else {
        shm_list_append(&pair->arriving, request);
        shm_want(shm, request->head.source);
    }
    return true;
}

static bool send_frame(shm_t *shm, shm_request_t *request, shm_pair_t *pair)
{
    bool sent = request->kind == SHM_SEND ? send_message(shm, request, pair)
                                          : send_answer(shm, request, pair);

    if (sent)
        shm->moves++;
    return sent;
}

static void push_chunks(shm_t *shm, shm_pair_t *pair, int rank)
{
    while (pair->sending.head) {
        shm_request_t *request = pair->sending.head;
        const dscomm_message_t *message = &request->p2p.message;
        size_t moved = shm_chunk_put(&pair->out, request->p2p.id,
                                     (const unsigned char *)message->send +
                                         request->p2p.moved,
                                     message->bytes - request->p2p.moved);

        if (!moved)
            return;
        request->p2p.moved += moved;
        shm->moves++;
        shm_wake(shm);
        if (request->p2p.moved < message->bytes)
            continue;
        shm_list_remove(&pair->sending, request);
        shm_unwant(shm, rank);
        shm_completed(shm, request, DSCOMM_OK);
    }
}

/* Sends the request's frame, now or when there is room for it. */
static dscomm_status_t queue_frame(shm_t *shm, shm_request_t *request, int rank)
{
    shm_pair_t *pair = shm_pair(shm, rank);
    dscomm_status_t status = channel_open(shm, rank);

    if (status)
        return status;
    if (!shm_list_empty(&pair->frames) || !send_frame(shm, request, pair)) {
        shm_list_append(&pair->frames, request);
        shm_want(shm, rank);
    }
    if (pair->sending.head)
        push_chunks(shm, pair, rank);
    shm_wake(shm);
    return DSCOMM_OK;
}

/* --- messages in --- */

/* Takes what was kept of a message, and expects the rest in chunks. */
static void accept_ahead(shm_t *shm, shm_request_t *request,
                         const shm_early_t *message)
{
    const dscomm_message_t *wanted = &request->p2p.message;
    const size_t keep = MIN(message->moved, wanted->bytes);

    if (keep)
        memcpy(wanted->recv, message->kept, keep);
    request->p2p.moved = message->moved;
    if (message->moved < message->bytes) {
        shm_list_append(&shm_pair(shm, message->source)->arriving, request);
        shm_want(shm, message->source);
    } else {
        shm_received(shm, request, message->source, message->tag,
                     message->bytes);
    }
}

/* Copies a message out of the memory of its sender; if that cannot be read,
 * asks for the bytes. SHM_AGAIN: the sender may have used its buffer again, so
 * that there is no message, and the receive waits for another one. */
static int message_read(shm_t *shm, shm_request_t *request,
                        const shm_early_t *message)
{
    const dscomm_message_t *wanted = &request->p2p.message;
    const size_t keep = MIN((size_t)message->bytes, wanted->bytes);
    const bool got = shm_reference_try(shm, message->source, message->reference,
                                       wanted->recv, keep);

    if (shm_is_revoked_since(shm))
        return shm_revoked(shm);
    if (!shm_reference_held(shm, message->source)) {
        shm_list_append(&shm->p2p->posted, request);
        shm_want_source(shm, wanted->peer);
        return SHM_AGAIN;
    }
    request->p2p.moved = got ? (size_t)message->bytes : 0;
    return SHM_DONE;
}

/* Matches a receive with a message that is not in its frame. */
static dscomm_status_t accept_large(shm_t *shm, shm_request_t *request,
                                    const shm_early_t *message)
{
    request->head.source = message->source;
    request->head.tag = message->tag;
    request->p2p.id = message->id;
    request->p2p.reference = message->reference;
    request->p2p.total = message->bytes;
    request->p2p.moved = 0;
    request->p2p.ahead = message->ahead;
    if (message->ahead) {
        accept_ahead(shm, request, message);
        return DSCOMM_OK;
    }
    if (message->reference) {
        const int result = message_read(shm, request, message);

        if (result != SHM_DONE)
            return result == SHM_AGAIN ? DSCOMM_OK : (dscomm_status_t)result;
    }
    return queue_frame(shm, request, message->source);
}

static void take_bytes(shm_t *shm, shm_request_t *request, int source, int tag,
                       const void *data, uint64_t bytes)
{
    const dscomm_message_t *wanted = &request->p2p.message;
    size_t keep = bytes < wanted->bytes ? (size_t)bytes : wanted->bytes;

    for (size_t at = SHM_LINE; keep <= PREFETCHED && at < keep; at += SHM_LINE)
        __builtin_prefetch((const char *)data + at);
    if (keep)
        shm_path_take(&shm->path[source], wanted->recv, data, keep);
    shm_received(shm, request, source, tag, bytes);
}

static dscomm_status_t frame_message(shm_t *shm, int source, shm_frame_t *frame)
{
    const unsigned char *payload =
        shm_frame_payload(&shm_pair(shm, source)->in, frame, frame->size);
    const bool large = frame->kind != FRAME_EAGER;
    shm_request_t *request = shm_posted_take(shm->p2p, source, frame->tag);
    shm_early_t *early;

    if (request) {
        shm_unwant_source(shm, request->p2p.message.peer);
        if (large)
            return accept_large(
                shm, request,
                &(shm_early_t){.source = source,
                               .tag = frame->tag,
                               .bytes = frame->bytes,
                               .id = frame->id,
                               .reference = frame->reference,
                               .ahead = frame->kind == FRAME_AHEAD});
        take_bytes(shm, request, source, frame->tag, payload, frame->size);
        return DSCOMM_OK;
    }
    early =
        shm_early_add(shm->p2p, source, frame->tag, large ? 0 : frame->size);
    if (!early)
        return shm_early_fail(shm, source);
    early->bytes = large ? frame->bytes : frame->size;
    early->large = large;
    early->ahead = frame->kind == FRAME_AHEAD;
    if (large) {
        early->id = frame->id;
        early->reference = frame->reference;
    } else {
        memcpy(early->data, payload, frame->size);
    }
    return DSCOMM_OK;
}

/* Handles the answer to a large send. */
static dscomm_status_t frame_answer(shm_t *shm, int source,
                                    const shm_frame_t *frame)
{
    shm_pair_t *pair = shm_pair(shm, source);
    shm_request_t *request = pair->waiting.head;

    while (request && request->p2p.id != frame->id)
        request = request->next;
    if (!request) /* cancelled */
        return DSCOMM_OK;
    shm_list_remove(&pair->waiting, request);
    if (frame->kind == FRAME_FINISHED) {
        shm_unwant(shm, source);
        shm_completed(shm, request, DSCOMM_OK);
    } else {
        shm_list_append(&pair->sending, request);
    }
    return DSCOMM_OK;
}

static void push_frames(shm_t *shm, shm_pair_t *pair, int rank)
{
    while (pair->frames.head) {
        shm_request_t *request = pair->frames.head;
        shm_request_t *next = request->next;

        if (!send_frame(shm, request, pair))
            return;
        pair->frames.head = next;
        shm_unwant(shm, rank);
        shm_wake(shm);
    }
}

/* Copies the next chunk, which belongs to a request. */
static void take_chunk(shm_t *shm, shm_pair_t *pair, int rank,
                       shm_request_t *request)
{
    const dscomm_message_t *wanted = &request->p2p.message;
    size_t at = request->p2p.moved;
    size_t keep = at < wanted->bytes ? wanted->bytes - at : 0;

    request->p2p.moved += shm_chunk_get(
        &pair->in, keep ? (unsigned char *)wanted->recv + at : NULL, keep,
        request->p2p.total >= shm->cache / 2);
    if (request->p2p.moved < request->p2p.total)
        return;
    shm_list_remove(&pair->arriving, request);
    shm_unwant(shm, rank);
    if (request->kind == SHM_DRAIN)
        g_free(request);
    else
        shm_received(shm, request, rank, request->head.tag, request->p2p.total);
}

/* Copies the next chunk aside, whose message has no receive yet. Returns false
 * if its frame was not read yet, or there is no memory. */
static bool keep_chunk(shm_t *shm, shm_pair_t *pair, int rank, uint64_t id)
{
    shm_early_t *early = shm->p2p->early;

    while (early && (early->source != rank || !early->ahead || early->id != id))
        early = early->next;
    if (!early)
        return false;
    if (!early->kept)
        early->kept = g_try_malloc(early->bytes);
    if (!early->kept) {
        shm_early_fail(shm, rank);
        return false;
    }
    early->moved += shm_chunk_get(&pair->in, early->kept + early->moved,
                                  (size_t)early->bytes - early->moved, false);
    return true;
}

/* Chunks that no receive waits for stay in the channel, unless there are others
 * behind them. */
static void pull_chunks(shm_t *shm, shm_pair_t *pair, int rank)
{
    uint64_t id;

    while (pair->arriving.head && shm_chunk_peek(&pair->in, &id)) {
        shm_request_t *request = pair->arriving.head;

        while (request && request->p2p.id != id)
            request = request->next;
        if (request)
            take_chunk(shm, pair, rank, request);
        else if (!keep_chunk(shm, pair, rank, id))
            return;
        shm->moves++;
        shm_wake(shm);
    }
}

static dscomm_status_t pull_frames(shm_t *shm, shm_pair_t *pair, int rank)
{
    dscomm_status_t status = DSCOMM_OK;
    shm_frame_t *frame;

    while (!status && (pair->interest || shm->p2p->any) &&
           (frame = shm_frame_peek(&pair->in))) {
        status = frame->kind == FRAME_GRANT || frame->kind == FRAME_FINISHED
                     ? frame_answer(shm, rank, frame)
                     : frame_message(shm, rank, frame);
        shm_frame_release(&pair->in, frame);
        shm->moves++;
        shm_wake(shm);
    }
    return status;
}

unsigned shm_p2p_progress(shm_t *shm)
{
    shm_p2p_t *p2p = shm->p2p;
    unsigned before = shm->completed;

    if (!p2p->busy)
        return 0;
    p2p->first = (p2p->first + 1) % shm->ranks;
    for (int i = 0; i < shm->ranks; i++) {
        int r = (p2p->first + i) % shm->ranks;
        shm_pair_t *pair = &p2p->pairs[r];

        if (!pair->interest && !p2p->any)
            continue;
        push_frames(shm, pair, r);
        if (pair->sending.head)
            push_chunks(shm, pair, r);
        if (!channel_is_ready(shm, r))
            continue;
        pull_chunks(shm, pair, r);
        if (pull_frames(shm, pair, r))
            break;
    }
    return shm->completed - before;
}

/* --- this rank to itself --- */

static dscomm_status_t send_self(shm_t *shm, shm_request_t *request)
{
    const dscomm_message_t *message = &request->p2p.message;
    shm_request_t *receive = shm_posted_take(shm->p2p, shm->rank, message->tag);
    bool large = message->bytes > shm->layout.channel_size / 32;
    shm_early_t *early;

    if (receive) {
        shm_unwant_source(shm, receive->p2p.message.peer);
        take_bytes(shm, receive, shm->rank, message->tag, message->send,
                   message->bytes);
        shm_completed(shm, request, DSCOMM_OK);
        return DSCOMM_OK;
    }
    early = shm_early_add(shm->p2p, shm->rank, message->tag,
                          large ? 0 : message->bytes);
    if (!early)
        return shm_early_fail(shm, shm->rank);
    early->bytes = message->bytes;
    early->large = large;
    if (large) {
        early->self = request;
    } else {
        if (message->bytes)
            memcpy(early->data, message->send, message->bytes);
        shm_completed(shm, request, DSCOMM_OK);
    }
    return DSCOMM_OK;
}

static dscomm_status_t receive_early(shm_t *shm, shm_request_t *request,
                                     shm_early_t *early)
{
    dscomm_status_t status = DSCOMM_OK;

    if (early->self) {
        take_bytes(shm, request, shm->rank, early->tag,
                   early->self->p2p.message.send, early->bytes);
        shm_completed(shm, early->self, DSCOMM_OK);
    } else if (early->large) {
        status = accept_large(shm, request, early);
    } else {
        take_bytes(shm, request, early->source, early->tag, early->data,
                   early->bytes);
    }
    shm_early_free(early);
    return status;
}

/* --- the slots --- */

dscomm_status_t shm_isend(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *request)
{
    shm_t *shm = impl;
    shm_request_t *own = (shm_request_t *)request;

    if (shm_is_revoked(shm))
        return shm_revoked(shm);
    own->kind = SHM_SEND;
    shm_copy_message(&own->p2p.message, message);
    own->p2p.moved = 0;
    own->p2p.reference = 0;
    own->head.status = DSCOMM_IN_PROGRESS;
    if (message->peer == shm->rank)
        return send_self(shm, own);
    return queue_frame(shm, own, message->peer);
}

dscomm_status_t shm_irecv(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *request)
{
    shm_t *shm = impl;
    shm_request_t *own = (shm_request_t *)request;
    shm_early_t *early;

    if (shm_is_revoked(shm))
        return shm_revoked(shm);
    early = shm_early_take(shm->p2p, message);
    own->kind = SHM_RECV;
    shm_copy_message(&own->p2p.message, message);
    own->p2p.moved = 0;
    own->p2p.ahead = false;
    own->p2p.blocking = message->waits;
    own->head.status = DSCOMM_IN_PROGRESS;
    if (early)
        return receive_early(shm, own, early);
    shm_list_append(&shm->p2p->posted, own);
    shm_want_source(shm, message->peer);
    return DSCOMM_OK;
}

/* Frames are read only while a receive needs them, so a probe reads them. */
int shm_probe(void *impl, const dscomm_message_t *wanted,
              dscomm_request_t *found, void **ret_taken)
{
    shm_t *shm = impl;
    shm_early_t *early;

    shm_want_source(shm, wanted->peer);
    shm_p2p_progress(shm);
    shm_unwant_source(shm, wanted->peer);
    early = shm_early_find(shm->p2p, wanted);
    if (!early)
        return 0;
    found->source = early->source;
    found->tag = early->tag;
    found->bytes = (size_t)early->bytes;
    if (ret_taken) {
        early->taken = true;
        *ret_taken = early;
    }
    return 1;
}

/* Waits for a request of the caller. The next call of progress reports other
 * requests that complete meanwhile. */
static dscomm_status_t message_finish(shm_t *shm, shm_request_t *request)
{
    shm_wait_t wait = {0};
    dscomm_status_t status = DSCOMM_OK;
    int polls = request->p2p.message.bytes <= SPIN_MOST ? shm->message_spin : 0;

    while (!status && request->head.status == DSCOMM_IN_PROGRESS) {
        uint64_t moves = shm->moves;

        shm_collective_progress(shm);
        shm_p2p_progress(shm);
        if (request->head.status == DSCOMM_IN_PROGRESS) {
            if (shm->moves != moves) {
                wait.spins = 0;
            } else if (polls > 0) {
                polls--;
                shm_pause();
            } else {
                status = shm_wait(shm, &wait);
            }
        }
    }
    shm_wait_end(shm, &wait);
    if (status) {
        shm_p2p_cancel(shm, request);
        return status;
    }
    shm->completed--;
    if (request->head.status == DSCOMM_ERR_PEER_FAILED) {
        char text[DSCOMM_FAILURE_DETAIL_MAX];

        shm_left_describe(shm, request->head.source, text, sizeof text);
        return dscomm_fail(DSCOMM_ERR_PEER_FAILED, "%s", text);
    }
    return request->head.status;
}

dscomm_status_t shm_send(void *impl, const dscomm_message_t *message)
{
    shm_request_t request;
    dscomm_status_t status = shm_isend(impl, message, &request.head);

    return status ? status : message_finish(impl, &request);
}

dscomm_status_t shm_recv(void *impl, const dscomm_message_t *message,
                         dscomm_request_t *request)
{
    shm_request_t *own = (shm_request_t *)request;
    dscomm_status_t status = shm_irecv(impl, message, request);

    own->p2p.blocking = true;
    return status ? status : message_finish(impl, own);
}

bool shm_p2p_new(shm_t *shm)
{
    shm->p2p = g_try_malloc0(sizeof *shm->p2p +
                             (size_t)shm->ranks * sizeof *shm->p2p->pairs);
    if (shm->p2p)
        shm->p2p->early_tail = &shm->p2p->early;
    return shm->p2p != NULL;
}

void shm_p2p_free(shm_t *shm)
{
    shm_p2p_t *p2p = shm->p2p;

    if (!p2p)
        return;
    while (p2p->early) {
        shm_early_t *next = p2p->early->next;

        shm_early_free(p2p->early);
        p2p->early = next;
    }
    for (int r = 0; r < shm->ranks; r++)
        shm_drains_free(&p2p->pairs[r]);
    g_free(p2p);
    shm->p2p = NULL;
}
