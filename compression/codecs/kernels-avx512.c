/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX-512: a word of 64 signs is a mask. */
#include "config.h"

#include <immintrin.h>
#include <stdint.h>

#define ROW dscomm_priv_codec_kernels_avx512
#define NAME "avx512"

#define STEP 64
#define VECTOR 16
typedef __mmask16 mask_t;
typedef __m256i codes_t;
typedef uint64_t signs_t;

static void stream_vector(float *at, __m512 v, int whole)
{
    if (whole) {
        _mm512_stream_ps(at, v);
        return;
    }
    _mm_stream_ps(at, _mm512_castps512_ps128(v));
    _mm_stream_ps(at + 4, _mm512_extractf32x4_ps(v, 1));
    _mm_stream_ps(at + 8, _mm512_extractf32x4_ps(v, 2));
    _mm_stream_ps(at + 12, _mm512_extractf32x4_ps(v, 3));
}

/* Reverses the bits of each byte, so that the first element is the highest
 * bit. */
static uint64_t turn(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x5555555555555555);
    const uint64_t twos = UINT64_C(0x3333333333333333);
    const uint64_t fours = UINT64_C(0x0f0f0f0f0f0f0f0f);

    word = (word >> 1 & ones) | (word & ones) << 1;
    word = (word >> 2 & twos) | (word & twos) << 2;
    return (word >> 4 & fours) | (word & fours) << 4;
}

static __mmask16 is_plus(__m512 v)
{
    return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLT_UQ);
}

static uint64_t signs_of(__mmask16 mask, int k)
{
    return (uint64_t)mask << VECTOR * k;
}

static __mmask16 mask_of(uint64_t signs, int k)
{
    return (__mmask16)(signs >> VECTOR * k);
}

static __m512 pick(__mmask16 mask, float scale)
{
    return _mm512_mask_blend_ps(mask, _mm512_set1_ps(-scale),
                                _mm512_set1_ps(scale));
}

static __m256i half_codes(__m512 u)
{
    return _mm512_cvtps_ph(u, _MM_FROUND_TO_NEAREST_INT);
}

static __m512 half_values(__m256i codes)
{
    return _mm512_cvtph_ps(codes);
}

/* As bfloat16_round(). */
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

#include "compression/codecs/kernels-x86.h"
