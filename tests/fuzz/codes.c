/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary codes from another rank: each codec accepts them or says that they
 * are invalid, and accesses only its own memory. The input: number of the
 * codec, count of elements in two bytes, scale in four, and the codes, padded
 * with zeros. */
#include "config.h"

#include <dscomm/codec.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"none",   "float16", "bfloat16",
                                    "onebit", "int8",    "topk"};

static void must(int holds)
{
    if (!holds)
        abort();
}

/* The buffers are allocated with exactly the size that the codec may use. */
static void try_codes(const dscomm_codec_t *codec, float scale, size_t count,
                      const uint8_t *codes, size_t size)
{
    dscomm_codec_args_t args = {.size = sizeof args,
                                .parameter = codec->parameter};
    size_t bytes = codec->bytes(&args, count);
    uint8_t *copy = calloc(1, bytes ? bytes : 1);
    float *values = calloc(count ? count : 1, sizeof *values);
    int results[2];

    must(copy && values);
    if (bytes && size)
        memcpy(copy, codes, size < bytes ? size : bytes);
    results[0] = codec->accumulate(&args, scale, 0.5f, copy, count, values);
    results[1] = codec->decode(&args, scale, copy, count, values);
    must(results[0] == results[1] && (results[0] == 0 || results[0] == -1));
    free(values);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count;
    float scale;

    if (size < HEAD_BYTES)
        return 0;
    count = (data[1] | (size_t)data[2] << 8) % (DSCOMM_CODEC_BLOCK + 1);
    memcpy(&scale, data + 3, sizeof scale);
    try_codes(dscomm_codec_find(names[data[0] % 6]), scale, count,
              data + HEAD_BYTES, size - HEAD_BYTES);
    return 0;
}
