/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init_thread(), which waits for all ranks of the job, whether they come or
 * not. So it runs in a thread of its own, and is left alone when it takes too
 * long. That thread stays, since MPI is finalised where it was initialised. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int begun, done, rc, level;
    int ending; /* MPI_Finalize() is wanted */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* MPI may take the device of the thread that initialises it: the current
 * context, or the one to become it, where the process has CUDA's driver. */
static int call_driver(const char *function, void *argument)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int (*call)(void *) = NULL;
    int error = -1;

    if (driver)
        *(void **)&call = dlsym(driver, function);
    if (call)
        error = call(argument);
    if (driver)
        dlclose(driver);
    return error;
}

static void *get_context(void)
{
    void *context = NULL;

    return call_driver("cuCtxGetCurrent", &context) ? NULL : context;
}

static void *serve(void *context)
{
    int level = 0, rc;

    if (context)
        call_driver("cuCtxSetCurrent", context);
    rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    pthread_mutex_lock(&own.lock);
    own.rc = rc;
    own.level = level;
    own.done = 1;
    pthread_cond_broadcast(&own.changed);
    while (!own.ending)
        pthread_cond_wait(&own.changed, &own.lock);
    pthread_mutex_unlock(&own.lock);
    MPI_Finalize();
    return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(void)
{
    pthread_condattr_t clock;
    sigset_t all, before;
    int error;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&own.changed, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&own.thread, NULL, serve, get_context());
    pthread_sigmask(SIG_SETMASK, &before, NULL);
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
    if (!own.begun && start_thread())
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "mpi: no thread could be started for "
                           "MPI_Init_thread()");
    own.begun = 1;
    if (!await(timeout_ms))
        return dscomm_fail(
            DSCOMM_ERR_TIMEOUT,
            "mpi: MPI_Init_thread() has not come back within %d ms: it waits "
            "for all ranks of the job, of which some have made no group of "
            "backend mpi, or cannot be reached; let all ranks make the first "
            "one, or call MPI_Init_thread() before; where MASTER_ADDR and "
            "MASTER_PORT are set, dscomm_init() names those that it misses",
            timeout_ms);
    if (own.rc != MPI_SUCCESS)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "mpi: MPI_Init_thread has failed with %d", own.rc);
    *ret_level = own.level;
    return DSCOMM_OK;
}

void engine_end(void)
{
    pthread_mutex_lock(&own.lock);
    own.ending = 1;
    pthread_cond_broadcast(&own.changed);
    pthread_mutex_unlock(&own.lock);
    pthread_join(own.thread, NULL);
}
