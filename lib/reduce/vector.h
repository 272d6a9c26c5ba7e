/* SPDX-License-Identifier: BSD-3-Clause */
/* Template of a row of vector kernels. The including file has included vector.h
 * of lib/base and defined the macros that call.h needs, and
 *
 *   min_x, max_x           of two vectors; NaN and -0 of floats as for MIN and
 *                          MAX
 *   trunc_f64              rounds towards zero
 *   upper_halves           for each word, the upper half of low below that of
 *                          high
 *   double_high_i16        the upper half of twice the product
 *   multiply_low           the products of the lower words of two u64v
 *   widen_f16, round_f16   a vector of codes to a pair of float32, and back
 *   load_f16, chop_f16     widen_f16 from memory; round_f16 towards zero
 *   differs                1 where two pairs differ, else 0, in 16 bits
 *
 * and MIRROR_16 (vector-float.h), if it has a shorter form. It puts the
 * functions that it needs into a table. Results are those of c.c, bit for bit,
 * because the arithmetic is the same, in the same order. */
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
