/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of the kernels for integers of BITS bits (which it undefines),
 * signed and unsigned. Sums, products and bitwise operators of signed integers
 * are computed as unsigned ones, which wrap around. */

#define SIGNED JOINED(JOINED(int, BITS), _t)
#define UNSIGNED JOINED(JOINED(uint, BITS), _t)
#define FOLD_SIGNED JOINED(fold_int, BITS)
#define FOLD_UNSIGNED JOINED(fold_uint, BITS)
#define FOLD_SIGNED_MEAN JOINED(fold_mean_int, BITS)
#define FOLD_UNSIGNED_MEAN JOINED(fold_mean_uint, BITS)

/* Without 1u, the product of two 16-bit numbers would be computed as a signed
 * int and could overflow. */
#define JOIN_UNSIGNED(op, a, b)                                                \
    ((op) == DSCOMM_SUM       ? (a) + (b)                                      \
     : (op) == DSCOMM_PRODUCT ? 1u * (a) * (b)                                 \
     : (op) == DSCOMM_BAND    ? (a) & (b)                                      \
     : (op) == DSCOMM_BOR     ? (a) | (b)                                      \
     : (op) == DSCOMM_BXOR    ? (a) ^ (b)                                      \
                              : JOIN_ORDER(op, a, b))

#define FOLD FOLD_UNSIGNED
#define ELEMENT UNSIGNED
#define ACCUMULATOR UNSIGNED
#define TAKE TAKE_AS_IS
#define JOIN JOIN_UNSIGNED
#define GIVE GIVE_AS_IS
#include "lib/reduce/fold.h"

#define FOLD FOLD_SIGNED
#define ELEMENT SIGNED
#define ACCUMULATOR SIGNED
#define TAKE TAKE_AS_IS
#define JOIN JOIN_ORDER
#define GIVE GIVE_AS_IS
#include "lib/reduce/fold.h"

/* AVG. Below 64 bits, a double holds any sum exactly (of up to 2^21 sources).
 * The quotient is rounded, but never up to an integer, because it is at least 1
 * / divisor away from the next one. The compiler can make vectors of this
 * division, which it cannot of an integer division. If the divisor is at least
 * the number of sources, the result fits into the type. */
#define JOIN_MEAN(op, a, b) ((a) + (b))
#if BITS == 64
#define GIVE_SIGNED(op, a, divisor) ((int64_t)(a) / (int64_t)(divisor))
#define GIVE_UNSIGNED(op, a, divisor) ((a) / (divisor))
#define MEAN uint64_t
#elif BITS == 32
#define GIVE_SIGNED(op, a, divisor) ((int32_t)((a) / (divisor)))
#define GIVE_UNSIGNED(op, a, divisor) ((uint32_t)((a) / (divisor)))
#define MEAN double
#else
#define GIVE_SIGNED(op, a, divisor) ((int32_t)((a) / (divisor)))
#define GIVE_UNSIGNED GIVE_SIGNED
#define MEAN double
#endif

#define FOLD FOLD_UNSIGNED_MEAN
#define ELEMENT UNSIGNED
#define ACCUMULATOR MEAN
#define TAKE TAKE_AS_IS
#define JOIN JOIN_MEAN
#define GIVE GIVE_UNSIGNED
#include "lib/reduce/fold.h"

#define FOLD FOLD_SIGNED_MEAN
#define ELEMENT SIGNED
#define ACCUMULATOR MEAN
#define TAKE TAKE_AS_IS
#define JOIN JOIN_MEAN
#define GIVE GIVE_SIGNED
#include "lib/reduce/fold.h"

#define UNSIGNED_KERNEL(name, op)                                              \
    KERNEL(JOINED(uint, BITS), name, op, FOLD_UNSIGNED)
UNSIGNED_KERNEL(sum, DSCOMM_SUM)
UNSIGNED_KERNEL(product, DSCOMM_PRODUCT)
UNSIGNED_KERNEL(min, DSCOMM_MIN)
UNSIGNED_KERNEL(max, DSCOMM_MAX)
UNSIGNED_KERNEL(band, DSCOMM_BAND)
UNSIGNED_KERNEL(bor, DSCOMM_BOR)
UNSIGNED_KERNEL(bxor, DSCOMM_BXOR)
KERNEL(JOINED(uint, BITS), avg, DSCOMM_AVG, FOLD_UNSIGNED_MEAN)
KERNEL(JOINED(int, BITS), min, DSCOMM_MIN, FOLD_SIGNED)
KERNEL(JOINED(int, BITS), max, DSCOMM_MAX, FOLD_SIGNED)
KERNEL(JOINED(int, BITS), avg, DSCOMM_AVG, FOLD_SIGNED_MEAN)

#undef BITS
#undef SIGNED
#undef UNSIGNED
#undef FOLD_SIGNED
#undef FOLD_UNSIGNED
#undef FOLD_SIGNED_MEAN
#undef FOLD_UNSIGNED_MEAN
#undef JOIN_UNSIGNED
#undef JOIN_MEAN
#undef GIVE_SIGNED
#undef GIVE_UNSIGNED
#undef MEAN
#undef UNSIGNED_KERNEL
