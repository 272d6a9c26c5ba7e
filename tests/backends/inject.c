/* SPDX-License-Identifier: BSD-3-Clause */
/* See inject.h. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/backends/inject.h"
#include "tests/tap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default"))) INJECT_UNWATCHED

const char *const inject_names[INJECT_CALLS] = {
    [INJECT_ACCEPT4] = "accept4",
    [INJECT_BIND] = "bind",
    [INJECT_CONNECT] = "connect",
    [INJECT_CONNECT_INET] = "connect",
    [INJECT_EPOLL_CREATE1] = "epoll_create1",
    [INJECT_EPOLL_CTL] = "epoll_ctl",
    [INJECT_EPOLL_WAIT] = "epoll_wait",
    [INJECT_EVENTFD] = "eventfd",
    [INJECT_FALLOCATE] = "fallocate",
    [INJECT_FCNTL] = "fcntl",
    [INJECT_FLOCK] = "flock",
    [INJECT_FOPEN] = "fopen",
    [INJECT_FTRUNCATE] = "ftruncate",
    [INJECT_GETIFADDRS] = "getifaddrs",
    [INJECT_GETRANDOM] = "getrandom",
    [INJECT_LISTEN] = "listen",
    [INJECT_MEMFD_CREATE] = "memfd_create",
    [INJECT_MMAP] = "mmap",
    [INJECT_OPEN] = "open",
    [INJECT_OPEN_CREATE] = "open",
    [INJECT_OPENDIR] = "opendir",
    [INJECT_PIDFD_OPEN] = "syscall",
    [INJECT_POLL] = "poll",
    [INJECT_PREAD] = "pread",
    [INJECT_PTHREAD_CREATE] = "pthread_create",
    [INJECT_PWRITE] = "pwrite",
    [INJECT_RECV] = "recv",
    [INJECT_RECVMSG] = "recvmsg",
    [INJECT_SEND] = "send",
    [INJECT_SENDMSG] = "sendmsg",
    [INJECT_SENDMSG_INET] = "sendmsg",
    [INJECT_SOCKET] = "socket",
    [INJECT_WRITE] = "write",
};

static void *next[INJECT_CALLS];

INJECT_UNWATCHED static void *real(inject_call_t call)
{
    if (!next[call])
        next[call] = dlsym(RTLD_NEXT, inject_names[call]);
    if (!next[call])
        bail("no %s: %s", inject_names[call], dlerror());
    return next[call];
}

void inject_look_up(void)
{
    for (int i = 0; i < INJECT_CALLS; i++)
        real((inject_call_t)i);
}

/* Returns 1 if the call must fail; errno is then set. */
INJECT_UNWATCHED static int fails(inject_call_t call)
{
    const int error = inject_error(call);

    if (error)
        errno = error;
    return error != 0;
}

INJECT_UNWATCHED static int is_unix(int fd)
{
    int family = 0;
    socklen_t length = sizeof family;

    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
    return family == AF_UNIX;
}

/* Defines a replacement of a libc function, which returns `failed` if it must
 * fail. */
#define WRAP(type, name, failed, call, parameters, arguments)                  \
    VISIBLE type name parameters                                               \
    {                                                                          \
        if (fails(call))                                                       \
            return failed;                                                     \
        return ((type(*) parameters)real(call))arguments;                      \
    }

WRAP(int, accept4, -1, INJECT_ACCEPT4,
     (int fd, struct sockaddr *address, socklen_t *length, int flags),
     (fd, address, length, flags))
WRAP(int, bind, -1, INJECT_BIND,
     (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length))
WRAP(int, connect, -1,
     address->sa_family == AF_UNIX ? INJECT_CONNECT : INJECT_CONNECT_INET,
     (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length))
WRAP(int, epoll_create1, -1, INJECT_EPOLL_CREATE1, (int flags), (flags))
WRAP(int, epoll_wait, -1, INJECT_EPOLL_WAIT,
     (int fd, struct epoll_event *events, int most, int timeout_ms),
     (fd, events, most, timeout_ms))
WRAP(int, eventfd, -1, INJECT_EVENTFD, (unsigned count, int flags),
     (count, flags))
WRAP(int, fallocate, -1, INJECT_FALLOCATE,
     (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size))
WRAP(int, flock, -1, INJECT_FLOCK, (int fd, int operation), (fd, operation))
WRAP(FILE *, fopen, NULL, INJECT_FOPEN, (const char *path, const char *mode),
     (path, mode))
WRAP(int, ftruncate, -1, INJECT_FTRUNCATE, (int fd, off_t size), (fd, size))
WRAP(int, getifaddrs, -1, INJECT_GETIFADDRS, (struct ifaddrs * *ret_list),
     (ret_list))
WRAP(int, listen, -1, INJECT_LISTEN, (int fd, int backlog), (fd, backlog))
WRAP(int, memfd_create, -1, INJECT_MEMFD_CREATE,
     (const char *name, unsigned flags), (name, flags))
WRAP(DIR *, opendir, NULL, INJECT_OPENDIR, (const char *path), (path))
WRAP(int, poll, -1, INJECT_POLL,
     (struct pollfd * entries, nfds_t count, int timeout_ms),
     (entries, count, timeout_ms))
WRAP(ssize_t, pread, -1, INJECT_PREAD,
     (int fd, void *data, size_t size, off_t offset),
     (fd, data, inject_part(size), offset))
WRAP(ssize_t, pwrite, -1, INJECT_PWRITE,
     (int fd, const void *data, size_t size, off_t offset),
     (fd, data, inject_part(size), offset))
WRAP(ssize_t, recv, -1, INJECT_RECV,
     (int fd, void *data, size_t size, int flags),
     (fd, data, inject_part(size), flags))
WRAP(ssize_t, send, -1, INJECT_SEND,
     (int fd, const void *data, size_t size, int flags),
     (fd, data, inject_part(size), flags))
/* A message of a packet socket is transferred as a whole or not at all. */
WRAP(ssize_t, recvmsg, -1, INJECT_RECVMSG,
     (int fd, struct msghdr *message, int flags), (fd, message, flags))
WRAP(ssize_t, sendmsg, -1, is_unix(fd) ? INJECT_SENDMSG : INJECT_SENDMSG_INET,
     (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WRAP(int, socket, -1, INJECT_SOCKET, (int family, int type, int protocol),
     (family, type, protocol))
/* An eventfd takes all eight bytes or none. */
WRAP(ssize_t, write, -1, INJECT_WRITE, (int fd, const void *data, size_t size),
     (fd, data, size))

/* Calls that do not block are not interrupted. */
VISIBLE ssize_t getrandom(void *data, size_t size, unsigned flags)
{
    if (!(flags & GRND_NONBLOCK) && fails(INJECT_GETRANDOM))
        return -1;
    return ((ssize_t(*)(void *, size_t, unsigned))real(INJECT_GETRANDOM))(
        data, size, flags);
}

VISIBLE int epoll_ctl(int fd, int what, int other, struct epoll_event *event)
{
    if (what == EPOLL_CTL_ADD && fails(INJECT_EPOLL_CTL))
        return -1;
    return ((int (*)(int, int, int, struct epoll_event *))real(
        INJECT_EPOLL_CTL))(fd, what, other, event);
}

VISIBLE int fcntl(int fd, int command, ...)
{
    va_list args;
    void *arg;

    va_start(args, command);
    arg = va_arg(args, void *);
    va_end(args);
    if ((command == F_DUPFD_CLOEXEC || command == F_ADD_SEALS) &&
        fails(INJECT_FCNTL))
        return -1;
    return ((int (*)(int, int, ...))real(INJECT_FCNTL))(fd, command, arg);
}

VISIBLE int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (fails(flags & O_CREAT ? INJECT_OPEN_CREATE : INJECT_OPEN))
        return -1;
    return ((int (*)(const char *, int, ...))real(INJECT_OPEN))(path, flags,
                                                                mode);
}

/* A mapping without a file is malloc()'s, which does not fail here. */
VISIBLE void *mmap(void *at, size_t size, int access, int flags, int fd,
                   off_t offset)
{
    if (fd >= 0 && fails(INJECT_MMAP))
        return MAP_FAILED;
    return inject_map(at, size, access, flags, fd, offset);
}

VISIBLE int pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr,
                           void *(*run)(void *), void *arg)
{
    const int error = inject_error(INJECT_PTHREAD_CREATE);

    if (error)
        return error;
    return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                     void *))real(INJECT_PTHREAD_CREATE))(ret_thread, attr, run,
                                                          arg);
}

VISIBLE long syscall(long number, ...)
{
    long arg[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_pidfd_open && fails(INJECT_PIDFD_OPEN))
        return -1;
    return ((long (*)(long, ...))real(INJECT_PIDFD_OPEN))(
        number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
