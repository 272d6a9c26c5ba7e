/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels for x86 processors with AVX-512 F, BW, DQ and VL. The row
 * has only kernels that are faster than those for AVX2: the ones limited by
 * arithmetic and not by loads and stores (doc/performance.md). */
#include "config.h"

#include "lib/reduce/kernels.h"

#include <immintrin.h>

#define VECTOR_BYTES 64
#include "lib/base/vector.h"

ALWAYS_INLINE __m512i joined(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

#define MM(name) _mm512_##name
#define INTEGERS __m512i
#define F16_CODES(values, mode)                                                \
    ((u16v)joined(_mm512_cvtps_ph((values).low, mode),                         \
                  _mm512_cvtps_ph((values).high, mode)))
#include "lib/reduce/x86.h"

ORDER(i64, epi64)
ORDER(u64, epu64)

ALWAYS_INLINE f64v trunc_f64(f64v value)
{
    return _mm512_roundscale_pd(value, TO_ZERO);
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

/* a ^ (b & c) in one instruction. */
#define MIRROR_16(code)                                                        \
    ((i16v)_mm512_ternarylogic_epi32((__m512i)(code), (__m512i)((code) >> 15), \
                                     _mm512_set1_epi16(0x7fff), 0x78))

#define NEXT_ROW dscomm_priv_kernels_avx2
#include "lib/reduce/vector.h"

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
        [DSCOMM_INT32] = {[DSCOMM_AVG] = int32_avg},
        [DSCOMM_UINT32] = {[DSCOMM_AVG] = uint32_avg},
        [DSCOMM_INT64] = {[DSCOMM_AVG] = int64_avg},
        [DSCOMM_UINT64] = {[DSCOMM_AVG] = uint64_avg},
        [DSCOMM_FLOAT16] =
            {[DSCOMM_MIN] = float16_min, [DSCOMM_MAX] = float16_max},
        [DSCOMM_BFLOAT16] = FLOAT_ROW(bfloat16),
        [DSCOMM_FLOAT8_E4M3] = ARITHMETIC(float8_e4m3),
        [DSCOMM_FLOAT8_E5M2] = ARITHMETIC(float8_e5m2),
};
