/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain C, to which all other rows are held. */
#include "config.h"

#include "compression/arithmetic.h"
#include "compression/lanes.h"

#include <string.h>

#define ROW dscomm_priv_codec_kernels_c
#define NAME "c"

/* Bytes of signs are made of, and spread to, a byte for each element, so that
 * compilers make vectors of the rest. */
#define STEP 64
static const uint8_t weights[STEP] = {
#define EIGHT 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
    EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT,
};
static const uint64_t ones = UINT64_C(0x0101010101010101);

/* The sum of its bytes. */
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

#include "compression/kernels-body.h"
