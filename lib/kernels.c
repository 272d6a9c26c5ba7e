/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of reduction kernels, and which one serves here. */
#include "config.h"

#include "lib/cpu.h"
#include "lib/kernels.h"

static const dscomm_kernels_t rows[] = {
#ifdef HAVE_KERNELS_AVX2
    {"avx2", CPU_AVX2 | CPU_F16C, dscomm_priv_kernels_avx2},
#endif
    {"c", 0, dscomm_priv_kernels_c},
};

#define ROWS (sizeof rows / sizeof rows[0])

const dscomm_kernels_t *dscomm_priv_kernels_row(size_t index)
{
    return index < ROWS ? &rows[index] : NULL;
}

dscomm_reduce_fn dscomm_reduce_kernel(dscomm_dtype_t dtype, dscomm_op_t op)
{
    uint64_t cpu = dscomm_priv_cpu_features();

    if (!dscomm_op_applies(op, dtype))
        return NULL;
    for (size_t i = 0; i < ROWS; i++) {
        if (!(rows[i].cpu & ~cpu) && rows[i].table[dtype][op])
            return rows[i].table[dtype][op];
    }
    return NULL;
}
