/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain C, to which all other rows are held. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>

#define ROW dscomm_priv_codec_kernels_c
#define NAME "c"

static size_t sign_vectors(const float *x, float *e, size_t count, float scale,
                           uint8_t *ret_bits)
{
    (void)x, (void)e, (void)count, (void)scale, (void)ret_bits;
    return 0;
}

static size_t add_vectors(const uint8_t *bits, size_t count, float scale,
                          float *sum)
{
    (void)bits, (void)count, (void)scale, (void)sum;
    return 0;
}

static size_t put_vectors(const uint8_t *bits, size_t count, float scale,
                          int stream, float *ret_values)
{
    (void)bits, (void)count, (void)scale, (void)stream, (void)ret_values;
    return 0;
}

#include "compression/kernels-body.h"
