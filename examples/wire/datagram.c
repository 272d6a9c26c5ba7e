/* SPDX-License-Identifier: BSD-3-Clause */
/* A wire of one's own: Unix datagrams, for ranks of one machine. The message
 * engine of libdscomm-net makes a backend of it. See README.md. */
#define _GNU_SOURCE
#include <dscomm/wire.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PART ((size_t)1 << 16) /* most bytes of payload in a datagram */
#define FLAGS (SOCK_NONBLOCK | SOCK_CLOEXEC)
#define LOOK_POLLS 512 /* between looks whether peers live */

typedef struct {
    struct sockaddr_un address;
    socklen_t bytes;
} place_t;

/* The begin of each datagram; header: of a frame's first datagram only. A part
 * of the frame's payload follows. */
typedef struct {
    unsigned char secret[32];
    int rank; /* of the sender */
    place_t place;
    unsigned char header[DSCOMM_WIRE_HEADER];
} begin_t;
#define BEGIN offsetof(begin_t, header)

typedef struct {
    int fd; /* connected to the peer's socket; -1: not needed yet */
    int dead, lost; /* its socket has gone; lost() was called */
    place_t place;
    dscomm_wire_frame_t *first, **last; /* to be sent */
    dscomm_wire_sink_t *sink; /* of the payload that arrives, or NULL */
} peer_t;

typedef struct {
    dscomm_wire_args_t args;
    int fd;
    begin_t own;
    unsigned polls, queued; /* frames */
    peer_t peers[];
} wire_t;

/* Also called to look whether the peer lives: connecting a datagram socket anew
 * fails if the other one has gone. */
static dscomm_status_t datagram_connect(void *impl, int p, const void *place,
                                        size_t bytes)
{
    peer_t *peer = &((wire_t *)impl)->peers[p];

    if (peer->fd < 0) {
        peer->fd = socket(AF_UNIX, SOCK_DGRAM | FLAGS, 0);
        memcpy(&peer->place, place, MIN(bytes, sizeof peer->place));
    }
    if (peer->fd < 0)
        return dscomm_fail(DSCOMM_ERR_IO, "no socket: %s", strerror(errno));
    if (connect(peer->fd, &peer->place.address, peer->place.bytes))
        peer->dead = 1;
    return DSCOMM_OK;
}

/* The oldest frame leaves the queue. */
static dscomm_wire_frame_t *frame_take(wire_t *wire, peer_t *peer)
{
    dscomm_wire_frame_t *frame = peer->first;

    peer->first = frame->next;
    if (!peer->first)
        peer->last = &peer->first;
    wire->queued--;
    return frame;
}

static void frames_drop(wire_t *wire, peer_t *peer)
{
    while (peer->first)
        wire->args.calls->dropped(wire->args.arg, frame_take(wire, peer));
}

static void peer_send(wire_t *wire, peer_t *peer)
{
    dscomm_wire_frame_t *frame;

    while ((frame = peer->first)) {
        const size_t head = frame->done ? 0 : DSCOMM_WIRE_HEADER;
        const size_t offset = frame->done + head - DSCOMM_WIRE_HEADER;
        const size_t bytes = MIN(frame->bytes - offset, PART);
        char *data = (char *)frame->data + offset;
        struct iovec parts[] = {
            {&wire->own, BEGIN}, {frame->header, head}, {data, bytes}};
        const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};

        if (sendmsg(peer->fd, &message, MSG_NOSIGNAL) < 0)
            return; /* the peer has to read first, or has ended */
        frame->done += head + bytes;
        if (frame->done < DSCOMM_WIRE_HEADER + frame->bytes)
            continue;
        wire->args.calls->sent(wire->args.arg, frame_take(wire, peer));
    }
}

static void datagram_post(void *impl, int p, dscomm_wire_frame_t *frame)
{
    wire_t *wire = impl;
    peer_t *peer = &wire->peers[p];

    frame->done = 0;
    frame->next = NULL;
    *peer->last = frame;
    peer->last = &frame->next;
    wire->queued++;
    if (peer->first == frame)
        peer_send(wire, peer);
}

/* Receives one datagram; 0: there is none. */
static int part_receive(wire_t *wire)
{
    const dscomm_wire_calls_t *calls = wire->args.calls;
    begin_t begin = {0};
    struct iovec parts[2] = {{&begin, sizeof begin}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    dscomm_wire_sink_t *sink;
    peer_t *peer;
    ssize_t got;

    if (recv(wire->fd, &begin, sizeof begin, MSG_PEEK) < 0)
        return 0;
    if (memcmp(begin.secret, wire->args.secret, sizeof begin.secret) ||
        begin.rank < 0 || begin.rank >= wire->args.ranks)
        return recv(wire->fd, &begin, 1, 0) >= 0; /* a stranger's */
    peer = &wire->peers[begin.rank];
    if (peer->fd < 0 &&
        !datagram_connect(wire, begin.rank, &begin.place, sizeof begin.place))
        calls->opened(wire->args.arg, begin.rank);
    sink = peer->sink;
    if (sink)
        parts[0].iov_len = BEGIN;
    else if (!(sink = calls->arrive(wire->args.arg, begin.rank, begin.header)))
        peer->dead = 1; /* the header is malformed */
    if (sink && sink->memory)
        parts[1] = (struct iovec){(char *)sink->memory + sink->done,
                                  sink->bytes - sink->done};
    got = recvmsg(wire->fd, &message, MSG_TRUNC);
    if (!sink || got < (ssize_t)parts[0].iov_len)
        return 1;
    sink->done += (size_t)got - parts[0].iov_len;
    peer->sink = sink->done < sink->bytes ? sink : NULL;
    if (!peer->sink)
        calls->landed(wire->args.arg, begin.rank, sink);
    return 1;
}

static void datagram_poll(void *impl)
{
    wire_t *wire = impl;
    const int look = ++wire->polls % LOOK_POLLS == 0;

    while (part_receive(wire))
        continue;
    for (int p = 0; p < wire->args.ranks; p++) {
        peer_t *peer = &wire->peers[p];

        if (!peer->dead && peer->first)
            peer_send(wire, peer);
        if (peer->dead && !peer->lost++) /* all of it has been received */
            wire->args.calls->lost(wire->args.arg, p, DSCOMM_FAILURE_DIED,
                                   "its socket is not on this host");
        if (peer->dead)
            frames_drop(wire, peer);
        if (look && peer->fd >= 0)
            datagram_connect(wire, p, &peer->place, sizeof peer->place);
    }
}

static size_t datagram_unsent(void *impl)
{
    return ((wire_t *)impl)->queued; /* the rest is in the peers' sockets */
}

static size_t datagram_address(void *impl, void *buffer)
{
    memcpy(buffer, &((wire_t *)impl)->own.place, sizeof(place_t));
    return sizeof(place_t);
}

static void datagram_close(void *impl)
{
    wire_t *wire = impl;

    for (int p = 0; p < wire->args.ranks; p++) {
        frames_drop(wire, &wire->peers[p]);
        close(wire->peers[p].fd);
    }
    close(wire->fd);
    free(wire);
}

static dscomm_status_t datagram_open(const dscomm_wire_args_t *args,
                                     void **ret_wire)
{
    const size_t ranks = (size_t)args->ranks;
    wire_t *wire = calloc(1, sizeof *wire + ranks * sizeof(peer_t));
    place_t *own;

    if (!wire)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a wire");
    own = &wire->own.place;
    wire->args = *args;
    wire->own = (begin_t){.rank = args->rank,
                          .place = {{AF_UNIX}, sizeof(struct sockaddr_un)}};
    memcpy(wire->own.secret, args->secret, sizeof wire->own.secret);
    for (size_t p = 0; p < ranks; p++)
        wire->peers[p] = (peer_t){.fd = -1, .last = &wire->peers[p].first};
    wire->fd = socket(AF_UNIX, SOCK_DGRAM | FLAGS, 0);
    /* The kernel chooses a name for an address that has none. */
    if (bind(wire->fd, &own->address, sizeof own->address.sun_family) ||
        getsockname(wire->fd, &own->address, &own->bytes)) {
        dscomm_fail(DSCOMM_ERR_IO, "no Unix socket: %s", strerror(errno));
        datagram_close(wire);
        return DSCOMM_ERR_IO;
    }
    *ret_wire = wire;
    return DSCOMM_OK;
}

static const dscomm_wire_ops_t datagram = {
    .size = sizeof datagram,
    .name = "datagram",
    .open = datagram_open,
    .close = datagram_close,
    .address = datagram_address,
    .connect = datagram_connect,
    .post = datagram_post,
    .poll = datagram_poll,
    .unsent = datagram_unsent,
};

DSCOMM_WIRE_SLOTS(slots, datagram);

DSCOMM_BACKEND_EXPORT const dscomm_backend_t dscomm_backend_datagram = {
    .abi = DSCOMM_BACKEND_ABI, .name = "datagram", .ops = &slots};
