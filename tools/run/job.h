/* SPDX-License-Identifier: BSD-3-Clause */
/* A job, from the store at which its ranks meet to the last process. */
#ifndef TOOLS_JOB_H
#define TOOLS_JOB_H

#include "tools/run/supervise.h"

/* Starts argv (NULL at the end; searched in PATH) as so many ranks here, and
 * other nodes theirs if limits names a place among them, and returns
 * the exit status to end with, when nothing of the job is left; ends by a
 * signal that ended it. command is ours, for messages. */
int tool_job_run(const char *command, char **argv, int ranks,
                 const tool_limits_t *limits);

#endif
