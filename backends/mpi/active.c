/* SPDX-License-Identifier: BSD-3-Clause */
/* The incomplete MPI requests, in an array without gaps, as MPI_Testsome()
 * needs them. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <limits.h>
#include <string.h>

static int active_grow(engine_active_t *active, size_t room)
{
    MPI_Request *handles = g_try_renew(MPI_Request, active->handles, room);
    engine_request_t **owners;
    MPI_Status *statuses;
    int *indices;

    if (handles)
        active->handles = handles;
    owners = g_try_renew(engine_request_t *, active->owners, room);
    if (owners)
        active->owners = owners;
    statuses = g_try_renew(MPI_Status, active->statuses, room);
    if (statuses)
        active->statuses = statuses;
    indices = g_try_renew(int, active->indices, room);
    if (indices)
        active->indices = indices;
    return handles && owners && statuses && indices;
}

dscomm_status_t engine_reserve(engine_t *engine, size_t count)
{
    engine_active_t *active = &engine->active;
    size_t room = (size_t)active->count + count + (size_t)engine->ranks;

    if (room <= (size_t)active->room)
        return DSCOMM_OK;
    room = MAX(room + room / 2, 64);
    if (room > G_MAXINT || !active_grow(active, room))
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "rank %d of group '%s' has no memory for %zu "
                           "requests",
                           engine->rank, engine->name, room);
    active->room = (int)room;
    return DSCOMM_OK;
}

void engine_add(engine_t *engine, MPI_Request handle, engine_request_t *owner)
{
    engine_active_t *active = &engine->active;

    active->handles[active->count] = handle;
    active->owners[active->count++] = owner;
}

static const char *const kinds[] = {"a send", "a receive"};

/* Copies the part of a message that fits. If the buffer may be device memory,
 * only MPI can write to it. */
static void copy_beginning(const engine_t *engine,
                           const dscomm_message_t *message, const char *from)
{
    const size_t most = INT_MAX;

    if (engine_device_why()) {
        memcpy(message->recv, from, message->bytes);
        return;
    }
    for (size_t at = 0; at < message->bytes; at += most) {
        int bytes = (int)MIN(message->bytes - at, most), position = 0;

        MPI_Unpack(from + at, bytes, &position, (char *)message->recv + at,
                   bytes, MPI_BYTE, engine->comm);
    }
}

/* Called when all parts of a receive are complete. */
static dscomm_status_t finish_receive(const engine_t *engine,
                                      engine_request_t *request)
{
    if (!request->stage)
        return DSCOMM_OK;
    if (request->message.bytes)
        copy_beginning(engine, &request->message, request->stage);
    return DSCOMM_ERR_TRUNCATED;
}

/* Called when all parts of a request are complete. The status is written
 * last. */
static void request_retire(engine_t *engine, engine_request_t *request)
{
    dscomm_status_t status = request->failure;
    int orphan = request->orphan;

    if (!orphan && status == DSCOMM_OK) {
        if (request->kind == ENGINE_RECEIVE)
            status = finish_receive(engine, request);
    }
    g_free(request->stage);
    if (orphan) {
        g_free(request);
        return;
    }
    request->stage = NULL;
    engine->completed++;
    request->head.status = status;
}

/* The rank to which a message is sent, or from which it has come. */
static int request_peer(const engine_request_t *request)
{
    return request->kind == ENGINE_SEND ? request->message.peer
                                        : request->head.source;
}

static void request_complete(engine_t *engine, engine_request_t *request,
                             int code)
{
    if (code != MPI_SUCCESS && !request->orphan)
        request->failure = engine_fail_peer(engine, request_peer(request), code,
                                            kinds[request->kind]);
    if (--request->parts == 0)
        request_retire(engine, request);
}

/* Removes empty entries; the order stays. */
static void active_pack(engine_active_t *active)
{
    int kept = 0;

    for (int i = 0; i < active->count; i++) {
        if (active->handles[i] == MPI_REQUEST_NULL)
            continue;
        active->handles[kept] = active->handles[i];
        active->owners[kept++] = active->owners[i];
    }
    active->count = kept;
}

void engine_test(engine_t *engine)
{
    engine_active_t *active = &engine->active;
    int done = 0, code;

    if (!active->count || !engine_library_alive())
        return;
    code = MPI_Testsome(active->count, active->handles, &done, active->indices,
                        active->statuses);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
        engine_fail(engine, code, "MPI_Testsome");
        return;
    }
    if (done == MPI_UNDEFINED || !done)
        return;
    for (int i = 0; i < done; i++) {
        engine_request_t *owner = active->owners[active->indices[i]];

        request_complete(engine, owner,
                         code == MPI_SUCCESS ? MPI_SUCCESS
                                             : active->statuses[i].MPI_ERROR);
    }
    active_pack(active);
}

void engine_orphan(engine_t *engine, engine_request_t *request)
{
    engine_active_t *active = &engine->active;
    engine_request_t *orphan;

    if (!request->parts)
        return;
    orphan = g_new(engine_request_t, 1);
    *orphan = *request;
    orphan->orphan = 1;
    for (int i = 0; i < active->count; i++)
        if (active->owners[i] == request)
            active->owners[i] = orphan;
}

/* Keeps the requests reachable for leak checkers. */
static void active_keep(engine_active_t *active)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static GSList *kept;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < active->count; i++)
        kept = g_slist_prepend(kept, active->owners[i]);
    pthread_mutex_unlock(&lock);
}

/* Tests a few times. Requests that are still incomplete stay with MPI, and so
 * does the memory that MPI may still write to. */
void engine_active_clear(engine_t *engine)
{
    engine_active_t *active = &engine->active;

    for (int i = 0; i < LAST_TESTS && active->count; i++)
        engine_test(engine);
    active_keep(active);
    g_free(active->handles);
    g_free(active->owners);
    g_free(active->statuses);
    g_free(active->indices);
}
