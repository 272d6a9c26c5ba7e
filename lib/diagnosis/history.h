/* SPDX-License-Identifier: BSD-3-Clause */
/* The call history of a group is what the flight recorder has of it. A rank
 * whose collective makes no progress writes a report for the other ranks, as
 * text: the last collectives, and the ranks that it waits for. */
#ifndef LIB_HISTORY_H
#define LIB_HISTORY_H

#include "lib/recorder/recorder.h"

#include <dscomm/backend.h>
#include <glib.h>

#define HISTORY_CALLS 8 /* in a report */

/* A report that was read from its text. */
typedef struct {
    int known; /* 0: no report was read */
    uint64_t last; /* sequence of the last call */
    uint64_t waits_for[4]; /* bit r: the rank waits for rank r, below 256 */
    dscomm_call_seen_t calls[HISTORY_CALLS]; /* without their caller */
} dscomm_report_t;

/* Bytes of the longest report: an id, ranks, and calls. */
#define REPORT_MAX (1024 + 1024 + 512 * HISTORY_CALLS)

/* Writes a report to text. group is the group's number in the slot, id its id;
 * current: the call that the rank is in, or NULL, and its serial; waits_for has
 * nwaits ranks. */
void dscomm_priv_report_write(const dscomm_recorder_slot_t *slot,
                              uint32_t group, const char *id,
                              const dscomm_coll_args_t *current,
                              uint64_t serial, const int *waits_for, int nwaits,
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
