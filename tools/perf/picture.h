/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm perf --plot`: times and bus bandwidths over sizes, as a picture. */
#ifndef TOOLS_PERF_PICTURE_H
#define TOOLS_PERF_PICTURE_H

#include <stddef.h>

/* Draws the rows of reports (the JSON of --json, of one run each, with
 * different numbers of ranks) in a file. Returns the exit status. */
int perf_picture(const char *path, const char *const *reports, size_t count);

/* Says, with the exit status, whether a picture can be drawn in a file of this
 * name, before anything is measured. */
int perf_picture_check(const char *path);

#endif
