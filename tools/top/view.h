/* SPDX-License-Identifier: BSD-3-Clause */
/* The coloured view of samples, for a terminal. */
#ifndef TOOLS_VIEW_H
#define TOOLS_VIEW_H

#include "tools/common/sample.h"

/* Appends the picture of samples to out: rows lines of columns characters at
 * most, the first with job, then the ranks from the index `first` on. */
void view_draw(const char *job, const GArray *samples, guint first, int rows,
               int columns, GString *out);

#endif
