/* SPDX-License-Identifier: BSD-3-Clause */
/* How kernels in vectors are called. The file that includes it has included
 * vector.h and defined
 *
 *   NEXT_ROW               the row that serves what is shorter than a vector
 *   store_past             to an aligned address, past the cache
 *   stores_done            orders those stores before all that follow */
#ifndef LIB_KERNELS_CALL_H
#define LIB_KERNELS_CALL_H

#include "lib/reduce/kernels.h"

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

static int fold_is_source(const void *dest, const void *const *sources,
                          size_t n)
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

/* The function type_name, which calls function with op. A row need not have
 * all. */
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
