/* SPDX-License-Identifier: BSD-3-Clause */
/* How vector kernels are called. The including file has included vector.h of
 * lib/base and defined
 *
 *   NEXT_ROW               the row that serves buffers shorter than a vector
 *   store_past             stores to an aligned address, bypassing the cache
 *   stores_done            orders those stores before all later ones */
#ifndef LIB_KERNELS_CALL_H
#define LIB_KERNELS_CALL_H

#include "lib/reduce/kernels.h"

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)

/* The arguments of a kernel, with dest and sources in bytes, and the offset of
 * the first aligned vector. */
typedef struct {
    unsigned char *dest;
    const void *const *sources;
    size_t nsources, bytes, first;
    const double *factors;
    int past; /* the result bypasses the cache */
} fold_t;

/* Results of this size or more bypass the cache, unless the destination is also
 * a source and so is cached already. */
#define PAST_LEAST ((size_t)8 << 20)

/* Limits of averages of integers. 8-bit elements are summed in 16 bits, 16-bit
 * elements in float32; the accumulator holds the exact sum of at most
 * AVG_SOURCES elements. Division by a reciprocal is exact only for divisors
 * below AVG_DIVISOR. */
#define AVG_SOURCES(size) ((size) == 1 ? 64 : 256)
#define AVG_DIVISOR 32768

#define SOURCE(s) ((const unsigned char *)fold->sources[s])
#define FACTOR(op, s) ((op) == DSCOMM_PREMUL_SUM ? fold->factors[s] : 0)

static int fold_is_source(const void *dest, const void *const *sources,
                          size_t n)
{
    for (size_t s = 0; s < n; s++) {
        if (sources[s] == dest)
            return 1;
    }
    return 0;
}

/* True if the next row must compute this average of integers: the divisor is 1
 * or too large, or there are too many sources. */
static int is_odd_average(int dtype, size_t size, const fold_t *fold)
{
    if (dtype > DSCOMM_UINT64)
        return 0;
    return fold->nsources > AVG_SOURCES(size) || fold->factors[0] < 2 ||
           fold->factors[0] >= AVG_DIVISOR;
}

/* Fills in fold. Returns -1 if the next row must serve: the buffer is shorter
 * than a vector, the average is out of range, or a factor is NaN. size: bytes
 * of an element. */
static int fold_begin(int dtype, int op, size_t size, size_t count,
                      fold_t *fold)
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
                 !fold_is_source(fold->dest, fold->sources, fold->nsources);
    return 0;
}

/* Defines the kernel type_name, which calls function with op. Unused: a row
 * need not have every kernel. */
#define KERNEL(type, size, dtype, name, op, function)                          \
    __attribute__((unused)) static void JOINED(type, _##name)(                 \
        void *dest, const void *const *sources, size_t nsources, size_t count, \
        const double *factors)                                                 \
    {                                                                          \
        fold_t fold = {dest, sources, nsources, 0, 0, factors, 0};             \
                                                                               \
        if (fold_begin(dtype, op, size, count, &fold) == 0)                    \
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

#endif
