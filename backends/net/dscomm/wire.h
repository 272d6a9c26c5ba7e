/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract between the message engine and a wire.
 *
 * The engine makes a backend of a wire: it matches messages, grants credits,
 * runs the rendezvous protocol and keeps groups apart. A wire connects ranks in
 * pairs and moves frames between them, in the order in which they were posted,
 * each exactly once or, after a failure, not at all. It knows neither messages
 * nor groups. One wire serves all groups of a world whose ranks use this
 * backend.
 *
 * The engine calls all functions of a wire with a lock held, except wait and
 * wake. None of the others waits. A wire calls the engine only from its own
 * poll, connect and post; lost and dropped only from poll. */
#ifndef DSCOMM_WIRE_H
#define DSCOMM_WIRE_H

#include <dscomm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a frame's header. The first 8 are the number of bytes of its
 * payload, little-endian; the others are the engine's. */
#define DSCOMM_WIRE_HEADER 40

/* A frame to be sent. The engine owns it, and keeps it until sent() or
 * dropped(). The payload is in the memory of a user: the wire must not copy it
 * without need, and must not read it after the engine has set data to NULL;
 * zeros are sent in its place. */
typedef struct dscomm_wire_frame {
    struct dscomm_wire_frame *next; /* the wire's, while it has the frame */
    const void *data;
    size_t bytes;
    size_t done; /* the wire's: bytes of header and payload that were sent */
    int unordered; /* it may overtake others: a piece of a long message */
    unsigned char header[DSCOMM_WIRE_HEADER];
} dscomm_wire_frame_t;

/* The place to which the payload of an arriving frame goes. The engine owns it
 * and may set memory to NULL at any time: the rest of the payload is then
 * discarded. */
typedef struct dscomm_wire_sink {
    void *memory;
    size_t bytes;
    size_t done; /* the wire's: bytes that have arrived */
} dscomm_wire_sink_t;

/* Calls of a wire to its engine; arg is args->arg. Peers are numbers of ranks
 * in args. */
typedef struct dscomm_wire_calls {
    size_t size;
    /* peer has connected to this rank: frames can be posted to it. */
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
     * why. Its frames are dropped afterwards. */
    void (*lost)(void *arg, int peer, dscomm_failure_kind_t kind,
                 const char *text);
} dscomm_wire_calls_t;

/* The arguments of open. All is valid until close, but backend until open
 * returns. */
typedef struct dscomm_wire_args {
    size_t size;
    const dscomm_wire_calls_t *calls;
    void *arg;
    int rank, ranks; /* this rank, and the number of ranks */
    /* 32 random bytes, which only ranks of this job know. */
    const unsigned char *secret;
    int timeout_ms; /* the world's deadline */
    int oversubscribed; /* as in dscomm_backend_args_t */
} dscomm_wire_args_t;

#define DSCOMM_WIRE_ADDRESS_MAX 4096 /* bytes of an address */

/* The functions of a wire. */
typedef struct dscomm_wire_ops {
    size_t size;
    const char *name; /* for messages: "tcp" */
    /* Makes a wire that accepts connections. */
    dscomm_status_t (*open)(const dscomm_wire_args_t *args, void **ret_wire);
    void (*close)(void *wire);
    /* Writes how other ranks reach this one; returns the number of bytes. */
    size_t (*address)(void *wire, void *buffer);
    /* Begins to connect to peer, unless a connection is there or is being made.
     * Frames may be posted at once. On failure nothing was begun. Called from
     * opened, too, so that the wire knows the address of a peer that has
     * connected. */
    dscomm_status_t (*connect)(void *wire, int peer, const void *address,
                               size_t bytes);
    /* Takes a frame for a peer to which connect was called, or which has
     * connected to this rank. */
    void (*post)(void *wire, int peer, dscomm_wire_frame_t *frame);
    /* Makes progress; returns the number of frames that moved. */
    unsigned (*poll)(void *wire);
    /* Sleeps until poll may have something to do, at most timeout_us. Called
     * without the lock, by several threads at a time. */
    void (*wait)(void *wire, unsigned timeout_us);
    /* Ends the wait of every thread. Called without the lock. */
    void (*wake)(void *wire);
    /* Bytes that peers may not have received yet, of all that was sent. */
    size_t (*unsent)(void *wire);
    /* Describes the connection to peer for messages: "at 10.0.0.2:4711"; or
     * writes "". Optional. */
    void (*describe)(void *wire, int peer, char *text, size_t size);
    /* The number of frames that may be unordered at a time for one message. */
    unsigned (*depth)(void *wire);
} dscomm_wire_ops_t;

#ifdef __cplusplus
}
#endif

#endif
