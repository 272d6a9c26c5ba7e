/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of element types, and which operators apply to them: what types.c
 * answers, for the code that cannot afford a call. */
#ifndef LIB_TYPES_H
#define LIB_TYPES_H

#include <dscomm/types.h>

/* Bytes of an element of each dtype, and of each op the dtypes it applies to (a
 * bit each). */
extern const uint8_t dscomm_priv_element[DSCOMM_DTYPE_COUNT];
extern const uint16_t dscomm_priv_applies[DSCOMM_OP_COUNT];

/* 0 for a value that is no dtype. */
static inline size_t dscomm_priv_element_of(dscomm_dtype_t dtype)
{
    return (unsigned)dtype < DSCOMM_DTYPE_COUNT ? dscomm_priv_element[dtype]
                                                : 0;
}

/* A 32-bit hash of all arguments that must be equal on all ranks. */
static inline uint32_t dscomm_priv_fingerprint(int coll, int dtype, int op,
                                               int root, size_t count)
{
    uint64_t x = (uint64_t)(uint32_t)root << 32 | (uint32_t)coll << 16 |
                 (uint32_t)dtype << 8 | (uint8_t)op;

    x ^= (uint64_t)count * UINT64_C(0x9e3779b97f4a7c15);
    x *= UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(x >> 32);
}

#endif
