/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that can be measured: their functions, their buffers, and the
 * meaning of their figures. */
#ifndef TOOLS_PERF_OPERATIONS_H
#define TOOLS_PERF_OPERATIONS_H

#include "tools/perf/perf.h"

/* ret_work NULL: blocking. */
typedef dscomm_status_t (*perf_call_fn)(const perf_call_t *call,
                                        dscomm_work_t **ret_work);

/* The contents of a buffer, and the ranks that use it. */
typedef enum {
    PERF_NOTHING,
    PERF_WHOLE, /* all elements */
    PERF_WHOLE_ON_ROOT,
    PERF_PART, /* this rank's block of the elements */
    PERF_FIRST_TWO, /* all elements, on ranks 0 and 1 */
    PERF_PAIRED /* all elements, on ranks that have a partner */
} perf_shape_t;

/* The result of a rank. */
typedef enum {
    PERF_GETS_NOTHING,
    PERF_GETS_ROOT, /* root's elements */
    PERF_GETS_BLOB, /* the same, of which only the root knows the length */
    PERF_GETS_REDUCED,
    PERF_GETS_REDUCED_ON_ROOT,
    PERF_GETS_REDUCED_PART,
    PERF_GETS_ALL, /* every rank's block */
    PERF_GETS_ALL_ON_ROOT,
    PERF_GETS_PART, /* this rank's block of root's elements */
    PERF_GETS_EXCHANGED, /* one block from each rank */
    PERF_GETS_PREVIOUS, /* the elements of the rank before */
    PERF_GETS_OTHER, /* ranks 0 and 1: each other's elements */
    PERF_GETS_FIRST, /* rank 1: rank 0's elements */
    PERF_GETS_LOWER, /* the upper half: the elements of the partner below */
    PERF_GETS_PARTNER /* pairs: each other's elements */
} perf_gets_t;

enum {
    PERF_OUT = 1 << PERF_OUT_OF_PLACE, /* the possible places */
    PERF_IN = 1 << PERF_IN_PLACE,
    PERF_BOTH = PERF_OUT | PERF_IN,
    PERF_UNEVEN = 1 << 2, /* blocks of different sizes */
    PERF_ACCESSES = 1 << 6, /* puts or gets, which not all backends have */
    PERF_BALANCED = 1 << 7, /* blocks as equal as possible */
    PERF_HOST = 1 << 8, /* not in memory of devices */
    /* of a kind: */
    PERF_REDUCES = 1 << 3,
    PERF_ROOTED = 1 << 4,
    PERF_DIVIDED = 1 << 5 /* count is one rank's part of the elements */
};

/* How often the n ranks together must read, and write, the bytes of a row. */
typedef enum {
    PERF_COPIED_NEVER,
    PERF_COPIED_ONCE, /* 1 and 1; in place, without the root's own part */
    PERF_COPIED_FROM_ONE, /* 1 and n - 1 */
    PERF_COPIED_GATHERED, /* 1 and n; in place, n - 1 */
    PERF_COPIED_REDUCED, /* n and 1 */
    PERF_COPIED_ALL, /* n and n */
    PERF_COPIED_PAIRED, /* a message for each pair */
    PERF_COPIED_PARTNERS /* two of them */
} perf_copied_t;

/* Properties that operations with the same result on each rank share. */
typedef struct {
    perf_shape_t send, recv;
    unsigned flags;
    int bus; /* busbw / algbw is this times (n - 1) / n; 0: they are equal */
    perf_copied_t copied;
    int ways; /* busbw / algbw is this times the number of pairs; 0: see bus */
} perf_kind_t;

struct perf_operation {
    const char *name, *summary;
    int coll; /* dscomm_coll_t, which has a form with a work; -1: several calls
               */
    perf_call_fn run;
    perf_gets_t gets;
    unsigned flags;
    /* messages of one call; its time is divided by their number */
    int messages;
};

const perf_kind_t *perf_kind(const perf_operation_t *operation);

/* Returns the flags of the operation and of its kind. */
unsigned perf_flags(const perf_operation_t *operation);
/* Returns whether the operations have the same inputs and results. */
bool perf_is_alike(const perf_operation_t *a, const perf_operation_t *b);

/* Returns operation index = 0, 1, ...; NULL after the last. */
const perf_operation_t *perf_operation(size_t index);
const perf_operation_t *perf_operation_find(const char *name);

/* Returns how many messages all ranks together send in a second, if one takes
 * so many microseconds; 0: the operation does not consist of many messages. */
double perf_message_rate(const perf_operation_t *operation, int ranks,
                         double time);

/* Sets total and count for at most bytes, rounded down to whole elements and,
 * if the operation divides them, to equal parts. Fills in the arrays of a _v
 * call, for which memory was allocated. */
void perf_call_size(perf_call_t *call, size_t bytes);

/* Points send and recv into the two buffers. */
void perf_call_place(perf_call_t *call, perf_place_t place, void *send_buffer,
                     void *recv_buffer);

/* Returns rank who's block of the elements, for an operation that gathers or
 * scatters. */
perf_block_t perf_call_block(const perf_call_t *call, int who);
/* Returns the block, in from's buffer, that rank from sends to rank to in
 * all_to_all and all_to_all_v. */
perf_block_t perf_call_exchanged(const perf_call_t *call, int from, int to);

/* Returns GB/s (10^9 bytes) for one call in so many microseconds. */
double perf_algbw(size_t bytes, double time);
double perf_busbw(const perf_operation_t *operation, int ranks, double algbw);

/* Returns the bytes that each rank would copy if the operation only copied, as
 * a fraction of the row's bytes: half of all bytes that must be read and
 * written, divided by the number of ranks. */
double perf_copied(const perf_operation_t *operation, int ranks,
                   perf_place_t place);

/* The row's operator, as "sum"; "none" if the operation does not reduce. */
const char *perf_row_op(const perf_row_t *row);

#endif
