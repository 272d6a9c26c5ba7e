/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX2: eight elements are a byte of signs. */
#include "config.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define ROW dscomm_priv_codec_kernels_avx2
#define NAME "avx2"

/* movemask makes the first lane the lowest bit. */
static uint8_t byte_of(__m256 mask)
{
    const __m256i order = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);

    return (uint8_t)_mm256_movemask_ps(_mm256_permutevar8x32_ps(mask, order));
}

static __m256 mask_of(uint8_t byte)
{
    const __m256i bits =
        _mm256_setr_epi32(0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01);
    __m256i all = _mm256_and_si256(_mm256_set1_epi32(byte), bits);

    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(all, bits));
}

static size_t sign_vectors(const float *x, float *e, size_t count, float scale,
                           uint8_t *ret_bits)
{
    const __m256 plus = _mm256_set1_ps(scale), minus = _mm256_set1_ps(-scale);
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256 u =
            _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(e + i));
        __m256 mask = _mm256_cmp_ps(u, _mm256_setzero_ps(), _CMP_NLT_UQ);

        ret_bits[i / 8] = byte_of(mask);
        _mm256_storeu_ps(e + i,
                         _mm256_sub_ps(u, _mm256_blendv_ps(minus, plus, mask)));
    }
    return i;
}

static size_t add_vectors(const uint8_t *bits, size_t count, float scale,
                          float *sum)
{
    const __m256 plus = _mm256_set1_ps(scale), minus = _mm256_set1_ps(-scale);
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256 value = _mm256_blendv_ps(minus, plus, mask_of(bits[i / 8]));

        _mm256_storeu_ps(sum + i,
                         _mm256_add_ps(_mm256_loadu_ps(sum + i), value));
    }
    return i;
}

/* A buffer of malloc() has 16-byte alignment, and that is enough to stream. */
static size_t put_vectors(const uint8_t *bits, size_t count, float scale,
                          int stream, float *ret_values)
{
    const __m256 plus = _mm256_set1_ps(scale), minus = _mm256_set1_ps(-scale);
    size_t i = 0;

    if (!stream || (uintptr_t)ret_values % 16) {
        for (; i + 8 <= count; i += 8)
            _mm256_storeu_ps(
                ret_values + i,
                _mm256_blendv_ps(minus, plus, mask_of(bits[i / 8])));
        return i;
    }
    for (; i + 8 <= count; i += 8) {
        __m256 value = _mm256_blendv_ps(minus, plus, mask_of(bits[i / 8]));

        _mm_stream_ps(ret_values + i, _mm256_castps256_ps128(value));
        _mm_stream_ps(ret_values + i + 4, _mm256_extractf128_ps(value, 1));
    }
    return i;
}

#include "compression/kernels-body.h"
