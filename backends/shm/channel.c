/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames and chunks from one rank to another. */
#include "config.h"

#include "backends/shm/channel.h"
#include "backends/shm/copy.h"

#include <string.h>

#include <glib.h>

/* Frames stay in the first-level cache of both ranks. Payloads of long frames
 * do not fit there, and cache lines that the other rank still has in its
 * second-level cache are slow to write again, so their ring is larger than
 * that cache. */
#define RING_MOST ((size_t)8 << 10)
#define INSIDE_MOST ((size_t)17 * SHM_LINE - FRAME_HEAD)
#define EAGER_MOST ((size_t)8 << 10)
#define CHUNK_MOST ((size_t)8 << 10)
/* Chunks are passed one by one if no more than SHORT_MOST bytes are left. */
#define SHORT_MOST ((size_t)16 << 10)
#define LONG_LEAST_STREAM ((size_t)128 << 10)
#define LONG_LEAST_PLAIN ((size_t)1 << 20)

G_STATIC_ASSERT(offsetof(shm_frame_t, payload) == FRAME_HEAD);
G_STATIC_ASSERT(EAGER_MOST <= UINT16_MAX);

static inline size_t lines(size_t bytes)
{
    return (bytes + SHM_LINE - 1) & ~(size_t)(SHM_LINE - 1);
}

static inline size_t frame_bytes(const shm_end_t *end, size_t payload)
{
    return lines(FRAME_HEAD + (payload > end->inside ? 0 : payload));
}

/* Returns the greatest power of two that does not exceed size. */
static size_t whole_power(size_t size)
{
    size_t power = SHM_LINE;

    while (power <= size / 2)
        power *= 2;
    return power;
}

void shm_end_init(shm_end_t *end, const shm_t *shm, int from, int to)
{
    size_t size = (size_t)shm->layout.channel_size;
    unsigned char *base =
        shm->base + shm->layout.channel +
        ((uint64_t)from * (uint64_t)shm->ranks + (uint64_t)to) * size;
    size_t ring = MIN(whole_power(size / 8), RING_MOST);
    size_t data = whole_power(size / 2);
    size_t bulk = size - sizeof(shm_credit_t) - ring - data;
    size_t chunk = bulk / 4 & ~(size_t)(4 * SHM_LINE - 1);

    *end = (shm_end_t){.credit = (shm_credit_t *)base,
                       .path = &shm->path[from == shm->rank ? to : from]};
    end->ring = base + sizeof(shm_credit_t);
    end->ring_bytes = ring;
    end->chunk_bytes = chunk < CHUNK_MOST ? chunk : CHUNK_MOST;
    end->nchunks = bulk / (end->chunk_bytes + SHM_LINE);
    end->inside = MIN(ring / 4, INSIDE_MOST);
    end->flag = (shm_line_t *)(end->ring + ring);
    /* The chunks are at the end, on whole pages: a copy is slow if its
     * destination lies slightly beyond its source, modulo a page, and buffers
     * often begin with a page. */
    end->data = base + size - data;
    end->data_bytes = data;
    end->chunk = end->data - end->nchunks * end->chunk_bytes;
    end->eager = MIN(data / 4, EAGER_MOST);
    end->frames_free_to = ring;
    end->long_free_to = data;
    end->chunks_free_to = end->nchunks;
}

static inline shm_frame_t *frame_at(const shm_end_t *end, uint64_t position)
{
    return (shm_frame_t *)(end->ring + (position & (end->ring_bytes - 1)));
}

/* Returns whether there is room for the frame and for the zero flag after
 * it. */
static bool has_room(shm_end_t *end, uint64_t until)
{
    until += SHM_LINE;
    if (until <= end->frames_free_to)
        return true;
    end->frames_free_to =
        atomic_load_explicit(&end->credit->frames, memory_order_acquire) +
        end->ring_bytes;
    return until <= end->frames_free_to;
}

/* Clears the flag after the next frame. */
static void put_end(shm_end_t *end, size_t bytes)
{
    atomic_store_explicit(&frame_at(end, end->frames + bytes)->flag, 0,
                          memory_order_relaxed);
}

static void frame_commit(shm_end_t *end, shm_frame_t *frame, size_t bytes)
{
    uint64_t position = end->frames;

    end->frames += bytes;
    atomic_store_explicit(&frame->flag, position + 1, memory_order_release);
}

/* Returns the position of the next long payload; payloads do not wrap
 * around. */
static inline uint64_t long_start(const shm_end_t *end, size_t payload)
{
    size_t left = end->data_bytes - (end->longs & (end->data_bytes - 1));

    return end->longs + (payload > left ? left : 0);
}

/* Skips the payload of a frame, if it is a long one. */
static bool pass_long(shm_end_t *end, size_t payload)
{
    if (payload <= end->inside)
        return false;
    end->longs = long_start(end, payload) + lines(payload);
    return true;
}

static bool has_long_room(shm_end_t *end, size_t payload)
{
    uint64_t until = long_start(end, payload) + payload;

    if (payload <= end->inside || until <= end->long_free_to)
        return true;
    end->long_free_to =
        atomic_load_explicit(&end->credit->longs, memory_order_acquire) +
        end->data_bytes;
    return until <= end->long_free_to;
}

shm_frame_t *shm_frame_reserve(shm_end_t *end, size_t payload)
{
    size_t bytes = frame_bytes(end, payload);
    size_t left = end->ring_bytes - (end->frames & (end->ring_bytes - 1));

    if (!has_long_room(end, payload))
        return NULL;
    if (bytes > left) {
        shm_frame_t *skip = frame_at(end, end->frames);

        if (!has_room(end, end->frames + left + bytes))
            return NULL;
        put_end(end, left);
        skip->kind = FRAME_SKIP;
        frame_commit(end, skip, left);
    }
    if (!has_room(end, end->frames + bytes))
        return NULL;
    put_end(end, bytes);
    return frame_at(end, end->frames);
}

unsigned char *shm_frame_payload(const shm_end_t *end, shm_frame_t *frame,
                                 size_t payload)
{
    return payload > end->inside
               ? end->data + (long_start(end, payload) & (end->data_bytes - 1))
               : frame->payload;
}

void shm_frame_commit(shm_end_t *end, shm_frame_t *frame, size_t payload)
{
    pass_long(end, payload);
    frame_commit(end, frame, frame_bytes(end, payload));
}

shm_frame_t *shm_frame_peek(shm_end_t *end)
{
    for (;;) {
        shm_frame_t *frame = frame_at(end, end->frames);

        if (atomic_load_explicit(&frame->flag, memory_order_acquire) !=
            end->frames + 1)
            return NULL;
        if (frame->kind != FRAME_SKIP)
            return frame;
        end->frames += end->ring_bytes - (end->frames & (end->ring_bytes - 1));
    }
}

void shm_frame_release(shm_end_t *end, const shm_frame_t *frame)
{
    size_t payload = frame->kind == FRAME_EAGER ? frame->size : FRAME_LARGE;

    if (pass_long(end, payload))
        atomic_store_explicit(&end->credit->longs, end->longs,
                              memory_order_release);
    end->frames += frame_bytes(end, payload);
    atomic_store_explicit(&end->credit->frames, end->frames,
                          memory_order_release);
}

/* Returns the number of chunks that are passed together, from slot on: few if
 * few bytes are left, so that both ranks copy at the same time. Bytes that come
 * from memory are read faster in large pieces. */
static inline size_t run_of(const shm_end_t *end, size_t slot, size_t size,
                            shm_store_t store)
{
    const size_t least =
        store == SHM_STREAM ? LONG_LEAST_STREAM : LONG_LEAST_PLAIN;
    const size_t run = size >= least ? 8 : size > SHORT_MOST ? 2 : 1;

    return MIN(run, end->nchunks - slot);
}

size_t shm_chunk_put(shm_end_t *end, uint64_t id, const void *source,
                     size_t size)
{
    const size_t slot = (size_t)(end->chunks % end->nchunks);
    const shm_store_t store =
        shm_path_store(end->path, &end->credit->chunks, size);
    const size_t run = run_of(end, slot, size, store);

    if (end->chunks + run > end->chunks_free_to) {
        end->chunks_free_to =
            atomic_load_explicit(&end->credit->chunks, memory_order_acquire) +
            end->nchunks;
        if (end->chunks + run > end->chunks_free_to)
            return 0;
    }
    size = MIN(size, run * end->chunk_bytes);
    shm_store_copy(store, end->chunk + slot * end->chunk_bytes, source, size);
    end->flag[slot].word[0] = id;
    end->flag[slot].word[1] = size;
    atomic_store_explicit(&end->flag[slot].flag, end->chunks + 1,
                          memory_order_release);
    end->chunks += run;
    return size;
}

bool shm_chunk_peek(const shm_end_t *end, uint64_t *ret_id)
{
    const shm_line_t *line = &end->flag[end->chunks % end->nchunks];

    if (atomic_load_explicit(&line->flag, memory_order_acquire) !=
        end->chunks + 1)
        return false;
    *ret_id = line->word[0];
    return true;
}

size_t shm_chunk_get(shm_end_t *end, void *dest, size_t keep, bool bypass)
{
    const size_t slot = (size_t)(end->chunks % end->nchunks);
    const size_t size = (size_t)end->flag[slot].word[1];

    if (keep && bypass)
        shm_copy_stream(dest, end->chunk + slot * end->chunk_bytes,
                        MIN(size, keep));
    else if (keep)
        shm_path_take(end->path, dest, end->chunk + slot * end->chunk_bytes,
                      MIN(size, keep));
    end->chunks += (size + end->chunk_bytes - 1) / end->chunk_bytes;
    atomic_store_explicit(&end->credit->chunks, end->chunks,
                          memory_order_release);
    return size;
}
