/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiler. */
#ifndef PROFILER_PROFILER_H
#define PROFILER_PROFILER_H

#include "profiler/table.h"

#include "lib/base/ticks.h"

#include <dscomm/profiler.h>

/* A token of the hooks, for an operation that counts: when it began, and where.
 * All calls of begin and end are made with it:
 *
 *     bits 0 to 47   ticks of the clock, modulo a day
 *     bits 48 to 59  number of the call site
 *
 * 0: the operation does not count. */
#define TOKEN_TIME ((UINT64_C(1) << 48) - 1)

struct dscomm_profiler {
    dscomm_profiler_t *next; /* of the freed ones */
    uint32_t colls; /* bit c: operations dscomm_coll_t c count */
    bool verbose, debug, trace, phases;
    atomic_bool attached;
    atomic_bool started; /* groups in state GROUP_DEFAULT count */
    atomic_bool has_started; /* some group is GROUP_STARTED */
    /* When it was attached, or all groups were reset: what began before does
     * not count. UINT64_MAX: it is freed, so that nothing counts. */
    _Atomic uint64_t since_ticks;
    double ns_per_tick;
    dscomm_moment_t began; /* before which no event began */
    int rank; /* in the world, for verbose lines; -1: not known */
    table_t table;
};

/* The hooks' functions. arg is the profiler. */
uint64_t dscomm_priv_profiler_begin(const dscomm_op_info_t *info, void *arg);
void dscomm_priv_profiler_end(const dscomm_op_info_t *info,
                              dscomm_status_t status, uint64_t token,
                              void *arg);
void dscomm_priv_profiler_waited(const dscomm_op_info_t *info,
                                 int64_t nanoseconds, uint64_t token,
                                 void *arg);
void dscomm_priv_profiler_device(const dscomm_op_info_t *info,
                                 int64_t nanoseconds, uint64_t token,
                                 void *arg);
void dscomm_priv_profiler_note(const dscomm_note_t *note, void *arg);

/* Sets *ret_colls to the operations that list names, a bit for each. Otherwise
 * fails with error, and a sentence about what. */
dscomm_status_t dscomm_priv_colls_parse(const char *what, dscomm_status_t error,
                                        const char *list, uint32_t *ret_colls);

/* Now, by the ticks and by the monotonic clock. */
dscomm_moment_t dscomm_priv_profiler_moment(void);

/* The bytes by which nccl-tests computes busbw, for each byte of algbw; 0 if
 * bytes do not tell what the collective moves. Source: doc/PERFORMANCE.md of
 * nccl-tests. */
double dscomm_priv_bus_factor(int coll, int ranks);

/* "1.5 KB", as DeepSpeed writes sizes: of base 1024, rounded to 2 decimals. */
void dscomm_priv_size_text(uint64_t bytes, char *text, size_t size);

#endif
