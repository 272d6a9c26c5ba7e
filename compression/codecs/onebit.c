/* SPDX-License-Identifier: BSD-3-Clause */
/* Codec onebit: one bit, the sign, for each element, and one scale for all, the
 * root of the mean square. */
#include "config.h"

#include "compression/codecs/arithmetic.h"
#include "compression/codecs/codecs.h"

static size_t onebit_bytes(const dscomm_codec_args_t *args, size_t count)
{
    (void)args;
    return count / 8 + (count % 8 != 0);
}

static void onebit_measure(const dscomm_codec_args_t *args,
                           double sums[DSCOMM_CODEC_SUMS], const float *values,
                           const float *errors, size_t count)
{
    (void)args;
    dscomm_priv_codec_kernels()->measure(sums, dscomm_priv_values(values),
                                         dscomm_priv_values(errors), count);
}

static float onebit_settle(const dscomm_codec_args_t *args,
                           const double sums[DSCOMM_CODEC_SUMS], size_t count)
{
    double lanes[DSCOMM_CODEC_SUMS];

    (void)args;
    for (int i = 0; i < DSCOMM_CODEC_SUMS; i++)
        lanes[i] = sums[i];
    for (int width = DSCOMM_CODEC_SUMS / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return onebit_scale(lanes[0], count);
}

static void onebit_encode(const dscomm_codec_args_t *args, float scale,
                          const float *values, float *errors, size_t count,
                          void *ret_bytes)
{
    float scratch[DSCOMM_CODEC_BLOCK];

    dscomm_priv_codec_kernels()->sign(
        dscomm_priv_values(values),
        dscomm_priv_errors(args, errors, count, scratch), count, scale,
        ret_bytes);
}

static int onebit_accumulate(const dscomm_codec_args_t *args, float scale,
                             float factor, const void *from, size_t count,
                             float *sum)
{
    (void)args;
    dscomm_priv_codec_kernels()->add_signs(from, count, scale * factor, sum);
    return 0;
}

static int onebit_decode(const dscomm_codec_args_t *args, float scale,
                         const void *from, size_t count, float *ret_values)
{
    dscomm_priv_codec_kernels()->put_signs(from, count, scale, args->stream,
                                           ret_values);
    return 0;
}

const dscomm_codec_t dscomm_priv_codec_onebit = {
    .size = sizeof dscomm_priv_codec_onebit,
    .name = "onebit",
    .feedback = 1,
    .bytes = onebit_bytes,
    .measure = onebit_measure,
    .settle = onebit_settle,
    .encode = onebit_encode,
    .accumulate = onebit_accumulate,
    .decode = onebit_decode,
};
