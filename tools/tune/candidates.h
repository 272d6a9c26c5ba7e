/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings and algorithms that `dscomm tune` tries. */
#ifndef TOOLS_TUNE_CANDIDATES_H
#define TOOLS_TUNE_CANDIDATES_H

#include <glib.h>
#include <stdbool.h>

/* Operations of dscomm perf that are measured; NULL after the last. The
 * collectives come first. */
#define TUNE_OPERATIONS 11
extern const char *const tune_operations[TUNE_OPERATIONS + 1];
/* The index of an operation, or -1. */
int tune_operation_find(const char *name);
/* Whether it has a size. */
bool tune_operation_is_sized(int operation);

/* Settings or rules for one job, and what the job measures. */
typedef struct {
    char *name, *value; /* of the setting; NULL: the default */
    char **environment; /* more assignments, "NAME=VALUE"; or NULL */
    bool operations[TUNE_OPERATIONS];
    gsize first, last; /* classes of sizes */
    /* Of each operation, the algorithm that a rule names; else NULL */
    const char *algorithms[TUNE_OPERATIONS];
} tune_candidate_t;

tune_candidate_t *tune_candidate_new(const char *name, const char *value);
void tune_candidate_free(gpointer candidate);

/* Both return arrays of candidates, to be freed. Number 0 has nothing changed
 * and measures what any other one does. Settings that the environment has are
 * left out. */

/* Values of settings of backend. */
GPtrArray *tune_candidates_settings(const char *backend);
/* For each collective one of its algorithms, or none. */
GPtrArray *tune_candidates_algorithms(int ranks);

#endif
