/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels for x86 processors with AVX-512 F, BW, DQ and VL, as far as
 * they are faster than those for AVX2, which is where a kernel is busy with
 * more than loads and stores (doc/performance.md). */
#include "config.h"

#include "lib/kernels.h"

#include <immintrin.h>

#define VECTOR_BYTES 64
#include "lib/vector.h"

#define TO_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define TO_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

#define ORDER(x, suffix)                                                       \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)_mm512_min_##suffix((__m512i)a, (__m512i)b);              \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)_mm512_max_##suffix((__m512i)a, (__m512i)b);              \
    }

ORDER(i8, epi8)
ORDER(u8, epu8)
ORDER(i16, epi16)
ORDER(u16, epu16)
ORDER(i32, epi32)
ORDER(u32, epu32)
ORDER(i64, epi64)
ORDER(u64, epu64)

/* Both ways round, as kernels-real.h has it: of operands that are equal, or of
 * which one is NaN, the instruction takes the second. */
#define ORDER_REALS(x, suffix, word, sign)                                     \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        word##v one = (word##v)_mm512_min_##suffix(a, b);                      \
        word##v other = (word##v)_mm512_min_##suffix(b, a);                    \
                                                                               \
        return (x##v)(one | other);                                            \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        word##v one = (word##v)_mm512_max_##suffix(a, b);                      \
        word##v other = (word##v)_mm512_max_##suffix(b, a);                    \
                                                                               \
        return (x##v)(((one ^ sign) | (other ^ sign)) ^ sign);                 \
    }

ORDER_REALS(f32, ps, u32, SIGN_32)
ORDER_REALS(f64, pd, u64, SIGN_64)

ALWAYS_INLINE f64v trunc_f64(f64v value)
{
    return _mm512_roundscale_pd(value, TO_ZERO);
}

ALWAYS_INLINE __m512i joined(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

ALWAYS_INLINE u32v upper_halves(u32v low, u32v high)
{
    return (u32v)_mm512_mask_blend_epi16(0xaaaaaaaa, (__m512i)(low >> 16),
                                         (__m512i)high);
}

ALWAYS_INLINE f32_pair_t load_f16(const unsigned char *at)
{
    return (f32_pair_t){
        _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)at)),
        _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(at + 32)))};
}

ALWAYS_INLINE f32_pair_t widen_f16(u16v codes)
{
    __m512i all = (__m512i)codes;

    return (f32_pair_t){_mm512_cvtph_ps(_mm512_castsi512_si256(all)),
                        _mm512_cvtph_ps(_mm512_extracti64x4_epi64(all, 1))};
}

/* mode is a constant. */
#define F16_CODES(values, mode)                                                \
    ((u16v)joined(_mm512_cvtps_ph((values).low, mode),                         \
                  _mm512_cvtps_ph((values).high, mode)))

ALWAYS_INLINE u16v round_f16(f32_pair_t values)
{
    return F16_CODES(values, TO_NEAREST);
}

ALWAYS_INLINE u16v chop_f16(f32_pair_t values)
{
    return F16_CODES(values, TO_ZERO);
}

ALWAYS_INLINE u16v differs(f32_pair_t a, f32_pair_t b)
{
    __mmask16 low = _mm512_cmp_ps_mask(a.low, b.low, _CMP_NEQ_UQ);
    __mmask16 high = _mm512_cmp_ps_mask(a.high, b.high, _CMP_NEQ_UQ);

    return (u16v)_mm512_maskz_set1_epi16(_mm512_kunpackw(high, low), 1);
}

ALWAYS_INLINE void store_past(void *dest, u8v bytes)
{
    _mm512_stream_si512(dest, (__m512i)bytes);
}

ALWAYS_INLINE void stores_done(void)
{
    _mm_sfence();
}

#define NEXT_ROW dscomm_priv_kernels_avx2
#include "lib/kernels-vector.h"

#define ARITHMETIC(type)                                                       \
    {                                                                          \
        [DSCOMM_SUM] = type##_sum, [DSCOMM_PRODUCT] = type##_product,          \
        [DSCOMM_AVG] = type##_avg, [DSCOMM_PREMUL_SUM] = type##_premul_sum,    \
    }

const dscomm_reduce_fn
    dscomm_priv_kernels_avx512[DSCOMM_DTYPE_COUNT][DSCOMM_OP_COUNT] = {
        [DSCOMM_INT8] = {[DSCOMM_AVG] = int8_avg},
        [DSCOMM_UINT8] = {[DSCOMM_AVG] = uint8_avg},
        [DSCOMM_INT16] = {[DSCOMM_AVG] = int16_avg},
        [DSCOMM_UINT16] = {[DSCOMM_AVG] = uint16_avg},
        [DSCOMM_BFLOAT16] = ARITHMETIC(bfloat16),
        [DSCOMM_FLOAT8_E4M3] = ARITHMETIC(float8_e4m3),
        [DSCOMM_FLOAT8_E5M2] = ARITHMETIC(float8_e5m2),
};
