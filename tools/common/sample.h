/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of the ranks of a machine: their activity since the sample before. */
#ifndef TOOLS_SAMPLE_H
#define TOOLS_SAMPLE_H

#include "lib/recorder/dump.h"

#include <glib.h>

#define SAMPLE_UNKNOWN (-1.0)

typedef struct {
    int rank, pid;
    int node; /* of the job; 0 for those that were taken here */
    int64_t opened_ns; /* start of the record: tells a process's worlds apart */
    slot_state_t state;
    uint64_t calls; /* all that the rank has made */
    double calls_per_s, bytes_per_s;
    /* Part of the time, 0 to 1, for which the rank was in collectives that
     * another rank had not called yet; or SAMPLE_UNKNOWN, because that may be a
     * rank of another machine. */
    double wait;
    char current[200]; /* the call that it is in, or "" */
    double current_s; /* since that was called, or since the last call */
} sample_t;

/* Reads all ranks, in their order; g_array_free(). before: the former sample,
 * taken seconds ago, or NULL: rates are 0 then. */
GArray *sample_take(const dscomm_recorder_t *recorder, const GArray *before,
                    double seconds);

/* Writes wait as text: "35%", or "-". */
void sample_wait(const sample_t *sample, char *text, size_t size);

/* Sorts samples by rank. */
void samples_sort(GArray *samples);
/* The number of nodes that samples are of. */
int samples_nodes(const GArray *samples);
/* The samples as lines of text, for another node; g_free(). */
char *samples_print(const GArray *samples);
/* Adds the samples of a node from such lines; leaves out lines that are none.
 */
void samples_parse(const char *text, int node, GArray *samples);

#endif
