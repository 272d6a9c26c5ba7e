/* SPDX-License-Identifier: BSD-3-Clause */
/* Terminals, see terminal.h. */
#include "config.h"

#include "tools/common/terminal.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

bool tool_is_own_terminal(int fd)
{
    return isatty(fd) && tcgetpgrp(fd) >= 0;
}

bool tool_has_colours(int fd)
{
    const char *refused = g_getenv("NO_COLOR"), *term = g_getenv("TERM");

    return !(refused && *refused) && term && *term && strcmp(term, "dumb") &&
           tool_is_own_terminal(fd);
}
