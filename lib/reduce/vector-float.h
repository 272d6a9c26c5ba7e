/* SPDX-License-Identifier: BSD-3-Clause */
/* Vector kernels for floats. Floats of 16 and 8 bits are added and multiplied
 * in float32; minima and maxima compare their codes, as in minifloat.h. */

/* float32 and float64 */

#define TAKE_REAL(x, op, at, factor)                                           \
    ((op) == DSCOMM_PREMUL_SUM ? LOAD(x, at) * (factor) : LOAD(x, at))
#define JOIN_REAL(x, op, a, b)                                                 \
    ((op) == DSCOMM_PRODUCT ? (a) * (b)                                        \
     : (op) == DSCOMM_MIN   ? min_##x(a, b)                                    \
     : (op) == DSCOMM_MAX   ? max_##x(a, b)                                    \
                            : (a) + (b))
#define GIVE_REAL(x, op, a, divisor)                                           \
    one_nan_##x((op) == DSCOMM_AVG ? (a) / (divisor) : (a))

/* See c.c. */
ALWAYS_INLINE f32v one_nan_f32(f32v a)
{
    u32v number = (u32v)(a == a);

    return (f32v)(((u32v)a & number) | (0x7fc00000u & ~number));
}

ALWAYS_INLINE f64v one_nan_f64(f64v a)
{
    u64v number = (u64v)(a == a);

    return (f64v)(((u64v)a & number) | (0x7ff8000000000000u & ~number));
}

#define FOLD fold_f32
#define ACCUMULATOR f32v
#define FACTOR_TYPE float
#define TAKE(op, at, factor) TAKE_REAL(f32, op, at, factor)
#define JOIN(op, a, b) JOIN_REAL(f32, op, a, b)
#define GIVE(op, a, divisor) GIVE_REAL(f32, op, a, divisor)
#include "lib/reduce/vector-fold.h"

#define FOLD fold_f64
#define ACCUMULATOR f64v
#define FACTOR_TYPE double
#define TAKE(op, at, factor) TAKE_REAL(f64, op, at, factor)
#define JOIN(op, a, b) JOIN_REAL(f64, op, a, b)
#define GIVE(op, a, divisor) GIVE_REAL(f64, op, a, divisor)
#include "lib/reduce/vector-fold.h"

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

/* Replaces codes above top, which are NaNs, by the one NaN. */

ALWAYS_INLINE u16v one_nan_16(u16v codes, int16_t top, uint16_t nan)
{
    u16v is_nan = (u16v)((i16v)(codes & 0x7fff) > top);

    return (codes & ~is_nan) | (nan & is_nan);
}

ALWAYS_INLINE u8v one_nan_8(u8v codes, int8_t top, uint8_t nan)
{
    u8v is_nan = (u8v)((i8v)(codes & 0x7f) > top);

    return (codes & ~is_nan) | (nan & is_nan);
}

#define FOLD fold_f16
#define ACCUMULATOR f32_pair_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) scale_pair(op, load_f16(at), factor)
#define JOIN join_pair
#define GIVE(op, a, divisor)                                                   \
    one_nan_16(round_f16(mean_pair(op, a, divisor)), FLOAT16_TOP, 0x7e00)
#include "lib/reduce/vector-fold.h"

/* bfloat16: low and high halves of words. The lower half of a NaN is always
 * zero: the sources have none there, and fold_begin() refuses factors that are
 * NaN. So rounding never turns a NaN into another value. */

ALWAYS_INLINE f32_pair_t widen_bf16(u32v codes)
{
    return (f32_pair_t){(f32v)(codes << 16), (f32v)(codes & 0xffff0000u)};
}

/* The code is in the upper half; the lower half is undefined. */
ALWAYS_INLINE u32v rounded_bf16(f32v value)
{
    u32v bits = (u32v)value;

    return bits + 0x7fff + (bits >> 16 & 1);
}

ALWAYS_INLINE u32v round_bf16(f32_pair_t values)
{
    return upper_halves(rounded_bf16(values.low), rounded_bf16(values.high));
}

#define FOLD fold_bf16
#define ACCUMULATOR f32_pair_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) scale_pair(op, widen_bf16(LOAD(u32, at)), factor)
#define JOIN join_pair
#define GIVE(op, a, divisor)                                                   \
    one_nan_16((u16v)round_bf16(mean_pair(op, a, divisor)), BFLOAT16_TOP,      \
               0x7fc0)
#include "lib/reduce/vector-fold.h"

/* 8 bits: even and odd bytes, each moved to the upper half of a 16-bit word.
 * There an E5M2 code is a float16. An E4M3 code, moved down by one bit, is the
 * float16 of 2^-8 times its value. */

ALWAYS_INLINE f32_quad_t widen_e5m2(u16v codes)
{
    return (f32_quad_t){widen_f16(codes << 8), widen_f16(codes & 0xff00)};
}

/* True if values may stay scaled by 2^-8. Sums may; products would be scaled
 * twice. */
ALWAYS_INLINE int is_small(int op)
{
    return op == DSCOMM_SUM || op == DSCOMM_AVG;
}

/* An E4M3 accumulator also has the largest magnitude of all sources, because
 * the conversion reads a NaN as the number 480. */
typedef struct {
    f32_quad_t sum;
    u8v most;
} e4m3_quad_t;

ALWAYS_INLINE f32_pair_t widen_upper_e4m3(int op, u16v upper)
{
    f32_pair_t small = widen_f16((u16v)((i16v)upper >> 1) & 0xbf80);

    if (is_small(op))
        return small;
    return (f32_pair_t){small.low * 0x1p8f, small.high * 0x1p8f};
}

ALWAYS_INLINE e4m3_quad_t take_e4m3(int op, u16v codes, float factor)
{
    f32_quad_t values = {widen_upper_e4m3(op, codes << 8),
                         widen_upper_e4m3(op, codes)};

    return (e4m3_quad_t){scale_quad(op, values, factor), (u8v)(codes & 0x7f7f)};
}

ALWAYS_INLINE e4m3_quad_t join_e4m3(int op, e4m3_quad_t a, e4m3_quad_t b)
{
    return (e4m3_quad_t){join_quad(op, a.sum, b.sum), max_u8(a.most, b.most)};
}

/* Converts to float16 and rounds to odd: truncates, and sets the last bit if
 * anything was cut off. Rounding such a code once more, to at least seven bits
 * fewer, gives the same result as rounding the value itself. */
ALWAYS_INLINE u16v odd_f16(f32_pair_t values)
{
    u16v codes = chop_f16(values);

    return codes | differs(widen_f16(codes), values);
}

/* two: there are only two sources, and truncation is enough. The bits that were
 * cut off would matter only if the rest lay exactly halfway between two codes,
 * and for sums and products of two codes it never does. A test checks all
 * pairs. */
ALWAYS_INLINE u16v cut_f16(f32_pair_t values, int two)
{
    return two ? chop_f16(values) : odd_f16(values);
}

/* The code is in the upper byte; the lower byte is undefined. The mantissa of a
 * NaN ends with so many zeros that rounding cannot change it, as with
 * bfloat16. */
ALWAYS_INLINE u16v rounded_e5m2(f32_pair_t values, int two)
{
    u16v codes = cut_f16(values, two);

    return codes + 0x7f + (codes >> 8 & 1);
}

ALWAYS_INLINE u16v round_e5m2(int op, f32_quad_t sum, float divisor, int two)
{
    u16v even = rounded_e5m2(mean_pair(op, sum.even, divisor), two);
    u16v odd = rounded_e5m2(mean_pair(op, sum.odd, divisor), two);

    return even >> 8 | (odd & 0xff00);
}

/* The sign is in the upper byte, the magnitude in the lower one. */
ALWAYS_INLINE u16v rounded_e4m3(int op, f32_pair_t values, int two)
{
    const float scale = is_small(op) ? 1 : 0x1p-8f;
    u16v codes =
        cut_f16((f32_pair_t){values.low * scale, values.high * scale}, two);
    u16v size = codes & 0x7fff;

    size = (size + 0x3f + (size >> 7 & 1)) >> 7;
    return min_u16(size, (u16v){0} + 0x7f) | (codes & 0x8000);
}

ALWAYS_INLINE u8v give_e4m3(int op, e4m3_quad_t a, float divisor, int two)
{
    u16v even = rounded_e4m3(op, mean_pair(op, a.sum.even, divisor), two);
    u16v odd = rounded_e4m3(op, mean_pair(op, a.sum.odd, divisor), two);
    u8v codes = (u8v)(((even | even >> 8) & 0xff) | odd << 8 | (odd & 0x8000));
    u8v nan = (u8v)((i8v)max_u8(codes & 0x7f, a.most) > FLOAT8_E4M3_TOP);

    return (codes & ~nan) | (0x7f & nan);
}

#define FOLD fold_e4m3
#define ACCUMULATOR e4m3_quad_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) take_e4m3(op, LOAD(u16, at), factor)
#define JOIN join_e4m3
#define GIVE(op, a, divisor) give_e4m3(op, a, divisor, 0)
#include "lib/reduce/vector-fold.h"

#define FOLD fold_e4m3_two
#define ACCUMULATOR e4m3_quad_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) take_e4m3(op, LOAD(u16, at), factor)
#define JOIN join_e4m3
#define GIVE(op, a, divisor) give_e4m3(op, a, divisor, 1)
#include "lib/reduce/vector-fold.h"

#define FOLD fold_e5m2
#define ACCUMULATOR f32_quad_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) scale_quad(op, widen_e5m2(LOAD(u16, at)), factor)
#define JOIN join_quad
#define GIVE(op, a, divisor)                                                   \
    one_nan_8((u8v)round_e5m2(op, a, divisor, 0), FLOAT8_E5M2_TOP, 0x7e)
#include "lib/reduce/vector-fold.h"

#define FOLD fold_e5m2_two
#define ACCUMULATOR f32_quad_t
#define FACTOR_TYPE float
#define TAKE(op, at, factor) scale_quad(op, widen_e5m2(LOAD(u16, at)), factor)
#define JOIN join_quad
#define GIVE(op, a, divisor)                                                   \
    one_nan_8((u8v)round_e5m2(op, a, divisor, 1), FLOAT8_E5M2_TOP, 0x7e)
#include "lib/reduce/vector-fold.h"

/* Makes the number of sources a constant if there are two. */
#define FOLD_TWO(type)                                                         \
    ALWAYS_INLINE void JOINED(fold_any_, type)(int op, const fold_t *fold)     \
    {                                                                          \
        fold_t two = *fold;                                                    \
                                                                               \
        two.nsources = 2;                                                      \
        if (fold->nsources == 2 && (op == DSCOMM_SUM || op == DSCOMM_PRODUCT)) \
            JOINED(JOINED(fold_, type), _two)(op, &two);                       \
        else                                                                   \
            JOINED(fold_, type)(op, fold);                                     \
    }

FOLD_TWO(e4m3)
FOLD_TWO(e5m2)

/* Order: keys sort as signed integers, and are shifted so that a NaN wins; see
 * minifloat.h. */

#define KEY_TURN(op, magnitude, top)                                           \
    ((op) == DSCOMM_MIN ? (magnitude) - (top) : (top) - (magnitude))

/* Inverts the magnitude of negative codes. Applied twice, it gives the code
 * again. */
#ifndef MIRROR_16
#define MIRROR_16(code) ((code) ^ (((code) >> 15) & 0x7fff))
#endif

ALWAYS_INLINE i16v key_16(i16v code, int turn)
{
    return (i16v)((u16v)MIRROR_16(code) + (uint16_t)turn);
}

ALWAYS_INLINE i16v code_16(i16v key, int turn)
{
    i16v code = (i16v)((u16v)key - (uint16_t)turn);

    return MIRROR_16(code);
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
#define TAKE(op, at, factor)                                                   \
    key_16(LOAD(i16, at), KEY_TURN(op, 0x7fff, FLOAT16_TOP))
#define JOIN(op, a, b) JOIN_ORDER(i16, op, a, b)
#define GIVE(op, a, divisor) code_16(a, KEY_TURN(op, 0x7fff, FLOAT16_TOP))
#include "lib/reduce/vector-fold.h"

#define FOLD fold_order_bf16
#define ACCUMULATOR i16v
#define TAKE(op, at, factor)                                                   \
    key_16(LOAD(i16, at), KEY_TURN(op, 0x7fff, BFLOAT16_TOP))
#define JOIN(op, a, b) JOIN_ORDER(i16, op, a, b)
#define GIVE(op, a, divisor) code_16(a, KEY_TURN(op, 0x7fff, BFLOAT16_TOP))
#include "lib/reduce/vector-fold.h"

#define FOLD fold_order_e4m3
#define ACCUMULATOR i8v
#define TAKE(op, at, factor)                                                   \
    key_8(LOAD(i8, at), KEY_TURN(op, 0x7f, FLOAT8_E4M3_TOP))
#define JOIN(op, a, b) JOIN_ORDER(i8, op, a, b)
#define GIVE(op, a, divisor) code_8(a, KEY_TURN(op, 0x7f, FLOAT8_E4M3_TOP))
#include "lib/reduce/vector-fold.h"

#define FOLD fold_order_e5m2
#define ACCUMULATOR i8v
#define TAKE(op, at, factor)                                                   \
    key_8(LOAD(i8, at), KEY_TURN(op, 0x7f, FLOAT8_E5M2_TOP))
#define JOIN(op, a, b) JOIN_ORDER(i8, op, a, b)
#define GIVE(op, a, divisor) code_8(a, KEY_TURN(op, 0x7f, FLOAT8_E5M2_TOP))
#include "lib/reduce/vector-fold.h"

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
FLOAT_KERNELS(float8_e4m3, 1, DSCOMM_FLOAT8_E4M3, fold_any_e4m3,
              fold_order_e4m3)
FLOAT_KERNELS(float8_e5m2, 1, DSCOMM_FLOAT8_E5M2, fold_any_e5m2,
              fold_order_e5m2)
