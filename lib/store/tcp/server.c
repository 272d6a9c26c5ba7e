/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's thread: accepts, reads and writes when sockets are ready, and
 * closes late connections. No client can make another one wait. */
#define _GNU_SOURCE
#include "config.h"

#include "lib/store/tcp/server.h"

#include "lib/base/process.h"
#include "lib/base/status.h"
#include "lib/base/thread.h"
#include "lib/store/tcp/commands.h"
#include "lib/store/tcp/session.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define EVENTS 64
#define ACCEPT_BATCH 64
/* Between checks for late sessions, or a quarter of the limit if that is
 * shorter, but not less than TICK_LEAST_NS. */
#define TICK_NS (1000 * NS_PER_MS)
#define TICK_LEAST_NS (10 * NS_PER_MS)
/* A session without VALIDATE is silent after this. */
#define SILENT_NS (500 * NS_PER_MS)
#define ACCEPT_PAUSE_NS (200 * NS_PER_MS) /* without file descriptors */

struct dscomm_priv_server {
    dscomm_priv_listen_t listening;
    dscomm_priv_server_limits_t limits;
    int epoll, stop; /* stop: an eventfd, readable when the server must end */
    pthread_t thread;
    dscomm_priv_commands_t commands;
    GQueue sessions; /* all connected sessions */
    gint clients; /* number with a last will, for other threads */
    GQueue touched; /* sessions with new answers */
    GQueue dead; /* closed sessions, to be freed */
    dscomm_priv_budget_t under_way;
    GQueue silent; /* sessions without VALIDATE, oldest first */
    size_t plenty; /* with this many sessions, silent ones are closed */
    int64_t tick_ns, tick_at;
    int64_t accept_at; /* when to accept again; 0: now */
    bool starved; /* out of file descriptors, and that was logged */
};

typedef dscomm_priv_server_t server_t;
typedef dscomm_priv_session_t session_t;

/* Watches fd, or changes what is watched; its events carry pointer. Only adding
 * can fail, because the kernel needs memory for it. */
static bool watch(const server_t *server, int how, int fd, uint32_t events,
                  void *pointer)
{
    struct epoll_event event = {.events = events, .data.ptr = pointer};

    return epoll_ctl(server->epoll, how, fd, &event) == 0;
}

/* False with errno. */
static bool watch_listening(server_t *server, int how, uint32_t events)
{
    int *fds = server->listening.fds;
    bool good = true;

    for (int i = 0; i < server->listening.count && good; i++)
        good = watch(server, how, fds[i], events, &fds[i]);
    return good;
}

/* Schedules the check for late sessions, while any session could become late.
 */
static void need_tick(server_t *server)
{
    if (!server->tick_at)
        server->tick_at = dscomm_priv_clock() + server->tick_ns;
}

static void end_silence(server_t *server, session_t *session)
{
    if (session->silent.data)
        g_queue_unlink(&server->silent, &session->silent);
    session->silent.data = NULL;
}

/* Closes a session. problem: why the server closes it; NULL: the client has
 * closed the connection. */
static void session_end(server_t *server, session_t *session,
                        const char *problem)
{
    if (session->dead)
        return;
    if (problem)
        dscomm_log(DSCOMM_LOG_DEBUG, "store", "closing %s: %s", session->peer,
                   problem);
    session->dead = true;
    dscomm_priv_commands_part(&server->commands, session, !problem);
    epoll_ctl(server->epoll, EPOLL_CTL_DEL, session->fd, NULL);
    g_queue_unlink(&server->sessions, &session->link);
    end_silence(server, session);
    g_queue_push_tail_link(&server->dead, &session->link);
}

/* Frees closed sessions. Called at the end of a round, because the round's
 * events may still refer to them. */
static void free_dead(server_t *server)
{
    GList *link;

    while ((link = g_queue_pop_head_link(&server->dead)) != NULL) {
        session_t *session = link->data;

        if (session->queued)
            g_queue_unlink(&server->touched, &session->touch);
        dscomm_priv_session_free(session);
    }
}

static bool may_be_late(const session_t *session)
{
    return !session->validated || session->request_began ||
           session->answer_moved;
}

static void update(server_t *server, session_t *session)
{
    unsigned events = 0;

    if (!dscomm_priv_session_is_full(session))
        events |= EPOLLIN;
    if (session->out_bytes)
        events |= EPOLLOUT;
    if (events != session->events) {
        session->events = events;
        watch(server, EPOLL_CTL_MOD, session->fd, events, session);
    }
    if (may_be_late(session))
        need_tick(server);
}

/* Accepting */

/* Closes sessions that have sent nothing for SILENT_NS, to make room for
 * others; true if there were any. */
static bool session_end_silent(server_t *server)
{
    int64_t since = dscomm_priv_clock() - SILENT_NS;
    bool any = false;
    session_t *session;

    while ((session = g_queue_peek_head(&server->silent)) != NULL &&
           session->accepted <= since) {
        session_end(server, session, "it sent no VALIDATE, and room is short");
        any = true;
    }
    return any;
}

static void server_refuse(int fd, const char *reason)
{
    dscomm_log(DSCOMM_LOG_DEBUG, "store", "refusing a connection: %s", reason);
    close(fd);
}

static void admit(server_t *server, int fd, const struct sockaddr *address,
                  socklen_t length)
{
    char peer[SOCKET_NAME_MAX];
    session_t *session;

    if (server->sessions.length >= server->plenty)
        session_end_silent(server);
    if (server->sessions.length >= server->limits.connections) {
        server_refuse(fd, "there are as many as there may be");
        return;
    }
    dscomm_priv_socket_tune(fd);
    dscomm_priv_address_name(address, length, peer);
    session =
        dscomm_priv_session_new(fd, peer, &server->touched, &server->under_way);
    if (!session) {
        server_refuse(fd, "no memory");
        return;
    }
    g_queue_push_tail_link(&server->sessions, &session->link);
    session->silent.data = session;
    g_queue_push_tail_link(&server->silent, &session->silent);
    session->events = EPOLLIN;
    if (watch(server, EPOLL_CTL_ADD, fd, EPOLLIN, session)) {
        need_tick(server);
        return;
    }
    dscomm_log(DSCOMM_LOG_WARN, "store", "cannot serve %s: epoll_ctl: %s", peer,
               strerror(errno));
    session_end(server, session, "it cannot be watched");
}

static void pause_accepting(server_t *server, int problem)
{
    if (!server->starved)
        dscomm_log(DSCOMM_LOG_WARN, "store",
                   "cannot accept a connection: %s; trying again (raise the "
                   "limit of open files, ulimit -n)",
                   strerror(problem));
    server->starved = true;
    watch_listening(server, EPOLL_CTL_MOD, 0);
    server->accept_at = dscomm_priv_clock() + ACCEPT_PAUSE_NS;
}

/* Stops listening at a socket that another process has shut down; it would be
 * ready at all times. */
static void retire(server_t *server, int listening)
{
    dscomm_log(DSCOMM_LOG_ERROR, "store",
               "port %d was shut down: no new clients can come",
               server->listening.port);
    epoll_ctl(server->epoll, EPOLL_CTL_DEL, listening, NULL);
}

static void accept_some(server_t *server, int listening)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage address;
        socklen_t length = sizeof address;
        int fd = accept4(listening, (struct sockaddr *)&address, &length,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            server->starved = false;
            admit(server, fd, (struct sockaddr *)&address, length);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                   errno == ENOMEM) {
            int problem = errno;

            if (!session_end_silent(
                    server)) /* otherwise the next round has room */
                pause_accepting(server, problem);
            return;
        } else if (errno == EINVAL) {
            retire(server, listening);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* Time */

static const char *is_late(const server_t *server, const session_t *session,
                           int64_t now)
{
    const int64_t stall = server->limits.stall_ms * NS_PER_MS;

    if (!session->validated &&
        now - session->accepted > server->limits.validate_ms * NS_PER_MS)
        return "it sent no VALIDATE in time";
    if (session->request_began && now - session->request_began > stall)
        return "it did not complete its request in time";
    if (session->answer_moved && now - session->answer_moved > stall)
        return "it does not read its answers";
    return NULL;
}

static void server_tick(server_t *server, int64_t now)
{
    bool again = false;
    GList *next;

    for (GList *link = server->sessions.head; link; link = next) {
        const char *problem = is_late(server, link->data, now);

        next = link->next;
        if (problem)
            session_end(server, link->data, problem);
        else
            again = again || may_be_late(link->data);
    }
    server->tick_at = again ? now + server->tick_ns : 0;
}

/* For epoll_wait: milliseconds until the next task; -1: none. */
static int next_due(const server_t *server)
{
    const int64_t at[] = {server->tick_at, server->accept_at,
                          dscomm_priv_wills_due(&server->commands.wills)};
    int64_t first = INT64_MAX;

    for (size_t i = 0; i < G_N_ELEMENTS(at); i++)
        if (at[i])
            first = MIN(first, at[i]);
    return dscomm_priv_clock_left(first);
}

static void do_due(server_t *server)
{
    int64_t now = dscomm_priv_clock();

    dscomm_priv_wills_carry_out(&server->commands.wills, now);
    if (server->tick_at && now >= server->tick_at)
        server_tick(server, now);
    if (server->accept_at && now >= server->accept_at) {
        server->accept_at = 0;
        watch_listening(server, EPOLL_CTL_MOD, EPOLLIN);
    }
}

/* Rounds */

static bool is_listening(const server_t *server, const void *pointer)
{
    for (int i = 0; i < server->listening.count; i++)
        if (pointer == &server->listening.fds[i])
            return true;
    return false;
}

static void serve_session(server_t *server, session_t *session, uint32_t events)
{
    const char *problem = NULL;
    bool good = true;

    if (session->dead)
        return;
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        good = dscomm_priv_commands_read(&server->commands, session, &problem);
    if (good && (events & EPOLLOUT))
        good = dscomm_priv_commands_write(&server->commands, session, &problem);
    if (session->validated)
        end_silence(server, session);
    if (!good)
        session_end(server, session, problem);
    else if (!session->queued) /* send_touched() updates the others */
        update(server, session);
}

/* Sends the answers that this round has made, to all sessions. */
static void send_touched(server_t *server)
{
    GList *link;

    while ((link = g_queue_pop_head_link(&server->touched)) != NULL) {
        session_t *session = link->data;
        const char *problem = NULL;

        session->queued = false;
        if (session->dead)
            continue;
        if (!dscomm_priv_commands_write(&server->commands, session, &problem))
            session_end(server, session, problem);
        else
            update(server, session);
    }
}

static void *server_run(void *data)
{
    server_t *server = data;
    struct epoll_event events[EVENTS];

    for (;;) {
        int count = epoll_wait(server->epoll, events, EVENTS, next_due(server));

        for (int i = 0; i < count; i++) {
            void *pointer = events[i].data.ptr;

            if (pointer == &server->stop)
                return NULL;
            if (is_listening(server, pointer))
                accept_some(server, *(int *)pointer);
            else
                serve_session(server, pointer, events[i].events);
        }
        do_due(server);
        send_touched(server);
        free_dead(server);
        g_atomic_int_set(&server->clients, server->commands.wills.clients);
    }
}

/* Opening and closing */

static dscomm_status_t watch_first(server_t *server)
{
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll >= 0 && server->stop >= 0 &&
        watch(server, EPOLL_CTL_ADD, server->stop, EPOLLIN, &server->stop) &&
        watch_listening(server, EPOLL_CTL_ADD, EPOLLIN))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_IO, "start the store's server: %s",
                       strerror(errno));
}

static dscomm_status_t start_thread(server_t *server)
{
    const int problem =
        dscomm_priv_thread_start(&server->thread, NULL, server_run, server);

    if (problem)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "start the store's server thread: %s",
                           strerror(problem));
    pthread_setname_np(server->thread, "dscomm-store");
    return DSCOMM_OK;
}

/* Returns three quarters of the connections that the process may have. */
static size_t find_plenty(size_t connections)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == RLIM_INFINITY)
        return connections;
    return MIN(connections, (size_t)(files.rlim_cur / 4 * 3));
}

static void server_free(server_t *server)
{
    while (server->sessions.length)
        session_end(server, g_queue_peek_head(&server->sessions),
                    "the store ends");
    free_dead(server);
    dscomm_priv_commands_clear(&server->commands);
    if (server->stop >= 0)
        close(server->stop);
    if (server->epoll >= 0)
        close(server->epoll);
    g_free(server);
}

dscomm_status_t
dscomm_priv_server_open(const dscomm_priv_listen_t *listening,
                        const dscomm_priv_server_limits_t *limits,
                        const dscomm_priv_job_t *job, server_t **ret_server)
{
    const dscomm_priv_server_limits_t usual = SERVER_LIMITS_INIT;
    server_t *server = g_try_new0(server_t, 1);
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;
    int64_t least;

    if (!server)
        return dscomm_fail(status, "no memory for the store's server");
    server->listening = *listening;
    server->limits = limits ? *limits : usual;
    server->plenty = find_plenty(server->limits.connections);
    least = MIN(server->limits.validate_ms, server->limits.stall_ms);
    server->tick_ns = CLAMP(least * NS_PER_MS / 4, TICK_LEAST_NS, TICK_NS);
    server->under_way.most = server->limits.under_way;
    server->epoll = server->stop = -1;
    status =
        dscomm_priv_commands_init(&server->commands, server->limits.kept, job);
    if (!status)
        status = watch_first(server);
    if (!status)
        status = start_thread(server);
    if (status) {
        server_free(server);
        return status;
    }
    for (int i = 0; i < listening->count; i++)
        dscomm_priv_fd_keep(listening->fds[i]);
    *ret_server = server;
    return DSCOMM_OK;
}

/* Notifies the thread to end. If the eventfd cannot be written, it is watched
 * for being writable instead, which it always is. */
static bool stop_thread(server_t *server)
{
    const uint64_t one = 1;
    ssize_t written;

    do {
        written = write(server->stop, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
    return written == (ssize_t)sizeof one ||
           watch(server, EPOLL_CTL_MOD, server->stop, EPOLLIN | EPOLLOUT,
                 &server->stop);
}

void dscomm_priv_server_close(server_t *server)
{
    if (!server)
        return;
    if (!stop_thread(server)) { /* better to go on than to hang here */
        dscomm_log(DSCOMM_LOG_ERROR, "store",
                   "the server cannot be stopped, and goes on: %s",
                   strerror(errno));
        return;
    }
    pthread_join(server->thread, NULL);
    dscomm_priv_listen_close(&server->listening);
    server_free(server);
}

const dscomm_priv_listen_t *dscomm_priv_server_listening(const server_t *server)
{
    return &server->listening;
}

int dscomm_priv_server_clients(const server_t *server)
{
    return g_atomic_int_get(&server->clients);
}
