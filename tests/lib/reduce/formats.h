/* SPDX-License-Identifier: BSD-3-Clause */
/* Floating-point formats by their definitions, in exact and slow arithmetic:
 * the value of a code, and the code nearest to a value. */
#ifndef TESTS_LIB_FORMATS_H
#define TESTS_LIB_FORMATS_H

#include <dscomm/types.h>

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    dscomm_dtype_t dtype;
    int bits, mantissa, bias;
    /* 1: the largest exponent is reserved for infinities and NaNs */
    int infinite;
} format_t;

static const format_t formats[] = {
    {DSCOMM_FLOAT16, 16, 10, 15, 1},  {DSCOMM_BFLOAT16, 16, 7, 127, 1},
    {DSCOMM_FLOAT32, 32, 23, 127, 1}, {DSCOMM_FLOAT64, 64, 52, 1023, 1},
    {DSCOMM_FLOAT8_E4M3, 8, 3, 7, 0}, {DSCOMM_FLOAT8_E5M2, 8, 2, 15, 1},
};

/* NULL for integers. */
static inline const format_t *format_of(dscomm_dtype_t dtype)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i].dtype == dtype)
            return &formats[i];
    }
    return NULL;
}

/* Returns where in a code of 64 bits its lowest size bytes begin. */
static inline size_t format_low(size_t size)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return sizeof(uint64_t) - size;
#else
    (void)size;
    return 0;
#endif
}

/* Element i of an array. */
static inline uint64_t format_code_at(const unsigned char *bytes, size_t size,
                                      size_t i)
{
    uint64_t code = 0;

    memcpy((unsigned char *)&code + format_low(size), bytes + i * size, size);
    return code;
}

static inline void format_code_put(unsigned char *bytes, size_t size, size_t i,
                                   uint64_t code)
{
    memcpy(bytes + i * size, (unsigned char *)&code + format_low(size), size);
}

static inline uint64_t format_random(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

static inline uint64_t format_sign(const format_t *format)
{
    return (uint64_t)1 << (format->bits - 1);
}

/* Returns the first magnitude that is not a number: infinity, or E4M3's NaN. */
static inline uint64_t format_special(const format_t *format)
{
    uint64_t all = format_sign(format) - 1;

    return format->infinite ? all - (((uint64_t)1 << format->mantissa) - 1)
                            : all;
}

/* Returns the value of a magnitude, as if none were special. */
static inline double format_plain(const format_t *format, uint64_t magnitude)
{
    uint64_t one = (uint64_t)1 << format->mantissa;
    uint64_t fraction = magnitude % one;
    int exponent = (int)(magnitude / one);

    if (exponent == 0)
        return ldexp((double)fraction, 1 - format->bias - format->mantissa);
    return ldexp((double)(fraction + one),
                 exponent - format->bias - format->mantissa);
}

static inline double format_value(const format_t *format, uint64_t code)
{
    uint64_t sign = format_sign(format);
    uint64_t magnitude = code & (sign - 1);
    double value;

    if (magnitude < format_special(format))
        value = format_plain(format, magnitude);
    else if (format->infinite && magnitude == format_special(format))
        value = INFINITY;
    else
        value = NAN;
    return copysign(value, code & sign ? -1 : 1);
}

static inline int format_is_nan(const format_t *format, uint64_t code)
{
    return isnan(format_value(format, code)) != 0;
}

/* Returns the code of a value that has at most 25 significant bits (any number
 * of bits for the two widest formats): the nearest; halves to the even code;
 * from half a unit above the largest number on, the first special code. */
static inline uint64_t format_round(const format_t *format, double value)
{
    uint64_t low = 0, high = format_special(format), half;
    uint64_t sign = signbit(value) ? format_sign(format) : 0;
    double x = fabs(value), below, above;

    if (isnan(value))
        return sign | (format_sign(format) - 1);
    if (x >= format_plain(format, high))
        return sign | high;
    while (high - low > 1) {
        half = (low + high) / 2;
        if (format_plain(format, half) <= x)
            low = half;
        else
            high = half;
    }
    below = x - format_plain(format, low);
    above = format_plain(format, high) - x;
    if (below < above || (below == above && low % 2 == 0))
        return sign | low;
    return sign | high;
}

#endif
