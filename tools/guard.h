/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that outlives this one by a moment: should this one be killed, with
 * no time to end what it started, the guard kills the ranks' process groups. */
#ifndef TOOLS_GUARD_H
#define TOOLS_GUARD_H

#include <sys/types.h>

/* Starts the guard and returns memory, shared with it, for count group numbers:
 * those that are not 0 when this process is gone are killed. NULL: errno says
 * why. Call it before a thread exists; undone by the end of this process
 * only. */
pid_t *tool_guard_start(int count);

#endif
