/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring candidates in turn, round by round. */
#ifndef TOOLS_TUNE_SERIES_H
#define TOOLS_TUNE_SERIES_H

#include "tools/tune/candidates.h"
#include "tools/tune/times.h"
#include "tools/tune/tune.h"

/* The figure of an operation in a class. */
static inline gsize tune_figure(int operation, gsize size_class)
{
    return (gsize)operation * TUNE_CLASSES + size_class;
}

/* Measures candidates until end, or until there are TUNE_ROUNDS_MIN rounds but
 * not beyond limit, both on the clock of g_get_monotonic_time(). The
 * alternatives of *ret_times, to be cleared, are the candidates. One that fails
 * is left out, with a line on stderr; TOOL_FAILED if number 0 fails. What turns
 * out to be much slower is left out of later rounds, and its member operations
 * is then false. *ret_short becomes true if there was time for too few rounds.
 * what: for progress. */
int tune_series_measure(const tune_options_t *options, const char *what,
                        const GPtrArray *candidates, gint64 end, gint64 limit,
                        tune_times_t *ret_times, bool *ret_short);

#endif
