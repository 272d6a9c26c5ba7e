/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of the kernels for REAL, a floating-point type of the processor.
 * TYPE is its name and WORD the integer of the same size. Undefines all
 * three. */

#define FOLD_REAL JOINED(fold_, TYPE)
#define MIN_REAL JOINED(min_, TYPE)
#define MAX_REAL JOINED(max_, TYPE)

/* Computes the minimum in both orders of the operands, and combines the bits by
 * an or. The two results differ only if the operands are equal, then at most in
 * the sign of zero, and the or gives -0; or if one is NaN. In that case one
 * result is that NaN, and the or keeps its exponent and a non-zero mantissa. */
ALWAYS_INLINE REAL MIN_REAL(REAL a, REAL b)
{
    union {
        REAL value;
        WORD bits;
    } one = {MIN_OF(a, b)}, other = {MIN_OF(b, a)};
    one.bits |= other.bits;
    return one.value;
}

/* The same for the maximum; of two zeros it gives +0. */
ALWAYS_INLINE REAL MAX_REAL(REAL a, REAL b)
{
    const WORD sign = (WORD)1 << (8 * sizeof(WORD) - 1);
    union {
        REAL value;
        WORD bits;
    } one = {MAX_OF(a, b)}, other = {MAX_OF(b, a)};
    one.bits = ((one.bits ^ sign) | (other.bits ^ sign)) ^ sign;
    return one.value;
}

#define FOLD FOLD_REAL
#define ELEMENT REAL
#define ACCUMULATOR REAL
#define TAKE(op, x, factor) ((op) == DSCOMM_PREMUL_SUM ? (x) * (factor) : (x))
#define JOIN(op, a, b)                                                         \
    ((op) == DSCOMM_PRODUCT ? (a) * (b)                                        \
     : (op) == DSCOMM_MIN   ? MIN_REAL(a, b)                                   \
     : (op) == DSCOMM_MAX   ? MAX_REAL(a, b)                                   \
                            : (a) + (b))
#define GIVE(op, a, divisor)                                                   \
    ((op) == DSCOMM_AVG ? ONE_NAN((a) / (divisor)) : ONE_NAN(a))
#include "lib/reduce/fold.h"

KERNEL(TYPE, sum, DSCOMM_SUM, FOLD_REAL)
KERNEL(TYPE, product, DSCOMM_PRODUCT, FOLD_REAL)
KERNEL(TYPE, min, DSCOMM_MIN, FOLD_REAL)
KERNEL(TYPE, max, DSCOMM_MAX, FOLD_REAL)
KERNEL(TYPE, avg, DSCOMM_AVG, FOLD_REAL)
KERNEL(TYPE, premul_sum, DSCOMM_PREMUL_SUM, FOLD_REAL)

#undef REAL
#undef TYPE
#undef WORD
#undef FOLD_REAL
#undef MIN_REAL
#undef MAX_REAL
