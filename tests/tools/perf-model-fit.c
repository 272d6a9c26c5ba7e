/* SPDX-License-Identifier: BSD-3-Clause */
/* The fit of dscomm perf --model: times that are made of known parameters give
 * these parameters back, also if some of the times were disturbed. */
#include "config.h"

#include "tests/tap.h"
#include "tools/perf/model-run.h"

#include <math.h>

#define SIZES 17

/* 4 bytes to 4 MiB, as they are measured */
static size_t sizes(double *ret_bytes)
{
    size_t count = 0;

    for (double size = 4; size <= 4194304; size *= size < 1024 ? 4 : 2)
        ret_bytes[count++] = size;
    return count;
}

static bool is_near(double got, double want)
{
    return fabs(got - want) <= 1e-3 * fabs(want) + 1e-15;
}

static void is_piece(const perf_cost_t *cost, int i, double alpha, double beta,
                     const char *what)
{
    ok(is_near(cost->pieces[i].alpha, alpha) &&
           is_near(cost->pieces[i].beta, beta),
       "%s: %g + %g n", what, cost->pieces[i].alpha, cost->pieces[i].beta);
}

int main(void)
{
    double bytes[SIZES], times[SIZES], errors[] = {-0.3, 0.1, 0.2, -0.1};
    const size_t count = sizes(bytes);
    perf_errors_t found;
    perf_cost_t cost;

    is_int((long long)count, SIZES, "sizes");
    for (size_t i = 0; i < count; i++)
        times[i] = 1e-6 + 1e-10 * bytes[i];
    found = perf_model_fit(bytes, times, count, &cost);
    is_piece(&cost, 0, 1e-6, 1e-10, "one line");
    ok(found.worst < 1e-6, "without an error");

    times[3] *= 3;
    times[12] *= 2;
    found = perf_model_fit(bytes, times, count, &cost);
    is_piece(&cost, 0, 1e-6, 1e-10, "two points disturbed");
    ok(is_near(found.worst, 1 - 1 / 3.0), "which is the worst error");
    ok(found.median < 1e-3, "but not the median");

    for (size_t i = 0; i < count; i++)
        times[i] = bytes[i] <= 16384 ? 2e-6 + 5e-10 * bytes[i]
                                     : 20e-6 + 2e-10 * bytes[i];
    perf_model_fit(bytes, times, count, &cost);
    is_piece(&cost, 0, 2e-6, 5e-10, "two lines: the short messages");
    is_piece(&cost, 1, 20e-6, 2e-10, "the long ones");
    ok(is_near(cost.split, 16384), "up to where");

    for (size_t i = 0; i < count; i++)
        times[i] = 3e-6;
    perf_model_fit(bytes, times, count, &cost);
    is_piece(&cost, 0, 3e-6, 0, "no time for bytes");

    found = perf_model_errors(errors, 4);
    ok(is_near(found.median, 0.1) && is_near(found.worst, 0.3),
       "median and worst of errors: %g, %g", found.median, found.worst);
    return tap_done();
}
