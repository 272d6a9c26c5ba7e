/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of the kernels that use vectors of x86. The including file has
 * defined
 *
 *   VECTOR                      number of float32 in a vector
 *   codes_t                     the type of as many codes of 16 bits
 *   signs_t, STEP               the signs of STEP elements; the first one is
 * the lowest bit turn(signs)                 converts between that order and
 * the one in memory, where the first of eight is the highest bit mask_t,
 * is_plus(v)          the signs of one vector; set unless v < 0 mask_of(signs,
 * k)           the signs of vector k of a step as a mask signs_of(mask, k) the
 * inverse pick(mask, scale)           scale or -scale stream_vector(at, v,
 * whole) stores past the caches; at is aligned to 16 bytes, and to a vector if
 * whole is 1 half_codes, half_values     converts a vector to codes, and back
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

/* Memory of malloc() is aligned to 16 bytes, which streaming stores accept. */
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
