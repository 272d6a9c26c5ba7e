/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of the kernels for REAL (named TYPE, as wide as the integer WORD), a
 * floating-point type of the processor; undefines all three. */

#define FOLD_REAL JOINED(fold_, TYPE)
#define MIN_REAL JOINED(min_, TYPE)
#define MAX_REAL JOINED(max_, TYPE)

/* Both ways round, a minimum differs only where its operands are equal (then
 * in the sign of zeros, of which - wins an or) or where one is NaN (then one
 * of the two is that NaN, and its exponent and some of its mantissa survive an
 * or). */
ALWAYS_INLINE REAL MIN_REAL(REAL a, REAL b)
{
    union {
        REAL value;
        WORD bits;
    } one = {MIN_OF(a, b)}, other = {MIN_OF(b, a)};
    one.bits |= other.bits;
    return one.value;
}

/* The same, but of zeros + wins. */
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
