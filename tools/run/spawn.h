/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting one rank: its environment, its stdio and its process. */
#ifndef TOOLS_SPAWN_H
#define TOOLS_SPAWN_H

#include "lib/recorder/recorder.h"
#include "tools/run/bind.h"
#include "tools/run/guard.h"
#include "tools/run/output.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#define TOOL_RANKS_MAX 4096 /* on a node */
#define TOOL_ID_MAX 100 /* bytes of a run id */

/* The properties that all ranks of a job share. A rank is a number from 0 on
 * this node; first_rank is added in messages and for the rank itself. */
typedef struct {
    const char *command; /* "run": this command's name in messages */
    char **argv; /* the program and its arguments, searched in PATH */
    int ranks; /* on this node */
    int first_rank, world; /* of all nodes */
    int nodes, node_rank;
    const char *address; /* address and port of the store */
    int port;
    char run_id[TOOL_ID_MAX + 1];
    /* number of the attempt, and the most restarts */
    int attempt, max_restarts;
    const char *log_dir; /* NULL: no log files */
    int null_fd; /* /dev/null: stdin of all ranks but 0 */
    /* stdin is a terminal; rank 0 stays in this process group to read it */
    bool terminal;
    sigset_t mask; /* signal mask at the program's start */
    struct sigaction pipe_action;
    int signal_fd; /* a signalfd, from tool_supervise_prepare(); -1: none yet */
    int end_signal; /* that ended the job; 0: none */
    gint64 deadline; /* monotonic time, from the first start on; G_MAXINT64 */
    struct rlimit files;
    tool_binding_t binding; /* of the ranks to processors */
    dscomm_recorder_t recorder; /* memory for the ranks' flight recorders */
    /* the guard; its groups are the ranks' pids, 0 = not running */
    tool_guard_t guard;
} tool_job_t;

/* Starts rank, whose output goes to output (NULL: ours) and to its logs. The
 * process is the leader of its own group, and is killed when this one dies.
 * Other than TOOL_OK: a sentence went to stderr. */
int tool_spawn(const tool_job_t *job, tool_output_t *output, int rank,
               pid_t *ret_pid);

/* records.c: the ranks' flight recorders */

/* Makes their memory, so that the record outlives all ranks. The job runs
 * without it too. */
void tool_records_make(tool_job_t *job);
/* Writes why a rank has ended into its flight recorder, if the rank could
 * not. */
void tool_records_end(const tool_job_t *job, int rank, pid_t pid,
                      const char *text);
/* Dumps the flight recorders to the folder of DSCOMM_DUMP, unless a rank has
 * done so: there were so many dumps before the attempt. Returns why that
 * failed, or NULL. */
const char *tool_records_dump(const tool_job_t *job, uint32_t before);

/* logs.c: the files of --log-dir, one for each stream of each rank and attempt:
 * DIR/RUN-ID/attempt_0/RANK/stdout.log. DIR/RUN-ID has mode 0700. No symbolic
 * link is followed below DIR. */

/* Makes rank's two files, with the folders that they need; ret_fds = the ends
 * that become its stdout and stderr, which are -1 before, and are the caller's
 * to close. Other than TOOL_OK: a sentence went to stderr. */
int tool_logs_open(const tool_job_t *job, int rank, int ret_fds[2]);

#endif
