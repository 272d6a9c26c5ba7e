/* SPDX-License-Identifier: BSD-3-Clause */
/* Vector kernels for averages of integers. The quotient is truncated, as in C.
 * A quotient that is not an integer is at least 1 / divisor below the next one.
 * So it may be computed as a product with a reciprocal that is slightly too
 * large, if the error of the product is smaller than that. fold_begin() ensures
 * the limits. Bytes of a word are numbered from the least significant one. */

/* The number of bits of divisor - 1; the divisor is at least 2. */
ALWAYS_INLINE int bits_below(double divisor)
{
    return 32 - __builtin_clz((unsigned)divisor - 1);
}

/* 8 bits, computed in 16: even and odd bytes apart. Sums are below 2^14, so the
 * error of a 15-bit reciprocal is small enough. */

typedef struct {
    i16v even, odd;
} i16_pair_t;

typedef struct {
    int16_t factor, shift;
} divider_16_t;

ALWAYS_INLINE divider_16_t divider_16(double divisor)
{
    int shift = bits_below(divisor) - 1;
    int32_t factor = (1 << (15 + shift)) / (int32_t)divisor + 1;

    return (divider_16_t){(int16_t)factor, (int16_t)shift};
}

/* Rounds down. */
ALWAYS_INLINE i16v divide_16(i16v sum, divider_16_t by)
{
    return double_high_i16(sum, (i16v){0} + by.factor) >> by.shift;
}

ALWAYS_INLINE i16v divide_i16(i16v sum, divider_16_t by)
{
    return divide_16(sum, by) - (sum >> 15);
}

ALWAYS_INLINE i16_pair_t take_i8(i16v codes)
{
    return (i16_pair_t){codes << 8 >> 8, codes >> 8};
}

ALWAYS_INLINE i16_pair_t take_u8(u16v codes)
{
    return (i16_pair_t){(i16v)(codes & 0xff), (i16v)(codes >> 8)};
}

ALWAYS_INLINE i16_pair_t join_i16_pair(i16_pair_t a, i16_pair_t b)
{
    return (i16_pair_t){a.even + b.even, a.odd + b.odd};
}

ALWAYS_INLINE i16v give_i8(i16_pair_t sum, divider_16_t by)
{
    return (divide_i16(sum.even, by) & 0xff) | divide_i16(sum.odd, by) << 8;
}

ALWAYS_INLINE i16v give_u8(i16_pair_t sum, divider_16_t by)
{
    return divide_16(sum.even, by) | divide_16(sum.odd, by) << 8;
}

#define FOLD fold_mean_i8
#define ACCUMULATOR i16_pair_t
#define DIVISOR_TYPE divider_16_t
#define DIVISOR(op) divider_16(fold->factors[0])
#define TAKE(op, at, factor) take_i8(LOAD(i16, at))
#define JOIN(op, a, b) join_i16_pair(a, b)
#define GIVE(op, a, divisor) give_i8(a, divisor)
#include "lib/reduce/vector-fold.h"

#define FOLD fold_mean_u8
#define ACCUMULATOR i16_pair_t
#define DIVISOR_TYPE divider_16_t
#define DIVISOR(op) divider_16(fold->factors[0])
#define TAKE(op, at, factor) take_u8(LOAD(u16, at))
#define JOIN(op, a, b) join_i16_pair(a, b)
#define GIVE(op, a, divisor) give_u8(a, divisor)
#include "lib/reduce/vector-fold.h"

/* 16 bits, by division in float32, which holds sums of 24 bits. The quotient is
 * rounded, but never up to an integer; integer.h gives the reason. */

ALWAYS_INLINE i32v quotient(i32v sum, float divisor)
{
    f32v mean = __builtin_convertvector(sum, f32v) / divisor;

    return __builtin_convertvector(mean, i32v);
}

ALWAYS_INLINE i32_pair_t join_i32_pair(i32_pair_t a, i32_pair_t b)
{
    return (i32_pair_t){a.low + b.low, a.high + b.high};
}

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
#include "lib/reduce/vector-fold.h"

#define FOLD fold_mean_u16
#define ACCUMULATOR i32_pair_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) take_u16(LOAD(u32, at))
#define JOIN(op, a, b) join_i32_pair(a, b)
#define GIVE(op, a, divisor) give_16(a, divisor)
#include "lib/reduce/vector-fold.h"

/* 32 bits, computed in 64: lower and upper words apart; 2^31 is added to each
 * signed one. Sums are below 2^41. An or with the bits of 2^52 makes a sum the
 * low part of a double's mantissa: the double is 2^52 + sum. */

typedef struct {
    u64v low, high;
} u64_pair_t;

typedef struct {
    double zero, factor;
} divider_f64_t;

ALWAYS_INLINE divider_f64_t divider_f64(double divisor, double zero)
{
    return (divider_f64_t){zero + 0x1p52, 1 / divisor * (1 + 0x1p-42)};
}

ALWAYS_INLINE u64_pair_t take_words(u64v words)
{
    return (u64_pair_t){words & 0xffffffff, words >> 32};
}

ALWAYS_INLINE u64_pair_t join_u64_pair(u64_pair_t a, u64_pair_t b)
{
    return (u64_pair_t){a.low + b.low, a.high + b.high};
}

/* The result is in the lower word. */
ALWAYS_INLINE u64v divide_f64(u64v sum, divider_f64_t by)
{
    const u64v exponent = (u64v)((f64v){0} + 0x1p52);
    f64v value = (f64v)(sum | exponent) - by.zero;

    return (u64v)(trunc_f64(value * by.factor) + 0x1.8p52);
}

ALWAYS_INLINE u64v give_32(u64_pair_t sum, divider_f64_t by)
{
    return (divide_f64(sum.low, by) & 0xffffffff) | divide_f64(sum.high, by)
                                                        << 32;
}

#define FOLD fold_mean_i32
#define ACCUMULATOR u64_pair_t
#define DIVISOR_TYPE divider_f64_t
#define DIVISOR(op)                                                            \
    divider_f64(fold->factors[0], 0x1p31 * (double)fold->nsources)
#define TAKE(op, at, factor) take_words((u64v)(LOAD(u32, at) ^ SIGN_32))
#define JOIN(op, a, b) join_u64_pair(a, b)
#define GIVE(op, a, divisor) give_32(a, divisor)
#include "lib/reduce/vector-fold.h"

#define FOLD fold_mean_u32
#define ACCUMULATOR u64_pair_t
#define DIVISOR_TYPE divider_f64_t
#define DIVISOR(op) divider_f64(fold->factors[0], 0)
#define TAKE(op, at, factor) take_words(LOAD(u64, at))
#define JOIN(op, a, b) join_u64_pair(a, b)
#define GIVE(op, a, divisor) give_32(a, divisor)
#include "lib/reduce/vector-fold.h"

/* 64 bits. The reciprocal needs 65 bits; factor is the part below 2^64 (see
 * Granlund and Montgomery, Division by Invariant Integers using Multiplication,
 * 1994). */

typedef struct {
    uint64_t low, high; /* lower and upper word of the factor */
    uint64_t shift;
} divider_64_t;

ALWAYS_INLINE divider_64_t divider_64(double divisor)
{
    const uint64_t d = (uint64_t)divisor;
    int bits = bits_below(divisor);
    uint64_t rest = (UINT64_C(1) << bits) - d;
    uint64_t high = (rest << 32) / d, low = ((rest << 32) % d << 32) / d;
    uint64_t factor = (high << 32 | low) + 1;

    return (divider_64_t){factor & 0xffffffff, factor >> 32,
                          (uint64_t)bits - 1};
}

ALWAYS_INLINE u64v upper_product(u64v a, divider_64_t by)
{
    const u64v low = (u64v){0} + by.low, high = (u64v){0} + by.high;
    u64v above = a >> 32;
    u64v middle = multiply_low(above, low) + (multiply_low(a, low) >> 32);
    u64v rest = multiply_low(a, high) + (middle & 0xffffffff);

    return multiply_low(above, high) + (middle >> 32) + (rest >> 32);
}

ALWAYS_INLINE u64v divide_u64(u64v sum, divider_64_t by)
{
    u64v more = upper_product(sum, by);

    return (more + ((sum - more) >> 1)) >> by.shift;
}

ALWAYS_INLINE u64v divide_i64(u64v sum, divider_64_t by)
{
    u64v sign = (u64v)((i64v)sum < 0);

    return (divide_u64((sum ^ sign) - sign, by) ^ sign) - sign;
}

#define FOLD fold_mean_u64
#define ACCUMULATOR u64v
#define DIVISOR_TYPE divider_64_t
#define DIVISOR(op) divider_64(fold->factors[0])
#define TAKE(op, at, factor) LOAD(u64, at)
#define JOIN(op, a, b) ((a) + (b))
#define GIVE(op, a, divisor) divide_u64(a, divisor)
#include "lib/reduce/vector-fold.h"

#define FOLD fold_mean_i64
#define ACCUMULATOR u64v
#define DIVISOR_TYPE divider_64_t
#define DIVISOR(op) divider_64(fold->factors[0])
#define TAKE(op, at, factor) LOAD(u64, at)
#define JOIN(op, a, b) ((a) + (b))
#define GIVE(op, a, divisor) divide_i64(a, divisor)
#include "lib/reduce/vector-fold.h"

KERNEL(int8, 1, DSCOMM_INT8, avg, DSCOMM_AVG, fold_mean_i8)
KERNEL(uint8, 1, DSCOMM_UINT8, avg, DSCOMM_AVG, fold_mean_u8)
KERNEL(int16, 2, DSCOMM_INT16, avg, DSCOMM_AVG, fold_mean_i16)
KERNEL(uint16, 2, DSCOMM_UINT16, avg, DSCOMM_AVG, fold_mean_u16)
KERNEL(int32, 4, DSCOMM_INT32, avg, DSCOMM_AVG, fold_mean_i32)
KERNEL(uint32, 4, DSCOMM_UINT32, avg, DSCOMM_AVG, fold_mean_u32)
KERNEL(int64, 8, DSCOMM_INT64, avg, DSCOMM_AVG, fold_mean_i64)
KERNEL(uint64, 8, DSCOMM_UINT64, avg, DSCOMM_AVG, fold_mean_u64)
