/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of the vector kernels for integers of BITS bits (which it
 * undefines), except averages. Sums, products and bitwise operators of signed
 * integers are computed as unsigned ones, which wrap around. */

#define SIGNED JOINED(i, BITS)
#define UNSIGNED JOINED(u, BITS)
#define FOLD_SIGNED JOINED(fold_i, BITS)
#define FOLD_UNSIGNED JOINED(fold_u, BITS)
#define SIGNED_DTYPE JOINED(DSCOMM_INT, BITS)
#define UNSIGNED_DTYPE JOINED(DSCOMM_UINT, BITS)

#define FOLD FOLD_UNSIGNED
#define ACCUMULATOR JOINED(UNSIGNED, v)
#define TAKE(op, at, factor) (*(const JOINED(UNSIGNED, m) *)(at))
#define JOIN(op, a, b)                                                         \
    ((op) == DSCOMM_SUM       ? (a) + (b)                                      \
     : (op) == DSCOMM_PRODUCT ? (a) * (b)                                      \
     : (op) == DSCOMM_BAND    ? (a) & (b)                                      \
     : (op) == DSCOMM_BOR     ? (a) | (b)                                      \
     : (op) == DSCOMM_BXOR    ? (a) ^ (b)                                      \
     : (op) == DSCOMM_MIN     ? JOINED(min_, UNSIGNED)(a, b)                   \
                              : JOINED(max_, UNSIGNED)(a, b))
#include "lib/reduce/vector-fold.h"

#define FOLD FOLD_SIGNED
#define ACCUMULATOR JOINED(SIGNED, v)
#define TAKE(op, at, factor) (*(const JOINED(SIGNED, m) *)(at))
#define JOIN(op, a, b)                                                         \
    ((op) == DSCOMM_MIN ? JOINED(min_, SIGNED)(a, b)                           \
                        : JOINED(max_, SIGNED)(a, b))
#include "lib/reduce/vector-fold.h"

#define UNSIGNED_KERNEL(name, op)                                              \
    KERNEL(JOINED(uint, BITS), BITS / 8, UNSIGNED_DTYPE, name, op,             \
           FOLD_UNSIGNED)
#define SIGNED_KERNEL(name, op)                                                \
    KERNEL(JOINED(int, BITS), BITS / 8, SIGNED_DTYPE, name, op, FOLD_SIGNED)

UNSIGNED_KERNEL(sum, DSCOMM_SUM)
UNSIGNED_KERNEL(product, DSCOMM_PRODUCT)
UNSIGNED_KERNEL(min, DSCOMM_MIN)
UNSIGNED_KERNEL(max, DSCOMM_MAX)
UNSIGNED_KERNEL(band, DSCOMM_BAND)
UNSIGNED_KERNEL(bor, DSCOMM_BOR)
UNSIGNED_KERNEL(bxor, DSCOMM_BXOR)
SIGNED_KERNEL(min, DSCOMM_MIN)
SIGNED_KERNEL(max, DSCOMM_MAX)

#undef BITS
#undef SIGNED
#undef UNSIGNED
#undef FOLD_SIGNED
#undef FOLD_UNSIGNED
#undef SIGNED_DTYPE
#undef UNSIGNED_DTYPE
#undef UNSIGNED_KERNEL
#undef SIGNED_KERNEL
