/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting the ranks of an attempt. */
#include "config.h"

#include "tools/common/errors.h"
#include "tools/common/tool.h"
#include "tools/run/logs.h"
#include "tools/run/supervisor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int fail_execution(const tool_job_t *job, int error)
{
    const char *program = job->argv[0];
    int missing = error == ENOENT || error == ENOTDIR;

    if (missing && strchr(program, '/') && access(program, F_OK) == 0)
        return tool_fail(TOOL_NOT_EXECUTABLE, job->command,
                         "cannot execute '%s': it is there, but its "
                         "interpreter or loader is not",
                         program);
    return tool_fail(missing ? TOOL_NOT_FOUND : TOOL_NOT_EXECUTABLE,
                     job->command, "cannot execute '%s': %s", program,
                     g_strerror(error));
}

static int fail_start(const tool_job_t *job, int rank, int error)
{
    return tool_fail(TOOL_INTERNAL, job->command,
                     "cannot start rank %d of %d: %s%s", job->first_rank + rank,
                     job->world, g_strerror(error),
                     error == EAGAIN   ? "; see 'ulimit -u'"
                     : error == EMFILE ? "; see 'ulimit -n'"
                                       : "");
}

/* ret_fds = what becomes rank's stdout and stderr, -1: ours. */
static int open_output(supervisor_t *s, int rank, int ret_fds[2])
{
    int logs[2] = {-1, -1};
    int status = TOOL_OK, error;

    if (s->job->log_dir)
        status = tool_logs_open(s->job, rank, logs);
    ret_fds[0] = logs[0];
    ret_fds[1] = logs[1];
    if (status != TOOL_OK || !s->output)
        return status;
    tool_output_tee(s->output, rank, logs);
    ret_fds[0] = ret_fds[1] = -1;
    error = tool_output_open(s->output, rank, ret_fds);
    return error ? fail_start(s->job, rank, error) : TOOL_OK;
}

static gboolean start_one(supervisor_t *s, int rank)
{
    int fds[2];
    gboolean executing = FALSE;
    int error = 0;

    tool_errors_forget(s->job->guard.folder, rank);
    s->status = open_output(s, rank, fds);
    if (s->status == TOOL_OK)
        error = tool_spawn(s->job, rank, fds[0] >= 0 ? fds : NULL,
                           &s->pids[rank], &executing);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (error)
        s->status = executing ? fail_execution(s->job, error)
                              : fail_start(s->job, rank, error);
    if (s->status != TOOL_OK)
        return FALSE;
    s->running++;
    s->children = TRUE;
    return TRUE;
}

gboolean tool_start_ranks(supervisor_t *s)
{
    int rank = 0;

    while (rank < s->job->ranks && start_one(s, rank))
        rank++;
    return rank == s->job->ranks;
}
