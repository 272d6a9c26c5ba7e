/* SPDX-License-Identifier: BSD-3-Clause */
/* The codecs of this library, and their common functions. */
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

/* A block of negative zeros, used if values are NULL: adding them changes
 * nothing. */
extern const float dscomm_priv_zeros[DSCOMM_CODEC_BLOCK];

/* values, or zeros. */
static inline const float *dscomm_priv_values(const float *values)
{
    return values ? values : dscomm_priv_zeros;
}

/* Returns the array to which encode writes the errors: errors; or, if errors is
 * NULL or must be kept, scratch, which has room for a block and gets a copy of
 * the old errors. */
float *dscomm_priv_errors(const dscomm_codec_args_t *args, float *errors,
                          size_t count, float *scratch);

#endif
