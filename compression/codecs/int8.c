/* SPDX-License-Identifier: BSD-3-Clause */
/* Codec int8: one byte an element. Each 256 elements have a scale, their
 * largest magnitude divided by 127, which precedes their codes. If one of them
 * is NaN or infinite, all 256 are decoded as NaN. */
#include "config.h"

#include "compression/codecs/codecs.h"

#include <string.h>

#define GROUP_BYTES (sizeof(float) + KERNEL_GROUP)

static size_t int8_bytes(const dscomm_codec_args_t *args, size_t count)
{
    size_t groups = count / KERNEL_GROUP + (count % KERNEL_GROUP != 0);

    (void)args;
    return groups * sizeof(float) + count;
}

static size_t int8_extent(size_t from, size_t count)
{
    return count - from < KERNEL_GROUP ? count - from : KERNEL_GROUP;
}

static void int8_encode(const dscomm_codec_args_t *args, float scale,
                        const float *values, float *errors, size_t count,
                        void *ret_bytes)
{
    float scratch[DSCOMM_CODEC_BLOCK];
    float *e = dscomm_priv_errors(args, errors, count, scratch);
    const float *x = dscomm_priv_values(values);
    char *at = ret_bytes;

    for (size_t i = 0; i < count; i += KERNEL_GROUP, at += GROUP_BYTES) {
        scale = dscomm_priv_codec_kernels()->quantize(
            x + i, e + i, int8_extent(i, count), (int8_t *)at + sizeof scale);
        memcpy(at, &scale, sizeof scale);
    }
}

static int int8_accumulate(const dscomm_codec_args_t *args, float scale,
                           float factor, const void *from, size_t count,
                           float *sum)
{
    const char *at = from;

    (void)args;
    for (size_t i = 0; i < count; i += KERNEL_GROUP, at += GROUP_BYTES) {
        memcpy(&scale, at, sizeof scale);
        dscomm_priv_codec_kernels()->add_codes(
            (const int8_t *)at + sizeof scale, int8_extent(i, count),
            scale * factor, sum + i);
    }
    return 0;
}

static int int8_decode(const dscomm_codec_args_t *args, float scale,
                       const void *from, size_t count, float *ret_values)
{
    memset(ret_values, 0, count * sizeof *ret_values);
    return int8_accumulate(args, scale, 1, from, count, ret_values);
}

const dscomm_codec_t dscomm_priv_codec_int8 = {
    .size = sizeof dscomm_priv_codec_int8,
    .name = "int8",
    .feedback = 1,
    .bytes = int8_bytes,
    .encode = int8_encode,
    .accumulate = int8_accumulate,
    .decode = int8_decode,
};
