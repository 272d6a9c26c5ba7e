/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressors on the fake device, each with a twin in host memory whose results
 * must be the same. */
#ifndef TESTS_COMPRESSION_PAIRS_H
#define TESTS_COMPRESSION_PAIRS_H

#include "tests/compression/compress.h"
#include "tests/compression/fake-device.h"

#define PAIRS_MAX 40
#define ON_HOST -1

/* A compressor on the device and its twin in host memory. */
typedef struct {
    dscomm_compressor_t *there, *here;
    float *x, *got, *want; /* or elements of another dtype */
    size_t count, bytes;
    dscomm_dtype_t dtype;
    int off; /* of x, in bytes of the device; or ON_HOST */
    int call;
} pair_t;

static inline pair_t pair_make(dscomm_compressor_t *there,
                               dscomm_compressor_t *here, size_t count,
                               dscomm_dtype_t dtype, int off)
{
    const size_t bytes = count * dscomm_dtype_size(dtype);
    pair_t pair = {
        there, here, NULL, malloc(bytes + 1), malloc(bytes + 1), count, bytes,
        dtype, off,  0};

    if (off == ON_HOST)
        pair.x = malloc(bytes + 1);
    else
        pair.x = (void *)((char *)fake_device_alloc(bytes + (size_t)off) + off);
    return pair;
}

static inline pair_t pair_new(rank_t *self, size_t count)
{
    dscomm_compressor_t *there = open_with(self, count, "onebit");

    return pair_make(there, open_with(self, count, "onebit"), count,
                     DSCOMM_FLOAT32, 0);
}

static inline void pair_free(rank_t *self, pair_t *pair)
{
    CHECK(self, !dscomm_compressor_free(pair->there));
    CHECK(self, !dscomm_compressor_free(pair->here));
    if (pair->off == ON_HOST)
        free(pair->x);
    else
        fake_device_free((char *)pair->x - pair->off);
    free(pair->got);
    free(pair->want);
}

/* Fills x with random numbers; those of 16 bits are finite. */
static inline void pair_draw(rank_t *self, pair_t *pair)
{
    const uint64_t salt = (uint64_t)(self->rank * 1000 + pair->call++);

    for (size_t i = 0; i < pair->count; i++) {
        float value = noise(i, salt);
        uint16_t word = (uint16_t)(int)(value * 15000);

        if (pair->dtype == DSCOMM_FLOAT64)
            ((double *)(void *)pair->want)[i] = value;
        else if (pair->dtype == DSCOMM_FLOAT32)
            pair->want[i] = value;
        else
            ((uint16_t *)(void *)pair->want)[i] = word & 0xbbff;
    }
}

static inline void pair_fill(rank_t *self, pair_t *pair)
{
    pair_draw(self, pair);
    fake_device_write(pair->x, pair->want, pair->bytes);
}

/* The sign of a NaN is not compared. */
static inline int is_equal(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(a + i, b + i, sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
            return 0;
    return 1;
}

/* Compares what came to the device with the twin's result. */
static inline void pair_check(rank_t *self, pair_t *pair)
{
    fake_device_read(pair->got, pair->x, pair->bytes);
    CHECK(self, pair->dtype == DSCOMM_FLOAT32
                    ? is_equal(pair->got, pair->want, pair->count)
                    : !memcmp(pair->got, pair->want, pair->bytes));
}

static inline void pair_compare(rank_t *self, pair_t *pair)
{
    reduce_as(self, pair->here, pair->want, pair->dtype, 0);
    pair_check(self, pair);
}

static inline void pair_call(rank_t *self, pair_t *pair, int with_work)
{
    pair_fill(self, pair);
    reduce_as(self, pair->there, pair->x, pair->dtype, with_work);
    pair_compare(self, pair);
}

/* Several in one call. */
static inline void pairs_call(rank_t *self, pair_t *pairs, int n)
{
    dscomm_compressor_t *there[PAIRS_MAX], *here[PAIRS_MAX];
    void *x[PAIRS_MAX], *want[PAIRS_MAX];

    for (int i = 0; i < n; i++) {
        pair_fill(self, &pairs[i]);
        there[i] = pairs[i].there;
        here[i] = pairs[i].here;
        x[i] = pairs[i].x;
        want[i] = pairs[i].want;
    }
    CHECK(self, !dscomm_compressor_all_reduce_many(there, x, (size_t)n,
                                                   DSCOMM_FLOAT32, NULL));
    CHECK(self, !dscomm_compressor_all_reduce_many(here, want, (size_t)n,
                                                   DSCOMM_FLOAT32, NULL));
    for (int i = 0; i < n; i++)
        pair_check(self, &pairs[i]);
}

static inline int has_timed_out(dscomm_status_t status)
{
    return status == DSCOMM_ERR_TIMEOUT &&
           strstr(dscomm_last_error(), "waits for its device");
}

/* Both have the same errors, and save the same. */
static inline int is_same(rank_t *self, const pair_t *pair)
{
    char *a = save(self, pair->there), *b = save(self, pair->here);
    int same = !memcmp(a, b, info_of(self, pair->here).state_bytes);

    free(a);
    free(b);
    return same;
}

/* The call of the runtime that fails; 1: there are fewer. */
static int fail_at, fail_beyond;

/* Runs body, which looks for that, until there are fewer calls. */
static inline void fail_everywhere(int ranks, rank_body_t body, int least,
                                   int most)
{
    fail_beyond = 0;
    for (fail_at = 0; !fail_beyond && fail_at < most; fail_at++)
        ranks_run(ranks, 20000, body, "a failure of a device");
    ok(fail_at > least && fail_at < most,
       "%d calls of the runtime, each of which failed", fail_at);
}

/* What is not finite, in the second call on one rank, and in the fourth in the
 * sum alone; the calls after that are whole again. */
static inline void pair_not_finite(rank_t *self, pair_t *pair, float large)
{
    const int adds = info_of(self, pair->here).op == DSCOMM_SUM;

    for (int call = 0; call < 6; call++) {
        pair_draw(self, pair);
        if (call == 1 && self->rank == 0)
            pair->want[pair->count - 1] = INFINITY;
        for (size_t i = 0; i < pair->count && call == 3; i++)
            pair->want[i] = large;
        fake_device_write(pair->x, pair->want, pair->bytes);
        reduce(self, pair->there, pair->x);
        pair_compare(self, pair);
        CHECK(self, call != 1 || isnan(pair->got[0]));
        CHECK(self,
              call != 3 || !adds || self->size < 3 || !isfinite(pair->got[0]));
        CHECK(self, is_same(self, pair));
    }
}

#endif
