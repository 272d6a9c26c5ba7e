/* SPDX-License-Identifier: BSD-3-Clause */
/* Terminals that show colours. */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>

/* Whether fd is a terminal of this session that shows colours, and the user
 * wants them: see https://no-color.org. */
bool tool_has_colours(int fd);

#endif
