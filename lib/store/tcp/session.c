/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads requests of one client and writes the answers. Never blocks. */
#include "config.h"

#include "lib/store/tcp/session.h"

#include "lib/base/process-fd.h"

#include <errno.h>
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
#define TURNS 4

dscomm_priv_session_t *
dscomm_priv_session_new(int fd, const char *peer, GQueue *touched,
                        dscomm_priv_budget_t *under_way,
                        const dscomm_priv_handlers_t *handlers)
{
    dscomm_priv_session_t *session = g_try_new0(dscomm_priv_session_t, 1);

    if (!session)
        return NULL;
    session->handlers = handlers;
    session->fd = fd;
    dscomm_priv_fd_keep(fd);
    g_strlcpy(session->peer, peer, sizeof session->peer);
    session->link.data = session->touch.data = session;
    session->touched = touched;
    session->under_way = under_way;
    session->accepted = g_get_monotonic_time();
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
    session->queued = TRUE;
    if (!session->answer_moved)
        session->answer_moved = g_get_monotonic_time();
}

/* True if the server's budget is used up and this session uses more than
 * LITTLE. */
static gboolean is_too_much(const dscomm_priv_session_t *session)
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
    session->tail.bad = TRUE;
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

gboolean dscomm_priv_session_is_full(const dscomm_priv_session_t *session)
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

/* FALSE if the client has left. */
static gboolean send_answers(dscomm_priv_session_t *session)
{
    size_t turn = 0;

    while (session->out_bytes && turn < TURN_MAX) {
        ssize_t sent = send_some(session);

        if (sent < 0) {
            if (errno == EINTR)
                continue;
            return errno == EAGAIN || errno == EWOULDBLOCK;
        }
        drop_sent(session, (size_t)sent);
        turn += (size_t)sent;
        session->answer_moved = g_get_monotonic_time();
    }
    if (!session->out_bytes)
        session->answer_moved = 0;
    return TRUE;
}

/* Requests */

/* Drops the first done bytes and frees their memory. */
static void consume(dscomm_priv_buffer_t *in, size_t done)
{
    dscomm_priv_buffer_t rest = {0};

    dscomm_priv_buffer_put(&rest, in->data + done, in->size - done);
    dscomm_priv_buffer_clear(in);
    *in = rest;
}

static gboolean session_count(dscomm_priv_session_t *session,
                              const char **ret_problem)
{
    dscomm_priv_budget_hold(session->under_way, &session->held,
                            session->in.room);
    if (session->in.bad)
        *ret_problem = "no memory for its request";
    else if (is_too_much(session))
        *ret_problem = "more is under way than the server has room for";
    return !*ret_problem;
}

/* True if the session may send command now. VALIDATE must be first; if there is
 * a secret, commands on keys need its proof. */
static bool may_give(const dscomm_priv_session_t *session, int command)
{
    if (!session->validate_received)
        return command == WIRE_VALIDATE;
    return session->validated || command == WIRE_VALIDATE ||
           command == WIRE_PING || command == WIRE_CHALLENGE ||
           command == WIRE_PROOF || command == WIRE_CREDENTIAL ||
           command == WIRE_REFUSED;
}

static gboolean execute_all(dscomm_priv_session_t *session,
                            dscomm_priv_commands_t *commands,
                            const char **ret_problem)
{
    dscomm_priv_buffer_t *in = &session->in;
    dscomm_priv_scan_t *scan = &session->scan;
    size_t done = 0;

    while (done < in->size && !session->refused &&
           !dscomm_priv_session_is_full(session)) {
        const uint8_t *data = in->data + done;
        dscomm_priv_scan_result_t result =
            dscomm_priv_scan(scan, data, in->size - done);

        if (result == SCAN_BAD) {
            *ret_problem = scan->problem;
            return FALSE;
        }
        if (scan->command >= 0 && !may_give(session, scan->command)) {
            if (!session->validate_received) {
                *ret_problem = "its first command is not VALIDATE";
                return FALSE;
            }
            session->handlers->refuse(commands, session);
            done = in->size;
            break;
        }
        if (result == SCAN_MORE)
            break;
        if (!session->handlers->execute(commands, session, data, ret_problem))
            return FALSE;
        done += scan->end;
        dscomm_priv_scan_next(scan);
    }
    if (done) {
        consume(in, done);
        session->request_began = 0;
    }
    if (!in->size || dscomm_priv_session_is_full(session))
        session->request_began = 0;
    else if (!session->request_began)
        session->request_began = g_get_monotonic_time();
    return session_count(session, ret_problem);
}

gboolean dscomm_priv_session_read(dscomm_priv_session_t *session,
                                  dscomm_priv_commands_t *commands,
                                  const char **ret_problem)
{
    uint8_t bytes[READ_SIZE];
    ssize_t got;

    *ret_problem = NULL;
    do
        got = recv(session->fd, bytes, sizeof bytes, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return TRUE;
    /* A connection that is closed in order shows that the client has ended. One
     * that is reset, or given up by keepalive, may belong to a client that
     * lives. */
    if (got < 0)
        *ret_problem = "the connection is lost";
    if (got <= 0)
        return FALSE;
    if (session->refused)
        return TRUE;
    dscomm_priv_buffer_put(&session->in, bytes, (size_t)got);
    return execute_all(session, commands, ret_problem);
}

gboolean dscomm_priv_session_write(dscomm_priv_session_t *session,
                                   dscomm_priv_commands_t *commands,
                                   const char **ret_problem)
{
    *ret_problem = NULL;
    for (int turn = 0; turn < TURNS && session->out_bytes; turn++) {
        gboolean full = dscomm_priv_session_is_full(session);

        seal(session);
        if (session->tail.bad) {
            *ret_problem = "no room for its answers";
            return FALSE;
        }
        if (!send_answers(session)) {
            *ret_problem = "its answers cannot be sent";
            return FALSE;
        }
        if (!full || dscomm_priv_session_is_full(session))
            break;
        if (!execute_all(session, commands, ret_problem))
            return FALSE;
    }
    return TRUE;
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

/* True if session is in list, the sessions that wait for one key. A session
 * adds its waits in a row, so it can only be the last one in the list. */
static bool list_has(dscomm_priv_list_t *list, const session_t *session)
{
    const wait_t *last = list ? g_queue_peek_tail(&list->items) : NULL;

    return last && last->session == session;
}

bool dscomm_priv_waiters_add(waiters_t *waiters, waiters_kind_t kind,
                             dscomm_priv_data_t key, session_t *session)
{
    dscomm_priv_map_t *map = &waiters->of[kind];
    dscomm_priv_list_t *list = dscomm_priv_map_find(map, key);
    dscomm_priv_bytes_t *own;
    wait_t *wait;

    if (list_has(list, session))
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
    session->waiting = FALSE;
}

void dscomm_priv_waiters_answer(session_t *session)
{
    uint8_t answer = WIRE_STOP_WAITING;

    session->waiting = FALSE;
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
