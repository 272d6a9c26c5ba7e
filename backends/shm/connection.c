/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions for both sides of a connection: the socket's address, a process's
 * pidfd, waiting for a message, and sentences about failures. */
#include "config.h"

#include "backends/shm/connect.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <glib.h>

/* longest part of a wait without a check */
#define MOST_SLICE_NS (100 * NS_PER_MS)

socklen_t shm_connect_address(const char *name, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* A leading zero byte makes the address an abstract one, without a file. */
    snprintf(ret_address->sun_path + 1, sizeof ret_address->sun_path - 1,
             "dscomm-%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       strlen(ret_address->sun_path + 1));
}

dscomm_status_t shm_connect_fail(const shm_t *shm, const char *call)
{
    const int error = errno;
    const bool no_memory = error == EMFILE || error == ENFILE ||
                           error == ENOMEM || error == ENOBUFS;

    return shm_fail_resource(
        shm, no_memory ? DSCOMM_ERR_NO_MEMORY : DSCOMM_ERR_IO,
        "cannot meet its peers: %s: %s%s", call, strerror(error),
        error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
}

dscomm_status_t shm_connect_result(const join_result_t *result)
{
    dscomm_failure_t failure;

    if (!result->status)
        return DSCOMM_OK;
    if (!dscomm_backend_failure_unpack(result->failure, sizeof result->failure,
                                       &failure))
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "another rank has told of a failure that makes no "
                           "sense");
    return dscomm_backend_fail(&failure);
}

dscomm_status_t shm_connect_no_memory(const shm_t *shm)
{
    errno = ENOMEM;
    return shm_connect_fail(shm, "malloc");
}

dscomm_status_t shm_connect_await(const dscomm_backend_args_t *args, int fd,
                                  int64_t end_ns)
{
    int64_t slice_ns = DSCOMM_CREATION_LOOK_MS * NS_PER_MS;
    dscomm_status_t status = DSCOMM_OK;

    for (;;) {
        int64_t now_ns = shm_now_ns();

        if (shm_message_poll(fd,
                             status ? now_ns : MIN(now_ns + slice_ns, end_ns)))
            return DSCOMM_OK;
        if (status || now_ns + slice_ns >= end_ns)
            return status ? status : DSCOMM_ERR_TIMEOUT;
        status = dscomm_backend_creation_check(args);
        slice_ns = MIN(2 * slice_ns, MOST_SLICE_NS);
    }
}

dscomm_status_t shm_connect_pidfd(const shm_t *shm, int *ret_fd)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return shm_connect_fail(shm, "pidfd_open");
    *ret_fd = fd;
    return DSCOMM_OK;
}

dscomm_status_t shm_connect_lost(const shm_t *shm,
                                 const dscomm_backend_args_t *args, int rank,
                                 const char *call, int error)
{
    if (!shm_message_is_own(error))
        return dscomm_backend_creation_lost(args, rank);
    errno = error;
    return shm_connect_fail(shm, call);
}
