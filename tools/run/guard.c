/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard, see guard.h. It reads from a pipe whose other end only the
 * guarded process has, and so it wakes up when that process ends for any
 * reason. */
#include "config.h"

#include "tools/common/errors.h"
#include "tools/run/guard.h"
#include "tools/run/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

static void guard(int fd, const tool_guard_t *shared, int count)
{
    const volatile pid_t *groups = shared->groups;
    char byte;

    detach();
    while (read(fd, &byte, 1) < 0 && errno == EINTR)
        continue;
    /* before ranks of other nodes fail because these ranks are gone */
    if (*shared->url)
        tool_nodes_report_killed(shared->url, shared->key, shared->text);
    for (int i = 0; i < count; i++)
        if (groups[i] > 0)
            kill(-groups[i], SIGKILL);
    tool_errors_remove(shared->folder);
    _exit(0);
}

/* As fork(), but the child's end sends no signal: waitpid() does not wait for
 * such children unless asked. All arguments are 0, because their order differs
 * between machines. */
static pid_t guard_fork(void)
{
    return (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
}

static int guard_start(int count, tool_guard_t *own)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    own->pid = guard_fork();
    if (own->pid == 0) {
        close(ends[1]);
        guard(ends[0], own, count);
    }
    int error = own->pid < 0 ? errno : 0;
    close(ends[0]);
    own->fd = ends[1];
    if (error)
        close(ends[1]);
    return error;
}

int tool_guard_start(int count, tool_guard_t *ret_guard)
{
    const size_t texts = 2 * PATH_MAX + 2 * TOOL_GUARD_TEXT;
    size_t size = texts + (size_t)count * sizeof(pid_t);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tool_guard_t own = {.folder = memory};

    if (memory == MAP_FAILED)
        return errno;
    own.url = memory + PATH_MAX;
    own.key = own.url + PATH_MAX;
    own.text = own.key + TOOL_GUARD_TEXT;
    own.groups = (pid_t *)(void *)(memory + texts);
    int error = guard_start(count, &own);
    if (error)
        munmap(memory, size);
    else
        *ret_guard = own;
    return error;
}

void tool_guard_end(const tool_guard_t *own)
{
    close(own->fd);
    while (waitpid(own->pid, NULL, __WCLONE) < 0 && errno == EINTR)
        continue;
}
