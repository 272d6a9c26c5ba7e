/* SPDX-License-Identifier: BSD-3-Clause */
/* The mpiruns of this machine. */
#ifndef TOOLS_MPIRUN_H
#define TOOLS_MPIRUN_H

#include <glib.h>

/* Absolute paths of the mpiruns in PATH, each program once, in the order of
 * preference; NULL at the end; g_strfreev(). */
char **tool_mpirun_find(void);

/* Returns the output of `program --version`, at most 16 KiB; g_free(). The
 * program is started without a shell and without input. Returns NULL and a
 * sentence in *ret_problem, g_free(), if it cannot be started, fails, or does
 * not end within that many milliseconds; then it is killed with all its
 * children. */
char *tool_mpirun_version(const char *program, int msec, char **ret_problem);

#endif
