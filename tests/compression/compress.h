/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations that the tests of compressors share. Ranks are threads, see
 * ranks.h. */
#ifndef TESTS_COMPRESSION_COMPRESS_H
#define TESTS_COMPRESSION_COMPRESS_H

#include "tests/lib/work/ranks.h"

#include <dscomm/codec.h>
#include <dscomm/compression.h>
#include <math.h>
#include <stdlib.h>

static inline dscomm_compressor_t *open_attr(rank_t *self,
                                             dscomm_group_t *group,
                                             size_t count,
                                             dscomm_compressor_attr_t attr)
{
    dscomm_compressor_t *c = NULL;

    attr.size = sizeof attr;
    CHECK(self, !dscomm_compressor_create(group, count, &attr, &c));
    return c;
}

/* The same, with attributes as initialisers. */
#define OPEN(self, group, count, ...)                                          \
    open_attr(self, group, count, (dscomm_compressor_attr_t){__VA_ARGS__})

static inline dscomm_compressor_t *open_with(rank_t *self, size_t count,
                                             const char *codec)
{
    return OPEN(self, self->world, count, .codec = codec);
}

/* Waits for a work, and frees it; NULL is fine. */
static inline void finish(rank_t *self, dscomm_work_t *work)
{
    CHECK(self, !work || !dscomm_work_wait(work, -1));
    dscomm_work_free(work);
}

/* A call that blocks, or a work that is waited for. */
static inline void reduce_as(rank_t *self, dscomm_compressor_t *c, void *x,
                             dscomm_dtype_t dtype, int with_work)
{
    dscomm_work_t *work = NULL;

    CHECK(self,
          !dscomm_compressor_all_reduce(c, x, dtype, with_work ? &work : NULL));
    finish(self, work);
}

/* The status of a call that blocks. */
static inline dscomm_status_t try_reduce(dscomm_compressor_t *c, float *x)
{
    return dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, NULL);
}

static inline void reduce(rank_t *self, dscomm_compressor_t *c, float *x)
{
    reduce_as(self, c, x, DSCOMM_FLOAT32, 0);
}

static inline void meet(rank_t *self)
{
    CHECK(self, !dscomm_barrier(self->world, NULL));
}

/* What rank number does alone, while the others wait. */
#define ALONE(self, number, statement)                                         \
    do {                                                                       \
        meet(self);                                                            \
        if ((self)->rank == (number))                                          \
            statement;                                                         \
        meet(self);                                                            \
    } while (0)

/* A group of all ranks; its time-out, 0: the world's. */
static inline dscomm_group_t *all_of(rank_t *self, int timeout_ms)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL;

    attr.timeout_ms = timeout_ms;
    CHECK(self, !dscomm_group_split(self->world, 0, 0, &attr, &group));
    return group;
}

/* A compressor of the group, with codec onebit. */
static inline dscomm_compressor_t *open_on(rank_t *self, dscomm_group_t *group,
                                           size_t count)
{
    dscomm_compressor_t *c = NULL;

    CHECK(self, !dscomm_onebit_create(group, count, NULL, &c));
    return c;
}

static inline void close_all(rank_t *self, dscomm_compressor_t **cs, int n)
{
    for (int i = 0; i < n; i++)
        CHECK(self, !dscomm_compressor_free(cs[i]));
}

/* The same, and their group. */
static inline void close_on(rank_t *self, dscomm_group_t *group,
                            dscomm_compressor_t **cs, int n)
{
    close_all(self, cs, n);
    CHECK(self, !dscomm_group_free(group));
}

static inline dscomm_compressor_info_t info_of(rank_t *self,
                                               const dscomm_compressor_t *c)
{
    dscomm_compressor_info_t info = {.size = sizeof info};

    CHECK(self, !dscomm_compressor_info(c, &info));
    return info;
}

/* The state, in memory of its own. */
static inline char *save(rank_t *self, const dscomm_compressor_t *c)
{
    size_t bytes = info_of(self, c).state_bytes;
    char *state = calloc(1, bytes);

    CHECK(self, !dscomm_compressor_save(c, state, bytes));
    return state;
}

/* Returns noise between -1 and 1, equal on all ranks for the same salt. */
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
