/* SPDX-License-Identifier: BSD-3-Clause */
/* One job of `dscomm perf`. */
#ifndef TOOLS_TUNE_JOB_H
#define TOOLS_TUNE_JOB_H

#include "tools/tune/candidates.h"
#include "tools/tune/tune.h"

/* A row that was measured: the sum of its times out of place and in place, in
 * microseconds, of an operation in a class of sizes. */
typedef void (*tune_row_fn)(int operation, gsize size_class,
                            const char *algorithm, double time, void *arg);

/* Measures what candidate asks for, so many seconds a figure, without a tuning
 * file, and calls row for each row. Returns TOOL_OK; or TOOL_FAILED and why, to
 * be freed. */
int tune_job_measure(const tune_options_t *options,
                     const tune_candidate_t *candidate, double seconds,
                     tune_row_fn row, void *arg, char **ret_problem);

/* Finds the backend that so many ranks use; to be freed. */
int tune_job_backend(const tune_options_t *options, char **ret_backend,
                     char **ret_problem);

#endif
