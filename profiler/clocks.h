/* SPDX-License-Identifier: BSD-3-Clause */
/* The difference of this rank's clock and rank 0's. Ranks of one machine share
 * the monotonic clock; of each other machine one rank asks rank 0 for the time,
 * by the store, several times, and uses the shortest round trip. */
#ifndef PROFILER_CLOCKS_H
#define PROFILER_CLOCKS_H

#include <dscomm/dscomm.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CLOCK_IDENTITY_MAX 160

/* A moment at which the difference was measured. */
typedef struct {
    int64_t at_ns; /* of this rank's clock */
    int64_t offset_ns; /* of rank 0's to it, at that moment */
    int64_t error_ns; /* the most by which offset_ns is wrong */
} clock_point_t;

typedef struct {
    char identity[CLOCK_IDENTITY_MAX]; /* equal on ranks of one clock */
    int64_t (*now)(void);
    int rank, size;
    bool is_shared; /* with rank 0 */
    bool has_come; /* this rank has compared its clock's identity */
    bool is_leader; /* asks for its machine */
    GArray *leaders; /* int, on rank 0: the ranks that ask */
    clock_point_t points[2]; /* at the begin and at the end */
    unsigned count; /* of points */
    unsigned measured; /* measurements, of which some may have failed */
} clocks_t;

void dscomm_priv_clocks_init(clocks_t *clocks, int rank, int size);
void dscomm_priv_clocks_clear(clocks_t *clocks);

/* Measures; all ranks call it at about the same time, once at the begin and
 * perhaps once at the end. Takes timeout_ms at most. If a rank does not come,
 * or is silent, the point is missing on the ranks of its machine. */
void dscomm_priv_clocks_measure(clocks_t *clocks, dscomm_store_t *store,
                                int timeout_ms);

/* The time of rank 0's clock: by the line through both points, or by the one
 * that there is. */
int64_t dscomm_priv_clocks_apply(const clocks_t *clocks, int64_t ns);
/* The most by which that is wrong at the points; -1: not known. */
int64_t dscomm_priv_clocks_error(const clocks_t *clocks);

#endif
