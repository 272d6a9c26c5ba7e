/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of compressors share: ranks are threads, see ranks.h. */
#ifndef TESTS_COMPRESSION_COMPRESS_H
#define TESTS_COMPRESSION_COMPRESS_H

#include "tests/lib/work/ranks.h"

#include <dscomm/codec.h>
#include <dscomm/compression.h>
#include <math.h>
#include <stdlib.h>

static inline dscomm_compressor_t *open_with(rank_t *self, size_t count,
                                             const char *codec)
{
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_compressor_t *c = NULL;

    attr.codec = codec;
    CHECK(self, !dscomm_compressor_create(self->world, count, &attr, &c));
    return c;
}

static inline void reduce(rank_t *self, dscomm_compressor_t *c, float *x)
{
    CHECK(self, !dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, NULL));
}

static inline void close_all(rank_t *self, dscomm_compressor_t **cs, int n)
{
    for (int i = 0; i < n; i++)
        CHECK(self, !dscomm_compressor_free(cs[i]));
}

/* The same on all ranks for the same salt; between -1 and 1. */
static inline float noise(uint64_t i, uint64_t salt)
{
    uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) +
                 salt * UINT64_C(0xd1342543de82ef95);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (float)(int32_t)(z >> 32) / 0x80000000u;
}

static inline void fill_noise(float *x, size_t count, int rank, int call)
{
    for (size_t i = 0; i < count; i++)
        x[i] = noise(i, (uint64_t)(rank * 1000 + call));
}

#endif
