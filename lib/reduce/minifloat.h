/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of the kernels for the 16- or 8-bit float TYPE; undefines its
 * parameters. CODE is the unsigned type of its codes, KEY the signed one, and
 * TOP the largest magnitude that is no NaN. Arithmetic is done in float32;
 * minima and maxima compare codes. */

#define FOLD_SUM JOINED(fold_, TYPE)
#define FOLD_ORDER JOINED(fold_order_, TYPE)
#define ONE_CODE JOINED(one_nan_, TYPE)
#define TO_KEY JOINED(key_, TYPE)
#define FROM_KEY JOINED(code_, TYPE)
#define KEY_SHIFT JOINED(shift_, TYPE)

ALWAYS_INLINE CODE ONE_CODE(float value)
{
    const int magnitude = (1 << (8 * sizeof(CODE) - 1)) - 1;
    CODE code = JOINED(TYPE, _round)(value);

    return (code & magnitude) > TOP ? JOINED(TYPE, _round)(NAN) : code;
}

#define FOLD FOLD_SUM
#define ELEMENT CODE
#define ACCUMULATOR float
#define TAKE(op, x, factor)                                                    \
    ((op) == DSCOMM_PREMUL_SUM ? JOINED(TYPE, _widen)(x) * (factor)            \
                               : JOINED(TYPE, _widen)(x))
#define JOIN(op, a, b) ((op) == DSCOMM_PRODUCT ? (a) * (b) : (a) + (b))
#define GIVE(op, a, divisor)                                                   \
    ONE_CODE((op) == DSCOMM_AVG ? (a) / (divisor) : (a))
#include "lib/reduce/fold.h"

/* If the magnitude of negative codes is inverted, codes sort as signed
 * integers, with NaNs of either sign at both ends, and -0 below +0. Modulo
 * 2^bits the two ends are adjacent. So adding or subtracting the number of NaNs
 * moves all NaNs to one end: to the bottom for MIN, to the top for MAX. There a
 * NaN always wins. */
ALWAYS_INLINE int KEY_SHIFT(int op)
{
    const int nans = (1 << (8 * sizeof(CODE) - 1)) - 1 - TOP;
    return op == DSCOMM_MIN ? nans : -nans;
}

ALWAYS_INLINE KEY TO_KEY(int op, CODE code)
{
    const KEY magnitude = (KEY)((1 << (8 * sizeof(CODE) - 1)) - 1);
    KEY sign = (KEY)((KEY)code < 0 ? magnitude : 0);
    return (KEY)((code ^ sign) + KEY_SHIFT(op));
}

ALWAYS_INLINE CODE FROM_KEY(int op, KEY key)
{
    const KEY magnitude = (KEY)((1 << (8 * sizeof(CODE) - 1)) - 1);
    KEY code = (KEY)(key - KEY_SHIFT(op));
    return (CODE)(code ^ (code < 0 ? magnitude : 0));
}

#define FOLD FOLD_ORDER
#define ELEMENT CODE
#define ACCUMULATOR KEY
#define TAKE(op, x, factor) TO_KEY(op, x)
#define JOIN JOIN_ORDER
#define GIVE(op, a, divisor) FROM_KEY(op, a)
#include "lib/reduce/fold.h"

KERNEL(TYPE, sum, DSCOMM_SUM, FOLD_SUM)
KERNEL(TYPE, product, DSCOMM_PRODUCT, FOLD_SUM)
KERNEL(TYPE, min, DSCOMM_MIN, FOLD_ORDER)
KERNEL(TYPE, max, DSCOMM_MAX, FOLD_ORDER)
KERNEL(TYPE, avg, DSCOMM_AVG, FOLD_SUM)
KERNEL(TYPE, premul_sum, DSCOMM_PREMUL_SUM, FOLD_SUM)

#undef TYPE
#undef CODE
#undef KEY
#undef TOP
#undef FOLD_SUM
#undef FOLD_ORDER
#undef ONE_CODE
#undef TO_KEY
#undef FROM_KEY
#undef KEY_SHIFT
