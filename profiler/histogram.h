/* SPDX-License-Identifier: BSD-3-Clause */
/* Times in buckets: of 1 ns below 128 ns, then 64 for each power of two, so
 * that the middle of a bucket differs from each value in it by less than 1 %.
 */
#ifndef PROFILER_HISTOGRAM_H
#define PROFILER_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 6 /* log2 of the buckets for each power of two */
#define HISTOGRAM_STEP (1 << HISTOGRAM_BITS)
#define HISTOGRAM_TOP 42 /* values from 2^42 ns, 73 minutes, are the last's */
#define HISTOGRAM_BUCKETS                                                      \
    (HISTOGRAM_STEP * (HISTOGRAM_TOP - HISTOGRAM_BITS + 1))

static inline unsigned histogram_bucket(int64_t ns)
{
    unsigned shift;

    if (ns < HISTOGRAM_STEP)
        return ns < 0 ? 0 : (unsigned)ns;
    if (ns >= INT64_C(1) << HISTOGRAM_TOP)
        return HISTOGRAM_BUCKETS - 1;
    shift = 63 - (unsigned)__builtin_clzll((uint64_t)ns) - HISTOGRAM_BITS;
    return shift * HISTOGRAM_STEP + (unsigned)(ns >> shift);
}

/* The middle of a bucket. */
static inline int64_t histogram_value(unsigned bucket)
{
    const unsigned shift =
        bucket < HISTOGRAM_STEP ? 0 : bucket / HISTOGRAM_STEP - 1;

    return ((int64_t)(bucket - shift * HISTOGRAM_STEP) << shift) +
           (((INT64_C(1) << shift) - 1) / 2);
}

#endif
