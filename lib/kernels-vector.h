/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of a row of kernels in vectors. The file that includes it has
 * included vector.h and defined
 *
 *   NEXT_ROW               the row that serves what is shorter than a vector
 *   min_x, max_x           of two vectors; of floats with NaN and -0 as MIN and
 *                          MAX have them
 *   trunc_f64              towards zero
 *   upper_halves           for each word, that of low below that of high
 *   double_high_i16        the upper half of twice the product
 *   multiply_low           the lower words of two u64v, made 64 bits
 *   widen_f16, round_f16   a vector of codes as a pair of float32, and back
 *   load_f16, chop_f16     widen_f16 from memory; round_f16 towards zero
 *   differs                1 where two pairs are not equal, in 16 bits, else 0
 *   store_past             to an aligned address, past the cache
 *   stores_done            orders those stores before all that follow
 *
 * and MIRROR_16 (kernels-vector-float.h), where it has a shorter one; it makes
 * a table of the functions that it likes. Results are those of
 * kernels-c.c, bit for bit: arithmetic is the same, and in the same order. */
#ifndef LIB_KERNELS_VECTOR_H
#define LIB_KERNELS_VECTOR_H

#include "lib/kernels-table.h"
#include "lib/kernels.h"
#include "lib/minifloat.h"

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)

/* What a kernel was called with, dest and sources counted in bytes, and where
 * its first aligned vector is. */
typedef struct {
    unsigned char *dest;
    const void *const *sources;
    size_t nsources, bytes, first;
    const double *factors;
    int past; /* the result goes past the cache */
} fold_t;

/* Results from here on do not stay in a cache, unless they were there before
 * as a source. */
#define PAST_LEAST ((size_t)8 << 20)

/* Averages of 8 bits are found in 16, those of 16 in float32, which hold the
 * sum of so many sources; and a divisor below that is what all of them can be
 * multiplied by the reciprocal of. */
#define AVG_SOURCES(size) ((size) == 1 ? 64 : 256)
#define AVG_DIVISOR 32768

#define SOURCE(s) ((const unsigned char *)fold->sources[s])
#define FACTOR(op, s) ((op) == DSCOMM_PREMUL_SUM ? fold->factors[s] : 0)

static int is_source(const void *dest, const void *const *sources, size_t n)
{
    for (size_t s = 0; s < n; s++) {
        if (sources[s] == dest)
            return 1;
    }
    return 0;
}

/* Whether an average of integers is left to the next row: that of one source,
 * and rare ones. */
static int is_odd_average(int dtype, size_t size, const fold_t *fold)
{
    if (dtype > DSCOMM_UINT64)
        return 0;
    return fold->nsources > AVG_SOURCES(size) || fold->factors[0] < 2 ||
           fold->factors[0] >= AVG_DIVISOR;
}

/* -1 where the next row serves: with what is shorter than a vector, and in
 * rare cases, of which one is a factor that is NaN. size: of an element. */
static int begin(int dtype, int op, size_t size, size_t count, fold_t *fold)
{
    size_t before = (uintptr_t)fold->dest % VECTOR_BYTES;

    fold->bytes = count * size;
    if (fold->bytes < VECTOR_BYTES)
        return -1;
    if (op == DSCOMM_AVG && is_odd_average(dtype, size, fold))
        return -1;
    for (size_t s = 0; op == DSCOMM_PREMUL_SUM && s < fold->nsources; s++) {
        if (fold->factors[s] != fold->factors[s])
            return -1;
    }
    fold->first = (VECTOR_BYTES - before) & ~(size - 1);
    fold->past = fold->bytes >= PAST_LEAST && before % size == 0 &&
                 !is_source(fold->dest, fold->sources, fold->nsources);
    return 0;
}

/* The function type_name, which calls function with op. A row need not have
 * all. */
#define KERNEL(type, size, dtype, name, op, function)                          \
    __attribute__((unused)) static void JOINED(type, _##name)(                 \
        void *dest, const void *const *sources, size_t nsources, size_t count, \
        const double *factors)                                                 \
    {                                                                          \
        fold_t fold = {dest, sources, nsources, 0, 0, factors, 0};             \
                                                                               \
        if (begin(dtype, op, size, count, &fold) == 0)                         \
            function(op, &fold);                                               \
        else                                                                   \
            NEXT_ROW[dtype][op](dest, sources, nsources, count, factors);      \
    }

ALWAYS_INLINE void put(unsigned char *at, u8v bytes, int past)
{
    if (past)
        store_past(at, bytes);
    else
        *(u8m *)at = bytes;
}

#define GIVE_AS_IS(op, a, divisor) (a)

#define BITS 8
#include "lib/kernels-vector-integer.h"

#define BITS 16
#include "lib/kernels-vector-integer.h"

#define BITS 32
#include "lib/kernels-vector-integer.h"

#define BITS 64
#include "lib/kernels-vector-integer.h"

#include "lib/kernels-vector-average.h"
#include "lib/kernels-vector-float.h"

/* Booleans: any byte in, 0 or 1 out. */
#define FOLD fold_bool
#define ACCUMULATOR u8v
#define FACTOR_TYPE int
#define TAKE(op, at, factor) min_u8(LOAD(u8, at), (u8v){0} + 1)
#define JOIN(op, a, b)                                                         \
    ((op) == DSCOMM_BAND  ? (a) & (b)                                          \
     : (op) == DSCOMM_BOR ? (a) | (b)                                          \
                          : (a) ^ (b))
#define GIVE GIVE_AS_IS
#include "lib/kernels-vector-fold.h"

KERNEL(bool, 1, DSCOMM_BOOL, band, DSCOMM_BAND, fold_bool)
KERNEL(bool, 1, DSCOMM_BOOL, bor, DSCOMM_BOR, fold_bool)
KERNEL(bool, 1, DSCOMM_BOOL, bxor, DSCOMM_BXOR, fold_bool)

#endif
