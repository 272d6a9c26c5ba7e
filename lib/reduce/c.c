/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels in plain C, for every dtype and operator. Every other
 * variant must give the same bits, so products and sums must not be contracted:
 * compile with -ffp-contract=off. If both operands of a sum are NaN, processor
 * and compiler choose which of them becomes the result; so a NaN result is
 * always replaced by the quiet NaN without a sign. Minima and maxima of 16 and
 * 8 bits need no arithmetic and keep the NaN that they find. */
#include "config.h"

#include "lib/base/lanes.h"
#include "lib/base/minifloat.h"
#include "lib/reduce/kernels.h"
#include "lib/reduce/table.h"

#include <math.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Element i of the destination depends on element i of the sources only, so a
 * loop may have LANES although the destination may be one of the sources. */

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)

/* The arguments of a kernel, and the first element of the current block. */
typedef struct {
    void *dest;
    const void *const *sources;
    size_t nsources, count, first;
    const double *factors;
} fold_t;

/* bytes of accumulators; fits into the first-level cache */
#define FOLD_BYTES 2048
#define FACTOR(op, s) ((op) == DSCOMM_PREMUL_SUM ? fold->factors[s] : 0)
#define DIVISOR(op) ((op) == DSCOMM_AVG ? fold->factors[0] : 1)

/* TAKE and GIVE of folds that convert nothing. */
#define TAKE_AS_IS(op, x, factor) (x)
#define GIVE_AS_IS(op, a, divisor) (a)

#define ONE_NAN(a) ((a) != (a) ? NAN : (a))

#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define JOIN_ORDER(op, a, b) ((op) == DSCOMM_MIN ? MIN_OF(a, b) : MAX_OF(a, b))

/* Defines the kernel type_name, which calls function with op. */
#define KERNEL(type, name, op, function)                                       \
    static void JOINED(type, _##name)(void *dest, const void *const *sources,  \
                                      size_t nsources, size_t count,           \
                                      const double *factors)                   \
    {                                                                          \
        fold_t fold = {dest, sources, nsources, count, 0, factors};            \
                                                                               \
        function(op, &fold);                                                   \
    }

#define BITS 8
#include "lib/reduce/integer.h"

#define BITS 16
#include "lib/reduce/integer.h"

#define BITS 32
#include "lib/reduce/integer.h"

#define BITS 64
#include "lib/reduce/integer.h"

#define TYPE float32
#define REAL float
#define WORD uint32_t
#include "lib/reduce/real.h"

#define TYPE float64
#define REAL double
#define WORD uint64_t
#include "lib/reduce/real.h"

#define TYPE float16
#define CODE uint16_t
#define KEY int16_t
#define TOP FLOAT16_TOP
#include "lib/reduce/minifloat.h"

#define TYPE bfloat16
#define CODE uint16_t
#define KEY int16_t
#define TOP BFLOAT16_TOP
#include "lib/reduce/minifloat.h"

#define TYPE float8_e4m3
#define CODE uint8_t
#define KEY int8_t
#define TOP FLOAT8_E4M3_TOP
#include "lib/reduce/minifloat.h"

#define TYPE float8_e5m2
#define CODE uint8_t
#define KEY int8_t
#define TOP FLOAT8_E5M2_TOP
#include "lib/reduce/minifloat.h"

/* Booleans: any byte in, 0 or 1 out. */
#define FOLD fold_bool
#define ELEMENT uint8_t
#define ACCUMULATOR uint8_t
#define TAKE(op, x, factor) ((x) != 0)
#define JOIN(op, a, b)                                                         \
    ((op) == DSCOMM_BAND  ? (a) & (b)                                          \
     : (op) == DSCOMM_BOR ? (a) | (b)                                          \
                          : (a) ^ (b))
#define GIVE GIVE_AS_IS
#include "lib/reduce/fold.h"

KERNEL(bool, band, DSCOMM_BAND, fold_bool)
KERNEL(bool, bor, DSCOMM_BOR, fold_bool)
KERNEL(bool, bxor, DSCOMM_BXOR, fold_bool)

const dscomm_reduce_fn dscomm_priv_kernels_c[DSCOMM_DTYPE_COUNT]
                                            [DSCOMM_OP_COUNT] = KERNELS_TABLE;
