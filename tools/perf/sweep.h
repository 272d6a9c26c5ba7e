/* SPDX-License-Identifier: BSD-3-Clause */
/* A sweep over numbers of ranks: a job for each of them, one after another.
 * This process starts `dscomm perf` for each job, by an option that --help does
 * not list, and collects their reports. */
#ifndef TOOLS_PERF_SWEEP_H
#define TOOLS_PERF_SWEEP_H

#include "tools/perf/perf.h"

#include <stdbool.h>

#define PERF_SWEEP_FORMAT "dscomm-perf-sweep"
#define PERF_SWEEP_VERSION 1

/* Reads numbers of ranks, as "2,4,8" or "2-8", to a list that ends with 0;
 * g_free(). NULL: text is no such list. */
int *perf_sweep_read(const char *text, int most);

/* Reads the value of the option of one job to options: ranks, part and report.
 * false: it is malformed. */
bool perf_sweep_read_part(const char *text, perf_options_t *options);

/* Runs the jobs with the words of the command line, and writes what belongs to
 * all of them. Returns the exit status. */
int perf_sweep(const perf_options_t *options, char *const *words);

/* In a job: hands its report over. Returns the exit status. */
int perf_sweep_report(const perf_options_t *options, const char *report);

#endif
