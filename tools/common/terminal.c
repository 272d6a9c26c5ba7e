/* SPDX-License-Identifier: BSD-3-Clause */
/* Terminals that show colours, see terminal.h. */
#include "config.h"

#include "tools/common/terminal.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

/* Open MPI's mpirun gives ranks a pseudo-terminal of its own, whatever its own
 * output goes to. That one is not the session's terminal. */
static bool is_own_terminal(int fd)
{
    return isatty(fd) && tcgetpgrp(fd) >= 0;
}

bool tool_has_colours(int fd)
{
    const char *refused = g_getenv("NO_COLOR"), *term = g_getenv("TERM");

    return !(refused && *refused) && term && *term && strcmp(term, "dumb") &&
           is_own_terminal(fd);
}
