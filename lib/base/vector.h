/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of VECTOR_BYTES bytes: i8v to u64v, f32v and f64v. The compiler knows
 * their arithmetic, and translates it to the instruction set for which the file
 * is compiled. */
#ifndef LIB_VECTOR_H
#define LIB_VECTOR_H

#include <stdint.h>
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* x##v is a vector in a register; x##m one in memory, which may have any
 * address and may alias any type. */
#define VECTOR(x, element)                                                     \
    typedef element x##v __attribute__((vector_size(VECTOR_BYTES)));           \
    typedef element x##m                                                       \
        __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));

VECTOR(i8, int8_t)
VECTOR(u8, uint8_t)
VECTOR(i16, int16_t)
VECTOR(u16, uint16_t)
VECTOR(i32, int32_t)
VECTOR(u32, uint32_t)
VECTOR(i64, int64_t)
VECTOR(u64, uint64_t)
VECTOR(f32, float)
VECTOR(f64, double)

#define LOAD(x, at) ((x##v) * (const x##m *)(at))

#define SIGN_32 0x80000000u
#define SIGN_64 (UINT64_C(1) << 63)

/* Widened elements: twice, or four times, the bits. */
typedef struct {
    f32v low, high;
} f32_pair_t;

typedef struct {
    i32v low, high;
} i32_pair_t;

typedef struct {
    f32_pair_t even, odd;
} f32_quad_t;

#endif
