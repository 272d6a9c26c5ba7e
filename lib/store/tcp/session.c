/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives requests of one client and sends the answers, without blocking; and
 * what the server keeps about clients: their waits and their last wills. */
#include "config.h"

#include "lib/store/tcp/session.h"

#include "lib/base/process.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* read at a time, so that all clients get a turn */
#define READ_SIZE ((size_t)64 << 10)
#define LITTLE ((size_t)16 << 10) /* room that every session has */
/* small answers are joined up to this size */
#define SEAL_SIZE ((size_t)64 << 10)
#define COPY_MAX ((size_t)4 << 10) /* larger values are referenced */
#define OUT_MAX ((size_t)1 << 20) /* with more to send, requests wait */
#define VECTORS 64
/* sent at a time, so that all clients get a turn */
#define TURN_MAX ((size_t)4 << 20)

dscomm_priv_session_t *dscomm_priv_session_new(int fd, const char *peer,
                                               GQueue *touched,
                                               dscomm_priv_budget_t *under_way)
{
    dscomm_priv_session_t *session = g_try_new0(dscomm_priv_session_t, 1);

    if (!session)
        return NULL;
    session->fd = fd;
    dscomm_priv_fd_keep(fd);
    g_strlcpy(session->peer, peer, sizeof session->peer);
    session->link.data = session->touch.data = session;
    session->touched = touched;
    session->under_way = under_way;
    session->accepted = dscomm_priv_clock();
    dscomm_priv_scan_init(&session->scan);
    return session;
}

void dscomm_priv_session_free(dscomm_priv_session_t *session)
{
    dscomm_priv_bytes_unref(session->client);
    dscomm_priv_queue_clear(&session->out);
    dscomm_priv_buffer_clear(&session->tail);
    dscomm_priv_buffer_clear(&session->in);
    dscomm_priv_budget_hold(session->under_way, &session->held, 0);
    dscomm_priv_scan_clear(&session->scan);
    shutdown(session->fd, SHUT_RDWR); /* a forked child may have a copy */
    dscomm_priv_fd_close(session->fd);
    g_free(session);
}

/* Answers */

static void session_touch(dscomm_priv_session_t *session)
{
    if (!session->queued)
        g_queue_push_tail_link(session->touched, &session->touch);
    session->queued = true;
    if (!session->answer_moved)
        session->answer_moved = dscomm_priv_clock();
}

/* True if the server's budget is used up and this session uses more than
 * LITTLE. */
static bool is_too_much(const dscomm_priv_session_t *session)
{
    size_t own = session->held + session->out_bytes +
                 session->waits.length * SESSION_NOTE_COST;

    return !dscomm_priv_budget_has_room(session->under_way, 0) && own > LITTLE;
}

/* Appends a segment, one byte string, to out. If there is no memory, the
 * session is given up. */
static void session_push(dscomm_priv_session_t *session,
                         dscomm_priv_bytes_t *bytes)
{
    if (bytes && dscomm_priv_queue_push(&session->out, bytes))
        return;
    dscomm_priv_bytes_unref(bytes);
    session->tail.bad = true;
}

/* Moves the tail's bytes to out, as one segment. */
static void seal(dscomm_priv_session_t *session)
{
    dscomm_priv_buffer_t *tail = &session->tail;
    dscomm_priv_bytes_t *bytes;

    if (!tail->size)
        return;
    bytes = dscomm_priv_bytes_take(session->under_way, tail->data, tail->size,
                                   tail->room + BUDGET_COPY_COST);
    session_push(session, bytes);
    if (!bytes)
        return;
    tail->data = NULL;
    tail->size = tail->room = 0;
    tail->bad = tail->bad || is_too_much(session);
}

void dscomm_priv_session_answer(dscomm_priv_session_t *session,
                                const void *data, size_t size)
{
    dscomm_priv_buffer_put(&session->tail, data, size);
    session->out_bytes += size;
    if (session->tail.size >= SEAL_SIZE)
        seal(session);
    session_touch(session);
}

void dscomm_priv_session_answer_copy(dscomm_priv_session_t *session,
                                     const void *data, size_t size)
{
    uint64_t length = size;

    dscomm_priv_session_answer(session, &length, sizeof length);
    dscomm_priv_session_answer(session, data, size);
}

void dscomm_priv_session_answer_value(dscomm_priv_session_t *session,
                                      dscomm_priv_bytes_t *value)
{
    const size_t size = value ? value->data.size : 0;
    const uint64_t length = size;

    if (size <= COPY_MAX) {
        dscomm_priv_session_answer_copy(session,
                                        value ? value->data.data : NULL, size);
        return;
    }
    dscomm_priv_session_answer(session, &length, sizeof length);
    seal(session);
    if (session->tail.bad)
        return;
    session_push(session, dscomm_priv_bytes_ref(value));
    session->out_bytes += size;
}

bool dscomm_priv_session_is_full(const dscomm_priv_session_t *session)
{
    return session->out_bytes > OUT_MAX;
}

static void drop_sent(dscomm_priv_session_t *session, size_t sent)
{
    session->out_bytes -= sent;
    sent += session->out_sent;
    while (!g_queue_is_empty(&session->out)) {
        const dscomm_priv_bytes_t *first = g_queue_peek_head(&session->out);

        if (sent < first->data.size)
            break;
        sent -= first->data.size;
        dscomm_priv_bytes_unref(dscomm_priv_queue_pop(&session->out));
    }
    session->out_sent = sent;
}

/* Sends the first answers. Returns sendmsg()'s result: -1 with errno. */
static ssize_t send_some(dscomm_priv_session_t *session)
{
    struct iovec vectors[VECTORS];
    struct msghdr message = {.msg_iov = vectors};
    size_t skip = session->out_sent;

    for (GList *next = session->out.head; next && message.msg_iovlen < VECTORS;
         next = next->next) {
        const dscomm_priv_data_t data =
            ((const dscomm_priv_bytes_t *)next->data)->data;
        struct iovec *vector = &vectors[message.msg_iovlen++];

        vector->iov_base = (uint8_t *)data.data + skip;
        vector->iov_len = data.size - skip;
        skip = 0;
    }
    return sendmsg(session->fd, &message, MSG_NOSIGNAL);
}

bool dscomm_priv_session_send(dscomm_priv_session_t *session,
                              const char **ret_problem)
{
    size_t turn = 0;

    seal(session);
    if (session->tail.bad) {
        *ret_problem = "no room for its answers";
        return false;
    }
    while (session->out_bytes && turn < TURN_MAX) {
        ssize_t sent = send_some(session);

        if (sent < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                break;
            *ret_problem = "its answers cannot be sent";
            return false;
        }
        drop_sent(session, (size_t)sent);
        turn += (size_t)sent;
        session->answer_moved = dscomm_priv_clock();
    }
    if (!session->out_bytes)
        session->answer_moved = 0;
    return true;
}

/* Requests */

bool dscomm_priv_session_receive(dscomm_priv_session_t *session,
                                 const char **ret_problem)
{
    uint8_t bytes[READ_SIZE];
    ssize_t got;

    do
        got = recv(session->fd, bytes, sizeof bytes, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return true;
    /* A connection that is closed in order shows that the client has ended. One
     * that is reset, or given up by keepalive, may belong to a client that
     * lives. */
    if (got < 0)
        *ret_problem = "the connection is lost";
    if (got > 0 && !session->refused)
        dscomm_priv_buffer_put(&session->in, bytes, (size_t)got);
    return got > 0;
}

bool dscomm_priv_session_consume(dscomm_priv_session_t *session, size_t done,
                                 const char **ret_problem)
{
    dscomm_priv_buffer_t *in = &session->in, rest = {0};

    if (done) { /* frees the memory of large requests */
        dscomm_priv_buffer_put(&rest, in->data + done, in->size - done);
        dscomm_priv_buffer_clear(in);
        *in = rest;
        session->request_began = 0;
    }
    if (!in->size || dscomm_priv_session_is_full(session))
        session->request_began = 0;
    else if (!session->request_began)
        session->request_began = dscomm_priv_clock();
    dscomm_priv_budget_hold(session->under_way, &session->held, in->room);
    if (in->bad)
        *ret_problem = "no memory for its request";
    else if (is_too_much(session))
        *ret_problem = "more is under way than the server has room for";
    return !*ret_problem;
}

/* Sessions that wait */

typedef dscomm_priv_waiters_t waiters_t;
typedef dscomm_priv_session_t session_t;

/* A session that waits for a key. */
typedef struct {
    session_t *session;
    dscomm_priv_map_t *map; /* the map that has list */
    dscomm_priv_list_t *list; /* all waits for the key */
    dscomm_priv_bytes_t *key; /* counts in the budget */
    GList of_list, of_session; /* links of list->items and session->waits */
} wait_t;

void dscomm_priv_waiters_clear(waiters_t *waiters)
{
    for (int kind = 0; kind < WAITERS_KINDS; kind++)
        dscomm_priv_map_clear(&waiters->of[kind], dscomm_priv_list_free);
}

bool dscomm_priv_waiters_add(waiters_t *waiters, waiters_kind_t kind,
                             dscomm_priv_data_t key, session_t *session)
{
    dscomm_priv_map_t *map = &waiters->of[kind];
    dscomm_priv_list_t *list = dscomm_priv_map_find(map, key);
    const wait_t *last = list ? g_queue_peek_tail(&list->items) : NULL;
    dscomm_priv_bytes_t *own;
    wait_t *wait;

    /* A session adds its waits in a row, so one for key can only be the last.
     */
    if (last && last->session == session)
        return true;
    /* fits: it is no larger than the request, which had room */
    own = dscomm_priv_bytes_new(session->under_way, key.data, key.size,
                                key.size + SESSION_NOTE_COST);
    wait = own ? g_try_new0(wait_t, 1) : NULL;
    list = wait ? dscomm_priv_list_ensure(map, own) : NULL;
    if (!list) {
        g_free(wait);
        dscomm_priv_bytes_unref(own);
        return false;
    }
    *wait = (wait_t){session, map, list, own, {.data = wait}, {.data = wait}};
    g_queue_push_tail_link(&list->items, &wait->of_list);
    g_queue_push_tail_link(&session->waits, &wait->of_session);
    return true;
}

static void wait_end(wait_t *wait)
{
    g_queue_unlink(&wait->list->items, &wait->of_list);
    g_queue_unlink(&wait->session->waits, &wait->of_session);
    dscomm_priv_list_end_if_empty(wait->map, wait->list);
    dscomm_priv_bytes_unref(wait->key);
    g_free(wait);
}

void dscomm_priv_waiters_remove(session_t *session)
{
    while (session->waits.length)
        wait_end(g_queue_peek_head(&session->waits));
    session->waiting = false;
}

void dscomm_priv_waiters_answer(session_t *session)
{
    uint8_t answer = WIRE_STOP_WAITING;

    session->waiting = false;
    dscomm_priv_session_answer(session, &answer, 1);
}

/* Ends the first wait of list; answers its session if that was its last. */
static void list_wake_one(dscomm_priv_list_t *list)
{
    wait_t *wait = g_queue_peek_head(&list->items);
    session_t *session = wait->session;

    wait_end(wait);
    if (!session->waits.length)
        dscomm_priv_waiters_answer(session);
}

void dscomm_priv_waiters_wake(waiters_t *waiters, waiters_kind_t kind,
                              dscomm_priv_data_t key)
{
    dscomm_priv_list_t *list = dscomm_priv_map_find(&waiters->of[kind], key);

    /* the last iteration frees list */
    for (guint left = list ? list->items.length : 0; left; left--)
        list_wake_one(list);
}

void dscomm_priv_waiters_wake_one(waiters_t *waiters, dscomm_priv_data_t key)
{
    dscomm_priv_list_t *list =
        dscomm_priv_map_find(&waiters->of[WAITERS_KEY], key);

    if (list)
        list_wake_one(list);
}

/* Last wills */

typedef struct will {
    struct will *next;
    dscomm_priv_bytes_t *key, *value;
} will_t;

typedef struct {
    dscomm_priv_node_t node; /* its name */
    will_t *wills;
    int count; /* number of wills */
    unsigned connections;
    int64_t due; /* when they are carried out, if queue is due */
    GQueue *queue; /* due or kept of wills_t; NULL: connected */
    GList link; /* in queue */
    bool counted; /* counts in clients of wills_t */
} client_t;

typedef dscomm_priv_wills_t wills_t;

static void will_free(will_t *will)
{
    dscomm_priv_bytes_unref(will->value);
    dscomm_priv_bytes_unref(will->key);
    g_free(will);
}

static void client_free(dscomm_priv_node_t *node)
{
    client_t *client = (client_t *)node;

    while (client->wills) {
        will_t *will = client->wills;

        client->wills = will->next;
        will_free(will);
    }
    dscomm_priv_bytes_unref(client->node.key);
    g_free(client);
}

void dscomm_priv_wills_clear(wills_t *wills)
{
    dscomm_priv_map_clear(&wills->of, client_free);
}

static client_t *client_add(wills_t *wills, dscomm_priv_bytes_t *name)
{
    client_t *client = g_try_new0(client_t, 1);

    if (!client)
        return NULL;
    client->node.key = dscomm_priv_bytes_ref(name);
    client->link.data = client;
    dscomm_priv_map_add(&wills->of, &client->node);
    return client;
}

static void client_count(wills_t *wills, client_t *client)
{
    const bool counts = client->connections && client->wills;

    wills->clients += counts - client->counted;
    client->counted = counts;
}

static void client_move(client_t *client, GQueue *queue)
{
    if (client->queue)
        g_queue_unlink(client->queue, &client->link);
    if (queue)
        g_queue_push_tail_link(queue, &client->link);
    client->queue = queue;
}

static void client_remove(wills_t *wills, client_t *client)
{
    client_move(client, NULL);
    wills->clients -= client->counted;
    dscomm_priv_map_remove(&wills->of, &client->node);
    client_free(&client->node);
}

static void will_retract(wills_t *wills, const will_t *will)
{
    dscomm_priv_table_cut(wills->table, will->key->data, will->value->data);
}

void dscomm_priv_wills_leave(wills_t *wills, dscomm_priv_bytes_t **slot,
                             bool ended)
{
    client_t *client =
        *slot ? dscomm_priv_map_find(&wills->of, (*slot)->data) : NULL;

    dscomm_priv_bytes_unref(*slot);
    *slot = NULL;
    if (!client || !client->connections)
        return;
    client->connections--;
    client_count(wills, client);
    if (client->connections)
        return;
    client->due = dscomm_priv_clock() + WILL_GRACE_MS * NS_PER_MS;
    if (ended && client->wills)
        client_move(client, &wills->due);
    else
        client_remove(wills, client);
}

bool dscomm_priv_wills_join(wills_t *wills, dscomm_priv_bytes_t **slot,
                            dscomm_priv_bytes_t *name)
{
    client_t *client;

    if (*slot && dscomm_priv_data_equal((*slot)->data, name->data))
        return true;
    dscomm_priv_wills_leave(wills, slot, false);
    client = dscomm_priv_map_find(&wills->of, name->data);
    if (!client)
        client = client_add(wills, name);
    if (!client)
        return false;
    for (will_t *will = client->wills; will && client->queue == &wills->kept;
         will = will->next)
        will_retract(wills, will);
    client_move(client, NULL);
    client->connections++;
    client_count(wills, client);
    *slot = dscomm_priv_bytes_ref(name);
    return true;
}

/* Returns the link to the will for key, or to the end of the list. */
static will_t **client_find(client_t *client, dscomm_priv_data_t key)
{
    will_t **at = &client->wills;

    while (*at && !dscomm_priv_data_equal((*at)->key->data, key))
        at = &(*at)->next;
    return at;
}

dscomm_status_t dscomm_priv_wills_give(wills_t *wills, dscomm_priv_data_t name,
                                       dscomm_priv_bytes_t *key,
                                       dscomm_priv_bytes_t *value)
{
    client_t *client = dscomm_priv_map_find(&wills->of, name);
    will_t **at = client ? client_find(client, key->data) : NULL;

    if (!at)
        return DSCOMM_ERR_INVALID;
    if (*at)
        return DSCOMM_OK;
    if (client->count >= WILL_COUNT_MAX)
        return DSCOMM_ERR_INVALID;
    if (!(*at = g_try_new0(will_t, 1)))
        return DSCOMM_ERR_NO_MEMORY;
    (*at)->key = dscomm_priv_bytes_ref(key);
    (*at)->value = dscomm_priv_bytes_ref(value);
    client->count++;
    client_count(wills, client);
    return DSCOMM_OK;
}

static void client_withdraw(wills_t *wills, client_t *client, will_t **at)
{
    will_t *will = *at;

    if (client->queue == &wills->kept)
        will_retract(wills, will);
    *at = will->next;
    will_free(will);
    client->count--;
    client_count(wills, client);
}

void dscomm_priv_wills_withdraw(wills_t *wills, dscomm_priv_data_t name,
                                dscomm_priv_data_t key)
{
    client_t *client = dscomm_priv_map_find(&wills->of, name);

    if (!client)
        return;
    while (!key.size && client->wills)
        client_withdraw(wills, client, &client->wills);
    if (key.size && *client_find(client, key))
        client_withdraw(wills, client, client_find(client, key));
    if (!client->wills && !client->connections)
        client_remove(wills, client);
}

int64_t dscomm_priv_wills_due(const wills_t *wills)
{
    const client_t *client = g_queue_peek_head((GQueue *)&wills->due);

    return client ? client->due : 0;
}

void dscomm_priv_wills_carry_out(wills_t *wills, int64_t now)
{
    client_t *client;

    while ((client = g_queue_peek_head(&wills->due)) && client->due <= now) {
        client_move(client, &wills->kept);
        for (will_t *will = client->wills; will; will = will->next) {
            const dscomm_priv_data_t key = will->key->data;

            /* if the store is full, the will is lost */
            if (!dscomm_priv_table_append(wills->table, key, will->value->data))
                dscomm_priv_waiters_wake(wills->waiters, WAITERS_KEY, key);
        }
    }
    while (wills->kept.length > WILL_KEPT_MAX)
        client_remove(wills, g_queue_peek_head(&wills->kept));
}
