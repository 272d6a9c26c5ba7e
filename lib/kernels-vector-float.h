/* SPDX-License-Identifier: BSD-3-Clause */
/* Vector kernels for floats. The arithmetic of 16 and 8 bits is float32's;
 * their order is found without it, as kernels-minifloat.h has it. */

/* float32 and float64 */

#define TAKE_REAL(x, op, at, factor)                                           \
    ((op) == DSCOMM_PREMUL_SUM ? LOAD(x, at) * (factor) : LOAD(x, at))
#define JOIN_REAL(x, op, a, b)                                                 \
    ((op) == DSCOMM_PRODUCT ? (a) * (b)                                        \
     : (op) == DSCOMM_MIN   ? min_##x(a, b)                                    \
     : (op) == DSCOMM_MAX   ? max_##x(a, b)                                    \
                            : (a) + (b))
#define GIVE_REAL(op, a, divisor) ((op) == DSCOMM_AVG ? (a) / (divisor) : (a))

#define FOLD fold_f32
#define ACCUMULATOR f32v
#define FACTOR_TYPE float
#define TAKE(op, at, factor) TAKE_REAL(f32, op, at, factor)
#define JOIN(op, a, b) JOIN_REAL(f32, op, a, b)
#define GIVE GIVE_REAL
#include "lib/kernels-vector-fold.h"

#define FOLD fold_f64
#define ACCUMULATOR f64v
#define FACTOR_TYPE double
#define TAKE(op, at, factor) TAKE_REAL(f64, op, at, factor)
#define JOIN(op, a, b) JOIN_REAL(f64, op, a, b)
#define GIVE GIVE_REAL
#include "lib/kernels-vector-fold.h"

/* Pairs and quads of float32 */

ALWAYS_INLINE f32_pair_t scale_pair(int op, f32_pair_t x, float factor)
{
    if (op != DSCOMM_PREMUL_SUM)
        return x;
    return (f32_pair_t){x.low * factor, x.high * factor};
}

ALWAYS_INLINE f32_quad_t scale_quad(int op, f32_quad_t x, float factor)
{
    return (f32_quad_t){scale_pair(op, x.even, factor),
                        scale_pair(op, x.odd, factor)};
}

ALWAYS_INLINE f32_pair_t join_pair(int op, f32_pair_t a, f32_pair_t b)
{
    if (op == DSCOMM_PRODUCT)
        return (f32_pair_t){a.low * b.low, a.high * b.high};
    return (f32_pair_t){a.low + b.low, a.high + b.high};
}

ALWAYS_INLINE f32_quad_t join_quad(int op, f32_quad_t a, f32_quad_t b)
{
    return (f32_quad_t){join_pair(op, a.even, b.even),
                        join_pair(op, a.odd, b.odd)};
}

ALWAYS_INLINE f32_pair_t mean_pair(int op, f32_pair_t sum, float divisor)
{
    if (op != DSCOMM_AVG)
        return sum;
    return (f32_pair_t){sum.low / divisor, sum.high / divisor};
}

#define FOLD fold_f16
#define ACCUMULATOR f32_pair_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) scale_pair(op, widen_f16(LOAD(u16, at)), factor)
#define JOIN join_pair
#define GIVE(op, a, divisor) round_f16(mean_pair(op, a, divisor))
#include "lib/kernels-vector-fold.h"

/* bfloat16: low and high halves of words. */

ALWAYS_INLINE f32_pair_t widen_bf16(u32v codes)
{
    return (f32_pair_t){(f32v)(codes << 16), (f32v)(codes & 0xffff0000u)};
}

/* The code in the upper half; what is in the lower half means nothing. */
ALWAYS_INLINE u32v rounded_bf16(f32v value)
{
    u32v bits = (u32v)value;
    u32v rounded = bits + 0x7fff + (bits >> 16 & 1);

    return SELECT(u32, value != value, bits | 0x400000, rounded);
}

ALWAYS_INLINE u32v round_bf16(f32_pair_t values)
{
    return rounded_bf16(values.low) >> 16 |
           (rounded_bf16(values.high) & 0xffff0000u);
}

#define FOLD fold_bf16
#define ACCUMULATOR f32_pair_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) scale_pair(op, widen_bf16(LOAD(u32, at)), factor)
#define JOIN join_pair
#define GIVE(op, a, divisor) round_bf16(mean_pair(op, a, divisor))
#include "lib/kernels-vector-fold.h"

/* 8 bits: even and odd bytes, in the upper half of 16 bits, where E5M2 is
 * float16 and E4M3, moved down by a bit, 2^-8 of it. */

ALWAYS_INLINE f32_quad_t widen_e5m2(u16v codes)
{
    return (f32_quad_t){widen_f16(codes << 8), widen_f16(codes & 0xff00)};
}

ALWAYS_INLINE f32_pair_t widen_upper_e4m3(u16v upper)
{
    u16v nan = (u16v)((upper & 0x7f00) == 0x7f00) & 0x7c00;
    u16v moved = (u16v)((i16v)upper >> 1) & 0xbf80;
    f32_pair_t small = widen_f16(moved | nan);

    return (f32_pair_t){small.low * 0x1p8f, small.high * 0x1p8f};
}

ALWAYS_INLINE f32_quad_t widen_e4m3(u16v codes)
{
    return (f32_quad_t){widen_upper_e4m3(codes << 8),
                        widen_upper_e4m3(codes & 0xff00)};
}

/* minifloat_round() of a vector, for 8 bits. */
ALWAYS_INLINE u32v round_8(f32v value, int mantissa, int bias, uint32_t special)
{
    const int shift = 23 - mantissa;
    const uint32_t least = (uint32_t)(128 - bias) << 23;
    const int32_t high = (int32_t)((special << shift) + least - (1u << 23));
    u32v word = (u32v)value, unit, code;
    i32v size = min_i32((i32v)(word & 0x7fffffffu), (i32v){0} + high), power;

    power = max_i32(size & 0x7f800000, (i32v){0} + (int32_t)least);
    unit = (u32v)power + ((uint32_t)shift << 23);
    code = (u32v)((f32v)size + (f32v)unit) - unit;
    code += ((u32v)power - least) >> shift;
    code |= (u32v)(value != value) & (1u << (mantissa - 1));
    return code | (word & SIGN_32) >> 24;
}

ALWAYS_INLINE u16v round_pair(f32_pair_t values, int mantissa, int bias,
                              uint32_t special)
{
    return narrow(round_8(values.low, mantissa, bias, special),
                  round_8(values.high, mantissa, bias, special));
}

ALWAYS_INLINE u16v round_quad(int op, f32_quad_t sum, float divisor,
                              int mantissa, int bias, uint32_t special)
{
    f32_pair_t even = mean_pair(op, sum.even, divisor);
    f32_pair_t odd = mean_pair(op, sum.odd, divisor);

    return round_pair(even, mantissa, bias, special) |
           round_pair(odd, mantissa, bias, special) << 8;
}

#define FOLD fold_e4m3
#define ACCUMULATOR f32_quad_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) scale_quad(op, widen_e4m3(LOAD(u16, at)), factor)
#define JOIN join_quad
#define GIVE(op, a, divisor) round_quad(op, a, divisor, 3, 7, 0x7f)
#include "lib/kernels-vector-fold.h"

#define FOLD fold_e5m2
#define ACCUMULATOR f32_quad_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) scale_quad(op, widen_e5m2(LOAD(u16, at)), factor)
#define JOIN join_quad
#define GIVE(op, a, divisor) round_quad(op, a, divisor, 2, 15, 0x7c)
#include "lib/kernels-vector-fold.h"

/* Order: keys that sort as signed integers, turned so that NaNs win. */

#define KEY_TURN(op, magnitude, top)                                           \
    ((op) == DSCOMM_MIN ? (magnitude) - (top) : (top) - (magnitude))

ALWAYS_INLINE i16v key_16(i16v code, int turn)
{
    return (i16v)((u16v)(code ^ ((code < 0) & 0x7fff)) + (uint16_t)turn);
}

ALWAYS_INLINE i16v code_16(i16v key, int turn)
{
    i16v code = (i16v)((u16v)key - (uint16_t)turn);

    return code ^ ((code < 0) & 0x7fff);
}

ALWAYS_INLINE i8v key_8(i8v code, int turn)
{
    return (i8v)((u8v)(code ^ ((code < 0) & 0x7f)) + (uint8_t)turn);
}

ALWAYS_INLINE i8v code_8(i8v key, int turn)
{
    i8v code = (i8v)((u8v)key - (uint8_t)turn);

    return code ^ ((code < 0) & 0x7f);
}

#define JOIN_ORDER(x, op, a, b)                                                \
    ((op) == DSCOMM_MIN ? min_##x(a, b) : max_##x(a, b))

#define FOLD fold_order_f16
#define ACCUMULATOR i16v
#define FACTOR_TYPE int
#define TAKE(op, at, factor)                                                   \
    key_16(LOAD(i16, at), KEY_TURN(op, 0x7fff, FLOAT16_TOP))
#define JOIN(op, a, b) JOIN_ORDER(i16, op, a, b)
#define GIVE(op, a, divisor) code_16(a, KEY_TURN(op, 0x7fff, FLOAT16_TOP))
#include "lib/kernels-vector-fold.h"

#define FOLD fold_order_bf16
#define ACCUMULATOR i16v
#define FACTOR_TYPE int
#define TAKE(op, at, factor)                                                   \
    key_16(LOAD(i16, at), KEY_TURN(op, 0x7fff, BFLOAT16_TOP))
#define JOIN(op, a, b) JOIN_ORDER(i16, op, a, b)
#define GIVE(op, a, divisor) code_16(a, KEY_TURN(op, 0x7fff, BFLOAT16_TOP))
#include "lib/kernels-vector-fold.h"

#define FOLD fold_order_e4m3
#define ACCUMULATOR i8v
#define FACTOR_TYPE int
#define TAKE(op, at, factor)                                                   \
    key_8(LOAD(i8, at), KEY_TURN(op, 0x7f, FLOAT8_E4M3_TOP))
#define JOIN(op, a, b) JOIN_ORDER(i8, op, a, b)
#define GIVE(op, a, divisor) code_8(a, KEY_TURN(op, 0x7f, FLOAT8_E4M3_TOP))
#include "lib/kernels-vector-fold.h"

#define FOLD fold_order_e5m2
#define ACCUMULATOR i8v
#define FACTOR_TYPE int
#define TAKE(op, at, factor)                                                   \
    key_8(LOAD(i8, at), KEY_TURN(op, 0x7f, FLOAT8_E5M2_TOP))
#define JOIN(op, a, b) JOIN_ORDER(i8, op, a, b)
#define GIVE(op, a, divisor) code_8(a, KEY_TURN(op, 0x7f, FLOAT8_E5M2_TOP))
#include "lib/kernels-vector-fold.h"

#define FLOAT_KERNELS(type, size, dtype, arithmetic, order)                    \
    KERNEL(type, size, dtype, sum, DSCOMM_SUM, arithmetic)                     \
    KERNEL(type, size, dtype, product, DSCOMM_PRODUCT, arithmetic)             \
    KERNEL(type, size, dtype, min, DSCOMM_MIN, order)                          \
    KERNEL(type, size, dtype, max, DSCOMM_MAX, order)                          \
    KERNEL(type, size, dtype, avg, DSCOMM_AVG, arithmetic)                     \
    KERNEL(type, size, dtype, premul_sum, DSCOMM_PREMUL_SUM, arithmetic)

FLOAT_KERNELS(float16, 2, DSCOMM_FLOAT16, fold_f16, fold_order_f16)
FLOAT_KERNELS(bfloat16, 2, DSCOMM_BFLOAT16, fold_bf16, fold_order_bf16)
FLOAT_KERNELS(float32, 4, DSCOMM_FLOAT32, fold_f32, fold_f32)
FLOAT_KERNELS(float64, 8, DSCOMM_FLOAT64, fold_f64, fold_f64)
FLOAT_KERNELS(float8_e4m3, 1, DSCOMM_FLOAT8_E4M3, fold_e4m3, fold_order_e4m3)
FLOAT_KERNELS(float8_e5m2, 1, DSCOMM_FLOAT8_E5M2, fold_e5m2, fold_order_e5m2)
