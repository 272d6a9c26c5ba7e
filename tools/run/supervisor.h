/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a running job, for the files that make up tool_supervise(). */
#ifndef TOOLS_SUPERVISOR_H
#define TOOLS_SUPERVISOR_H

#include "tools/run/nodes.h"
#include "tools/run/output.h"
#include "tools/run/supervise.h"

typedef enum { RUNNING, ENDING, KILLING, GIVEN_UP } stage_t;

typedef struct {
    tool_job_t *job;
    const tool_limits_t *limits;
    tool_nodes_t *nodes; /* NULL: this machine alone */
    tool_output_t *output; /* NULL: not tagged */
    int signal_fd;
    pid_t *pids; /* job's */
    int running; /* ranks */
    gboolean children; /* some process of the job is left */
    stage_t stage;
    gint64 job_deadline; /* monotonic time, G_MAXINT64 = none */
    gint64 deadline; /* of the stage */
    gint64 ended; /* when only output was left; 0: not yet */
    int end_signal; /* the signal that processes get in this stage */
    gboolean from_terminal; /* that signal came from the terminal */
    GHashTable *told; /* pids that were */
    int status; /* to exit with */
    int signal; /* to end by */
    gint64 signal_time; /* when it came */
    gboolean restarting; /* once all processes have ended */
    gboolean succeeded; /* all ranks of this attempt, here */
    gboolean over; /* on all nodes */
} supervisor_t;

/* Starts all ranks; FALSE if one cannot be started: then a sentence went to
 * stderr, and status is set. */
gboolean tool_start_ranks(supervisor_t *s);

/* Prints a sentence to stderr; if tagged output goes there, too, as a line of
 * it. */
void tool_say(const supervisor_t *s, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
/* "rank 3" or "ranks 0, 2-5": those that run; g_free(). */
char *tool_name_running(const supervisor_t *s);
/* "; ending ranks 0, 2", and whether they start again; g_free(). */
char *tool_name_consequence(const supervisor_t *s, gboolean again);
/* "rank 3 (pid 7) exited with status 1"; g_free(). */
char *tool_name_failure(const tool_job_t *job, int rank, pid_t pid,
                        int wait_status);
/* Prints rank's message about its failure to stderr. */
void tool_quote_rank(const supervisor_t *s, int rank);

#endif
