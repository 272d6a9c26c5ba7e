/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of --log-dir, one for each stream of each rank and attempt:
 * DIR/RUN-ID/attempt_0/RANK/stdout.log. DIR/RUN-ID has mode 0700. No symbolic
 * link is followed below DIR. */
#ifndef TOOLS_LOGS_H
#define TOOLS_LOGS_H

#include "tools/run/spawn.h"

/* Makes rank's two files, with the folders that they need; ret_fds = the ends
 * that become its stdout and stderr. Other than TOOL_OK: a sentence went to
 * stderr. */
int tool_logs_open(const tool_job_t *job, int rank, int ret_fds[2]);

#endif
