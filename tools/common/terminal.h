/* SPDX-License-Identifier: BSD-3-Clause */
/* Terminals, and whether they show colours. */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>

/* Whether fd is a terminal of this session. Open MPI's mpirun gives ranks a
 * pseudo-terminal of its own, whatever its own output goes to. */
bool tool_is_own_terminal(int fd);

/* Whether fd is such a terminal that shows colours, and the user
 * wants them: see https://no-color.org. */
bool tool_has_colours(int fd);

#endif
