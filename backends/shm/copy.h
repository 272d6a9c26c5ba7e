/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies that bypass the cache. */
#ifndef SHM_COPY_H
#define SHM_COPY_H

#include <stddef.h>
#include <string.h>

#include "backends/shm/shm.h"

#define SHM_LOOK_MIN ((size_t)1 << 10) /* smaller copies cost too little */

/* memcpy whose stores go to memory and leave the cache alone; visible to others
 * after the next release store, as a memcpy's would be. */
void shm_copy_stream(void *dest, const void *source, size_t size);

/* A copy to where the ranks of a path will read it. word: see
 * shm_path_look(). */
static inline void shm_path_copy(shm_path_t *path, const _Atomic uint64_t *word,
                                 void *dest, const void *source, size_t size)
{
    if (size >= SHM_LOOK_MIN && path->left && !--path->left)
        shm_path_look(path, word);
    if (path->store == SHM_STREAM)
        shm_copy_stream(dest, source, size);
    else
        memcpy(dest, source, size);
}

#endif
