/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init_thread() and MPI_Finalize() wait for all ranks of the job, without a
 * deadline. So they run in a thread of their own, which the caller abandons
 * after a time-out. It is one thread, because MPI must be finalised by the
 * thread that initialised it. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <dscomm/device.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a process connects to its mpirun, from the start of
 * MPI_Init_thread() on; usually 30 ms. */
#define CONNECT_MS 500

static struct {
    engine_latch_t latch; /* MPI_Init_thread() has returned */
    engine_latch_t ended; /* MPI_Finalize() has returned */
    pthread_t thread;
    int begun, rc, level;
    pid_t pid; /* of the process that has the thread */
    int64_t begun_ns;
    int ending; /* the thread must call MPI_Finalize(); under the latch's lock
                 */
} own;

/* MPI may use the current device of the thread that initialises it. context is
 * the caller's CUDA context. */
static void *begin_serve(void *context)
{
    int level = 0, rc;

    if (context)
        dscomm_device_set_context(context);
    rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    own.rc = rc;
    own.level = level;
    engine_latch_set(&own.latch);
    pthread_mutex_lock(&own.latch.lock);
    while (!own.ending)
        pthread_cond_wait(&own.latch.changed, &own.latch.lock);
    pthread_mutex_unlock(&own.latch.lock);
    MPI_Finalize();
    engine_latch_set(&own.ended);
    return NULL;
}

int engine_has_begun(void)
{
    return own.begun;
}

/* Runs at the end of the program. If a process ends while it connects to the
 * mpirun of Open MPI 4.1, that one waits for ever. */
static void begin_connect(void)
{
    if (own.pid == getpid())
        engine_latch_await(&own.latch, NULL,
                           own.begun_ns + CONNECT_MS * NS_PER_MS);
}

static dscomm_status_t begin_start_thread(void)
{
    if (own.begun)
        return DSCOMM_OK;
    engine_latch_init(&own.latch);
    engine_latch_init(&own.ended);
    own.begun_ns = mpi_now_ns();
    if (engine_thread_start(begin_serve, dscomm_device_context(), &own.thread))
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "mpi: no thread could be started for "
                           "MPI_Init_thread()");
    own.begun = 1;
    own.pid = getpid();
    if (strcmp(ENGINE_NAME, "openmpi") == 0)
        atexit(begin_connect);
    return DSCOMM_OK;
}

dscomm_status_t engine_begin(const dscomm_backend_args_t *args, int timeout_ms,
                             int *ret_level)
{
    const int64_t end_ns = mpi_now_ns() + timeout_ms * NS_PER_MS;
    dscomm_status_t status = begin_start_thread();
    int done;

    if (status < 0)
        return status;
    done = engine_latch_await(&own.latch, args, end_ns);
    if (done < 0)
        return (dscomm_status_t)done;
    if (!done)
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

void engine_end(int timeout_ms)
{
    const int64_t end_ns = mpi_now_ns() + timeout_ms * NS_PER_MS;

    pthread_mutex_lock(&own.latch.lock);
    own.ending = 1;
    pthread_cond_broadcast(&own.latch.changed);
    pthread_mutex_unlock(&own.latch.lock);
    if (engine_latch_await(&own.ended, NULL, end_ns))
        pthread_join(own.thread, NULL);
    else
        dscomm_log(DSCOMM_LOG_WARN, "mpi",
                   "MPI_Finalize() has not come back within %d ms: a rank of "
                   "the job has died since dscomm_finalize(), or does not end; "
                   "this process ends without it",
                   timeout_ms);
}
