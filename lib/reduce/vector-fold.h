/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of one fold over any number of sources, in vectors;
 * kernels-vector.h includes it once for every kind of accumulator. It takes,
 * and undefines,
 *
 *   FOLD                  what the function is called
 *   ACCUMULATOR           type: what a vector's elements are summed in
 *   FACTOR_TYPE           of an accumulator's elements; int if not defined
 *   TAKE(op, at, factor)  the elements of a vector as an accumulator
 *   JOIN(op, a, b)        two accumulators made one
 *   GIVE(op, a, divisor)  an accumulator as elements again; if not defined it
 *                         is that already
 *   DIVISOR_TYPE, DIVISOR(op)
 *                         what GIVE divides by, made once a call; a FACTOR_TYPE
 *                         where they are not defined
 *
 * op is a constant wherever a fold is called. Accumulators stay in registers
 * while the sources are gone through. */

#define FOLD_ONE JOINED(FOLD, _one)
#define FOLD_MORE JOINED(FOLD, _more)
#define FOLD_MANY JOINED(FOLD, _many)

#ifndef FACTOR_TYPE
#define FACTOR_TYPE int
#endif

#ifndef GIVE
#define GIVE(op, a, divisor) (a)
#endif

#ifndef DIVISOR_TYPE
#define DIVISOR_TYPE FACTOR_TYPE
#define DIVISOR(op) ((op) == DSCOMM_AVG ? fold->factors[0] : 1)
#endif

/* Number of accumulators in use at once: 4, 2 or 1. */
#define FOLD_WIDTH                                                             \
    (sizeof(ACCUMULATOR) < 4 * VECTOR_BYTES                                    \
         ? (size_t)(4 * VECTOR_BYTES / sizeof(ACCUMULATOR))                    \
         : 1)

ALWAYS_INLINE u8v FOLD_ONE(int op, const fold_t *fold, size_t at,
                           DIVISOR_TYPE divisor)
{
    FACTOR_TYPE factor = FACTOR(op, 0);
    ACCUMULATOR sum = TAKE(op, SOURCE(0) + at, factor);

    (void)factor, (void)divisor;
    for (size_t s = 1; s < fold->nsources; s++) {
        factor = FACTOR(op, s);
        sum = JOIN(op, sum, TAKE(op, SOURCE(s) + at, factor));
    }
    return (u8v)GIVE(op, sum, divisor);
}

/* Folds FOLD_WIDTH vectors at offset at. past: the stores bypass the cache. */
ALWAYS_INLINE void FOLD_MORE(int op, const fold_t *fold, size_t at, int past,
                             DIVISOR_TYPE divisor)
{
    const size_t v = FOLD_WIDTH > 1 ? VECTOR_BYTES : 0;
    const size_t w = FOLD_WIDTH > 2 ? 2 * v : 0;
    const unsigned char *from = SOURCE(0) + at;
    FACTOR_TYPE factor = FACTOR(op, 0);
    ACCUMULATOR a = TAKE(op, from, factor), b = TAKE(op, from + v, factor);
    ACCUMULATOR c = TAKE(op, from + w, factor);
    ACCUMULATOR d = TAKE(op, from + w + v, factor);

    (void)factor, (void)divisor;
    for (size_t s = 1; s < fold->nsources; s++) {
        from = SOURCE(s) + at;
        factor = FACTOR(op, s);
        a = JOIN(op, a, TAKE(op, from, factor));
        if (FOLD_WIDTH > 1)
            b = JOIN(op, b, TAKE(op, from + v, factor));
        if (FOLD_WIDTH > 2) {
            c = JOIN(op, c, TAKE(op, from + w, factor));
            d = JOIN(op, d, TAKE(op, from + w + v, factor));
        }
    }
    put(fold->dest + at, (u8v)GIVE(op, a, divisor), past);
    if (FOLD_WIDTH > 1)
        put(fold->dest + at + v, (u8v)GIVE(op, b, divisor), past);
    if (FOLD_WIDTH > 2) {
        put(fold->dest + at + w, (u8v)GIVE(op, c, divisor), past);
        put(fold->dest + at + w + v, (u8v)GIVE(op, d, divisor), past);
    }
}

/* Folds from offset at on, as long as there are FOLD_WIDTH vectors. Returns the
 * offset of the rest. */
ALWAYS_INLINE size_t FOLD_MANY(int op, const fold_t *fold, size_t at,
                               DIVISOR_TYPE divisor)
{
    const size_t step = FOLD_WIDTH * VECTOR_BYTES;

    if (fold->past) {
        for (; fold->bytes - at >= step; at += step)
            FOLD_MORE(op, fold, at, 1, divisor);
        stores_done();
    } else {
        for (; fold->bytes - at >= step; at += step)
            FOLD_MORE(op, fold, at, 0, divisor);
    }
    return at;
}

/* The first and the last vector may overlap the others, which are aligned in
 * the destination. They are computed first, because the destination may be one
 * of the sources, and stored last. */
ALWAYS_INLINE void FOLD(int op, const fold_t *fold)
{
    const size_t end = fold->bytes - VECTOR_BYTES;
    const DIVISOR_TYPE divisor = DIVISOR(op);
    u8v first = FOLD_ONE(op, fold, 0, divisor);
    u8v last = FOLD_ONE(op, fold, end, divisor);
    size_t at = FOLD_MANY(op, fold, fold->first, divisor);

    for (; at < end; at += VECTOR_BYTES)
        put(fold->dest + at, FOLD_ONE(op, fold, at, divisor), 0);
    put(fold->dest, first, 0);
    put(fold->dest + end, last, 0);
}

#undef FOLD_ONE
#undef FOLD_MORE
#undef FOLD_MANY
#undef FOLD_WIDTH
#undef FOLD
#undef ACCUMULATOR
#undef FACTOR_TYPE
#undef DIVISOR_TYPE
#undef DIVISOR
#undef TAKE
#undef JOIN
#undef GIVE
