/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of one fold over any number of sources; c.c includes it once for
 * every pair of element and accumulator. It takes, and undefines,
 *
 *   FOLD                  the name of the function
 *   ELEMENT, ACCUMULATOR  types
 *   TAKE(op, x, factor)   converts an element to an accumulator
 *   JOIN(op, a, b)        combines two accumulators
 *   GIVE(op, a, divisor)  converts an accumulator to an element
 *
 * op is a constant in every call of a fold, so the compiler makes separate
 * loops for each operator. */

#define FOLD_ELEMENT JOINED(FOLD, _element)
#define FOLD_STEP JOINED(FOLD, _step)
#define FOLD_LAST JOINED(FOLD, _last)

/* Operands that one loop reads at once, including the partial sums. Loops that
 * convert elements have more to do, so they read fewer. */
#define FOLD_MOST (sizeof(ELEMENT) == sizeof(ACCUMULATOR) ? 4 : 2)
#define FOLD_BLOCK (FOLD_BYTES / sizeof(ACCUMULATOR))

/* An element at any address, through a pointer that may alias the
 * destination. */
typedef ELEMENT FOLD_ELEMENT __attribute__((aligned(1), may_alias));

/* Combines n sources, from number s on, with the partial sums (held) or with
 * nothing, and stores the result in the destination (last) or in sums. All
 * arguments but s are constants. */
ALWAYS_INLINE void FOLD_STEP(int op, const fold_t *fold, int held, size_t s,
                             size_t n, int last, ACCUMULATOR *sums)
{
    const size_t t = n > 1 ? s + 1 : s, u = n > 2 ? s + 2 : s;
    const size_t v = n > 3 ? s + 3 : s;
    const FOLD_ELEMENT *a =
        (const FOLD_ELEMENT *)fold->sources[s] + fold->first;
    const FOLD_ELEMENT *b =
        (const FOLD_ELEMENT *)fold->sources[t] + fold->first;
    const FOLD_ELEMENT *c =
        (const FOLD_ELEMENT *)fold->sources[u] + fold->first;
    const FOLD_ELEMENT *d =
        (const FOLD_ELEMENT *)fold->sources[v] + fold->first;
    FOLD_ELEMENT *dest = (FOLD_ELEMENT *)fold->dest + fold->first;
    ACCUMULATOR fa = FACTOR(op, s), fb = FACTOR(op, t);
    ACCUMULATOR fc = FACTOR(op, u), fd = FACTOR(op, v);
    ACCUMULATOR divisor = DIVISOR(op);

    (void)fa, (void)fb, (void)fc, (void)fd, (void)divisor;
    LANES
    for (size_t i = 0; i < fold->count; i++) {
        ACCUMULATOR sum = TAKE(op, a[i], fa);

        if (held)
            sum = JOIN(op, sums[i], sum);
        if (n > 1)
            sum = JOIN(op, sum, TAKE(op, b[i], fb));
        if (n > 2)
            sum = JOIN(op, sum, TAKE(op, c[i], fc));
        if (n > 3)
            sum = JOIN(op, sum, TAKE(op, d[i], fd));
        if (last)
            dest[i] = GIVE(op, sum, divisor);
        else
            sums[i] = sum;
    }
}

/* The last step: combines the remaining sources, at most `most` of them. */
ALWAYS_INLINE void FOLD_LAST(int op, const fold_t *fold, int held, size_t s,
                             size_t most, ACCUMULATOR *sums)
{
    size_t n = fold->nsources - s;

    if (n == 1)
        FOLD_STEP(op, fold, held, s, 1, 1, sums);
    else if (n == 2 && most >= 2)
        FOLD_STEP(op, fold, held, s, 2, 1, sums);
    else if (n == 3 && most >= 3)
        FOLD_STEP(op, fold, held, s, 3, 1, sums);
    else if (most >= 4)
        FOLD_STEP(op, fold, held, s, 4, 1, sums);
}

ALWAYS_INLINE void FOLD(int op, fold_t *fold)
{
    const size_t count = fold->count, most = FOLD_MOST;
    ACCUMULATOR sums[FOLD_BLOCK];
    size_t s;

    if (fold->nsources <= most) {
        FOLD_LAST(op, fold, 0, 0, most, sums);
        return;
    }
    for (; fold->first < count; fold->first += FOLD_BLOCK) {
        fold->count = MIN_OF(count - fold->first, FOLD_BLOCK);
        FOLD_STEP(op, fold, 0, 0, most, 0, sums);
        for (s = most; fold->nsources - s >= most; s += most - 1)
            FOLD_STEP(op, fold, 1, s, most - 1, 0, sums);
        FOLD_LAST(op, fold, 1, s, most - 1, sums);
    }
}

#undef FOLD_ELEMENT
#undef FOLD_STEP
#undef FOLD_LAST
#undef FOLD_MOST
#undef FOLD_BLOCK
#undef FOLD
#undef ELEMENT
#undef ACCUMULATOR
#undef TAKE
#undef JOIN
#undef GIVE
