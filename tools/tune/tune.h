/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of `dscomm tune` share: the command line, and progress. */
#ifndef TOOLS_TUNE_H
#define TOOLS_TUNE_H

#include "tools/common/tool.h"

#include <glib.h>

typedef struct {
    int ranks;
    double seconds; /* for everything */
    char *backend; /* as asked for; NULL: auto */
    char *output;
    gboolean machine; /* only print the machine's group */
} tune_options_t;

/* Shows the current step on a terminal's stderr; NULL wipes it away. */
void tune_progress(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
