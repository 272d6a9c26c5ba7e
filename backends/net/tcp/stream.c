/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames on a connection. The payload is written from the memory of its sender,
 * and read into that of its receiver. What is read beyond a payload goes to a
 * buffer, so that one call reads many short frames. */
#include "config.h"

#include "backends/net/little.h"
#include "backends/net/tcp/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEADER DSCOMM_WIRE_HEADER
/* Frames that one call writes. */
#define BATCH 16
/* Longest payload that is copied behind its header: one part is written faster
 * than two. */
#define JOIN_MOST ((size_t)256)
/* Bytes from which a payload is written apart from its header. */
#define APART_LEAST ((size_t)64 << 10)
/* Bytes from which a payload is sent without a copy. */
#define ZEROCOPY_LEAST ((size_t)256 << 10)
/* Bytes that one call reads beyond a payload, if it or the last one is at least
 * LONG_LEAST: what follows is long, too, and should go to its buffer. */
#define BEYOND_LONG ((size_t)1 << 10)
#define LONG_LEAST STAGE_BYTES
/* While REST_LEAST bytes of a payload are to come, or twice as many of payloads
 * that follow it, they are read once in REST_NS: a call that follows each
 * packet costs both ends more than the data, as it holds the socket and has the
 * kernel send an acknowledgement. */
#define REST_LEAST ((size_t)1 << 20)
#define REST_NS 50000
/* Reads of one connection before others have their turn. */
#define READS_MOST 4
/* Reads in a row of one connection, after which it leaves epoll's set: that the
 * kernel tells of each packet costs 5 % of a short message. */
#define ALONE_READS 64
/* Shortest time for which the kernel sends again by default, in ms. */
#define KERNEL_TIMEOUT_MS 924000

void tcp_queue_init(queue_t *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
    queue->bytes = 0;
}

static void queue_add(queue_t *queue, dscomm_wire_frame_t *frame)
{
    frame->next = NULL;
    *queue->last = frame;
    queue->last = &frame->next;
    queue->bytes += HEADER + frame->bytes - frame->done;
}

void tcp_queue_remove_first(queue_t *queue)
{
    queue->first = queue->first->next;
    if (!queue->first)
        queue->last = &queue->first;
}

/* Options of TCP: no delay of short frames; an idle connection ends if the
 * peer's kernel does not answer for as long as the deadline.
 *
 * TCP_USER_TIMEOUT also ends the connection to a peer that answers but reads
 * nothing, because it computes for longer than the deadline. So it is set only
 * if the deadline is longer than the time for which the kernel sends again. */
static void socket_tune(const conn_t *conn)
{
    const unsigned timeout_ms = (unsigned)MAX(conn->tcp->args.timeout_ms, 1000);
    const int on = 1, idle = 10, interval = 5;
    const int count = (int)MIN(MAX(timeout_ms / 5000, 3), 100);

    if (conn->unix_socket)
        return;
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(conn->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval,
               sizeof interval);
    setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    if (conn->tcp->congestion)
        setsockopt(conn->fd, IPPROTO_TCP, TCP_CONGESTION, conn->tcp->congestion,
                   (socklen_t)strlen(conn->tcp->congestion));
    if (timeout_ms > KERNEL_TIMEOUT_MS)
        setsockopt(conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
                   sizeof timeout_ms);
}

conn_t *tcp_conn_new(tcp_t *tcp, int fd, int peer, bool outgoing)
{
    conn_t *conn = g_new0(conn_t, 1);
    struct epoll_event event = {.events = 0, .data.ptr = conn};

    conn->fd = fd;
    conn->tcp = tcp;
    conn->peer = peer;
    conn->outgoing = outgoing;
    conn->stage = g_malloc(STAGE_BYTES);
    tcp_queue_init(&conn->queue);
    tcp_queue_init(&conn->held);
    LIST_INSERT_HEAD(&tcp->conns, conn, in_tcp);
    epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &event);
    return conn;
}

static void alone_set(tcp_t *tcp, conn_t *conn)
{
    tcp->alone = conn;
    tcp->reads = 0;
    atomic_store_explicit(&tcp->alone_fd, conn ? conn->fd : -1,
                          memory_order_relaxed);
}

/* Tells the kernel what is awaited. */
void tcp_conn_events(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;
    struct epoll_event event = {.data.ptr = conn};
    int operation = EPOLL_CTL_MOD;

    if (conn == tcp->alone) {
        operation = EPOLL_CTL_ADD;
        alone_set(tcp, NULL);
    }
    if (conn->state != CONN_CONNECTING)
        event.events = EPOLLIN;
    if (conn->state == CONN_CONNECTING || conn->wants_write)
        event.events |= EPOLLOUT;
    if (epoll_ctl(tcp->epoll, operation, conn->fd, &event))
        tcp_conn_end(conn, errno, "epoll does not take it: %s",
                     strerror(errno));
}

void tcp_conn_end(conn_t *conn, int error, const char *format, ...)
{
    va_list args;

    if (conn->state == CONN_ENDED)
        return;
    va_start(args, format);
    vsnprintf(conn->why, sizeof conn->why, format, args);
    va_end(args);
    conn->was_up = conn->state == CONN_UP;
    conn->state = CONN_ENDED;
    conn->error = error;
    conn->tcp->ended++;
}

void tcp_conn_free(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;

    for (int i = 0; i < HOT_MAX; i++)
        if (tcp->hot[i] == conn)
            tcp->hot[i] = NULL;
    if (tcp->alone == conn)
        alone_set(tcp, NULL);
    if (conn->is_deferred)
        LIST_REMOVE(conn, in_deferred);
    if (!conn->outgoing && !conn->was_up && tcp->unproven)
        tcp->unproven--;
    LIST_REMOVE(conn, in_tcp);
    close(conn->fd);
    g_free(conn->stage);
    g_free(conn);
}

/* Takes a hot connection out of epoll's set, unless the kernel is to tell of
 * more than data. */
static void alone_begin(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;

    if (conn->wants_write || conn->first_is_held || conn->held.first ||
        epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, conn->fd, NULL))
        tcp->reads = 0;
    else
        alone_set(tcp, conn);
}

/* Makes conn one of those that are read before others; if ranks outnumber
 * processors, none, as one epoll_wait() costs less than a read of each. */
static void conn_heat(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;

    if (tcp->alone == conn || tcp->args.oversubscribed)
        return;
    if (tcp->hot[0] == conn) {
        if (++tcp->reads == ALONE_READS)
            alone_begin(conn);
        return;
    }
    tcp->reads = 0;
    if (tcp->alone)
        tcp_conn_events(tcp->alone);
    for (int i = HOT_MAX - 1; i > 0; i--)
        if (tcp->hot[i] == conn || i == HOT_MAX - 1)
            tcp->hot[i] = tcp->hot[i - 1];
    tcp->hot[0] = conn;
}

void tcp_conn_up(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;
    pair_t *pair = &tcp->pairs[conn->peer];

    if (!conn->outgoing)
        tcp->unproven--;
    conn->state = CONN_UP;
    tcp->connect_lack_ns = 0;
    socket_tune(conn);
    tcp_zerocopy_open(conn);
    tcp_conn_events(conn);
    if (conn->channel)
        return;
    if (pair->state == PAIR_CONNECTING)
        tcp->trying--;
    pair->state = PAIR_UP;
    pair->main = conn;
    pair->again_ns = 0;
    conn->queue = pair->waiting;
    if (!conn->queue.first)
        conn->queue.last = &conn->queue.first;
    tcp_queue_init(&pair->waiting);
    tcp->calls->opened(tcp->args.arg, conn->peer);
    tcp_write(conn);
}

/* Writing. */

/* Adds what is left of a frame to parts; returns their new number. */
static int frame_parts(const dscomm_wire_frame_t *frame, struct iovec *parts,
                       int count)
{
    size_t done = frame->done;

    if (done < HEADER) {
        parts[count++] =
            (struct iovec){(void *)(frame->header + done), HEADER - done};
        done = HEADER;
    }
    done -= HEADER;
    if (done == frame->bytes)
        return count;
    parts[count++] = (struct iovec){(char *)(uintptr_t)frame->data + done,
                                    frame->bytes - done};
    return count;
}

/* Gives back the first frame, which is complete, or holds it while the kernel
 * reads it: no longer, if its end was copied. */
static void first_done(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;
    dscomm_wire_frame_t *frame = conn->queue.first;

    tcp_queue_remove_first(&conn->queue);
    tcp->moved++;
    if (!conn->first_is_held) {
        tcp->calls->sent(tcp->args.arg, frame);
        return;
    }
    conn->first_is_held = false;
    queue_add(&conn->held, frame);
    frame->done = conn->zerocopy_calls - 1;
    tcp_held_release(conn);
}

/* Counts bytes as sent; gives back the frames that are complete. */
static void frames_done(conn_t *conn, size_t bytes)
{
    dscomm_wire_frame_t *frame;

    conn->queue.bytes -= bytes;
    while ((frame = conn->queue.first) != NULL) {
        const size_t part = MIN(bytes, HEADER + frame->bytes - frame->done);

        frame->done += part;
        bytes -= part;
        if (frame->done < HEADER + frame->bytes)
            return;
        first_done(conn);
        if (!bytes)
            return;
    }
}

/* Writes the first frame, whose payload the kernel reads later; returns what
 * sendmsg() does. */
static ssize_t write_zerocopy(conn_t *conn)
{
    dscomm_wire_frame_t *frame = conn->queue.first;
    struct iovec parts[2];
    struct msghdr message = {.msg_iov = parts};
    ssize_t sent;

    if (conn == conn->tcp->alone)
        tcp_conn_events(conn);
    message.msg_iovlen = (size_t)frame_parts(frame, parts, 0);
    sent =
        sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_ZEROCOPY);
    if (sent > 0) {
        conn->zerocopy_calls++;
        conn->first_is_held = true;
        frame->pinned = 1;
    }
    return sent;
}

/* True if the first frame is long enough for the cost of pinning its pages. */
static bool zerocopy_pays(const conn_t *conn)
{
    const dscomm_wire_frame_t *frame = conn->queue.first;

    return conn->zerocopy &&
           HEADER + frame->bytes - frame->done >= ZEROCOPY_LEAST;
}

/* Writes a short frame that waits alone. */
static ssize_t write_joined(const conn_t *conn)
{
    const dscomm_wire_frame_t *frame = conn->queue.first;
    char bytes[HEADER + JOIN_MOST];

    memcpy(bytes, frame->header, HEADER);
    if (frame->bytes)
        memcpy(bytes + HEADER, frame->data, frame->bytes);
    return send(conn->fd, bytes, HEADER + frame->bytes,
                MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool first_is_short(const conn_t *conn)
{
    const dscomm_wire_frame_t *frame = conn->queue.first;

    return !frame->done && !frame->next && frame->bytes <= JOIN_MOST;
}

/* True if the payload of a frame is written by a call of its own: the kernel
 * copies one part faster than two. */
static bool goes_apart(const conn_t *conn, const dscomm_wire_frame_t *frame)
{
    return !conn->unix_socket &&
           HEADER + frame->bytes - frame->done >= APART_LEAST;
}

/* Writes as many frames as go into one call. */
static ssize_t write_copied(conn_t *conn)
{
    struct iovec parts[2 * BATCH];
    struct msghdr message = {.msg_iov = parts};
    const dscomm_wire_frame_t *frame = conn->queue.first;
    int count = 0, more = 0;

    if (first_is_short(conn))
        return write_joined(conn);
    for (; frame && count <= 2 * BATCH - 2; frame = frame->next) {
        const bool begins = frame->done < HEADER;

        count = frame_parts(frame, parts, count);
        if (!goes_apart(conn, frame))
            continue;
        if (begins) {
            count--;
            more = MSG_MORE;
        }
        break;
    }
    message.msg_iovlen = (size_t)count;
    return sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT | more);
}

/* Writes once; false: the socket takes no more. */
static bool write_once(conn_t *conn)
{
    ssize_t sent = -1;

    errno = ENOBUFS;
    if (zerocopy_pays(conn))
        sent = write_zerocopy(conn);
    /* No more memory may be pinned (ulimit -l). */
    if (sent < 0 && errno == ENOBUFS)
        sent = write_copied(conn);
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
        return false;
    if (sent < 0 && errno == EFAULT) {
        tcp_conn_end(conn, EFAULT, "a message has memory that cannot be read");
        return false;
    }
    if (sent < 0) {
        conn->write_error = errno;
        conn->tcp->ended++;
        return false;
    }
    frames_done(conn, (size_t)sent);
    return true;
}

void tcp_write(conn_t *conn)
{
    bool wants;

    if (conn->writing) /* a frame that was sent has led to another one */
        return;
    conn->writing = true;
    while (conn->state == CONN_UP && !conn->write_error && conn->queue.first)
        if (!write_once(conn))
            break;
    conn->writing = false;
    wants = conn->state == CONN_UP && !conn->write_error && conn->queue.first;
    if (wants == conn->wants_write)
        return;
    conn->wants_write = wants;
    if (conn->state == CONN_UP)
        tcp_conn_events(conn);
}

void tcp_deferred_write(tcp_t *tcp)
{
    conn_t *conn;

    while ((conn = LIST_FIRST(&tcp->deferred)) != NULL) {
        LIST_REMOVE(conn, in_deferred);
        conn->is_deferred = false;
        tcp_write(conn);
    }
}

/* Has the queue written, or leaves that to a poll: frames that are posted while
 * others arrive, or can be deferred, go by one call with those after them. A
 * thread that sleeps polls within a millisecond. */
static void conn_posted(conn_t *conn, bool deferrable)
{
    tcp_t *tcp = conn->tcp;

    if (!tcp->in_poll && !deferrable) {
        tcp_write(conn);
    } else if (!conn->is_deferred) {
        conn->is_deferred = true;
        LIST_INSERT_HEAD(&tcp->deferred, conn, in_deferred);
    }
}

size_t tcp_conn_unsent(const conn_t *conn)
{
    int queued;

    if (conn->state == CONN_UP && !conn->unix_socket &&
        !ioctl(conn->fd, SIOCOUTQ, &queued))
        return conn->queue.bytes + (size_t)queued;
    return conn->queue.bytes;
}

/* The connection for a piece: that with the least on its way; of several, the
 * one that has had the fewest pieces. If the main connection is slow, other
 * frames have it for themselves: behind a piece they would wait for long. */
static conn_t *channel_choose(tcp_t *tcp, int peer)
{
    pair_t *pair = &tcp->pairs[peer];
    conn_t *best = NULL;
    size_t least = 0;

    tcp_channels_open(tcp, peer);
    if (pair->channel_count == 1)
        return pair->main;
    for (unsigned c = pair->is_slow; c < pair->channel_count; c++) {
        conn_t *conn = c ? pair->channels[c] : pair->main;
        size_t unsent;

        if (!conn || conn->state != CONN_UP)
            continue;
        unsent = tcp_conn_unsent(conn);
        if (!best || unsent < least ||
            (unsent == least && conn->pieces < best->pieces)) {
            best = conn;
            least = unsent;
        }
    }
    if (!best)
        return pair->main;
    best->pieces++;
    return best;
}

void tcp_post(void *wire, int peer, dscomm_wire_frame_t *frame)
{
    tcp_t *tcp = wire;
    pair_t *pair = &tcp->pairs[peer];
    conn_t *conn;

    frame->done = 0;
    if (pair->state == PAIR_LOST ||
        (pair->main && pair->main->state == CONN_ENDED)) {
        queue_add(&pair->waiting, frame);
        tcp->ended++;
        return;
    }
    if (pair->state != PAIR_UP) {
        queue_add(&pair->waiting, frame);
        return;
    }
    conn = frame->unordered ? channel_choose(tcp, peer) : pair->main;
    queue_add(&conn->queue, frame);
    if (conn->queue.first == frame || conn->is_deferred)
        conn_posted(conn, frame->deferrable);
}

/* Reading. */

static void payload_landed(conn_t *conn)
{
    dscomm_wire_sink_t *sink = conn->sink;

    conn->in_payload = false;
    conn->sink = NULL;
    conn->tcp->moved++;
    conn->tcp->calls->landed(conn->tcp->args.arg, conn->peer, sink);
}

/* Takes the next header from the stage; false: there is none. */
static bool header_take(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;
    const unsigned char *header = conn->stage + conn->begin;

    if (conn->end - conn->begin < HEADER)
        return false;
    conn->begin += HEADER;
    conn->sink = tcp->calls->arrive(tcp->args.arg, conn->peer, header);
    if (!conn->sink || conn->sink->bytes != get_64(header)) {
        tcp_conn_end(conn, EPROTO, "it has sent a frame that makes no sense");
        return false;
    }
    conn->sink->done = 0;
    conn->in_payload = true;
    if (conn->sink->bytes)
        conn->is_long = conn->sink->bytes >= LONG_LEAST;
    return true;
}

/* Uses what is in the stage. */
static void stage_use(conn_t *conn)
{
    while (conn->state == CONN_UP) {
        dscomm_wire_sink_t *sink;
        size_t bytes;

        if (!conn->in_payload && !header_take(conn))
            break;
        sink = conn->sink;
        bytes = MIN(sink->bytes - sink->done, conn->end - conn->begin);
        if (sink->memory && bytes)
            memcpy((char *)sink->memory + sink->done, conn->stage + conn->begin,
                   bytes);
        sink->done += bytes;
        conn->begin += bytes;
        if (sink->done < sink->bytes)
            break;
        payload_landed(conn);
    }
    if (conn->begin && conn->begin < conn->end)
        memmove(conn->stage, conn->stage + conn->begin,
                conn->end - conn->begin);
    conn->end -= conn->begin;
    conn->begin = 0;
}

/* Reads once, into the sink and the stage behind it. Returns the bytes, 0 if
 * nothing is there or the connection has ended; *ret_more: perhaps there are
 * more. */
static size_t read_once(conn_t *conn, bool *ret_more)
{
    struct iovec parts[2];
    dscomm_wire_sink_t *sink = conn->sink;
    const bool discards = conn->in_payload && !sink->memory;
    const size_t beyond = conn->is_long && !discards
                              ? MIN(STAGE_BYTES - conn->end, BEYOND_LONG)
                              : STAGE_BYTES - conn->end;
    size_t direct = 0, bytes;
    int count = 0;
    ssize_t got;

    *ret_more = false;
    if (conn->in_payload && sink->memory) {
        direct = sink->bytes - sink->done;
        parts[count++] =
            (struct iovec){(char *)sink->memory + sink->done, direct};
    }
    parts[count++] = (struct iovec){conn->stage + conn->end, beyond};
    got = count == 1 ? recv(conn->fd, parts[0].iov_base, parts[0].iov_len,
                            MSG_DONTWAIT)
                     : readv(conn->fd, parts, count);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0) {
        const int error = got ? errno : conn->write_error;

        tcp_conn_end(conn, error, "%s",
                     error == EFAULT
                         ? "a message has memory that cannot be written to"
                     : error ? strerror(error)
                             : "it has closed the connection");
        return 0;
    }
    bytes = (size_t)got;
    *ret_more = bytes == direct + beyond;
    if (direct) {
        const size_t part = MIN(bytes, direct);

        sink->done += part;
        conn->end += bytes - part;
        if (sink->done == sink->bytes)
            payload_landed(conn);
    } else {
        conn->end += bytes;
    }
    stage_use(conn);
    return bytes;
}

bool tcp_read(conn_t *conn)
{
    const bool rests =
        conn->in_payload && MAX(conn->sink->bytes - conn->sink->done,
                                conn->sink->expected / 2) >= REST_LEAST;
    bool any = false, more = true;

    if (rests && tcp_now_fine() < conn->rest_ns)
        return false;
    for (int i = 0; more && i < READS_MOST && conn->state == CONN_UP; i++)
        any = read_once(conn, &more) || any;
    if (any)
        conn_heat(conn);
    if (any && rests && !more)
        conn->rest_ns = tcp_now_fine() + REST_NS;
    return any;
}
