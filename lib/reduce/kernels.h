/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of reduction kernels: one row an instruction set, best first; each
 * row has a kernel for every dtype and operator, or NULL where the next row
 * serves. */
#ifndef LIB_KERNELS_H
#define LIB_KERNELS_H

#include <dscomm/backend.h>

typedef struct {
    const char *name;
    uint64_t cpu; /* CPU_* bits (cpu.h) that it needs */
    const dscomm_reduce_fn (*table)[DSCOMM_OP_COUNT]; /* [DSCOMM_DTYPE_COUNT] */
} dscomm_kernels_t;

/* The plain C row: complete, portable, and what all others are held to, bit
 * for bit, NaNs included. Integer averages of less than 64 bits are exact for
 * up to 2^21 sources. */
extern const dscomm_reduce_fn dscomm_priv_kernels_c[DSCOMM_DTYPE_COUNT]
                                                   [DSCOMM_OP_COUNT];

/* The others, where they were compiled. */
extern const dscomm_reduce_fn dscomm_priv_kernels_avx2[DSCOMM_DTYPE_COUNT]
                                                      [DSCOMM_OP_COUNT];
extern const dscomm_reduce_fn dscomm_priv_kernels_avx512[DSCOMM_DTYPE_COUNT]
                                                        [DSCOMM_OP_COUNT];
extern const dscomm_reduce_fn dscomm_priv_kernels_bf16[DSCOMM_DTYPE_COUNT]
                                                      [DSCOMM_OP_COUNT];
extern const dscomm_reduce_fn dscomm_priv_kernels_vbmi[DSCOMM_DTYPE_COUNT]
                                                      [DSCOMM_OP_COUNT];
extern const dscomm_reduce_fn dscomm_priv_kernels_neon[DSCOMM_DTYPE_COUNT]
                                                      [DSCOMM_OP_COUNT];

/* Row index = 0, 1, ... as compiled in, usable or not; NULL beyond the last. */
const dscomm_kernels_t *dscomm_priv_kernels_row(size_t index);

#endif
