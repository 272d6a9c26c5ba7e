/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixed-size messages with file descriptors, over a unix socket. */
#include "config.h"

#include "backends/shm/connect.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <glib.h>

typedef union {
    char bytes[CMSG_SPACE(sizeof(int) * PEER_BATCH)];
    struct cmsghdr align;
} control_t;

bool shm_message_poll(int fd, int64_t end_ns)
{
    struct pollfd poller = {fd, POLLIN, 0};

    for (;;) {
        int64_t left = (end_ns - shm_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
        int n = poll(&poller, 1, (int)CLAMP(left, 0, G_MAXINT));

        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

int shm_message_send(int fd, const void *message, size_t size, const int *fds,
                     int nfds, int64_t end_ns)
{
    struct iovec part = {(void *)message, size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    control_t control = {{0}};
    ssize_t n;

    if (nfds > 0) {
        size_t length = sizeof(int) * (size_t)nfds;

        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(length);
        CMSG_FIRSTHDR(&header)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&header)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&header)->cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&header)), fds, length);
    }
    while ((n = sendmsg(fd, &header, MSG_NOSIGNAL)) < 0) {
        int error = errno;

        /* A user's descriptors in flight are limited like open files; there
         * are fewer as the receivers accept them. */
        if (error == ETOOMANYREFS && shm_now_ns() < end_ns)
            g_usleep(500);
        else if (error != EINTR)
            return error;
    }
    return 0;
}

/* Keeps the first max_fds descriptors of the message, and closes the others. */
static void take_descriptors(struct msghdr *header, int *ret_fds, int max_fds)
{
    int taken = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c;
         c = CMSG_NXTHDR(header, c)) {
        int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (int i = 0; i < count; i++) {
            int received;

            memcpy(&received, CMSG_DATA(c) + sizeof(int) * (size_t)i,
                   sizeof received);
            if (taken < max_fds)
                ret_fds[taken++] = received;
            else
                close(received);
        }
    }
}

int shm_message_receive(int fd, void *message, size_t size, int *ret_fds,
                        int max_fds, int64_t end_ns)
{
    struct iovec part = {message, size};
    control_t control = {{0}};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    uint64_t magic = 0;
    ssize_t n;

    for (int i = 0; i < max_fds; i++)
        ret_fds[i] = -1;
    if (!shm_message_poll(fd, end_ns))
        return ETIMEDOUT;
    do {
        n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    take_descriptors(&header, ret_fds, max_fds);
    if (n >= (ssize_t)sizeof magic)
        memcpy(&magic, message, sizeof magic);
    if (n == (ssize_t)size && magic == SHM_MAGIC &&
        !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return 0;
    for (int i = 0; i < max_fds && ret_fds[i] >= 0; i++) {
        close(ret_fds[i]);
        ret_fds[i] = -1;
    }
    if (n == (ssize_t)size && magic == SHM_MAGIC &&
        !(header.msg_flags & MSG_TRUNC))
        return EMFILE;
    return n ? EPROTO : ECONNRESET;
}

bool shm_message_is_own(int error)
{
    return error && error != EPIPE && error != ECONNRESET && error != EPROTO &&
           error != ETIMEDOUT;
}

bool shm_message_same_user(int fd)
{
    struct ucred credentials;
    socklen_t length = sizeof credentials;

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) &&
           credentials.uid == geteuid();
}
