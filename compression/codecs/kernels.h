/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the codecs: one row of kernels for each instruction set.
 * All rows give the same bits: the order of sums is fixed, and no product is an
 * operand of a sum, except in float64, where the product is exact. */
#ifndef COMPRESSION_KERNELS_H
#define COMPRESSION_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Number of partial sums of squares: element i counts in sum i modulo this
 * number. */
#define KERNEL_SUMS 32
/* Elements with a scale of their own in int8. */
#define KERNEL_GROUP 256
/* Most elements of which the largest can be picked. */
#define KERNEL_PICK_MOST 4096

/* Kernels accept any count and alignment, unless their comments say
 * otherwise. */
typedef struct {
    const char *name;
    /* sums[i % 32] += (x[i] + e[i])^2, in float64 */
    void (*measure)(double sums[KERNEL_SUMS], const float *x, const float *e,
                    size_t count);
    /* Writes the bits of u = x + e: 1 unless u < 0, the first element in the
     * highest bit of a byte; unused bits of the last byte are 0. Sets e = u -
     * (bit ? scale : -scale). */
    void (*sign)(const float *x, float *e, size_t count, float scale,
                 uint8_t *ret_bits);
    /* sum[i] += bit ? scale : -scale */
    void (*add_signs)(const uint8_t *bits, size_t count, float scale,
                      float *sum);
    /* values[i] = bit ? scale : -scale. stream: the stores may bypass the
     * caches and come in any order, so a fence must follow. */
    void (*put_signs)(const uint8_t *bits, size_t count, float scale,
                      int stream, float *ret_values);
    /* count <= KERNEL_GROUP. Writes the codes of u = x + e and returns their
     * scale; sets e = u - code * scale. If an element is not finite, the scale
     * is NaN and e stays. */
    float (*quantize)(const float *x, float *e, size_t count,
                      int8_t *ret_codes);
    /* sum[i] += scale * codes[i] */
    void (*add_codes)(const int8_t *codes, size_t count, float scale,
                      float *sum);
    /* e += x */
    void (*add)(const float *x, float *e, size_t count);
    /* Write u = x + e as codes of two bytes, at any address, and set e = u -
     * the value of the code. If e is NULL, u = x. */
    void (*to_half)(const float *x, float *e, size_t count, void *ret_codes);
    void (*to_bfloat)(const float *x, float *e, size_t count, void *ret_codes);
    void (*from_half)(const void *codes, size_t count, float *ret_values);
    void (*from_bfloat)(const void *codes, size_t count, float *ret_values);
    /* count <= KERNEL_PICK_MOST, 0 < k <= count. Writes the places of the k
     * largest magnitudes of u, in order. Of equal ones the first count; a NaN
     * is larger than all numbers. */
    void (*pick)(const float *u, size_t count, size_t k, uint16_t *ret_places);
} dscomm_codec_kernels_t;

extern const dscomm_codec_kernels_t dscomm_priv_codec_kernels_c;
extern const dscomm_codec_kernels_t dscomm_priv_codec_kernels_avx2;
extern const dscomm_codec_kernels_t dscomm_priv_codec_kernels_avx512;
extern const dscomm_codec_kernels_t dscomm_priv_codec_kernels_neon;

/* row() returns row index, or NULL after the last one; the other returns the
 * fastest row that this processor and DSCOMM_CPU permit. */
const dscomm_codec_kernels_t *dscomm_priv_codec_kernels_row(size_t index);
const dscomm_codec_kernels_t *dscomm_priv_codec_kernels(void);

#endif
