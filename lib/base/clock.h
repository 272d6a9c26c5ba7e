/* SPDX-License-Identifier: BSD-3-Clause */
/* Time for deadlines: monotonic, in nanoseconds. */
#ifndef LIB_CLOCK_H
#define LIB_CLOCK_H

#include <dscomm/types.h>
#include <limits.h>
#include <time.h>

#define NS_PER_MS INT64_C(1000000)

static inline int64_t dscomm_priv_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

/* The time of the last tick of the coarse clock, at most a few ms ago: cheap
 * enough for a call that a program makes in a loop. */
static inline int64_t dscomm_priv_clock_coarse(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

/* The time timeout_ms after now; INT64_MAX if it is negative. */
static inline int64_t dscomm_priv_clock_after(int64_t now, int timeout_ms)
{
    return timeout_ms < 0 ? INT64_MAX : now + timeout_ms * NS_PER_MS;
}

/* Milliseconds left, rounded up; 0 after the deadline; -1 if deadline is
 * INT64_MAX (never). */
static inline int dscomm_priv_clock_left(int64_t deadline)
{
    int64_t left;

    if (deadline == INT64_MAX)
        return -1;
    left = (deadline - dscomm_priv_clock() + NS_PER_MS - 1) / NS_PER_MS;
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* A pause for the processor; for loops that spin. */
static inline void dscomm_priv_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
