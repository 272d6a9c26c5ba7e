/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversions between float32 and 16- or 8-bit floats, without branches, so
 * that the compiler can vectorise loops of them.
 *
 * The conversion to float32 is exact. The conversion from float32 rounds once,
 * to nearest even, denormals included. A value that is too large becomes
 * infinity; in E4M3, which has no infinities, NaN: 464 is the last value that
 * still rounds to 448, as in PyTorch. A NaN keeps its sign and stays a NaN.
 * Only bfloat16 has denormals in the range of float32's, so a process that
 * flushes those to zero changes no value of the other formats. */
#ifndef LIB_MINIFLOAT_H
#define LIB_MINIFLOAT_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define MINIFLOAT static __host__ __device__ __forceinline__
#else
#define MINIFLOAT static inline __attribute__((always_inline))
#endif

/* The largest magnitudes (codes without sign) that are not NaN. */
#define FLOAT16_TOP 0x7c00
#define BFLOAT16_TOP 0x7f80
#define FLOAT8_E4M3_TOP 0x7e
#define FLOAT8_E5M2_TOP 0x7c

MINIFLOAT uint32_t minifloat_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

MINIFLOAT float minifloat_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts a code of a format with so many bits. special is its first magnitude
 * (code without sign) that is not a number: infinity, or E4M3's NaN. */

MINIFLOAT float minifloat_widen(uint32_t code, int bits, int mantissa, int bias,
                                uint32_t special)
{
    uint32_t sign = 1u << (bits - 1);
    uint32_t magnitude = code & (sign - 1);
    uint32_t least = (uint32_t)(128 - bias) << 23; /* the least normal number */
    /* For a normal number twice its value; for a denormal one its value plus
     * the least normal number. */
    float size = minifloat_value((magnitude << (23 - mantissa)) + least);
    float denormal = size - minifloat_value(least), normal = size / 2;
    uint32_t result = minifloat_bits(denormal < normal ? denormal : normal);

    result |= (int32_t)magnitude >= (int32_t)special ? 0x7f800000u : 0;
    return minifloat_value(result | (code & sign) << (32 - bits));
}

MINIFLOAT uint32_t minifloat_round(float value, int bits, int mantissa,
                                   int bias, uint32_t special)
{
    const int shift = 23 - mantissa;
    uint32_t least = (uint32_t)(128 - bias) << 23;
    float low = minifloat_value(least);
    float high = minifloat_value((special << shift) + least - (1u << 23));
    uint32_t word = minifloat_bits(value);
    float size = minifloat_value(word & 0x7fffffff), power, sum;
    uint32_t unit, code;

    size = size < high ? size : high; /* so is NaN */
    power = minifloat_value(minifloat_bits(size) & 0x7f800000);
    power = power > low ? power : low;
    /* In a float of this power of two, the last bit is worth the last bit of
     * the result, so adding it rounds. */
    unit = minifloat_bits(power) + ((uint32_t)shift << 23);
    sum = size + minifloat_value(unit);
    code = minifloat_bits(sum) - unit;
    code += (minifloat_bits(power) - least) >> shift;
    code |= value != value ? 1u << (mantissa - 1) : 0;
    return code | (word & 0x80000000) >> (32 - bits);
}

MINIFLOAT float float16_widen(uint16_t code)
{
    return minifloat_widen(code, 16, 10, 15, 0x7c00);
}

MINIFLOAT uint16_t float16_round(float value)
{
    return (uint16_t)minifloat_round(value, 16, 10, 15, 0x7c00);
}

MINIFLOAT float bfloat16_widen(uint16_t code)
{
    return minifloat_value((uint32_t)code << 16);
}

MINIFLOAT uint16_t bfloat16_round(float value)
{
    uint32_t bits = minifloat_bits(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    int nan = (int32_t)(bits & 0x7fffffff) > 0x7f800000;
    return (uint16_t)((nan ? bits | 0x400000 : rounded) >> 16);
}

MINIFLOAT float float8_e4m3_widen(uint8_t code)
{
    return minifloat_widen(code, 8, 3, 7, 0x7f);
}

MINIFLOAT uint8_t float8_e4m3_round(float value)
{
    return (uint8_t)minifloat_round(value, 8, 3, 7, 0x7f);
}

MINIFLOAT float float8_e5m2_widen(uint8_t code)
{
    return minifloat_widen(code, 8, 2, 15, 0x7c);
}

MINIFLOAT uint8_t float8_e5m2_round(float value)
{
    return (uint8_t)minifloat_round(value, 8, 2, 15, 0x7c);
}

#endif
