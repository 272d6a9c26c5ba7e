/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a node's ranks, in words. */
#ifndef TOOLS_RANKS_H
#define TOOLS_RANKS_H

#include "tools/run/spawn.h"

/* Returns "rank 3" or "ranks 0, 2-5": the running ranks; g_free(). */
char *tool_ranks_running(const tool_job_t *job);
/* Returns "rank 3 (pid 7) exited with status 1"; g_free(). */
char *tool_ranks_failure(const tool_job_t *job, int rank, pid_t pid,
                         int wait_status);
/* Returns whether some ranks have ended, and all others are stopped by a
 * signal. */
bool tool_ranks_only_stopped(const tool_job_t *job);
/* Says that, with the running ranks: "rank 3 (pid 7) is stopped, and all others
 * have ended"; g_free(). */
char *tool_ranks_stopped(const tool_job_t *job);

#endif
