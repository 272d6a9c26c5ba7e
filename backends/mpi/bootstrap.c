/* SPDX-License-Identifier: BSD-3-Clause */
/* The bootstrap over MPI: rank 0 broadcasts a message to all ranks, which MPI's
 * launcher has connected, before there is a store.
 *
 * Most messages of MPI move only while a rank is in a call of MPI. A rank that
 * left as soon as it has the message might not pass it on to others. So all
 * ranks stay until all have it. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <string.h>
#include <unistd.h>

#define PAUSE_US 20
#define MOST_PAUSE_US 2000

typedef struct {
    pthread_mutex_t *lock; /* NULL: any thread may call MPI */
    int64_t end_ns; /* mpi_now_ns() */
    useconds_t pause;
} turn_t;

static void turn_enter(const turn_t *turn)
{
    if (turn->lock)
        pthread_mutex_lock(turn->lock);
}

static void turn_leave(const turn_t *turn)
{
    if (turn->lock)
        pthread_mutex_unlock(turn->lock);
}

/* Sleeps; returns 0 if the deadline has passed. */
static int turn_rest(turn_t *turn)
{
    usleep(turn->pause);
    turn->pause = MIN(2 * turn->pause, MOST_PAUSE_US);
    return mpi_now_ns() < turn->end_ns;
}

static dscomm_status_t turn_fail(const turn_t *turn, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    turn_enter(turn);
    MPI_Error_string(code, text, &length);
    turn_leave(turn);
    return dscomm_fail(DSCOMM_ERR_IO, "mpi: %s, to introduce the ranks: %.200s",
                       what, text);
}

/* Fails unless MPI gives this process the same rank and world size as the
 * launcher. */
static dscomm_status_t bootstrap_check_ranks(dscomm_bootstrap_t *bootstrap)
{
    const int given = bootstrap->ranks;
    dscomm_status_t status = DSCOMM_OK;
    int rank = 0, ranks = 1;

    if (given)
        status = engine_check_world(given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (status < 0)
        return status;
    if (rank != bootstrap->rank || (given && ranks != given))
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "mpi: this process is rank %d of %d to MPI, and "
                           "rank %d of %d to its launcher; set MASTER_ADDR and "
                           "MASTER_PORT, which need no MPI",
                           rank, ranks, bootstrap->rank, given ? given : ranks);
    bootstrap->ranks = ranks;
    return DSCOMM_OK;
}

/* 1: a broadcast has timed out here. A late rank would still join that one, and
 * MPI would match it with the next broadcast of this rank; so there is no next
 * one. */
static atomic_int abandoned;

static dscomm_status_t bootstrap_fail_late(const dscomm_bootstrap_t *bootstrap)
{
    abandoned = 1;
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "mpi: not all %d ranks of MPI_COMM_WORLD came to "
                       "dscomm_init() within %d ms",
                       bootstrap->ranks, bootstrap->timeout_ms);
}

/* Broadcasts rank 0's data. On failure MPI may still use the copy, which is not
 * freed then. */
static dscomm_status_t bootstrap_broadcast(dscomm_bootstrap_t *bootstrap,
                                           turn_t *turn)
{
    const int is_root = bootstrap->rank == 0;
    void *copy = g_malloc(bootstrap->bytes);
    MPI_Request request;
    int done = 0, code;

    memcpy(copy, bootstrap->data, bootstrap->bytes);
    if (is_root)
        bootstrap->arrived(bootstrap->arg);
    turn_enter(turn);
    code = MPI_Ibcast(copy, (int)bootstrap->bytes, MPI_BYTE, 0, MPI_COMM_WORLD,
                      &request);
    turn_leave(turn);
    while (code == MPI_SUCCESS) {
        turn_enter(turn);
        code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        turn_leave(turn);
        if (done || code != MPI_SUCCESS)
            break;
        if (!turn_rest(turn))
            return bootstrap_fail_late(bootstrap);
    }
    if (code != MPI_SUCCESS)
        return turn_fail(turn, code, "MPI_Ibcast");
    if (!is_root)
        memcpy(bootstrap->data, copy, bootstrap->bytes);
    g_free(copy);
    return DSCOMM_OK;
}

/* Makes MPI's progress: a probe for a message that nobody sends. */
static void turn_move(const turn_t *turn)
{
    int found;

    turn_enter(turn);
    MPI_Iprobe(0, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    turn_leave(turn);
}

static dscomm_status_t bootstrap_await_all(const dscomm_bootstrap_t *bootstrap,
                                           turn_t *turn)
{
    turn->pause = PAUSE_US;
    for (;;) {
        int answer = bootstrap->arrived(bootstrap->arg);

        if (answer)
            return answer < 0 ? (dscomm_status_t)answer : DSCOMM_OK;
        turn_move(turn);
        if (!turn_rest(turn))
            return bootstrap_fail_late(bootstrap);
    }
}

dscomm_status_t engine_bootstrap(dscomm_bootstrap_t *bootstrap)
{
    turn_t turn = {NULL, mpi_now_ns() + bootstrap->timeout_ms * NS_PER_MS,
                   PAUSE_US};
    int level = 0;
    dscomm_status_t status =
        engine_library_open(NULL, bootstrap->timeout_ms, &level);

    if (status < 0)
        return status;
    if (abandoned)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "mpi: an earlier dscomm_init() has given up waiting "
                           "for ranks of MPI_COMM_WORLD, which would still "
                           "come to that; set MASTER_ADDR and MASTER_PORT, "
                           "which need no MPI");
    turn.lock = level == MPI_THREAD_MULTIPLE ? NULL : &engine_library_lock;
    turn_enter(&turn);
    status = bootstrap_check_ranks(bootstrap);
    if (status == DSCOMM_OK)
        engine_errors_hold();
    turn_leave(&turn);
    if (status < 0) {
        engine_library_set_unsafe(1);
        return status;
    }
    status = bootstrap_broadcast(bootstrap, &turn);
    if (status == DSCOMM_OK)
        status = bootstrap_await_all(bootstrap, &turn);
    turn_enter(&turn);
    engine_errors_release();
    turn_leave(&turn);
    if (status < 0)
        engine_library_set_unsafe(1);
    return status;
}
