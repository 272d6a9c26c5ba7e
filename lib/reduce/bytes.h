/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of 64 bytes and tables of bytes, for x86 processors with AVX-512
 * VBMI, which looks up 64 bytes at a time in a table of 128. */
#ifndef LIB_KERNELS_BYTES_H
#define LIB_KERNELS_BYTES_H

#include <immintrin.h>

#define VECTOR_BYTES 64
#include "lib/base/vector.h"

/* Lists f(unit, i), f(unit, i + 1), ...: 4, 16, 64 or 128 values. */
#define OF_4(f, unit, i)                                                       \
    f(unit, i), f(unit, (i) + 1), f(unit, (i) + 2), f(unit, (i) + 3)
#define OF_16(f, unit, i)                                                      \
    OF_4(f, unit, i), OF_4(f, unit, (i) + 4), OF_4(f, unit, (i) + 8),          \
        OF_4(f, unit, (i) + 12)
#define OF_64(f, unit, i)                                                      \
    OF_16(f, unit, i), OF_16(f, unit, (i) + 16), OF_16(f, unit, (i) + 32),     \
        OF_16(f, unit, (i) + 48)
#define OF_128(f, unit, i) OF_64(f, unit, i), OF_64(f, unit, (i) + 64)

ALWAYS_INLINE __m512i all(int byte)
{
    return _mm512_set1_epi8((char)byte);
}

/* Looks up 64 bytes in a table of 128; bit 7 of each index is ignored. */
ALWAYS_INLINE __m512i look_up(const uint8_t *table, __m512i index)
{
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), index,
                                    _mm512_load_si512(table + 64));
}

/* Sets bit 7 of each byte of a for which it is set in sign. */
ALWAYS_INLINE __m512i with_sign(__m512i a, __m512i sign)
{
    return _mm512_ternarylogic_epi32(a, sign, all(0x80), 0xf8);
}

ALWAYS_INLINE void store_past(void *dest, u8v bytes)
{
    _mm512_stream_si512(dest, (__m512i)bytes);
}

ALWAYS_INLINE void stores_done(void)
{
    _mm_sfence();
}

#endif
