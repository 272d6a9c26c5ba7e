/* SPDX-License-Identifier: BSD-3-Clause */
/* See ticks.h. */
#include "config.h"

#include "lib/base/ticks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

bool dscomm_priv_ticks_counted;

#if defined(__x86_64__) || defined(__i386__)

#define LEAF_POWER 0x80000007u
#define INVARIANT_TSC (1u << 8)

/* The counters of several sockets may differ. The kernel uses the counter as
 * its own clock only after it has checked that. */
static bool counter_is_even(void)
{
    char text[16] = "";
    unsigned a, b, c, d = 0;
    FILE *file;

    if (!__get_cpuid(LEAF_POWER, &a, &b, &c, &d) || !(d & INVARIANT_TSC))
        return false;
    file = fopen("/sys/devices/system/clocksource/clocksource0/"
                 "current_clocksource",
                 "re");
    if (!file)
        return false;
    if (!fgets(text, sizeof text, file))
        *text = '\0';
    fclose(file);
    return strcmp(text, "tsc\n") == 0;
}

#else

static bool counter_is_even(void)
{
#ifdef __aarch64__
    return true; /* the architecture's system counter */
#else
    return false;
#endif
}

#endif

static void choose(void)
{
    dscomm_priv_ticks_counted = counter_is_even();
}

void dscomm_priv_ticks_choose(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, choose);
}

dscomm_moment_t dscomm_priv_moment_by(bool is_counted)
{
    struct timespec real;
    dscomm_moment_t now = {.ticks = dscomm_priv_ticks_by(is_counted),
                           .monotonic_ns = dscomm_priv_clock()};

    clock_gettime(CLOCK_REALTIME, &real);
    now.real_ns = (int64_t)real.tv_sec * 1000 * NS_PER_MS + real.tv_nsec;
    return now;
}

dscomm_moment_t dscomm_priv_moment(void)
{
    return dscomm_priv_moment_by(dscomm_priv_ticks_counted);
}

int64_t dscomm_priv_ticks_to_ns(uint64_t ticks, const dscomm_moment_t *from,
                                const dscomm_moment_t *to)
{
    const double passed = (double)(int64_t)(to->ticks - from->ticks);
    const double ns = (double)(to->monotonic_ns - from->monotonic_ns);

    if (passed <= 0)
        return from->monotonic_ns;
    /* Counted from the later moment, to which most times are near. */
    return to->monotonic_ns -
           (int64_t)((double)(int64_t)(to->ticks - ticks) * (ns / passed));
}
