/* SPDX-License-Identifier: BSD-3-Clause */
/* The codecs of this library, and what they share. */
#ifndef COMPRESSION_CODECS_H
#define COMPRESSION_CODECS_H

#include "compression/codecs/kernels.h"

#include <dscomm/codec.h>

extern const dscomm_codec_t dscomm_priv_codec_none;
extern const dscomm_codec_t dscomm_priv_codec_float16;
extern const dscomm_codec_t dscomm_priv_codec_bfloat16;
extern const dscomm_codec_t dscomm_priv_codec_onebit;
extern const dscomm_codec_t dscomm_priv_codec_int8;
extern const dscomm_codec_t dscomm_priv_codec_topk;

/* A block of negative zeros, for values that are NULL: adding them changes
 * nothing. */
extern const float dscomm_priv_zeros[DSCOMM_CODEC_BLOCK];

/* values, or zeros. */
static inline const float *dscomm_priv_values(const float *values)
{
    return values ? values : dscomm_priv_zeros;
}

/* If the caller wants no errors, they go to scratch, a block; it holds a copy
 * of the old ones, if there are any. */
float *dscomm_priv_errors(const dscomm_codec_args_t *args, float *errors,
                          size_t count, float *scratch);

#endif
