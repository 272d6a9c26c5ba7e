/* SPDX-License-Identifier: BSD-3-Clause */
/* Making connections. The addresses of a peer are tried in turn. If all have
 * failed, they are tried again until the world's deadline, unless one of them
 * has refused: then the peer's process has ended. */
#include "config.h"

#include "backends/net/tcp/tcp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS ((int64_t)1000000)
/* Pause before all addresses are tried again. */
#define AGAIN_MS 200
/* A lack that lasts longer fails this rank. A shorter one ends by itself, such
 * as that of two connections that both ranks of a pair make at once. */
#define LACK_MS 1000
/* Time between two attempts of a further connection. */
#define CHANNELS_MS 10000
/* Accepted connections that have not proved yet who they are, beside as many as
 * there are ranks. */
#define UNPROVEN_MAX 64
/* Connections that are accepted before those that were closed are released. */
#define ACCEPTS 32

static void pair_connect(tcp_t *tcp, int peer);

void tcp_frames_drop(tcp_t *tcp, queue_t *queue)
{
    dscomm_wire_frame_t *frame = queue->first, *next;

    tcp_queue_init(queue);
    for (; frame; frame = next) {
        next = frame->next;
        tcp->calls->dropped(tcp->args.arg, frame);
    }
}

/* Whether a lack is a long one. since: when it has begun; 0: now. */
static bool lacks_long(const tcp_t *tcp, int64_t *since)
{
    const int64_t now = tcp_now();

    if (!*since)
        *since = now;
    return now - *since >= MIN(LACK_MS, tcp->args.timeout_ms / 2) * MS;
}

/* This rank lacks a resource for connections. Called from poll only. */
static void lack(tcp_t *tcp, const char *what, int error)
{
    char text[DSCOMM_FAILURE_DETAIL_MAX];

    snprintf(text, sizeof text, "%s: %s; %s", what, strerror(error),
             tcp_remedy(error));
    tcp->calls->lost(tcp->args.arg, tcp->args.rank, DSCOMM_FAILURE_RESOURCE,
                     text);
}

/* Gives up a peer: called from poll only. */
void tcp_pair_lose(tcp_t *tcp, int peer, dscomm_failure_kind_t kind,
                   const char *why)
{
    pair_t *pair = &tcp->pairs[peer];

    if (pair->state == PAIR_CONNECTING)
        tcp->trying--;
    pair->state = PAIR_LOST;
    tcp->calls->lost(tcp->args.arg, peer, kind, why);
    tcp_frames_drop(tcp, &pair->waiting);
}

/* Binds a socket to an address; its port is chosen when it connects. */
static int bind_from(int fd, const place_t *from)
{
    const int on = 1;

    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return bind(fd, &from->address.any, from->length);
}

void tcp_conn_due(conn_t *conn)
{
    conn->deadline_ns = tcp_now() + ATTEMPT_MS * MS;
}

/* Begins to connect by a lane; -1 and errno: it has failed at once. */
static int conn_connect(tcp_t *tcp, int peer, unsigned channel,
                        const lane_t *lane)
{
    const place_t *place = &lane->to;
    const int fd = socket(place->address.any.sa_family,
                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    char text[PLACE_TEXT];
    conn_t *conn;

    if (fd < 0)
        return -1;
    if ((lane->from.length && bind_from(fd, &lane->from)) ||
        (connect(fd, &place->address.any, place->length) &&
         errno != EINPROGRESS)) {
        const int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    tcp->connect_lack_ns = 0;
    conn = tcp_conn_new(tcp, fd, peer, true);
    conn->place = *place;
    conn->unix_socket = place->address.any.sa_family == AF_UNIX;
    conn->channel = channel;
    conn->state = CONN_CONNECTING;
    tcp_conn_due(conn);
    tcp_conn_events(conn);
    tcp_place_text(place, text);
    dscomm_log(DSCOMM_LOG_DEBUG, "tcp",
               "connects to rank %d of the group at %s", peer, text);
    if (channel)
        tcp->pairs[peer].channels[channel] = conn;
    else
        tcp->pairs[peer].main = conn;
    return 0;
}

static bool is_loopback(const place_t *place)
{
    const struct in6_addr *v6 = &place->address.v6.sin6_addr;

    return place->address.any.sa_family == AF_INET
               ? ntohl(place->address.v4.sin_addr.s_addr) >> 24 == 127
               : place->address.any.sa_family == AF_INET6 &&
                     IN6_IS_ADDR_LOOPBACK(v6);
}

/* Returns what helps against the failure of an address; NULL: not known. Ranks
 * of containers may share this host's network, so the same address may be
 * right. */
static const char *place_remedy(const tcp_t *tcp, const pair_t *pair, int error,
                                bool accepted)
{
    const place_t *place = &pair->places[pair->place];

    if (pair->elsewhere && is_loopback(place))
        return "the address of a loopback leads to no other host; set "
               "DSCOMM_SOCKET_IFNAME to an interface that does";
    if (pair->elsewhere && tcp_place_is_own(tcp, place))
        return "this host has that address, too; if the peer is on another "
               "host, set DSCOMM_SOCKET_IFNAME to an interface whose "
               "addresses differ";
    if (accepted || !pair->elsewhere)
        return tcp_remedy(error);
    switch (error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EINVAL: /* a blackhole route */
    case EACCES: /* a route that prohibits */
        return "does that network lead there? DSCOMM_SOCKET_IFNAME, firewalls";
    default:
        return tcp_remedy(error);
    }
}

/* Adds an address that has failed to pair->tried. */
static void pair_note(pair_t *pair, const char *why, const char *remedy)
{
    const place_t *place = &pair->places[pair->place];
    size_t used = strlen(pair->tried);
    char text[PLACE_TEXT];

    snprintf(pair->tried + used, sizeof pair->tried - used, "%s %s: %s",
             used ? "," : "no connection to", tcp_place_text(place, text), why);
    used = strlen(pair->tried);
    if (remedy && pair->place + 1 == pair->place_count)
        snprintf(pair->tried + used, sizeof pair->tried - used, "; %s", remedy);
}

/* Says once that a peer cannot be reached: the failure itself may come only
 * after the world's deadline. */
static void pair_warn(tcp_t *tcp, int peer)
{
    const pair_t *pair = &tcp->pairs[peer];
    const int64_t left_ns = MAX(pair->end_ns - tcp_now(), 0);

    dscomm_log(tcp->warned ? DSCOMM_LOG_DEBUG : DSCOMM_LOG_WARN, "tcp",
               "rank %d of the group: %s; it is tried again for %" PRId64
               " s at most%s",
               peer, pair->why, left_ns / (1000 * MS),
               tcp->warned ? "" : "; further ones are not reported");
    tcp->warned = true;
}

/* Ends a round of a pair, whose last address has failed. */
static void round_ended(tcp_t *tcp, int peer, bool lacks)
{
    pair_t *pair = &tcp->pairs[peer];
    const bool refused =
        pair->error == ECONNREFUSED && !pair->accepted &&
        !(pair->elsewhere && is_loopback(&pair->places[pair->place]));

    if (refused)
        pair->end_ns = 0;
    if (!pair->accepted)
        memcpy(pair->why, pair->tried, sizeof pair->why);
    if (!refused && !pair->accepted && !lacks)
        pair_warn(tcp, peer);
}

/* Notes that an address has failed, and tries the next one. accepted: the
 * peer's host has accepted. */
static void place_failed(tcp_t *tcp, int peer, const char *why, int error,
                         bool accepted)
{
    pair_t *pair = &tcp->pairs[peer];

    if (!pair->place) {
        *pair->tried = '\0';
        pair->accepted = false;
    }
    pair_note(pair, why, place_remedy(tcp, pair, error, accepted));
    pair->main = NULL;
    pair->error = error;
    if (accepted) {
        pair->accepted = true;
        tcp_late_text(&pair->places[pair->place], pair->why, sizeof pair->why);
    }
    if (pair->place + 1 == pair->place_count)
        round_ended(tcp, peer, tcp_remedy(error) != NULL);
    pair->place++;
    pair->again_ns = 1; /* at the next look at timers */
}

/* Leaves it to the peer to make the connection, for a pause. */
static void pair_yield(pair_t *pair)
{
    if (!*pair->why)
        g_strlcpy(pair->why, "the peer makes the connection", PAIR_TEXT);
    pair->main = NULL;
    pair->error = 0;
    pair->place = pair->place_count;
    pair->again_ns = 1;
}

void tcp_attempt_failed(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;
    pair_t *pair;

    if (conn->peer < 0)
        return;
    pair = &tcp->pairs[conn->peer];
    if (conn->channel) { /* the pieces go by others */
        if (pair->channels[conn->channel] == conn)
            pair->channels[conn->channel] = NULL;
    } else if (pair->main == conn && pair->state == PAIR_CONNECTING) {
        if (conn->error == EALREADY)
            pair_yield(pair);
        else
            place_failed(tcp, conn->peer, conn->why, conn->error,
                         conn->is_late);
    }
}

/* Tries the present place of a pair, and those after it that fail at once. */
static void pair_connect(tcp_t *tcp, int peer)
{
    pair_t *pair = &tcp->pairs[peer];

    pair->again_ns = 0;
    while (
        pair->place < pair->place_count &&
        conn_connect(tcp, peer, 0, &(lane_t){.to = pair->places[pair->place]}))
        place_failed(tcp, peer, strerror(errno), errno, false);
    if (pair->main)
        pair->again_ns = 0;
}

/* Continues with a pair whose attempts have failed. Other processes may free
 * ports again; descriptors are this one's own. */
static void pair_again(tcp_t *tcp, int peer, int64_t now)
{
    pair_t *pair = &tcp->pairs[peer];
    const bool lacks = tcp_remedy(pair->error) != NULL;

    if (pair->place < pair->place_count && now < pair->end_ns) {
        pair_connect(tcp, peer);
        return;
    }
    if (now >= pair->end_ns || (lacks && pair->error != EADDRNOTAVAIL &&
                                lacks_long(tcp, &tcp->connect_lack_ns))) {
        if (lacks)
            lack(tcp, "it cannot connect to another rank", pair->error);
        tcp_pair_lose(tcp, peer,
                      pair->end_ns ? DSCOMM_FAILURE_SILENT
                                   : DSCOMM_FAILURE_DIED,
                      pair->why);
        return;
    }
    pair->place = 0;
    pair->again_ns = now + AGAIN_MS * MS;
}

dscomm_status_t tcp_connect(void *wire, int peer, const void *address,
                            size_t bytes)
{
    tcp_t *tcp = wire;
    pair_t *pair = &tcp->pairs[peer];
    dscomm_status_t status;

    if (pair->places)
        return DSCOMM_OK;
    status = tcp_places(tcp, address, bytes, pair);
    if (status < 0)
        return status;
    if (pair->state != PAIR_NONE) /* the peer has connected */
        return DSCOMM_OK;
    pair->state = PAIR_CONNECTING;
    pair->end_ns = tcp_now() + tcp->args.timeout_ms * MS;
    tcp->trying++;
    pair_connect(tcp, peer);
    return DSCOMM_OK;
}

void tcp_channels_open(tcp_t *tcp, int peer)
{
    pair_t *pair = &tcp->pairs[peer];
    const int64_t now = tcp_now();
    lane_t lanes[CONNECTIONS_MAX];
    unsigned count = 0;

    if (!pair->is_slow && tcp_main_sample(pair)) {
        pair->is_slow = true;
        pair->channels_ns = 0;
        dscomm_log(DSCOMM_LOG_DEBUG, "tcp",
                   "the connection to rank %d of the group is slow: long "
                   "messages should have one of their own",
                   peer);
    }
    if (now < pair->channels_ns)
        return;
    pair->channels_ns = now + CHANNELS_MS * MS;
    if (tcp->connections > 1 || tcp->side_by_side || pair->is_slow)
        count = tcp_lanes(tcp, pair, lanes);
    pair->channel_count =
        count ? pair->is_slow + MAX(tcp->connections, count) : 1;
    for (unsigned c = 1; c < pair->channel_count; c++)
        if (!pair->channels[c])
            conn_connect(tcp, peer, c, &lanes[c % count]);
}

/* Whether all ranks are connected, so that a further connection is only one
 * more for long messages. */
static bool is_complete(const tcp_t *tcp)
{
    for (int p = 0; p < tcp->args.ranks; p++)
        if (p != tcp->args.rank && tcp->pairs[p].state != PAIR_UP)
            return false;
    return true;
}

/* Watches listeners (EPOLLIN) or not (0). One that is watched wakes this rank
 * as long as a connection waits there. */
static void listeners_watch(tcp_t *tcp, uint32_t events)
{
    struct epoll_event event = {.events = events};

    for (unsigned i = 0; i < tcp->listener_count; i++) {
        event.data.ptr = &tcp->listeners[i];
        epoll_ctl(tcp->epoll, EPOLL_CTL_MOD, tcp->listeners[i], &event);
    }
    event.data.ptr = &tcp->unix_listener;
    if (tcp->unix_listener >= 0)
        epoll_ctl(tcp->epoll, EPOLL_CTL_MOD, tcp->unix_listener, &event);
}

static void accept_failed(tcp_t *tcp, int error)
{
    const char *remedy = tcp_remedy(error);

    if (!remedy) {
        tcp->accept_lack_ns = 0;
        return;
    }
    if (!is_complete(tcp)) {
        if (lacks_long(tcp, &tcp->accept_lack_ns))
            lack(tcp, "it cannot accept a connection", error);
    } else if (!tcp->lacks) {
        dscomm_log(DSCOMM_LOG_WARN, "tcp",
                   "cannot accept one more connection for long messages: %s; "
                   "%s",
                   strerror(error), remedy);
        tcp->lacks = true;
    }
    tcp->accept_ns = tcp_now() + AGAIN_MS * MS;
    listeners_watch(tcp, 0);
}

static bool same_host(const place_t *one, const place_t *other)
{
    const address_t *a = &one->address, *b = &other->address;

    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return a->any.sa_family != AF_INET6 ||
           IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

/* Closes the oldest connection that has proved nothing: of the host from which
 * one more comes, if that has half of them, so that a host with many strangers
 * shuts out nobody else; else of all. */
static void unproven_close(tcp_t *tcp, const place_t *newcomer)
{
    conn_t *conn, *oldest = NULL, *oldest_same = NULL;
    unsigned same = 0, all = 0;

    LIST_FOREACH (conn, &tcp->conns, in_tcp) {
        if (conn->outgoing || conn->state >= CONN_UP)
            continue;
        all++;
        oldest = conn;
        if (!same_host(&conn->place, newcomer))
            continue;
        same++;
        oldest_same = conn;
    }
    if (same >= all / 2 + 1)
        oldest = oldest_same;
    if (!oldest)
        return;
    tcp_stranger(tcp, &oldest->place, "too many others prove nothing");
    tcp_conn_end(oldest, EPROTO, "too many others prove nothing");
}

void tcp_accept(tcp_t *tcp, int listener, bool unix_socket)
{
    place_t place = {.length = sizeof place.address};
    conn_t *conn;
    int fd;

    for (int i = 0; i < ACCEPTS; i++) {
        fd = accept4(listener, &place.address.any, &place.length,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            accept_failed(tcp, errno);
            return;
        }
        if (tcp->unproven >= UNPROVEN_MAX + (unsigned)tcp->args.ranks)
            unproven_close(tcp, &place);
        tcp->accept_lack_ns = 0;
        conn = tcp_conn_new(tcp, fd, -1, false);
        conn->place = place;
        conn->unix_socket = unix_socket;
        conn->state = CONN_HELLO;
        tcp_conn_due(conn);
        tcp->unproven++;
        tcp_conn_events(conn);
    }
}

/* Ends a handshake whose time has passed, unless this rank is the late one. */
static void conn_late(conn_t *conn, int64_t now)
{
    if (conn->state != CONN_CONNECTING)
        tcp_handshake(conn);
    if (conn->state >= CONN_UP || now < conn->deadline_ns)
        return;
    if (!conn->outgoing)
        tcp_stranger(conn->tcp, &conn->place,
                     "it proved nothing in time: a stranger, or a rank of this "
                     "job that computes");
    conn->is_late = conn->state != CONN_CONNECTING;
    tcp_conn_end(conn, ETIMEDOUT, "no answer in time");
}

void tcp_timers(tcp_t *tcp)
{
    const int64_t now = tcp_now();
    conn_t *conn;

    if (now - tcp->timers_ns < 5 * MS)
        return;
    tcp->timers_ns = now;
    LIST_FOREACH (conn, &tcp->conns, in_tcp)
        if (conn->state < CONN_UP && now >= conn->deadline_ns)
            conn_late(conn, now);
    if (tcp->accept_ns && now >= tcp->accept_ns) {
        tcp->accept_ns = 0;
        listeners_watch(tcp, EPOLLIN);
    }
    for (int p = 0; tcp->trying && p < tcp->args.ranks; p++)
        if (tcp->pairs[p].state == PAIR_CONNECTING && !tcp->pairs[p].main &&
            tcp->pairs[p].again_ns && now >= tcp->pairs[p].again_ns)
            pair_again(tcp, p, now);
}
