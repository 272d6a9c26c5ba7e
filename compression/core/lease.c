/* SPDX-License-Identifier: BSD-3-Clause */
/* See lease.h. */
#define _GNU_SOURCE
#include "config.h"

#include "compression/core/lease.h"

#include "lib/base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

/* The result of a call that no signal has interrupted. */
#define RETRY(call)                                                            \
    ({                                                                         \
        ssize_t result;                                                        \
        do                                                                     \
            result = (call);                                                   \
        while (result < 0 && errno == EINTR);                                  \
        result;                                                                \
    })

int dscomm_priv_lease_make(dscomm_lease_t *ret_lease)
{
    dscomm_lease_t lease = {.process = getpid()};
    int fd = memfd_create("dscomm-lease", MFD_CLOEXEC);

    if (fd < 0)
        return -1;
    lease.fd = fd;
    if (!dscomm_priv_random(lease.token, sizeof lease.token) ||
        RETRY(pwrite(fd, lease.token, sizeof lease.token, 0)) !=
            (ssize_t)sizeof lease.token) {
        close(fd);
        return -1;
    }
    *ret_lease = lease;
    return fd;
}

/* Checks that the file is the owner's: a process of another node or container
 * may have the same number, and the lease may have ended between the first two
 * calls. */
int dscomm_priv_lease_hold(const dscomm_lease_t *lease)
{
    unsigned char token[sizeof lease->token];
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)lease->process,
             (int)lease->fd);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0 &&
        RETRY(pread(fd, token, sizeof token, 0)) == (ssize_t)sizeof token &&
        !memcmp(token, lease->token, sizeof token))
        return fd;
    close(fd);
    return -1;
}

void dscomm_priv_lease_give(int fd)
{
    flock(fd, LOCK_UN);
    close(fd);
}

int dscomm_priv_lease_end(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB))
        return 0;
    if (RETRY(ftruncate(fd, 0))) {
        flock(fd, LOCK_UN);
        return 0;
    }
    close(fd);
    return 1;
}
