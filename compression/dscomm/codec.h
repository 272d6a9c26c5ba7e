/* SPDX-License-Identifier: BSD-3-Clause */
/* Codecs: conversions of elements to bytes and back. A program may add its own.
 *
 *   none       float32 unchanged
 *   float16    rounded to nearest even
 *   bfloat16   rounded to nearest even
 *   onebit     the sign; one scale, the root of the mean square
 *   int8       a byte times the scale of its 256 elements, max / 127
 *   topk       the largest magnitudes of each 4096 elements, unchanged; the
 *              parameter is the fraction that is sent, by default 0.01
 *
 * The last three keep errors unless attr.feedback says otherwise.
 *
 * The functions of a codec get float32 elements in blocks of DSCOMM_CODEC_BLOCK
 * elements; only the last block of a part may be shorter. (measure gets the
 * whole buffer in such blocks, without regard to parts.) Several threads may
 * call them at the same time. They must give the same bits on all machines of a
 * job. */
#ifndef DSCOMM_CODEC_H
#define DSCOMM_CODEC_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSCOMM_CODEC_BLOCK 4096
#define DSCOMM_CODEC_SUMS 32

/* The arguments of all functions; bytes gets only the first three members. */
typedef struct dscomm_codec_args {
    size_t size;
    void *user; /* of the codec */
    double parameter; /* of the compressor's attributes, or the default */
    uint32_t call; /* number of the compressor's call, equal on all ranks */
    uint32_t phase; /* 0: elements sent to be reduced; 1: the result */
    size_t first; /* position in the buffer of the block's first element;
                     settle: 0 */
    /* decode: 1 if the whole output is larger than the caches, so that stores
     * may bypass them; a fence follows the call */
    int stream;
    int keep; /* encode: 1 if the errors must stay as they were */
} dscomm_codec_args_t;

/* Later releases may add members at the end. */
typedef struct dscomm_codec {
    size_t size;
    const char *name; /* letters, digits, '_'; at most 15 bytes */
    int feedback; /* 1: keeps errors, unless the compressor says otherwise */
    void *user; /* passed to the functions unchanged */
    /* The default of the compressors' parameter, and its maximum: they may
     * choose any value in (0, parameter_most]. Both 0: no parameter. */
    double parameter, parameter_most;
    /* Returns the bytes of an encoded block of count elements: at most 16 times
     * DSCOMM_CODEC_BLOCK, and for a shorter block no more than for a whole
     * one. */
    size_t (*bytes)(const dscomm_codec_args_t *args, size_t count);
    /* Both or neither. measure is called for each block before any is encoded;
     * it adds to sums, which begin as zeros, what the codec needs to know of
     * values + errors (NULL: zeros). settle computes from the sums of all count
     * elements the scale, which travels with them. Without these functions the
     * scale is 0. A scale that is not finite means that an input was not
     * finite; keep is then 1 for encode. */
    void (*measure)(const dscomm_codec_args_t *args,
                    double sums[DSCOMM_CODEC_SUMS], const float *values,
                    const float *errors, size_t count);
    float (*settle)(const dscomm_codec_args_t *args,
                    const double sums[DSCOMM_CODEC_SUMS], size_t count);
    /* Writes values + errors as bytes, and stores in errors the difference
     * between the input and what the bytes represent. values NULL: zeros.
     * errors NULL: the errors are zero and are not kept. */
    void (*encode)(const dscomm_codec_args_t *args, float scale,
                   const float *values, float *errors, size_t count,
                   void *ret_bytes);
    /* Adds factor times the decoded elements to sum. The bytes come from other
     * ranks: returns -1 if they are invalid, else 0. */
    int (*accumulate)(const dscomm_codec_args_t *args, float scale,
                      float factor, const void *bytes, size_t count,
                      float *sum);
    /* Stores the decoded elements; returns as accumulate. */
    int (*decode)(const dscomm_codec_args_t *args, float scale,
                  const void *bytes, size_t count, float *ret_values);
} dscomm_codec_t;

/* Adds a codec for the rest of the process; codec is not copied and must stay
 * valid. ERR_INVALID: a required member is missing, or the name is invalid or
 * used. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_codec_register(const dscomm_codec_t *codec);

/* The codec of that name, or NULL. MT: safe. */
DSCOMM_API const dscomm_codec_t *dscomm_codec_find(const char *name);

/* The names of all codecs, separated by spaces; static. MT: safe. */
DSCOMM_API const char *dscomm_codec_names(void);

/* NULL if codec onebit has kernels for the CUDA devices of this machine, else
 * the reason why buffers on devices are compressed in host memory; static. The
 * first call loads the module cuda.so, and with it CUDA's driver. MT: safe. */
DSCOMM_API const char *dscomm_codec_device_problem(void);

#ifdef __cplusplus
}
#endif

#endif
