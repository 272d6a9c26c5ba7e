/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that fail for lack of resources: the k-th call that allocates
 * something of the kernel, within a phase of a job (trials.h). */
#include "config.h"

#include "tests/backends/inject.h"
#include "tests/backends/trials.h"

#include <errno.h>
#include <string.h>

/* The errno of each call; 0: the call allocates nothing. */
static const int errors[INJECT_CALLS] = {
    [INJECT_ACCEPT4] = EMFILE,       [INJECT_BIND] = ENOMEM,
    [INJECT_CONNECT] = EAGAIN,       [INJECT_CONNECT_INET] = EADDRNOTAVAIL,
    [INJECT_EPOLL_CREATE1] = EMFILE, [INJECT_EPOLL_CTL] = ENOSPC,
    [INJECT_EVENTFD] = EMFILE,       [INJECT_FALLOCATE] = ENOSPC,
    [INJECT_FCNTL] = EMFILE,         [INJECT_FLOCK] = ENOLCK,
    [INJECT_FOPEN] = EMFILE,         [INJECT_FTRUNCATE] = ENOSPC,
    [INJECT_GETIFADDRS] = EMFILE,    [INJECT_GETRANDOM] = ENOSYS,
    [INJECT_LISTEN] = ENOMEM,        [INJECT_MEMFD_CREATE] = EMFILE,
    [INJECT_MMAP] = ENOMEM,          [INJECT_OPEN] = EMFILE,
    [INJECT_OPEN_CREATE] = EMFILE,   [INJECT_OPENDIR] = EMFILE,
    [INJECT_PIDFD_OPEN] = EMFILE,    [INJECT_PTHREAD_CREATE] = EAGAIN,
    [INJECT_PWRITE] = ENOSPC,        [INJECT_RECVMSG] = ENOMEM,
    [INJECT_SENDMSG] = ENOBUFS,      [INJECT_SOCKET] = EMFILE,
};

static const char *causes[INJECT_CALLS];

INJECT_UNWATCHED int inject_error(inject_call_t call)
{
    return errors[call] && trials_fail(causes[call]) ? errors[call] : 0;
}

INJECT_UNWATCHED size_t inject_part(size_t size)
{
    return size;
}

int main(int argc, char **argv)
{
    inject_look_up();
    for (int i = 0; i < INJECT_CALLS; i++)
        causes[i] = strdup(strerror(errors[i]));
    return trials_main(TRIALS_CALLS, argc, argv);
}
