/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of `dscomm info`. */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <glib.h>

typedef struct {
    gboolean build, backends, settings;
} tool_info_parts_t;

/* One JSON object with a member for each part, to stdout. */
void tool_info_print_json(const tool_info_parts_t *parts);

#endif
