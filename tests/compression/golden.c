/* SPDX-License-Identifier: BSD-3-Clause */
/* Two calls whose bits are known: the results of DeepSpeed's own class with two
 * ranks, 20 elements padded to 32, and errors that begin at zero. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <dscomm/compression.h>
#include <math.h>

#define COUNT 20
#define PADDED 32
#define CALLS 2

typedef struct {
    float worker[4], padding, server[4];
} errors_t;

/* Indexed by call and rank. */
static const errors_t wanted[CALLS][2] = {
    {{{-0.60956556f, -0.14043444f, 0.14043444f, 0.60956556f},
      -0.64043444f,
      {-0.1831112f, 0.1831112f, 0.4276645f, -0.4276645f}},
     {{0.11077565f, 0.63922435f, -0.36077565f, -0.13922435f},
      -0.61077565f,
      {0.5703940f, -0.5703940f, 0.0403816f, -0.0403816f}}},
    {{{0.15992099f, -0.37094796f, 0.12094790f, -0.40992100f},
      0.12905210f,
      {0.4240347f, -0.4294162f, -0.1794815f, -0.2707053f}},
     {{0.09667057f, -0.37488073f, -0.84667060f, -0.40332943f},
      0.15332943f,
      {0.5501069f, -0.5501069f, -0.7440107f, 0.7440107f}}},
};
/* The server's scale of each half. */
static const float scales[CALLS][2] = {
    {0.44249386f, 0.58522344f},
    {0.60983664f, 0.78708303f},
};
static const char *const signs[CALLS] = {
    "-+-++-++-+--+-++-++-",
    "-+++-+-+--+-+++-+-+-",
};

static int is_near(float got, float want)
{
    return fabsf(got - want) <= 1e-6f * fmaxf(1, fabsf(want));
}

static void fill(float *x, int rank, int call)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)((7 * i + 3 * rank + 5 * call) % 11 - 5) / 4;
}

static void check_errors(rank_t *self, dscomm_compressor_t *onebit, int call)
{
    const errors_t *want = &wanted[call][self->rank];
    float *worker = NULL, *server = NULL;

    CHECK(self, !dscomm_compressor_errors(onebit, &worker, &server));
    for (int i = 0; i < 4 && worker && server; i++) {
        CHECK(self, is_near(worker[i], want->worker[i]));
        CHECK(self, is_near(server[i], want->server[i]));
    }
    CHECK(self, worker && is_near(worker[COUNT], want->padding));
}

static void golden(rank_t *self)
{
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_compressor_info_t info = {.size = sizeof info};
    dscomm_compressor_t *onebit = NULL;
    float x[COUNT];

    attr.geometry = DSCOMM_GEOMETRY_DEEPSPEED;
    CHECK(self, !dscomm_onebit_create(self->world, COUNT, &attr, &onebit));
    CHECK(self, !dscomm_compressor_info(onebit, &info));
    CHECK(self, info.padded == PADDED && info.server == PADDED / 2);
    for (int call = 0; call < CALLS; call++) {
        fill(x, self->rank, call);
        CHECK(self,
              !dscomm_compressor_all_reduce(onebit, x, DSCOMM_FLOAT32, NULL));
        for (int i = 0; i < COUNT; i++) {
            float scale = scales[call][i >= PADDED / 2];

            CHECK(self, is_near(x[i], signs[call][i] == '+' ? scale : -scale));
        }
        check_errors(self, onebit, call);
    }
    CHECK(self, !dscomm_compressor_free(onebit));
}

int main(void)
{
    ranks_use_modules();
    ranks_run(2, 10000, golden, "the golden vector");
    return tap_done();
}
