/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames and chunks from one rank to another. */
#include "config.h"

#include "backends/shm/channel.h"
#include "backends/shm/copy.h"

#include <string.h>

#include <glib.h>

#define EAGER_MOST ((size_t)16 << 10)
#define CHUNK_MOST ((size_t)64 << 10)

G_STATIC_ASSERT(offsetof(shm_frame_t, payload) == FRAME_HEAD);
G_STATIC_ASSERT(EAGER_MOST <= UINT16_MAX);

static inline size_t frame_bytes(size_t payload)
{
    return (FRAME_HEAD + payload + SHM_LINE - 1) & ~(size_t)(SHM_LINE - 1);
}

/* The greatest power of two that is no more than size. */
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
    size_t ring = whole_power(size / 8);
    size_t bulk = size - sizeof(shm_credit_t) - ring;
    size_t chunk = bulk / 4 & ~(size_t)(4 * SHM_LINE - 1);

    *end = (shm_end_t){.credit = (shm_credit_t *)base,
                       .path = &shm->path[from == shm->rank ? to : from]};
    end->ring = base + sizeof(shm_credit_t);
    end->ring_bytes = ring;
    end->chunk_bytes = chunk < CHUNK_MOST ? chunk : CHUNK_MOST;
    end->nchunks = bulk / (end->chunk_bytes + SHM_LINE);
    end->flag = (shm_line_t *)(end->ring + ring);
    end->chunk = (unsigned char *)(end->flag + end->nchunks);
    end->eager = ring / 4 < EAGER_MOST ? ring / 4 : EAGER_MOST;
    end->frames_free_to = ring;
    end->chunks_free_to = end->nchunks;
}

static inline shm_frame_t *frame_at(const shm_end_t *end, uint64_t position)
{
    return (shm_frame_t *)(end->ring + (position & (end->ring_bytes - 1)));
}

/* Room for the frame and the zero flag behind it. */
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

/* The flag behind the next frame. */
static void put_end(shm_end_t *end, size_t bytes)
{
    atomic_store_explicit(&frame_at(end, end->frames + bytes)->flag, 0,
                          memory_order_relaxed);
}

static void commit(shm_end_t *end, shm_frame_t *frame, size_t bytes)
{
    uint64_t position = end->frames;

    end->frames += bytes;
    atomic_store_explicit(&frame->flag, position + 1, memory_order_release);
}

shm_frame_t *shm_frame_reserve(shm_end_t *end, size_t payload)
{
    size_t bytes = frame_bytes(payload);
    size_t left = end->ring_bytes - (end->frames & (end->ring_bytes - 1));

    if (bytes > left) {
        shm_frame_t *skip = frame_at(end, end->frames);

        if (!has_room(end, end->frames + left + bytes))
            return NULL;
        put_end(end, left);
        skip->kind = FRAME_SKIP;
        commit(end, skip, left);
    }
    if (!has_room(end, end->frames + bytes))
        return NULL;
    put_end(end, bytes);
    return frame_at(end, end->frames);
}

void shm_frame_commit(shm_end_t *end, shm_frame_t *frame, size_t payload)
{
    commit(end, frame, frame_bytes(payload));
}

shm_frame_t *shm_frame_peek(shm_end_t *end)
{
    for (;;) {
        shm_frame_t *frame = frame_at(end, end->frames);

        __builtin_prefetch((const char *)frame + SHM_LINE);
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

    end->frames += frame_bytes(payload);
    atomic_store_explicit(&end->credit->frames, end->frames,
                          memory_order_release);
}

size_t shm_chunk_put(shm_end_t *end, const void *source, size_t size)
{
    size_t slot = (size_t)(end->chunks % end->nchunks);

    if (end->chunks >= end->chunks_free_to) {
        end->chunks_free_to =
            atomic_load_explicit(&end->credit->chunks, memory_order_acquire) +
            end->nchunks;
        if (end->chunks >= end->chunks_free_to)
            return 0;
    }
    if (size > end->chunk_bytes)
        size = end->chunk_bytes;
    shm_path_copy(end->path, &end->credit->chunks,
                  end->chunk + slot * end->chunk_bytes, source, size);
    end->chunks++;
    atomic_store_explicit(&end->flag[slot].flag, end->chunks,
                          memory_order_release);
    return size;
}

size_t shm_chunk_get(shm_end_t *end, void *dest, size_t size, size_t keep)
{
    size_t slot = (size_t)(end->chunks % end->nchunks);

    if (atomic_load_explicit(&end->flag[slot].flag, memory_order_acquire) !=
        end->chunks + 1)
        return 0;
    if (size > end->chunk_bytes)
        size = end->chunk_bytes;
    if (keep)
        memcpy(dest, end->chunk + slot * end->chunk_bytes,
               size < keep ? size : keep);
    end->chunks++;
    atomic_store_explicit(&end->credit->chunks, end->chunks,
                          memory_order_release);
    return size;
}
