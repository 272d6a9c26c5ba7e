/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library, and conditions whose waits end by the monotonic
 * clock. Both use pthreads because the thread sanitizer knows their locks. */
#ifndef LIB_BASE_THREAD_H
#define LIB_BASE_THREAD_H

#include "lib/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* As pthread_create(), with all signals blocked in the thread, so that the
 * program's own threads get them. */
static inline int dscomm_priv_thread_start(pthread_t *ret_thread,
                                           const pthread_attr_t *attr,
                                           void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(ret_thread, attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static inline void dscomm_priv_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

/* Waits for a signal, or until dscomm_priv_clock() reaches end_ns; false: it
 * has. */
static inline bool dscomm_priv_cond_until(pthread_cond_t *cond,
                                          pthread_mutex_t *mutex,
                                          int64_t end_ns)
{
    const struct timespec end = {(time_t)(end_ns / (1000 * NS_PER_MS)),
                                 (long)(end_ns % (1000 * NS_PER_MS))};

    return pthread_cond_timedwait(cond, mutex, &end) == 0;
}

#endif
