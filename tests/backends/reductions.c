/* SPDX-License-Identifier: BSD-3-Clause */
/* Every dtype with every operator, in every collective that reduces. */
#include "config.h"

#include "tests/backends/conform.h"

static const int colls[] = {
    DSCOMM_COLL_ALL_REDUCE,
    DSCOMM_COLL_REDUCE,
    DSCOMM_COLL_REDUCE_SCATTER,
    DSCOMM_COLL_REDUCE_SCATTER_V,
};

static const size_t counts[] = {1, 3, 17, 64, 300, 9001};

static void run_counts(dscomm_dtype_t dtype, dscomm_op_t op)
{
    for (size_t c = 0; c < CONFORM_LENGTH(colls); c++) {
        exchange_t x = {
            .group = my.group, .coll = colls[c], .dtype = dtype, .op = op};

        if (op == DSCOMM_PREMUL_SUM && x.coll == DSCOMM_COLL_REDUCE_SCATTER_V)
            continue;
        /* The longest size is used in all_reduce only, because its expected
         * results take time to compute. */
        for (size_t i = 0; i < CONFORM_LENGTH(counts) - (c > 0); i++) {
            x.count = conform_scale(counts[i]);
            x.root = (int)(i + c) % my.ranks;
            x.seed = i * 100 + (size_t)dtype;
            x.in_place = (i + c + (size_t)dtype) % 2 != 0;
            x.offset = i % 3 == 2 ? 3 : 0;
            exchange_run(&x);
        }
    }
}

static void run_op(int op)
{
    for (int d = 0; d < DSCOMM_DTYPE_COUNT; d++)
        if (dscomm_op_applies((dscomm_op_t)op, (dscomm_dtype_t)d))
            run_counts((dscomm_dtype_t)d, (dscomm_op_t)op);
}

/* Which operators apply to which dtypes, as types.h says. */
static void test_applies(void)
{
    for (int d = 0; d < DSCOMM_DTYPE_COUNT; d++) {
        int is_float = pattern_is_float((dscomm_dtype_t)d);
        int is_bool = d == DSCOMM_BOOL;

        for (int op = 0; op < DSCOMM_OP_COUNT; op++) {
            int bits = op >= DSCOMM_BAND && op <= DSCOMM_BXOR;
            int want = op == DSCOMM_PREMUL_SUM ? is_float
                       : op == DSCOMM_AVG      ? !is_bool
                       : bits                  ? !is_float
                                               : 1;

            check(dscomm_op_applies((dscomm_op_t)op, (dscomm_dtype_t)d) == want,
                  "%s on %s: want %d", dscomm_op_name((dscomm_op_t)op),
                  dscomm_dtype_name((dscomm_dtype_t)d), want);
        }
    }
}

/* Operators that do not apply are refused, and nothing is started. */
static void test_refused(void)
{
    unsigned char in[64] = {0}, out[64] = {0};
    exchange_t x = {.group = my.group,
                    .coll = DSCOMM_COLL_ALL_REDUCE,
                    .dtype = DSCOMM_INT32,
                    .count = 5};

    CHECK_FAILS(dscomm_all_reduce(my.group, in, out, 1, DSCOMM_FLOAT32,
                                  DSCOMM_BAND, NULL),
                DSCOMM_ERR_INVALID);
    check_sentence("band", "operator named");
    check_sentence("float32", "dtype named");
    CHECK_FAILS(
        dscomm_all_reduce(my.group, in, out, 1, DSCOMM_BOOL, DSCOMM_AVG, NULL),
        DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_reduce(my.group, in, out, 1, DSCOMM_FLOAT8_E4M3,
                              DSCOMM_BXOR, 0, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_all_reduce_premul_sum(my.group, in, out, 1, DSCOMM_INT32,
                                             2.0, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_all_reduce(my.group, in, out, 1, DSCOMM_FLOAT32,
                                  (dscomm_op_t)77, NULL),
                DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_all_reduce(my.group, in, out, 1, (dscomm_dtype_t)15,
                                  DSCOMM_SUM, NULL),
                DSCOMM_ERR_INVALID);
    exchange_run(&x);
}

static const conform_case_t cases[] = {
    {"sum", run_op, DSCOMM_SUM},
    {"product", run_op, DSCOMM_PRODUCT},
    {"min", run_op, DSCOMM_MIN},
    {"max", run_op, DSCOMM_MAX},
    {"avg", run_op, DSCOMM_AVG},
    {"band", run_op, DSCOMM_BAND},
    {"bor", run_op, DSCOMM_BOR},
    {"bxor", run_op, DSCOMM_BXOR},
    {"premul_sum", run_op, DSCOMM_PREMUL_SUM},
    {NULL, NULL, 0},
};
static const conform_test_t tests[] = {
    {"which operator applies to which dtype", test_applies},
    {"operators that do not apply are refused", test_refused},
    {NULL, NULL},
};
const conform_area_t conform_reductions = {"reductions", cases, tests};
