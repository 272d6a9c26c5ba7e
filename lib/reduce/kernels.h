/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of reduction kernels. Each row is for one instruction set, best
 * first, and has a kernel for every dtype and operator, or NULL if the next row
 * serves. */
#ifndef LIB_KERNELS_H
#define LIB_KERNELS_H

#include <dscomm/backend.h>

typedef struct {
    const char *name;
    uint64_t cpu; /* CPU_* bits (cpu.h) that the row needs */
    const dscomm_reduce_fn (*table)[DSCOMM_OP_COUNT]; /* [DSCOMM_DTYPE_COUNT] */
} dscomm_kernels_t;

/* The row in plain C: complete and portable. Every other row must give the same
 * bits, NaNs included. Integer averages of less than 64 bits are exact for up
 * to 2^21 sources. */
extern const dscomm_reduce_fn dscomm_priv_kernels_c[DSCOMM_DTYPE_COUNT]
                                                   [DSCOMM_OP_COUNT];

/* The other rows, if they were compiled. */
extern const dscomm_reduce_fn dscomm_priv_kernels_avx2[DSCOMM_DTYPE_COUNT]
                                                      [DSCOMM_OP_COUNT];
extern const dscomm_reduce_fn dscomm_priv_kernels_avx512[DSCOMM_DTYPE_COUNT]
                                                        [DSCOMM_OP_COUNT];
extern const dscomm_reduce_fn dscomm_priv_kernels_neon[DSCOMM_DTYPE_COUNT]
                                                      [DSCOMM_OP_COUNT];

/* Returns row index = 0, 1, ... of those that were compiled, whether or not
 * this processor can run it; NULL after the last. */
const dscomm_kernels_t *dscomm_priv_kernels_row(size_t index);

#endif
