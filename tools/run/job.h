/* SPDX-License-Identifier: BSD-3-Clause */
/* A job, from the store at which its ranks meet to the last process. */
#ifndef TOOLS_JOB_H
#define TOOLS_JOB_H

#include "tools/run/supervise.h"

/* Starts argv (NULL at the end; searched in PATH) as the ranks of this
 * machine; if limits gives a place among several nodes, other nodes start
 * theirs. Returns the exit status for the program when no process of the job
 * is left here; ends by a signal that ended the job. command is this command's
 * name in messages. */
int tool_job_run(const char *command, char **argv, int ranks,
                 const tool_limits_t *limits);

#endif
