/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of kernels as a table, from functions that are named by dtype and
 * operator. A function that serves several operators has the name of the
 * first. */
#ifndef LIB_KERNELS_TABLE_H
#define LIB_KERNELS_TABLE_H

/* own: the type itself; wrapping: the unsigned type of the same width. */
#define INTEGER_ROW(own, wrapping)                                             \
    {                                                                          \
        [DSCOMM_SUM] = wrapping##_sum, [DSCOMM_PRODUCT] = wrapping##_product,  \
        [DSCOMM_MIN] = own##_min, [DSCOMM_MAX] = own##_max,                    \
        [DSCOMM_AVG] = own##_avg, [DSCOMM_BAND] = wrapping##_band,             \
        [DSCOMM_BOR] = wrapping##_bor, [DSCOMM_BXOR] = wrapping##_bxor,        \
    }
#define FLOAT_ROW(type)                                                        \
    {                                                                          \
        [DSCOMM_SUM] = type##_sum, [DSCOMM_PRODUCT] = type##_product,          \
        [DSCOMM_MIN] = type##_min, [DSCOMM_MAX] = type##_max,                  \
        [DSCOMM_AVG] = type##_avg, [DSCOMM_PREMUL_SUM] = type##_premul_sum,    \
    }
#define BOOL_ROW                                                               \
    {                                                                          \
        [DSCOMM_SUM] = bool_bor, [DSCOMM_PRODUCT] = bool_band,                 \
        [DSCOMM_MIN] = bool_band, [DSCOMM_MAX] = bool_bor,                     \
        [DSCOMM_BAND] = bool_band, [DSCOMM_BOR] = bool_bor,                    \
        [DSCOMM_BXOR] = bool_bxor,                                             \
    }

#define KERNELS_TABLE                                                          \
    {                                                                          \
        [DSCOMM_INT8] = INTEGER_ROW(int8, uint8),                              \
        [DSCOMM_UINT8] = INTEGER_ROW(uint8, uint8),                            \
        [DSCOMM_INT16] = INTEGER_ROW(int16, uint16),                           \
        [DSCOMM_UINT16] = INTEGER_ROW(uint16, uint16),                         \
        [DSCOMM_INT32] = INTEGER_ROW(int32, uint32),                           \
        [DSCOMM_UINT32] = INTEGER_ROW(uint32, uint32),                         \
        [DSCOMM_INT64] = INTEGER_ROW(int64, uint64),                           \
        [DSCOMM_UINT64] = INTEGER_ROW(uint64, uint64),                         \
        [DSCOMM_FLOAT16] = FLOAT_ROW(float16),                                 \
        [DSCOMM_BFLOAT16] = FLOAT_ROW(bfloat16),                               \
        [DSCOMM_FLOAT32] = FLOAT_ROW(float32),                                 \
        [DSCOMM_FLOAT64] = FLOAT_ROW(float64),                                 \
        [DSCOMM_FLOAT8_E4M3] = FLOAT_ROW(float8_e4m3),                         \
        [DSCOMM_FLOAT8_E5M2] = FLOAT_ROW(float8_e5m2),                         \
        [DSCOMM_BOOL] = BOOL_ROW,                                              \
    }

#endif
