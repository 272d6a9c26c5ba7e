/* SPDX-License-Identifier: BSD-3-Clause */
/* A power of two of ranks out of any number of them: the first ones are paired,
 * and the even one of each pair stands for both. */
#ifndef LIB_ALGORITHMS_FOLD_H
#define LIB_ALGORITHMS_FOLD_H

/* Of so many ranks the first 2 * extra are paired; the even ones of those, and
 * all others, have a number below power. */
typedef struct {
    int power, extra;
    int number; /* -1: another rank stands for this one */
} fold_t;

static inline fold_t fold(int rank, int ranks)
{
    fold_t fold = {.power = 1};

    while (fold.power <= ranks / 2)
        fold.power *= 2;
    fold.extra = ranks - fold.power;
    if (rank >= 2 * fold.extra)
        fold.number = rank - fold.extra;
    else
        fold.number = rank % 2 ? -1 : rank / 2;
    return fold;
}

/* The rank that has the number, and the first of those it stands for; all
 * before the next number's are its. */
static inline int fold_rank(const fold_t *fold, int number)
{
    return number < fold->extra ? 2 * number : number + fold->extra;
}

static inline int fold_paired(const fold_t *fold, int rank)
{
    return rank < 2 * fold->extra;
}

#endif
