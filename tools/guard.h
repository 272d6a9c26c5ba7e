/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that outlives this one by a moment: should this one be killed, with
 * no time to clean up, the guard kills the ranks' process groups and removes
 * their error files. */
#ifndef TOOLS_GUARD_H
#define TOOLS_GUARD_H

#include <sys/types.h>

/* Starts the guard and returns memory, shared with it, for count group numbers:
 * those that are not 0 when this process is gone are killed, and the folder
 * (tools/errors.h; NULL: there is none) is removed. NULL: errno says why. Call
 * it before a thread exists; undone by the end of this process only. */
pid_t *tool_guard_start(int count, const char *folder);

#endif
