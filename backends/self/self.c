/* SPDX-License-Identifier: BSD-3-Clause */
/* The backend for groups of one rank: every collective is a copy or a
 * reduction of one input, and messages go from this rank to itself. It is
 * built in and complete; copy it to write another backend. */
#include "config.h"

#include "backends/ending.h"

#include <glib.h>
#include <string.h>

/* A request of this backend: the core's head, then the backend's members. */
typedef struct request {
    dscomm_request_t head;
    dscomm_message_t message;
    int taken; /* a send that a probe has set aside */
    struct request *next;
} request_t;

typedef struct {
    dscomm_group_t *group;
    request_t *sends, *receives; /* not matched yet, oldest first */
    ending_t ending;
    char name[];
} self_t;

static dscomm_status_t self_open(const dscomm_backend_args_t *args,
                                 void **ret_impl)
{
    self_t *self;

    if (args->ranks != 1)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "it has %d ranks; backend self serves one",
                           args->ranks);
    self = g_try_malloc0(sizeof *self + strlen(args->name) + 1);
    if (!self)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory");
    strcpy(self->name, args->name);
    self->group = args->group;
    *ret_impl = self;
    return DSCOMM_OK;
}

static void self_close(void *impl)
{
    g_free(impl);
}

static void self_revoke(void *impl, const dscomm_failure_t *failure)
{
    self_t *self = impl;

    ending_mark(&self->ending, failure);
}

static dscomm_status_t self_status(void *impl, dscomm_failure_t *ret_failure)
{
    self_t *self = impl;

    return ending_status(&self->ending, ret_failure);
}

/* Messages. Sends and receives without a match wait in a list; the later one
 * of two that match moves the bytes. */

static int message_matches(const dscomm_message_t *send,
                           const dscomm_message_t *recv)
{
    if (recv->tag == DSCOMM_ANY_TAG)
        return send->tag >= 0;
    return send->tag == recv->tag;
}

static void request_append(request_t **list, request_t *request)
{
    while (*list)
        list = &(*list)->next;
    request->next = NULL;
    *list = request;
}

static int unlink_request(request_t **list, request_t *request)
{
    while (*list && *list != request)
        list = &(*list)->next;
    if (!*list)
        return 0;
    *list = request->next;
    return 1;
}

static void message_deliver(const dscomm_message_t *send,
                            const dscomm_message_t *recv,
                            dscomm_request_t *receipt)
{
    size_t bytes = MIN(send->bytes, recv->bytes);

    if (bytes)
        memmove(recv->recv, send->send, bytes);
    receipt->source = 0;
    receipt->tag = send->tag;
    receipt->bytes = send->bytes;
    receipt->status =
        send->bytes > recv->bytes ? DSCOMM_ERR_TRUNCATED : DSCOMM_OK;
}

/* Delivers the message to the oldest receive that matches; 0 if none does. */
static int send_now(self_t *self, const dscomm_message_t *message)
{
    request_t *recv = self->receives;

    while (recv && !message_matches(message, &recv->message))
        recv = recv->next;
    if (!recv)
        return 0;
    unlink_request(&self->receives, recv);
    message_deliver(message, &recv->message, &recv->head);
    return 1;
}

/* The oldest send that matches a receive, or NULL. */
static request_t *find_send(const self_t *self, const dscomm_message_t *recv)
{
    request_t *send = self->sends;

    if (recv->taken)
        return recv->taken;
    while (send && (send->taken || !message_matches(&send->message, recv)))
        send = send->next;
    return send;
}

static int self_probe(void *impl, const dscomm_message_t *wanted,
                      dscomm_request_t *found, void **ret_taken)
{
    request_t *send = find_send(impl, wanted);

    if (!send)
        return 0;
    found->source = 0;
    found->tag = send->message.tag;
    found->bytes = send->message.bytes;
    if (ret_taken) {
        send->taken = 1;
        *ret_taken = send;
    }
    return 1;
}

static int receive_now(self_t *self, const dscomm_message_t *message,
                       dscomm_request_t *receipt)
{
    request_t *send = find_send(self, message);

    if (!send)
        return 0;
    unlink_request(&self->sends, send);
    message_deliver(&send->message, message, receipt);
    send->head.status = DSCOMM_OK;
    return 1;
}

static dscomm_status_t self_isend(void *impl, const dscomm_message_t *message,
                                  dscomm_request_t *head)
{
    self_t *self = impl;
    request_t *request = (request_t *)head;
    dscomm_status_t status = ending_check(&self->ending);

    if (status < 0)
        return status;
    request->message = *message;
    request->taken = 0;
    if (send_now(self, message))
        head->status = DSCOMM_OK;
    else
        request_append(&self->sends, request);
    return DSCOMM_OK;
}

static dscomm_status_t self_irecv(void *impl, const dscomm_message_t *message,
                                  dscomm_request_t *head)
{
    self_t *self = impl;
    request_t *request = (request_t *)head;
    dscomm_status_t status = ending_check(&self->ending);

    if (status < 0)
        return status;
    request->message = *message;
    if (!receive_now(self, message, head))
        request_append(&self->receives, request);
    return DSCOMM_OK;
}

/* A blocking call without a match fails at once, because no other rank can
 * match it. */
static dscomm_status_t self_send(void *impl, const dscomm_message_t *message)
{
    self_t *self = impl;
    dscomm_status_t status = ending_check(&self->ending);

    if (status < 0 || send_now(self, message))
        return status;
    return dscomm_fail(DSCOMM_ERR_STATE,
                       "send to oneself on group '%s' with tag %d would wait "
                       "forever; post the receive first, or use isend",
                       self->name, message->tag);
}

static dscomm_status_t self_recv(void *impl, const dscomm_message_t *message,
                                 dscomm_request_t *request)
{
    self_t *self = impl;
    dscomm_status_t status = ending_check(&self->ending);

    if (status < 0)
        return status;
    if (!receive_now(self, message, request))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "recv from oneself on group '%s' with tag %d would "
                           "wait forever; isend the message first, or use "
                           "irecv",
                           self->name, message->tag);
    if (request->status == DSCOMM_ERR_TRUNCATED)
        return dscomm_fail(DSCOMM_ERR_TRUNCATED,
                           "recv on group '%s': the message of %zu bytes with "
                           "tag %d is longer than the buffer of %zu bytes",
                           self->name, request->bytes, request->tag,
                           message->bytes);
    return DSCOMM_OK;
}

static void self_cancel(void *impl, dscomm_request_t *head)
{
    self_t *self = impl;

    unlink_request(&self->sends, (request_t *)head);
    unlink_request(&self->receives, (request_t *)head);
}

static int self_withdraw(void *impl, dscomm_request_t *head)
{
    self_t *self = impl;

    return unlink_request(&self->receives, (request_t *)head);
}

static unsigned self_progress(void *impl)
{
    (void)impl;
    return 0;
}

/* Collectives. */

static void self_copy(void *recv, const void *send, size_t bytes)
{
    if (bytes && recv != send)
        memcpy(recv, send, bytes);
}

static dscomm_status_t self_reduce(const dscomm_coll_args_t *args)
{
    dscomm_reduce_fn kernel = dscomm_reduce_kernel((dscomm_dtype_t)args->dtype,
                                                   (dscomm_op_t)args->op);
    const double factor = args->op == DSCOMM_AVG ? 1.0 : args->factor;

    if (args->user)
        self_copy(args->recv, args->send, args->count * args->element);
    else if (args->count)
        kernel(args->recv, &args->send, 1, args->count, &factor);
    return DSCOMM_OK;
}

static const char *self_at(const dscomm_coll_args_t *args, const void *buffer,
                           const size_t *displs)
{
    size_t offset = displs ? displs[0] * args->element : 0;

    return offset ? (const char *)buffer + offset : buffer;
}

/* Copies the rank's own part of a _v call, which this rank describes on both
 * sides. */
static dscomm_status_t copy_v(self_t *self, const dscomm_coll_args_t *args)
{
    size_t sent = args->send_counts ? args->send_counts[0] : args->count;
    size_t expected = args->recv_counts ? args->recv_counts[0] : args->count;

    if (sent != expected)
        return dscomm_fail(DSCOMM_ERR_MISMATCH,
                           "%s on group '%s': rank 0 sends %zu elements to "
                           "itself, but expects %zu",
                           dscomm_coll_name((dscomm_coll_t)args->coll),
                           self->name, sent, expected);
    self_copy((void *)self_at(args, args->recv, args->recv_displs),
              self_at(args, args->send, args->send_displs),
              sent * args->element);
    return DSCOMM_OK;
}

static dscomm_status_t self_run(void *impl, const dscomm_coll_args_t *args)
{
    self_t *self = impl;
    dscomm_status_t status = ending_check(&self->ending);

    if (status < 0)
        return status;
    switch (args->coll) {
    case DSCOMM_COLL_BARRIER:
    case DSCOMM_COLL_BROADCAST:
        return DSCOMM_OK;
    case DSCOMM_COLL_REDUCE:
    case DSCOMM_COLL_ALL_REDUCE:
    case DSCOMM_COLL_REDUCE_SCATTER:
    case DSCOMM_COLL_REDUCE_SCATTER_V:
        return self_reduce(args);
    case DSCOMM_COLL_ALL_GATHER_V:
    case DSCOMM_COLL_GATHER_V:
    case DSCOMM_COLL_SCATTER_V:
    case DSCOMM_COLL_ALL_TO_ALL_V:
        return copy_v(self, args);
    default:
        self_copy(args->recv, args->send, args->count * args->element);
        return DSCOMM_OK;
    }
}

static dscomm_status_t self_start(void *impl, const dscomm_coll_args_t *args,
                                  dscomm_request_t *request)
{
    dscomm_status_t status = self_run(impl, args);

    if (status == DSCOMM_OK)
        request->status = DSCOMM_OK;
    return status;
}

static uint64_t self_capabilities(void *impl)
{
    (void)impl;
    return DSCOMM_CAP_NATIVE_COLLECTIVES | DSCOMM_CAP_ANY_SOURCE |
           DSCOMM_CAP_USER_OPS | DSCOMM_CAP_DEATH_DETECTION |
           DSCOMM_CAP_MISMATCH_DETECTION;
}

static int self_explain(void *impl, const dscomm_request_t *head, char *text,
                        size_t size)
{
    const request_t *request = (const request_t *)head;

    (void)impl;
    if (request)
        snprintf(text, size, "rank 0 has no %s with tag %d for itself",
                 request->message.send ? "receive" : "send",
                 request->message.tag);
    else
        snprintf(text, size, "nothing is outstanding");
    return request ? 0 : -1;
}

static const char *self_usable(const char *const *hosts, int ranks)
{
    (void)hosts;
    return ranks == 1 ? NULL : "it serves groups of one rank only";
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof(dscomm_backend_ops_t),
    .request_size = sizeof(request_t),
    .open = self_open,
    .close = self_close,
    .isend = self_isend,
    .irecv = self_irecv,
    .cancel = self_cancel,
    .progress = self_progress,
    .revoke = self_revoke,
    .status = self_status,
    .capabilities = self_capabilities,
    .run = self_run,
    .start = self_start,
    .send = self_send,
    .recv = self_recv,
    .explain = self_explain,
    .withdraw = self_withdraw,
    .probe = self_probe,
};

DSCOMM_BACKEND_EXPORT extern const dscomm_backend_t dscomm_backend_self;
const dscomm_backend_t dscomm_backend_self = {
    .abi = DSCOMM_BACKEND_ABI,
    .priority = 0,
    .name = "self",
    .ops = &ops,
    .usable = self_usable,
};
