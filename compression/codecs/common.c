/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that several codecs use. */
#include "config.h"

#include "compression/codecs/codecs.h"

#include <string.h>

const float dscomm_priv_zeros[DSCOMM_CODEC_BLOCK] = {
    [0 ... DSCOMM_CODEC_BLOCK - 1] = -0.0f,
};

float *dscomm_priv_errors(const dscomm_codec_args_t *args, float *errors,
                          size_t count, float *scratch)
{
    if (errors && !args->keep)
        return errors;
    memcpy(scratch, errors ? errors : dscomm_priv_zeros,
           count * sizeof *scratch);
    return scratch;
}
