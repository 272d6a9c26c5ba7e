/* SPDX-License-Identifier: BSD-3-Clause */
/* What benchmarks share: the clock, medians, and a processor for each rank. */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds. */
static inline double clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline double now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sorts values and returns the one that so many percent are below. */
static inline double quantile(double *values, size_t count, size_t percent)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count * percent / 100];
}

static inline double median(double *values, size_t count)
{
    return quantile(values, count, 50);
}

/* Binds the thread of rank to processor rank modulo their number. */
static inline void bind_rank(int rank)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)(rank % sysconf(_SC_NPROCESSORS_ONLN)), &set);
    sched_setaffinity(0, sizeof set, &set);
}

#endif
