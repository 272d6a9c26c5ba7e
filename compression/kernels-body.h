/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of kernels: loops that the compiler makes vectors of, for whatever the
 * including file is compiled for. That file has defined
 *
 *   ROW, NAME          the row, and its name as a string
 *   sign_vectors()     as the kernels, for a multiple of eight elements at the
 *   add_vectors()      beginning; they return how many they have done
 *   put_vectors() */
#include "compression/arithmetic.h"
#include "compression/kernels.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#define LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES _Pragma("GCC ivdep")
#endif

/* Adding and taking away this rounds to an integer, the nearest even. */
#define ROUNDER 12582912.0f

static void measure(double sums[KERNEL_SUMS], const float *x, const float *e,
                    size_t count)
{
    double local[KERNEL_SUMS];
    size_t i = 0;

    memcpy(local, sums, sizeof local);
    for (; i + KERNEL_SUMS <= count; i += KERNEL_SUMS)
        LANES for (int k = 0; k < KERNEL_SUMS; k++)
        {
            double u = x[i + (size_t)k] + e[i + (size_t)k];

            local[k] += u * u;
        }
    for (int k = 0; i < count; i++, k++) {
        double u = x[i] + e[i];

        local[k] += u * u;
    }
    memcpy(sums, local, sizeof local);
}

static void sign(const float *x, float *e, size_t count, float scale,
                 uint8_t *ret_bits)
{
    size_t i = sign_vectors(x, e, count, scale, ret_bits);

    while (i < count) {
        unsigned byte = 0;
        size_t end = count - i < 8 ? count : i + 8;

        for (unsigned bit = 0x80; i < end; i++, bit >>= 1) {
            float u = x[i] + e[i];

            byte |= u < 0 ? 0 : bit;
            e[i] = onebit_error(u, scale);
        }
        ret_bits[(end - 1) / 8] = (uint8_t)byte;
    }
}

static float signed_scale(const uint8_t *bits, size_t i, float scale)
{
    return bits[i / 8] & 0x80 >> i % 8 ? scale : -scale;
}

static void add_signs(const uint8_t *bits, size_t count, float scale,
                      float *sum)
{
    for (size_t i = add_vectors(bits, count, scale, sum); i < count; i++)
        sum[i] += signed_scale(bits, i, scale);
}

static void put_signs(const uint8_t *bits, size_t count, float scale,
                      int stream, float *ret_values)
{
    size_t i = put_vectors(bits, count, scale, stream, ret_values);

    for (; i < count; i++)
        ret_values[i] = signed_scale(bits, i, scale);
}

/* As bits, magnitudes are in order, with NaN above infinity. */
static uint32_t largest(const float *x, const float *e, size_t count)
{
    uint32_t most = 0;

    LANES for (size_t i = 0; i < count; i++)
    {
        uint32_t bits = bits_of(x[i] + e[i]) & 0x7fffffff;

        most = bits > most ? bits : most;
    }
    return most;
}

static float quantize(const float *x, float *e, size_t count, int8_t *ret_codes)
{
    uint32_t most = largest(x, e, count);
    float scale = float_of(most) / 127;

    memset(ret_codes, 0, count);
    if (most >= 0x7f800000)
        return NAN;
    if (scale == 0) { /* nothing but zeros, or what is nearly that */
        LANES for (size_t i = 0; i < count; i++) e[i] += x[i];
        return 0;
    }
    LANES for (size_t i = 0; i < count; i++)
    {
        float u = x[i] + e[i], q = u / scale;

        q = q > 127 ? 127 : q < -127 ? -127 : q;
        q = q + ROUNDER - ROUNDER;
        ret_codes[i] = (int8_t)(int)q;
        q *= scale;
        e[i] = u - q;
    }
    return scale;
}

static void add_codes(const int8_t *codes, size_t count, float scale,
                      float *sum)
{
    LANES for (size_t i = 0; i < count; i++)
    {
        float value = scale * (float)codes[i];

        sum[i] += value;
    }
}

static void add(const float *x, float *e, size_t count)
{
    LANES for (size_t i = 0; i < count; i++) e[i] += x[i];
}

#define CAST(format)                                                           \
    static void to_##format(const float *x, float *e, size_t count,            \
                            uint16_t *codes)                                   \
    {                                                                          \
        LANES for (size_t i = 0; i < count; i++)                               \
        {                                                                      \
            float u = x[i] + e[i];                                             \
                                                                               \
            codes[i] = format##_of(u);                                         \
            e[i] = u - value_of_##format(codes[i]);                            \
        }                                                                      \
    }                                                                          \
    static void from_##format(const uint16_t *codes, size_t count,             \
                              float *ret_values)                               \
    {                                                                          \
        LANES for (size_t i = 0; i < count; i++) ret_values[i] =               \
            value_of_##format(codes[i]);                                       \
    }

CAST(half)
CAST(bfloat)

const dscomm_codec_kernels_t ROW = {
    NAME,      measure, sign,    add_signs, put_signs, quantize,
    add_codes, add,     to_half, to_bfloat, from_half, from_bfloat,
};
