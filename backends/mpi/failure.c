/* SPDX-License-Identifier: BSD-3-Clause */
/* Revocation of a group. Any thread marks the group here; the next thread that
 * may call MPI sends the notices to the other ranks (notice.c). */
#include "config.h"

#include "backends/mpi/impl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Makes progress, and with it sends notices. If another thread holds the lock,
 * that thread does so, at the latest when it releases the lock. */
static void failure_look(engine_t *engine)
{
    do {
        if (pthread_mutex_trylock(engine->lock))
            return;
        engine->poll(engine);
        pthread_mutex_unlock(engine->lock);
    } while (atomic_load(&engine->notify_due) && engine_library_alive() &&
             engine->comm != MPI_COMM_NULL);
}

/* As above, if this thread may call MPI: if MPI allows only one thread at a
 * time in the whole program, only the thread that opened the group may. */
static void engine_look(engine_t *engine)
{
    if (engine->lock == &engine->own_lock ||
        pthread_equal(pthread_self(), engine->opener))
        failure_look(engine);
}

/* Looks for notices at most once per tick of the coarse clock. Two threads may
 * look at the same time. */
void engine_check_notices(engine_t *engine)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (G_LIKELY(now.tv_nsec == atomic_load_explicit(&engine->notices_checked,
                                                     memory_order_relaxed)))
        return;
    atomic_store_explicit(&engine->notices_checked, now.tv_nsec,
                          memory_order_relaxed);
    engine_look(engine);
}

/* Releases the lock after calls of MPI, and sends notices that became due
 * meanwhile. */
void engine_leave(engine_t *engine)
{
    pthread_mutex_unlock(engine->lock);
    if (G_UNLIKELY(atomic_load(&engine->notify_due)) && engine_may_call(engine))
        failure_look(engine);
}

/* Sends the notices at once, because this rank may not make another call for a
 * long time. */
void engine_revoke(void *impl, const dscomm_failure_t *failure)
{
    engine_t *engine = impl;

    if (!ending_mark(&engine->ending, failure))
        return;
    atomic_store(&engine->notify_due, 1);
    engine_look(engine);
}

dscomm_status_t engine_check(engine_t *engine)
{
    return ending_check(&engine->ending);
}

dscomm_status_t engine_status(void *impl, dscomm_failure_t *ret_failure)
{
    engine_t *engine = impl;

    engine_check_notices(engine);
    return ending_status(&engine->ending, ret_failure);
}

/* Revokes the group, unless it is closed. If another thread did so first, its
 * failure is the result. */
dscomm_status_t engine_give_up(engine_t *engine, dscomm_status_t status)
{
    dscomm_failure_t failure;
    dscomm_status_t ended;

    if (engine->closed)
        return status;
    dscomm_backend_failure_last(engine->group, status, &failure);
    engine_revoke(engine, &failure);
    ended = engine_check(engine);
    return ended < 0 ? ended : dscomm_backend_fail(&failure);
}

void engine_revoke_sender(engine_t *engine, int rank, const char *what)
{
    dscomm_failure_t failure;

    if (engine->closed)
        return;
    dscomm_backend_failure(engine->group, DSCOMM_ERR_PROTOCOL,
                           DSCOMM_FAILURE_PROTOCOL, engine->world_ranks[rank],
                           0, &failure);
    dscomm_backend_failure_detail(&failure,
                                  "%s that it has sent makes no sense", what);
    engine_revoke(engine, &failure);
}

static dscomm_status_t failure_status(int code, dscomm_status_t otherwise)
{
    int class = MPI_ERR_OTHER;

    MPI_Error_class(code, &class);
    if (class == MPI_ERR_TRUNCATE || class == MPI_ERR_COUNT)
        return DSCOMM_ERR_MISMATCH;
    if (class == MPI_ERR_NO_MEM)
        return DSCOMM_ERR_NO_MEMORY;
    return otherwise;
}

/* Returns the last line of MPICH's text: the cause. The lines before it are a
 * stack of calls. */
static const char *last_line(char *text)
{
    const char *line;

    g_strchomp(text);
    line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

static const char *error_describe(int code, char text[MPI_MAX_ERROR_STRING])
{
    int length = 0;

    *text = '\0';
    MPI_Error_string(code, text, &length);
    return last_line(text);
}

dscomm_status_t engine_fail_as(engine_t *engine, dscomm_status_t otherwise,
                               int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];

    return engine_give_up(
        engine, dscomm_fail(failure_status(code, otherwise),
                            "%s on group '%s' (rank %d of %d): MPI: %.250s",
                            what, engine->name, engine->rank, engine->ranks,
                            error_describe(code, text)));
}

dscomm_status_t engine_fail(engine_t *engine, int code, const char *what)
{
    return engine_fail_as(engine, DSCOMM_ERR_PEER_FAILED, code, what);
}

dscomm_status_t engine_fail_peer(engine_t *engine, int peer, int code,
                                 const char *what)
{
    const dscomm_status_t status = failure_status(code, DSCOMM_ERR_PEER_FAILED);
    char text[MPI_MAX_ERROR_STRING];
    dscomm_failure_t failure;

    if (status != DSCOMM_ERR_PEER_FAILED || peer < 0)
        return engine_fail(engine, code, what);
    dscomm_backend_failure(engine->group, status, DSCOMM_FAILURE_DIED,
                           engine->world_ranks[peer], 0, &failure);
    dscomm_backend_failure_detail(
        &failure, "during %s on group '%s', or cannot be reached: MPI: %.250s",
        what, engine->name, error_describe(code, text));
    return engine_give_up(engine, dscomm_backend_fail(&failure));
}
