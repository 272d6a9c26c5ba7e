/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread beside a call that cannot go on with works itself. */
#include "config.h"

#include <dscomm/backend.h>

#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define PAUSE_NS 50000

struct dscomm_helper {
    void (*turn)(void *arg);
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int stop;
};

/* 1 where it is time to end. */
static int pause_for_a_moment(dscomm_helper_t *helper)
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
    dscomm_helper_t *helper = arg;

    while (!pause_for_a_moment(helper))
        helper->turn(helper->arg);
    return NULL;
}

static dscomm_helper_t *helper_new(void (*turn)(void *arg), void *arg)
{
    dscomm_helper_t *helper = g_new0(dscomm_helper_t, 1);
    pthread_condattr_t attr;

    helper->turn = turn;
    helper->arg = arg;
    pthread_mutex_init(&helper->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&helper->changed, &attr);
    pthread_condattr_destroy(&attr);
    return helper;
}

static void helper_free(dscomm_helper_t *helper)
{
    pthread_cond_destroy(&helper->changed);
    pthread_mutex_destroy(&helper->lock);
    g_free(helper);
}

/* Signals are for the program's own threads. */
dscomm_helper_t *dscomm_helper_start(void (*turn)(void *arg), void *arg)
{
    dscomm_helper_t *helper = helper_new(turn, arg);
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&helper->thread, NULL, help, helper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        g_clear_pointer(&helper, helper_free);
    return helper;
}

void dscomm_helper_stop(dscomm_helper_t *helper)
{
    if (!helper)
        return;
    pthread_mutex_lock(&helper->lock);
    helper->stop = 1;
    pthread_cond_signal(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
    pthread_join(helper->thread, NULL);
    helper_free(helper);
}
