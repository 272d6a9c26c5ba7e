/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that can be measured: how each is called, which bytes go
 * where, and what its figures mean. */
#ifndef TOOLS_PERF_OPERATIONS_H
#define TOOLS_PERF_OPERATIONS_H

#include "tools/perf/perf.h"

/* ret_work NULL: blocking. */
typedef dscomm_status_t (*perf_call_fn)(const perf_call_t *call,
                                        dscomm_work_t **ret_work);

/* What a buffer holds, and on which ranks it matters. */
typedef enum {
    PERF_NOTHING,
    PERF_WHOLE, /* all elements */
    PERF_WHOLE_ON_ROOT,
    PERF_PART, /* this rank's block of them */
    PERF_FIRST_TWO /* all, on ranks 0 and 1 */
} perf_shape_t;

/* What a rank ends with. */
typedef enum {
    PERF_GETS_NOTHING,
    PERF_GETS_ROOT, /* root's elements */
    PERF_GETS_REDUCED,
    PERF_GETS_REDUCED_ON_ROOT,
    PERF_GETS_REDUCED_PART,
    PERF_GETS_ALL, /* every rank's block */
    PERF_GETS_ALL_ON_ROOT,
    PERF_GETS_PART, /* its block of root's elements */
    PERF_GETS_EXCHANGED, /* a block of every rank's elements */
    PERF_GETS_PREVIOUS, /* the elements of the rank before */
    PERF_GETS_OTHER, /* ranks 0 and 1: each other's elements */
    PERF_GETS_FIRST /* rank 1: rank 0's elements */
} perf_gets_t;

struct perf_operation {
    const char *name;
    int coll; /* dscomm_coll_t; -1: several calls of the library's own */
    const char *summary;
    perf_call_fn run;
    perf_call_fn run_premul; /* NULL: PREMUL_SUM makes no sense */
    perf_shape_t send, recv;
    perf_gets_t gets;
    gboolean reduces, rooted;
    gboolean uneven; /* blocks of different sizes */
    gboolean divided; /* count is one rank's part of the elements */
    gboolean places[PERF_PLACES];
    gboolean works; /* has a form with a work, and may be coalesced */
    int least_ranks;
    int messages; /* a call moves; its time is divided by it */
    /* busbw / algbw */
    double (*bus)(double ranks);
    /* What each rank would copy, could ranks only copy, as a part of the row's
     * bytes: half of all that must be read and written, by rank. */
    double (*copied)(double ranks, perf_place_t place);
};

/* index = 0, 1, ...; NULL beyond the last. */
const perf_operation_t *perf_operation(size_t index);
const perf_operation_t *perf_operation_find(const char *name);

/* Sets total and count for at most bytes, rounded down to whole elements and,
 * where the operation divides them, equal parts; and the arrays of a _v call,
 * which have room. */
void perf_call_size(perf_call_t *call, size_t bytes);

/* Points send and recv into the two buffers. */
void perf_call_place(perf_call_t *call, perf_place_t place, void *send_buffer,
                     void *recv_buffer);

/* Rank who's block of the elements of an operation that gathers or scatters. */
perf_block_t perf_call_block(const perf_call_t *call, int who);
/* What rank from sends rank to, in from's buffer, in all_to_all and its _v. */
perf_block_t perf_call_exchanged(const perf_call_t *call, int from, int to);

/* GB/s (10^9 bytes) for one call in so many microseconds. */
double perf_algbw(size_t bytes, double time);
double perf_busbw(const perf_operation_t *operation, int ranks, double algbw);

/* The row's operator, as "sum"; "none" if the operation does not reduce. */
const char *perf_row_op(const perf_row_t *row);

#endif
