/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a job's ranks on this node from their start to the end of the last
 * process. */
#ifndef TOOLS_SUPERVISE_H
#define TOOLS_SUPERVISE_H

#include "tools/run/nodes.h"
#include "tools/run/spawn.h"

typedef struct {
    gint64 timeout_us; /* of the whole job; 0 = none */
    gint64 grace_us; /* from being told to end to SIGKILL */
    gboolean tag_output;
    gboolean ranks_explain; /* ranks write why they fail, see errors.h */
    int max_restarts; /* of all ranks after one has failed */
    const char *log_dir; /* NULL: none */
    gboolean no_secret; /* of the job */
    const char *id; /* of the job; NULL: a random one */
    const tool_place_t *place; /* among several nodes; NULL: one */
} tool_limits_t;

/* Blocks and collects the signals that a supervisor handles, and makes this
 * process the parent of every process that loses its own. Other threads must
 * block all signals. Fills the members of job that restore the former state in
 * the ranks. -1: a sentence went to stderr. */
int tool_supervise_prepare(tool_job_t *job);

/* Starts all ranks, and returns the exit status that the program should end
 * with when no process of the job is left here, and none runs on other nodes
 * (NULL: there are none), which it leaves then. Ends by a signal that ended the
 * job. */
int tool_supervise(tool_job_t *job, const tool_limits_t *limits,
                   tool_nodes_t *nodes);

#endif
