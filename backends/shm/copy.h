/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies that bypass the cache. */
#ifndef SHM_COPY_H
#define SHM_COPY_H

#include <stddef.h>

/* memcpy whose stores go to memory and leave the cache alone; visible to others
 * after the next release store, as a memcpy's would be. */
void shm_copy_stream(void *dest, const void *source, size_t size);

#endif
