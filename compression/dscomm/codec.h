/* SPDX-License-Identifier: BSD-3-Clause */
/* Codecs: how elements become bytes and come back. A program may add its own.
 *
 *   none       float32 as it is
 *   float16    rounded to nearest even
 *   bfloat16   rounded to nearest even
 *   onebit     the sign; one scale, the root of the mean square
 *   int8       a byte times the scale of its 256 elements, max / 127
 *   topk       of each 4096 elements the largest magnitudes, exactly; the
 *              parameter is their part of all, 0.01 by itself
 *
 * The last three keep errors unless attr.feedback says otherwise.
 *
 * A codec sees float32 in blocks of at most DSCOMM_CODEC_BLOCK elements, all of
 * that size but the last one of a part; measure alone sees the whole buffer so,
 * whatever its parts. Its functions may be called from
 * several threads at the same time. They compute the same bits on all machines
 * that share a job. */
#ifndef DSCOMM_CODEC_H
#define DSCOMM_CODEC_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSCOMM_CODEC_BLOCK 4096
#define DSCOMM_CODEC_SUMS 32

/* What all functions get; bytes the first three members alone. */
typedef struct dscomm_codec_args {
    size_t size;
    void *user; /* of the codec */
    double parameter; /* of the compressor's attributes, or the codec's own */
    uint32_t call; /* of the compressor: its number, the same on all ranks */
    uint32_t phase; /* 0: what ranks send to be reduced, 1: the result */
    size_t first; /* the block's first element, in the buffer; settle: 0 */
    /* decode: the whole output is larger than the caches; who stores past them
     * need not wait, a fence follows */
    int stream;
    int keep; /* encode: leave the errors as they were, see below */
} dscomm_codec_args_t;

/* Later releases may add members behind the last one. */
typedef struct dscomm_codec {
    size_t size;
    const char *name; /* letters, digits, '_'; at most 15 bytes */
    int feedback; /* 1: keeps errors, unless the compressor says otherwise */
    void *user; /* for its functions, as it is */
    /* What compressors may choose is in (0, parameter_most]; what counts where
     * they do not. Both 0: nothing. */
    double parameter, parameter_most;
    /* Bytes that a block of count elements becomes: at most 16 times
     * DSCOMM_CODEC_BLOCK, and none needs more than one that is whole. */
    size_t (*bytes)(const dscomm_codec_args_t *args, size_t count);
    /* The first look at values + errors (either may be NULL: zeros), block by
     * block, adds to sums, which begin as zeros; then settle makes of them the
     * scale of count elements, which travels with them. Optional, both: without
     * them the scale is 0. One that is not finite says that there is a NaN or
     * an infinity; keep is then 1 for encode. */
    void (*measure)(const dscomm_codec_args_t *args,
                    double sums[DSCOMM_CODEC_SUMS], const float *values,
                    const float *errors, size_t count);
    float (*settle)(const dscomm_codec_args_t *args,
                    const double sums[DSCOMM_CODEC_SUMS], size_t count);
    /* Writes values + errors (values may be NULL: zeros) as bytes, and to
     * errors what they say too little; errors may be NULL: zeros, and nobody
     * asks. */
    void (*encode)(const dscomm_codec_args_t *args, float scale,
                   const float *values, float *errors, size_t count,
                   void *ret_bytes);
    /* Adds factor times what bytes say to sum. Bytes come from other ranks: -1
     * if they make no sense, else 0. */
    int (*accumulate)(const dscomm_codec_args_t *args, float scale,
                      float factor, const void *bytes, size_t count,
                      float *sum);
    /* What bytes say; -1 as above. */
    int (*decode)(const dscomm_codec_args_t *args, float scale,
                  const void *bytes, size_t count, float *ret_values);
} dscomm_codec_t;

/* Adds a codec for the rest of the process; codec stays. ERR_INVALID: something
 * is missing, or the name is taken. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_codec_register(const dscomm_codec_t *codec);

/* The codec of that name, or NULL. MT: safe. */
DSCOMM_API const dscomm_codec_t *dscomm_codec_find(const char *name);

/* The names of all, with a space between them; static. MT: safe. */
DSCOMM_API const char *dscomm_codec_names(void);

/* NULL where codec onebit has kernels for the CUDA devices of this machine,
 * else why buffers of theirs are compressed in host memory; static. The first
 * call loads the module cuda.so, and with it CUDA's driver. MT: safe. */
DSCOMM_API const char *dscomm_codec_device_problem(void);

#ifdef __cplusplus
}
#endif

#endif
