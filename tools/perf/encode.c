/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers as elements of any type, see verify.h. Of floats every code is
 * taken apart by the definition of its format, until one is the number wanted:
 * slow, and independent of the conversions that are to be verified. */
#include "config.h"

#include "tools/perf/verify.h"

#include <math.h>
#include <string.h>

typedef struct {
    int bits; /* 0: not a float of 8 or 16 bits */
    int mantissa, bias;
    int exact; /* integers to 2^exact are exact */
    int top; /* the largest power of two */
} format_t;

static const format_t formats[DSCOMM_DTYPE_COUNT] = {
    [DSCOMM_FLOAT16] = {16, 10, 15, 11, 15},
    [DSCOMM_BFLOAT16] = {16, 7, 127, 8, 127},
    [DSCOMM_FLOAT32] = {0, 23, 127, 24, 127},
    [DSCOMM_FLOAT64] = {0, 52, 1023, 53, 1023},
    [DSCOMM_FLOAT8_E4M3] = {8, 3, 7, 4, 8},
    [DSCOMM_FLOAT8_E5M2] = {8, 2, 15, 3, 15},
};

gboolean perf_is_real(dscomm_dtype_t dtype)
{
    return formats[dtype].mantissa > 0;
}

int perf_exact_bits(dscomm_dtype_t dtype)
{
    return formats[dtype].exact;
}

/* Of a positive code that is a number. */
static double decode(const format_t *format, unsigned code)
{
    int exponent = (int)(code >> format->mantissa);
    double fraction = code & ((1u << format->mantissa) - 1);

    if (exponent == 0)
        return ldexp(fraction, 1 - format->bias - format->mantissa);
    return ldexp(fraction + (1 << format->mantissa),
                 exponent - format->bias - format->mantissa);
}

/* Positive codes are in the order of their values. */
static unsigned find_code(const format_t *format, double value)
{
    unsigned low = 0, high = 1u << (format->bits - 1);

    while (low + 1 < high) {
        unsigned middle = low + (high - low) / 2;
        if (decode(format, middle) <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void encode_small(const format_t *format, gint64 value, void *element)
{
    unsigned code = find_code(format, fabs((double)value));
    guint8 byte;
    guint16 word;

    if (value < 0)
        code |= 1u << (format->bits - 1);
    byte = (guint8)code;
    word = (guint16)code;
    if (format->bits == 8)
        memcpy(element, &byte, sizeof byte);
    else
        memcpy(element, &word, sizeof word);
}

/* The lowest bytes of a two's complement number, in this machine's order. */
static void encode_integer(size_t size, gint64 value, void *element)
{
    guint64 little = GUINT64_TO_LE((guint64)value);
    guint8 bytes[sizeof little];

    memcpy(bytes, &little, sizeof bytes);
    for (size_t i = 0; i < size; i++)
        ((guint8 *)
             element)[G_BYTE_ORDER == G_LITTLE_ENDIAN ? i : size - 1 - i] =
            bytes[i];
}

void perf_encode(dscomm_dtype_t dtype, gint64 value, void *element)
{
    float single = (float)value;
    double twice = (double)value;

    if (dtype == DSCOMM_FLOAT32)
        memcpy(element, &single, sizeof single);
    else if (dtype == DSCOMM_FLOAT64)
        memcpy(element, &twice, sizeof twice);
    else if (formats[dtype].bits)
        encode_small(&formats[dtype], value, element);
    else if (dtype == DSCOMM_BOOL)
        *(guint8 *)element = value != 0;
    else
        encode_integer(dscomm_dtype_size(dtype), value, element);
}
