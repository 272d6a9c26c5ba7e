/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressors on the fake device, each with a twin in host memory, whose
 * results are to be the same. */
#ifndef TESTS_COMPRESSION_PAIRS_H
#define TESTS_COMPRESSION_PAIRS_H

#include "tests/compression/compress.h"
#include "tests/compression/fake-device.h"

/* A compressor on the device and its twin in host memory. */
typedef struct {
    dscomm_compressor_t *there, *here;
    float *x, *got, *want;
    size_t count;
    int call;
} pair_t;

static inline pair_t pair_new(rank_t *self, size_t count)
{
    pair_t pair = {.count = count};

    pair.there = open_with(self, count, "onebit");
    pair.here = open_with(self, count, "onebit");
    pair.x = fake_device_alloc(count * sizeof(float));
    pair.got = malloc(count * sizeof(float));
    pair.want = malloc(count * sizeof(float));
    return pair;
}

static inline void pair_free(rank_t *self, pair_t *pair)
{
    CHECK(self, !dscomm_compressor_free(pair->there));
    CHECK(self, !dscomm_compressor_free(pair->here));
    fake_device_free(pair->x);
    free(pair->got);
    free(pair->want);
}

static inline void pair_fill(rank_t *self, pair_t *pair)
{
    fill_noise(pair->want, pair->count, self->rank, pair->call++);
    fake_device_write(pair->x, pair->want, pair->count * sizeof(float));
}

/* NaN has a sign, of which nothing is said. */
static inline int is_equal(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(a + i, b + i, sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
            return 0;
    return 1;
}

static inline void pair_compare(rank_t *self, pair_t *pair)
{
    fake_device_read(pair->got, pair->x, pair->count * sizeof(float));
    reduce(self, pair->here, pair->want);
    CHECK(self, is_equal(pair->got, pair->want, pair->count));
}

static inline void pair_call(rank_t *self, pair_t *pair, int with_work)
{
    dscomm_work_t *work = NULL;

    pair_fill(self, pair);
    CHECK(self,
          !dscomm_compressor_all_reduce(pair->there, pair->x, DSCOMM_FLOAT32,
                                        with_work ? &work : NULL));
    if (work)
        CHECK(self, !dscomm_work_wait(work, -1));
    dscomm_work_free(work);
    pair_compare(self, pair);
}

static inline void meet(rank_t *self)
{
    CHECK(self, !dscomm_barrier(self->world, NULL));
}

#endif
