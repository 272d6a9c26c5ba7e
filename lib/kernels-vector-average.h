/* SPDX-License-Identifier: BSD-3-Clause */
/* Vector kernels for averages of integers of up to 32 bits, by division of
 * floats, which is rounded but never up to an integer (kernels-integer.h says
 * why; for float32 sums are below 2^24). Those of 64 bits are left to the next
 * row. Bytes of a word are numbered from the least. */

ALWAYS_INLINE i32v quotient(i32v sum, float divisor)
{
    f32v mean = __builtin_convertvector(sum, f32v) / divisor;

    return __builtin_convertvector(mean, i32v);
}

/* 8 bits: bytes 0 and 2 are the even ones. */

ALWAYS_INLINE i32_quad_t take_i8(i32v word)
{
    return (i32_quad_t){{word << 24 >> 24, word << 8 >> 24},
                        {word << 16 >> 24, word >> 24}};
}

ALWAYS_INLINE i32_quad_t take_u8(u32v word)
{
    return (i32_quad_t){{(i32v)(word & 0xff), (i32v)(word >> 16 & 0xff)},
                        {(i32v)(word >> 8 & 0xff), (i32v)(word >> 24)}};
}

ALWAYS_INLINE i32_pair_t join_i32_pair(i32_pair_t a, i32_pair_t b)
{
    return (i32_pair_t){a.low + b.low, a.high + b.high};
}

ALWAYS_INLINE i32_quad_t join_i32_quad(i32_quad_t a, i32_quad_t b)
{
    return (i32_quad_t){join_i32_pair(a.even, b.even),
                        join_i32_pair(a.odd, b.odd)};
}

ALWAYS_INLINE i32v give_8(i32_quad_t sum, float divisor)
{
    return (quotient(sum.even.low, divisor) & 0xff) |
           (quotient(sum.odd.low, divisor) & 0xff) << 8 |
           (quotient(sum.even.high, divisor) & 0xff) << 16 |
           quotient(sum.odd.high, divisor) << 24;
}

#define FOLD fold_mean_i8
#define ACCUMULATOR i32_quad_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) take_i8(LOAD(i32, at))
#define JOIN(op, a, b) join_i32_quad(a, b)
#define GIVE(op, a, divisor) give_8(a, divisor)
#include "lib/kernels-vector-fold.h"

#define FOLD fold_mean_u8
#define ACCUMULATOR i32_quad_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) take_u8(LOAD(u32, at))
#define JOIN(op, a, b) join_i32_quad(a, b)
#define GIVE(op, a, divisor) give_8(a, divisor)
#include "lib/kernels-vector-fold.h"

/* 16 bits */

ALWAYS_INLINE i32_pair_t take_i16(i32v word)
{
    return (i32_pair_t){word << 16 >> 16, word >> 16};
}

ALWAYS_INLINE i32_pair_t take_u16(u32v word)
{
    return (i32_pair_t){(i32v)(word & 0xffff), (i32v)(word >> 16)};
}

ALWAYS_INLINE i32v give_16(i32_pair_t sum, float divisor)
{
    return (quotient(sum.low, divisor) & 0xffff) | quotient(sum.high, divisor)
                                                       << 16;
}

#define FOLD fold_mean_i16
#define ACCUMULATOR i32_pair_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) take_i16(LOAD(i32, at))
#define JOIN(op, a, b) join_i32_pair(a, b)
#define GIVE(op, a, divisor) give_16(a, divisor)
#include "lib/kernels-vector-fold.h"

#define FOLD fold_mean_u16
#define ACCUMULATOR i32_pair_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) take_u16(LOAD(u32, at))
#define JOIN(op, a, b) join_i32_pair(a, b)
#define GIVE(op, a, divisor) give_16(a, divisor)
#include "lib/kernels-vector-fold.h"

/* 32 bits, as the low end of a double's mantissa. */

ALWAYS_INLINE f64_pair_t take_halves(u64v halves, double zero)
{
    const u64v exponent = (u64v)((f64v){0} + 0x1p52);

    return (f64_pair_t){(f64v)((halves & 0xffffffff) | exponent) - zero,
                        (f64v)(halves >> 32 | exponent) - zero};
}

ALWAYS_INLINE f64_pair_t take_i32(u32v word)
{
    return take_halves((u64v)(word ^ SIGN_32), 0x1p52 + 0x1p31);
}

ALWAYS_INLINE f64_pair_t join_f64_pair(f64_pair_t a, f64_pair_t b)
{
    return (f64_pair_t){a.low + b.low, a.high + b.high};
}

ALWAYS_INLINE u64v give_32(f64_pair_t sum, double divisor)
{
    u64v low = (u64v)(trunc_f64(sum.low / divisor) + 0x1.8p52);
    u64v high = (u64v)(trunc_f64(sum.high / divisor) + 0x1.8p52);

    return (low & 0xffffffff) | high << 32;
}

#define FOLD fold_mean_i32
#define ACCUMULATOR f64_pair_t
#define FACTOR_TYPE double
#define TAKE(op, at, factor) take_i32(LOAD(u32, at))
#define JOIN(op, a, b) join_f64_pair(a, b)
#define GIVE(op, a, divisor) give_32(a, divisor)
#include "lib/kernels-vector-fold.h"

#define FOLD fold_mean_u32
#define ACCUMULATOR f64_pair_t
#define FACTOR_TYPE double
#define TAKE(op, at, factor) take_halves(LOAD(u64, at), 0x1p52)
#define JOIN(op, a, b) join_f64_pair(a, b)
#define GIVE(op, a, divisor) give_32(a, divisor)
#include "lib/kernels-vector-fold.h"

KERNEL(int8, 1, DSCOMM_INT8, avg, DSCOMM_AVG, fold_mean_i8)
KERNEL(uint8, 1, DSCOMM_UINT8, avg, DSCOMM_AVG, fold_mean_u8)
KERNEL(int16, 2, DSCOMM_INT16, avg, DSCOMM_AVG, fold_mean_i16)
KERNEL(uint16, 2, DSCOMM_UINT16, avg, DSCOMM_AVG, fold_mean_u16)
KERNEL(int32, 4, DSCOMM_INT32, avg, DSCOMM_AVG, fold_mean_i32)
KERNEL(uint32, 4, DSCOMM_UINT32, avg, DSCOMM_AVG, fold_mean_u32)
#define int64_avg NULL
#define uint64_avg NULL
