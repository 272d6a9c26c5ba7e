/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that replace libc's, also for the libraries, and can fail when the
 * test says so. The program is linked with -export-dynamic. */
#ifndef TESTS_BACKENDS_INJECT_H
#define TESTS_BACKENDS_INJECT_H

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Marks a function that a sanitizer calls before it is initialised. */
#define INJECT_UNWATCHED                                                       \
    __attribute__((no_sanitize("address", "thread", "undefined")))

/* The calls. A function whose uses differ in whether, or how, they can fail has
 * several values. */
typedef enum {
    INJECT_ACCEPT4,
    INJECT_BIND,
    INJECT_CONNECT, /* of unix sockets */
    INJECT_CONNECT_INET,
    INJECT_EPOLL_CREATE1,
    INJECT_EPOLL_CTL, /* that adds a descriptor */
    INJECT_EPOLL_WAIT,
    INJECT_EVENTFD,
    INJECT_FALLOCATE,
    INJECT_FCNTL, /* that duplicates a descriptor, or seals a file */
    INJECT_FLOCK,
    INJECT_FOPEN,
    INJECT_FTRUNCATE,
    INJECT_GETIFADDRS,
    INJECT_GETRANDOM, /* that may block */
    INJECT_LISTEN,
    INJECT_MEMFD_CREATE,
    INJECT_MMAP, /* of a file */
    INJECT_OPEN, /* of a file that is there */
    INJECT_OPEN_CREATE,
    INJECT_OPENDIR,
    INJECT_PIDFD_OPEN,
    INJECT_POLL,
    INJECT_PREAD,
    INJECT_PTHREAD_CREATE,
    INJECT_PWRITE,
    INJECT_RECV,
    INJECT_RECVMSG,
    INJECT_SEND,
    INJECT_SENDMSG, /* of unix sockets */
    INJECT_SENDMSG_INET,
    INJECT_SOCKET,
    INJECT_WRITE,
    INJECT_CALLS
} inject_call_t;

/* The names of these functions in libc. */
extern const char *const inject_names[INJECT_CALLS];

/* Finds libc's functions, before there are threads. */
void inject_look_up(void);

/* Defined by the program: returns the errno with which this call fails, or
 * 0. */
int inject_error(inject_call_t call);
/* Defined by the program: returns how much of a transfer of size bytes is
 * made. */
size_t inject_part(size_t size);

/* mmap() by the system call alone. That of s390x takes its arguments as an
 * array. */
static inline void *inject_map(void *at, size_t size, int access, int flags,
                               int fd, off_t offset)
{
#if defined(__s390x__)
    const unsigned long args[] = {(unsigned long)at,     size,
                                  (unsigned long)access, (unsigned long)flags,
                                  (unsigned long)fd,     (unsigned long)offset};

    return (void *)syscall(SYS_mmap, args);
#else
    return (void *)syscall(SYS_mmap, at, size, access, flags, fd, offset);
#endif
}

#endif
