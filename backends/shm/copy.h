/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies that bypass the cache, and copies that do not wait for another
 * cache. */
#ifndef SHM_COPY_H
#define SHM_COPY_H

#include <stddef.h>
#include <string.h>

#include "backends/shm/shm.h"

/* measuring for smaller copies costs more than it saves */
#define SHM_LOOK_MIN ((size_t)1 << 10)

/* Bytes of the last cache of the processor that runs this thread; a guess if
 * the kernel does not tell. */
size_t shm_cache_bytes(void);

/* memcpy() with streaming stores, which bypass the cache; visible to other
 * ranks after the next release store, as after memcpy(). */
void shm_copy_stream(void *dest, const void *source, size_t size);

/* memcpy() of bytes that are in the cache of the rank that has written them. */
void shm_copy_out(void *dest, const void *source, size_t size);

/* Returns the stores for a message: those of the path, unless the group's
 * trial has found that distance does not matter. word: see shm_path_look(). */
static inline shm_store_t
shm_path_store(shm_path_t *path, const _Atomic uint64_t *word, size_t size)
{
    if (path->trial && path->trial->plain)
        return SHM_PLAIN;
    if (size >= SHM_LOOK_MIN && path->left && !--path->left)
        shm_path_look(path, word);
    return (shm_store_t)path->store;
}

static inline void shm_store_copy(shm_store_t store, void *dest,
                                  const void *source, size_t size)
{
    if (store == SHM_STREAM)
        shm_copy_stream(dest, source, size);
    else
        memcpy(dest, source, size);
}

/* Copies to memory that the rank of a path will read. */
static inline void shm_path_copy(shm_path_t *path, const _Atomic uint64_t *word,
                                 void *dest, const void *source, size_t size)
{
    shm_store_copy(shm_path_store(path, word, size), dest, source, size);
}

/* Copies bytes that the rank of a path has just written. What it has streamed
 * comes from memory. */
static inline void shm_path_take(const shm_path_t *path, void *dest,
                                 const void *source, size_t size)
{
    if (path->store == SHM_STREAM)
        memcpy(dest, source, size);
    else
        shm_copy_out(dest, source, size);
}

/* Copies with loads as wide as the stores with which a schedule has just made
 * its message; a wider load would wait until these stores have left the
 * processor. */
static inline void shm_copy_words(unsigned char *to, const unsigned char *from,
                                  size_t bytes)
{
    uint64_t word;

    for (; bytes >= sizeof word; bytes -= sizeof word) {
        memcpy(&word, from, sizeof word);
        __asm__ volatile("" : "+r"(word));
        memcpy(to, &word, sizeof word);
        from += sizeof word;
        to += sizeof word;
    }
    if (bytes)
        memcpy(to, from, bytes);
}

/* Copies field by field, for the same reason. */
static inline void shm_copy_message(dscomm_message_t *to,
                                    const dscomm_message_t *from)
{
    const volatile dscomm_message_t *fields = from;

    to->send = fields->send;
    to->recv = fields->recv;
    to->bytes = fields->bytes;
    to->peer = fields->peer;
    to->tag = fields->tag;
}

#endif
