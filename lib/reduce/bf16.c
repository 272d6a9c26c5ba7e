/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums and averages of many E4M3 sources for x86 processors with AVX-512 VBMI
 * and BF16. The instruction VDPBF16PS adds the products of two pairs of
 * bfloat16 to a float32; here the second factors are 1. How it rounds inexact
 * sums depends on the processor, but all sums of E4M3 values are exact in
 * float32. */
#include "config.h"

#include "lib/reduce/bytes.h"
#include "lib/reduce/kernels.h"

#define NEXT_ROW dscomm_priv_kernels_vbmi
#include "lib/reduce/call.h"

/* Largest number of sources. A magnitude is less than 2^18 units of 2^-9, so
 * the sum of 64 is at most 2^24 units, which float32 holds exactly. */
#define SOURCES_MAX 64

/* Magnitudes as bfloat16, as two tables of bytes. The value is 2^exponent * (1
 * + eighths / 8). */
#define BFLOAT16(exponent, eighths) ((127 + (exponent)) * 128 + (eighths)*16)
#define WIDE(code)                                                             \
    ((code) == 0      ? 0                                                      \
     : (code) == 1    ? BFLOAT16(-9, 0)                                        \
     : (code) < 4     ? BFLOAT16(-8, ((code)-2) * 4)                           \
     : (code) < 8     ? BFLOAT16(-7, ((code)-4) * 2)                           \
     : (code) == 0x7f ? 0x7fc0                                                 \
                      : BFLOAT16((code) / 8 - 7, (code) % 8))
#define BYTE(place, code) (WIDE(code) >> 8 * (place)&0xff)

static const _Alignas(64) uint8_t lower_bytes[128] = {OF_128(BYTE, 0, 0)};
static const _Alignas(64) uint8_t upper_bytes[128] = {OF_128(BYTE, 1, 0)};

/* 16-bit words made of bytes 0 to 7, and of bytes 8 to 15, of each group of 16
 * bytes. */
typedef struct {
    __m512i low, high;
} words_t;

/* Words of -0: adding it changes neither value nor sign. */
ALWAYS_INLINE words_t no_words(void)
{
    __m512i zeros = _mm512_set1_epi16((short)0x8000);

    return (words_t){zeros, zeros};
}

ALWAYS_INLINE words_t widen(const unsigned char *at)
{
    __m512i codes = _mm512_loadu_si512(at);
    __m512i lower = look_up(lower_bytes, codes);
    __m512i upper = with_sign(look_up(upper_bytes, codes), codes);

    return (words_t){_mm512_unpacklo_epi8(lower, upper),
                     _mm512_unpackhi_epi8(lower, upper)};
}

/* The sums of bytes 0 to 3, 4 to 7, and so on, of each group of 16. */
typedef struct {
    __m512 a, b, c, d;
} sums_t;

ALWAYS_INLINE __m512 add(__m512 sum, __m512i pairs)
{
    const __m512i ones = _mm512_set1_epi16(0x3f80);

    return _mm512_dpbf16_ps(sum, (__m512bh)pairs, (__m512bh)ones);
}

ALWAYS_INLINE sums_t add_two(sums_t sums, words_t x, words_t y)
{
    return (sums_t){add(sums.a, _mm512_unpacklo_epi16(x.low, y.low)),
                    add(sums.b, _mm512_unpackhi_epi16(x.low, y.low)),
                    add(sums.c, _mm512_unpacklo_epi16(x.high, y.high)),
                    add(sums.d, _mm512_unpackhi_epi16(x.high, y.high))};
}

/* Rounds a magnitude to E4M3's precision, and returns in the lowest byte its
 * code plus a constant. Adding 2^20 times the value's power of two makes a
 * float whose last bit is worth an eighth of that power, which is E4M3's last
 * bit; so the addition rounds. The last byte then counts eighths, and eight
 * times the exponent is added to it. A NaN gives a number above all codes. */
ALWAYS_INLINE __m512i rounded(__m512 value)
{
    const __m512i least = _mm512_set1_epi32((127 - 6) << 23);
    __m512i bits = _mm512_castps_si512(value);
    __m512i exponent = _mm512_max_epi32(
        _mm512_and_si512(bits, _mm512_set1_epi32(0x7f800000)), least);
    __m512 size = _mm512_castsi512_ps(
        _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)));
    __m512i sum = _mm512_castps_si512(_mm512_fmadd_ps(
        _mm512_castsi512_ps(exponent), _mm512_set1_ps(0x1p20f), size));

    return _mm512_add_epi32(sum, _mm512_srli_epi32(sum, 20));
}

/* Indices of byte number from of each word, in the order of the elements. */
#define PLACE(from, i) ((i) / 16 * 16 + (i) % 4 * 4 + (i) / 4 % 2 * 64 + (from))
static const _Alignas(64) uint8_t lowest[64] = {OF_64(PLACE, 0, 0)};
static const _Alignas(64) uint8_t uppermost[64] = {OF_64(PLACE, 3, 0)};

ALWAYS_INLINE __m512i bytes_of(__m512i a, __m512i b, __m512i c, __m512i d,
                               const uint8_t *places)
{
    __m512i index = _mm512_load_si512(places);

    return _mm512_mask_blend_epi64(0xaa, _mm512_permutex2var_epi8(a, index, b),
                                   _mm512_permutex2var_epi8(c, index, d));
}

#define BITS(x) _mm512_castps_si512(x)

/* Converts sums to codes. Values that are too large become NaN, which has no
 * sign. */
ALWAYS_INLINE u8v narrow(sums_t s)
{
    const int constant = ((127 + 20) * 8 - 6 * 8) & 0xff;
    __m512i sizes = bytes_of(rounded(s.a), rounded(s.b), rounded(s.c),
                             rounded(s.d), lowest);
    __m512i upper =
        bytes_of(BITS(s.a), BITS(s.b), BITS(s.c), BITS(s.d), uppermost);
    __m512i codes = _mm512_sub_epi8(sizes, all(constant));

    return (u8v)_mm512_mask_mov_epi8(with_sign(codes, upper),
                                     _mm512_cmpge_epu8_mask(codes, all(0x7f)),
                                     all(0x7f));
}

/* How sums become averages. Multiplying by the reciprocal is exact if the
 * divisor is a power of two, and faster. */
enum { AS_THEY_ARE, DIVIDED, MULTIPLIED };

ALWAYS_INLINE __m512 mean(int how, __m512 sum, float by)
{
    return how == DIVIDED      ? _mm512_div_ps(sum, _mm512_set1_ps(by))
           : how == MULTIPLIED ? _mm512_mul_ps(sum, _mm512_set1_ps(by))
                               : sum;
}

ALWAYS_INLINE u8v fold_at(int how, const fold_t *fold, size_t at, float by)
{
    const size_t last = fold->nsources - 1;
    const __m512 zeros = _mm512_set1_ps(-0.0f);
    sums_t sums = {zeros, zeros, zeros, zeros};

    for (size_t s = 0; s < last; s += 2)
        sums = add_two(sums, widen(SOURCE(s) + at), widen(SOURCE(s + 1) + at));
    if (last % 2 == 0)
        sums = add_two(sums, widen(SOURCE(last) + at), no_words());
    return narrow((sums_t){mean(how, sums.a, by), mean(how, sums.b, by),
                           mean(how, sums.c, by), mean(how, sums.d, by)});
}

/* The vectors at both ends are handled as in vector-fold.h. */
ALWAYS_INLINE void fold_all(int how, const fold_t *fold, float by)
{
    const size_t end = fold->bytes - VECTOR_BYTES;
    u8v first = fold_at(how, fold, 0, by), last = fold_at(how, fold, end, by);

    for (size_t at = fold->first; at < end; at += VECTOR_BYTES)
        put(fold->dest + at, fold_at(how, fold, at, by), fold->past);
    if (fold->past)
        stores_done();
    put(fold->dest, first, 0);
    put(fold->dest + end, last, 0);
}

static int is_power_of_two(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits << 12 == 0;
}

static void float8_e4m3_sum(void *dest, const void *const *sources,
                            size_t nsources, size_t count,
                            const double *factors)
{
    fold_t fold = {dest, sources, nsources, 0, 0, factors, 0};

    if (nsources > 2 && nsources <= SOURCES_MAX &&
        fold_begin(DSCOMM_FLOAT8_E4M3, DSCOMM_SUM, 1, count, &fold) == 0)
        fold_all(AS_THEY_ARE, &fold, 1);
    else
        NEXT_ROW[DSCOMM_FLOAT8_E4M3][DSCOMM_SUM](dest, sources, nsources, count,
                                                 factors);
}

/* The divisor must be at least 1: quotients by a smaller one might exceed the
 * range of rounded(). */
static void float8_e4m3_avg(void *dest, const void *const *sources,
                            size_t nsources, size_t count,
                            const double *factors)
{
    const double divisor = factors[0];
    fold_t fold = {dest, sources, nsources, 0, 0, factors, 0};

    if (nsources <= 2 || nsources > SOURCES_MAX || !(divisor >= 1) ||
        fold_begin(DSCOMM_FLOAT8_E4M3, DSCOMM_AVG, 1, count, &fold) < 0)
        NEXT_ROW[DSCOMM_FLOAT8_E4M3][DSCOMM_AVG](dest, sources, nsources, count,
                                                 factors);
    else if (is_power_of_two(divisor) && divisor < 0x1p60)
        fold_all(MULTIPLIED, &fold, (float)(1 / divisor));
    else
        fold_all(DIVIDED, &fold, (float)divisor);
}

const dscomm_reduce_fn
    dscomm_priv_kernels_bf16[DSCOMM_DTYPE_COUNT][DSCOMM_OP_COUNT] = {
        [DSCOMM_FLOAT8_E4M3] =
            {[DSCOMM_SUM] = float8_e4m3_sum, [DSCOMM_AVG] = float8_e4m3_avg},
};
