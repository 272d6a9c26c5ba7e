/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock, and messages to the user: progress, and failures of the library.
 */
#include "config.h"

#include "tools/common/errors.h"
#include "tools/perf/perf.h"

#include <stdio.h>
#include <time.h>

int perf_fail(const char *what)
{
    char *sentence = g_strdup_printf("%s: %s", what, dscomm_last_error());
    int said;

    if (tool_errors_is_first(sentence, &said)) {
        tool_fail(0, "perf", "%s", sentence);
        tool_errors_said(said);
    }
    g_free(sentence);
    return TOOL_FAILED;
}

void perf_progress(const perf_run_t *run, const char *format, ...)
{
    va_list args;

    if (run->rank != 0)
        return;
    va_start(args, format);
    tool_progress(format, args);
    va_end(args);
}

double perf_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}
