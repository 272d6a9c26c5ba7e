/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, sizes and numbers are ABI, so they are written out here once more; and
 * calls as text. */
#include "config.h"

#include <dscomm/backend.h>

#include <limits.h>

#include "tests/tap.h"

static const struct {
    int number;
    const char *name;
    size_t size;
    const char *ops; /* 1 for each operator, by its number, that applies */
} dtypes[] = {
    {0, "int8", 1, "111111110"},         {1, "uint8", 1, "111111110"},
    {2, "int16", 2, "111111110"},        {3, "uint16", 2, "111111110"},
    {4, "int32", 4, "111111110"},        {5, "uint32", 4, "111111110"},
    {6, "int64", 8, "111111110"},        {7, "uint64", 8, "111111110"},
    {8, "float16", 2, "111110001"},      {9, "bfloat16", 2, "111110001"},
    {10, "float32", 4, "111110001"},     {11, "float64", 8, "111110001"},
    {12, "float8_e4m3", 1, "111110001"}, {13, "float8_e5m2", 1, "111110001"},
    {14, "bool", 1, "111101110"},
};

static const char *const ops[] = {"sum",  "product", "min",  "max",       "avg",
                                  "band", "bor",     "bxor", "premul_sum"};

static const char *const colls[] = {
    "broadcast",
    "reduce",
    "all_reduce",
    "all_gather",
    "all_gather_v",
    "reduce_scatter",
    "reduce_scatter_v",
    "gather",
    "gather_v",
    "scatter",
    "scatter_v",
    "all_to_all",
    "all_to_all_v",
    "barrier",
    "send",
    "recv",
};

static const char *const no_names[] = {
    "",         "invalid", "Float32", "FLOAT32",    "float32 ",
    " float32", "float",   "float3",  "float322",   "int",
    "SUM",      "su",      "sum2",    "DSCOMM_SUM",
};

static const int no_numbers[] = {-1, 15, 16, 255, INT_MAX, INT_MIN};

#define N(array) (sizeof array / sizeof *array)

static const struct {
    dscomm_coll_args_t args;
    const char *text;
} calls[] = {
    {{.coll = DSCOMM_COLL_ALL_REDUCE,
      .dtype = DSCOMM_FLOAT32,
      .op = DSCOMM_SUM,
      .root = -1,
      .count = 5,
      .sequence = 17},
     "all_reduce(count 5, float32, sum) #17"},
    {{.coll = DSCOMM_COLL_REDUCE,
      .dtype = DSCOMM_INT8,
      .op = DSCOMM_MAX,
      .root = 0,
      .count = 0,
      .sequence = 1},
     "reduce(count 0, int8, max, root 0) #1"},
    {{.coll = DSCOMM_COLL_BARRIER, .op = -1, .root = -1, .sequence = 9},
     "barrier() #9"},
    {{.coll = DSCOMM_COLL_BARRIER,
      .op = -1,
      .root = DSCOMM_ROOT_FINALIZE,
      .sequence = 9},
     "dscomm_finalize() #9"},
    {{.coll = DSCOMM_COLL_ALL_GATHER,
      .dtype = DSCOMM_UINT8,
      .op = -1,
      .root = DSCOMM_ROOT_GROUP_NEW,
      .count = 8,
      .sequence = 2},
     "dscomm_group_new() #2"},
    {{.coll = DSCOMM_COLL_ALL_GATHER,
      .op = -1,
      .root = DSCOMM_ROOT_GROUP_SPLIT,
      .sequence = 3},
     "dscomm_group_split() #3"},
    {{.coll = DSCOMM_COLL_ALL_GATHER,
      .op = -1,
      .root = DSCOMM_ROOT_GROUP_MESH,
      .sequence = 4},
     "dscomm_group_mesh() #4"},
    {{.coll = DSCOMM_COLL_GATHER_V,
      .dtype = DSCOMM_BOOL,
      .op = -1,
      .root = 3,
      .count = 2,
      .sequence = 4},
     "gather_v(own count 2, bool, root 3) #4"},
    {{.coll = DSCOMM_COLL_ALL_TO_ALL_V,
      .dtype = DSCOMM_INT32,
      .op = -1,
      .root = -1,
      .count = 7,
      .sequence = 5},
     "all_to_all_v(own count 7, int32) #5"},
};

static void test_dtypes(void)
{
    is_int(DSCOMM_DTYPE_COUNT, N(dtypes), "number of dtypes");
    for (size_t i = 0; i < N(dtypes); i++) {
        dscomm_dtype_t dtype = (dscomm_dtype_t)dtypes[i].number, found;

        is_str(dscomm_dtype_name(dtype), dtypes[i].name, "name of %s",
               dtypes[i].name);
        is_int((long long)dscomm_dtype_size(dtype), (long long)dtypes[i].size,
               "size of %s", dtypes[i].name);
        ok(dscomm_dtype_from_name(dtypes[i].name, &found) == 0 &&
               found == dtype,
           "%s from its name", dtypes[i].name);
        for (int op = 0; op < DSCOMM_OP_COUNT; op++)
            is_int(dscomm_op_applies((dscomm_op_t)op, dtype),
                   dtypes[i].ops[op] - '0', "%s on %s", ops[op],
                   dtypes[i].name);
    }
}

static void test_ops(void)
{
    is_int(DSCOMM_OP_COUNT, N(ops), "number of operators");
    for (size_t i = 0; i < N(ops); i++) {
        dscomm_op_t op = (dscomm_op_t)i, found;

        is_str(dscomm_op_name(op), ops[i], "name of %s", ops[i]);
        ok(dscomm_op_from_name(ops[i], &found) == 0 && found == op,
           "%s from its name", ops[i]);
    }
}

static void test_colls(void)
{
    is_int(DSCOMM_COLL_COUNT, N(colls), "number of operations");
    for (size_t i = 0; i < N(colls); i++)
        is_str(dscomm_coll_name((dscomm_coll_t)i), colls[i], "name of %s",
               colls[i]);
}

static void test_strangers(void)
{
    dscomm_dtype_t dtype = DSCOMM_INT16;
    dscomm_op_t op = DSCOMM_MAX;

    for (size_t i = 0; i < N(no_names); i++) {
        is_int(dscomm_dtype_from_name(no_names[i], &dtype), -1,
               "'%s' is no dtype", no_names[i]);
        is_int(dscomm_op_from_name(no_names[i], &op), -1, "'%s' is no operator",
               no_names[i]);
    }
    is_int(dscomm_dtype_from_name(NULL, &dtype), -1, "NULL is no dtype");
    is_int(dscomm_op_from_name(NULL, &op), -1, "NULL is no operator");
    is_int(dscomm_dtype_from_name("int8", NULL), -1, "no place for a dtype");
    is_int(dscomm_op_from_name("sum", NULL), -1, "no place for an operator");
    ok(dtype == DSCOMM_INT16 && op == DSCOMM_MAX, "nothing was written");
    for (size_t i = 0; i < N(no_numbers); i++) {
        int n = no_numbers[i];

        is_str(dscomm_dtype_name((dscomm_dtype_t)n), "invalid", "dtype %d", n);
        is_int((long long)dscomm_dtype_size((dscomm_dtype_t)n), 0,
               "size of dtype %d", n);
        is_str(dscomm_op_name((dscomm_op_t)n), "invalid", "operator %d", n);
        is_int(dscomm_op_applies((dscomm_op_t)n, DSCOMM_INT8), 0,
               "operator %d applies nowhere", n);
        is_int(dscomm_op_applies(DSCOMM_SUM, (dscomm_dtype_t)n), 0,
               "nothing applies to dtype %d", n);
        if (n != 15) /* recv */
            is_str(dscomm_coll_name((dscomm_coll_t)n), "invalid",
                   "operation %d", n);
    }
    is_str(dscomm_op_name((dscomm_op_t)9), "invalid", "operator 9");
}

static void test_calls(void)
{
    char text[160];

    for (size_t i = 0; i < N(calls); i++)
        is_str(dscomm_coll_describe(&calls[i].args, text, sizeof text),
               calls[i].text, "call %zu", i);
}

int main(void)
{
    test_dtypes();
    test_ops();
    test_colls();
    test_strangers();
    test_calls();
    return tap_done();
}
