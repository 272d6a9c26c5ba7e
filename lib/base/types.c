/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types: names, sizes, and the operators that apply. */
#include "config.h"

#include "lib/base/types.h"

#include <dscomm/hook.h>
#include <string.h>

/* Bits of dtypes. */
#define INTEGERS 0x00ff
#define FLOATS 0x3f00
#define BOOLEAN 0x4000
#define EVERY (INTEGERS | FLOATS | BOOLEAN)

const uint8_t dscomm_priv_element[DSCOMM_DTYPE_COUNT] = {
    [DSCOMM_INT8] = 1,        [DSCOMM_UINT8] = 1,       [DSCOMM_INT16] = 2,
    [DSCOMM_UINT16] = 2,      [DSCOMM_INT32] = 4,       [DSCOMM_UINT32] = 4,
    [DSCOMM_INT64] = 8,       [DSCOMM_UINT64] = 8,      [DSCOMM_FLOAT16] = 2,
    [DSCOMM_BFLOAT16] = 2,    [DSCOMM_FLOAT32] = 4,     [DSCOMM_FLOAT64] = 8,
    [DSCOMM_FLOAT8_E4M3] = 1, [DSCOMM_FLOAT8_E5M2] = 1, [DSCOMM_BOOL] = 1,
};

const uint16_t dscomm_priv_applies[DSCOMM_OP_COUNT] = {
    [DSCOMM_SUM] = EVERY,
    [DSCOMM_PRODUCT] = EVERY,
    [DSCOMM_MIN] = EVERY,
    [DSCOMM_MAX] = EVERY,
    [DSCOMM_AVG] = INTEGERS | FLOATS,
    [DSCOMM_BAND] = INTEGERS | BOOLEAN,
    [DSCOMM_BOR] = INTEGERS | BOOLEAN,
    [DSCOMM_BXOR] = INTEGERS | BOOLEAN,
    [DSCOMM_PREMUL_SUM] = FLOATS,
};

static const char *const dtype_names[DSCOMM_DTYPE_COUNT] = {
    [DSCOMM_INT8] = "int8",
    [DSCOMM_UINT8] = "uint8",
    [DSCOMM_INT16] = "int16",
    [DSCOMM_UINT16] = "uint16",
    [DSCOMM_INT32] = "int32",
    [DSCOMM_UINT32] = "uint32",
    [DSCOMM_INT64] = "int64",
    [DSCOMM_UINT64] = "uint64",
    [DSCOMM_FLOAT16] = "float16",
    [DSCOMM_BFLOAT16] = "bfloat16",
    [DSCOMM_FLOAT32] = "float32",
    [DSCOMM_FLOAT64] = "float64",
    [DSCOMM_FLOAT8_E4M3] = "float8_e4m3",
    [DSCOMM_FLOAT8_E5M2] = "float8_e5m2",
    [DSCOMM_BOOL] = "bool",
};

size_t dscomm_dtype_size(dscomm_dtype_t dtype)
{
    return dscomm_priv_element_of(dtype);
}

const char *dscomm_dtype_name(dscomm_dtype_t dtype)
{
    return (unsigned)dtype < DSCOMM_DTYPE_COUNT ? dtype_names[dtype]
                                                : "invalid";
}

const char *dscomm_coll_name(dscomm_coll_t coll)
{
    return dscomm_priv_coll((int)coll)->name;
}

int dscomm_priv_name_find(const char *const *names, int count, const char *name)
{
    for (int i = 0; name && i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

int dscomm_dtype_from_name(const char *name, dscomm_dtype_t *ret_dtype)
{
    const int found =
        dscomm_priv_name_find(dtype_names, DSCOMM_DTYPE_COUNT, name);

    if (found < 0 || !ret_dtype)
        return -1;
    *ret_dtype = (dscomm_dtype_t)found;
    return 0;
}
