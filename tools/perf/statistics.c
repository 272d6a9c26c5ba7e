/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock, and times summed up, see perf.h and measure.h. */
#include "config.h"

#include "tools/perf/measure.h"

#include <stdlib.h>
#include <time.h>

double perf_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int time_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The smallest one that so many percent do not exceed (nearest rank). */
static double percentile(const double *sorted, size_t count, size_t percent)
{
    size_t rank = (count * percent + 99) / 100;

    return sorted[rank > 0 ? rank - 1 : 0];
}

void perf_times_fill(double *times, size_t count, perf_times_t *ret_times)
{
    qsort(times, count, sizeof *times, time_compare);
    ret_times->min = times[0];
    ret_times->max = times[count - 1];
    ret_times->p50 = percentile(times, count, 50);
    ret_times->p99 = percentile(times, count, 99);
    ret_times->spread = 0;
    if (ret_times->p50 > 0)
        ret_times->spread =
            100 *
            (percentile(times, count, 75) - percentile(times, count, 25)) /
            ret_times->p50;
}
