/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks' log files, see logs.h. */
#include "config.h"

#include "tools/logs.h"
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <unistd.h>

static int fail(const tool_job_t *job, const char *path, int error)
{
    return tool_fail(TOOL_INTERNAL, job->command, "cannot make '%s': %s", path,
                     g_strerror(error));
}

static int open_one(const tool_job_t *job, const char *folder, const char *name,
                    int *ret_fd)
{
    char *path = g_build_filename(folder, name, NULL);
    int status = TOOL_OK;

    *ret_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (*ret_fd < 0)
        status = fail(job, path, errno);
    g_free(path);
    return status;
}

static int open_both(const tool_job_t *job, const char *folder, int ret_fds[2])
{
    int fds[2];
    int status = open_one(job, folder, "stdout.log", &fds[0]);

    if (status != TOOL_OK)
        return status;
    status = open_one(job, folder, "stderr.log", &fds[1]);
    if (status != TOOL_OK) {
        close(fds[0]);
        return status;
    }
    ret_fds[0] = fds[0];
    ret_fds[1] = fds[1];
    return TOOL_OK;
}

int tool_logs_open(const tool_job_t *job, int rank, int ret_fds[2])
{
    char *folder =
        g_strdup_printf("%s/%s/attempt_%d/%d", job->log_dir, job->run_id,
                        job->attempt, job->first_rank + rank);
    int status = TOOL_OK;

    if (g_mkdir_with_parents(folder, 0777) < 0)
        status = fail(job, folder, errno);
    else
        status = open_both(job, folder, ret_fds);
    g_free(folder);
    return status;
}
