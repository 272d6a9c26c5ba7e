/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels for x86 processors with AVX2 and F16C. */
#include "config.h"

#include "lib/kernels.h"

#include <immintrin.h>

#define VECTOR_BYTES 32
#include "lib/vector.h"

#define ORDER(x, suffix)                                                       \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)_mm256_min_##suffix((__m256i)a, (__m256i)b);              \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)_mm256_max_##suffix((__m256i)a, (__m256i)b);              \
    }

ORDER(i8, epi8)
ORDER(u8, epu8)
ORDER(i16, epi16)
ORDER(u16, epu16)
ORDER(i32, epi32)
ORDER(u32, epu32)

/* There is no such instruction for 64 bits. */
#define ORDER_BY_COMPARISON(x)                                                 \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)_mm256_blendv_epi8((__m256i)b, (__m256i)a,                \
                                        (__m256i)(a < b));                     \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)_mm256_blendv_epi8((__m256i)a, (__m256i)b,                \
                                        (__m256i)(a < b));                     \
    }

ORDER_BY_COMPARISON(i64)
ORDER_BY_COMPARISON(u64)

/* Both ways round, as kernels-real.h has it: of operands that are equal, or of
 * which one is NaN, the instruction takes the second. */
#define ORDER_REALS(x, suffix, word, sign)                                     \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        word##v one = (word##v)_mm256_min_##suffix(a, b);                      \
        word##v other = (word##v)_mm256_min_##suffix(b, a);                    \
                                                                               \
        return (x##v)(one | other);                                            \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        word##v one = (word##v)_mm256_max_##suffix(a, b);                      \
        word##v other = (word##v)_mm256_max_##suffix(b, a);                    \
                                                                               \
        return (x##v)(((one ^ sign) | (other ^ sign)) ^ sign);                 \
    }

ORDER_REALS(f32, ps, u32, SIGN_32)
ORDER_REALS(f64, pd, u64, SIGN_64)

#define TO_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define TO_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

ALWAYS_INLINE f64v trunc_f64(f64v value)
{
    return _mm256_round_pd(value, TO_ZERO);
}

ALWAYS_INLINE u32v upper_halves(u32v low, u32v high)
{
    return (u32v)_mm256_blend_epi16((__m256i)(low >> 16), (__m256i)high, 0xaa);
}

ALWAYS_INLINE f32_pair_t load_f16(const unsigned char *at)
{
    return (f32_pair_t){
        _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)at)),
        _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at + 16)))};
}

ALWAYS_INLINE f32_pair_t widen_f16(u16v codes)
{
    __m256i all = (__m256i)codes;

    return (f32_pair_t){_mm256_cvtph_ps(_mm256_castsi256_si128(all)),
                        _mm256_cvtph_ps(_mm256_extracti128_si256(all, 1))};
}

/* mode is a constant. */
#define F16_CODES(values, mode)                                                \
    ((u16v)_mm256_set_m128i(_mm256_cvtps_ph((values).high, mode),              \
                            _mm256_cvtps_ph((values).low, mode)))

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
    __m256i packed = _mm256_packs_epi32((__m256i)(a.low != b.low),
                                        (__m256i)(a.high != b.high));

    return (u16v)_mm256_permute4x64_epi64(packed, 0xd8) >> 15;
}

ALWAYS_INLINE void store_past(void *dest, u8v bytes)
{
    _mm256_stream_si256(dest, (__m256i)bytes);
}

ALWAYS_INLINE void stores_done(void)
{
    _mm_sfence();
}

#define NEXT_ROW dscomm_priv_kernels_c
#include "lib/kernels-vector.h"

const dscomm_reduce_fn dscomm_priv_kernels_avx2[DSCOMM_DTYPE_COUNT]
                                               [DSCOMM_OP_COUNT] =
                                                   KERNELS_TABLE;
