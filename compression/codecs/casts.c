/* SPDX-License-Identifier: BSD-3-Clause */
/* The codecs that send shorter floats, and the one that sends float32
 * unchanged. */
#include "config.h"

#include "compression/codecs/codecs.h"

#include <string.h>

static size_t bytes_none(const dscomm_codec_args_t *args, size_t count)
{
    (void)args;
    return count * sizeof(float);
}

static void encode_none(const dscomm_codec_args_t *args, float scale,
                        const float *values, float *errors, size_t count,
                        void *ret_bytes)
{
    float sum[DSCOMM_CODEC_BLOCK];

    (void)args, (void)scale;
    if (!errors) {
        memcpy(ret_bytes, dscomm_priv_values(values), count * sizeof(float));
        return;
    }
    memcpy(sum, errors, count * sizeof(float));
    dscomm_priv_codec_kernels()->add(dscomm_priv_values(values), sum, count);
    memcpy(ret_bytes, sum, count * sizeof(float));
    memset(errors, 0, count * sizeof(float));
}

static int accumulate_none(const dscomm_codec_args_t *args, float scale,
                           float factor, const void *from, size_t count,
                           float *sum)
{
    const char *at = from;

    (void)args, (void)scale;
    for (size_t i = 0; i < count; i++) {
        float value;

        memcpy(&value, at + i * sizeof value, sizeof value);
        value *= factor;
        sum[i] += value;
    }
    return 0;
}

static int decode_none(const dscomm_codec_args_t *args, float scale,
                       const void *from, size_t count, float *ret_values)
{
    (void)args, (void)scale;
    memcpy(ret_values, from, count * sizeof(float));
    return 0;
}

const dscomm_codec_t dscomm_priv_codec_none = {
    .size = sizeof dscomm_priv_codec_none,
    .name = "none",
    .bytes = bytes_none,
    .encode = encode_none,
    .accumulate = accumulate_none,
    .decode = decode_none,
};

static size_t bytes_cast(const dscomm_codec_args_t *args, size_t count)
{
    (void)args;
    return count * sizeof(uint16_t);
}

typedef void (*to_t)(const float *x, float *e, size_t count, void *ret_codes);
typedef void (*from_t)(const void *codes, size_t count, float *ret_values);

static void encode_cast(to_t to, const dscomm_codec_args_t *args,
                        const float *values, float *errors, size_t count,
                        void *ret_bytes)
{
    float scratch[DSCOMM_CODEC_BLOCK];

    to(dscomm_priv_values(values),
       errors ? dscomm_priv_errors(args, errors, count, scratch) : NULL, count,
       ret_bytes);
}

static int accumulate_cast(from_t from, float factor, const void *bytes,
                           size_t count, float *sum)
{
    float values[DSCOMM_CODEC_BLOCK];

    from(bytes, count, values);
    return accumulate_none(NULL, 0, factor, values, count, sum);
}

#define CODEC(codec, format)                                                   \
    static void encode_##format(const dscomm_codec_args_t *args, float scale,  \
                                const float *values, float *errors,            \
                                size_t count, void *ret_bytes)                 \
    {                                                                          \
        (void)scale;                                                           \
        encode_cast(dscomm_priv_codec_kernels()->to_##format, args, values,    \
                    errors, count, ret_bytes);                                 \
    }                                                                          \
    static int accumulate_##format(const dscomm_codec_args_t *args,            \
                                   float scale, float factor,                  \
                                   const void *from, size_t count, float *sum) \
    {                                                                          \
        (void)args, (void)scale;                                               \
        return accumulate_cast(dscomm_priv_codec_kernels()->from_##format,     \
                               factor, from, count, sum);                      \
    }                                                                          \
    static int decode_##format(const dscomm_codec_args_t *args, float scale,   \
                               const void *from, size_t count,                 \
                               float *ret_values)                              \
    {                                                                          \
        (void)args, (void)scale;                                               \
        dscomm_priv_codec_kernels()->from_##format(from, count, ret_values);   \
        return 0;                                                              \
    }                                                                          \
    const dscomm_codec_t dscomm_priv_codec_##codec = {                         \
        .size = sizeof dscomm_priv_codec_##codec,                              \
        .name = #codec,                                                        \
        .bytes = bytes_cast,                                                   \
        .encode = encode_##format,                                             \
        .accumulate = accumulate_##format,                                     \
        .decode = decode_##format,                                             \
    };

CODEC(float16, half)
CODEC(bfloat16, bfloat)
