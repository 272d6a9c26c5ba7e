/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of two sources of 8-bit floats for x86 processors with AVX-512 VBMI,
 * which looks up 64 bytes at a time in a table of 128: 64 sums need no wider
 * elements, and no arithmetic but that of bytes.
 *
 * The smaller operand's significand is moved to where the larger one's is, with
 * three more bits, of which the last one is set where any bit behind it was.
 * That is enough to round the exact sum or difference once, and an exact one is
 * what float32 rounds to as well. As codes are consecutive from one power of
 * two to the next, a code is the larger operand's exponent and what a table
 * makes of the sum. */
#include "config.h"

#include "lib/kernels.h"

#include <immintrin.h>

#define VECTOR_BYTES 64
#include "lib/vector.h"

ALWAYS_INLINE void store_past(void *dest, u8v bytes)
{
    _mm512_stream_si512(dest, (__m512i)bytes);
}

ALWAYS_INLINE void stores_done(void)
{
    _mm_sfence();
}

#define NEXT_ROW dscomm_priv_kernels_avx512
#include "lib/kernels-call.h"

/* Tables, for a format with unit codes from one power of two to the next. */

#define OF_4(f, unit, i)                                                       \
    f(unit, i), f(unit, (i) + 1), f(unit, (i) + 2), f(unit, (i) + 3)
#define OF_16(f, unit, i)                                                      \
    OF_4(f, unit, i), OF_4(f, unit, (i) + 4), OF_4(f, unit, (i) + 8),          \
        OF_4(f, unit, (i) + 12)
#define OF_64(f, unit, i)                                                      \
    OF_16(f, unit, i), OF_16(f, unit, (i) + 16), OF_16(f, unit, (i) + 32),     \
        OF_16(f, unit, (i) + 48)
#define TABLE(f, unit, i)                                                      \
    {                                                                          \
        OF_64(f, unit, i), OF_64(f, unit, (i) + 64)                            \
    }

/* Of a magnitude; three more bits follow. */
#define SIGNIFICAND(unit, code)                                                \
    (8 * ((code) < (unit) ? (code) : (unit) + (code) % (unit)))

/* The last bit stands for all that are moved out. */
#define MOVED(value, by)                                                       \
    ((by) > 7                                                                  \
         ? (value) != 0                                                        \
         : (value) >> ((by)&7) | (((value) & ((1 << ((by)&7)) - 1)) != 0))

/* The smaller operand's, by the larger one's exponent (in codes) less its code:
 * of a normal one, and of a denormal one. */
#define FROM_END(unit, index) (((index) + (unit)-1) % 128)
#define REST(unit, index) ((unit)-1 - FROM_END(unit, index) % (unit))
#define NORMAL(unit, index)                                                    \
    MOVED(8 * ((unit) + REST(unit, index)), FROM_END(unit, index) / (unit))
#define DENORMAL(unit, index)                                                  \
    (FROM_END(unit, index) < (unit)                                            \
         ? 0                                                                   \
         : MOVED(8 * REST(unit, index), FROM_END(unit, index) / (unit)-1))

/* A sum's distance in codes from the larger operand's exponent, and two units
 * more, so that with it none is negative. Denormal results are counted as if
 * there were smaller exponents. */
#define NEAREST(sum, bits)                                                     \
    (((sum) + (1 << (bits)) / 2 - 1 + ((sum) >> (bits)&1)) >> (bits))
#define DISTANCE(unit, sum)                                                    \
    (uint8_t)((sum) >= 16 * (unit)  ? NEAREST(sum, 4) + 2 * (unit)             \
              : (sum) >= 8 * (unit) ? NEAREST(sum, 3) + (unit)                 \
              : (sum) >= 4 * (unit) ? NEAREST(sum, 2)                          \
              : (sum) >= 2 * (unit) ? NEAREST(sum, 1) - (unit)                 \
              : (sum) >= (unit)     ? (sum)-2 * (unit)                         \
              : (sum) >= (unit) / 2 ? 2 * (sum)-3 * (unit)                     \
              : (sum) >= (unit) / 4 ? 4 * (sum)-4 * (unit)                     \
              : (sum)               ? 8 * (sum)-5 * (unit)                     \
                                    : 2 * (unit))

/* NaN of E4M3, and infinity of E5M2, have one with which the sum is out of
 * range, whatever the other operand is. */
typedef struct {
    _Alignas(64) uint8_t significand[128];
    uint8_t normal[128], denormal[128];
    uint8_t distance[128], beyond[128]; /* beyond: of sums from 128 on */
    uint8_t denormal_code[64]; /* by code and two units */
} tables_t;

#define SIGNIFICAND_E4M3(unit, code)                                           \
    ((code) == 0x7f ? 255 : SIGNIFICAND(unit, code))

static const tables_t e4m3_tables = {
    TABLE(SIGNIFICAND_E4M3, 8, 0),
    TABLE(NORMAL, 8, 0),
    TABLE(DENORMAL, 8, 0),
    TABLE(DISTANCE, 8, 0),
    TABLE(DISTANCE, 8, 128),
    {[0] = 1, [8] = 2, [12] = 3, [16] = 4, [18] = 5, [20] = 6, [22] = 7},
};

/* Whose sums are less than 128. */
#define SIGNIFICAND_E5M2(unit, code)                                           \
    ((code) == 0x7c ? 64 : SIGNIFICAND(unit, code))

static const tables_t e5m2_tables = {
    TABLE(SIGNIFICAND_E5M2, 4, 0),
    TABLE(NORMAL, 4, 0),
    TABLE(DENORMAL, 4, 0),
    TABLE(DISTANCE, 4, 0),
    {0},
    {[4] = 1, [8] = 2, [10] = 3},
};

ALWAYS_INLINE __m512i all(int byte)
{
    return _mm512_set1_epi8((char)byte);
}

/* The index's upper bit is ignored. */
ALWAYS_INLINE __m512i look_up(const uint8_t *table, __m512i index)
{
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), index,
                                    _mm512_load_si512(table + 64));
}

/* The magnitudes of two operands, and what is made of them. */
typedef struct {
    __m512i high, low; /* the larger one's and the other's */
    __m512i sign; /* in the upper bits: of the larger one */
    __mmask64 differ; /* in sign */
    __mmask64 some; /* is left of their sum or difference */
    __m512i code; /* and two units */
} pair_t;

ALWAYS_INLINE pair_t order(__m512i a, __m512i b)
{
    __m512i size_a = _mm512_and_si512(a, all(0x7f));
    __m512i size_b = _mm512_and_si512(b, all(0x7f));
    __mmask64 less = _mm512_cmplt_epu8_mask(size_a, size_b);

    return (pair_t){
        .high = _mm512_max_epu8(size_a, size_b),
        .low = _mm512_min_epu8(size_a, size_b),
        .sign = _mm512_mask_blend_epi8(less, a, b),
        .differ = _mm512_movepi8_mask(_mm512_xor_si512(a, b)),
    };
}

ALWAYS_INLINE void add(pair_t *pair, const tables_t *tables, int unit)
{
    __m512i exponent = _mm512_max_epu8(
        _mm512_and_si512(pair->high, all(0x80 - unit)), all(unit));
    __m512i index = _mm512_sub_epi8(exponent, pair->low);
    __mmask64 denormal = _mm512_cmplt_epu8_mask(pair->low, all(unit));
    __m512i moved =
        _mm512_mask_blend_epi8(denormal, look_up(tables->normal, index),
                               look_up(tables->denormal, index));
    __m512i high = look_up(tables->significand, pair->high);
    __m512i sum = _mm512_mask_sub_epi8(_mm512_adds_epu8(high, moved),
                                       pair->differ, high, moved);
    __m512i distance = look_up(tables->distance, sum);

    if (unit == 8)
        distance = _mm512_mask_blend_epi8(_mm512_movepi8_mask(sum), distance,
                                          look_up(tables->beyond, sum));
    pair->some = _mm512_test_epi8_mask(sum, sum);
    pair->code = _mm512_add_epi8(exponent, distance);
}

/* The sum's magnitude; one that is out of range is what it is. */
ALWAYS_INLINE __m512i magnitude(const pair_t *pair, const tables_t *tables,
                                int unit)
{
    __mmask64 denormal = _mm512_cmplt_epu8_mask(pair->code, all(3 * unit));
    __m512i code = _mm512_maskz_sub_epi8(pair->some, pair->code, all(2 * unit));

    return _mm512_mask_permutexvar_epi8(
        code, denormal, pair->code, _mm512_load_si512(tables->denormal_code));
}

/* A difference of nothing is +0, and a NaN has no sign. */
ALWAYS_INLINE u8v with_sign(const pair_t *pair, __m512i code, __mmask64 nan)
{
    return (u8v)_mm512_mask_add_epi8(code, (pair->some | ~pair->differ) & ~nan,
                                     code,
                                     _mm512_and_si512(pair->sign, all(0x80)));
}

ALWAYS_INLINE u8v add_e4m3(u8v a, u8v b)
{
    pair_t pair = order((__m512i)a, (__m512i)b);
    __mmask64 nan;
    __m512i code;

    add(&pair, &e4m3_tables, 8);
    nan = _mm512_cmpge_epu8_mask(pair.code, all(0x7f + 2 * 8));
    code = magnitude(&pair, &e4m3_tables, 8);
    return with_sign(&pair, _mm512_mask_mov_epi8(code, nan, all(0x7f)), nan);
}

/* NaN is what is made of a NaN, and of infinities of both signs. */
ALWAYS_INLINE u8v add_e5m2(u8v a, u8v b)
{
    const __m512i infinity = all(0x7c);
    pair_t pair = order((__m512i)a, (__m512i)b);
    __mmask64 infinite,
        nan = _mm512_cmpgt_epu8_mask(pair.high, infinity) |
              _mm512_mask_cmpeq_epi8_mask(pair.differ, pair.low, infinity);
    __m512i code;

    add(&pair, &e5m2_tables, 4);
    infinite = _mm512_cmpge_epu8_mask(pair.code, all(0x7c + 2 * 4));
    code = magnitude(&pair, &e5m2_tables, 4);
    code = _mm512_mask_mov_epi8(code, infinite, infinity);
    return with_sign(&pair, _mm512_mask_mov_epi8(code, nan, all(0x7e)), nan);
}

#define FOLD fold_e4m3
#define ACCUMULATOR u8v
#define FACTOR_TYPE int
#define TAKE(op, at, factor) LOAD(u8, at)
#define JOIN(op, a, b) add_e4m3(a, b)
#define GIVE GIVE_AS_IS
#include "lib/kernels-vector-fold.h"

#define FOLD fold_e5m2
#define ACCUMULATOR u8v
#define FACTOR_TYPE int
#define TAKE(op, at, factor) LOAD(u8, at)
#define JOIN(op, a, b) add_e5m2(a, b)
#define GIVE GIVE_AS_IS
#include "lib/kernels-vector-fold.h"

/* More sources are rounded once, which takes wider numbers. */
#define SUM_OF_TWO(type, dtype, function)                                      \
    static void JOINED(type, _sum)(void *dest, const void *const *sources,     \
                                   size_t nsources, size_t count,              \
                                   const double *factors)                      \
    {                                                                          \
        fold_t fold = {dest, sources, 2, 0, 0, factors, 0};                    \
                                                                               \
        if (nsources == 2 && begin(dtype, DSCOMM_SUM, 1, count, &fold) == 0)   \
            function(DSCOMM_SUM, &fold);                                       \
        else                                                                   \
            NEXT_ROW[dtype][DSCOMM_SUM](dest, sources, nsources, count,        \
                                        factors);                              \
    }

SUM_OF_TWO(float8_e4m3, DSCOMM_FLOAT8_E4M3, fold_e4m3)
SUM_OF_TWO(float8_e5m2, DSCOMM_FLOAT8_E5M2, fold_e5m2)

const dscomm_reduce_fn
    dscomm_priv_kernels_vbmi[DSCOMM_DTYPE_COUNT][DSCOMM_OP_COUNT] = {
        [DSCOMM_FLOAT8_E4M3] = {[DSCOMM_SUM] = float8_e4m3_sum},
        [DSCOMM_FLOAT8_E5M2] = {[DSCOMM_SUM] = float8_e5m2_sum},
};
