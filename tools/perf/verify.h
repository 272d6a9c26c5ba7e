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

/* A piece of recv after a call: count elements at offset, which are elements
 * of rank source (-1: of the reduction) from first on. */
typedef struct {
    size_t offset, count;
    int source;
    size_t first;
} perf_piece_t;

/* Writes rank's input into the buffers that call points to, and bytes of no
 * meaning into what it will write. */
void perf_fill(const perf_call_t *call, guint32 seed);

/* Elements of the result that are wrong after perf_fill() with this seed and
 * the call. */
gint64 perf_count_wrong(const perf_call_t *call, guint32 seed);

/* The pieces of this rank's result, at most ranks of them; returns how many. */
int perf_pieces(const perf_call_t *call, perf_piece_t *ret_pieces);

/* PERF_PERIOD elements of a rank, or the reduction of all ranks' elements. */
void perf_pattern(const perf_call_t *call, guint32 seed, int rank, void *block);
void perf_reduced(const perf_call_t *call, guint32 seed, void *block);

/* The bytes of the integer value as an element of dtype, which has it: the
 * largest one is 2^perf_exact_bits(), and larger powers of two. */
void perf_encode(dscomm_dtype_t dtype, gint64 value, void *element);
int perf_exact_bits(dscomm_dtype_t dtype);
gboolean perf_is_real(dscomm_dtype_t dtype);

#endif
