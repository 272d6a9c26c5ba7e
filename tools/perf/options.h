/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of `dscomm perf`. */
#ifndef TOOLS_PERF_OPTIONS_H
#define TOOLS_PERF_OPTIONS_H

#include "tools/perf/perf.h"

#include <stdbool.h>

/* TOOL_OK and *ret_options, to be cleared; or TOOL_USAGE. */
int perf_options_read(int argc, char **argv, perf_options_t *ret_options);
void perf_options_clear(perf_options_t *options);

/* Returns whether an operation is to be measured with this type and operator;
 * an operation that does not reduce takes any operator. */
bool perf_is_selected(const perf_options_t *options,
                      const perf_operation_t *operation, dscomm_dtype_t dtype,
                      dscomm_op_t op);

/* Whether the other options, and the operations that are named beside them, are
 * compatible with --accelerator, or with --compare; and whether the operations
 * to be compared have the same result. Each returns an exit status. */
int perf_check_accelerator(perf_options_t *options);
int perf_check_compare(const perf_options_t *options, char *const *names);
int perf_check_alternatives(const perf_options_t *options);

/* Reads a size such as "64M", "1.5K" or "8", in bytes, with K, M, G and T as
 * multiples of 1024; an "i", a "B" or both may follow. false: text is not a
 * size. */
bool perf_parse_size(const char *text, size_t *ret_bytes);

/* Returns the size after bytes, or 0 if that was the last one. */
size_t perf_next_size(const perf_options_t *options, size_t bytes);

#endif
