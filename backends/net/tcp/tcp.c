/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend tcp: the message engine over sockets. */
#include "config.h"

#include "backends/net/tcp/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 64
/* Polls of the hot connections alone, between polls of all, as long as the
 * coarse clock stands. */
#define HOT_POLLS 8
/* The same if the last reads were all of one of them. */
#define ALONE_POLLS 64
/* Longest message that is sent at once by a slow connection. */
#define EAGER_SLOW ((size_t)64 << 10)

enum {
    SETTING_CONNECTIONS,
    SETTING_UNIX,
    SETTING_ZEROCOPY,
    SETTING_CONGESTION
};

static const dscomm_setting_t settings[] = {
    [SETTING_CONNECTIONS] = {"DSCOMM_TCP_CONNECTIONS",
                             DSCOMM_SETTING_INT | DSCOMM_SETTING_TUNABLE, "1",
                             1, CONNECTIONS_MAX, NULL,
                             "Connections by which a rank sends long messages "
                             "to another one."},
    [SETTING_UNIX] = {"DSCOMM_TCP_UNIX", DSCOMM_SETTING_BOOL, "1", 0, 0, NULL,
                      "Whether ranks of one host use Unix sockets in place of "
                      "TCP."},
    [SETTING_ZEROCOPY] = {"DSCOMM_TCP_ZEROCOPY",
                          DSCOMM_SETTING_BOOL | DSCOMM_SETTING_TUNABLE, "1", 0,
                          0, NULL,
                          "Whether long messages are sent without a copy in "
                          "the kernel, where it can."},
    [SETTING_CONGESTION] = {"DSCOMM_TCP_CONGESTION", DSCOMM_SETTING_STRING,
                            NULL, 0, 0, NULL,
                            "Congestion control of TCP, such as bbr, for a "
                            "link with loss; by default the kernel's."},
    {.name = NULL},
};

static int64_t clock_read(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t tcp_now(void)
{
    return clock_read(CLOCK_MONOTONIC_COARSE);
}

int64_t tcp_now_fine(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

/* Returns what an error says of the peer of a connection. */
static dscomm_failure_kind_t end_kind(int error)
{
    if (error == EFAULT)
        return DSCOMM_FAILURE_PROTOCOL; /* of the program of this rank */
    return error == ETIMEDOUT || error == EHOSTUNREACH ? DSCOMM_FAILURE_SILENT
                                                       : DSCOMM_FAILURE_DIED;
}

/* Ends a connection that has ended, and what depends on it. */
static void conn_release(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;
    const int peer = conn->peer;
    pair_t *pair = peer < 0 ? NULL : &tcp->pairs[peer];
    char why[PLACE_TEXT + sizeof conn->why + 160], place[PLACE_TEXT];

    if (!conn->was_up) {
        tcp_attempt_failed(conn);
        tcp_conn_free(conn);
        return;
    }
    /* The peer has perhaps ended all its connections in order. */
    if (conn->channel && pair->main && pair->state == PAIR_UP)
        while (tcp_read(pair->main))
            continue;
    snprintf(why, sizeof why, "connection to %s: %s%s",
             tcp_place_text(&conn->place, place), conn->why,
             conn->error == ECONNRESET && pair->elsewhere
                 ? "; if its process lives, something between the hosts has "
                   "cut the connection"
                 : "");
    if (pair->main == conn)
        pair->main = NULL;
    for (unsigned c = 1; c < CHANNELS_MAX; c++)
        if (pair->channels[c] == conn)
            pair->channels[c] = NULL;
    if (pair->state != PAIR_LOST)
        tcp_pair_lose(tcp, peer, end_kind(conn->error), why);
    tcp_zerocopy_read(conn); /* what was acknowledged before the end */
    tcp_frames_drop(tcp, &conn->held);
    tcp_frames_drop(tcp, &conn->queue);
    tcp_conn_free(conn);
}

static void ended_release(tcp_t *tcp)
{
    conn_t *conn = LIST_FIRST(&tcp->conns), *next;

    tcp->ended = 0;
    for (; conn; conn = next) {
        next = LIST_NEXT(conn, in_tcp);
        if (conn->state == CONN_ENDED)
            conn_release(conn);
    }
    for (int p = 0; p < tcp->args.ranks; p++)
        if (tcp->pairs[p].state == PAIR_LOST && tcp->pairs[p].waiting.first)
            tcp_frames_drop(tcp, &tcp->pairs[p].waiting);
}

/* connect() has ended. */
static void conn_connected(conn_t *conn)
{
    int error = 0;
    socklen_t size = sizeof error;

    getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error)
        tcp_conn_end(conn, error, "%s", strerror(error));
    else
        tcp_handshake_begin(conn);
}

static void conn_event(conn_t *conn, uint32_t events)
{
    if (conn->state == CONN_CONNECTING) {
        conn_connected(conn);
        return;
    }
    if (conn->state < CONN_UP)
        tcp_handshake(conn);
    if (conn->state == CONN_UP && (events & EPOLLERR))
        tcp_zerocopy_read(conn);
    if (conn->state == CONN_UP)
        tcp_read(conn);
    if (conn->state == CONN_UP && (events & EPOLLOUT))
        tcp_write(conn);
}

/* Listeners and the descriptor that wakes have the address of their own
 * variable as data. */
static void event_handle(tcp_t *tcp, const struct epoll_event *event)
{
    uint64_t count;

    if (event->data.ptr == &tcp->wake) {
        while (read(tcp->wake, &count, sizeof count) > 0)
            continue;
        return;
    }
    if (event->data.ptr == &tcp->unix_listener) {
        tcp_accept(tcp, tcp->unix_listener, true);
        return;
    }
    for (unsigned i = 0; i < tcp->listener_count; i++)
        if (event->data.ptr == &tcp->listeners[i]) {
            tcp_accept(tcp, tcp->listeners[i], false);
            return;
        }
    conn_event(event->data.ptr, event->events);
}

static void tcp_poll(void *wire)
{
    tcp_t *tcp = wire;
    struct epoll_event events[EVENTS];
    const unsigned polls = tcp->alone ? ALONE_POLLS : HOT_POLLS;
    int64_t now;
    int count;

    tcp->moved = 0;
    tcp->polls++;
    tcp->in_poll = true;
    for (int i = 0; i < HOT_MAX && !tcp->moved; i++)
        if (tcp->hot[i] && tcp->hot[i]->state == CONN_UP)
            tcp_read(tcp->hot[i]);
    tcp->in_poll = false;
    tcp_deferred_write(tcp);
    now = tcp_now();
    if (!tcp->ended && tcp->hot[0] && tcp->polls % polls &&
        now == tcp->polled_ns &&
        !atomic_load_explicit(&tcp->waited, memory_order_relaxed))
        return;
    atomic_store_explicit(&tcp->waited, false, memory_order_relaxed);
    tcp->polled_ns = now;
    count = epoll_wait(tcp->epoll, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        tcp->in_poll = true;
        event_handle(tcp, &events[i]);
        tcp->in_poll = false;
        tcp_deferred_write(tcp);
    }
    tcp_timers(tcp);
    if (tcp->ended)
        ended_release(tcp);
}

static void tcp_wait(void *wire, unsigned timeout_us)
{
    tcp_t *tcp = wire;
    struct pollfd awaited[] = {
        {.fd = tcp->epoll, .events = POLLIN},
        {.fd = atomic_load_explicit(&tcp->alone_fd, memory_order_relaxed),
         .events = POLLIN},
    };
    const struct timespec timeout = {timeout_us / 1000000,
                                     timeout_us % 1000000 * 1000L};

    ppoll(awaited, G_N_ELEMENTS(awaited), &timeout, NULL);
    atomic_store_explicit(&tcp->waited, true, memory_order_relaxed);
}

static void tcp_wake(void *wire)
{
    const tcp_t *tcp = wire;
    const uint64_t one = 1;

    if (write(tcp->wake, &one, sizeof one) < 0)
        return; /* it is readable already */
}

static size_t tcp_unsent(void *wire)
{
    tcp_t *tcp = wire;
    size_t bytes = 0;
    conn_t *conn;

    LIST_FOREACH (conn, &tcp->conns, in_tcp)
        bytes += tcp_conn_unsent(conn);
    for (int p = 0; p < tcp->args.ranks; p++)
        if (tcp->pairs[p].state == PAIR_CONNECTING)
            bytes += tcp->pairs[p].waiting.bytes;
    return bytes;
}

/* The connection to a peer with the most bytes that it may not have received,
 * or the main one; NULL: none. */
static const conn_t *pair_stuck(const pair_t *pair)
{
    const conn_t *stuck = pair->main;
    size_t most = stuck && stuck->state == CONN_UP ? tcp_conn_unsent(stuck) : 0;

    for (unsigned c = 1; c < pair->channel_count; c++) {
        const conn_t *conn = pair->channels[c];

        if (conn && conn->state == CONN_UP && tcp_conn_unsent(conn) > most) {
            stuck = conn;
            most = tcp_conn_unsent(conn);
        }
    }
    return stuck;
}

static void tcp_describe(void *wire, int peer, char *text, size_t size)
{
    const tcp_t *tcp = wire;
    const pair_t *pair = &tcp->pairs[peer];
    const conn_t *conn = pair_stuck(pair);
    char place[PLACE_TEXT], why[PAIR_TEXT] = "";

    if (conn && conn->state == CONN_UP)
        snprintf(text, size, "at %s", tcp_place_text(&conn->place, place));
    else if (conn && conn->state != CONN_CONNECTING)
        tcp_late_text(&conn->place, why, sizeof why);
    else if (*pair->why)
        g_strlcpy(why, pair->why, sizeof why);
    else if (conn)
        snprintf(text, size,
                 "at %s, which does not answer (does its network lead there? "
                 "DSCOMM_SOCKET_IFNAME, firewalls)",
                 tcp_place_text(&conn->place, place));
    if (*why)
        snprintf(text, size, "(%s)", why);
}

static unsigned tcp_depth(void *wire)
{
    const tcp_t *tcp = wire;

    return 2 * (tcp->side_by_side ? MAX(tcp->connections, tcp->listener_count)
                                  : tcp->connections);
}

static size_t tcp_eager(void *wire, int peer)
{
    const tcp_t *tcp = wire;

    return tcp->pairs[peer].is_slow ? EAGER_SLOW : SIZE_MAX;
}

static void tcp_close(void *wire)
{
    tcp_t *tcp = wire;
    conn_t *conn;

    while ((conn = LIST_FIRST(&tcp->conns)) != NULL) {
        tcp_frames_drop(tcp, &conn->held);
        tcp_frames_drop(tcp, &conn->queue);
        tcp_conn_free(conn);
    }
    for (unsigned i = 0; i < tcp->listener_count; i++)
        close(tcp->listeners[i]);
    if (tcp->unix_listener >= 0)
        close(tcp->unix_listener);
    if (tcp->epoll >= 0)
        close(tcp->epoll);
    if (tcp->wake >= 0)
        close(tcp->wake);
    for (int p = 0; tcp->pairs && p < tcp->args.ranks; p++) {
        tcp_frames_drop(tcp, &tcp->pairs[p].waiting);
        g_free(tcp->pairs[p].places);
    }
    g_ptr_array_unref(tcp->addresses);
    g_free(tcp->host);
    g_free(tcp->pairs);
    g_free(tcp);
}

static void epoll_add(tcp_t *tcp, int *fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};

    epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, *fd, &event);
}

/* Sees whether this process may use the congestion control that the user has
 * chosen. */
static dscomm_status_t congestion_check(const char *name)
{
    char *all = NULL;
    dscomm_status_t status = DSCOMM_OK;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return DSCOMM_OK;
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
                   (socklen_t)strlen(name))) {
        const int error = errno;

        g_file_get_contents(
            "/proc/sys/net/ipv4/tcp_available_congestion_control", &all, NULL,
            NULL);
        status = dscomm_fail(
            DSCOMM_ERR_ENVIRONMENT,
            "DSCOMM_TCP_CONGESTION: '%s' cannot be used: %s; the kernel has %s "
            "(others: modprobe tcp_%s; without privileges: "
            "net.ipv4.tcp_allowed_congestion_control)",
            name, strerror(error), all ? g_strstrip(all) : "none", name);
    }
    g_free(all);
    close(fd);
    return status;
}

static dscomm_status_t sockets_open(tcp_t *tcp)
{
    const char *congestion = dscomm_setting_text(&settings[SETTING_CONGESTION]);
    int64_t use_unix = 0, use_zerocopy = 0, connections = 1;
    dscomm_status_t status =
        dscomm_setting_number(&settings[SETTING_UNIX], &use_unix);

    if (status == DSCOMM_OK)
        status =
            dscomm_setting_number(&settings[SETTING_CONNECTIONS], &connections);
    if (status == DSCOMM_OK)
        status =
            dscomm_setting_number(&settings[SETTING_ZEROCOPY], &use_zerocopy);
    if (congestion && *congestion) {
        tcp->congestion = congestion;
        if (status == DSCOMM_OK)
            status = congestion_check(congestion);
    }
    if (status < 0)
        return status;
    tcp->connections = (unsigned)connections;
    tcp->zerocopy = use_zerocopy;
    tcp->side_by_side = getenv("DSCOMM_SOCKET_IFNAME") != NULL;
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    tcp->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (tcp->epoll < 0 || tcp->wake < 0)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no descriptors for backend tcp: %s; allow more "
                           "(ulimit -n)",
                           strerror(errno));
    status = tcp_listen(tcp);
    if (status < 0)
        return status;
    if (use_unix)
        tcp_listen_unix(tcp);
    epoll_add(tcp, &tcp->wake);
    for (unsigned i = 0; i < tcp->listener_count; i++)
        epoll_add(tcp, &tcp->listeners[i]);
    if (tcp->unix_listener >= 0)
        epoll_add(tcp, &tcp->unix_listener);
    return DSCOMM_OK;
}

static dscomm_status_t tcp_wire_open(const dscomm_wire_args_t *args,
                                     void **ret_wire)
{
    tcp_t *tcp = g_new0(tcp_t, 1);
    dscomm_status_t status;

    tcp->args = *args;
    tcp->calls = args->calls;
    tcp->epoll = tcp->wake = tcp->unix_listener = -1;
    tcp->alone_fd = -1;
    tcp->addresses = g_ptr_array_new_with_free_func(g_free);
    tcp->pairs = g_try_new0(pair_t, (gsize)args->ranks);
    for (int p = 0; tcp->pairs && p < args->ranks; p++)
        tcp_queue_init(&tcp->pairs[p].waiting);
    status = tcp->pairs ? sockets_open(tcp)
                        : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                                      "no memory for %d ranks", args->ranks);
    if (status < 0) {
        tcp_close(tcp);
        return status;
    }
    *ret_wire = tcp;
    return DSCOMM_OK;
}

const dscomm_wire_ops_t tcp_wire = {
    .size = sizeof tcp_wire,
    .name = "tcp",
    .open = tcp_wire_open,
    .close = tcp_close,
    .address = tcp_address,
    .connect = tcp_connect,
    .post = tcp_post,
    .poll = tcp_poll,
    .wait = tcp_wait,
    .wake = tcp_wake,
    .unsent = tcp_unsent,
    .describe = tcp_describe,
    .depth = tcp_depth,
    .eager = tcp_eager,
};

DSCOMM_WIRE_SLOTS(slots, tcp_wire);

DSCOMM_BACKEND_EXPORT const dscomm_backend_t dscomm_backend_tcp = {
    .abi = DSCOMM_BACKEND_ABI,
    .priority = 10,
    .name = "tcp",
    .ops = &slots,
    .settings = settings,
};
