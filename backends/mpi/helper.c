/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread for the time that another one is inside a blocking call of MPI: what
 * works of this and other groups need is not MPI's alone to give, since their
 * messages are matched here and schedules are the core's. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <signal.h>
#include <time.h>

#define PAUSE_NS 50000

/* 1 where it is time to end. */
static int pause_for_a_moment(engine_helper_t *helper)
{
    struct timespec until;
    int stop;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PAUSE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&helper->lock);
    if (!helper->stop)
        pthread_cond_timedwait(&helper->changed, &helper->lock, &until);
    stop = helper->stop;
    pthread_mutex_unlock(&helper->lock);
    return stop;
}

static void *help(void *arg)
{
    engine_helper_t *helper = arg;
    while (!pause_for_a_moment(helper)) {
        engine_progress(helper->engine);
        dscomm_backend_progress_others(helper->engine->group);
    }
    return NULL;
}

static void prepare(engine_helper_t *helper)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&helper->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&helper->changed, &attr);
    pthread_condattr_destroy(&attr);
}

/* Signals are for the program's own threads. Without the thread works go on
 * later. */
void engine_helper_start(engine_t *engine, engine_helper_t *ret_helper)
{
    sigset_t all, before;

    *ret_helper = (engine_helper_t){.engine = engine};
    prepare(ret_helper);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret_helper->started =
        pthread_create(&ret_helper->thread, NULL, help, ret_helper) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void engine_helper_stop(engine_helper_t *helper)
{
    pthread_mutex_lock(&helper->lock);
    helper->stop = 1;
    pthread_cond_signal(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
    if (helper->started)
        pthread_join(helper->thread, NULL);
    pthread_cond_destroy(&helper->changed);
    pthread_mutex_destroy(&helper->lock);
}
