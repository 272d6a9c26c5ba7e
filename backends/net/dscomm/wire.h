/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract between the message engine, which is libdscomm-net, and a wire.
 *
 * The engine makes a backend of a wire: it matches messages, grants credits,
 * runs the rendezvous protocol and keeps groups apart. A wire connects ranks in
 * pairs and moves frames between them, in the order in which they were posted,
 * each exactly once or, after a failure, not at all. It knows neither messages
 * nor groups. One wire serves all groups of a world whose ranks use this
 * backend.
 *
 * A module is a table of functions, dscomm_wire_ops_t, and the descriptor that
 * every backend has (dscomm/backend.h), whose slots are made from that table:
 *
 *   static const dscomm_wire_ops_t wire = {.size = sizeof wire, ...};
 *   DSCOMM_WIRE_SLOTS(slots, wire);
 *   DSCOMM_BACKEND_EXPORT const dscomm_backend_t dscomm_backend_x = {
 *       .abi = DSCOMM_BACKEND_ABI, .name = "x", .ops = &slots};
 *
 * It links libdscomm-net (pkg-config dscomm-net). examples/wire is a small one.
 *
 * Threads. The engine calls one function of a wire at a time, with a lock held;
 * only wait and wake are called without it, by any thread at any time between
 * open and close. No function but wait waits. A wire calls the engine only from
 * its own poll, connect, post and put; lost and written only from poll, dropped
 * only from poll and close. The engine may call post from within each of these
 * calls.
 *
 * Failure. open and connect call dscomm_fail() with a sentence (cause, remedy)
 * and return the negative status. Later failures of a connection are told by
 * lost, once for each peer. */
#ifndef DSCOMM_WIRE_H
#define DSCOMM_WIRE_H

#include <dscomm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a frame's header. The first 8 are the number of bytes of its
 * payload, little-endian; the others are the engine's. */
#define DSCOMM_WIRE_HEADER 40
/* Bytes of a key to memory. */
#define DSCOMM_WIRE_KEY 32

/* A frame to be sent. The engine owns it, and keeps it until sent(), dropped()
 * or refused(). The payload is in the memory of a user: the wire must not copy
 * it without need. The engine may move it, with the same bytes, during each of
 * its calls, and while done is 0 also replace header and payload; so the wire
 * must keep neither address, but while pinned is set. */
typedef struct dscomm_wire_frame {
    struct dscomm_wire_frame *next; /* the wire's, while it has the frame */
    const void *data;
    size_t bytes;
    size_t done; /* the wire's: bytes of header and payload that were sent */
    int pinned; /* the wire's: 1 from when a device reads or fills the payload
                   where it is, to the end of the frame, even if it is moved */
    /* 1: a piece of a long message. It may overtake other frames, and they
     * it. */
    int unordered;
    unsigned char header[DSCOMM_WIRE_HEADER];
    /* 1: the wire may send it with the next frame or in the next poll. */
    int deferrable;
} dscomm_wire_frame_t;

/* The place to which a put writes the payload of its frame, or from which it
 * reads it. It is valid during the call only. */
typedef struct dscomm_wire_put {
    size_t size;
    unsigned char key[DSCOMM_WIRE_KEY]; /* of the peer's expose */
    uint64_t offset; /* from where its memory begins */
    uint32_t tag; /* for the peer's written */
    /* The message of which the payload is a part; not of an access. */
    const void *message;
    size_t bytes;
    /* 1: one of a user's accesses to memory that is exposed to every peer. The
     * peer's written is not called, and frames that are posted later arrive
     * after the payload. */
    int is_access;
    int reads; /* 1: the access fills frame->data, which can be written */
    /* NULL, or frame->data, of an access, is in memory of a device, and
     * expose_device has returned this for it. */
    void *registered;
} dscomm_wire_put_t;

/* The place to which the payload of an arriving frame goes. The engine owns it
 * and may set memory to NULL while the payload arrives: the rest is then
 * discarded. The wire has the sink until landed(), lost() or close. */
typedef struct dscomm_wire_sink {
    void *memory;
    size_t bytes;
    size_t done; /* the wire's: bytes that have arrived */
    size_t expected; /* bytes that the peer is to send after this payload */
} dscomm_wire_sink_t;

/* Calls of a wire to its engine; arg is args->arg. Peers are numbers of ranks,
 * below args->ranks, and never args->rank. size is that of the engine's table:
 * members are only added at the end. */
typedef struct dscomm_wire_calls {
    size_t size;
    /* peer has connected to this rank: frames can be posted to it. Called
     * before the first frame of peer arrives. It changes nothing if connect was
     * called for peer. */
    void (*opened)(void *arg, int peer);
    /* A header has arrived from peer. Returns where its payload goes; NULL if
     * the header is malformed: the wire then closes the connection, and calls
     * lost. */
    dscomm_wire_sink_t *(*arrive)(void *arg, int peer,
                                  const unsigned char *header);
    /* The payload of that header is complete; called for empty ones, too. */
    void (*landed)(void *arg, int peer, dscomm_wire_sink_t *sink);
    /* The transport has accepted the frame: its payload may be changed. */
    void (*sent)(void *arg, dscomm_wire_frame_t *frame);
    /* The frame will not be sent, because the connection has ended. */
    void (*dropped)(void *arg, dscomm_wire_frame_t *frame);
    /* The connection to peer has ended, or could not be made, and text says
     * why. Its frames are dropped afterwards. peer is this rank if it lacks a
     * resource for connections, such as descriptors; text has the remedy. With
     * kind PROTOCOL the fault is this rank's, which has used the peer's memory
     * without a right. */
    void (*lost)(void *arg, int peer, dscomm_failure_kind_t kind,
                 const char *text);
    /* A put of peer, with that tag, has written so many bytes to this rank's
     * memory. */
    void (*written)(void *arg, int peer, uint32_t tag, size_t bytes);
    /* A put, not of an access, has written nothing, because the peer has
     * concealed its memory meanwhile; it ends so. Called from poll, post and
     * put, also before that put returns. The engine may post the frame. */
    void (*refused)(void *arg, dscomm_wire_frame_t *frame);
} dscomm_wire_calls_t;

/* The arguments of open. The structure is valid during the call only; calls,
 * arg and secret are valid until close. */
typedef struct dscomm_wire_args {
    size_t size;
    const dscomm_wire_calls_t *calls;
    void *arg;
    int rank, ranks; /* this rank, and the number of ranks */
    /* 32 random bytes, which only ranks of this job know. A wire that strangers
     * can reach must let each connection prove that it knows them. */
    const unsigned char *secret;
    int timeout_ms; /* the world's deadline, in ms */
    int oversubscribed; /* as in dscomm_backend_args_t */
} dscomm_wire_args_t;

#define DSCOMM_WIRE_ADDRESS_MAX 4096 /* bytes of an address */

/* The functions of a wire. size is that of the table with which the module was
 * compiled; members are only added at the end. Required: name, open, close,
 * address, connect, post, poll and unsent. */
typedef struct dscomm_wire_ops {
    size_t size;
    const char *name; /* for messages: "tcp" */
    /* Makes a wire that accepts connections. On failure nothing is left. */
    dscomm_status_t (*open)(const dscomm_wire_args_t *args, void **ret_wire);
    /* Frees the wire. Drops the frames that it still has. */
    void (*close)(void *wire);
    /* Writes how other ranks reach this one, at most DSCOMM_WIRE_ADDRESS_MAX
     * bytes of any kind; returns their number. */
    size_t (*address)(void *wire, void *buffer);
    /* Begins to connect to peer, unless a connection is there or is being made.
     * address is what address has written there, valid until close. Frames may
     * be posted at once. On failure nothing was begun. Both sides may call this
     * at the same time. Called from opened, too, so that the wire knows the
     * address of a peer that has connected. */
    dscomm_status_t (*connect)(void *wire, int peer, const void *address,
                               size_t bytes);
    /* Takes a frame for a peer to which connect was called, or which has
     * connected to this rank. After lost, the next poll drops it. */
    void (*post)(void *wire, int peer, dscomm_wire_frame_t *frame);
    /* Makes progress: sends and receives what it can. */
    void (*poll)(void *wire);
    /* Bytes that were posted and would be lost if this rank closed the wire
     * now; an upper bound will do. */
    size_t (*unsent)(void *wire);

    /* The following functions are optional. */

    /* Sleeps until poll may have something to do, at most timeout_us. Called
     * without the lock, by several threads at a time. Without it the engine
     * sleeps for short times between polls. */
    void (*wait)(void *wire, unsigned timeout_us);
    /* Ends the wait of every thread. Called without the lock. */
    void (*wake)(void *wire);
    /* Describes the connection to peer for messages: "at 10.0.0.2:4711"; or
     * leaves text, "" before the call, unchanged. */
    void (*describe)(void *wire, int peer, char *text, size_t size);
    /* The number of frames that may be unordered at a time for one message, at
     * least 1; 2 without it. */
    unsigned (*depth)(void *wire);
    /* The longest message that is sent to peer without a request for it; by
     * default, and at most, 512 KiB. A request that comes after such a message
     * waits for it. */
    size_t (*eager)(void *wire, int peer);

    /* The following three and stop, all or none, are of wires whose device
     * writes to the memory of another rank. */

    /* Lets peer write to so many bytes of memory until conceal, and writes a
     * key for its put; peer -1: lets all peers write and read there. Returns
     * what conceal needs; NULL: it cannot, and pieces come as frames. */
    void *(*expose)(void *wire, int peer, void *memory, size_t bytes,
                    unsigned char *key);
    /* Ends what expose has begun. Nothing writes to the memory after the
     * return. complete: 0: the peer may be writing there: its put is refused,
     * or, if that is not a wire's way, the connection ends. */
    void (*conceal)(void *wire, int peer, void *exposed, int complete);
    /* Takes a frame whose payload, not its header, goes to the peer's memory;
     * the peer's written is called then. frame->data may become NULL while done
     * is 0: nothing is written then. Returns 0 if it cannot: post takes the
     * frame.
     *
     * The frame of an access is sent() when the payload is in the peer's
     * memory, or in frame->data, which may become NULL while pinned is 0: what
     * is read is dropped then. */
    int (*put)(void *wire, int peer, dscomm_wire_frame_t *frame,
               const dscomm_wire_put_t *put);

    /* The slot devices of the backend; needs no wire. */
    dscomm_status_t (*devices)(
        void (*visit)(void *arg, const dscomm_backend_device_t *item),
        void *arg);

    /* The read of a frame that is pinned is given up: nothing is written to its
     * data after the return. The connection may end. */
    void (*stop)(void *wire, int peer, dscomm_wire_frame_t *frame);

    /* The same as expose for all peers, of memory of a device; optional, with
     * these four. Conceal also ends what accesses of this rank have of it. On
     * failure, the wire has logged the reason. */
    void *(*expose_device)(void *wire, const dscomm_dma_buf_t *memory,
                           unsigned char *key);
} dscomm_wire_ops_t;

/* For the slot open of a backend: opens a group above wire, whose table must
 * stay valid. ERR_NO_BACKEND if the table is too short or lacks a function. */
DSCOMM_API dscomm_status_t dscomm_wire_open(const dscomm_wire_ops_t *wire,
                                            const dscomm_backend_args_t *args,
                                            void **ret_impl);
/* Writes the slots of a backend above a wire to slots, a table of size bytes,
 * with open for the slot of that name. */
DSCOMM_API void
dscomm_wire_slots(dscomm_backend_ops_t *slots, size_t size,
                  dscomm_status_t (*open)(const dscomm_backend_args_t *args,
                                          void **ret_impl));

/* Defines slots, the static table for the member ops of a descriptor, of a
 * backend above wire, a static dscomm_wire_ops_t. The table is filled when the
 * module is loaded, so that a module has the slots of the library that it finds
 * there. */
#define DSCOMM_WIRE_SLOTS(slots, wire)                                         \
    static dscomm_status_t slots##_open(const dscomm_backend_args_t *args,     \
                                        void **ret_impl)                       \
    {                                                                          \
        return dscomm_wire_open(&(wire), args, ret_impl);                      \
    }                                                                          \
    static dscomm_backend_ops_t slots;                                         \
    __attribute__((constructor)) static void slots##_fill(void)                \
    {                                                                          \
        dscomm_wire_slots(&slots, sizeof slots, slots##_open);                 \
        slots.devices = (wire).devices;                                        \
    }                                                                          \
    struct dscomm_backend_ops

#ifdef __cplusplus
}
#endif

#endif
