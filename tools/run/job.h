/* SPDX-License-Identifier: BSD-3-Clause */
/* A job, from the store at which its ranks meet to the last process. */
#ifndef TOOLS_JOB_H
#define TOOLS_JOB_H

#include "tools/run/bind.h"
#include "tools/run/nodes.h"

#include <stdbool.h>

typedef struct {
    gint64 timeout_us; /* limit for the whole job; 0 = none */
    gint64 grace_us; /* time from the first signal to SIGKILL */
    gboolean tag_output;
    tool_tags_t tags; /* with tag_output */
    const char *bind; /* a word of --bind, or NULL */
    bool ranks_explain; /* ranks write why they fail, see errors.h */
    int max_restarts; /* most restarts of all ranks after a failure */
    gboolean survive; /* a rank that fails does not end the others */
    const char *log_dir; /* NULL: none */
    gboolean no_secret; /* of the job */
    const char *id; /* run id; NULL: a random one */
    const tool_place_t *place; /* among several nodes; NULL: one */
} tool_limits_t;

/* Starts argv (NULL at the end; searched in PATH) as the ranks of this
 * machine; if limits gives a place among several nodes, other nodes start
 * theirs. Returns the exit status for the program when no process of the job
 * is left here; ends by a signal that ended the job. command is this command's
 * name in messages. */
int tool_job_run(const char *command, char **argv, int ranks,
                 const tool_limits_t *limits);

/* Does so with this program; words: its arguments from argv[0] on. */
int tool_job_run_self(const char *command, char **words, int ranks,
                      const tool_limits_t *limits);

/* Whether this process must start so many ranks: more than one, and it is not a
 * rank of several itself, nor told by DSCOMM_INIT_METHOD to be one. It opens no
 * world, because DSCOMM_BIND would bind this process, and with it the ranks
 * that it starts. False also if the environment is invalid; dscomm_init() then
 * says why. */
bool tool_job_is_needed(int ranks);

/* supervise.c: running the ranks of this node from their start to the end of
 * the last process */

/* Blocks and collects the signals that a supervisor handles, and makes this
 * process the parent of every process that loses its own. Other threads must
 * block all signals. Fills signal_fd, and the members of job that restore the
 * former state in the ranks. -1: a sentence went to stderr. */
int tool_supervise_prepare(tool_job_t *job);

/* The result of tool_supervise() if the next attempt of an elastic job
 * follows. */
#define TOOL_AGAIN (-1)

/* Starts all ranks. Returns the exit status for the program when no process of
 * the job is left on this node and no other node runs one (nodes NULL: there is
 * none); it then leaves the nodes. If a signal ended the job, job->end_signal
 * is set. */
int tool_supervise(tool_job_t *job, const tool_limits_t *limits,
                   tool_nodes_t *nodes);

#endif
