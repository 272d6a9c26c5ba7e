/* SPDX-License-Identifier: BSD-3-Clause */
/* The mpiruns of this machine. */
#ifndef TOOLS_MPIRUN_H
#define TOOLS_MPIRUN_H

#include <glib.h>

/* Absolute paths of those in PATH, each program once, in the order of
 * preference; NULL at the end; g_strfreev(). */
char **tool_mpirun_find(void);

/* What `program --version` prints, with neither shell nor input, at most 16
 * KiB of it; g_free(). NULL and a sentence in *ret_problem, g_free(), where it
 * cannot be started, fails, or has not ended after that many milliseconds, when
 * it is killed with all that it has started. */
char *tool_mpirun_version(const char *program, int msec, char **ret_problem);

#endif
