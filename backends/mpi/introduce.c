/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's words to the others, before there is a store: MPI's own launcher has
 * connected them.
 *
 * A rank that leaves MPI when it has what it wants may leave others without
 * what it was to pass on, since most messages move only in calls. So all stay
 * until all have it. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <string.h>
#include <unistd.h>

#define PAUSE_US 20
#define MOST_PAUSE_US 2000

typedef struct {
    pthread_mutex_t *lock; /* NULL: any thread may call MPI */
    int64_t end; /* us, as g_get_monotonic_time() */
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

/* 0 where there is no more time. */
static int turn_rest(turn_t *turn)
{
    usleep(turn->pause);
    turn->pause = MIN(2 * turn->pause, MOST_PAUSE_US);
    return g_get_monotonic_time() < turn->end;
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

/* Where it is in MPI's world must be where it is in the launcher's. */
static dscomm_status_t
bootstrap_check_ranks(dscomm_introduction_t *introduction)
{
    const int told = introduction->ranks;
    dscomm_status_t status = DSCOMM_OK;
    int rank = 0, ranks = 1;

    if (told)
        status = engine_check_world("world", told);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (status < 0)
        return status;
    if (rank != introduction->rank || (told && ranks != told))
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "mpi: this process is rank %d of %d to MPI, and "
                           "rank %d of %d to its launcher; set MASTER_ADDR and "
                           "MASTER_PORT, which need no MPI",
                           rank, ranks, introduction->rank,
                           told ? told : ranks);
    introduction->ranks = ranks;
    return DSCOMM_OK;
}

/* Ranks that come late come to the broadcast that is over here, and MPI takes
 * the next one for another. */
static atomic_int abandoned;

static dscomm_status_t
bootstrap_fail_late(const dscomm_introduction_t *introduction)
{
    abandoned = 1;
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "mpi: not all %d ranks of MPI_COMM_WORLD came to "
                       "dscomm_init() within %d ms",
                       introduction->ranks, introduction->timeout_ms);
}

/* On failure the copy stays MPI's. */
static dscomm_status_t broadcast(dscomm_introduction_t *introduction,
                                 turn_t *turn)
{
    const int is_root = introduction->rank == 0;
    void *copy = g_malloc(introduction->bytes);
    MPI_Request request;
    int done = 0, code;

    memcpy(copy, introduction->data, introduction->bytes);
    if (is_root)
        introduction->arrived(introduction->arg);
    turn_enter(turn);
    code = MPI_Ibcast(copy, (int)introduction->bytes, MPI_BYTE, 0,
                      MPI_COMM_WORLD, &request);
    turn_leave(turn);
    while (code == MPI_SUCCESS) {
        turn_enter(turn);
        code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        turn_leave(turn);
        if (done || code != MPI_SUCCESS)
            break;
        if (!turn_rest(turn))
            return bootstrap_fail_late(introduction);
    }
    if (code != MPI_SUCCESS)
        return turn_fail(turn, code, "MPI_Ibcast");
    if (!is_root)
        memcpy(introduction->data, copy, introduction->bytes);
    g_free(copy);
    return DSCOMM_OK;
}

/* Nobody sends there; but whoever asks makes messages move. */
static void turn_move(const turn_t *turn)
{
    int found;

    turn_enter(turn);
    MPI_Iprobe(0, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    turn_leave(turn);
}

static dscomm_status_t await_all(const dscomm_introduction_t *introduction,
                                 turn_t *turn)
{
    turn->pause = PAUSE_US;
    for (;;) {
        int answer = introduction->arrived(introduction->arg);

        if (answer)
            return answer < 0 ? (dscomm_status_t)answer : DSCOMM_OK;
        turn_move(turn);
        if (!turn_rest(turn))
            return bootstrap_fail_late(introduction);
    }
}

dscomm_status_t engine_introduce(dscomm_introduction_t *introduction)
{
    turn_t turn = {
        NULL, g_get_monotonic_time() + (int64_t)introduction->timeout_ms * 1000,
        PAUSE_US};
    int level = 0;
    dscomm_status_t status =
        engine_library_open(NULL, introduction->timeout_ms, &level);

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
    status = bootstrap_check_ranks(introduction);
    if (status == DSCOMM_OK)
        engine_errors_hold();
    turn_leave(&turn);
    if (status < 0) {
        engine_library_set_unsafe(1);
        return status;
    }
    status = broadcast(introduction, &turn);
    if (status == DSCOMM_OK)
        status = await_all(introduction, &turn);
    turn_enter(&turn);
    engine_errors_release();
    turn_leave(&turn);
    if (status < 0)
        engine_library_set_unsafe(1);
    return status;
}
