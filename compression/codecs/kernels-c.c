/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain C. All other rows must give the same bits. */
#include "config.h"

#include "compression/codecs/arithmetic.h"
#include "lib/base/lanes.h"

#include <string.h>

#define ROW dscomm_priv_codec_kernels_c
#define NAME "c"

/* Packs and unpacks bytes of signs through flags, one byte for each element, so
 * that compilers can vectorise the other loops. */
#define STEP 64
static const uint8_t weights[STEP] = {
#define EIGHT 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
    EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT,
};
static const uint64_t ones = UINT64_C(0x0101010101010101);

/* Returns the sum of the eight bytes. */
static uint8_t byte_of(const uint8_t *flags)
{
    uint64_t word;

    memcpy(&word, flags, sizeof word);
    return (uint8_t)(word * ones >> 56);
}

static void spread(const uint8_t *bits, uint8_t flags[STEP])
{
    for (size_t k = 0; k < STEP / 8; k++) {
        uint64_t word = bits[k] * ones;

        memcpy(flags + 8 * k, &word, sizeof word);
    }
}

static size_t sign_vectors(const float *x, float *e, size_t count, float scale,
                           uint8_t *ret_bits)
{
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        uint8_t flags[STEP];

        LANES for (size_t k = 0; k < STEP; k++)
        {
            float u = x[i + k] + e[i + k];

            flags[k] = u < 0 ? 0 : weights[k];
            e[i + k] = onebit_error(u, scale);
        }
        for (size_t k = 0; k < STEP / 8; k++)
            ret_bits[i / 8 + k] = byte_of(flags + 8 * k);
    }
    return i;
}

static size_t add_vectors(const uint8_t *bits, size_t count, float scale,
                          float *sum)
{
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        uint8_t flags[STEP];

        spread(bits + i / 8, flags);
        LANES for (size_t k = 0; k < STEP; k++) sum[i + k] +=
            flags[k] & weights[k] ? scale : -scale;
    }
    return i;
}

static size_t put_vectors(const uint8_t *bits, size_t count, float scale,
                          int stream, float *ret_values)
{
    size_t i = 0;

    (void)stream;
    for (; i + STEP <= count; i += STEP) {
        uint8_t flags[STEP];

        spread(bits + i / 8, flags);
        LANES for (size_t k = 0; k < STEP; k++) ret_values[i + k] =
            flags[k] & weights[k] ? scale : -scale;
    }
    return i;
}

/* Casts to float16, STEP elements at a time. Their codes have four bytes until
 * the end of the block, because compilers pack vectors in every iteration if
 * the loop narrows its results. If an element is NaN or is rounded to infinity,
 * the block is computed again by the complete conversion. */
#define MAGNITUDE 0x7fffffff
#define LEAST_INFINITE 0x477ff000

/* Adding 2^13 times the power of two of x rounds x to eleven bits. Below 2^-14
 * the last place has a fixed weight. */
static inline uint32_t finite_half(float x)
{
    uint32_t bits = minifloat_bits(x), size = bits & MAGNITUDE;
    int32_t above = (int32_t)(size & 0x7f800000) - 0x38800000;
    uint32_t power = (uint32_t)(above & ~(above >> 31));
    uint32_t magic = power + 0x3f000000;

    return (bits >> 16 & 0x8000) |
           (minifloat_bits(minifloat_value(size) + minifloat_value(magic)) -
            magic + (power >> 13));
}

static inline float value_of_finite_half(uint32_t code)
{
    uint32_t size = (code & 0x7fff) << 13, sign = (code & 0x8000) << 16;

    return minifloat_value(sign |
                           minifloat_bits(minifloat_value(size) * 0x1p112f));
}

/* Returns false if an element is not finite in float16: its code is then
 * wrong. */
static int finite_block(const float *u, uint32_t wide[STEP])
{
    uint32_t carry = 0;

    LANES for (size_t k = 0; k < STEP; k++)
    {
        wide[k] = finite_half(u[k]);
        carry |=
            (minifloat_bits(u[k]) & MAGNITUDE) + (0x80000000 - LEAST_INFINITE);
    }
    return !(carry >> 31);
}

static void any_block(const float *u, float *e, uint32_t wide[STEP])
{
    for (size_t k = 0; k < STEP; k++) {
        wide[k] = half_of(u[k]);
        if (e)
            e[k] = u[k] - value_of_half((uint16_t)wide[k]);
    }
}

static void narrow(const uint32_t wide[STEP], unsigned char *codes)
{
    uint16_t narrowed[STEP];

    LANES for (size_t k = 0; k < STEP; k++) narrowed[k] = (uint16_t)wide[k];
    memcpy(codes, narrowed, sizeof narrowed);
}

#define TO_HALF
static size_t to_half_vectors(const float *x, float *e, size_t count,
                              void *ret_codes)
{
    unsigned char *codes = ret_codes;
    uint32_t wide[STEP];
    float sum[STEP];
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        const float *u = e ? sum : x + i;

        if (e)
            LANES for (size_t k = 0; k < STEP; k++) sum[k] =
                x[i + k] + e[i + k];
        if (!finite_block(u, wide))
            any_block(u, e ? e + i : NULL, wide);
        else if (e)
            LANES for (size_t k = 0; k < STEP; k++) e[i + k] =
                u[k] - value_of_finite_half(wide[k]);
        narrow(wide, codes + 2 * i);
    }
    return i;
}

#include "compression/codecs/kernels-body.h"
