/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of the kernels that work in vectors of x86. The file that includes
 * it has defined
 *
 *   VECTOR                      float32 in a vector
 *   codes_t                     as many codes of 16 bits
 *   signs_t, STEP               the signs of that many elements, the first one
 *                               the lowest bit
 *   turn(signs)                 exchanges that for the order in memory, where
 *                               the first of eight is the highest bit
 *   mask_t, is_plus(v)          the signs of one vector; set if not v < 0
 *   mask_of(signs, k)           those of vector k of a step, and back
 *   signs_of(mask, k)
 *   pick(mask, scale)           scale or -scale
 *   stream_vector(at, v, whole)
 *                               stores past the caches; at is aligned to 16
 *                               bytes, and to a vector if whole is 1
 *   half_codes, half_values     a vector as codes, and back
 *   bfloat_codes, bfloat_values */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float vector_t __attribute__((vector_size(4 * VECTOR)));
typedef vector_t loose_t __attribute__((aligned(4), may_alias));
typedef codes_t loose_codes_t __attribute__((aligned(1), may_alias));
#define LOAD(at) (*(const loose_t *)(at))
#define STORE(at, v) (*(loose_t *)(at) = (v))
#define CODES(at) (*(loose_codes_t *)(uintptr_t)(at))

static signs_t signs_load(const uint8_t *bits)
{
    signs_t signs;

    memcpy(&signs, bits, sizeof signs);
    return turn(signs);
}

static size_t sign_vectors(const float *x, float *e, size_t count, float scale,
                           uint8_t *ret_bits)
{
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        signs_t signs = 0;

        for (int k = 0; k < STEP / VECTOR; k++) {
            float *at = e + i + k * VECTOR;
            vector_t u = LOAD(x + i + k * VECTOR) + LOAD(at);
            mask_t mask = is_plus(u);

            signs |= signs_of(mask, k);
            STORE(at, u - pick(mask, scale));
        }
        signs = turn(signs);
        memcpy(ret_bits + i / 8, &signs, sizeof signs);
    }
    return i;
}

static size_t add_vectors(const uint8_t *bits, size_t count, float scale,
                          float *sum)
{
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        signs_t signs = signs_load(bits + i / 8);

        for (int k = 0; k < STEP / VECTOR; k++) {
            float *at = sum + i + k * VECTOR;

            STORE(at, LOAD(at) + pick(mask_of(signs, k), scale));
        }
    }
    return i;
}

static size_t put_streaming(const uint8_t *bits, size_t count, float scale,
                            float *ret_values)
{
    int whole = (uintptr_t)ret_values % sizeof(vector_t) == 0;
    size_t i = 0;

    for (; i + STEP <= count; i += STEP) {
        signs_t signs = signs_load(bits + i / 8);

        for (int k = 0; k < STEP / VECTOR; k++)
            stream_vector(ret_values + i + k * VECTOR,
                          pick(mask_of(signs, k), scale), whole);
    }
    return i;
}

/* A buffer of malloc() has 16-byte alignment, and that is enough to stream. */
static size_t put_vectors(const uint8_t *bits, size_t count, float scale,
                          int stream, float *ret_values)
{
    size_t i = 0;

    if (stream && (uintptr_t)ret_values % 16 == 0)
        return put_streaming(bits, count, scale, ret_values);
    for (; i + STEP <= count; i += STEP) {
        signs_t signs = signs_load(bits + i / 8);

        for (int k = 0; k < STEP / VECTOR; k++)
            STORE(ret_values + i + k * VECTOR, pick(mask_of(signs, k), scale));
    }
    return i;
}

#define CASTS(format)                                                          \
    static size_t to_##format##_vectors(const float *x, float *e,              \
                                        size_t count, char *ret_codes)         \
    {                                                                          \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + VECTOR <= count && !e; i += VECTOR)                         \
            CODES(ret_codes + 2 * i) = format##_codes(LOAD(x + i));            \
        for (; i + VECTOR <= count; i += VECTOR) {                             \
            vector_t u = LOAD(x + i) + LOAD(e + i);                            \
            codes_t codes = format##_codes(u);                                 \
                                                                               \
            CODES(ret_codes + 2 * i) = codes;                                  \
            STORE(e + i, u - format##_values(codes));                          \
        }                                                                      \
        return i;                                                              \
    }                                                                          \
    static size_t from_##format##_vectors(const char *codes, size_t count,     \
                                          float *ret_values)                   \
    {                                                                          \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + VECTOR <= count; i += VECTOR)                               \
            STORE(ret_values + i, format##_values(CODES(codes + 2 * i)));      \
        return i;                                                              \
    }

CASTS(half)
CASTS(bfloat)

#include "compression/codecs/kernels-body.h"
