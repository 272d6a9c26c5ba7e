/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp wire. A pair is what this rank has for another one: a connection, in
 * both directions, for all frames in order; and for the pieces of long messages
 * further ones, which each side makes for what it sends itself. Ranks of one
 * host use Unix sockets.
 *
 * Connections are made when they are needed. If both sides do so at the same
 * time, that of the lower rank counts. Each connection begins with a handshake
 * (handshake.c), before which nothing reaches the engine. */
#ifndef BACKENDS_NET_TCP_H
#define BACKENDS_NET_TCP_H

#include <dscomm/wire.h>
#include <glib.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/un.h>

#define CONNECTIONS_MAX 16 /* of a pair, for the pieces that one side sends */
#define CHANNELS_MAX (CONNECTIONS_MAX + 1) /* and the main one */
#define STAGE_BYTES ((size_t)32 << 10) /* read at once */
#define HOT_MAX 2 /* connections that are read before others */

/* Time for an attempt to connect, as an address that is not reachable may not
 * answer; and for the next step of a peer that connects. */
#define ATTEMPT_MS 3000

#define HELLO_BYTES 40
#define CHALLENGE_BYTES 48
#define PROOF_BYTES 32
#define ANSWER_BYTES 1
#define NONCE_BYTES 16

typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
} address_t;

typedef struct {
    address_t address;
    socklen_t length;
} place_t;

/* A way by which pieces of long messages go to a peer. */
typedef struct {
    place_t from; /* an address of this host; length 0: any */
    place_t to;
    char interface[IF_NAMESIZE]; /* of from; "": not known */
} lane_t;

typedef enum {
    CONN_CONNECTING, /* connect() has not ended */
    CONN_CHALLENGE, /* hello is sent; awaits challenge */
    CONN_ANSWER, /* proof is sent; awaits answer */
    CONN_HELLO, /* accepted; awaits hello */
    CONN_PROOF, /* challenge is sent; awaits proof */
    CONN_UP,
    CONN_ENDED /* to be closed */
} conn_state_t;

typedef struct tcp tcp_t;
typedef struct pair pair_t;

typedef STAILQ_HEAD(, conn) conns_t;

/* Frames, oldest first. */
typedef struct {
    dscomm_wire_frame_t *first, **last;
    size_t bytes;
} queue_t;

typedef struct conn {
    int fd;
    conn_state_t state;
    tcp_t *tcp;
    int peer; /* -1: not known yet */
    unsigned channel; /* 0: the pair's main connection */
    bool outgoing; /* this rank has connected */
    bool unix_socket, wants_write;
    bool writing; /* tcp_write() is being called */
    bool was_up; /* of one that has ended */
    bool is_late; /* the peer's host has accepted, but it has not answered */
    int error; /* errno of its end; 0: the peer has closed it */
    /* errno; 0: it can be written. What the peer has sent before is still read:
     * it may be how its group has ended. */
    int write_error;
    int64_t deadline_ns; /* of the handshake */
    LIST_ENTRY(conn) in_tcp, in_deferred;
    place_t place; /* of the peer */
    /* Handshake. */
    unsigned char hello[HELLO_BYTES], challenge[CHALLENGE_BYTES];
    /* Sending. */
    queue_t queue;
    bool is_deferred; /* a poll is to write the queue */
    unsigned pieces; /* of long messages that were given to it */
    bool zerocopy; /* long payloads are sent without a copy */
    bool first_is_held; /* the kernel reads the first frame of queue */
    uint32_t zerocopy_calls, zerocopy_over;
    queue_t held; /* sent; done is the number of the last call */
    /* Receiving. */
    bool in_payload;
    bool is_long; /* the last payload, or the present one */
    dscomm_wire_sink_t *sink;
    unsigned char *stage; /* STAGE_BYTES */
    int64_t rest_ns; /* when a long payload is read again */
    size_t begin, end; /* bytes of stage that were not used yet */
    char why[160]; /* it has ended */
} conn_t;

typedef enum { PAIR_NONE, PAIR_CONNECTING, PAIR_UP, PAIR_LOST } pair_state_t;

#define PAIR_TEXT 400

struct pair {
    pair_state_t state;
    conn_t *main; /* connected, or being connected by this rank; or NULL */
    conn_t *channels[CHANNELS_MAX]; /* from 1: made for pieces */
    unsigned channel_count; /* with main; 0: not made yet */
    int64_t channels_ns; /* when those that lack are tried again */
    bool is_slow; /* pieces should have other connections than main */
    unsigned slow_samples; /* the last ones of main's rate that were slow */
    int64_t sampled_ns; /* time of the last one */
    queue_t waiting; /* frames that have come before the connection */
    place_t *places; /* addresses of the peer, best first */
    unsigned place_count, place; /* the one that is being tried */
    bool elsewhere; /* the peer is on another host */
    int64_t end_ns; /* until then it is tried */
    int64_t again_ns; /* the next attempt; 0: one is being made */
    int error; /* errno of the last attempt; 0: another reason */
    /* An address of this round has accepted, and then not answered. */
    bool accepted;
    char tried[PAIR_TEXT]; /* why this round's addresses have failed */
    char why[PAIR_TEXT]; /* why those of the last whole round have */
};

struct tcp {
    dscomm_wire_args_t args;
    const dscomm_wire_calls_t *calls;
    int epoll, wake;
    int listeners[8];
    unsigned listener_count;
    int unix_listener; /* -1: none */
    char unix_name[64];
    char *host; /* identity of this host */
    unsigned connections; /* of a pair, for what this rank sends */
    bool zerocopy; /* may be used */
    const char *congestion; /* control of TCP; NULL: the kernel's */
    bool side_by_side; /* the user has chosen the interfaces: use all */
    pair_t *pairs;
    LIST_HEAD(, conn) conns, deferred;
    conn_t *hot[HOT_MAX];
    unsigned reads; /* in a row of hot[0], up to those that make it alone */
    conn_t *alone; /* hot[0], out of epoll's set: it is polled; or NULL */
    atomic_int alone_fd; /* or -1 */
    atomic_bool waited; /* a thread has slept: something has perhaps come */
    unsigned polls, unproven; /* connections in a handshake, accepted */
    unsigned moved; /* in this poll */
    bool in_poll;
    unsigned ended; /* something has ended since the last poll of all */
    int64_t polled_ns; /* when all connections were polled last */
    int64_t timers_ns; /* when timers were looked at last */
    unsigned trying; /* pairs that are connecting */
    /* Since when a connection lacks a resource; 0: none does. */
    int64_t connect_lack_ns, accept_lack_ns;
    int64_t accept_ns; /* when listeners are watched again; 0: they are */
    bool told; /* a refused connection was logged */
    bool lacks; /* a connection that it can do without was logged */
    bool warned; /* a peer that cannot be reached was logged */
    int listen_error; /* errno of the last address at which it cannot listen */
    GPtrArray *addresses; /* text of this rank's: "10.0.0.1 4711" */
};

/* address.c */

/* The remedy of a lack of this host that has the errno; NULL: it is none. */
const char *tcp_remedy(int error);

/* Listens, and fills addresses. */
dscomm_status_t tcp_listen(tcp_t *tcp);
/* The same for ranks of this host. Without it they use TCP. */
void tcp_listen_unix(tcp_t *tcp);
size_t tcp_address(void *wire, void *buffer);
/* Reads the address of a peer into pair->places. */
dscomm_status_t tcp_places(const tcp_t *tcp, const void *address, size_t bytes,
                           pair_t *pair);
/* Fills the lanes to a peer whose main connection is there; returns their
 * number. The first is that of the main connection. */
unsigned tcp_lanes(const tcp_t *tcp, const pair_t *pair,
                   lane_t lanes[CONNECTIONS_MAX]);
/* "10.0.0.2:4711"; returns text. */
#define PLACE_TEXT 80
const char *tcp_place_text(const place_t *place, char text[PLACE_TEXT]);
/* True if this rank listens at the place's host, with any port. */
bool tcp_place_is_own(const tcp_t *tcp, const place_t *place);
/* Writes that the peer's kernel accepts, but not its process. */
void tcp_late_text(const place_t *place, char *text, size_t size);

/* connect.c */

dscomm_status_t tcp_connect(void *wire, int peer, const void *address,
                            size_t bytes);
/* Begins the time that the peer has for its next step. */
void tcp_conn_due(conn_t *conn);
/* Makes the further connections that the next piece of a pair needs, and tries
 * again those that have failed. */
void tcp_channels_open(tcp_t *tcp, int peer);
void tcp_accept(tcp_t *tcp, int listener, bool unix_socket);
/* Ends attempts whose time has passed, and begins others. */
void tcp_timers(tcp_t *tcp);
/* The handshake of an outgoing connection has failed, or its connect(). */
void tcp_attempt_failed(conn_t *conn);
/* Gives up a peer. */
void tcp_pair_lose(tcp_t *tcp, int peer, dscomm_failure_kind_t kind,
                   const char *why);
void tcp_frames_drop(tcp_t *tcp, queue_t *queue);

/* handshake.c: reads and writes what is due; the connection is up, or ended,
 * afterwards, or waits for more. */
void tcp_handshake(conn_t *conn);
void tcp_handshake_begin(conn_t *conn);
/* Logs that a connection from place is refused: the first one as a warning. */
void tcp_stranger(tcp_t *tcp, const place_t *place, const char *why);

/* stream.c */

conn_t *tcp_conn_new(tcp_t *tcp, int fd, int peer, bool outgoing);
/* Notes that the connection has ended, with errno or 0; the next poll closes
 * it. */
void tcp_conn_end(conn_t *conn, int error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
void tcp_conn_free(conn_t *conn);
void tcp_conn_events(conn_t *conn);
/* Bytes that the peer may not have received yet. */
size_t tcp_conn_unsent(const conn_t *conn);
/* The connection has passed its handshake. */
void tcp_conn_up(conn_t *conn);
void tcp_post(void *wire, int peer, dscomm_wire_frame_t *frame);
void tcp_write(conn_t *conn);
/* Writes the queues that were left to a poll. */
void tcp_deferred_write(tcp_t *tcp);
/* Reads what there is; returns whether there was something. */
bool tcp_read(conn_t *conn);
void tcp_queue_init(queue_t *queue);
void tcp_queue_remove_first(queue_t *queue);

/* zerocopy.c */

void tcp_zerocopy_open(conn_t *conn);
/* Reads which calls are over: the kernel has reported something. */
void tcp_zerocopy_read(conn_t *conn);
/* Gives back the frames whose calls are over: the first ones. */
void tcp_held_release(conn_t *conn);

/* rate.c: takes a sample of the main connection's rate, if it is time for one;
 * true: enough of them were slow. */
bool tcp_main_sample(pair_t *pair);

/* tcp.c */
extern const dscomm_wire_ops_t tcp_wire;
/* Time in ns, to the tick of the clock, which is cheap, or exact. */
int64_t tcp_now(void);
int64_t tcp_now_fine(void);

#endif
