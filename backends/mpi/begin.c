/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init_thread(), which waits for all ranks of the job, whether they come or
 * not. Where nobody has seen them yet it runs in a thread of its own, and is
 * left alone when it takes too long; but for a process with CUDA's driver,
 * whose MPI may take the device of the very thread that initialises it. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int begun, done, rc, level;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *begin(void *arg)
{
    int level = 0,
        rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);

    (void)arg;
    pthread_mutex_lock(&own.lock);
    own.rc = rc;
    own.level = level;
    own.done = 1;
    pthread_cond_signal(&own.changed);
    pthread_mutex_unlock(&own.lock);
    return NULL;
}

static int has_cuda(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    return handle && !dlclose(handle);
}

/* Signals are for the program's own threads. */
static int start_thread(void)
{
    pthread_condattr_t clock;
    pthread_t thread;
    sigset_t all, before;
    int error;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&own.changed, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, begin, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_detach(thread);
    return error;
}

static int await(int timeout_ms)
{
    struct timespec until;
    int done;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&own.lock);
    while (!own.done &&
           !pthread_cond_timedwait(&own.changed, &own.lock, &until))
        ;
    done = own.done;
    pthread_mutex_unlock(&own.lock);
    return done;
}

int engine_has_begun(void)
{
    return own.begun;
}

dscomm_status_t engine_begin(int timeout_ms, int *ret_level)
{
    const int apart = own.begun || (timeout_ms > 0 && !has_cuda());

    if (!own.begun && !apart)
        begin(NULL);
    else if (!own.begun && start_thread())
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "mpi: no thread could be started for "
                           "MPI_Init_thread()");
    own.begun = 1;
    if (apart && !await(timeout_ms))
        return dscomm_fail(
            DSCOMM_ERR_TIMEOUT,
            "mpi: MPI_Init_thread() has not come back within %d ms, so not all "
            "ranks of the job have called dscomm_init(), or their hosts cannot "
            "reach each other; MPI does not tell which ones: where MASTER_ADDR "
            "and MASTER_PORT are set, dscomm does",
            timeout_ms);
    if (own.rc != MPI_SUCCESS)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "mpi: MPI_Init_thread has failed with %d", own.rc);
    *ret_level = own.level;
    return DSCOMM_OK;
}
