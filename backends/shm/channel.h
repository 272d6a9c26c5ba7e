/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel carries messages from one rank to another: a ring of frames for
 * small messages and control, a ring for the payloads of longer frames, and a
 * ring of chunks for the bytes of large messages.
 *
 * A frame begins with a flag: its position in the stream plus one, written
 * last. The flag after the last frame is always zero. Frames are whole cache
 * lines, and none wraps around. Chunks have their flags in separate lines.
 * Positions never wrap. */
#ifndef SHM_CHANNEL_H
#define SHM_CHANNEL_H

#include "backends/shm/shm.h"

/* Bytes of a frame before its payload, and of the payload of a frame that is
 * about a large message. */
#define FRAME_HEAD 16
#define FRAME_LARGE 24

typedef enum {
    FRAME_SKIP = 1, /* nothing; the next frame is at the ring's beginning */
    FRAME_EAGER, /* a whole message */
    FRAME_AHEAD, /* the bytes of a message follow in chunks */
    FRAME_READY, /* a large message is ready to be sent, or read in place */
    FRAME_GRANT, /* its receiver is ready for the bytes */
    FRAME_FINISHED /* its receiver has read it in place */
} shm_frame_kind_t;

typedef struct {
    _Alignas(SHM_LINE) _Atomic uint64_t flag;
    int32_t tag;
    uint16_t kind;
    uint16_t size; /* EAGER: bytes of payload */
    union {
        struct { /* of a large message */
            uint64_t id; /* its sender's number */
            /* READY: where the message is read in place, see shm_reference();
             * or 0 */
            uint64_t reference;
            uint64_t bytes;
        };
        /* payloads of at most `inside` bytes, see shm_end_t */
        unsigned char payload[1];
    };
} shm_frame_t;

/* Written by the receiver. */
typedef struct {
    _Alignas(2 * SHM_LINE) _Atomic uint64_t frames; /* bytes read */
    _Atomic uint64_t longs; /* bytes of long payloads read */
    _Alignas(2 * SHM_LINE) _Atomic uint64_t chunks; /* chunks read */
} shm_credit_t;

/* One end of a channel. */
typedef struct {
    shm_credit_t *credit;
    unsigned char *ring; /* of frames */
    unsigned char *data; /* ring of long payloads */
    /* of each chunk that begins a piece; words: id of the message, bytes */
    shm_line_t *flag;
    unsigned char *chunk;
    size_t ring_bytes, data_bytes; /* powers of two */
    size_t inside; /* largest payload that is inside its frame */
    size_t chunk_bytes, nchunks, eager;
    shm_path_t *path; /* from this rank to the other one */
    uint64_t frames, longs, chunks; /* position of this end */
    uint64_t
        /* sender: positions from here on must not be written yet */
        frames_free_to;
    uint64_t long_free_to, chunks_free_to;
} shm_end_t;

void shm_end_init(shm_end_t *end, const shm_t *shm, int from, int to);

/* Reserves room for a frame with that much payload; NULL if there is none.
 * Write flag last, and the rest of the first cache line just before it,
 * because the reader polls that line. */
shm_frame_t *shm_frame_reserve(shm_end_t *end, size_t payload);
/* The payload of the frame reserved, or peeked at. */
unsigned char *shm_frame_payload(const shm_end_t *end, shm_frame_t *frame,
                                 size_t payload);
void shm_frame_commit(shm_end_t *end, shm_frame_t *frame, size_t payload);
/* The next frame, or NULL; it stays until released. */
shm_frame_t *shm_frame_peek(shm_end_t *end);
void shm_frame_release(shm_end_t *end, const shm_frame_t *frame);

/* Copies a piece of at most size bytes into the next chunks. Returns the bytes
 * copied; 0 if there is no room. */
size_t shm_chunk_put(shm_end_t *end, uint64_t id, const void *source,
                     size_t size);
/* Whether there is a piece to read; *ret_id: the message that it belongs to. */
bool shm_chunk_peek(const shm_end_t *end, uint64_t *ret_id);
/* Copies at most keep bytes of that piece to dest, past the cache if bypass is
 * set. Returns its bytes. */
size_t shm_chunk_get(shm_end_t *end, void *dest, size_t keep, bool bypass);

#endif
