/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs, see job.h. */
#include "config.h"

#include "tools/errors.h"
#include "tools/guard.h"
#include "tools/job.h"
#include "tools/tool.h"

#include <dscomm/status.h>
#include <dscomm/store.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* To open a store that is served here. */
#define STORE_TIMEOUT_MS 10000

/* Pipes, and two connections of every rank to the store. */
static int raise_file_limit(const tool_job_t *job, gboolean tag_output,
                            struct rlimit *ret_before)
{
    rlim_t need = 64 + (rlim_t)job->ranks * (tag_output ? 4 : 2);
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    *ret_before = limit;
    if (limit.rlim_cur >= need)
        return TOOL_OK;
    if (limit.rlim_max < need)
        return tool_fail(TOOL_INTERNAL, job->command,
                         "%d ranks need %llu open files, and the hard limit "
                         "is %llu: raise it (ulimit -Hn) or start fewer",
                         job->ranks, (unsigned long long)need,
                         (unsigned long long)limit.rlim_max);
    limit.rlim_cur = need;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return TOOL_OK;
    return tool_fail(TOOL_INTERNAL, job->command,
                     "cannot have %llu open files: %s",
                     (unsigned long long)need, g_strerror(errno));
}

/* Ours must not get the numbers of stdin, stdout and stderr. */
static void fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    if (fd > STDERR_FILENO)
        close(fd);
}

static int make_run_id(tool_job_t *job)
{
    guint32 words[4];

    if (getrandom(words, sizeof(words), 0) != sizeof(words))
        return tool_fail(TOOL_INTERNAL, job->command, "no random numbers: %s",
                         g_strerror(errno));
    snprintf(job->run_id, sizeof(job->run_id), "%08x%08x%08x%08x", words[0],
             words[1], words[2], words[3]);
    return TOOL_OK;
}

static int prepare(tool_job_t *job, const tool_limits_t *limits)
{
    int error, status = raise_file_limit(job, limits->tag_output, &job->files);

    fill_standard_fds();
    if (status == TOOL_OK)
        status = make_run_id(job);
    if (status != TOOL_OK)
        return status;
    job->terminal = tcgetpgrp(STDIN_FILENO) >= 0;
    job->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (job->null_fd < 0)
        return tool_fail(TOOL_INTERNAL, job->command, "/dev/null: %s",
                         g_strerror(errno));
    error = tool_guard_start(job->ranks, &job->guard);
    if (error)
        return tool_fail(TOOL_INTERNAL, job->command,
                         "cannot start the guard process: %s",
                         g_strerror(error));
    tool_errors_make(job->guard.folder, PATH_MAX);
    return TOOL_OK;
}

static int open_store(const tool_job_t *job, dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;

    attr.serve = 1;
    attr.timeout_ms = STORE_TIMEOUT_MS;
    if (dscomm_store_open("tcp://127.0.0.1:0", &attr, ret_store) == DSCOMM_OK)
        return TOOL_OK;
    return tool_fail(TOOL_INTERNAL, job->command,
                     "cannot serve the ranks' store: %s", dscomm_last_error());
}

static int supervise(tool_job_t *job, const tool_limits_t *limits)
{
    if (tool_supervise_prepare(job) < 0)
        return TOOL_INTERNAL;
    return tool_supervise(job, limits);
}

int tool_job_run(const char *command, char **argv, int ranks,
                 const tool_limits_t *limits)
{
    tool_job_t job = {.command = command, .argv = argv, .ranks = ranks};
    dscomm_store_t *store;
    int status = prepare(&job, limits);

    if (status != TOOL_OK)
        return status;
    status = open_store(&job, &store);
    if (status == TOOL_OK) {
        job.port = dscomm_store_port(store);
        status = supervise(&job, limits);
        dscomm_store_close(store);
    }
    tool_guard_end(&job.guard);
    return status;
}
