/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's datatypes and operators.
 *
 * MPI's own operators are used only if they give the results that the library
 * promises: for integers, bools, and sums and products of float32 and float64.
 * But Open MPI 4.1 with AVX saturates sums of short integers, and MPI does not
 * define minimum and maximum of NaN and -0; for these, operators are made here
 * that call the library's kernels. Sums of shorter floats are rounded once,
 * after all inputs. An operator of two operands cannot do that, so MPI does not
 * reduce these types. */
#include "config.h"

#include "backends/mpi/impl.h"

const MPI_Datatype engine_types[DSCOMM_DTYPE_COUNT] = {
    [DSCOMM_INT8] = MPI_INT8_T,         [DSCOMM_UINT8] = MPI_UINT8_T,
    [DSCOMM_INT16] = MPI_INT16_T,       [DSCOMM_UINT16] = MPI_UINT16_T,
    [DSCOMM_INT32] = MPI_INT32_T,       [DSCOMM_UINT32] = MPI_UINT32_T,
    [DSCOMM_INT64] = MPI_INT64_T,       [DSCOMM_UINT64] = MPI_UINT64_T,
    [DSCOMM_FLOAT16] = MPI_UINT16_T,    [DSCOMM_BFLOAT16] = MPI_UINT16_T,
    [DSCOMM_FLOAT32] = MPI_FLOAT,       [DSCOMM_FLOAT64] = MPI_DOUBLE,
    [DSCOMM_FLOAT8_E4M3] = MPI_UINT8_T, [DSCOMM_FLOAT8_E5M2] = MPI_UINT8_T,
    [DSCOMM_BOOL] = MPI_UINT8_T,
};

static const MPI_Op of_integers[DSCOMM_OP_COUNT] = {
    [DSCOMM_SUM] = MPI_SUM,
    [DSCOMM_PRODUCT] = MPI_PROD,
    [DSCOMM_MIN] = MPI_MIN,
    [DSCOMM_MAX] = MPI_MAX,
    [DSCOMM_AVG] = MPI_OP_NULL,
    [DSCOMM_BAND] = MPI_BAND,
    [DSCOMM_BOR] = MPI_BOR,
    [DSCOMM_BXOR] = MPI_BXOR,
    [DSCOMM_PREMUL_SUM] = MPI_OP_NULL,
};
static const MPI_Op of_truth[DSCOMM_OP_COUNT] = {
    [DSCOMM_SUM] = MPI_LOR,
    [DSCOMM_PRODUCT] = MPI_LAND,
    [DSCOMM_MIN] = MPI_LAND,
    [DSCOMM_MAX] = MPI_LOR,
    [DSCOMM_AVG] = MPI_OP_NULL,
    [DSCOMM_BAND] = MPI_LAND,
    [DSCOMM_BOR] = MPI_LOR,
    [DSCOMM_BXOR] = MPI_LXOR,
    [DSCOMM_PREMUL_SUM] = MPI_OP_NULL,
};

/* X(dtype, op) */
#define OWN_MAP(X)                                                             \
    X(INT8, SUM)                                                               \
    X(UINT8, SUM)                                                              \
    X(INT16, SUM)                                                              \
    X(UINT16, SUM)                                                             \
    X(UINT8, MIN)                                                              \
    X(UINT8, MAX)                                                              \
    X(UINT16, MIN)                                                             \
    X(UINT16, MAX)                                                             \
    X(UINT32, MIN)                                                             \
    X(UINT32, MAX)                                                             \
    X(UINT64, MIN)                                                             \
    X(UINT64, MAX)                                                             \
    X(FLOAT16, MIN)                                                            \
    X(FLOAT16, MAX)                                                            \
    X(BFLOAT16, MIN)                                                           \
    X(BFLOAT16, MAX)                                                           \
    X(FLOAT32, MIN)                                                            \
    X(FLOAT32, MAX)                                                            \
    X(FLOAT64, MIN)                                                            \
    X(FLOAT64, MAX)                                                            \
    X(FLOAT8_E4M3, MIN)                                                        \
    X(FLOAT8_E4M3, MAX)                                                        \
    X(FLOAT8_E5M2, MIN)                                                        \
    X(FLOAT8_E5M2, MAX)

/* Defines an MPI operator for a dtype, because MPI passes only the address of a
 * datatype to an operator. */
#define DEFINE(dtype, op)                                                      \
    static void fold_##dtype##_##op(void *in, void *inout, int *count,         \
                                    MPI_Datatype *type)                        \
    {                                                                          \
        const void *sources[2] = {in, inout};                                  \
        (void)type;                                                            \
        dscomm_reduce_kernel(DSCOMM_##dtype, DSCOMM_##op)(                     \
            inout, sources, 2, (size_t)*count, NULL);                          \
    }
OWN_MAP(DEFINE)

static const struct {
    int dtype, op;
    MPI_User_function *fold;
} own[] = {
#define ROW(dtype, op) {DSCOMM_##dtype, DSCOMM_##op, fold_##dtype##_##op},
    OWN_MAP(ROW)};

static MPI_Op ops[DSCOMM_DTYPE_COUNT][DSCOMM_OP_COUNT];

dscomm_status_t engine_types_setup(void)
{
    for (int d = 0; d < DSCOMM_DTYPE_COUNT; d++)
        for (int o = 0; o < DSCOMM_OP_COUNT; o++)
            ops[d][o] = d < DSCOMM_FLOAT16 ? of_integers[o]
                        : d == DSCOMM_BOOL ? of_truth[o]
                                           : MPI_OP_NULL;
    for (int d = DSCOMM_FLOAT32; d <= DSCOMM_FLOAT64; d++) {
        ops[d][DSCOMM_SUM] = ops[d][DSCOMM_AVG] = MPI_SUM;
        ops[d][DSCOMM_PRODUCT] = MPI_PROD;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(own); i++)
        if (MPI_Op_create(own[i].fold, 1, &ops[own[i].dtype][own[i].op]) !=
            MPI_SUCCESS)
            return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                               "mpi: MPI_Op_create has failed");
    return DSCOMM_OK;
}

MPI_Op engine_op(int dtype, int op)
{
    return ops[dtype][op];
}
