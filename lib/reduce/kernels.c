/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of rows, and the choice of the rows that this processor can run. */
#include "config.h"

#include "lib/base/cpu.h"
#include "lib/reduce/kernels.h"

#include <dscomm/info.h>
#include <pthread.h>
#include <string.h>

static const dscomm_kernels_t rows[] = {
#ifdef HAVE_KERNELS_NEON
    {"neon", CPU_NEON, dscomm_priv_kernels_neon},
#endif
#ifdef HAVE_KERNELS_AVX512
    {"avx512", CPU_AVX512F | CPU_AVX512BW | CPU_AVX512DQ | CPU_AVX512VL,
     dscomm_priv_kernels_avx512},
#endif
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

static int is_usable(const dscomm_kernels_t *row)
{
    return !(row->cpu & ~dscomm_priv_cpu_features());
}

static pthread_once_t named = PTHREAD_ONCE_INIT;
static char names[64];

static void name(void)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (!is_usable(&rows[i]))
            continue;
        if (*names)
            strcat(names, " ");
        strcat(names, rows[i].name);
    }
}

const char *dscomm_kernels(void)
{
    pthread_once(&named, name);
    return names;
}

dscomm_reduce_fn dscomm_reduce_kernel(dscomm_dtype_t dtype, dscomm_op_t op)
{
    if (!dscomm_op_applies(op, dtype))
        return NULL;
    for (size_t i = 0; i < ROWS; i++) {
        if (is_usable(&rows[i]) && rows[i].table[dtype][op])
            return rows[i].table[dtype][op];
    }
    return NULL;
}
