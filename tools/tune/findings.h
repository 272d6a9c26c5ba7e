/* SPDX-License-Identifier: BSD-3-Clause */
/* What is faster than the defaults. */
#ifndef TOOLS_TUNE_FINDINGS_H
#define TOOLS_TUNE_FINDINGS_H

#include "tools/tune/candidates.h"
#include "tools/tune/times.h"

/* A setting, or the algorithm of an operation in a class of sizes. Strings are
 * those of candidates. */
typedef struct {
    const char *name, *value; /* of a setting; NULL: an algorithm */
    int operation;
    gsize size_class;
    const char *algorithm;
    bool figures[TUNE_OPERATIONS * TUNE_CLASSES]; /* that it is about */
    tune_gain_t gain;
} tune_finding_t;

/* Adds the best value of each setting, and the best algorithm in each class,
 * that is clearly faster than candidate 0 and much slower nowhere. findings: a
 * GArray of tune_finding_t. */
void tune_find_settings(const GPtrArray *candidates, const tune_times_t *times,
                        GArray *findings);
void tune_find_algorithms(const GPtrArray *candidates,
                          const tune_times_t *times, GArray *findings);

/* Replaces the gains by those of alternative 1, which has all findings, and
 * removes those that are not clear any more. Returns their number. */
guint tune_findings_confirm(const tune_times_t *times, GArray *findings);

/* The rules of all algorithms, or NULL; to be freed. */
char *tune_findings_rules(const GArray *findings, const char *backend,
                          int ranks);
/* A candidate with all findings, which measures what they are about. */
tune_candidate_t *tune_findings_candidate(const GArray *findings,
                                          const char *backend, int ranks);
/* Writes what there is to say beside the findings, or "": that there are none,
 * or, if is_short, that some candidates were measured in too few rounds. */
void tune_findings_remark(const GArray *findings, bool is_short, char *text,
                          gsize size);

#endif
