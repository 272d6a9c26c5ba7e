/* SPDX-License-Identifier: BSD-3-Clause */
/* 16- and 8-bit floats to and from float32, without branches, so that a compiler
 * can vectorise loops of them.
 *
 * To float32 is exact. From float32 rounds once, to nearest even, denormals
 * included; what is too large becomes infinity, or NaN in E4M3, which has no
 * infinities: 464 is the last value that still rounds to 448, as in PyTorch. A NaN
 * keeps its sign and stays a NaN. Only bfloat16 shares float32's denormals, so a
 * process that flushes those loses nothing of the other formats. */
#ifndef LIB_MINIFLOAT_H
#define LIB_MINIFLOAT_H

#include <stdint.h>
#include <string.h>

#define MINIFLOAT static inline __attribute__((always_inline))

/* Largest magnitudes (codes without sign) that are no NaN. */
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

/* code >= special is infinity where its mantissa is 0, else NaN. Comparisons are
 * signed because SSE2 has no others. */
MINIFLOAT float minifloat_widen(uint32_t code, uint32_t negative, int mantissa,
                                int bias, int32_t special)
{
    uint32_t rebias = (uint32_t)(127 - bias) << 23;
    uint32_t normal = (code << (23 - mantissa)) + rebias;
    /* A denormal is 1.m less 1, both times 2^(1 - bias). */
    float denormal = minifloat_value(normal + (1u << 23)) -
                     minifloat_value(rebias + (1u << 23));
    uint32_t bits =
        (int32_t)code < 1 << mantissa ? minifloat_bits(denormal) : normal;
    bits |= (int32_t)code >= special ? 0x7f800000u : 0;
    return minifloat_value(bits | negative << 31);
}

/* The code without sign; special is what overflow becomes. */
MINIFLOAT uint32_t minifloat_round(float value, int mantissa, int bias,
                                   int32_t special)
{
    int shift = 23 - mantissa;
    uint32_t rebias = (uint32_t)(127 - bias) << 23;
    uint32_t bits = minifloat_bits(value) & 0x7fffffff;
    uint32_t up = (1u << (shift - 1)) - 1 + (bits >> shift & 1);
    uint32_t normal = (bits - rebias + up) >> shift;
    /* The last place of this power of two is worth the smallest denormal. */
    uint32_t power = (uint32_t)(151 - bias - mantissa) << 23;
    float sum = minifloat_value(bits) + minifloat_value(power);
    uint32_t denormal = minifloat_bits(sum) - power;
    uint32_t nan = (bits >> shift & ((1u << mantissa) - 1)) |
                   1u << (mantissa - 1) | (uint32_t)special;
    uint32_t code =
        (int32_t)bits < (int32_t)(rebias + (1u << 23)) ? denormal : normal;
    code = (int32_t)code > special ? (uint32_t)special : code;
    return (int32_t)bits > 0x7f800000 ? nan : code;
}

MINIFLOAT float float16_widen(uint16_t code)
{
    return minifloat_widen(code & 0x7fffu, code >> 15, 10, 15, 0x7c00);
}

MINIFLOAT uint16_t float16_round(float value)
{
    uint32_t negative = minifloat_bits(value) >> 31;
    return (uint16_t)(minifloat_round(value, 10, 15, 0x7c00) | negative << 15);
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
    return minifloat_widen(code & 0x7fu, code >> 7, 3, 7, 0x7f);
}

MINIFLOAT uint8_t float8_e4m3_round(float value)
{
    uint32_t negative = minifloat_bits(value) >> 31;
    return (uint8_t)(minifloat_round(value, 3, 7, 0x7f) | negative << 7);
}

MINIFLOAT float float8_e5m2_widen(uint8_t code)
{
    return minifloat_widen(code & 0x7fu, code >> 7, 2, 15, 0x7c);
}

MINIFLOAT uint8_t float8_e5m2_round(float value)
{
    uint32_t negative = minifloat_bits(value) >> 31;
    return (uint8_t)(minifloat_round(value, 2, 15, 0x7c) | negative << 7);
}

#endif
