/* SPDX-License-Identifier: BSD-3-Clause */
/* The word that every operation reads, and the handler that counts forks. */
#include "config.h"
#include "lib/base/process.h"
#include "lib/base/log.h"
#include "lib/base/op.h"
#include "lib/base/process-fd.h"

#include <dscomm/backend.h>
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_uint dscomm_priv_attention;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered;
static void (*const *_Atomic functions)(void);

void dscomm_priv_process_set_forked(void (*const *table)(void))
{
    atomic_store(&functions, table);
}

/* In the child: the worlds stay known, so that they can be freed, but every
 * lock may have been held by a thread that does not exist here. */
static void after_fork(void)
{
    atomic_fetch_add(&dscomm_priv_attention, DSCOMM_ATTENTION_FORK);
    dscomm_priv_log_forked();
    dscomm_priv_op_forked();
    for (void (*const *forked)(void) = atomic_load(&functions);
         forked && *forked; forked++)
        (*forked)();
    dscomm_priv_fd_after_fork(true);
}

static void after_fork_in_parent(void)
{
    dscomm_priv_fd_after_fork(false);
}

static void fork_watch(void)
{
    registered = pthread_atfork(dscomm_priv_fd_before_fork,
                                after_fork_in_parent, after_fork);
}

dscomm_status_t dscomm_priv_process_watch(void)
{
    pthread_once(&once, fork_watch);
    if (registered)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "pthread_atfork: %s",
                           strerror(registered));
    return DSCOMM_OK;
}

int dscomm_priv_process_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int dscomm_priv_process_ended(pid_t pid, int fd)
{
    struct pollfd one = {fd, POLLIN, 0};

    if (fd >= 0)
        return poll(&one, 1, 0) > 0;
    return kill(pid, 0) && errno == ESRCH;
}

const char *dscomm_priv_process_stopped(int64_t pid)
{
    char path[40], text[512];
    const char *end;
    FILE *file;
    size_t size;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    file = fopen(path, "re");
    if (!file)
        return NULL;
    size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    end = strrchr(text, ')'); /* the name may hold anything, ')' too */
    if (!end || end[1] != ' ')
        return NULL;
    return end[2] == 'T'   ? " by a signal"
           : end[2] == 't' ? " by a debugger"
                           : NULL;
}
