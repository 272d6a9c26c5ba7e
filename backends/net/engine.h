/* SPDX-License-Identifier: BSD-3-Clause */
/* The message engine: what every network of point-to-point connections needs,
 * above a wire (dscomm/wire.h).
 *
 * A domain is the wire of one world, and serves all its groups that use this
 * backend. It has a link for each rank: a connection is made when the first
 * message goes there, or when a receive waits for that rank, because its death
 * must be seen.
 *
 * A space is the matching of one group: receives that were posted, and messages
 * that came before their receive. It exists before the group does on this rank
 * if another rank was faster.
 *
 * A short message is sent at once (EAGER), if the receiver has room for it: a
 * link begins with LINK_CREDIT bytes, which the receiver gives back when the
 * message has left its memory. A message without credit waits in the memory of
 * its sender, which says so (STALLED). The receiver then asks for the messages
 * of its receives (WANT), oldest first and one at a time: the ANSWER comes
 * after all that was sent before it, so the receiver never asks for a message
 * that it has no receive for. A long message is announced (ANNOUNCE); the
 * receiver asks for its bytes (REQUEST) when it has a receive, and they go in
 * pieces (PIECE) from the sender's buffer to the receiver's. */
#ifndef BACKENDS_NET_ENGINE_H
#define BACKENDS_NET_ENGINE_H

#include "backends/ending.h"

#include <dscomm/wire.h>

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

/* The cost of a message besides its bytes: the size of its entry. */
#define MESSAGE_COST ((int64_t)128)
/* Longest message that is sent at once. */
#define EAGER_MAX ((size_t)512 << 10)
/* Bytes that a rank may send to another one before that has receives for them;
 * so a rank keeps at most so much for each rank that sends to it. Half of it
 * is given back at a time, into which any message fits. */
#define LINK_CREDIT (2 * ((int64_t)EAGER_MAX + MESSAGE_COST))
/* Longest message that is copied, rather than waited for, if the wire does not
 * take it at once: 4 KiB, with what begins a collective's message. */
#define SEND_NOW_MOST (((size_t)4 << 10) + 64)
/* Bytes of a piece of a long message: longer ones keep the socket full, shorter
 * ones spread over several connections. */
#define PIECE_SPREAD ((size_t)1 << 20)
#define PIECE_MAX ((size_t)2 << 20)

typedef enum {
    FRAME_EAGER = 1, /* context, tag; payload: the message */
    FRAME_ANNOUNCE, /* context, tag; a: bytes of the message; b: its id */
    FRAME_REQUEST, /* a: bytes wanted; b: id of the message; context: that of
                      the receive; payload: nothing, or the key to where the
                      bytes may be written */
    FRAME_PIECE, /* a: offset; b: id of the receive; payload: the bytes */
    FRAME_CREDIT, /* a: bytes given back */
    FRAME_STALLED, /* messages wait for credit */
    FRAME_WANT, /* context, tag: a receive waits for such a message; a: number
                   of messages that have come */
    FRAME_ANSWER, /* to WANT; a: 1: no such message waits for credit */
    FRAME_LEAVE, /* context: the sender leaves that group; a: left_t */
    FRAME_REVOKE, /* context; payload: a packed failure */
    FRAME_BYE, /* the sender closes the connection in order */
    FRAME_TYPES
} frame_type_t;

/* The header of a frame, unpacked. */
typedef struct {
    uint64_t bytes; /* of the payload */
    int type; /* frame_type_t */
    int tag;
    uint64_t context, a, b;
} header_t;

/* A request with a key, which is arriving. */
typedef struct {
    header_t header;
    unsigned char key[DSCOMM_WIRE_KEY];
} keyed_t;

typedef struct domain domain_t;
typedef struct engine engine_t;
typedef struct request request_t;

/* A frame on its way to a peer. */
typedef struct frame {
    dscomm_wire_frame_t wire;
    SLIST_ENTRY(frame) in_free;
    LIST_ENTRY(frame) in_request;
    request_t *request; /* whose payload it has, or NULL */
    void *owned; /* payload of the engine's own, which is freed */
    bool is_put; /* a device moves the payload to or from the peer's memory */
    bool reads; /* from there */
} frame_t;

/* The payload of an arriving frame. */
typedef struct sink {
    dscomm_wire_sink_t wire;
    SLIST_ENTRY(sink) in_all, in_free;
    LIST_ENTRY(sink) in_request;
    /* FRAME_EAGER, FRAME_PIECE, FRAME_REQUEST or FRAME_REVOKE; 0: discarded */
    int type;
    request_t *request; /* whose buffer it fills, or NULL */
    struct arrival *arrival; /* that it fills, or NULL */
    uint64_t context; /* of a failure */
    void *owned; /* a packed failure, or a keyed_t; to be freed */
} sink_t;

typedef enum {
    LINK_NONE, /* no connection was needed yet */
    LINK_OPEN, /* connected, or connecting */
    LINK_LEFT, /* the peer has ended it in order */
    LINK_LOST
} link_state_t;

TAILQ_HEAD(requests, request);

/* The state of this rank towards another one. */
typedef struct {
    link_state_t state;
    bool received; /* a frame has come from the peer */
    /* Bytes that may be sent without a receive; below 0 after messages that the
     * peer has asked for. */
    int64_t credit;
    int64_t owed; /* bytes to be given back to the peer */
    uint64_t sent, came; /* messages */
    bool told_stalled; /* FRAME_STALLED was sent */
    size_t expected; /* bytes of pieces that the peer is to send */
    uint64_t announced; /* the poll after the last FRAME_ANNOUNCE; 0: none */
    bool peer_stalled; /* FRAME_STALLED was received */
    uint64_t asking; /* order of the receive that the peer is asked for, or 0 */
    uint64_t refused; /* the peer has no messages for receives up to that */
    struct requests stalled; /* sends without credit, oldest first */
    char *published; /* the value in the store: "PID HOST", and the address */
    const char *address;
    size_t address_bytes;
    int64_t pid; /* of the peer */
    char host[DSCOMM_FAILURE_HOST_MAX]; /* name of its host */
} link_t;

/* A message that has arrived, or begun to, before its receive. */
typedef struct arrival {
    TAILQ_ENTRY(arrival) in_bucket, in_order;
    int peer, tag;
    uint64_t bytes;
    uint64_t id; /* of an announced message; 0: it is in data */
    bool complete; /* all of data has arrived */
    bool taken; /* a probe has set it aside */
    sink_t *sink; /* while data arrives */
    request_t *receive; /* that waits for the rest of data */
    request_t *send; /* of this rank to itself: the message is there */
    char data[];
} arrival_t;

#define SPACE_BUCKETS 64
TAILQ_HEAD(arrivals, arrival);

/* How a rank has left a group. */
typedef enum { STAYS, LEAVING, GONE } left_t;

/* The matching of a group. Peers are numbers in the domain. */
typedef struct space {
    uint64_t context;
    engine_t *engine; /* NULL: this rank has not opened the group yet */
    unsigned posted_count; /* receives in posted and wild */
    struct requests posted[SPACE_BUCKETS]; /* by peer and tag */
    struct requests wild; /* of any source or tag */
    struct arrivals arrived[SPACE_BUCKETS];
    struct arrivals in_order; /* all arrivals, oldest first */
    unsigned char *left; /* left_t of each peer */
    dscomm_failure_t *revoked; /* came before the group was opened */
} space_t;

/* The ranks that one notifies of a failure: all of the group if it was the
 * first to fail; else those to which it is connected, which thus know the
 * failure before this rank closes the connection. */
typedef enum { NOTIFY_NONE, NOTIFY_CONNECTED, NOTIFY_ALL } notify_t;

typedef enum {
    REQUEST_STALLED, /* a send without credit */
    REQUEST_ANNOUNCED, /* a send whose receiver has not asked for it */
    REQUEST_SENDING, /* a send whose frames are with the wire */
    REQUEST_KEPT, /* a send of this rank to itself without a receive */
    REQUEST_POSTED, /* a receive without a message */
    REQUEST_ARRIVING, /* a receive whose message is arriving */
    REQUEST_ENDED
} request_state_t;

struct request {
    dscomm_request_t head;
    TAILQ_ENTRY(request) link;
    engine_t *engine;
    dscomm_message_t message;
    int peer; /* in the domain; -1: any source */
    request_state_t state;
    uint64_t order; /* of a posted receive */
    uint64_t id; /* in the domain's table; 0: none */
    uint64_t peer_id; /* of the receive that asks for this send */
    /* Bytes of a long message: of pieces that were begun, of those that are
     * complete, and all. */
    size_t begun, moved, wanted;
    void *exposed; /* the wire's, while the peer may write to the receive's
                      memory */
    bool has_key; /* a send: to the receiver's memory */
    unsigned char key[DSCOMM_WIRE_KEY];
    arrival_t *arrival; /* a receive's message, while it is arriving; the
                           arrival of a send that is kept */
    bool pumping; /* its pieces are being posted */
    bool starting; /* the call that starts it has not returned: its end is not
                      counted in moved, because the caller sees its status */
    LIST_HEAD(, frame) frames;
    LIST_HEAD(, sink) sinks;
};

/* One group in this process: the impl. */
struct engine {
    domain_t *domain;
    space_t *space;
    dscomm_group_t *group;
    char *name;
    int rank, ranks;
    int *peers; /* number of each rank in the domain */
    int *ranks_of; /* rank of each peer in the group, or -1 */
    int world;
    unsigned moved; /* since the last progress */
    uint64_t polled; /* the domain's polls when it was polled last */
    left_t own_left;
    bool quiet; /* the group has ended in order: peers may leave */
    atomic_int notify_due; /* notify_t: who does not know the failure yet */
    request_t begun; /* by net_send_now() */
    bool has_begun; /* that message is net_isend()'s now */
    request_t awaited; /* by net_recv_now() */
    bool has_awaited; /* that receive is net_irecv()'s now */
    ending_t ending;
    /* A death that may follow from an earlier failure of the group: its user
     * finds out, without the lock. */
    dscomm_failure_t death;
    atomic_int death_pending; /* 2: somebody finds out, or has */
    LIST_ENTRY(engine) in_domain;
};

/* The wire of a world. */
struct domain {
    dscomm_wire_ops_t ops; /* all given but describe and those of keys */
    void *wire;
    pthread_mutex_t lock;
    unsigned users; /* engines */
    int64_t timeout_ms; /* the world's deadline */
    size_t frames; /* with the wire: neither sent nor dropped */
    int rank, ranks;
    int *world_ranks;
    link_t *links;
    uint64_t order; /* of the last posted receive */
    unsigned char secret[32];
    GHashTable *spaces; /* space_t by context */
    space_t *last_space; /* that was looked for; or NULL */
    GHashTable *closed; /* contexts of groups that this rank has closed */
    LIST_HEAD(, engine) engines;
    uint64_t polls;
    GPtrArray *ids; /* requests of long messages; NULL: free */
    GArray *free_ids; /* indices of ids */
    uint32_t salt; /* upper half of the next id */
    SLIST_HEAD(, frame) free_frames;
    /* All sinks: the wire has those that are not free, or had them when a
     * connection ended in the middle of a payload. */
    SLIST_HEAD(, sink) sinks, free_sinks;
    sink_t nothing; /* of frames without payload */
    atomic_int notify_due; /* of some engine */
    atomic_long looked; /* tick of the clock when a status was asked for */
};

/* domain.c */

/* Makes the domain of a world, or takes that of args->parent. */
dscomm_status_t net_domain_open(const dscomm_wire_ops_t *ops,
                                const dscomm_backend_args_t *args,
                                domain_t **ret_domain);
/* Called with the lock, which ends with the last engine. */
void net_domain_drop(domain_t *domain);

/* Take and release the lock. The second one also sends revocations that became
 * due meanwhile. */
void net_enter(domain_t *domain);
void net_leave(domain_t *domain);

/* Makes sure that a connection to peer exists or is being made. */
void net_link_open(domain_t *domain, int peer);

/* frame.c */

/* Post a frame without payload, with payload of the engine's own, which is
 * freed, or with payload of a request. */
void net_post(domain_t *domain, int peer, header_t header);
void net_post_owned(domain_t *domain, int peer, header_t header, void *owned);
void net_post_payload(request_t *request, header_t header, const void *data,
                      bool unordered, bool followed);
/* Posts a piece of a long message. */
void net_post_piece(request_t *request, size_t offset, size_t bytes);
/* Has the device make a part of an access, from offset of its data on; false:
 * it cannot. */
bool net_post_access(request_t *request, const dscomm_access_t *access,
                     bool reads, size_t offset, size_t bytes);

/* Takes the payload of a request back from the wire. A rank that does not know
 * that the group has ended must not take other data for the message, so what
 * has begun to be sent is sent from a copy. */
void net_frames_forget(request_t *request);
/* Lets the wire send the payload of a request from copies. */
void net_frames_copy(request_t *request);
/* Makes the frames of a request those of another one. */
void net_frames_move(request_t *from, request_t *to);

/* Events of the wire: a frame arrives (return where its payload goes; NULL: it
 * makes no sense), its payload is there, one was sent, or was dropped with its
 * connection. */
dscomm_wire_sink_t *net_arrive(void *arg, int peer, const unsigned char *bytes);
void net_landed(void *arg, int peer, dscomm_wire_sink_t *wire);
void net_sent(void *arg, dscomm_wire_frame_t *wire);
void net_dropped(void *arg, dscomm_wire_frame_t *wire);
/* A put comes back: it goes as a frame, as all that follows of the message. */
void net_refused(void *arg, dscomm_wire_frame_t *wire);
/* The peer's device has written a piece. */
void net_written(void *arg, int peer, uint32_t tag, size_t bytes);

sink_t *net_sink(domain_t *domain, int type, void *memory, uint64_t bytes);

#define NET_SALT_FIRST 1 /* of a domain's ids; an id without salt may be 0 */

/* The table of long messages, in which frames name them. An id is never 0, and
 * is not used again for a long time. */
bool net_id_take(domain_t *domain, request_t *request);
void net_id_drop(domain_t *domain, request_t *request);
/* Makes the id that of another request. */
void net_id_move(domain_t *domain, request_t *request);
/* The request with that id; NULL: there is none, or not with that peer. */
request_t *net_id_find(const domain_t *domain, uint64_t id, int peer);
/* The short form of an id whose index, its lower half, is below TAG_INDICES. It
 * is used again after 4096 ids. */
#define TAG_INDICES (UINT64_C(1) << 20)
uint32_t net_id_tag(uint64_t id);
request_t *net_tag_find(const domain_t *domain, uint32_t tag, int peer);

/* space.c */

/* The matching of a context, which is made if there is none; NULL: no memory,
 * or this rank has closed the group. */
space_t *net_space(domain_t *domain, uint64_t context);
void net_space_free(gpointer space);
/* Frees the matching of a group that this rank closes, and gives the room of
 * its messages back. */
void net_space_close(domain_t *domain, space_t *space);
/* The oldest posted receive for a message, taken from its list; NULL: none. */
request_t *net_posted_take(space_t *space, int peer, int tag);
void net_posted_add(space_t *space, request_t *request);
void net_posted_remove(space_t *space, request_t *request);
/* Puts a receive in the place of another one. */
void net_posted_move(space_t *space, request_t *from, request_t *to);
/* The oldest message for a receive from peer (-1: any) with tag; NULL: none. */
arrival_t *net_arrival_find(const space_t *space, int peer, int tag);
/* NULL: no memory. */
arrival_t *net_arrival_add(space_t *space, int peer, int tag, uint64_t bytes,
                           size_t room);
void net_arrival_remove(space_t *space, arrival_t *arrival);

/* send.c */

dscomm_status_t net_isend(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *head);
int net_send_now(void *impl, const dscomm_message_t *message);
/* Sends what waits for credit, as far as there is some. */
void net_stalled_send(domain_t *domain, int peer);
/* The receiver asks for a message that waits for credit. */
void net_wanted_send(domain_t *domain, int peer, const header_t *header);
/* The receiver asks for a long message, with a key or NULL; false: the frame
 * makes no sense. */
bool net_requested_send(domain_t *domain, int peer, const header_t *header,
                        const unsigned char *key);
/* The wire has sent so many bytes of request. */
void net_request_sent(request_t *request, size_t bytes);

/* Returns the status of the group, after it has ended if peer has left. */
dscomm_status_t net_peer_check(engine_t *engine, int peer);

/* access.c */

dscomm_status_t net_mem_register(void *impl, void *address, size_t bytes,
                                 void *key, void **ret_registered);
dscomm_status_t net_mem_register_device(void *impl,
                                        const dscomm_dma_buf_t *memory,
                                        void *key, void **ret_registered);
dscomm_status_t net_mem_deregister(void *impl, void *registered);
dscomm_status_t net_put(void *impl, const dscomm_access_t *access,
                        dscomm_request_t *head);
dscomm_status_t net_get(void *impl, const dscomm_access_t *access,
                        dscomm_request_t *head);

/* receive.c */

dscomm_status_t net_irecv(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *head);
int net_recv_now(void *impl, const dscomm_message_t *message,
                 dscomm_request_t *head, unsigned polls);
int net_probe(void *impl, const dscomm_message_t *wanted,
              dscomm_request_t *found, void **ret_taken);
int net_withdraw(void *impl, dscomm_request_t *head);
int net_matched(void *impl, const dscomm_request_t *head);
void net_expect(void *impl, dscomm_request_t *head);
void net_cancel(void *impl, dscomm_request_t *head);
/* A message, or a piece of one, begins to arrive. Return where its payload
 * goes; NULL if the frame makes no sense. */
dscomm_wire_sink_t *net_eager_arrives(domain_t *domain, int peer,
                                      const header_t *header);
dscomm_wire_sink_t *net_piece_arrives(domain_t *domain, int peer,
                                      const header_t *header);
bool net_announce_arrives(domain_t *domain, int peer, const header_t *header);
/* The payload is there. */
void net_eager_landed(domain_t *domain, int peer, sink_t *sink);
void net_piece_landed(domain_t *domain, sink_t *sink);
/* The peer no longer writes to the memory of a receive. */
void net_conceal(request_t *receive);
/* So many bytes of a long message are there. */
void net_receive_moved(request_t *receive, size_t bytes);
/* Asks a peer, if it has messages that wait for credit, for that of the oldest
 * receive for which it was not asked. */
void net_ask(domain_t *domain, int peer);
/* The peer has answered; false: the frame makes no sense. */
bool net_answered(domain_t *domain, int peer, const header_t *header);
/* Receives that wait for peer alone fail, because it has left. */
void net_receives_orphaned(engine_t *engine, int peer);
/* Gives a message's room back to its sender. */
void net_credit_return(domain_t *domain, int peer, uint64_t bytes);
void net_request_init(engine_t *engine, const dscomm_message_t *message,
                      request_t *request, int rank);
/* Delivers a message of this rank to itself. */
void net_self_deliver(request_t *send, request_t *receive);
/* Completes a request. */
void net_request_end(request_t *request, dscomm_status_t status);

/* engine.c: the slots of a backend. */

/* Only describe may be NULL in ops. */
dscomm_status_t net_open(const dscomm_wire_ops_t *ops,
                         const dscomm_backend_args_t *args, void **ret_impl);
/* The peer ends the group by its death or silence, or with kind PROTOCOL this
 * rank by what it has done to the peer; text says how. */
void net_engine_lose_peer(engine_t *engine, int peer,
                          dscomm_failure_kind_t kind, const char *text);
/* Ends the group by a death that is due. Called without the lock. */
void net_engine_resolve(engine_t *engine);
void net_engine_revoke(void *impl, const dscomm_failure_t *failure);
/* Revokes the group because this rank lacks a resource. */
void net_engine_lack(engine_t *engine, const char *text);
/* The failure of the group, which is known here, is due to be sent. */
void net_engine_pass_on(engine_t *engine, notify_t whom);
/* Sends it to those to whom it is due. */
void net_engine_notify(engine_t *engine);
void net_close(void *impl);
unsigned net_progress(void *impl);
void net_wait(void *impl, unsigned timeout_us);
/* Polls the wire for a group. Called with the lock. */
void net_engine_poll(engine_t *engine);
dscomm_status_t net_status(void *impl, dscomm_failure_t *ret_failure);
uint64_t net_capabilities(void *impl);
void net_quiesce(void *impl);
void net_leave_group(void *impl);
int net_explain(void *impl, const dscomm_request_t *head, char *text,
                size_t size);

#endif
