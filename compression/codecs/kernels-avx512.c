/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX-512: 64 elements are a word of signs, made and taken as masks. */
#include "config.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROW dscomm_priv_codec_kernels_avx512
#define NAME "avx512"

#define STEP 64
#define VECTOR 16
#define VECTORS (STEP / VECTOR)

/* Turns each byte round: the first of its elements is the highest bit. */
static uint64_t turn(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x5555555555555555);
    const uint64_t twos = UINT64_C(0x3333333333333333);
    const uint64_t fours = UINT64_C(0x0f0f0f0f0f0f0f0f);

    word = (word >> 1 & ones) | (word & ones) << 1;
    word = (word >> 2 & twos) | (word & twos) << 2;
    return (word >> 4 & fours) | (word & fours) << 4;
}

static uint64_t take(const uint8_t *bits)
{
    uint64_t word;

    memcpy(&word, bits, sizeof word);
    return turn(word);
}

static __m512 pick(uint64_t word, int k, float scale)
{
    return _mm512_mask_blend_ps((__mmask16)(word >> VECTOR * k),
                                _mm512_set1_ps(-scale), _mm512_set1_ps(scale));
}

static size_t sign_vectors(const float *x, float *e, size_t count, float scale,
                           uint8_t *ret_bits)
{
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        uint64_t word = 0;

        for (int k = 0; k < VECTORS; k++) {
            float *at = e + i + k * VECTOR;
            __m512 u = _mm512_add_ps(_mm512_loadu_ps(x + i + k * VECTOR),
                                     _mm512_loadu_ps(at));
            __mmask16 mask =
                _mm512_cmp_ps_mask(u, _mm512_setzero_ps(), _CMP_NLT_UQ);

            word |= (uint64_t)mask << VECTOR * k;
            _mm512_storeu_ps(at, _mm512_sub_ps(u, pick(mask, 0, scale)));
        }
        word = turn(word);
        memcpy(ret_bits + i / 8, &word, sizeof word);
    }
    return i;
}

static size_t add_vectors(const uint8_t *bits, size_t count, float scale,
                          float *sum)
{
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        uint64_t word = take(bits + i / 8);

        for (int k = 0; k < VECTORS; k++) {
            float *at = sum + i + k * VECTOR;

            _mm512_storeu_ps(
                at, _mm512_add_ps(_mm512_loadu_ps(at), pick(word, k, scale)));
        }
    }
    return i;
}

/* Stores of 16 bytes: the alignment of a buffer of malloc(). */
static void stream_quarters(float *at, __m512 value)
{
    _mm_stream_ps(at, _mm512_castps512_ps128(value));
    _mm_stream_ps(at + 4, _mm512_extractf32x4_ps(value, 1));
    _mm_stream_ps(at + 8, _mm512_extractf32x4_ps(value, 2));
    _mm_stream_ps(at + 12, _mm512_extractf32x4_ps(value, 3));
}

static size_t put_streaming(const uint8_t *bits, size_t count, float scale,
                            float *ret_values)
{
    int whole = (uintptr_t)ret_values % 64 == 0;
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        uint64_t word = take(bits + i / 8);

        for (int k = 0; k < VECTORS; k++) {
            if (whole)
                _mm512_stream_ps(ret_values + i + k * VECTOR,
                                 pick(word, k, scale));
            else
                stream_quarters(ret_values + i + k * VECTOR,
                                pick(word, k, scale));
        }
    }
    return i;
}

static size_t put_vectors(const uint8_t *bits, size_t count, float scale,
                          int stream, float *ret_values)
{
    size_t i = 0;

    if (stream && (uintptr_t)ret_values % 16 == 0)
        return put_streaming(bits, count, scale, ret_values);
    for (; i + STEP <= count; i += STEP) {
        uint64_t word = take(bits + i / 8);

        for (int k = 0; k < VECTORS; k++)
            _mm512_storeu_ps(ret_values + i + k * VECTOR, pick(word, k, scale));
    }
    return i;
}

static __m256i half_codes(__m512 u)
{
    return _mm512_cvtps_ph(u, _MM_FROUND_TO_NEAREST_INT);
}

static __m512 half_values(__m256i codes)
{
    return _mm512_cvtph_ps(codes);
}

/* As bfloat_of(). */
static __m256i bfloat_codes(__m512 u)
{
    __m512i bits = _mm512_castps_si512(u), high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(
        _mm512_add_epi32(bits,
                         _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))),
        16);

    return _mm512_cvtepi32_epi16(
        _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(u, u, _CMP_UNORD_Q),
                             high, _mm512_set1_epi32(0x40)));
}

static __m512 bfloat_values(__m256i codes)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
}

#define CASTS(format)                                                          \
    static size_t to_##format##_vectors(const float *x, float *e,              \
                                        size_t count, char *ret_codes)         \
    {                                                                          \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + VECTOR <= count && !e; i += VECTOR)                         \
            _mm256_storeu_si256((__m256i *)(void *)(ret_codes + 2 * i),        \
                                format##_codes(_mm512_loadu_ps(x + i)));       \
        for (; i + VECTOR <= count; i += VECTOR) {                             \
            __m512 u =                                                         \
                _mm512_add_ps(_mm512_loadu_ps(x + i), _mm512_loadu_ps(e + i)); \
            __m256i codes = format##_codes(u);                                 \
                                                                               \
            _mm256_storeu_si256((__m256i *)(void *)(ret_codes + 2 * i),        \
                                codes);                                        \
            _mm512_storeu_ps(e + i, _mm512_sub_ps(u, format##_values(codes))); \
        }                                                                      \
        return i;                                                              \
    }                                                                          \
    static size_t from_##format##_vectors(const char *codes, size_t count,     \
                                          float *ret_values)                   \
    {                                                                          \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + VECTOR <= count; i += VECTOR)                               \
            _mm512_storeu_ps(                                                  \
                ret_values + i,                                                \
                format##_values(_mm256_loadu_si256(                            \
                    (const __m256i *)(const void *)(codes + 2 * i))));         \
        return i;                                                              \
    }

CASTS(half)
CASTS(bfloat)

#include "compression/codecs/kernels-body.h"
