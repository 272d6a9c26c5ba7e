/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX2: a byte of signs is for eight elements. */
#include "config.h"

#include <immintrin.h>
#include <stdint.h>

#define ROW dscomm_priv_codec_kernels_avx2
#define NAME "avx2"

#define STEP 8
#define VECTOR 8
/* signs_of() already makes the order in memory */
#define turn(signs) (signs)
typedef __m256 mask_t;
typedef __m128i codes_t;
typedef uint8_t signs_t;

static void stream_vector(float *at, __m256 v, int whole)
{
    (void)whole;
    _mm_stream_ps(at, _mm256_castps256_ps128(v));
    _mm_stream_ps(at + 4, _mm256_extractf128_ps(v, 1));
}

static __m256 is_plus(__m256 v)
{
    return _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NLT_UQ);
}

/* movemask makes the first lane the lowest bit. */
static uint8_t signs_of(__m256 mask, int k)
{
    const __m256i order = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);

    (void)k;
    return (uint8_t)_mm256_movemask_ps(_mm256_permutevar8x32_ps(mask, order));
}

static __m256 mask_of(uint8_t signs, int k)
{
    const __m256i bits =
        _mm256_setr_epi32(0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01);
    __m256i all = _mm256_and_si256(_mm256_set1_epi32(signs), bits);

    (void)k;
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(all, bits));
}

static __m256 pick(__m256 mask, float scale)
{
    return _mm256_blendv_ps(_mm256_set1_ps(-scale), _mm256_set1_ps(scale),
                            mask);
}

static __m128i half_codes(__m256 u)
{
    return _mm256_cvtps_ph(u, _MM_FROUND_TO_NEAREST_INT);
}

static __m256 half_values(__m128i codes)
{
    return _mm256_cvtph_ps(codes);
}

/* As bfloat16_round(); the compiler packs words one by one. */
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

#include "compression/codecs/kernels-x86.h"
