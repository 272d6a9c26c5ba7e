/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles, element types and reduction operators, which all other headers use.
 */
#ifndef DSCOMM_TYPES_H
#define DSCOMM_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DSCOMM_API __attribute__((visibility("default")))
#define DSCOMM_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define DSCOMM_API
#define DSCOMM_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Ranks that communicate. The world is the group that dscomm_init() returns. */
typedef struct dscomm_group dscomm_group_t;
/* An operation that was started and may still run. */
typedef struct dscomm_work dscomm_work_t;
/* A key-value store through which ranks find each other. */
typedef struct dscomm_store dscomm_store_t;

/* Element types. Values are ABI: append only. */
typedef enum {
    DSCOMM_INT8 = 0,
    DSCOMM_UINT8 = 1,
    DSCOMM_INT16 = 2,
    DSCOMM_UINT16 = 3,
    DSCOMM_INT32 = 4,
    DSCOMM_UINT32 = 5,
    DSCOMM_INT64 = 6,
    DSCOMM_UINT64 = 7,
    DSCOMM_FLOAT16 = 8, /* IEEE 754 binary16 */
    DSCOMM_BFLOAT16 = 9, /* upper half of a binary32 */
    DSCOMM_FLOAT32 = 10, /* IEEE 754 binary32 */
    DSCOMM_FLOAT64 = 11, /* IEEE 754 binary64 */
    /* OCP E4M3: no infinities, NaN 0x7f/0xff, max 448 */
    DSCOMM_FLOAT8_E4M3 = 12,
    DSCOMM_FLOAT8_E5M2 = 13, /* OCP: IEEE-like, infinities, max 57344 */
    DSCOMM_BOOL = 14 /* one byte; 0 is false, all else is true */
} dscomm_dtype_t;
#define DSCOMM_DTYPE_COUNT 15

/* Reduction operators. Values are ABI: append only.
 *
 * SUM, PRODUCT  integers wrap around (two's complement); BOOL: or, and
 * MIN, MAX      a NaN operand makes the result NaN; -0 is less than +0;
 *               BOOL: and, or
 * AVG           the sum divided by the group's size; for integers the exact
 *               sum in 64 bits, truncated towards zero; not for BOOL
 * BAND BOR BXOR integers and BOOL only
 * PREMUL_SUM    every input times the rank's own factor, then SUM; floating
 *               point only; called through the _premul_sum functions
 *
 * A result too large for a float is infinity, or NaN in FLOAT8_E4M3, which has
 * no infinity (what rounds to 448 is 448: up to 464, as in PyTorch). A NaN that
 * arithmetic gives is the quiet one without a sign: 0x7fc00000 in FLOAT32,
 * 0x7e00 in FLOAT16, 0x7fc0 in BFLOAT16, 0x7ff8000000000000 in FLOAT64, 0x7f in
 * FLOAT8_E4M3, 0x7e in FLOAT8_E5M2. So do MIN and MAX of 32 and 64 bits. */
typedef enum {
    DSCOMM_SUM = 0,
    DSCOMM_PRODUCT = 1,
    DSCOMM_MIN = 2,
    DSCOMM_MAX = 3,
    DSCOMM_AVG = 4,
    DSCOMM_BAND = 5,
    DSCOMM_BOR = 6,
    DSCOMM_BXOR = 7,
    DSCOMM_PREMUL_SUM = 8,
    DSCOMM_OP_FORCE_INT = 0x7fffffff /* room for dscomm_op_create() */
} dscomm_op_t;
#define DSCOMM_OP_COUNT 9 /* built-in ones */

/* Time-outs are in milliseconds; 0 does not wait, and DSCOMM_TIMEOUT_DEFAULT is
 * the time-out of the group or the store. */
#define DSCOMM_TIMEOUT_DEFAULT (-1)
/* No deadline; accepted only by calls that mention it. */
#define DSCOMM_TIMEOUT_NONE (-2)

#define DSCOMM_ANY_SOURCE (-1)
#define DSCOMM_ANY_TAG (-1)
/* Colour of a rank that joins no group, see dscomm_group_split(). */
#define DSCOMM_NO_COLOR (-1)

/* Bytes of one element; 0 for an invalid dtype. MT: safe. */
DSCOMM_API size_t dscomm_dtype_size(dscomm_dtype_t dtype);

/* "float32", "sum": the lower-case name, or "invalid"; static. The name of a
 * user-defined operator lives as long as the operator. MT: safe. */
DSCOMM_API const char *dscomm_dtype_name(dscomm_dtype_t dtype);
DSCOMM_API const char *dscomm_op_name(dscomm_op_t op);

/* The inverse: 0 and *ret_x, or -1 if there is no such dtype or built-in
 * operator. MT: safe. */
DSCOMM_API int dscomm_dtype_from_name(const char *name,
                                      dscomm_dtype_t *ret_dtype);
DSCOMM_API int dscomm_op_from_name(const char *name, dscomm_op_t *ret_op);

/* 1 if op is defined on dtype, else 0. MT: safe. */
DSCOMM_API int dscomm_op_applies(dscomm_op_t op, dscomm_dtype_t dtype);

#ifdef __cplusplus
}
#endif

#endif
