/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that signals interrupt, and transfers that end halfway: every
 * other call of a whole job does, and nothing is lost. The functions here stand
 * in the place of libc's, for the libraries as well. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/backends/job.h"
#include "tests/tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANKS 3
#define VISIBLE __attribute__((visibility("default")))

enum {
    CONNECT,
    FTRUNCATE,
    GETRANDOM,
    RECV,
    SEND,
    SENDMSG,
    RECVMSG,
    POLL,
    ACCEPT,
    PREAD,
    PWRITE,
    WRITE,
    FALLOCATE,
    OPEN,
    EPOLL_WAIT,
    CALLS
};

static const char *const names[CALLS] = {
    "connect", "ftruncate", "getrandom", "recv",    "send",
    "sendmsg", "recvmsg",   "poll",      "accept4", "pread",
    "pwrite",  "write",     "fallocate", "open",    "epoll_wait"};

static void *next[CALLS];
static atomic_uint counts[CALLS];
static atomic_int armed;
static int (*real_open)(const char *path, int flags, ...);

/* Looked up before there are threads, by main(). */
static void *real(int call)
{
    if (!next[call])
        next[call] = dlsym(RTLD_NEXT, names[call]);
    return next[call];
}

/* The first of two calls of a kind. */
static int interrupts(int call)
{
    if (!atomic_load(&armed) || atomic_fetch_add(&counts[call], 1) % 2)
        return 0;
    errno = EINTR;
    return 1;
}

/* Half of what a transfer is asked for. */
static size_t part(size_t size)
{
    return atomic_load(&armed) ? (size + 1) / 2 : size;
}

/* Only that of unix sockets leaves nothing behind where it is interrupted. */
VISIBLE int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    if (address->sa_family == AF_UNIX && interrupts(CONNECT))
        return -1;
    return ((int (*)(int, const struct sockaddr *, socklen_t))real(CONNECT))(
        fd, address, length);
}

VISIBLE int ftruncate(int fd, off_t size)
{
    return interrupts(FTRUNCATE)
               ? -1
               : ((int (*)(int, off_t))real(FTRUNCATE))(fd, size);
}

/* Those that do not block are not interrupted. */
VISIBLE ssize_t getrandom(void *data, size_t size, unsigned flags)
{
    if (!(flags & GRND_NONBLOCK) && interrupts(GETRANDOM))
        return -1;
    return ((ssize_t(*)(void *, size_t, unsigned))real(GETRANDOM))(data, size,
                                                                   flags);
}

VISIBLE ssize_t recv(int fd, void *data, size_t size, int flags)
{
    if (interrupts(RECV))
        return -1;
    return ((ssize_t(*)(int, void *, size_t, int))real(RECV))(
        fd, data, part(size), flags);
}

VISIBLE ssize_t send(int fd, const void *data, size_t size, int flags)
{
    if (interrupts(SEND))
        return -1;
    return ((ssize_t(*)(int, const void *, size_t, int))real(SEND))(
        fd, data, part(size), flags);
}

/* Messages of a packet socket are whole, or there is none. */
VISIBLE ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return interrupts(SENDMSG)
               ? -1
               : ((ssize_t(*)(int, const struct msghdr *, int))real(SENDMSG))(
                     fd, message, flags);
}

VISIBLE ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return interrupts(RECVMSG) ? -1
                               : ((ssize_t(*)(int, struct msghdr *, int))real(
                                     RECVMSG))(fd, message, flags);
}

VISIBLE int poll(struct pollfd *entries, nfds_t count, int timeout_ms)
{
    return interrupts(POLL) ? -1
                            : ((int (*)(struct pollfd *, nfds_t, int))real(
                                  POLL))(entries, count, timeout_ms);
}

VISIBLE int accept4(int fd, struct sockaddr *address, socklen_t *length,
                    int flags)
{
    return interrupts(ACCEPT)
               ? -1
               : ((int (*)(int, struct sockaddr *, socklen_t *, int))real(
                     ACCEPT))(fd, address, length, flags);
}

VISIBLE ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
    if (interrupts(PREAD))
        return -1;
    return ((ssize_t(*)(int, void *, size_t, off_t))real(PREAD))(
        fd, data, part(size), offset);
}

VISIBLE ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    if (interrupts(PWRITE))
        return -1;
    return ((ssize_t(*)(int, const void *, size_t, off_t))real(PWRITE))(
        fd, data, part(size), offset);
}

/* An eventfd takes all eight bytes or none. */
VISIBLE ssize_t write(int fd, const void *data, size_t size)
{
    if (interrupts(WRITE))
        return -1;
    return ((ssize_t(*)(int, const void *, size_t))real(WRITE))(fd, data, size);
}

VISIBLE int fallocate(int fd, int mode, off_t offset, off_t size)
{
    return interrupts(FALLOCATE) ? -1
                                 : ((int (*)(int, int, off_t, off_t))real(
                                       FALLOCATE))(fd, mode, offset, size);
}

/* Of a store's file only, as those of /proc are never interrupted. */
VISIBLE int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (flags & O_CREAT && interrupts(OPEN))
        return -1;
    if (!real_open)
        *(void **)&real_open = real(OPEN);
    return real_open(path, flags, mode);
}

VISIBLE int epoll_wait(int fd, struct epoll_event *events, int most,
                       int timeout_ms)
{
    return interrupts(EPOLL_WAIT)
               ? -1
               : ((int (*)(int, struct epoll_event *, int, int))real(
                     EPOLL_WAIT))(fd, events, most, timeout_ms);
}

static dscomm_status_t use_file(const char *path)
{
    char url[128], big[3000];
    dscomm_store_t *store = NULL;
    dscomm_status_t status;
    int64_t sum = 0;
    void *value;
    size_t size = 0;

    memset(big, 'x', sizeof big);
    snprintf(url, sizeof url, "file://%s.%d", path, (int)getpid());
    status = dscomm_store_open(url, NULL, &store);
    if (!status)
        status = dscomm_store_set(store, "key", big, sizeof big);
    if (!status)
        status = dscomm_store_add(store, "number", 3, &sum);
    if (!status)
        status = dscomm_store_get(store, "key", 1000, &value, &size);
    if (!status && (size != sizeof big || memcmp(value, big, size) || sum != 3))
        status = DSCOMM_ERR_PROTOCOL;
    if (!status)
        dscomm_store_free(value);
    dscomm_store_close(store);
    unlink(url + strlen("file://"));
    return status;
}

static dscomm_status_t use_group(dscomm_group_t *world, int rank)
{
    static float in[50000], out[50000];
    dscomm_group_t *group;
    dscomm_work_t *work;
    dscomm_status_t status;
    const int to = (rank + 1) % RANKS, from = (rank + RANKS - 1) % RANKS;

    for (size_t i = 0; i < 50000; i++)
        in[i] = (float)rank;
    status = dscomm_group_split(world, 0, rank, NULL, &group);
    if (!status)
        status = dscomm_all_reduce(group, in, out, 50000, DSCOMM_FLOAT32,
                                   DSCOMM_SUM, NULL);
    if (!status && out[49999] != 3)
        status = DSCOMM_ERR_PROTOCOL;
    if (!status)
        status = dscomm_isend(group, in, 50000, DSCOMM_FLOAT32, to, 1, &work);
    if (!status)
        status =
            dscomm_recv(group, out, 50000, DSCOMM_FLOAT32, from, 1, NULL, NULL);
    if (!status && out[49999] != (float)from)
        status = DSCOMM_ERR_PROTOCOL;
    if (!status)
        status = dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    if (!status)
        dscomm_work_free(work);
    return status;
}

static void run_rank(job_rank_t *me)
{
    const double started = job_now_ms();
    dscomm_group_t *world;
    dscomm_status_t status;

    atomic_store(&armed, 1);
    status = job_init(me, &world);
    if (!status)
        status = use_group(world, me->rank);
    if (!status)
        status = use_file(me->arg);
    if (!status)
        status = dscomm_finalize(world);
    atomic_store(&armed, 0);
    for (int i = 0; i < CALLS; i++)
        if (atomic_load(&counts[i]))
            me->report->value |= INT64_C(1) << i;
    job_tell(me, status, started);
}

int main(void)
{
    int64_t seen = 0;
    int passed = 1;
    job_t job;

    for (int i = 0; i < CALLS; i++)
        if (!real(i))
            bail("no %s: %s", names[i], dlerror());
    *(void **)&real_open = real(OPEN);
    job_make(&job, RANKS, 0, run_rank, NULL);
    job_use_tcp(&job);
    job.arg = job.path;
    job_start(&job);
    passed &= job_join(&job, 20000);
    for (int r = 0; r < RANKS; r++) {
        passed &= job.reports[r].ended && !job.reports[r].status;
        seen |= job.reports[r].value;
    }
    if (!ok(passed, "a job whose system calls are interrupted"))
        job_show(&job);
    for (int i = 0; i < CALLS; i++)
        ok(seen >> i & 1, "%s was interrupted", names[i]);
    job_end(&job, "interrupted");
    return tap_done();
}
