/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs that every rank can compute for every other rank, and the exact
 * results of reducing them. Integers are from the whole range, and are reduced
 * modulo 2^bits. Floating-point inputs are small integers, so that float32 sums
 * are exact; the only rounding is the final one, which is done here bit by
 * bit. */
#include "config.h"

#include "tests/backends/conform.h"

#include <math.h>
#include <string.h>

uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Returns where in bits the lowest element bytes begin. */
static size_t low_bytes(size_t element)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return sizeof(uint64_t) - element;
#else
    (void)element;
    return 0;
#endif
}

void pattern_bits_put(void *dest, size_t element, uint64_t bits)
{
    memcpy(dest, (const char *)&bits + low_bytes(element), element);
}

uint64_t pattern_bits_get(const void *from, size_t element)
{
    uint64_t bits = 0;

    memcpy((char *)&bits + low_bytes(element), from, element);
    return bits;
}

void pattern_bytes(void *dest, size_t element, uint64_t stream, size_t first,
                   size_t count)
{
    unsigned char *out = dest;
    uint64_t key = mix(stream);

    for (size_t i = 0; i < count; i++) {
        uint64_t value = mix(key + first + i);

        memcpy(out + i * element, &value, element);
    }
}

/* A small floating-point format. */
typedef struct {
    int exponent, mantissa;
} format_t;

static format_t format_of(dscomm_dtype_t dtype)
{
    switch (dtype) {
    case DSCOMM_FLOAT16:
        return (format_t){5, 10};
    case DSCOMM_BFLOAT16:
        return (format_t){8, 7};
    case DSCOMM_FLOAT8_E4M3:
        return (format_t){4, 3};
    default:
        return (format_t){5, 2};
    }
}

int pattern_is_float(dscomm_dtype_t dtype)
{
    return dtype >= DSCOMM_FLOAT16 && dtype <= DSCOMM_FLOAT8_E5M2;
}

/* Encodes a finite value in the format's range; halves are rounded to even. */
static uint32_t encode(format_t f, double value)
{
    int bias = (1 << (f.exponent - 1)) - 1, exponent;
    uint32_t sign = signbit(value) ? 1u << (f.exponent + f.mantissa) : 0;
    double units;

    if (value == 0)
        return sign;
    frexp(value, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    units = nearbyint(ldexp(fabs(value), f.mantissa - exponent));
    /* The sum also handles subnormal numbers and a carry into the exponent. */
    return sign + ((uint32_t)(exponent + bias - 1) << f.mantissa) +
           (uint32_t)units;
}

static double decode(format_t f, uint32_t bits)
{
    int bias = (1 << (f.exponent - 1)) - 1;
    int exponent = (int)(bits >> f.mantissa) & ((1 << f.exponent) - 1);
    double units = bits & ((1u << f.mantissa) - 1);
    double sign = bits >> (f.exponent + f.mantissa) & 1 ? -1 : 1;

    if (exponent == 0)
        return sign * ldexp(units, 1 - bias - f.mantissa);
    return sign *
           ldexp(units + (1 << f.mantissa), exponent - bias - f.mantissa);
}

void pattern_put(dscomm_dtype_t dtype, void *array, size_t index, double value)
{
    size_t element = dscomm_dtype_size(dtype);
    unsigned char *out = (unsigned char *)array + index * element;
    float single = (float)value;
    uint64_t bits;

    if (dtype == DSCOMM_FLOAT64) {
        memcpy(out, &value, sizeof value);
    } else if (dtype == DSCOMM_FLOAT32) {
        memcpy(out, &single, sizeof single);
    } else {
        bits = pattern_is_float(dtype) ? encode(format_of(dtype), value)
                                       : (uint64_t)(int64_t)value;
        pattern_bits_put(out, element, bits);
    }
}

double pattern_get(dscomm_dtype_t dtype, const void *array, size_t index)
{
    size_t element = dscomm_dtype_size(dtype);
    const unsigned char *in = (const unsigned char *)array + index * element;
    double value;
    float single;

    if (dtype == DSCOMM_FLOAT64) {
        memcpy(&value, in, sizeof value);
        return value;
    }
    if (dtype == DSCOMM_FLOAT32) {
        memcpy(&single, in, sizeof single);
        return single;
    }
    return decode(format_of(dtype), (uint32_t)pattern_bits_get(in, element));
}

double pattern_factor(int rank)
{
    static const double factors[] = {0.5, 1, 2, 4, 1.5};

    return factors[(size_t)rank % CONFORM_LENGTH(factors)];
}

static uint64_t draw(const pattern_t *p, int rank, size_t index)
{
    return mix(p->seed + index * 131 + ((uint64_t)rank << 40));
}

/* Inputs are integers of at most 7; for products at most 8. Averages are
 * integers: ranks r and ranks - 1 - r differ from the average by opposite
 * amounts. */
static double float_input(const pattern_t *p, int rank, size_t index)
{
    int mirror = p->ranks - 1 - rank;
    uint64_t r = draw(p, rank, index);
    int mean = 3 + (int)(mix(p->seed + index) & 1), deviation;

    switch (p->op) {
    case DSCOMM_PRODUCT:
        return ((r & 1) && ((size_t)rank + index) % (size_t)p->ranks < 3
                    ? 2.0
                    : 1.0) *
               (r & 2 ? -1 : 1);
    case DSCOMM_AVG:
        deviation = (int)(draw(p, rank < mirror ? rank : mirror, index) % 4);
        return mean + (rank == mirror  ? 0
                       : rank < mirror ? deviation
                                       : -deviation);
    default:
        return (double)(int)(r % 15) - 7;
    }
}

static double float_fold(const pattern_t *p, double a, double b)
{
    switch (p->op) {
    case DSCOMM_PRODUCT:
        return a * b;
    case DSCOMM_MIN:
        return a < b ? a : b;
    case DSCOMM_MAX:
        return a > b ? a : b;
    default:
        return a + b;
    }
}

static double float_result(const pattern_t *p, size_t index)
{
    double sum = 0;

    for (int r = 0; r < p->ranks; r++) {
        double value = float_input(p, r, index);

        if (p->op == DSCOMM_PREMUL_SUM)
            value *= pattern_factor(r);
        sum = r == 0 ? value : float_fold(p, sum, value);
    }
    return p->op == DSCOMM_AVG ? sum / p->ranks : sum;
}

/* 0 is rare for `and` operators and common for the others, so that both results
 * occur. */
static uint64_t bool_input(const pattern_t *p, int rank, size_t index)
{
    static const unsigned char truths[] = {1, 2, 128, 255};
    int is_and =
        p->op == DSCOMM_PRODUCT || p->op == DSCOMM_MIN || p->op == DSCOMM_BAND;
    uint64_t r = draw(p, rank, index);
    int rare = r % (2 * (uint64_t)p->ranks) == 0;

    return rare == is_and ? 0 : truths[r >> 60 & 3];
}

/* Products of odd numbers are never 0. With many ranks, most bits are set for
 * `and`, and few for `or`. */
static uint64_t favour(const pattern_t *p, uint64_t value)
{
    uint64_t set = value, rare = value;

    for (int ranks = p->ranks; ranks > 1; ranks /= 2) {
        value = mix(value);
        set |= value;
        rare &= value;
    }
    if (p->op == DSCOMM_PRODUCT)
        return value | 1;
    if (p->op == DSCOMM_BAND)
        return set;
    return p->op == DSCOMM_BOR ? rare : value;
}

/* Returns an integer from the whole range, extended to 64 bits; for 64-bit
 * averages, whose sums must not wrap around, from a smaller one. */
static uint64_t integer_input(const pattern_t *p, int rank, size_t index)
{
    unsigned unused = 64 - 8 * (unsigned)dscomm_dtype_size(p->dtype);
    uint64_t value = favour(p, draw(p, rank, index));

    if (p->op == DSCOMM_AVG && unused == 0)
        return p->dtype & 1 ? value >> 20 : (uint64_t)((int64_t)value >> 20);
    value <<= unused;
    return p->dtype & 1 ? value >> unused
                        : (uint64_t)((int64_t)value >> unused);
}

static int integer_less(dscomm_dtype_t dtype, uint64_t a, uint64_t b)
{
    return dtype & 1 ? a < b : (int64_t)a < (int64_t)b;
}

static uint64_t integer_fold(const pattern_t *p, uint64_t a, uint64_t b)
{
    switch (p->op) {
    case DSCOMM_PRODUCT:
        return a * b;
    case DSCOMM_MIN:
        return integer_less(p->dtype, a, b) ? a : b;
    case DSCOMM_MAX:
        return integer_less(p->dtype, a, b) ? b : a;
    case DSCOMM_BAND:
        return a & b;
    case DSCOMM_BOR:
        return a | b;
    case DSCOMM_BXOR:
        return a ^ b;
    default:
        return a + b;
    }
}

static uint64_t bool_fold(const pattern_t *p, uint64_t a, uint64_t b)
{
    switch (p->op) {
    case DSCOMM_PRODUCT:
    case DSCOMM_MIN:
    case DSCOMM_BAND:
        return a && b;
    case DSCOMM_BXOR:
        return !a != !b;
    default:
        return a || b;
    }
}

static uint64_t integer_result(const pattern_t *p, size_t index)
{
    int is_bool = p->dtype == DSCOMM_BOOL;
    uint64_t sum =
        is_bool ? bool_input(p, 0, index) != 0 : integer_input(p, 0, index);

    for (int r = 1; r < p->ranks; r++)
        sum = is_bool ? bool_fold(p, sum, bool_input(p, r, index))
                      : integer_fold(p, sum, integer_input(p, r, index));
    if (p->op != DSCOMM_AVG)
        return sum;
    return p->dtype & 1 ? sum / (uint64_t)p->ranks
                        : (uint64_t)((int64_t)sum / p->ranks);
}

void pattern_input(const pattern_t *p, int rank, size_t first, size_t count,
                   void *dest)
{
    size_t element = dscomm_dtype_size(p->dtype);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits;

        if (pattern_is_float(p->dtype)) {
            pattern_put(p->dtype, dest, i, float_input(p, rank, first + i));
            continue;
        }
        bits = p->dtype == DSCOMM_BOOL ? bool_input(p, rank, first + i)
                                       : integer_input(p, rank, first + i);
        pattern_bits_put((char *)dest + i * element, element, bits);
    }
}

void pattern_result(const pattern_t *p, size_t first, size_t count, void *dest)
{
    size_t element = dscomm_dtype_size(p->dtype);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits;

        if (pattern_is_float(p->dtype)) {
            pattern_put(p->dtype, dest, i, float_result(p, first + i));
            continue;
        }
        bits = integer_result(p, first + i);
        pattern_bits_put((char *)dest + i * element, element, bits);
    }
}
