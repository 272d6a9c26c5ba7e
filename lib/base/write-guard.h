/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection of a thread from the signals that a write may send it: SIGPIPE if
 * nobody reads any more, SIGXFSZ if the file would pass the limit of file sizes
 * (ulimit -f). Both end the program by default; the library wants the error of
 * the write alone. */
#ifndef LIB_WRITE_GUARD_H
#define LIB_WRITE_GUARD_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

typedef struct {
    sigset_t before; /* the thread's mask */
    sigset_t taken; /* the signals that were not pending before */
} dscomm_write_guard_t;

/* Blocks both signals in this thread. */
static inline void dscomm_priv_write_guard(dscomm_write_guard_t *guard)
{
    sigset_t both, pending;

    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    guard->taken = both;
    pthread_sigmask(SIG_BLOCK, &both, &guard->before);
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE))
        sigdelset(&guard->taken, SIGPIPE);
    if (sigismember(&pending, SIGXFSZ))
        sigdelset(&guard->taken, SIGXFSZ);
}

/* Discards the signals that were sent since, and restores the thread's mask.
 * Keeps errno. */
static inline void dscomm_priv_write_unguard(const dscomm_write_guard_t *guard)
{
    static const struct timespec at_once = {0, 0};
    const int error = errno;

    while (sigtimedwait(&guard->taken, NULL, &at_once) > 0 || errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    errno = error;
}

#endif
