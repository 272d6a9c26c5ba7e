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

static __m128i half_codes(__m256 u)
{
    return _mm256_cvtps_ph(u, _MM_FROUND_TO_NEAREST_INT);
}

static __m256 half_values(__m128i codes)
{
    return _mm256_cvtph_ps(codes);
}

/* As bfloat_of(); the compiler packs words one by one. */
static __m128i bfloat_codes(__m256 u)
{
    __m256i bits = _mm256_castps_si256(u), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits,
                         _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
        16);
    __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(u, u, _CMP_UNORD_Q));
    __m256i codes = _mm256_blendv_epi8(rounded, nan, is_nan);

    return _mm_packus_epi32(_mm256_castsi256_si128(codes),
                            _mm256_extracti128_si256(codes, 1));
}

static __m256 bfloat_values(__m128i codes)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}

#define CASTS(format)                                                          \
    static size_t to_##format##_vectors(const float *x, float *e,              \
                                        size_t count, char *ret_codes)         \
    {                                                                          \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + 8 <= count && !e; i += 8)                                   \
            _mm_storeu_si128((__m128i *)(void *)(ret_codes + 2 * i),           \
                             format##_codes(_mm256_loadu_ps(x + i)));          \
        for (; i + 8 <= count; i += 8) {                                       \
            __m256 u =                                                         \
                _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(e + i)); \
            __m128i codes = format##_codes(u);                                 \
                                                                               \
            _mm_storeu_si128((__m128i *)(void *)(ret_codes + 2 * i), codes);   \
            _mm256_storeu_ps(e + i, _mm256_sub_ps(u, format##_values(codes))); \
        }                                                                      \
        return i;                                                              \
    }                                                                          \
    static size_t from_##format##_vectors(const char *codes, size_t count,     \
                                          float *ret_values)                   \
    {                                                                          \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + 8 <= count; i += 8)                                         \
            _mm256_storeu_ps(                                                  \
                ret_values + i,                                                \
                format##_values(_mm_loadu_si128(                               \
                    (const __m128i *)(const void *)(codes + 2 * i))));         \
        return i;                                                              \
    }

CASTS(half)
CASTS(bfloat)

#include "compression/codecs/kernels-body.h"
