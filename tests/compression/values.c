/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that no codec can represent: NaN, infinities, and norms and sums
 * beyond float32. They affect only the result of their own call. */
#include "config.h"

#include "tests/compression/compress.h"

#define COUNT 3000

/* Stores the errors, or compares them; they may differ by rounding. */
static void look_at_errors(rank_t *self, dscomm_compressor_t *c, float *kept,
                           int compare)
{
    const dscomm_compressor_info_t info = info_of(self, c);
    float *worker, *server;
    int wrong = 0;

    CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
    for (size_t i = 0; i < COUNT && compare; i++)
        wrong += fabsf(worker[i] - kept[i]) > 1e-6f;
    for (size_t i = 0; i < info.server && compare; i++)
        wrong += server[i] != kept[COUNT + i];
    CHECK(self, !wrong);
    memcpy(kept, worker, COUNT * sizeof *kept);
    memcpy(kept + COUNT, server, info.server * sizeof *kept);
}

static int count_infinite(const float *x, int count)
{
    int found = 0;

    for (int i = 0; i < count; i++)
        found += !isfinite(x[i]);
    return found;
}

/* A NaN on one rank affects one call of all ranks, and no later one. */
static void not_finite(rank_t *self)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
    float x[COUNT], kept[2 * COUNT + 1024];

    for (int call = 0; call < 6; call++) {
        int nans = 0;

        fill_noise(x, COUNT, self->rank, call);
        reduce(self, c, x);
        CHECK(self, count_infinite(x, COUNT) == 0);
        look_at_errors(self, c, kept, 0);
        fill_noise(x, COUNT, self->rank, call);
        if (self->rank == self->size - 1)
            x[call * 500 % COUNT] = bad[call % 3];
        reduce(self, c, x);
        for (int i = 0; i < COUNT; i++)
            nans += isnan(x[i]) != 0;
        CHECK(self, nans == COUNT);
        look_at_errors(self, c, kept, 1);
    }
    CHECK(self, !dscomm_compressor_free(c));
}

/* Values are finite, but the norm of the remaining errors exceeds float32: they
 * are reduced like others, in both geometries. */
static void large_norm(rank_t *self)
{
    for (int geometry = 0; geometry < 2; geometry++) {
        dscomm_compressor_t *c = OPEN(self, self->world, COUNT,
                                      .geometry = (dscomm_geometry_t)geometry);
        double most = 0, least = 2.5e38 / 20 / sqrt(COUNT);
        float x[COUNT];

        for (int call = 0; call < 20; call++) {
            fill_noise(x, COUNT, self->rank, call);
            if (call == 0)
                x[77] = 2.5e38f;
            reduce(self, c, x);
            CHECK(self, count_infinite(x, COUNT) == 0);
            most = fmax(most, fabs(x[77]));
        }
        CHECK(self, most > least && most < 2.5e38);
        CHECK(self, !dscomm_compressor_free(c));
    }
}

/* All scales are finite, but the sum of signs with these scales may not be. */
static void sum_up(rank_t *self, int count)
{
    dscomm_compressor_t *c = OPEN(self, self->world, (size_t)count, .sum = 1);
    const size_t server_bytes = info_of(self, c).server * sizeof(float);
    float x[COUNT], before[COUNT], *worker, *server;
    int wrong = 0;

    fill_noise(x, (size_t)count, self->rank, 1);
    reduce(self, c, x);
    CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
    memcpy(before, server, server_bytes);
    for (int i = 0; i < count; i++)
        x[i] = 2e38f;
    reduce(self, c, x);
    CHECK(self, count_infinite(x, count) == (self->size > 1 ? count : 0));
    CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
    for (int i = 0; i < count; i++)
        wrong += !(fabsf(worker[i]) < 2e38f * 1e-6f);
    CHECK(self, !wrong);
    CHECK(self, self->size == 1 || !memcmp(before, server, server_bytes));
    fill_noise(x, (size_t)count, self->rank, 2);
    reduce(self, c, x);
    CHECK(self, count_infinite(x, count) == 0);
    CHECK(self, !dscomm_compressor_free(c));
}

static void large_sum(rank_t *self)
{
    sum_up(self, 2);
    sum_up(self, COUNT);
}

/* With other codecs only a part of the result is affected, in that call
 * alone. */
static void not_finite_others(rank_t *self)
{
    static const char *const codecs[] = {"none", "float16", "bfloat16", "int8",
                                         "topk"};

    for (int i = 0; i < 5; i++)
        for (int kind = 0; kind < 3; kind++) {
            dscomm_compressor_t *c =
                OPEN(self, self->world, COUNT, .codec = codecs[i],
                     .feedback = DSCOMM_FEEDBACK_ON);
            float x[COUNT];

            for (int k = 0; k < COUNT; k++)
                x[k] = kind == 0   ? NAN
                       : k % 7     ? 1
                       : kind == 1 ? INFINITY
                                   : 1e5f;
            reduce(self, c, x);
            fill_noise(x, COUNT, self->rank, i);
            reduce(self, c, x);
            CHECK(self, count_infinite(x, COUNT) == 0);
            CHECK(self, !dscomm_compressor_free(c));
        }
}

int main(void)
{
    ranks_use_modules();
    for (int n = 1; n <= 5; n++) {
        ranks_run(n, 10000, not_finite, "NaN and infinities");
        ranks_run(n, 10000, large_norm, "norms beyond float32");
        ranks_run(n, 10000, large_sum, "sums beyond float32");
        ranks_run(n, 10000, not_finite_others, "the same with other codecs");
    }
    return tap_done();
}
