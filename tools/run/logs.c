/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks' log files, see spawn.h. */
#include "config.h"

#include "tools/common/tool.h"
#include "tools/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder on the way to a rank's files. */
typedef struct {
    char *path;
    int fd;
} folder_t;

static int logs_fail(const tool_job_t *job, const char *path, int error)
{
    return tool_fail(TOOL_INTERNAL, job->command, "cannot make '%s': %s", path,
                     g_strerror(error));
}

/* Returns whether info is of a file of the user who runs the job, or of
 * root. */
static bool is_own(const struct stat *info)
{
    return info->st_uid == geteuid() || info->st_uid == 0;
}

/* Opens folder name in the folder parent; creates it if it is missing. A
 * symbolic link is not followed. */
static int open_entry(int parent, const char *name)
{
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);

    if (fd < 0 && errno == ENOENT &&
        (mkdirat(parent, name, 0777) == 0 || errno == EEXIST))
        fd = openat(parent, name, flags);
    return fd;
}

/* Enters the folder name on the way to DIR. It may be a symbolic link, unless
 * another user owns the link. */
static int folder_enter(const tool_job_t *job, folder_t *folder,
                        const char *name)
{
    int parent = folder->fd;
    char *path = g_build_filename(folder->path, name, NULL);
    struct stat info;
    int status = TOOL_OK;

    g_free(folder->path);
    folder->path = path;
    folder->fd = open_entry(parent, name);
    if (folder->fd < 0 || fstat(folder->fd, &info) != 0) {
        status = logs_fail(job, path, errno);
    } else if (S_ISLNK(info.st_mode) && !is_own(&info)) {
        status = tool_fail(TOOL_INTERNAL, job->command,
                           "cannot use '%s': it is a symbolic link of user "
                           "%u; give another --log-dir",
                           path, (unsigned)info.st_uid);
    } else if (!S_ISDIR(info.st_mode)) {
        close(folder->fd);
        folder->fd = openat(parent, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder->fd < 0)
            status = logs_fail(job, path, errno);
    }
    close(parent);
    return status;
}

/* Opens DIR, which the user has named. */
static int open_top(const tool_job_t *job, folder_t *top)
{
    const bool is_absolute = g_path_is_absolute(job->log_dir);
    char **names = g_strsplit(job->log_dir, "/", -1);
    int status = TOOL_OK;

    top->path = g_strdup(is_absolute ? "/" : "");
    top->fd = open(is_absolute ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top->fd < 0)
        status = logs_fail(job, job->log_dir, errno);
    for (char **name = names; *name && status == TOOL_OK; name++)
        if (**name)
            status = folder_enter(job, top, *name);
    g_strfreev(names);
    return status;
}

/* Folders below DIR must belong to the user who runs the job, or to root, and
 * nobody else may write there: another user could put links, or files of his
 * own, in place of the logs. */
static int check_folder(const tool_job_t *job, const folder_t *folder)
{
    struct stat info;

    if (fstat(folder->fd, &info) != 0)
        return logs_fail(job, folder->path, errno);
    if (!is_own(&info))
        return tool_fail(TOOL_INTERNAL, job->command,
                         "cannot use '%s': it belongs to user %u; give another "
                         "--log-dir or --rdzv-id",
                         folder->path, (unsigned)info.st_uid);
    if (info.st_mode & (S_IWGRP | S_IWOTH))
        return tool_fail(TOOL_INTERNAL, job->command,
                         "cannot use '%s': other users may write there; chmod "
                         "go-w it, or give another --log-dir or --rdzv-id",
                         folder->path);
    return TOOL_OK;
}

/* Enters the folder name, which is created if it is missing. It must not be a
 * symbolic link. */
static int folder_descend(const tool_job_t *job, folder_t *folder,
                          const char *name, mode_t mode)
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
        return logs_fail(job, path, problem);
    return check_folder(job, folder);
}

/* Checks an existing file, which may be a FIFO, a device, or another user's. */
static int check_file(const tool_job_t *job, const char *path, int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return logs_fail(job, path, errno);
    if (S_ISREG(info.st_mode) && is_own(&info))
        return TOOL_OK;
    return tool_fail(TOOL_INTERNAL, job->command,
                     "cannot use '%s': it is no regular file of this user; "
                     "remove it, or give another --log-dir or --rdzv-id",
                     path);
}

/* Opens one log file. Opening a FIFO without a reader must not block;
 * check_file() refuses one with a reader. The rank gets a blocking
 * descriptor. */
static int open_one(const tool_job_t *job, const folder_t *folder,
                    const char *name, int *ret_fd)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    char *path = g_build_filename(folder->path, name, NULL);
    int fd = openat(folder->fd, name, flags | O_NONBLOCK, 0644);
    int status =
        fd < 0 ? logs_fail(job, path, errno) : check_file(job, path, fd);

    g_free(path);
    if (status == TOOL_OK) {
        fcntl(fd, F_SETFL, O_APPEND);
        *ret_fd = fd;
    } else if (fd >= 0) {
        close(fd);
    }
    return status;
}

int tool_logs_open(const tool_job_t *job, int rank, int ret_fds[2])
{
    char *attempt = g_strdup_printf("attempt_%d", job->attempt);
    char *number = g_strdup_printf("%d", job->first_rank + rank);
    folder_t folder = {NULL, -1};
    int status = open_top(job, &folder);

    if (status == TOOL_OK)
        status = folder_descend(job, &folder, job->run_id, 0700);
    if (status == TOOL_OK)
        status = folder_descend(job, &folder, attempt, 0755);
    if (status == TOOL_OK)
        status = folder_descend(job, &folder, number, 0755);
    for (int i = 0; i < 2 && status == TOOL_OK; i++)
        status = open_one(job, &folder, i ? "stderr.log" : "stdout.log",
                          &ret_fds[i]);
    if (folder.fd >= 0)
        close(folder.fd);
    g_free(folder.path);
    g_free(number);
    g_free(attempt);
    return status;
}
