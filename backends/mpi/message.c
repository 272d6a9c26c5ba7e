/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages. Receives are not posted to MPI: arrived messages are matched here,
 * in the order in which MPI shows them, and then received into the right
 * buffer. So a message that is too long does no harm (MPI may write beyond the
 * buffer), a receive can be withdrawn at any time, and notices arrive in the
 * same way.
 *
 * MPI has few tags: user tags below tag_limit are MPI tags, the core's tags
 * follow them, and other tags are announced by a message of their own. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <stdio.h>
#include <string.h>

#define POLL_MOST 64
#define MOST_AT_ONCE ((size_t)1 << 30)

/* Returns the key of a tag: the tag itself if it is the user's, a number below
 * -1 if it is the core's, -1 for any tag. */
static int64_t key_of(const engine_t *engine, int tag)
{
    if (tag >= DSCOMM_ANY_TAG)
        return tag;
    return -2 - (-(int64_t)tag) % engine->tag_room;
}

static int wire_of(const engine_t *engine, int64_t key)
{
    if (key < 0)
        return engine->tag_limit + (int)(-2 - key);
    return key < engine->tag_limit - TAGS_TAKEN ? (int)key
                                                : WIRE_FOLLOW(engine);
}

/* A datatype of that many bytes: whole blocks of MOST_AT_ONCE bytes, and the
 * rest. */
static int make_large_type(size_t bytes, MPI_Datatype *ret_type)
{
    MPI_Aint displs[2] = {0, (MPI_Aint)(bytes / MOST_AT_ONCE * MOST_AT_ONCE)};
    int lengths[2] = {(int)(bytes / MOST_AT_ONCE), (int)(bytes % MOST_AT_ONCE)};
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    int code;

    engine_errors_hold();
    code = MPI_Type_contiguous((int)MOST_AT_ONCE, MPI_BYTE, &types[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Type_create_struct(2, lengths, displs, types, ret_type);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(ret_type);
    if (types[0] != MPI_DATATYPE_NULL)
        MPI_Type_free(&types[0]);
    engine_errors_release();
    return code;
}

/* Expresses bytes as a number of elements of a type, which is MPI_BYTE or must
 * be freed. */
static int bytes_type(size_t bytes, int *ret_count, MPI_Datatype *ret_type)
{
    *ret_count = 1;
    *ret_type = MPI_BYTE;
    if (bytes > MOST_AT_ONCE)
        return make_large_type(bytes, ret_type);
    *ret_count = (int)bytes;
    return MPI_SUCCESS;
}

static int receive_matches(const engine_request_t *receive,
                           const engine_arrival_t *arrival)
{
    const int peer = receive->message.peer;

    if (peer != arrival->source && peer != DSCOMM_ANY_SOURCE)
        return 0;
    if (receive->key == DSCOMM_ANY_TAG)
        return arrival->key >= 0;
    return receive->key == arrival->key;
}

/* Receives into the buffer, or into memory that holds the whole message. */
static int post_receive(engine_request_t *receive, engine_arrival_t *arrival,
                        MPI_Request *ret_handle)
{
    const dscomm_message_t *message = &receive->message;
    void *buffer = message->recv;
    MPI_Datatype type;
    int count, code;

    if (arrival->bytes > message->bytes)
        receive->stage = buffer = g_try_malloc(arrival->bytes);
    if (arrival->bytes && !buffer)
        return MPI_ERR_NO_MEM;
    code = bytes_type(arrival->bytes, &count, &type);
    if (code == MPI_SUCCESS)
        code = MPI_Imrecv(buffer, count, type, &arrival->message, ret_handle);
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    return code;
}

/* Matches a receive with its message. */
static void message_deliver(engine_t *engine, engine_request_t *receive,
                            engine_arrival_t *arrival)
{
    MPI_Request handle;
    int code = MPI_ERR_NO_MEM;

    receive->head.source = arrival->source;
    receive->head.tag =
        arrival->key < 0 ? receive->message.tag : (int)arrival->key;
    receive->head.bytes = arrival->bytes;
    if (engine_reserve(engine, 1) == DSCOMM_OK)
        code = post_receive(receive, arrival, &handle);
    if (code == MPI_SUCCESS) {
        receive->parts = 1;
        engine_add(engine, handle, receive);
        return;
    }
    engine->completed++;
    receive->head.status =
        engine_fail_peer(engine, arrival->source, code, "a receive");
}

/* If a cancelled receive would have matched this message, removes it from the
 * list of receives whose messages may still come. */
static void cross_off(engine_t *engine, const engine_arrival_t *arrival)
{
    engine_request_t *owed;

    TAILQ_FOREACH (owed, &engine->owed, link) {
        if (!receive_matches(owed, arrival))
            continue;
        TAILQ_REMOVE(&engine->owed, owed, link);
        g_free(owed);
        return;
    }
}

static void arrival_match(engine_t *engine, engine_arrival_t *arrival)
{
    engine_request_t *receive;
    engine_arrival_t *kept;

    cross_off(engine, arrival);
    TAILQ_FOREACH (receive, &engine->receives, link) {
        if (!receive_matches(receive, arrival))
            continue;
        TAILQ_REMOVE(&engine->receives, receive, link);
        message_deliver(engine, receive, arrival);
        return;
    }
    kept = g_new(engine_arrival_t, 1);
    *kept = *arrival;
    TAILQ_INSERT_TAIL(&engine->arrivals, kept, link);
}

/* Reads the announcement of a tag that is too large for MPI: the next message
 * of source has that tag. */
static void read_header(engine_t *engine, engine_arrival_t *arrival)
{
    int32_t tag = -1;

    if (arrival->bytes != sizeof tag ||
        MPI_Mrecv(&tag, sizeof tag, MPI_BYTE, &arrival->message,
                  MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        tag < 0)
        engine_revoke_sender(engine, arrival->source, "a tag");
    else
        engine->headers[arrival->source] = tag;
}

static void arrival_take(engine_t *engine, engine_arrival_t *arrival, int wire)
{
    if (wire == WIRE_NOTICE(engine)) {
        engine_notified(engine, arrival->source, &arrival->message,
                        arrival->bytes);
        return;
    }
    if (wire == WIRE_HEADER(engine)) {
        read_header(engine, arrival);
        return;
    }
    arrival->key = wire;
    if (wire == WIRE_FOLLOW(engine))
        arrival->key = engine->headers[arrival->source];
    else if (wire >= engine->tag_limit)
        arrival->key = -2 - (int64_t)(wire - engine->tag_limit);
    arrival_match(engine, arrival);
}

static void request_prepare(engine_request_t *request, engine_kind_t kind,
                            const dscomm_message_t *message, int64_t key)
{
    request->kind = kind;
    request->parts = 0;
    request->orphan = request->delayed = 0;
    request->failure = DSCOMM_OK;
    request->stage = NULL;
    request->message = *message;
    request->key = key;
}

/* Announces the tag of the next message; nobody waits for this send. */
static int post_header(engine_t *engine, const dscomm_message_t *message)
{
    engine_request_t *header = g_new0(engine_request_t, 1);
    int32_t *tag = g_new(int32_t, 1);
    MPI_Request handle;
    int code;

    *tag = message->tag;
    header->kind = ENGINE_SEND;
    header->orphan = 1;
    header->stage = tag;
    header->parts = 1;
    code = MPI_Isend(tag, sizeof *tag, MPI_BYTE, message->peer,
                     WIRE_HEADER(engine), engine->comm, &handle);
    if (code == MPI_SUCCESS) {
        engine_add(engine, handle, header);
        return code;
    }
    g_free(tag);
    g_free(header);
    return code;
}

static int post_send(engine_t *engine, engine_request_t *request)
{
    const dscomm_message_t *message = &request->message;
    const int wire = wire_of(engine, request->key);
    MPI_Request handle;
    MPI_Datatype type;
    int count, code = MPI_SUCCESS;

    if (wire == WIRE_FOLLOW(engine))
        code = post_header(engine, message);
    if (code != MPI_SUCCESS)
        return code;
    code = bytes_type(message->bytes, &count, &type);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(message->send, count, type, message->peer, wire,
                         engine->comm, &handle);
    if (code == MPI_SUCCESS) {
        engine_add(engine, handle, request);
        request->parts++;
    }
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    return code;
}

static dscomm_status_t begin_send(engine_t *engine, engine_request_t *request)
{
    dscomm_status_t status = engine_reserve(engine, 2);
    int code;

    if (status < 0)
        return status;
    code = post_send(engine, request);
    if (code == MPI_SUCCESS) {
        engine_test(engine);
        return DSCOMM_OK;
    }
    status = engine_fail_peer(engine, request->message.peer, code, "a send");
    engine_orphan(engine, request);
    return status;
}

/* The oldest arrived message that matches the receive, or NULL. */
static engine_arrival_t *find_arrival(engine_t *engine,
                                      const engine_request_t *receive)
{
    engine_arrival_t *arrival;

    if (receive->message.taken)
        return receive->message.taken;
    TAILQ_FOREACH (arrival, &engine->arrivals, link)
        if (!arrival->taken && receive_matches(receive, arrival))
            break;
    return arrival;
}

static void begin_receive(engine_t *engine, engine_request_t *request)
{
    engine_arrival_t *arrival = find_arrival(engine, request);

    if (!arrival) {
        TAILQ_INSERT_TAIL(&engine->receives, request, link);
        return;
    }
    TAILQ_REMOVE(&engine->arrivals, arrival, link);
    message_deliver(engine, request, arrival);
    g_free(arrival);
    engine_test(engine);
}

static dscomm_status_t message_begin(engine_t *engine,
                                     engine_request_t *request)
{
    dscomm_status_t status = engine_check(engine);

    if (status == DSCOMM_OK && request->kind == ENGINE_SEND)
        return begin_send(engine, request);
    if (status == DSCOMM_OK)
        begin_receive(engine, request);
    return status;
}

/* Starts the requests of other threads. A request that fails to start is
 * complete. */
static void begin_delayed(engine_t *engine)
{
    engine_request_t *request;

    while ((request = TAILQ_FIRST(&engine->delayed)) != NULL) {
        dscomm_status_t status;

        TAILQ_REMOVE(&engine->delayed, request, link);
        request->delayed = 0;
        status = message_begin(engine, request);
        if (status == DSCOMM_OK)
            continue;
        engine->completed++;
        request->head.status = status;
    }
}

void engine_poll(engine_t *engine)
{
    if (!engine_library_alive() || engine->comm == MPI_COMM_NULL)
        return;
    engine_notify(engine);
    begin_delayed(engine);
    for (int i = 0; i < POLL_MOST; i++) {
        engine_arrival_t arrival = {0};
        MPI_Status status;
        MPI_Count bytes = 0;
        int found = 0, code;

        code = MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, engine->comm, &found,
                           &arrival.message, &status);
        if (code != MPI_SUCCESS)
            engine_fail(engine, code, "MPI_Improbe");
        if (code != MPI_SUCCESS || !found)
            return;
        MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
        arrival.source = status.MPI_SOURCE;
        arrival.bytes = (size_t)bytes;
        arrival_take(engine, &arrival, status.MPI_TAG);
    }
}

unsigned engine_progress(void *impl)
{
    engine_t *engine = impl;
    unsigned completed;

    if (!engine_library_alive() || !engine_may_call(engine))
        return 0;
    pthread_mutex_lock(engine->lock);
    engine_poll(engine);
    engine_test(engine);
    completed = engine->completed;
    engine->completed = 0;
    engine_leave(engine);
    return completed;
}

static dscomm_status_t message_start(engine_t *engine,
                                     engine_request_t *request)
{
    dscomm_status_t status = DSCOMM_OK;

    pthread_mutex_lock(engine->lock);
    if (engine_may_call(engine)) {
        begin_delayed(engine);
        status = message_begin(engine, request);
    } else {
        request->delayed = 1;
        TAILQ_INSERT_TAIL(&engine->delayed, request, link);
    }
    engine_leave(engine);
    return status;
}

dscomm_status_t engine_isend(void *impl, const dscomm_message_t *message,
                             dscomm_request_t *head)
{
    engine_request_t *request = (engine_request_t *)head;

    request_prepare(request, ENGINE_SEND, message, key_of(impl, message->tag));
    return message_start(impl, request);
}

dscomm_status_t engine_irecv(void *impl, const dscomm_message_t *message,
                             dscomm_request_t *head)
{
    engine_request_t *request = (engine_request_t *)head;

    request_prepare(request, ENGINE_RECEIVE, message,
                    key_of(impl, message->tag));
    return message_start(impl, request);
}

static void receive_forget(engine_t *engine, engine_request_t *receive)
{
    engine_request_t *owed;

    if (receive->delayed)
        TAILQ_REMOVE(&engine->delayed, receive, link);
    else
        TAILQ_REMOVE(&engine->receives, receive, link);
    if (receive->head.never_sent)
        return;
    owed = g_new(engine_request_t, 1);
    *owed = *receive;
    TAILQ_INSERT_TAIL(&engine->owed, owed, link);
}

/* Withdraws a receive. MPI continues a transfer that it has begun, so the
 * request is tested a last time. */
static void receive_withdraw(engine_t *engine, engine_request_t *request)
{
    if (request->kind == ENGINE_RECEIVE && !request->parts) {
        receive_forget(engine, request);
        return;
    }
    if (request->delayed) {
        TAILQ_REMOVE(&engine->delayed, request, link);
        return;
    }
    engine->strayed |= request->kind == ENGINE_SEND;
    for (int i = 0; i < LAST_TESTS && request->parts && engine_may_call(engine);
         i++)
        engine_test(engine);
    request->head.held = request->parts > 0;
    engine_orphan(engine, request);
}

/* Before this call, another thread's progress may have completed the
 * request. */
void engine_cancel(void *impl, dscomm_request_t *head)
{
    engine_t *engine = impl;

    pthread_mutex_lock(engine->lock);
    if (head->status == DSCOMM_IN_PROGRESS)
        receive_withdraw(engine, (engine_request_t *)head);
    engine_leave(engine);
}

int engine_withdraw(void *impl, dscomm_request_t *head)
{
    engine_t *engine = impl;
    engine_request_t *request = (engine_request_t *)head;
    int unmatched;

    pthread_mutex_lock(engine->lock);
    unmatched = head->status == DSCOMM_IN_PROGRESS && !request->parts;
    if (unmatched) {
        head->never_sent = 1; /* later messages then match another receive */
        receive_forget(engine, request);
    }
    engine_leave(engine);
    return unmatched;
}

int engine_matched(void *impl, const dscomm_request_t *head)
{
    engine_t *engine = impl;
    int matched;

    pthread_mutex_lock(engine->lock);
    matched = ((const engine_request_t *)head)->parts != 0;
    engine_leave(engine);
    return matched;
}

int engine_probe(void *impl, const dscomm_message_t *wanted,
                 dscomm_request_t *found, void **ret_taken)
{
    engine_t *engine = impl;
    engine_request_t receive;
    engine_arrival_t *arrival;

    request_prepare(&receive, ENGINE_RECEIVE, wanted,
                    key_of(engine, wanted->tag));
    pthread_mutex_lock(engine->lock);
    arrival = find_arrival(engine, &receive);
    if (arrival) {
        found->source = arrival->source;
        found->tag = (int)arrival->key;
        found->bytes = arrival->bytes;
    }
    if (arrival && ret_taken) {
        arrival->taken = 1;
        *ret_taken = arrival;
    }
    engine_leave(engine);
    return arrival != NULL;
}

int engine_tag_bound(void)
{
    int *most = NULL, found = 0;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&most, &found);
    return found && most ? *most : 32767;
}

void engine_message_setup(engine_t *engine)
{
    const int bound = engine_tag_bound();

    engine->tag_limit = bound / 4;
    engine->tag_room = bound - engine->tag_limit;
    /* if there is no memory now, room is reserved before the first message */
    engine_reserve(engine, 0);
    TAILQ_INIT(&engine->delayed);
    TAILQ_INIT(&engine->receives);
    TAILQ_INIT(&engine->arrivals);
    TAILQ_INIT(&engine->owed);
    engine->headers = g_new(int, (gsize)engine->ranks);
    for (int r = 0; r < engine->ranks; r++)
        engine->headers[r] = -1;
}

/* A message that MPI has returned from a matched probe must be received. */
static void arrival_discard(engine_t *engine, engine_arrival_t *arrival)
{
    engine_request_t *request = g_new0(engine_request_t, 1);

    request->kind = ENGINE_RECEIVE;
    request->orphan = 1;
    message_deliver(engine, request, arrival);
    if (!request->parts) {
        g_free(request->stage);
        g_free(request);
    }
}

void engine_message_discard(engine_t *engine)
{
    engine_arrival_t *arrival;

    while ((arrival = TAILQ_FIRST(&engine->arrivals)) != NULL) {
        TAILQ_REMOVE(&engine->arrivals, arrival, link);
        if (engine_library_alive())
            arrival_discard(engine, arrival);
        g_free(arrival);
    }
}

void engine_message_clear(engine_t *engine)
{
    engine_request_t *owed;

    while ((owed = TAILQ_FIRST(&engine->owed)) != NULL) {
        TAILQ_REMOVE(&engine->owed, owed, link);
        g_free(owed);
    }
    g_free(engine->headers);
}

int engine_explain(void *impl, const dscomm_request_t *head, char *text,
                   size_t size)
{
    const engine_request_t *request = (const engine_request_t *)head;

    (void)impl;
    if (!request) {
        snprintf(text, size, "nothing is outstanding");
        return -1;
    }
    if (request->kind == ENGINE_SEND)
        snprintf(text, size, "rank %d has not received it",
                 request->message.peer);
    else if (request->parts)
        snprintf(text, size, "rank %d is still sending it",
                 request->head.source);
    else if (request->message.peer == DSCOMM_ANY_SOURCE)
        snprintf(text, size, "nothing has come from any rank");
    else
        snprintf(text, size, "nothing has come from rank %d",
                 request->message.peer);
    return request->kind == ENGINE_RECEIVE && request->parts
               ? request->head.source
               : request->message.peer;
}
