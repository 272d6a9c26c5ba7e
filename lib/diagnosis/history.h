/* SPDX-License-Identifier: BSD-3-Clause */
/* The call history of a rank: its last collectives. A rank whose collective
 * makes no progress writes a report for the other ranks, as text: its history,
 * and the ranks that it waits for. */
#ifndef LIB_HISTORY_H
#define LIB_HISTORY_H

#include "lib/group/group.h"

#include <dscomm/backend.h>
#include <glib.h>

#define HISTORY_CALLS 8
#define HISTORY_COUNTS 8

/* One collective that this rank has called. */
typedef struct {
    dscomm_coll_args_t args; /* its pointers are no longer valid */
    int ncounts; /* entries of recv_counts; 0 without that array */
    uint64_t sum; /* of all counts */
    size_t counts[HISTORY_COUNTS]; /* the first ones */
    char op[DSCOMM_OP_TEXT]; /* the operator's text, of DSCOMM_OP_USER */
} dscomm_past_call_t;

/* The call with sequence s is calls[s % HISTORY_CALLS]. */
struct dscomm_history {
    dscomm_past_call_t calls[HISTORY_CALLS];
};

/* Makes and frees the history of a group. */
extern const dscomm_group_part_t dscomm_priv_history_part;

void dscomm_priv_history_note(dscomm_history_t *history,
                              const dscomm_coll_args_t *args, int ranks);

/* A report that was read from its text. */
typedef struct {
    int known; /* 0: no report was read */
    uint64_t last; /* sequence of the last call */
    uint64_t waits_for[4]; /* bit r: the rank waits for rank r, below 256 */
    dscomm_call_seen_t calls[HISTORY_CALLS]; /* without their caller */
} dscomm_report_t;

/* Bytes of the longest report: an id, ranks, and calls. */
#define REPORT_MAX (1024 + 1024 + 512 * HISTORY_CALLS)

/* Writes a report to text. id is the group's; waits_for has nwaits ranks. */
void dscomm_priv_report_write(const dscomm_history_t *history, const char *id,
                              const int *waits_for, int nwaits,
                              char text[REPORT_MAX]);
/* Returns 0 if text is a report of the group with this id, else -1. text may
 * hold any bytes. */
int dscomm_priv_report_read(const char *text, const char *id,
                            dscomm_report_t *ret_report);

/* The call with that sequence in a report, or NULL. */
const dscomm_call_seen_t *dscomm_priv_report_call(const dscomm_report_t *report,
                                                  uint64_t sequence);
/* The sequence of the oldest call that is in both reports with different
 * fingerprints; 0 if there is none. */
uint64_t dscomm_priv_report_difference(const dscomm_report_t *a,
                                       const dscomm_report_t *b);
/* 1 if the report says that its rank waits for rank, else 0. */
int dscomm_priv_report_waits(const dscomm_report_t *report, int rank);

#endif
