/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions for vector.h that are the same for all x86 processors, whatever
 * the size of their vectors. The including file has included vector.h of
 * lib/base and defined
 *
 *   MM(name)                 the intrinsic for vectors of its size
 *   INTEGERS                 the type of a vector of integers
 *   F16_CODES(values, mode)  converts a pair of float32 to codes; mode, a
 *                            constant, is the rounding */
#ifndef LIB_KERNELS_X86_H
#define LIB_KERNELS_X86_H

#include <immintrin.h>

#define TO_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define TO_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

#define ORDER(x, suffix)                                                       \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)MM(min_##suffix)((INTEGERS)a, (INTEGERS)b);               \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)MM(max_##suffix)((INTEGERS)a, (INTEGERS)b);               \
    }

ORDER(i8, epi8)
ORDER(u8, epu8)
ORDER(i16, epi16)
ORDER(u16, epu16)
ORDER(i32, epi32)
ORDER(u32, epu32)

/* Computed in both orders of the operands, as in real.h: if the operands are
 * equal or one is NaN, the instruction returns the second. */
#define ORDER_REALS(x, suffix, word, sign)                                     \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        word##v one = (word##v)MM(min_##suffix)(a, b);                         \
        word##v other = (word##v)MM(min_##suffix)(b, a);                       \
                                                                               \
        return (x##v)(one | other);                                            \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        word##v one = (word##v)MM(max_##suffix)(a, b);                         \
        word##v other = (word##v)MM(max_##suffix)(b, a);                       \
                                                                               \
        return (x##v)(((one ^ sign) | (other ^ sign)) ^ sign);                 \
    }

ORDER_REALS(f32, ps, u32, SIGN_32)
ORDER_REALS(f64, pd, u64, SIGN_64)

ALWAYS_INLINE i16v double_high_i16(i16v a, i16v b)
{
    return (i16v)MM(mulhi_epi16)((INTEGERS)(a + a), (INTEGERS)b);
}

ALWAYS_INLINE u64v multiply_low(u64v a, u64v b)
{
    return (u64v)MM(mul_epu32)((INTEGERS)a, (INTEGERS)b);
}

ALWAYS_INLINE u16v round_f16(f32_pair_t values)
{
    return F16_CODES(values, TO_NEAREST);
}

ALWAYS_INLINE u16v chop_f16(f32_pair_t values)
{
    return F16_CODES(values, TO_ZERO);
}

ALWAYS_INLINE void stores_done(void)
{
    _mm_sfence();
}

#endif
