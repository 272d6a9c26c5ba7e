/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of one fold over any number of sources; kernels-c.c includes it once for
 * every pair of element and accumulator. It takes, and undefines,
 *
 *   FOLD                  what the function is called
 *   ELEMENT, ACCUMULATOR  types
 *   TAKE(op, x, factor)   an element as an accumulator
 *   JOIN(op, a, b)        two accumulators made one
 *   GIVE(op, a, divisor)  an accumulator as an element
 *
 * op is a constant wherever a fold is called, so each call becomes loops of its
 * own, in which nothing is left of the other operators. */

#define FOLD_ELEMENT JOINED(FOLD, _element)
#define FOLD_DIRECT JOINED(FOLD, _direct)
#define FOLD_BLOCK JOINED(FOLD, _block)

/* An element at any address, behind a pointer that may be the destination's. */
typedef ELEMENT FOLD_ELEMENT __attribute__((aligned(1), may_alias));

/* A few sources at once; n, how many, is a constant. */
ALWAYS_INLINE void FOLD_DIRECT(int op, int n, FOLD_ELEMENT *dest,
                               const void *const *sources, size_t count,
                               const double *factors)
{
    const FOLD_ELEMENT *a = sources[0], *b = sources[n > 1 ? 1 : 0];
    const FOLD_ELEMENT *c = sources[n > 2 ? 2 : 0], *d = sources[n > 3 ? 3 : 0];
    ACCUMULATOR fa = FACTOR(op, 0), fb = FACTOR(op, n > 1 ? 1 : 0);
    ACCUMULATOR fc = FACTOR(op, n > 2 ? 2 : 0), fd = FACTOR(op, n > 3 ? 3 : 0);
    ACCUMULATOR divisor = DIVISOR(op);

    (void)fa, (void)fb, (void)fc, (void)fd, (void)divisor;
    LANES
    for (size_t i = 0; i < count; i++) {
        ACCUMULATOR sum = TAKE(op, a[i], fa);
        if (n > 1)
            sum = JOIN(op, sum, TAKE(op, b[i], fb));
        if (n > 2)
            sum = JOIN(op, sum, TAKE(op, c[i], fc));
        if (n > 3)
            sum = JOIN(op, sum, TAKE(op, d[i], fd));
        dest[i] = GIVE(op, sum, divisor);
    }
}

/* All sources, for the few elements from first that fit a block of accumulators. */
ALWAYS_INLINE void FOLD_BLOCK(int op, FOLD_ELEMENT *dest,
                              const void *const *sources, size_t nsources,
                              size_t first, size_t count, const double *factors)
{
    ACCUMULATOR sums[FOLD_BYTES / sizeof(ACCUMULATOR)];
    ACCUMULATOR divisor = DIVISOR(op);
    const FOLD_ELEMENT *x = (const FOLD_ELEMENT *)sources[0] + first;
    ACCUMULATOR factor = FACTOR(op, 0);

    (void)factor, (void)divisor;
    for (size_t i = 0; i < count; i++)
        sums[i] = TAKE(op, x[i], factor);
    for (size_t s = 1; s < nsources; s++) {
        x = (const FOLD_ELEMENT *)sources[s] + first;
        factor = FACTOR(op, s);
        LANES
        for (size_t i = 0; i < count; i++)
            sums[i] = JOIN(op, sums[i], TAKE(op, x[i], factor));
    }
    LANES
    for (size_t i = 0; i < count; i++)
        dest[first + i] = GIVE(op, sums[i], divisor);
}

ALWAYS_INLINE void FOLD(int op, void *dest, const void *const *sources,
                        size_t nsources, size_t count, const double *factors)
{
    const size_t block = FOLD_BYTES / sizeof(ACCUMULATOR);

    if (nsources == 2) {
        FOLD_DIRECT(op, 2, dest, sources, count, factors);
    } else if (nsources == 3) {
        FOLD_DIRECT(op, 3, dest, sources, count, factors);
    } else if (nsources == 4) {
        FOLD_DIRECT(op, 4, dest, sources, count, factors);
    } else {
        for (size_t first = 0; first < count; first += block)
            FOLD_BLOCK(op, dest, sources, nsources, first,
                       count - first < block ? count - first : block, factors);
    }
}

#undef FOLD_ELEMENT
#undef FOLD_DIRECT
#undef FOLD_BLOCK
#undef FOLD
#undef ELEMENT
#undef ACCUMULATOR
#undef TAKE
#undef JOIN
#undef GIVE
