/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of MPI that wait for all ranks, without a deadline. Each runs in a
 * thread of its own, which sets a latch after the call. So the caller can
 * watch the other ranks meanwhile, and abandon the thread if they do not
 * arrive. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <signal.h>

#define MOST_LOOK_MS 100 /* between looks at the other ranks */

void engine_latch_init(engine_latch_t *latch)
{
    pthread_condattr_t clock;

    pthread_mutex_init(&latch->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&latch->changed, &clock);
    pthread_condattr_destroy(&clock);
    latch->done = false;
}

void engine_latch_set(engine_latch_t *latch)
{
    pthread_mutex_lock(&latch->lock);
    latch->done = true;
    pthread_cond_broadcast(&latch->changed);
    pthread_mutex_unlock(&latch->lock);
}

static bool latch_wait(engine_latch_t *latch, int timeout_ms)
{
    struct timespec until;
    bool done;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&latch->lock);
    while (!latch->done &&
           !pthread_cond_timedwait(&latch->changed, &latch->lock, &until))
        ;
    done = latch->done;
    pthread_mutex_unlock(&latch->lock);
    return done;
}

int engine_latch_await(engine_latch_t *latch, const dscomm_backend_args_t *args,
                       int64_t end_ns)
{
    int slice = DSCOMM_CREATION_LOOK_MS;

    for (;;) {
        const int64_t left = MAX(end_ns - mpi_now_ns(), 0) / NS_PER_MS;
        dscomm_status_t status;

        if (latch_wait(latch, (int)MIN(left, slice)))
            return 1;
        if (left <= slice)
            return 0;
        status = args ? dscomm_backend_creation_check(args) : DSCOMM_OK;
        if (status < 0)
            return latch_wait(latch, 0) ? 1 : (int)status;
        slice = MIN(2 * slice, MOST_LOOK_MS);
    }
}

/* Blocks all signals in the thread: the program's own threads handle them. */
int engine_thread_start(void *(*body)(void *arg), void *arg,
                        pthread_t *ret_thread)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(ret_thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
