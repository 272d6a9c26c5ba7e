/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact verification: inputs whose result is known to the bit, in whatever
 * order it is computed, and a count of wrong elements.
 *
 * The elements of each rank repeat a block of PERF_PERIOD of them. This is a
 * prime number, so a block that is stored in a wrong place is detected. If
 * nothing is computed, the elements are arbitrary bits. For reductions they are
 * numbers so small that every partial result is a number of the type (integers
 * wrap around, and may be any). The library's own arithmetic is not used. */
#ifndef TOOLS_PERF_VERIFY_H
#define TOOLS_PERF_VERIFY_H

#include "tools/perf/perf.h"

#define PERF_PERIOD 8191

/* Writes rank's input into the buffers of the call, and undefined bytes into
 * the memory that the call will write. */
void perf_fill(const perf_call_t *call, guint32 seed);

/* Returns the number of wrong elements after perf_fill() with this seed and the
 * call. */
gint64 perf_count_wrong(const perf_call_t *call, guint32 seed);

/* Writes PERF_PERIOD elements of a rank, or of the reduction of all ranks'
 * elements. */
void perf_pattern(const perf_call_t *call, guint32 seed, int rank, void *block);
void perf_reduced(const perf_call_t *call, guint32 seed, void *block);

/* The bytes of the integer value as an element of dtype, which must be able to
 * hold it. */
void perf_encode(dscomm_dtype_t dtype, gint64 value, void *element);

#endif
