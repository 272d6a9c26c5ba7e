/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the largest magnitudes of each block unchanged; the rest becomes error.
 * Of equal magnitudes the first ones are kept; a NaN is larger than all. */
#include "config.h"

#include "compression/codecs/codecs.h"

#include <string.h>

/* An entry: the place of an element in its block, and its value. */
#define PLACE_BYTES sizeof(uint16_t)
#define ENTRY_BYTES (PLACE_BYTES + sizeof(float))

/* The number of elements that are kept of a block of count elements: at least
 * one. */
static size_t kept(const dscomm_codec_args_t *args, size_t count)
{
    size_t k = (size_t)(args->parameter * (double)count + 0.5);

    if (!count)
        return 0;
    return k < 1 ? 1 : k > count ? count : k;
}

static size_t topk_bytes(const dscomm_codec_args_t *args, size_t count)
{
    size_t blocks = count / DSCOMM_CODEC_BLOCK;

    return ENTRY_BYTES * (blocks * kept(args, DSCOMM_CODEC_BLOCK) +
                          kept(args, count % DSCOMM_CODEC_BLOCK));
}

static void topk_encode(const dscomm_codec_args_t *args, float scale,
                        const float *values, float *errors, size_t count,
                        void *ret_bytes)
{
    float scratch[DSCOMM_CODEC_BLOCK];
    float *u = dscomm_priv_errors(args, errors, count, scratch);
    uint16_t places[DSCOMM_CODEC_BLOCK];
    const size_t k = kept(args, count);
    char *at = ret_bytes;

    (void)scale;
    if (!count)
        return;
    dscomm_priv_codec_kernels()->add(dscomm_priv_values(values), u, count);
    dscomm_priv_codec_kernels()->pick(u, count, k, places);
    for (size_t i = 0; i < k; i++, at += ENTRY_BYTES) {
        memcpy(at, &places[i], sizeof places[i]);
        memcpy(at + PLACE_BYTES, &u[places[i]], sizeof *u);
        u[places[i]] = 0;
    }
}

static int topk_accumulate(const dscomm_codec_args_t *args, float scale,
                           float factor, const void *from, size_t count,
                           float *sum)
{
    const char *at = from;

    (void)scale;
    for (size_t k = kept(args, count); k; k--, at += ENTRY_BYTES) {
        uint16_t place;
        float value;

        memcpy(&place, at, sizeof place);
        memcpy(&value, at + PLACE_BYTES, sizeof value);
        if (place >= count)
            return -1;
        value *= factor;
        sum[place] += value;
    }
    return 0;
}

static int topk_decode(const dscomm_codec_args_t *args, float scale,
                       const void *from, size_t count, float *ret_values)
{
    memset(ret_values, 0, count * sizeof *ret_values);
    return topk_accumulate(args, scale, 1, from, count, ret_values);
}

const dscomm_codec_t dscomm_priv_codec_topk = {
    .size = sizeof dscomm_priv_codec_topk,
    .name = "topk",
    .feedback = 1,
    .parameter = 0.01,
    .parameter_most = 1,
    .bytes = topk_bytes,
    .encode = topk_encode,
    .accumulate = topk_accumulate,
    .decode = topk_decode,
};
