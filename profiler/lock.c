/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of the library, held during fork(). */
#include "config.h"

#include "profiler/lock.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void mutex_lock(void)
{
    pthread_mutex_lock(&mutex);
}

/* Fails only without memory. Then a child may wait for a thread that it does
 * not have, if that one was in the library during fork(). */
static void fork_watch(void)
{
    pthread_atfork(mutex_lock, dscomm_priv_profiler_unlock,
                   dscomm_priv_profiler_unlock);
}

void dscomm_priv_profiler_lock(void)
{
    pthread_once(&once, fork_watch);
    mutex_lock();
}

void dscomm_priv_profiler_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}
