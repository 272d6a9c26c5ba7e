/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, sizes and kinds of element types, operators and operations. */
#include "config.h"

#include <dscomm/hook.h>
#include <dscomm/types.h>

#include <string.h>

/* Operators that are defined on a kind of element type. */
enum {
    FOLDS = 1 << DSCOMM_SUM | 1 << DSCOMM_PRODUCT | 1 << DSCOMM_MIN |
            1 << DSCOMM_MAX,
    BITS = 1 << DSCOMM_BAND | 1 << DSCOMM_BOR | 1 << DSCOMM_BXOR,
    ON_INTEGERS = FOLDS | BITS | 1 << DSCOMM_AVG,
    ON_FLOATS = FOLDS | 1 << DSCOMM_AVG | 1 << DSCOMM_PREMUL_SUM,
    ON_BOOL = FOLDS | BITS
};

static const struct {
    const char *name;
    size_t size;
    unsigned ops;
} dtypes[DSCOMM_DTYPE_COUNT] = {
    [DSCOMM_INT8] = {"int8", 1, ON_INTEGERS},
    [DSCOMM_UINT8] = {"uint8", 1, ON_INTEGERS},
    [DSCOMM_INT16] = {"int16", 2, ON_INTEGERS},
    [DSCOMM_UINT16] = {"uint16", 2, ON_INTEGERS},
    [DSCOMM_INT32] = {"int32", 4, ON_INTEGERS},
    [DSCOMM_UINT32] = {"uint32", 4, ON_INTEGERS},
    [DSCOMM_INT64] = {"int64", 8, ON_INTEGERS},
    [DSCOMM_UINT64] = {"uint64", 8, ON_INTEGERS},
    [DSCOMM_FLOAT16] = {"float16", 2, ON_FLOATS},
    [DSCOMM_BFLOAT16] = {"bfloat16", 2, ON_FLOATS},
    [DSCOMM_FLOAT32] = {"float32", 4, ON_FLOATS},
    [DSCOMM_FLOAT64] = {"float64", 8, ON_FLOATS},
    [DSCOMM_FLOAT8_E4M3] = {"float8_e4m3", 1, ON_FLOATS},
    [DSCOMM_FLOAT8_E5M2] = {"float8_e5m2", 1, ON_FLOATS},
    [DSCOMM_BOOL] = {"bool", 1, ON_BOOL},
};

static const char *const op_names[DSCOMM_OP_COUNT] = {
    [DSCOMM_SUM] = "sum",
    [DSCOMM_PRODUCT] = "product",
    [DSCOMM_MIN] = "min",
    [DSCOMM_MAX] = "max",
    [DSCOMM_AVG] = "avg",
    [DSCOMM_BAND] = "band",
    [DSCOMM_BOR] = "bor",
    [DSCOMM_BXOR] = "bxor",
    [DSCOMM_PREMUL_SUM] = "premul_sum",
};

static const char *const coll_names[DSCOMM_COLL_COUNT] = {
    [DSCOMM_COLL_BROADCAST] = "broadcast",
    [DSCOMM_COLL_REDUCE] = "reduce",
    [DSCOMM_COLL_ALL_REDUCE] = "all_reduce",
    [DSCOMM_COLL_ALL_GATHER] = "all_gather",
    [DSCOMM_COLL_ALL_GATHER_V] = "all_gather_v",
    [DSCOMM_COLL_REDUCE_SCATTER] = "reduce_scatter",
    [DSCOMM_COLL_REDUCE_SCATTER_V] = "reduce_scatter_v",
    [DSCOMM_COLL_GATHER] = "gather",
    [DSCOMM_COLL_GATHER_V] = "gather_v",
    [DSCOMM_COLL_SCATTER] = "scatter",
    [DSCOMM_COLL_SCATTER_V] = "scatter_v",
    [DSCOMM_COLL_ALL_TO_ALL] = "all_to_all",
    [DSCOMM_COLL_ALL_TO_ALL_V] = "all_to_all_v",
    [DSCOMM_COLL_BARRIER] = "barrier",
    [DSCOMM_COLL_SEND] = "send",
    [DSCOMM_COLL_RECV] = "recv",
};

/* Through unsigned, so that negative numbers are out of range too. */
static int is_dtype(dscomm_dtype_t dtype)
{
    return (unsigned)dtype < DSCOMM_DTYPE_COUNT;
}

static int is_op(dscomm_op_t op)
{
    return (unsigned)op < DSCOMM_OP_COUNT;
}

size_t dscomm_dtype_size(dscomm_dtype_t dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

const char *dscomm_dtype_name(dscomm_dtype_t dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : "invalid";
}

const char *dscomm_op_name(dscomm_op_t op)
{
    return is_op(op) ? op_names[op] : "invalid";
}

const char *dscomm_coll_name(dscomm_coll_t coll)
{
    return (unsigned)coll < DSCOMM_COLL_COUNT ? coll_names[coll] : "invalid";
}

int dscomm_dtype_from_name(const char *name, dscomm_dtype_t *ret_dtype)
{
    for (int i = 0; name && ret_dtype && i < DSCOMM_DTYPE_COUNT; i++) {
        if (strcmp(name, dtypes[i].name) == 0) {
            *ret_dtype = (dscomm_dtype_t)i;
            return 0;
        }
    }
    return -1;
}

int dscomm_op_from_name(const char *name, dscomm_op_t *ret_op)
{
    for (int i = 0; name && ret_op && i < DSCOMM_OP_COUNT; i++) {
        if (strcmp(name, op_names[i]) == 0) {
            *ret_op = (dscomm_op_t)i;
            return 0;
        }
    }
    return -1;
}

int dscomm_op_applies(dscomm_op_t op, dscomm_dtype_t dtype)
{
    return is_op(op) && is_dtype(dtype) && (dtypes[dtype].ops >> op & 1);
}
