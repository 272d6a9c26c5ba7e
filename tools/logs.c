/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks' log files, see logs.h. */
#include "config.h"

#include "tools/logs.h"
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder that has been reached on the way to a rank's files. */
typedef struct {
    char *path;
    int fd;
} folder_t;

static int fail(const tool_job_t *job, const char *path, int error)
{
    return tool_fail(TOOL_INTERNAL, job->command, "cannot make '%s': %s", path,
                     g_strerror(error));
}

/* DIR, which the user names: symbolic links in its path are followed. */
static int open_top(const tool_job_t *job, folder_t *ret_top)
{
    int fd = -1;

    if (g_mkdir_with_parents(job->log_dir, 0777) == 0)
        fd = open(job->log_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail(job, job->log_dir, errno);
    *ret_top = (folder_t){g_strdup(job->log_dir), fd};
    return TOOL_OK;
}

/* Folders below DIR belong to whoever runs the job, or to root: another user
 * could put links, or files of his, where the logs go. */
static int check_owner(const tool_job_t *job, const folder_t *folder)
{
    struct stat info;

    if (fstat(folder->fd, &info) != 0)
        return fail(job, folder->path, errno);
    if (info.st_uid == geteuid() || info.st_uid == 0)
        return TOOL_OK;
    return tool_fail(TOOL_INTERNAL, job->command,
                     "cannot use '%s': it belongs to user %u; give another "
                     "--log-dir or --rdzv-id",
                     folder->path, (unsigned)info.st_uid);
}

/* Goes down to the folder name, which is made if it is absent. It must not be a
 * symbolic link. */
static int descend(const tool_job_t *job, folder_t *folder, const char *name,
                   mode_t mode)
{
    int parent = folder->fd;
    char *path = g_build_filename(folder->path, name, NULL);
    int made = mkdirat(parent, name, mode);
    int problem = made != 0 && errno != EEXIST ? errno : 0;

    g_free(folder->path);
    folder->path = path;
    folder->fd =
        openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder->fd < 0 && !problem)
        problem = errno;
    close(parent);
    if (folder->fd < 0 && problem == ENOTDIR)
        return tool_fail(TOOL_INTERNAL, job->command,
                         "cannot use '%s': it is no folder, and symbolic links "
                         "are not followed below --log-dir",
                         path);
    if (folder->fd < 0)
        return fail(job, path, problem);
    return check_owner(job, folder);
}

static int open_one(const tool_job_t *job, const folder_t *folder,
                    const char *name, int *ret_fd)
{
    char *path;
    int status;

    *ret_fd =
        openat(folder->fd, name,
               O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (*ret_fd >= 0)
        return TOOL_OK;
    path = g_build_filename(folder->path, name, NULL);
    status = fail(job, path, errno);
    g_free(path);
    return status;
}

static int open_both(const tool_job_t *job, const folder_t *folder,
                     int ret_fds[2])
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
    char *attempt = g_strdup_printf("attempt_%d", job->attempt);
    char *number = g_strdup_printf("%d", job->first_rank + rank);
    folder_t folder = {NULL, -1};
    int status = open_top(job, &folder);

    if (status == TOOL_OK)
        status = descend(job, &folder, job->run_id, 0700);
    if (status == TOOL_OK)
        status = descend(job, &folder, attempt, 0777);
    if (status == TOOL_OK)
        status = descend(job, &folder, number, 0777);
    if (status == TOOL_OK)
        status = open_both(job, &folder, ret_fds);
    if (folder.fd >= 0)
        close(folder.fd);
    g_free(folder.path);
    g_free(number);
    g_free(attempt);
    return status;
}
