/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact verification: inputs of which the result is known to the bit, whatever
 * the order of the arithmetic, and a count of the elements that are not so.
 *
 * Every rank's elements repeat a block of PERF_PERIOD of them, a prime number,
 * so that a block that lands in a wrong place shows. Where nothing is computed
 * they are arbitrary bits. For reductions they are numbers small enough that
 * every partial result is a number of the type (integers wrap around, and may
 * be any); nothing of the library's arithmetic is used. */
#ifndef TOOLS_PERF_VERIFY_H
#define TOOLS_PERF_VERIFY_H

#include "tools/perf/perf.h"

#define PERF_PERIOD 8191

/* Writes rank's input into the buffers that call points to, and bytes of no
 * meaning into what it will write. */
void perf_fill(const perf_call_t *call, guint32 seed);

/* Elements of the result that are wrong after perf_fill() with this seed and
 * the call. */
gint64 perf_count_wrong(const perf_call_t *call, guint32 seed);

/* PERF_PERIOD elements of a rank, or the reduction of all ranks' elements. */
void perf_pattern(const perf_call_t *call, guint32 seed, int rank, void *block);
void perf_reduced(const perf_call_t *call, guint32 seed, void *block);

/* The bytes of the integer value as an element of dtype, which must be able to
 * hold it. */
void perf_encode(dscomm_dtype_t dtype, gint64 value, void *element);

#endif
