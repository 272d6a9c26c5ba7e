/* SPDX-License-Identifier: BSD-3-Clause */
/* Features of the processor that kernels need. */
#ifndef LIB_CPU_H
#define LIB_CPU_H

#include <stdint.h>

enum {
    CPU_SSE2 = 1 << 0,
    CPU_AVX2 = 1 << 1,
    CPU_FMA = 1 << 2,
    CPU_F16C = 1 << 3,
    CPU_AVX512F = 1 << 4,
    CPU_AVX512BW = 1 << 5,
    CPU_AVX512DQ = 1 << 6,
    CPU_AVX512VL = 1 << 7,
    CPU_GFNI = 1 << 8,
    CPU_NEON = 1 << 9,
};

/* CPU_* bits that processor and system support, less what DSCOMM_CPU masks: "c"
 * leaves none, "avx2" nothing beyond CPU_F16C, "neon" CPU_NEON, "auto" all.
 * Found once. */
uint64_t dscomm_priv_cpu_features(void);

#endif
