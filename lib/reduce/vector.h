/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of a row of kernels in vectors. The file that includes it has
 * included vector.h and defined what kernels-call.h asks for, and
 *
 *   min_x, max_x           of two vectors; of floats with NaN and -0 as MIN and
 *                          MAX have them
 *   trunc_f64              towards zero
 *   upper_halves           for each word, that of low below that of high
 *   double_high_i16        the upper half of twice the product
 *   multiply_low           the lower words of two u64v, made 64 bits
 *   widen_f16, round_f16   a vector of codes as a pair of float32, and back
 *   load_f16, chop_f16     widen_f16 from memory; round_f16 towards zero
 *   differs                1 where two pairs are not equal, in 16 bits, else 0
 *
 * and MIRROR_16 (kernels-vector-float.h), where it has a shorter one; it makes
 * a table of the functions that it likes. Results are those of
 * kernels-c.c, bit for bit: arithmetic is the same, and in the same order. */
#ifndef LIB_KERNELS_VECTOR_H
#define LIB_KERNELS_VECTOR_H

#include "lib/base/minifloat.h"
#include "lib/reduce/call.h"
#include "lib/reduce/table.h"

#define BITS 8
#include "lib/reduce/vector-integer.h"

#define BITS 16
#include "lib/reduce/vector-integer.h"

#define BITS 32
#include "lib/reduce/vector-integer.h"

#define BITS 64
#include "lib/reduce/vector-integer.h"

#include "lib/reduce/vector-average.h"
#include "lib/reduce/vector-float.h"

/* Booleans: any byte in, 0 or 1 out. */
#define FOLD fold_bool
#define ACCUMULATOR u8v
#define TAKE(op, at, factor) min_u8(LOAD(u8, at), (u8v){0} + 1)
#define JOIN(op, a, b)                                                         \
    ((op) == DSCOMM_BAND  ? (a) & (b)                                          \
     : (op) == DSCOMM_BOR ? (a) | (b)                                          \
                          : (a) ^ (b))
#include "lib/reduce/vector-fold.h"

KERNEL(bool, 1, DSCOMM_BOOL, band, DSCOMM_BAND, fold_bool)
KERNEL(bool, 1, DSCOMM_BOOL, bor, DSCOMM_BOR, fold_bool)
KERNEL(bool, 1, DSCOMM_BOOL, bxor, DSCOMM_BXOR, fold_bool)

#endif
