/* SPDX-License-Identifier: BSD-3-Clause */
/* A group of backend mpi ends while another thread also ends it. MPI is not
 * initialised. */
#include "config.h"

#include "backends/mpi/impl.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>

static int alive, polls, notices;
static const dscomm_failure_t enough = {.size = sizeof enough,
                                        .status = DSCOMM_ERR_ABORTED,
                                        .kind = DSCOMM_FAILURE_ABORTED,
                                        .rank = -1,
                                        .group_rank = -1,
                                        .coll = -1,
                                        .detail = "enough"};

int engine_library_alive(void)
{
    return alive;
}

static void count_poll(engine_t *engine)
{
    polls++;
    engine_notify(engine);
}

const char *engine_device_why(void)
{
    return "none here";
}

/* Replaces MPI's function. */
int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest,
              int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)buffer, (void)count, (void)type, (void)dest, (void)tag;
    (void)comm, (void)request;
    notices++;
    return MPI_ERR_OTHER;
}

/* These, too. */
int MPI_Error_class(int code, int *class)
{
    *class = code;
    return MPI_SUCCESS;
}

int MPI_Error_string(int code, char *text, int *length)
{
    (void)code;
    *length = snprintf(text, MPI_MAX_ERROR_STRING, "a stack\nno answer");
    return MPI_SUCCESS;
}

static void setup(engine_t *engine)
{
    static const int world_ranks[] = {4, 5, 6};

    memset(engine, 0, sizeof *engine);
    pthread_mutex_init(&engine->own_lock, NULL);
    engine->lock = &engine->own_lock;
    engine->name = "g";
    engine->ranks = 3;
    engine->world_ranks = world_ranks;
    engine->poll = count_poll;
    alive = 1;
    polls = notices = 0;
}

/* The other thread has not written its sentence yet. */
static void test_sentence_unwritten(void)
{
    engine_t engine;
    dscomm_status_t status;

    setup(&engine);
    engine.ending.begun = 1;
    status =
        engine_give_up(&engine, dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no room"));
    is_int(status, DSCOMM_ERR_NO_MEMORY, "a failure is one at any time");
    is_str(dscomm_last_error(), "no room", "with its own sentence");
}

static void test_notified(void)
{
    engine_t engine;
    dscomm_status_t status;

    setup(&engine);
    engine_revoke(&engine, &enough);
    status =
        engine_give_up(&engine, dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no room"));
    is_int(status, DSCOMM_ERR_ABORTED, "the first reason counts");
    is_str(dscomm_last_error(), "enough", "and its sentence");
    is_int(notices, 2, "both others are told, once");
    engine_active_clear(&engine);
}

static void *end_group(void *engine)
{
    engine_revoke(engine, &enough);
    return NULL;
}

/* Only the thread that has made the group may call MPI; but a thread that
 * leaves the group may then do so. */
static void test_one_thread(void)
{
    static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    engine_t engine;

    setup(&engine);
    engine.lock = &shared;
    engine.opener = pthread_self();
    if (pthread_create(&thread, NULL, end_group, &engine))
        bail("no thread");
    pthread_join(thread, NULL);
    is_int(polls + notices, 0, "a thread from outside calls nothing");
    engine.opener = thread;
    pthread_mutex_lock(engine.lock);
    engine_leave(&engine);
    is_int(notices, 2, "the next that calls tells the others");
    engine_active_clear(&engine);
}

/* MPI fails for a message: its peer is the culprit, unless this process lacks
 * something. */
static void test_peer(void)
{
    static const struct {
        int code, peer, culprit;
        dscomm_status_t status;
    } rows[] = {
        {MPI_ERR_OTHER, 1, 5, DSCOMM_ERR_PEER_FAILED},
        {MPI_ERR_OTHER, -1, -1, DSCOMM_ERR_PEER_FAILED},
        {MPI_ERR_NO_MEM, 1, -1, DSCOMM_ERR_NO_MEMORY},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        dscomm_failure_t failure = DSCOMM_FAILURE_INIT;
        engine_t engine;

        setup(&engine);
        is_int(engine_fail_peer(&engine, rows[i].peer, rows[i].code, "a send"),
               rows[i].status, "row %zu: the status", i);
        ending_status(&engine.ending, &failure);
        is_int(failure.rank, rows[i].culprit, "  the culprit");
        ok(strstr(dscomm_last_error(), "MPI: no answer") != NULL, "  why: %s",
           dscomm_last_error());
        engine_active_clear(&engine);
    }
}

/* Ending a group needs no memory for handles, however many messages are under
 * way. */
static void test_room(void)
{
    engine_t engine;
    int least = 3;

    setup(&engine);
    for (int i = 0; i < 10000; i++) {
        if (engine_reserve(&engine, 1) < 0)
            bail("no memory");
        engine_add(&engine, MPI_REQUEST_NULL, NULL);
        least = MIN(least, engine.active.room - engine.active.count);
    }
    is_int(least, 3, "there is always room for a handle of each rank");
    engine.active.room = engine.active.count + 3;
    engine_revoke(&engine, &enough);
    is_int(engine.active.room - engine.active.count, 3, "which is enough");
    is_int(notices, 2, "to tell the others");
    engine.active.count = 0;
    engine_active_clear(&engine);
}

int main(void)
{
    test_sentence_unwritten();
    test_notified();
    test_one_thread();
    test_room();
    test_peer();
    return tap_done();
}
