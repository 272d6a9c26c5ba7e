/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of a profiler: a table of rows and one of groups. Any thread adds
 * to them at any time, by atomic operations and without locks. Both are hash
 * tables with open addressing, in which nothing is ever removed, so a row that
 * was found stays valid. Memory of a table is never freed either: a thread of
 * the library may still add to a table whose profiler was freed. Two threads
 * that add the same row at the same time may make it twice; whoever reads the
 * table adds rows of the same key. */
#ifndef PROFILER_TABLE_H
#define PROFILER_TABLE_H

#include "profiler/histogram.h"

#include <dscomm/dscomm.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TABLE_ROWS 4096 /* power of two */
#define TABLE_GROUPS 1024 /* power of two */
/* rows with a histogram, and how many of them may be of one size */
#define TABLE_HISTOGRAMS 1024
#define TABLE_SIZES 768
#define GROUP_NAME_MAX 64 /* bytes of a name that are kept */
#define GROUP_ID_MAX 512 /* more than an id has */

/* The kind of a row: the things that it counts, and the meaning of its value.
 */
typedef enum {
    ROW_SIZE, /* operations of one size: bytes */
    ROW_CLASS, /* the same for sizes without a row: log2(bytes) + 1; 0 for 0 */
    ROW_PEER, /* messages: the peer + 1 */
    ROW_RANGE, /* a range: the number of its name, text.h */
    ROW_CODEC, /* encoded operations of one size: bytes; their site is the
                  codec */
    ROW_PHASE, /* collectives: the class of their size * 8, + dscomm_phase_t */
} row_kind_t;

typedef struct {
    row_kind_t kind;
    int coll; /* dscomm_coll_t; 0 for a range */
    unsigned site; /* the number of a text, text.h */
    unsigned group; /* its place in the table of groups; 0 for a range */
    uint64_t value;
} row_key_t;

typedef struct {
    _Alignas(64) _Atomic uint64_t key; /* the packed key; 0: free */
    _Atomic uint64_t value; /* of the key */
    _Atomic uint64_t count; /* without a histogram, which has it */
    _Atomic uint64_t failed;
    _Atomic uint64_t bytes; /* of a row whose sizes differ */
    _Atomic int64_t total_ns, waited_ns; /* without the next one */
    _Atomic int64_t blocked_ns; /* of blocking operations; to both above */
    _Atomic int64_t min_ns, max_ns; /* min is INT64_MAX while nothing counts */
    _Atomic uint64_t *_Atomic histogram; /* NULL: none */
    _Atomic uint64_t sent, plain; /* bytes, of ROW_CODEC */
    /* operations that a device has timed, and the sum of these times */
    _Atomic uint64_t device_count;
    _Atomic int64_t device_ns;
    _Atomic uint64_t order; /* number of the row, by first use, from 1 */
} row_t;

/* Whether operations of a group count. */
enum { GROUP_DEFAULT, GROUP_STARTED, GROUP_STOPPED };

typedef struct {
    _Atomic uint64_t number; /* dscomm_group_number(); 0: free */
    atomic_uint state; /* GROUP_* */
    _Atomic uint64_t since_ticks; /* when it was reset; 0: never */
    int size, rank, world_rank; /* this process's ranks */
    char name[GROUP_NAME_MAX];
    char *id; /* dscomm_group_id(), of GROUP_ID_MAX bytes */
} group_t;

/* Mark of a group that is being written. */
#define GROUP_NUMBER_BUSY (UINT64_C(1) << 63)

static inline bool group_is_set(const group_t *group)
{
    const uint64_t number =
        atomic_load_explicit(&group->number, memory_order_acquire);

    return number && !(number & GROUP_NUMBER_BUSY);
}

typedef struct {
    row_t *rows;
    group_t *groups;
    /* The histograms of rows, in the order in which they were taken; NULL: not
     * made yet. */
    _Atomic uint64_t *_Atomic pool[TABLE_HISTOGRAMS];
    /* UINT64_MAX until a group found no room; then the highest number of those
     * that are there, which stay alone. */
    _Atomic uint64_t last_group;
    _Atomic uint64_t rows_used; /* ever */
    _Atomic uint32_t histograms; /* in use */
    _Atomic uint64_t dropped; /* operations that found no room */
} table_t;

/* Makes the table empty, and allocates it the first time, when it is zero.
 * Other threads may be adding to it: what they add then may be counted in any
 * row. False: no memory. */
bool dscomm_priv_table_init(table_t *table);

/* The entry of a group; NULL if it has not been added. */
group_t *dscomm_priv_table_group(const table_t *table,
                                 const dscomm_group_t *handle);
/* As above; adds it. NULL: there is no room. Groups that the program has freed
 * keep their places, because rows and events name them. */
group_t *dscomm_priv_table_group_add(table_t *table,
                                     const dscomm_group_t *handle);

/* The row of key, which is added if it is not there. NULL: there is no room. */
row_t *dscomm_priv_table_row(table_t *table, row_key_t key);
row_key_t dscomm_priv_row_key(const row_t *row);

/* The row of an operation of this size, or of its class. */
row_t *dscomm_priv_table_size(table_t *table, row_key_t key, uint64_t bytes);

/* Adds a success that took ns and moved bytes. */
void dscomm_priv_row_add(row_t *row, uint64_t bytes, int64_t ns);
/* The same, if the caller has waited all the time. */
void dscomm_priv_row_add_blocked(row_t *row, uint64_t bytes, int64_t ns);

/* Adds an encoded operation that succeeded. */
void dscomm_priv_row_add_encoded(row_t *row, const dscomm_note_t *note);

/* Sets the counts of all rows of group to zero; NULL: of all rows. */
void dscomm_priv_table_reset(table_t *table, const group_t *group);

/* The parts of the value of a ROW_PHASE. */
#define PHASE_BITS 3
#define PHASE_OF(value) ((unsigned)(value) & ((1u << PHASE_BITS) - 1))

/* The class of a size, and its bounds. */
static inline unsigned size_class(uint64_t bytes)
{
    return bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
}
static inline uint64_t class_first(unsigned c)
{
    return c ? UINT64_C(1) << (c - 1) : 0;
}
static inline uint64_t class_last(unsigned c)
{
    return c ? class_first(c) + (class_first(c) - 1) : 0;
}

#endif
