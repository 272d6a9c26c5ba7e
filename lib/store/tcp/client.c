/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp://: a client of torch's TCPStore protocol. The server is ours or torch's;
 * if this process hosts it, the store owns the server too. */
#include "config.h"

#include "lib/store/table.h"
#include "lib/store/tcp/connect.h"
#include "lib/store/tcp/server.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 1024 /* keys in one request */
/* The longest time for which rank 0 announces that it cannot serve the others.
 */
#define ANNOUNCE_MS 30000
#define WORKERS_PAUSE_NS (10 * NS_PER_MS) /* between queries of a count */

typedef struct {
    dscomm_priv_store_t head;
    dscomm_priv_link_t link;
    dscomm_priv_server_t *server; /* or NULL */
} tcp_t;

typedef dscomm_priv_link_t link_t;

static link_t *link_of(dscomm_priv_store_t *self)
{
    return &((tcp_t *)self)->link;
}

static void tcp_close(dscomm_priv_store_t *self)
{
    tcp_t *tcp = (tcp_t *)self;

    dscomm_priv_link_withdraw_will(&tcp->link, NULL);
    dscomm_priv_link_clear(&tcp->link);
    dscomm_priv_server_close(tcp->server);
    g_free(tcp);
}

static int tcp_port(const dscomm_priv_store_t *self)
{
    return ((const tcp_t *)self)->link.port;
}

static bool tcp_silent(dscomm_priv_store_t *self,
                       dscomm_priv_store_place_t *ret_place)
{
    return dscomm_priv_link_silent(link_of(self), ret_place);
}

static int tcp_clients(const dscomm_priv_store_t *self)
{
    const tcp_t *tcp = (const tcp_t *)self;

    return tcp->server ? dscomm_priv_server_clients(tcp->server) : -1;
}

/* Requests */

typedef dscomm_priv_buffer_t buffer_t;
typedef struct call call_t;

typedef struct {
    dscomm_status_t (*run)(call_t *call);
    uint8_t wire; /* its code in the protocol */
    bool names_key; /* messages about a refusal name the key */
    bool reads; /* changes nothing, so it may be repeated */
    const char *name; /* for messages */
    /* Finds out why the server has refused the request, and fails with that
     * reason; OK if there is none. NULL: the server never refuses this command.
     */
    dscomm_status_t (*explain)(call_t *call);
} command_t;

/* A request on a connection from dscomm_priv_link_enter(). */
struct call {
    link_t *link;
    dscomm_priv_request_t *request;
    const command_t *command;
    /* the connection can be used on, although the request failed */
    bool in_order;
};

/* Writes the request's command for one of its keys. */
static void call_put(const call_t *call, const char *key, buffer_t *bytes)
{
    dscomm_priv_put_u8(bytes, call->command->wire);
    dscomm_priv_put_key(bytes, key);
}

static dscomm_status_t call_receive(call_t *call, void *data, size_t size)
{
    return dscomm_priv_link_receive(call->link, data, size,
                                    call->request->deadline);
}

static dscomm_status_t call_send(call_t *call, buffer_t *bytes)
{
    return dscomm_priv_link_send(call->link, bytes, call->request->deadline);
}

static dscomm_status_t call_query(call_t *call, buffer_t *bytes, void *data,
                                  size_t size)
{
    const dscomm_status_t status = call_send(call, bytes);

    return status ? status : call_receive(call, data, size);
}

static dscomm_status_t call_fail(const call_t *call, const char *command,
                                 uint64_t got)
{
    return dscomm_priv_link_fail_answer(call->link, command, got);
}

/* Finds which of the keys are there, by one CHECK for each key. */
static dscomm_status_t call_find(call_t *call, uint8_t *present)
{
    const char *const *keys = call->request->keys;
    const size_t count = call->request->count;
    dscomm_status_t status = DSCOMM_OK;

    for (size_t done = 0, some; done < count && !status; done += some) {
        buffer_t bytes = {0};

        some = MIN(count - done, CHUNK);
        for (size_t i = done; i < done + some; i++)
            dscomm_priv_put_keys(&bytes, WIRE_CHECK, keys + i, 1);
        status = call_query(call, &bytes, present + done, some);
        for (size_t i = done; i < done + some && !status; i++) {
            if (present[i] > WIRE_NOT_READY)
                status = call_fail(call, "CHECK", present[i]);
            present[i] = present[i] == WIRE_READY;
        }
    }
    return status;
}

/* Gets the values of count keys, which are there, from number first on. */
static dscomm_status_t call_fetch(call_t *call, size_t first, size_t count,
                                  void **ret_values, size_t *ret_sizes)
{
    const char *const *keys = call->request->keys + first;
    dscomm_status_t status;
    buffer_t bytes = {0};

    if (count == 1) {
        dscomm_priv_put_u8(&bytes, WIRE_GET);
        dscomm_priv_put_key(&bytes, keys[0]);
    } else {
        dscomm_priv_put_keys(&bytes, WIRE_MULTI_GET, keys, count);
    }
    status = call_send(call, &bytes);
    for (size_t i = 0; i < count && !status; i++)
        status = dscomm_priv_link_answer_value(
            call->link, call->request->deadline, &ret_values[i], &ret_sizes[i]);
    return status;
}

/* SET and APPEND. These have no answer, so a PING follows: after its answer the
 * value is there for every client. */
static dscomm_status_t call_change(call_t *call)
{
    const dscomm_priv_data_t value = call->request->value;
    const uint32_t nonce = 0xA99E4DED;
    dscomm_status_t status;
    buffer_t bytes = {0};
    uint32_t echo = 0;

    call_put(call, *call->request->keys, &bytes);
    dscomm_priv_put_bytes(&bytes, value.data, value.size);
    dscomm_priv_put_u8(&bytes, WIRE_PING);
    dscomm_priv_put_u32(&bytes, nonce);
    status = call_query(call, &bytes, &echo, sizeof echo);
    return status || echo == nonce ? status : call_fail(call, "PING", echo);
}

static dscomm_status_t call_add(call_t *call)
{
    dscomm_status_t status;
    buffer_t bytes = {0};
    int64_t sum;

    call_put(call, *call->request->keys, &bytes);
    dscomm_priv_put_u64(&bytes, (uint64_t)call->request->number);
    status = call_query(call, &bytes, &sum, sizeof sum);
    if (!status)
        call->request->number = sum;
    return status;
}

static dscomm_status_t call_compare_set(call_t *call)
{
    const dscomm_priv_request_t *request = call->request;
    const dscomm_priv_data_t expected = request->expected;
    const dscomm_priv_data_t desired = request->value;
    dscomm_status_t status;
    buffer_t bytes = {0};

    call_put(call, *call->request->keys, &bytes);
    dscomm_priv_put_bytes(&bytes, expected.data, expected.size);
    dscomm_priv_put_bytes(&bytes, desired.data, desired.size);
    status = call_send(call, &bytes);
    if (!status)
        status = dscomm_priv_link_answer_value(call->link, request->deadline,
                                               request->values, request->sizes);
    return status;
}

/* One DELETE_KEY for each key; all are sent before the first answer is read. */
static dscomm_status_t call_delete(call_t *call)
{
    dscomm_priv_request_t *request = call->request;
    dscomm_status_t status = DSCOMM_OK;
    uint64_t deleted[CHUNK];

    request->number = 0;
    for (size_t done = 0, some; done < request->count && !status;
         done += some) {
        buffer_t bytes = {0};

        some = MIN(request->count - done, CHUNK);
        for (size_t i = 0; i < some; i++)
            call_put(call, request->keys[done + i], &bytes);
        status = call_query(call, &bytes, deleted, some * sizeof *deleted);
        for (size_t i = 0; i < some && !status; i++) {
            if (deleted[i] > 1)
                status = call_fail(call, "DELETE_KEY", deleted[i]);
            request->number += (int64_t)deleted[i];
        }
    }
    return status;
}

static dscomm_status_t call_look(call_t *call)
{
    return call_find(call, call->request->present);
}

/* Subtracts the keys that are not the user's: torch's counter of clients, and
 * the name and job that a client has given to torch's server. */
static dscomm_status_t call_num_keys(call_t *call)
{
    static const char *const counter = WIRE_INIT_KEY;
    const link_t *link = call->link;
    dscomm_status_t status;
    buffer_t bytes = {0};
    int64_t count = 0;
    uint8_t byte = 0;
    int others;

    dscomm_priv_put_u8(&bytes, WIRE_GETNUMKEYS);
    dscomm_priv_put_keys(&bytes, WIRE_CHECK, &counter, 1);
    status = call_query(call, &bytes, &count, sizeof count);
    if (!status)
        status = call_receive(call, &byte, 1);
    others = (byte == WIRE_READY) + (link->server[0] == WIRE_NAMED_BY_CLIENT) *
                                        (1 + (link->job != NULL));
    if (!status && (byte > WIRE_NOT_READY || count < others))
        status = call_fail(call, "GETNUMKEYS", (uint64_t)count);
    call->request->number = count - others;
    return status;
}

/* Ends a WAIT whose deadline has passed. ERR_TIMEOUT if keys are still missing;
 * OK if the answer to WAIT was already on its way. */
static dscomm_status_t call_cancel_wait(call_t *call)
{
    dscomm_status_t status;
    buffer_t bytes = {0};
    bool came = false;
    uint8_t byte;

    dscomm_priv_put_u8(&bytes, WIRE_CANCEL_WAIT);
    status = call_query(call, &bytes, &byte, 1);
    if (!status && byte == WIRE_STOP_WAITING) {
        came = true;
        status = call_receive(call, &byte, 1);
    }
    if (!status && byte != WIRE_CANCELED)
        status = call_fail(call, "CANCEL_WAIT", byte);
    if (status || came)
        return status;
    call->in_order = true;
    return DSCOMM_ERR_TIMEOUT;
}

static dscomm_status_t call_wait(call_t *call, size_t first, size_t count)
{
    link_t *link = call->link;
    dscomm_status_t status;
    buffer_t bytes = {0};
    uint8_t byte = 0;

    dscomm_priv_put_keys(&bytes, WIRE_WAIT, call->request->keys + first, count);
    status = call_send(call, &bytes);
    if (status)
        return status;
    status = dscomm_priv_recv_all(link->fd, link->peer, &byte, 1,
                                  call->request->deadline);
    if (status == DSCOMM_ERR_TIMEOUT)
        return call_cancel_wait(call);
    if (status)
        return status;
    atomic_store(&link->first->silent, false);
    return byte == WIRE_STOP_WAITING ? DSCOMM_OK
                                     : call_fail(call, "WAIT", byte);
}

/* Fails with the missing keys. The connection is in order. */
static dscomm_status_t call_fail_late(call_t *call)
{
    uint8_t *present = g_try_malloc0(call->request->count);
    dscomm_status_t status;

    call->in_order = present && call_find(call, present) == DSCOMM_OK;
    status = dscomm_priv_fail_missing(call->request,
                                      call->in_order ? present : NULL);
    g_free(present);
    return status;
}

static dscomm_status_t call_get(call_t *call)
{
    const dscomm_priv_request_t *request = call->request;
    const size_t count = request->count;
    dscomm_status_t status = DSCOMM_OK;

    for (size_t done = 0; done < count && !status; done += CHUNK)
        status = call_wait(call, done, MIN(count - done, CHUNK));
    if (call->in_order)
        return call_fail_late(call);
    if (!request->values)
        return status;
    for (size_t done = 0; done < count && !status; done += CHUNK)
        status = call_fetch(call, done, MIN(count - done, CHUNK),
                            request->values + done, request->sizes + done);
    if (status)
        dscomm_priv_values_drop(request->values, count);
    return status;
}

/* Finds out why the server refused ADD or APPEND, from the key's present value.
 * Another client may have changed the value since the refusal. There may be
 * none. */
static dscomm_status_t call_explain(call_t *call)
{
    const dscomm_priv_request_t *request = call->request;
    const dscomm_priv_data_t key = dscomm_priv_data_text(*request->keys);
    dscomm_priv_data_t data = {0};
    dscomm_status_t status;
    void *value = NULL;
    uint8_t present;
    int64_t sum;

    status = call_find(call, &present);
    if (!status && present)
        status = call_fetch(call, 0, 1, &value, &data.size);
    if (status)
        dscomm_priv_link_disconnect(call->link);
    data.data = value;
    if (status && status != DSCOMM_ERR_PEER_FAILED)
        return status;
    if (request->command == STORE_ADD)
        status = dscomm_priv_value_sum(key, value ? &data : NULL,
                                       request->number, &sum);
    else
        status =
            dscomm_priv_value_check_append(key, data.size, request->value.size);
    g_free(value);
    return status;
}

static const command_t commands[STORE_COMMANDS] = {
    [STORE_SET] = {call_change, WIRE_SET, true, false, "SET", NULL},
    [STORE_APPEND] = {call_change, WIRE_APPEND, true, false, "APPEND",
                      call_explain},
    [STORE_GET] = {call_get, WIRE_GET, false, true, "GET", NULL},
    [STORE_ADD] = {call_add, WIRE_ADD, true, false, "ADD", call_explain},
    [STORE_COMPARE_SET] = {call_compare_set, WIRE_COMPARE_SET, true, false,
                           "COMPARE_SET", NULL},
    [STORE_DELETE] = {call_delete, WIRE_DELETE_KEY, false, false, "DELETE_KEY",
                      NULL},
    [STORE_LOOK] = {call_look, WIRE_CHECK, false, true, "CHECK", NULL},
    [STORE_NUM_KEYS] = {call_num_keys, WIRE_GETNUMKEYS, false, true,
                        "GETNUMKEYS", NULL},
};

/* Runs the call. If the connection was lost and the command only reads, runs it
 * once more on a new connection. */
static dscomm_status_t call_run(call_t *call)
{
    dscomm_status_t status = call->command->run(call);

    if (status != DSCOMM_ERR_PEER_FAILED || !call->command->reads)
        return status;
    status = dscomm_priv_link_renew(call->link, call->request->deadline);
    return status ? status : call->command->run(call);
}

/* Finds out why the server has closed the connection instead of answering: it
 * is gone, or has refused the request for the reason that explain finds, or for
 * want of memory or room. */
static dscomm_status_t call_refused(call_t *call)
{
    const dscomm_priv_request_t *request = call->request;
    const char *key = call->command->names_key ? *request->keys : NULL;
    dscomm_status_t status =
        dscomm_priv_link_renew(call->link, request->deadline);
    char shown[64];

    if (!status && call->command->explain)
        status = call->command->explain(call);
    if (status)
        return status;
    return dscomm_fail(
        DSCOMM_ERR_NO_MEMORY,
        "the store at %s has no answer to %s%s%s%s: the process that "
        "serves it, most often rank 0, is out of memory, or the store is "
        "full: delete keys that are no longer used",
        call->link->peer, call->command->name, key ? " of key '" : "",
        key ? dscomm_priv_quote(key + 1, shown, sizeof shown) : "",
        key ? "'" : "");
}

static dscomm_status_t tcp_execute(dscomm_priv_store_t *self,
                                   dscomm_priv_request_t *request)
{
    call_t call = {.link = link_of(self),
                   .request = request,
                   .command = &commands[request->command]};
    dscomm_status_t status = dscomm_priv_link_enter(
        &call.link, request->command == STORE_GET, request->deadline);

    if (status)
        return status;
    status = call_run(&call);
    if (status == DSCOMM_ERR_PEER_FAILED) {
        status = call_refused(&call);
        call.in_order = true; /* in order, or already closed */
    }
    dscomm_priv_link_leave(call.link, call.in_order ? DSCOMM_OK : status);
    return status;
}

/* Gives the server a last will. The server's own process gives none, because
 * the store ends with it. */
static dscomm_status_t tcp_will(dscomm_priv_store_t *self, const char *key,
                                dscomm_priv_data_t value,
                                dscomm_priv_deadline_t deadline)
{
    if (((const tcp_t *)self)->server)
        return DSCOMM_OK;
    return dscomm_priv_link_give_will(link_of(self), key, value, deadline);
}

static void tcp_withdraw(dscomm_priv_store_t *self, const char *key)
{
    dscomm_priv_link_withdraw_will(link_of(self), key);
}

static const dscomm_priv_store_ops_t ops = {
    .close = tcp_close,
    .port = tcp_port,
    .clients = tcp_clients,
    .silent = tcp_silent,
    .execute = tcp_execute,
    .will = tcp_will,
    .withdraw = tcp_withdraw,
};

/* Opening */

static dscomm_status_t tcp_count(tcp_t *tcp, int delta,
                                 dscomm_priv_deadline_t deadline,
                                 int *ret_clients)
{
    static const char *const counter = WIRE_INIT_KEY;
    dscomm_priv_request_t request = {.command = STORE_ADD,
                                     .deadline = deadline,
                                     .keys = &counter,
                                     .count = 1,
                                     .number = delta};
    dscomm_status_t status = tcp_execute(&tcp->head, &request);

    *ret_clients = (int)request.number;
    return status;
}

/* torch's wait_for_workers: every client counts itself, and the host waits
 * until all have. */
static dscomm_status_t wait_workers(tcp_t *tcp, int world_size,
                                    dscomm_priv_deadline_t deadline)
{
    int64_t pause = WORKERS_PAUSE_NS;
    int count;
    dscomm_status_t status = tcp_count(tcp, 1, deadline, &count);

    while (!status && tcp->server && count < world_size) {
        if (dscomm_priv_clock() >= deadline.at)
            return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                               "%d of %d clients came to the store at %s "
                               "within %d ms",
                               count, world_size, tcp->link.peer, deadline.ms);
        dscomm_priv_back_off(deadline, &pause, WORKERS_PAUSE_NS);
        status = tcp_count(tcp, 0, deadline, &count);
    }
    return status;
}

/* A store that is being opened. */
typedef struct {
    char *host;
    int port;
    const dscomm_store_attr_t *attr;
    dscomm_priv_job_t job;
    dscomm_priv_deadline_t deadline;
} opening_t;

static dscomm_status_t serve(const opening_t *opening,
                             dscomm_priv_server_t **ret_server)
{
    const dscomm_priv_job_t *job = &opening->job;
    const int fd = opening->attr->listen_fd, port = opening->port;
    const dscomm_priv_place_t place = {
        .host = opening->host,
        .port = port,
        .ports = job->ports,
        .remote = job->remote,
        .guarded = job->secret != NULL,
    };
    dscomm_priv_listen_t listening;
    dscomm_status_t status =
        fd ? dscomm_priv_listen_adopt(fd, port, &listening)
           : dscomm_priv_listen(&place, opening->deadline, &listening);

    if (status)
        return status;
    status = dscomm_priv_server_open(&listening, NULL, job, ret_server);
    if (status)
        dscomm_priv_listen_close(&listening);
    else if (!job->secret)
        dscomm_priv_listen_warn(dscomm_priv_server_listening(*ret_server));
    return status;
}

/* Makes a client. In the server's own process it connects to a local address,
 * without name resolution and without comparing job names. NULL: no memory. */
static tcp_t *tcp_new(const opening_t *opening, dscomm_priv_server_t *server)
{
    const dscomm_priv_job_t own_job = {.ports = 1,
                                       .secret = opening->job.secret};
    const dscomm_priv_job_t *job = &opening->job;
    tcp_t *tcp = g_try_new(tcp_t, 1);
    char own[LISTEN_HOST_MAX], name[STORE_PEER_MAX];
    const char *host = opening->host, *peer = NULL;
    int port = opening->port;

    if (!tcp)
        return NULL;
    tcp->head.ops = &ops;
    tcp->server = server;
    if (server) {
        port = dscomm_priv_server_listening(server)->port;
        peer = dscomm_priv_link_peer(name, host, port, 1);
        host =
            dscomm_priv_listen_host(dscomm_priv_server_listening(server), own);
        job = &own_job;
    }
    if (!dscomm_priv_link_init(&tcp->link, host, port, job, peer))
        g_clear_pointer(&tcp, g_free);
    return tcp;
}

static dscomm_status_t open_at(opening_t *opening,
                               dscomm_priv_store_t **ret_store)
{
    const dscomm_store_attr_t *attr = opening->attr;
    dscomm_priv_server_t *server = NULL;
    dscomm_status_t status = DSCOMM_OK;
    tcp_t *tcp;

    opening->deadline = dscomm_priv_deadline(attr->timeout_ms);
    if (attr->serve)
        status = serve(opening, &server);
    else if (!opening->port)
        status = dscomm_fail(DSCOMM_ERR_INVALID,
                             "port 0 is for the process that serves the store; "
                             "all others give the port that it has got");
    if (status)
        return status;
    tcp = tcp_new(opening, server);
    if (!tcp) {
        dscomm_priv_server_close(server);
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a store");
    }
    status = dscomm_priv_link_connect(&tcp->link, opening->deadline);
    if (!status && attr->world_size)
        status = wait_workers(tcp, attr->world_size, opening->deadline);
    if (status) {
        tcp_close(&tcp->head);
        return status;
    }
    if (attr->serve && attr->listen_fd)
        close(attr->listen_fd);
    *ret_store = &tcp->head;
    return DSCOMM_OK;
}

/* Waits until count processes have reported that they do not use the store. */
static void await_reports(dscomm_priv_store_t *store, int count,
                          dscomm_priv_deadline_t deadline)
{
    const char *key = "/" REFUSED_KEY;
    int64_t pause = WORKERS_PAUSE_NS;
    void *value;
    size_t size;
    dscomm_priv_request_t request = {.command = STORE_GET,
                                     .deadline = deadline,
                                     .keys = &key,
                                     .count = 1,
                                     .values = &value,
                                     .sizes = &size};
    int reports = 0;

    while (reports < count && dscomm_priv_clock() < deadline.at) {
        if (store->ops->execute(store, &request))
            break;
        reports = atoi(value);
        g_free(value);
        if (reports < count)
            dscomm_priv_back_off(deadline, &pause, WORKERS_PAUSE_NS);
    }
}

/* Called on rank 0 if it cannot make a secret; the reason is the last error.
 * Serves a store whose credential is that reason, until all other ranks have
 * read it. Nobody can use that store, because nobody knows its secret. Returns
 * status. */
static dscomm_status_t announce(opening_t *opening, dscomm_status_t status)
{
    dscomm_priv_job_t *job = &opening->job;
    const int ms = MIN(opening->attr->timeout_ms, ANNOUNCE_MS);
    char made[SECRET_MADE_SIZE];
    char text[DSCOMM_ERROR_MAX + 256];
    dscomm_priv_store_t *store;

    g_snprintf(text, sizeof text, "%c%.200s\n%s", WIRE_NO_CREDENTIAL,
               job->name ? job->name : "", dscomm_last_error());
    job->credential = text;
    job->secret = made;
    dscomm_priv_fail_hold();
    if (dscomm_priv_secret_make(made) &&
        open_at(opening, &store) == DSCOMM_OK) {
        await_reports(store, job->ranks - 1, dscomm_priv_deadline(ms));
        store->ops->close(store);
    }
    dscomm_priv_fail_release();
    explicit_bzero(made, sizeof made);
    return status;
}

/* Opens the store with the job's secret. Without one it uses the secret of the
 * environment, or else, if the launcher has MUNGE, a secret that the server
 * makes. */
static dscomm_status_t open_guarded(opening_t *opening,
                                    dscomm_priv_store_t **ret_store)
{
    dscomm_priv_job_t *job = &opening->job;
    dscomm_status_t status = DSCOMM_OK;
    char *found = NULL, *credential = NULL;

    if (!job->secret)
        status = dscomm_priv_secret_find(&found);
    if (!status && !job->secret && !found && job->munge &&
        opening->attr->serve) {
        status = dscomm_priv_munge_make(&found, &credential);
        if (status && job->ranks > 1)
            return announce(opening, status);
    }
    if (found)
        job->secret = found;
    if (credential)
        job->credential = credential;
    if (!status)
        status = open_at(opening, ret_store);
    dscomm_priv_secret_free(found);
    free(credential);
    return status;
}

dscomm_status_t dscomm_priv_store_tcp(const char *address,
                                      const dscomm_store_attr_t *attr,
                                      const dscomm_priv_job_t *job,
                                      dscomm_priv_store_t **ret_store)
{
    opening_t opening = {.attr = attr, .job = {.ports = 1}};
    dscomm_status_t status =
        dscomm_priv_address_split(address, &opening.host, &opening.port);

    if (status)
        return status;
    if (job)
        opening.job = *job;
    status = open_guarded(&opening, ret_store);
    g_free(opening.host);
    return status;
}
