/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums, averages and products of two sources of 8-bit floats for x86 processors
 * with AVX-512 VBMI, which looks up 64 bytes at a time in a table of 128. So 64
 * results are computed at once, with byte arithmetic alone.
 *
 * Magnitudes have consecutive codes across powers of two. So the code of a
 * result is that of the larger operand's power of two plus a small number that
 * a table gives. Denormals would break this rule. Therefore operands are first
 * translated to spread codes: the codes that they would have in a format
 * without denormals, unit * exponent + mantissa. */
#include "config.h"

#include "lib/reduce/bytes.h"
#include "lib/reduce/kernels.h"

#define NEXT_ROW dscomm_priv_kernels_avx512
#include "lib/reduce/call.h"

/* Tables for a format that has `unit` codes for each power of two. */

/* The spread code of a magnitude other than 0; for a normal one it is base +
 * code. */
#define SPREAD(unit, base, code)                                               \
    ((base) + ((code) >= (unit)       ? (code)                                 \
               : (code) >= (unit) / 2 ? 2 * (code) - (unit)                    \
               : (code) >= (unit) / 4 ? 4 * (code)-2 * (unit)                  \
                                      : 8 * (code)-3 * (unit)))

/* value / 2^bits, rounded to nearest even. */
#define NEAREST(value, bits)                                                   \
    (((value) + (1 << (bits)) / 2 - 1 + ((value) >> (bits)&1)) >> (bits))

/* Sums. The smaller operand's significand is aligned to the larger one's, with
 * three extra bits. The last extra bit is set if any lower bit was set (a
 * sticky bit). With them the exact sum or difference is rounded once, as if it
 * had been computed in float32. Half of a sum has an exponent that is lower by
 * one. */

/* The bases satisfy two conditions. The spread code of 0, which is 0, is at
 * least six powers of two below all others, so MOVED gives 0 for it. And the
 * spread codes by which denormals are looked up differ in their lower six bits.
 * The spread codes of infinity and NaN are as far above those of numbers. */
#define E4M3_BASE 96
#define E4M3_NAN 240
#define E5M2_BASE 32
#define E5M2_INFINITY 200
#define E5M2_NAN 232
#define SPREAD_E4M3(unit, code)                                                \
    ((code) == 0 ? 0 : (code) < 0x7f ? SPREAD(unit, E4M3_BASE, code) : E4M3_NAN)
#define SPREAD_E5M2(unit, code)                                                \
    ((code) == 0      ? 0                                                      \
     : (code) < 0x7c  ? SPREAD(unit, E5M2_BASE, code)                          \
     : (code) == 0x7c ? E5M2_INFINITY                                          \
                      : E5M2_NAN)

#define SIGNIFICAND(unit, code) (8 * ((unit) + (code) % (unit)))

/* The smaller operand's aligned significand. index: the last spread code with
 * the larger operand's exponent, minus the smaller operand's. Beyond five
 * powers of two the smaller operand has no effect. */
#define BITS(unit, index) ((index) / (unit))
#define WHOLE(unit, index) SIGNIFICAND(unit, (unit)-1 - (index) % (unit))
#define MOVED(unit, index)                                                     \
    (BITS(unit, index) > 5                                                     \
         ? 0                                                                   \
         : WHOLE(unit, index) >> BITS(unit, index) |                           \
               ((WHOLE(unit, index) & ((1 << BITS(unit, index)) - 1)) != 0))

/* The spread code of a sum minus the last spread code with the larger operand's
 * exponent, modulo 256. For a sum of 0 the distance is such that infinity minus
 * infinity becomes NaN, and nothing else does. */
#define DISTANCE(unit, sum)                                                    \
    (uint8_t)(1 - 2 * (unit) +                                                 \
              ((sum) >= 16 * (unit)  ? NEAREST(sum, 4) + (unit)                \
               : (sum) >= 8 * (unit) ? NEAREST(sum, 3)                         \
               : (sum) >= 4 * (unit) ? NEAREST(sum, 2) - (unit)                \
               : (sum) >= 2 * (unit) ? NEAREST(sum, 1) - 2 * (unit)            \
               : (sum) >= (unit)     ? (sum)-3 * (unit)                        \
               : (sum) >= (unit) / 2 ? 2 * (sum)-4 * (unit)                    \
               : (sum) >= (unit) / 4 ? 4 * (sum)-5 * (unit)                    \
               : (sum)               ? 8 * (sum)-6 * (unit)                    \
                                     : (unit) + 6))

/* The index of a denormal: the lower six bits of its spread code. A sum of
 * floats is a multiple of the smallest denormal, so the table has all of them.
 * Half of an odd multiple is rounded to even. */
#define AT(unit, base, code) [SPREAD(unit, base, code) & 63]

typedef struct {
    _Alignas(64) uint8_t spread[128];
    uint8_t distance[128], beyond[128]; /* beyond: for sums of 128 and more */
    uint8_t moved[64], significand[64]; /* indexed by the lower six bits */
    uint8_t small[64], small_half[64];
} sum_tables_t;

static const sum_tables_t e4m3_sums = {
    {OF_128(SPREAD_E4M3, 8, 0)},
    {OF_128(DISTANCE, 8, 0)},
    {OF_128(DISTANCE, 8, 128)},
    {OF_64(MOVED, 8, 0)},
    {OF_64(SIGNIFICAND, 8, 0)},
    {AT(8, E4M3_BASE, 1) = 1, AT(8, E4M3_BASE, 2) = 2, AT(8, E4M3_BASE, 3) = 3,
     AT(8, E4M3_BASE, 4) = 4, AT(8, E4M3_BASE, 5) = 5, AT(8, E4M3_BASE, 6) = 6,
     AT(8, E4M3_BASE, 7) = 7},
    {AT(8, E4M3_BASE, 2) = 1, AT(8, E4M3_BASE, 3) = 2, AT(8, E4M3_BASE, 4) = 2,
     AT(8, E4M3_BASE, 5) = 2, AT(8, E4M3_BASE, 6) = 3, AT(8, E4M3_BASE, 7) = 4,
     AT(8, E4M3_BASE, 8) = 4, AT(8, E4M3_BASE, 9) = 4, AT(8, E4M3_BASE, 10) = 5,
     AT(8, E4M3_BASE, 11) = 6, AT(8, E4M3_BASE, 12) = 6,
     AT(8, E4M3_BASE, 13) = 6, AT(8, E4M3_BASE, 14) = 7,
     AT(8, E4M3_BASE, 15) = 8},
};

/* Sums of significands are below 128, so beyond is not used. */
static const sum_tables_t e5m2_sums = {
    {OF_128(SPREAD_E5M2, 4, 0)},
    {OF_128(DISTANCE, 4, 0)},
    {0},
    {OF_64(MOVED, 4, 0)},
    {OF_64(SIGNIFICAND, 4, 0)},
    {AT(4, E5M2_BASE, 1) = 1, AT(4, E5M2_BASE, 2) = 2, AT(4, E5M2_BASE, 3) = 3},
    {AT(4, E5M2_BASE, 2) = 1, AT(4, E5M2_BASE, 3) = 2, AT(4, E5M2_BASE, 4) = 2,
     AT(4, E5M2_BASE, 5) = 2, AT(4, E5M2_BASE, 6) = 3, AT(4, E5M2_BASE, 7) = 4},
};

/* Looks up 64 bytes in a table of 64; the upper two bits of each index are
 * ignored. */
ALWAYS_INLINE __m512i look_up_64(const uint8_t *table, __m512i index)
{
    return _mm512_permutexvar_epi8(index, _mm512_load_si512(table));
}

/* Keeps a in a register: the compiler would otherwise load it at each use. */
ALWAYS_INLINE __m512i loaded(u8v a)
{
    __asm__("" : "+v"(a));
    return (__m512i)a;
}

/* The spread code of a sum or difference of two magnitudes. */
ALWAYS_INLINE __m512i add_spread(__m512i high, __m512i low, __mmask64 differ,
                                 const sum_tables_t *tables, int unit)
{
    __m512i last = _mm512_or_si512(high, all(unit - 1));
    __m512i index = _mm512_min_epu8(_mm512_sub_epi8(last, low), all(63));
    __m512i moved = look_up_64(tables->moved, index);
    __m512i whole = look_up_64(tables->significand, high);
    __m512i sum = _mm512_mask_sub_epi8(_mm512_add_epi8(whole, moved), differ,
                                       whole, moved);
    __m512i distance = look_up(tables->distance, sum);

    if (unit == 8)
        distance = _mm512_mask_blend_epi8(_mm512_movepi8_mask(sum), distance,
                                          look_up(tables->beyond, sum));
    return _mm512_add_epi8(last, distance);
}

/* Converts the spread code of a sum to the code of the sum, or of half of
 * it. */
ALWAYS_INLINE __m512i magnitude(int op, __m512i spread,
                                const sum_tables_t *tables, int unit, int base)
{
    const int half = op == DSCOMM_AVG;
    const int less = base + (half ? unit : 0);
    __mmask64 small = _mm512_cmplt_epu8_mask(spread, all(less + unit));

    return _mm512_mask_permutexvar_epi8(
        _mm512_sub_epi8(spread, all(less)), small, spread,
        _mm512_load_si512(half ? tables->small_half : tables->small));
}

/* Sums, or halves of sums. A spread code of nan or more gives NaN, which has no
 * sign; any other result is at most top. If the operands cancel out, the result
 * is +0. */
ALWAYS_INLINE u8v add(int op, u8v codes_a, u8v codes_b,
                      const sum_tables_t *tables, int unit, int base, int top,
                      int nan, int nan_code)
{
    __m512i a = loaded(codes_a), b = loaded(codes_b);
    __m512i spread_a = look_up(tables->spread, a);
    __m512i spread_b = look_up(tables->spread, b);
    __mmask64 less = _mm512_cmplt_epu8_mask(spread_a, spread_b);
    __m512i sign = _mm512_mask_blend_epi8(less, a, b);
    __m512i differ = _mm512_xor_si512(a, b);
    __m512i sum = add_spread(_mm512_max_epu8(spread_a, spread_b),
                             _mm512_min_epu8(spread_a, spread_b),
                             _mm512_movepi8_mask(differ), tables, unit);
    __m512i size = magnitude(op, sum, tables, unit, base);
    __mmask64 some = _mm512_cmpneq_epu8_mask(differ, all(0x80));
    __m512i code;

    if (top < 0x7f)
        size = _mm512_min_epu8(size, all(top));
    code = _mm512_maskz_add_epi8(some, size, _mm512_and_si512(sign, all(0x80)));
    return (u8v)_mm512_mask_mov_epi8(
        code, _mm512_cmpge_epu8_mask(sum, all(nan)), all(nan_code));
}

/* Products. Exponents are added, and a table has the rounded products of
 * significands for each level. Level 0 is for normal products; for denormal
 * ones the level is the number of bits by which the product lies below the
 * least normal one. */

/* An operand of 0 gets a code so small that its product with any number is
 * 0. */
#define OPERAND(unit, code) ((code) ? SPREAD(unit, 128, code) : 0)
#define OPERAND_NAN 0xff
#define OPERAND_INFINITY (128 + 0x7c)

#define BITS_OF(unit) ((unit) == 8 ? 3 : 2)
#define PRODUCT(unit, a, b) (((unit) + (a)) * ((unit) + (b)))
#define ROUNDED(unit, level, product)                                          \
    ((level) == 0 && (product) >= 2 * (unit) * (unit)                          \
         ? (unit) + NEAREST(product, BITS_OF(unit) + 1)                        \
         : NEAREST(product, BITS_OF(unit) + (level)))

/* Index: three bits of each operand, above them the lowest bit of the level. */
#define E4M3_AT(level, i)                                                      \
    ROUNDED(8, (level) + (i) / 64, PRODUCT(8, (i) % 8, (i) / 8 % 8))
/* Index: two bits of one operand, three of the level, two of the other
 * operand. */
#define E5M2_AT(unit, i)                                                       \
    ROUNDED(unit, (i) / 4 % 8, PRODUCT(unit, (i) % 4, (i) / 32))

static const _Alignas(64) uint8_t e4m3_operands[128] = {OF_128(OPERAND, 8, 0)};
static const _Alignas(64) uint8_t e5m2_operands[128] = {OF_128(OPERAND, 4, 0)};
static const _Alignas(64) uint8_t e4m3_products[3][128] = {
    {OF_128(E4M3_AT, 0, 0)}, {OF_128(E4M3_AT, 2, 0)}, {OF_128(E4M3_AT, 4, 0)}};
static const _Alignas(64) uint8_t e5m2_products[128] = {OF_128(E5M2_AT, 4, 0)};

/* The result of exponents() for the least normal product: its exponent is 1,
 * plus the bias. */
#define E4M3_LEAST (8 * (1 + 7) + 8)
#define E5M2_LEAST (4 * (1 + 15) + 4)

/* Takes each bit from a if mask has a 1 there, else from b. */
ALWAYS_INLINE __m512i either(__m512i a, __m512i b, int mask)
{
    return _mm512_ternarylogic_epi32(a, b, all(mask), 0xe4);
}

/* The sum of the exponents of two operands. Each operand is 128 too large, and
 * the result is unit too large, so that it does not become negative. */
ALWAYS_INLINE __m512i exponents(__m512i x, __m512i y, int unit)
{
    return _mm512_subs_epu8(_mm512_and_si512(x, all(256 - unit)),
                            _mm512_andnot_si512(y, all(256 - unit)));
}

ALWAYS_INLINE u8v multiply_e4m3(u8v codes_a, u8v codes_b)
{
    __m512i a = loaded(codes_a), b = loaded(codes_b);
    __m512i x = look_up(e4m3_operands, a), y = look_up(e4m3_operands, b);
    __m512i exponent = exponents(x, y, 8);
    __m512i level = _mm512_min_epu8(_mm512_subs_epu8(all(E4M3_LEAST), exponent),
                                    all(6 * 8));
    __m512i significands = either(x, _mm512_slli_epi16(y, 3), 7);
    __m512i index = either(significands, _mm512_slli_epi16(level, 3), 0x3f);
    __m512i code = look_up(e4m3_products[0], index);
    __mmask64 number =
        _mm512_cmplt_epu8_mask(_mm512_max_epu8(x, y), all(OPERAND_NAN));

    code = _mm512_mask_mov_epi8(code, _mm512_cmpge_epu8_mask(level, all(2 * 8)),
                                look_up(e4m3_products[1], index));
    code = _mm512_mask_mov_epi8(
        code, _mm512_cmpge_epu8_mask(level, all(4 * 8)),
        _mm512_maskz_mov_epi8(_mm512_cmplt_epu8_mask(level, all(6 * 8)),
                              look_up(e4m3_products[2], index)));
    code = _mm512_add_epi8(code, _mm512_subs_epu8(exponent, all(E4M3_LEAST)));
    number = _mm512_mask_cmplt_epu8_mask(number, code, all(0x7f));
    return (u8v)_mm512_mask_mov_epi8(all(0x7f), number,
                                     with_sign(code, _mm512_xor_si512(a, b)));
}

/* The product is NaN if an operand is NaN, or if they are infinity and 0. */
ALWAYS_INLINE u8v multiply_e5m2(u8v codes_a, u8v codes_b)
{
    __m512i a = loaded(codes_a), b = loaded(codes_b);
    __m512i x = look_up(e5m2_operands, a), y = look_up(e5m2_operands, b);
    __m512i most = _mm512_max_epu8(x, y), least = _mm512_min_epu8(x, y);
    __m512i exponent = exponents(x, y, 4);
    __m512i level = _mm512_min_epu8(_mm512_subs_epu8(all(E5M2_LEAST), exponent),
                                    all(5 * 4));
    __m512i significands = either(x, _mm512_slli_epi16(y, 5), 0x1f);
    __m512i index = either(level, significands, 0x1c);
    __m512i code = _mm512_add_epi8(look_up(e5m2_products, index),
                                   _mm512_subs_epu8(exponent, all(E5M2_LEAST)));
    __mmask64 infinite = _mm512_cmpge_epu8_mask(most, all(OPERAND_INFINITY));
    __mmask64 nan;

    code = _mm512_mask_mov_epi8(_mm512_min_epu8(code, all(0x7c)), infinite,
                                all(0x7c));
    most = _mm512_sub_epi8(most, _mm512_min_epu8(least, all(1)));
    nan = _mm512_cmpge_epu8_mask(most, all(OPERAND_INFINITY));
    return (u8v)_mm512_mask_mov_epi8(with_sign(code, _mm512_xor_si512(a, b)),
                                     nan, all(0x7e));
}

/* The kernels */

ALWAYS_INLINE u8v join_e4m3(int op, u8v a, u8v b)
{
    const int most = op == DSCOMM_AVG ? 8 : 0;

    if (op == DSCOMM_PRODUCT)
        return multiply_e4m3(a, b);
    return add(op, a, b, &e4m3_sums, 8, E4M3_BASE, 0x7f,
               E4M3_BASE + 0x7f + most, 0x7f);
}

ALWAYS_INLINE u8v join_e5m2(int op, u8v a, u8v b)
{
    if (op == DSCOMM_PRODUCT)
        return multiply_e5m2(a, b);
    return add(op, a, b, &e5m2_sums, 4, E5M2_BASE, 0x7c, E5M2_INFINITY + 5,
               0x7e);
}

#define FOLD fold_e4m3
#define ACCUMULATOR u8v
#define DIVISOR_TYPE int
#define DIVISOR(op) 2
#define TAKE(op, at, factor) LOAD(u8, at)
#define JOIN join_e4m3
#include "lib/reduce/vector-fold.h"

#define FOLD fold_e5m2
#define ACCUMULATOR u8v
#define DIVISOR_TYPE int
#define DIVISOR(op) 2
#define TAKE(op, at, factor) LOAD(u8, at)
#define JOIN join_e5m2
#include "lib/reduce/vector-fold.h"

/* More than two sources must be rounded once, after all were added, which takes
 * wider numbers; and so must quotients by any other divisor than 2. The next
 * row computes these. */
#define OF_TWO(type, dtype, name, op, function)                                \
    static void JOINED(type, _##name)(void *dest, const void *const *sources,  \
                                      size_t nsources, size_t count,           \
                                      const double *factors)                   \
    {                                                                          \
        const int is_ours = (op) != DSCOMM_AVG || factors[0] == 2;             \
        fold_t fold = {dest, sources, 2, 0, 0, factors, 0};                    \
                                                                               \
        if (nsources == 2 && is_ours &&                                        \
            fold_begin(dtype, op, 1, count, &fold) == 0)                       \
            function(op, &fold);                                               \
        else                                                                   \
            NEXT_ROW[dtype][op](dest, sources, nsources, count, factors);      \
    }

#define KERNELS(type, dtype, function)                                         \
    OF_TWO(type, dtype, sum, DSCOMM_SUM, function)                             \
    OF_TWO(type, dtype, product, DSCOMM_PRODUCT, function)                     \
    OF_TWO(type, dtype, avg, DSCOMM_AVG, function)

KERNELS(float8_e4m3, DSCOMM_FLOAT8_E4M3, fold_e4m3)
KERNELS(float8_e5m2, DSCOMM_FLOAT8_E5M2, fold_e5m2)

#define ROW(type)                                                              \
    {                                                                          \
        [DSCOMM_SUM] = type##_sum, [DSCOMM_PRODUCT] = type##_product,          \
        [DSCOMM_AVG] = type##_avg,                                             \
    }

const dscomm_reduce_fn
    dscomm_priv_kernels_vbmi[DSCOMM_DTYPE_COUNT][DSCOMM_OP_COUNT] = {
        [DSCOMM_FLOAT8_E4M3] = ROW(float8_e4m3),
        [DSCOMM_FLOAT8_E5M2] = ROW(float8_e5m2),
};
