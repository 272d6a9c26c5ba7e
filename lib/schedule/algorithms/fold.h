/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces the number of ranks to a power of two: the first ranks form pairs,
 * and the even rank of each pair acts for both. */
#ifndef LIB_ALGORITHMS_FOLD_H
#define LIB_ALGORITHMS_FOLD_H

/* The first 2 * extra ranks form pairs. The even ranks of these, and all other
 * ranks, have a number below power. */
typedef struct {
    int power, extra;
    int number; /* -1: another rank acts for this one */
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

/* The rank with that number, and the first rank that it acts for. It acts for
 * all ranks before those of the next number. */
static inline int fold_rank(const fold_t *fold, int number)
{
    return number < fold->extra ? 2 * number : number + fold->extra;
}

static inline int fold_paired(const fold_t *fold, int rank)
{
    return rank < 2 * fold->extra;
}

#endif
