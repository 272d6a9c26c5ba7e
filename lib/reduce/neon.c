/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels for 64-bit ARM processors. */
#include "config.h"

#include "lib/reduce/kernels.h"

#include <arm_neon.h>

#define VECTOR_BYTES 16
#include "lib/base/vector.h"

#define ORDER(x, type, suffix)                                                 \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)vminq_##suffix((type)a, (type)b);                         \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        return (x##v)vmaxq_##suffix((type)a, (type)b);                         \
    }

ORDER(i8, int8x16_t, s8)
ORDER(u8, uint8x16_t, u8)
ORDER(i16, int16x8_t, s16)
ORDER(u16, uint16x8_t, u16)
ORDER(i32, int32x4_t, s32)
ORDER(u32, uint32x4_t, u32)
/* A NaN wins, and -0 is less than +0. */
ORDER(f32, float32x4_t, f32)
ORDER(f64, float64x2_t, f64)

/* NEON has no such instruction for 64 bits. */
#define ORDER_BY_COMPARISON(x)                                                 \
    ALWAYS_INLINE x##v min_##x(x##v a, x##v b)                                 \
    {                                                                          \
        u64v less = (u64v)(a < b);                                             \
                                                                               \
        return (x##v)(((u64v)a & less) | ((u64v)b & ~less));                   \
    }                                                                          \
    ALWAYS_INLINE x##v max_##x(x##v a, x##v b)                                 \
    {                                                                          \
        u64v less = (u64v)(a < b);                                             \
                                                                               \
        return (x##v)(((u64v)b & less) | ((u64v)a & ~less));                   \
    }

ORDER_BY_COMPARISON(i64)
ORDER_BY_COMPARISON(u64)

ALWAYS_INLINE f64v trunc_f64(f64v value)
{
    return (f64v)vrndq_f64((float64x2_t)value);
}

ALWAYS_INLINE u32v upper_halves(u32v low, u32v high)
{
    return (u32v)vsriq_n_u32((uint32x4_t)high, (uint32x4_t)low, 16);
}

ALWAYS_INLINE i16v double_high_i16(i16v a, i16v b)
{
    return (i16v)vqdmulhq_s16((int16x8_t)a, (int16x8_t)b);
}

ALWAYS_INLINE u64v multiply_low(u64v a, u64v b)
{
    return (u64v)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
}

ALWAYS_INLINE f32_pair_t widen_f16(u16v codes)
{
    float16x8_t all = (float16x8_t)codes;

    return (f32_pair_t){(f32v)vcvt_f32_f16(vget_low_f16(all)),
                        (f32v)vcvt_high_f32_f16(all)};
}

ALWAYS_INLINE f32_pair_t load_f16(const unsigned char *at)
{
    return widen_f16(LOAD(u16, at));
}

ALWAYS_INLINE u16v round_f16(f32_pair_t values)
{
    float16x4_t low = vcvt_f16_f32((float32x4_t)values.low);

    return (u16v)vcvt_high_f16_f32(low, (float32x4_t)values.high);
}

ALWAYS_INLINE u16v halves(u32v low, u32v high)
{
    return (u16v)vuzp1q_u16((uint16x8_t)low, (uint16x8_t)high);
}

ALWAYS_INLINE u16v differs(f32_pair_t a, f32_pair_t b)
{
    return halves((u32v)(a.low != b.low), (u32v)(a.high != b.high)) >> 15;
}

/* NEON has no conversion towards zero: a code that was rounded up is reduced by
 * one. */
ALWAYS_INLINE u16v chop_f16(f32_pair_t values)
{
    u16v codes = round_f16(values);
    f32_pair_t back = widen_f16(codes);
    u32v low = vcagtq_f32((float32x4_t)back.low, (float32x4_t)values.low);
    u32v high = vcagtq_f32((float32x4_t)back.high, (float32x4_t)values.high);

    return codes + halves(low, high);
}

ALWAYS_INLINE void store_past(void *dest, u8v bytes)
{
    *(u8m *)dest = bytes;
}

ALWAYS_INLINE void stores_done(void)
{
}

#define NEXT_ROW dscomm_priv_kernels_c
#include "lib/reduce/vector.h"

/* NEON has no product of 64 bits. */
#define uint64_product NULL

const dscomm_reduce_fn dscomm_priv_kernels_neon[DSCOMM_DTYPE_COUNT]
                                               [DSCOMM_OP_COUNT] =
                                                   KERNELS_TABLE;
