/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of `dscomm run`. */
#ifndef TOOLS_RUN_OPTIONS_H
#define TOOLS_RUN_OPTIONS_H

#include "tools/run/supervise.h"

typedef struct {
    int ranks;
    char **argv; /* the program and its arguments */
    tool_limits_t limits; /* its place is below, or NULL */
    tool_place_t place;
    char *texts[5]; /* what the others point to */
} tool_run_options_t;

/* Fills *options, which must be cleared. Other than TOOL_OK: a sentence went to
 * stderr. */
int tool_run_options(int argc, char **argv, tool_run_options_t *options);
void tool_run_options_clear(tool_run_options_t *options);

#endif
