/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp://: a client of torch's TCPStore protocol, whose server may be ours or
 * torch's, and the server too where this process hosts it. */
#include "config.h"

#include "lib/store/tcp/connect.h"
#include "lib/store/tcp/peer.h"
#include "lib/store/tcp/server.h"
#include "lib/store/table.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 1024 /* keys in one request */
/* Longest time in which rank 0 tells the others that it cannot serve them. */
#define ANNOUNCE_MS 30000
#define WORKERS_PAUSE_US 10000 /* between looks at how many have come */

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

/* SET or APPEND. PING makes the server say that it went well, and what is set
 * is there for everyone when the call returns. find: why it may be refused, or
 * NULL. */
static dscomm_status_t change(link_t *link, int command, const char *key,
                              dscomm_priv_data_t value,
                              dscomm_priv_deadline_t deadline,
                              dscomm_priv_reason_t find)
{
    dscomm_priv_buffer_t request = {0};
    const uint32_t nonce = 0xA99E4DED;
    dscomm_status_t status;
    uint32_t echo = 0;

    status = dscomm_priv_link_enter(&link, FALSE, deadline);
    if (status)
        return status;
    dscomm_priv_put_u8(&request, (uint8_t)command);
    dscomm_priv_put_key(&request, key);
    dscomm_priv_put_bytes(&request, value.data, value.size);
    dscomm_priv_put_u8(&request, WIRE_PING);
    dscomm_priv_put_u32(&request, nonce);
    status =
        dscomm_priv_link_query(link, &request, &echo, sizeof echo, deadline);
    if (!status && echo != nonce)
        status = dscomm_priv_link_nonsense(link, "PING", echo);
    return dscomm_priv_link_leave_refused(
        link, status, deadline, command == WIRE_SET ? "SET" : "APPEND", key,
        find, &value.size);
}

static dscomm_status_t tcp_set(dscomm_priv_store_t *self, const char *key,
                               const void *value, size_t size,
                               dscomm_priv_deadline_t deadline)
{
    return change(link_of(self), WIRE_SET, key,
                  (dscomm_priv_data_t){value, size}, deadline, NULL);
}

/* Asks for each key alone. */
static dscomm_status_t find_present(link_t *link, const char *const *keys,
                                    size_t count,
                                    dscomm_priv_deadline_t deadline,
                                    uint8_t *present)
{
    dscomm_status_t status = DSCOMM_OK;

    for (size_t done = 0, some; done < count && !status; done += some) {
        dscomm_priv_buffer_t request = {0};

        some = MIN(count - done, CHUNK);
        for (size_t i = 0; i < some; i++)
            dscomm_priv_put_keys(&request, WIRE_CHECK, keys + done + i, 1);
        status = dscomm_priv_link_query(link, &request, present + done, some,
                                        deadline);
        for (size_t i = 0; i < some && !status; i++) {
            if (present[done + i] > WIRE_NOT_READY)
                status =
                    dscomm_priv_link_nonsense(link, "CHECK", present[done + i]);
            present[done + i] = present[done + i] == WIRE_READY;
        }
    }
    return status;
}

static dscomm_status_t tcp_look(dscomm_priv_store_t *self,
                                const char *const *keys, size_t count,
                                dscomm_priv_deadline_t deadline,
                                uint8_t *ret_present)
{
    link_t *link = link_of(self);
    dscomm_status_t status = dscomm_priv_link_enter(&link, FALSE, deadline);

    if (status)
        return status;
    status = find_present(link, keys, count, deadline, ret_present);
    return dscomm_priv_link_leave_refused(link, status, deadline, "CHECK", NULL,
                                          NULL, NULL);
}

/* The deadline has passed. The answer to WAIT may be on its way all the same:
 * *ret_came. */
static dscomm_status_t
cancel_wait(link_t *link, dscomm_priv_deadline_t deadline, gboolean *ret_came)
{
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;
    uint8_t byte;

    *ret_came = FALSE;
    dscomm_priv_put_u8(&request, WIRE_CANCEL_WAIT);
    status = dscomm_priv_link_query(link, &request, &byte, 1, deadline);
    if (!status && byte == WIRE_STOP_WAITING) {
        *ret_came = TRUE;
        status = dscomm_priv_link_answer(link, &byte, 1, deadline);
    }
    if (!status && byte != WIRE_CANCELED)
        status = dscomm_priv_link_nonsense(link, "CANCEL_WAIT", byte);
    return status;
}

/* ERR_TIMEOUT leaves the connection usable, unless *ret_late is FALSE. */
static dscomm_status_t wait_some(link_t *link, const char *const *keys,
                                 size_t count, dscomm_priv_deadline_t deadline,
                                 gboolean *ret_late)
{
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;
    uint8_t byte = 0;
    gboolean came;

    *ret_late = FALSE;
    dscomm_priv_put_keys(&request, WIRE_WAIT, keys, count);
    status = dscomm_priv_link_ask(link, &request, deadline);
    if (status)
        return status;
    status = dscomm_priv_recv_all(link->fd, link->peer, &byte, 1, deadline);
    if (status == DSCOMM_ERR_TIMEOUT) {
        status = cancel_wait(link, deadline, &came);
        if (status || came)
            return status;
        *ret_late = TRUE;
        return DSCOMM_ERR_TIMEOUT;
    }
    if (!status)
        atomic_store(&link->first->silent, false);
    if (!status && byte != WIRE_STOP_WAITING)
        return dscomm_priv_link_nonsense(link, "WAIT", byte);
    return status;
}

static dscomm_status_t wait_all(link_t *link, const char *const *keys,
                                size_t count, dscomm_priv_deadline_t deadline,
                                gboolean *ret_late)
{
    dscomm_status_t status = DSCOMM_OK;

    *ret_late = FALSE;
    for (size_t done = 0, some; done < count && !status; done += some) {
        some = MIN(count - done, CHUNK);
        status = wait_some(link, keys + done, some, deadline, ret_late);
    }
    return status;
}

/* The connection is in order, but not all keys came. */
static dscomm_status_t fail_late(link_t *link, const char *const *keys,
                                 size_t count, dscomm_priv_deadline_t deadline)
{
    uint8_t *present = g_try_malloc0(count);
    gboolean known = present && find_present(link, keys, count, deadline,
                                             present) == DSCOMM_OK;
    dscomm_status_t status =
        dscomm_priv_fail_missing(keys, known ? present : NULL, count, deadline);

    g_free(present);
    dscomm_priv_link_leave(link, known ? DSCOMM_OK : status);
    return status;
}

static dscomm_status_t fetch(link_t *link, const char *const *keys,
                             size_t count, dscomm_priv_deadline_t deadline,
                             void **ret_values, size_t *ret_sizes)
{
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;

    if (count == 1) {
        dscomm_priv_put_u8(&request, WIRE_GET);
        dscomm_priv_put_key(&request, keys[0]);
    } else {
        dscomm_priv_put_keys(&request, WIRE_MULTI_GET, keys, count);
    }
    status = dscomm_priv_link_ask(link, &request, deadline);
    for (size_t i = 0; i < count && !status; i++)
        status = dscomm_priv_link_answer_value(link, deadline, &ret_values[i],
                                               &ret_sizes[i]);
    return status;
}

static dscomm_status_t tcp_get(dscomm_priv_store_t *self,
                               const char *const *keys, size_t count,
                               dscomm_priv_deadline_t deadline,
                               void **ret_values, size_t *ret_sizes)
{
    dscomm_status_t status;
    gboolean late;
    link_t *link = link_of(self);

    status = dscomm_priv_link_enter(&link, TRUE, deadline);
    if (status)
        return status;
    status = wait_all(link, keys, count, deadline, &late);
    if (late)
        return fail_late(link, keys, count, deadline);
    for (size_t done = 0, some; ret_values && done < count && !status;
         done += some) {
        some = MIN(count - done, CHUNK);
        status = fetch(link, keys + done, some, deadline, ret_values + done,
                       ret_sizes + done);
    }
    if (status)
        dscomm_priv_values_drop(ret_values, count);
    return dscomm_priv_link_leave_refused(link, status, deadline, "GET", NULL,
                                          NULL, NULL);
}

/* The value of key after the server has refused to change it; data NULL: there
 * is none. It is that of now: another client may have changed it since. */
static dscomm_status_t read_value(link_t *link, const char *key,
                                  dscomm_priv_deadline_t deadline,
                                  dscomm_priv_data_t *ret_value)
{
    dscomm_status_t status;
    void *value = NULL;
    uint8_t present;

    *ret_value = (dscomm_priv_data_t){0};
    status = find_present(link, &key, 1, deadline, &present);
    if (!status && present)
        status = fetch(link, &key, 1, deadline, &value, &ret_value->size);
    if (status)
        dscomm_priv_link_disconnect(link);
    ret_value->data = value;
    return status == DSCOMM_ERR_PEER_FAILED ? DSCOMM_OK : status;
}

/* Why ADD of *(int64_t *)delta is refused. */
static dscomm_status_t find_add(link_t *link, const char *key,
                                const void *delta,
                                dscomm_priv_deadline_t deadline)
{
    dscomm_priv_data_t value;
    dscomm_status_t status = read_value(link, key, deadline, &value);
    int64_t sum;

    if (!status)
        status = dscomm_priv_value_sum(dscomm_priv_data_text(key),
                                       value.data ? &value : NULL,
                                       *(const int64_t *)delta, &sum);
    g_free((void *)value.data);
    return status;
}

/* Why APPEND of *(size_t *)size bytes is refused. */
static dscomm_status_t find_append(link_t *link, const char *key,
                                   const void *size,
                                   dscomm_priv_deadline_t deadline)
{
    dscomm_priv_data_t value;
    dscomm_status_t status = read_value(link, key, deadline, &value);

    if (!status)
        status = dscomm_priv_value_check_append(
            dscomm_priv_data_text(key), value.size, *(const size_t *)size);
    g_free((void *)value.data);
    return status;
}

static dscomm_status_t tcp_add(dscomm_priv_store_t *self, const char *key,
                               int64_t delta, dscomm_priv_deadline_t deadline,
                               int64_t *ret_sum)
{
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;
    link_t *link = link_of(self);

    status = dscomm_priv_link_enter(&link, FALSE, deadline);
    if (status)
        return status;
    dscomm_priv_put_u8(&request, WIRE_ADD);
    dscomm_priv_put_key(&request, key);
    dscomm_priv_put_u64(&request, (uint64_t)delta);
    status = dscomm_priv_link_query(link, &request, ret_sum, sizeof *ret_sum,
                                    deadline);
    return dscomm_priv_link_leave_refused(link, status, deadline, "ADD", key,
                                          find_add, &delta);
}

static dscomm_status_t tcp_compare_set(dscomm_priv_store_t *self,
                                       const char *key,
                                       dscomm_priv_data_t expected,
                                       dscomm_priv_data_t desired,
                                       dscomm_priv_deadline_t deadline,
                                       void **ret_value, size_t *ret_size)
{
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;
    link_t *link = link_of(self);

    status = dscomm_priv_link_enter(&link, FALSE, deadline);
    if (status)
        return status;
    dscomm_priv_put_u8(&request, WIRE_COMPARE_SET);
    dscomm_priv_put_key(&request, key);
    dscomm_priv_put_bytes(&request, expected.data, expected.size);
    dscomm_priv_put_bytes(&request, desired.data, desired.size);
    status = dscomm_priv_link_ask(link, &request, deadline);
    if (!status)
        status =
            dscomm_priv_link_answer_value(link, deadline, ret_value, ret_size);
    return dscomm_priv_link_leave_refused(link, status, deadline, "COMPARE_SET",
                                          key, NULL, NULL);
}

static dscomm_status_t tcp_append(dscomm_priv_store_t *self, const char *key,
                                  const void *value, size_t size,
                                  dscomm_priv_deadline_t deadline)
{
    return change(link_of(self), WIRE_APPEND, key,
                  (dscomm_priv_data_t){value, size}, deadline, find_append);
}

static dscomm_status_t tcp_remove(dscomm_priv_store_t *self, const char *key,
                                  dscomm_priv_deadline_t deadline,
                                  int *ret_deleted)
{
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;
    uint64_t deleted = 0;
    link_t *link = link_of(self);

    status = dscomm_priv_link_enter(&link, FALSE, deadline);
    if (status)
        return status;
    dscomm_priv_put_u8(&request, WIRE_DELETE_KEY);
    dscomm_priv_put_key(&request, key);
    status = dscomm_priv_link_query(link, &request, &deleted, sizeof deleted,
                                    deadline);
    if (!status && deleted > 1)
        status = dscomm_priv_link_nonsense(link, "DELETE_KEY", deleted);
    if (!status)
        *ret_deleted = (int)deleted;
    return dscomm_priv_link_leave_refused(link, status, deadline, "DELETE_KEY",
                                          NULL, NULL, NULL);
}

/* torch's counter of clients, and the name and job that a client has given to
 * torch's server, are no keys of the user's. */
static dscomm_status_t tcp_num_keys(dscomm_priv_store_t *self,
                                    dscomm_priv_deadline_t deadline,
                                    int64_t *ret_count)
{
    static const char *const counter = WIRE_INIT_KEY;
    dscomm_priv_buffer_t request = {0};
    dscomm_status_t status;
    int64_t count = 0;
    uint8_t byte = 0;
    int others;
    link_t *link = link_of(self);

    status = dscomm_priv_link_enter(&link, FALSE, deadline);
    if (status)
        return status;
    dscomm_priv_put_u8(&request, WIRE_GETNUMKEYS);
    dscomm_priv_put_keys(&request, WIRE_CHECK, &counter, 1);
    status =
        dscomm_priv_link_query(link, &request, &count, sizeof count, deadline);
    if (!status)
        status = dscomm_priv_link_answer(link, &byte, 1, deadline);
    others = (byte == WIRE_READY) + (link->server[0] == WIRE_NAMED_BY_CLIENT) *
                                        (1 + (link->job != NULL));
    if (!status && (byte > WIRE_NOT_READY || count < others))
        status = dscomm_priv_link_nonsense(link, "GETNUMKEYS", (uint64_t)count);
    if (!status)
        *ret_count = count - others;
    return dscomm_priv_link_leave_refused(link, status, deadline, "GETNUMKEYS",
                                          NULL, NULL, NULL);
}

/* The server's own process needs none: the store ends with it. */
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
    .set = tcp_set,
    .get = tcp_get,
    .add = tcp_add,
    .compare_set = tcp_compare_set,
    .append = tcp_append,
    .remove = tcp_remove,
    .look = tcp_look,
    .num_keys = tcp_num_keys,
    .will = tcp_will,
    .withdraw = tcp_withdraw,
};

/* Opening */

/* torch's wait_for_workers: clients count themselves, the host waits for
 * all. */
static dscomm_status_t wait_workers(tcp_t *tcp, int world_size,
                                    dscomm_priv_deadline_t deadline)
{
    gint64 pause = WORKERS_PAUSE_US;
    dscomm_status_t status;
    int64_t count = 0;

    status = tcp_add(&tcp->head, WIRE_INIT_KEY, 1, deadline, &count);
    while (!status && tcp->server && count < world_size) {
        if (dscomm_priv_deadline_passed(deadline))
            return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                               "%d of %d clients came to the store at %s "
                               "within %d ms",
                               (int)count, world_size, tcp->link.peer,
                               deadline.ms);
        dscomm_priv_back_off(deadline, &pause, WORKERS_PAUSE_US);
        status = tcp_add(&tcp->head, WIRE_INIT_KEY, 0, deadline, &count);
    }
    return status;
}

static dscomm_status_t serve(const char *host, int port,
                             const dscomm_store_attr_t *attr,
                             const dscomm_priv_job_t *job,
                             dscomm_priv_deadline_t deadline,
                             dscomm_priv_server_t **ret_server)
{
    const dscomm_priv_place_t place = {
        .host = host,
        .port = port,
        .ports = job->ports,
        .remote = job->remote,
        .guarded = job->secret != NULL,
    };
    dscomm_priv_listen_t listening;
    dscomm_status_t status;

    if (attr->listen_fd)
        status = dscomm_priv_listen_adopt(attr->listen_fd, port, &listening);
    else
        status = dscomm_priv_listen(&place, deadline, &listening);
    if (status)
        return status;
    status = dscomm_priv_server_open(&listening, NULL, job, ret_server);
    if (status)
        dscomm_priv_listen_close(&listening);
    else if (!job->secret)
        dscomm_priv_listen_warn(dscomm_priv_server_listening(*ret_server));
    return status;
}

/* The client of the server's own process goes straight to it, not through
 * names, nor does it ask whose it is. NULL: no memory. */
static tcp_t *tcp_new(const char *host, int port, const dscomm_priv_job_t *job,
                      dscomm_priv_server_t *server)
{
    const dscomm_priv_job_t own_job = {.ports = 1, .secret = job->secret};
    tcp_t *tcp = g_try_new(tcp_t, 1);
    char own[LISTEN_HOST_MAX], name[LINK_PEER_MAX];
    const char *peer = NULL;

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

static dscomm_status_t open_at(const char *host, int port,
                               const dscomm_store_attr_t *attr,
                               const dscomm_priv_job_t *job,
                               dscomm_priv_store_t **ret_store)
{
    dscomm_priv_deadline_t deadline = dscomm_priv_deadline(attr->timeout_ms);
    dscomm_priv_server_t *server = NULL;
    dscomm_status_t status = DSCOMM_OK;
    tcp_t *tcp;

    if (attr->serve)
        status = serve(host, port, attr, job, deadline, &server);
    else if (!port)
        status = dscomm_fail(DSCOMM_ERR_INVALID,
                             "port 0 is for the process that serves the store; "
                             "all others give the port that it has got");
    if (status)
        return status;
    tcp = tcp_new(host, port, job, server);
    if (!tcp) {
        dscomm_priv_server_close(server);
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a store");
    }
    status = dscomm_priv_link_connect(&tcp->link, deadline);
    if (!status && attr->world_size)
        status = wait_workers(tcp, attr->world_size, deadline);
    if (status) {
        tcp_close(&tcp->head);
        return status;
    }
    if (attr->serve && attr->listen_fd)
        close(attr->listen_fd);
    *ret_store = &tcp->head;
    return DSCOMM_OK;
}

/* Waits until so many processes have reported that they do not use the store.
 */
static void await_reports(dscomm_priv_store_t *store, int count,
                          dscomm_priv_deadline_t deadline)
{
    const char *key = "/" REFUSED_KEY;
    gint64 pause = WORKERS_PAUSE_US;
    int reports = 0;

    while (reports < count && !dscomm_priv_deadline_passed(deadline)) {
        void *value;
        size_t size;

        if (store->ops->get(store, &key, 1, deadline, &value, &size))
            break;
        reports = atoi(value);
        g_free(value);
        if (reports < count)
            dscomm_priv_back_off(deadline, &pause, WORKERS_PAUSE_US);
    }
}

/* Rank 0, which cannot make a secret, as the last error says: tells the other
 * ranks, in place of a credential. Nobody can use the store meanwhile, because
 * nobody knows its secret. Returns status. */
static dscomm_status_t announce(const char *host, int port,
                                const dscomm_store_attr_t *attr,
                                dscomm_priv_job_t job, dscomm_status_t status)
{
    char made[SECRET_MADE_SIZE], why[DSCOMM_ERROR_MAX];
    char text[DSCOMM_ERROR_MAX + 256];
    dscomm_priv_store_t *store;

    g_strlcpy(why, dscomm_last_error(), sizeof why);
    g_snprintf(text, sizeof text, "%c%.200s\n%s", WIRE_NO_CREDENTIAL,
               job.name ? job.name : "", why);
    job.credential = text;
    job.secret = made;
    if (dscomm_priv_secret_make(made) &&
        open_at(host, port, attr, &job, &store) == DSCOMM_OK) {
        await_reports(store, job.ranks - 1,
                      dscomm_priv_deadline(MIN(attr->timeout_ms, ANNOUNCE_MS)));
        store->ops->close(store);
    }
    explicit_bzero(made, sizeof made);
    return dscomm_priv_fail_with(status, why);
}

/* A job without a secret of its own has that of the environment, else, if its
 * launcher has MUNGE, one that the server makes. */
static dscomm_status_t open_guarded(const char *host, int port,
                                    const dscomm_store_attr_t *attr,
                                    const dscomm_priv_job_t *job,
                                    dscomm_priv_store_t **ret_store)
{
    dscomm_priv_job_t whose = {.ports = 1};
    dscomm_status_t status = DSCOMM_OK;
    char *found = NULL, *credential = NULL;

    if (job)
        whose = *job;
    if (!whose.secret)
        status = dscomm_priv_secret_find(&found);
    if (!whose.secret && !found && whose.munge && attr->serve &&
        status == DSCOMM_OK) {
        status = dscomm_priv_munge_make(&found, &credential);
        if (status && whose.ranks > 1)
            return announce(host, port, attr, whose, status);
    }
    if (found)
        whose.secret = found;
    if (credential)
        whose.credential = credential;
    if (status == DSCOMM_OK)
        status = open_at(host, port, attr, &whose, ret_store);
    dscomm_priv_secret_free(found);
    free(credential);
    return status;
}

dscomm_status_t dscomm_priv_store_tcp(const char *address,
                                      const dscomm_store_attr_t *attr,
                                      const dscomm_priv_job_t *job,
                                      dscomm_priv_store_t **ret_store)
{
    dscomm_status_t status;
    char *host;
    int port;

    status = dscomm_priv_address_split(address, &host, &port);
    if (status)
        return status;
    status = open_guarded(host, port, attr, job, ret_store);
    g_free(host);
    return status;
}
