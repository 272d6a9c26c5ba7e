/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels for x86 processors with AVX2 and F16C. */
#include "config.h"

#include "lib/reduce/kernels.h"

#include <immintrin.h>

#define VECTOR_BYTES 32
#include "lib/base/vector.h"

#define MM(name) _mm256_##name
#define INTEGERS __m256i
#define F16_CODES(values, mode)                                                \
    ((u16v)_mm256_set_m128i(_mm256_cvtps_ph((values).high, mode),              \
                            _mm256_cvtps_ph((values).low, mode)))
#include "lib/reduce/x86.h"

/* AVX2 has no such instruction for 64 bits. */
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

#define NEXT_ROW dscomm_priv_kernels_c
#include "lib/reduce/vector.h"

const dscomm_reduce_fn dscomm_priv_kernels_avx2[DSCOMM_DTYPE_COUNT]
                                               [DSCOMM_OP_COUNT] =
                                                   KERNELS_TABLE;
