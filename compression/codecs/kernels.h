/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the codecs, a row for each instruction set. All rows give
 * the same bits: no product feeds a sum, but in float64 where it is exact, and
 * the order of sums is fixed. */
#ifndef COMPRESSION_KERNELS_H
#define COMPRESSION_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Sums of squares: of element i in sum i modulo this many. */
#define KERNEL_SUMS 32
/* Elements with a scale of their own in int8. */
#define KERNEL_GROUP 256
/* Elements of which the largest are picked. */
#define KERNEL_PICK_MOST 4096

/* Any count and alignment, unless they say otherwise. */
typedef struct {
    const char *name;
    /* sums[i % 32] += (x[i] + e[i])^2, in float64 */
    void (*measure)(double sums[KERNEL_SUMS], const float *x, const float *e,
                    size_t count);
    /* Bits of u = x + e, the first one the highest of its byte, 1 unless u < 0;
     * e = u - (bit ? scale : -scale). The last byte is filled with zeros. */
    void (*sign)(const float *x, float *e, size_t count, float scale,
                 uint8_t *ret_bits);
    /* sum[i] += bit ? scale : -scale */
    void (*add_signs)(const uint8_t *bits, size_t count, float scale,
                      float *sum);
    /* The same, stored; stream: around the caches where that is possible, in
     * any order, so that a fence must follow. */
    void (*put_signs)(const uint8_t *bits, size_t count, float scale,
                      int stream, float *ret_values);
    /* count <= KERNEL_GROUP: codes of u = x + e, and their scale; e = u - code
     * * scale. Where one is not finite the scale is NaN, and e stays. */
    float (*quantize)(const float *x, float *e, size_t count,
                      int8_t *ret_codes);
    /* sum[i] += scale * codes[i] */
    void (*add_codes)(const int8_t *codes, size_t count, float scale,
                      float *sum);
    /* e += x */
    void (*add)(const float *x, float *e, size_t count);
    /* u = x + e as that dtype, two bytes each, which may begin at any address;
     * e = u - what these say. e NULL: u = x. */
    void (*to_half)(const float *x, float *e, size_t count, void *ret_codes);
    void (*to_bfloat)(const float *x, float *e, size_t count, void *ret_codes);
    void (*from_half)(const void *codes, size_t count, float *ret_values);
    void (*from_bfloat)(const void *codes, size_t count, float *ret_values);
    /* count <= KERNEL_PICK_MOST, 0 < k <= count: the places of the k largest
     * magnitudes of u, in order; of equal ones the first, and a NaN is larger
     * than all. */
    void (*pick)(const float *u, size_t count, size_t k, uint16_t *ret_places);
} dscomm_codec_kernels_t;

extern const dscomm_codec_kernels_t dscomm_priv_codec_kernels_c;
extern const dscomm_codec_kernels_t dscomm_priv_codec_kernels_avx2;
extern const dscomm_codec_kernels_t dscomm_priv_codec_kernels_avx512;
extern const dscomm_codec_kernels_t dscomm_priv_codec_kernels_neon;

/* Row index, or NULL behind the last one; and the fastest that this processor
 * has, DSCOMM_CPU permitting. */
const dscomm_codec_kernels_t *dscomm_priv_codec_kernels_row(size_t index);
const dscomm_codec_kernels_t *dscomm_priv_codec_kernels(void);

#endif
