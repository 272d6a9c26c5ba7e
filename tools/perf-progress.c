/* SPDX-License-Identifier: BSD-3-Clause */
/* Words to the person in front: progress, and failures of the library. */
#include "config.h"

#include "tools/perf.h"

#include <stdio.h>
#include <unistd.h>

int perf_fail(const char *what)
{
    return tool_fail(TOOL_FAILED, "perf", "%s: %s", what, dscomm_last_error());
}

void perf_progress(const perf_run_t *run, const char *format, ...)
{
    va_list args;

    if (run->rank != 0 || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K");
    if (format) {
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
    }
    fflush(stderr);
}
