/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard, see guard.h. It reads from a pipe whose other end only the guarded
 * process has, and so wakes up when that is gone, however it went. */
#include "config.h"

#include "tools/errors.h"
#include "tools/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void detach(void)
{
    sigset_t all;
    int null_fd = open("/dev/null", O_RDWR);

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "dscomm-guard");
    setsid();
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        dup2(null_fd, fd);
    close(null_fd);
    if (chdir("/") < 0)
        return;
}

static void guard(int fd, const volatile pid_t *groups, int count,
                  const char *folder)
{
    char byte;

    detach();
    while (read(fd, &byte, 1) < 0 && errno == EINTR)
        continue;
    for (int i = 0; i < count; i++)
        if (groups[i] > 0)
            kill(-groups[i], SIGKILL);
    tool_errors_remove(folder);
    _exit(0);
}

/* Two forks, so that the guard is nobody's child to wait for. */
static int start(const int ends[2], const pid_t *groups, int count,
                 const char *folder)
{
    pid_t pid = fork();

    if (pid == 0) {
        close(ends[1]);
        pid_t second = fork();
        if (second == 0)
            guard(ends[0], groups, count, folder);
        _exit(second < 0 ? errno : 0);
    }
    if (pid < 0)
        return errno;
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

pid_t *tool_guard_start(int count, const char *folder)
{
    size_t size = (size_t)count * sizeof(pid_t);
    pid_t *groups = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];

    if (groups == MAP_FAILED)
        return NULL;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        int error = start(ends, groups, count, folder);
        close(ends[0]);
        if (!error)
            return groups;
        close(ends[1]);
        errno = error;
    }
    munmap(groups, size);
    return NULL;
}
