/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies that bypass the cache, and copies from another cache. */
#include "config.h"

#include "backends/shm/copy.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Above this size glibc copies by one string instruction, which waits for each
 * line that is in another cache. */
#define SHORT 2048
#define LONG ((size_t)16 << 10)
#define CACHE_GUESS ((size_t)32 << 20)

size_t shm_cache_bytes(void)
{
    size_t kib = 0;

    for (int index = 3; index >= 2 && !kib; index--) {
        char path[96];
        FILE *file;

        snprintf(path, sizeof path,
                 "/sys/devices/system/cpu/cpu%d/cache/index%d/size",
                 sched_getcpu(), index);
        file = fopen(path, "re");
        if (file && fscanf(file, "%zuK", &kib) != 1)
            kib = 0;
        if (file)
            fclose(file);
    }
    return kib ? kib << 10 : CACHE_GUESS;
}

void shm_copy_out(void *dest, const void *source, size_t size)
{
    char *to = dest;
    const char *from = source;

    for (; size > SHORT && size <= LONG; size -= SHORT) {
        memcpy(to, from, SHORT);
        to += SHORT;
        from += SHORT;
    }
    memcpy(to, from, size);
}

#if defined(__SSE2__)
#include <emmintrin.h>

void shm_copy_stream(void *dest, const void *source, size_t size)
{
    char *to = dest;
    const char *from = source;
    size_t head = -(uintptr_t)to & 63;

    if (size < 256) {
        memcpy(dest, source, size);
        return;
    }
    memcpy(to, from, head);
    to += head;
    from += head;
    size -= head;
    for (; size >= 64; size -= 64, to += 64, from += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)from);
        __m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(from + 48));

        _mm_stream_si128((__m128i *)to, a);
        _mm_stream_si128((__m128i *)(to + 16), b);
        _mm_stream_si128((__m128i *)(to + 32), c);
        _mm_stream_si128((__m128i *)(to + 48), d);
    }
    memcpy(to, from, size);
    /* Only this fence orders streaming stores; a later release store does not.
     */
    _mm_sfence();
}
#else
void shm_copy_stream(void *dest, const void *source, size_t size)
{
    memcpy(dest, source, size);
}
#endif
