/* SPDX-License-Identifier: BSD-3-Clause */
/* The cheapest clock of the machine, for times that are only recorded: the
 * processor's counter if it runs evenly on all processors, else the monotonic
 * clock. The same on all processes of the machine. */
#ifndef LIB_TICKS_H
#define LIB_TICKS_H

#include "lib/base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

/* True: a tick is one of the processor's counter; false: one ns. Set by
 * dscomm_priv_ticks_choose(). */
extern bool dscomm_priv_ticks_counted;

/* Chooses the clock; later calls do nothing. */
void dscomm_priv_ticks_choose(void);

/* The ticks now, of the processor's counter or in ns. */
static inline uint64_t dscomm_priv_ticks_by(bool is_counted)
{
#if defined(__x86_64__) || defined(__i386__)
    if (__builtin_expect(is_counted, true))
        return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    if (__builtin_expect(is_counted, true)) {
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#else
    (void)is_counted;
#endif
    return (uint64_t)dscomm_priv_clock();
}

static inline uint64_t dscomm_priv_ticks(void)
{
    return dscomm_priv_ticks_by(dscomm_priv_ticks_counted);
}

/* One moment by three clocks. */
typedef struct {
    uint64_t ticks;
    int64_t monotonic_ns;
    int64_t real_ns; /* since 1970 */
} dscomm_moment_t;

dscomm_moment_t dscomm_priv_moment(void);
/* The same, with the ticks of a process whose dscomm_priv_ticks_counted is
 * is_counted. */
dscomm_moment_t dscomm_priv_moment_by(bool is_counted);

/* The time of ticks, in ns of the monotonic clock. from and to are two moments
 * of the same machine and clock, the further apart the better. */
int64_t dscomm_priv_ticks_to_ns(uint64_t ticks, const dscomm_moment_t *from,
                                const dscomm_moment_t *to);

#endif
