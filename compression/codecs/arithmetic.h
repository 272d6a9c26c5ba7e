/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of one element, the same on hosts and devices to the last bit:
 * no product feeds a float32 sum, so that nothing can be fused, and conversions
 * are made of integers. Plain C and C++.
 *
 * Of a NaN, float16 keeps the bits that there is room for, as processors do;
 * float16_round() of minifloat.h does not. */
#ifndef COMPRESSION_ARITHMETIC_H
#define COMPRESSION_ARITHMETIC_H

#include "lib/base/minifloat.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

/* Compilers make vectors of float16 only if they inline it late. */
#ifdef __CUDACC__
#define ARITHMETIC MINIFLOAT
#else
#define ARITHMETIC static inline
#endif

/* From 65504 plus half a unit in the last place on, the result is infinity.
 * Below 2^-14 the last place has a fixed weight; adding 0.5 makes it the last
 * place of a float32. */
ARITHMETIC uint16_t half_of(float x)
{
    uint32_t bits = minifloat_bits(x), sign = bits >> 16 & 0x8000;
    uint32_t size = bits & 0x7fffffff;
    uint32_t small = minifloat_bits(minifloat_value(size) + 0.5f) - 0x3f000000;
    uint32_t normal = (size + 0xc8000fff + (size >> 13 & 1)) >> 13;
    uint32_t large = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
    uint32_t code = size < 0x38800000 ? small : normal;

    return (uint16_t)(sign | (size >= 0x47800000 ? large : code));
}

/* The factor is 2^112. A NaN becomes quiet, as processors make it. */
ARITHMETIC float value_of_half(uint16_t code)
{
    uint32_t size = (code & 0x7fffu) << 13, sign = (code & 0x8000u) << 16;
    uint32_t bits = minifloat_bits(minifloat_value(size) *
                                   5192296858534827628530496329220096.0f);

    uint32_t special = size > 0x0f800000    ? 0x7fc00000
                       : size == 0x0f800000 ? 0x7f800000
                                            : 0;

    return minifloat_value(sign | bits | special);
}

/* The scale of codec onebit: the root of the mean square, computed as the norm
 * divided by the root of the number of elements, with both rounded to float32.
 * A norm beyond float32 is not rounded, so that finite elements have a finite
 * scale. */
ARITHMETIC float onebit_scale(double squares, size_t count)
{
    float norm = (float)sqrt(squares);

    if (norm > FLT_MAX)
        return (float)sqrt(squares / (double)count);
    return norm / (float)sqrt((double)count);
}

/* onebit_value() returns the value that u's code represents, onebit_error() the
 * remainder. */
ARITHMETIC float onebit_value(float u, float scale)
{
    return u < 0 ? -scale : scale;
}

ARITHMETIC float onebit_error(float u, float scale)
{
    return u - onebit_value(u, scale);
}

#endif
