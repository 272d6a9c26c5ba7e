/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract between libdscomm and a backend module.
 *
 * A module is NAME.so in $(libdir)/dscomm/backends (pkg-config variable
 * backenddir) and exports one symbol, the constant dscomm_backend_NAME of type
 * dscomm_backend_t. It links libdscomm. The loader checks abi, then name, then
 * ops->size, and makes its own copy of ops in which missing optional slots are
 * NULL. A module is never unloaded. backends/self/self.c is the shortest
 * complete backend, and the one to copy; the smallest gives the slots up to
 * status, that is messages and nothing else.
 *
 * Who calls what, and when. An implementation ("impl") serves one group in one
 * process. The core never calls two slots of one impl at the same time, except
 * revoke and status, which may come from any thread at any time. The next call
 * may come from another thread than the last: whoever makes progress. Slots of
 * different impls may run at the same time, so what impls share needs a lock of
 * the backend's. Arguments are already checked: pointers, ranks, counts and
 * their products are valid, and no byte count overflows; buffers of no bytes
 * may be NULL. A group of one rank never reaches a module.
 *
 * Failure. A slot that fails returns a negative status after dscomm_fail() with
 * a sentence: operation, group, rank, cause, remedy. A failure that leaves
 * peers without what they wait for (death, time-out, mismatch) revokes the
 * group: the backend makes every rank's present and later call return that
 * status and sentence, within milliseconds where the transport allows. A
 * request has no sentence of its own, so one that fails has revoked the group
 * first; ERR_TRUNCATED alone does not, and the group goes on.
 *
 * Waiting. A slot that may wait (run, send, recv) gives up when the group's
 * time-out has passed without progress, sees a revocation and a peer's death at
 * once, and calls dscomm_backend_progress_others() from time to time, so that
 * works on other groups of the process go on. All other slots return without
 * waiting. */
#ifndef DSCOMM_BACKEND_H
#define DSCOMM_BACKEND_H

#include <dscomm/group.h>
#include <dscomm/hook.h>
#include <dscomm/log.h>
#include <dscomm/op.h>
#include <dscomm/status.h>
#include <dscomm/store.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every incompatible change; a module of another number is
 * refused. */
#define DSCOMM_BACKEND_ABI 2

/* The root of the barrier by which all ranks meet in dscomm_finalize(): a
 * barrier like any other, but no other call matches it, and messages call it
 * what it is. */
#define DSCOMM_ROOT_FINALIZE (-2)
/* The root of an all_gather by which the ranks of a group agree on new groups
 * made of it: the same for the calls dscomm_group_new(), _split(), _mesh(). */
#define DSCOMM_ROOT_GROUP_NEW (-3)
#define DSCOMM_ROOT_GROUP_SPLIT (-4)
#define DSCOMM_ROOT_GROUP_MESH (-5)

/* Tags from this one down are those of collectives that the core carries out by
 * messages, that barrier perhaps. */
#define DSCOMM_TAG_COLLECTIVE (-16)

/* The op of a collective by an operator of the program's own, which user
 * describes. No built-in operator has this value, however many are added. It
 * fits into an int8_t. */
#define DSCOMM_OP_USER 126
typedef struct dscomm_user_op {
    size_t size;
    dscomm_op_fn function;
    void *arg;
    int commutative;
    int handle; /* dscomm_op_t */
    /* For messages, less than DSCOMM_OP_TEXT bytes: the name, and whether it
     * needs the ranks' order. */
    const char *text;
} dscomm_user_op_t;
#define DSCOMM_OP_TEXT 48

/* One collective. Which members mean something follows from coll; counts are in
 * elements, as in the public call. */
typedef struct dscomm_coll_args {
    int coll; /* dscomm_coll_t, below DSCOMM_COLL_SEND */
    int dtype; /* dscomm_dtype_t */
    /* dscomm_op_t; -1 where nothing is reduced; DSCOMM_OP_USER only where
     * capabilities has DSCOMM_CAP_USER_OPS */
    int op;
    int root; /* -1 where none; of an inner call, DSCOMM_ROOT_* */
    /* broadcast, reduce, all_reduce: elements; all_gather, gather: send count;
     * reduce_scatter, scatter: receive count; all_to_all: per peer; _v: this
     * rank's own count */
    size_t count;
    size_t element; /* bytes of one element */
    const void *send; /* broadcast: NULL except on root */
    void *recv; /* broadcast: the buffer */
    const size_t *send_counts, *send_displs; /* displs are never NULL where */
    const size_t *recv_counts, *recv_displs; /* counts are not;
                               reduce_scatter_v: recv_displs are the offsets of
                               the ranks' parts in send, where they lie side by
                               side from 0 on */
    double factor; /* of PREMUL_SUM */
    uint64_t sequence; /* of collectives on this group, from 1 */
    /* of what must be equal on all ranks: coll, dtype, op, root, and count
     * unless _v; all_gather_v and reduce_scatter_v: recv_counts */
    uint32_t fingerprint;
    /* The call of which this is a step, where there is one: to be named in
     * messages. Stays valid as long as the arrays. */
    const struct dscomm_coll_args *of;
    /* Of DSCOMM_OP_USER, else NULL; stays valid as long as the arrays. */
    const dscomm_user_op_t *user;
} dscomm_coll_args_t;

/* One message of bytes bytes; the structure is gone when the call returns, the
 * buffer stays until the request is complete. A shorter message than the
 * receive asks for is no failure. Tags below -1 are the core's own: they match
 * like any other, but DSCOMM_ANY_TAG does not match them. */
typedef struct dscomm_message {
    const void *send; /* of a send, else NULL */
    void *recv; /* of a receive, else NULL */
    size_t bytes;
    int peer; /* or DSCOMM_ANY_SOURCE, if the backend has that capability */
    int tag; /* or DSCOMM_ANY_TAG on a receive */
    /* 1: a receive whose caller waits for it, and starts nothing else on the
     * group meanwhile. */
    int waits;
    /* Of a receive: the message that probe has set aside, which it gets, and
     * peer and tag are that message's; else NULL. */
    void *taken;
} dscomm_message_t;

/* State of one non-blocking operation. The core allocates ops->request_size
 * bytes (at least sizeof(dscomm_request_t), aligned as by malloc), of which the
 * backend may use what follows this head; they stay where they are. Only the
 * head is zero at the start, the rest is what an earlier operation left.
 * The backend sets status last, when it will not touch the request or its
 * buffers again: in progress, or in start, isend, irecv, run, send or recv. */
typedef struct dscomm_request {
    dscomm_status_t status; /* IN_PROGRESS until complete */
    int source, tag; /* of a completed receive */
    int held; /* set by cancel: see there */
    int vain; /* set before cancel: see there */
    size_t bytes; /* of a completed receive: of the message, if truncated */
} dscomm_request_t;

/* What open gets; strings, arrays and store live until close. */
typedef struct dscomm_backend_args {
    size_t size;
    dscomm_group_t *group; /* for the services below */
    /* impl of the group it is made from, if it has the same backend:
     * connections may be shared. Closed after its children. NULL for a world */
    void *parent;
    const char *name; /* for messages */
    const char *id; /* unique in the world, equal on all ranks */
    int rank, ranks; /* this one, and how many */
    const int *world_ranks; /* numbers in the world, for messages */
    dscomm_store_t *store; /* private to the group: keys may be short */
    int timeout_ms; /* default deadline of every operation */
    /* 1 where on one of the job's machines ranks outnumber the processors on
     * which they may run: whoever waits must give way at once. */
    int oversubscribed;
    int open_ms; /* what is left of the call's time for open; >= 0 */
} dscomm_backend_args_t;

/* What rank 0 tells the other ranks of a world before they have a store. */
typedef struct dscomm_introduction {
    size_t size;
    /* As the launcher tells; ranks is 0 where it does not tell how many there
     * are, and set then. */
    int rank, ranks;
    void *data; /* rank 0's, to become everybody's; NULL: a question */
    size_t bytes;
    int timeout_ms;
    /* To be asked again and again, with short pauses in which messages go on,
     * once data is there, by rank 0 also before it sends data, when the ranks
     * are connected: 1 when all have it, 0 as long as some may not, or a
     * negative status. After a time-out from then on the core names those that
     * have not. */
    int (*arrived)(void *arg);
    void *arg;
} dscomm_introduction_t;

/* size is of the table that the module was compiled with; members are appended
 * only. Required: open, close, isend, irecv, cancel, progress, revoke,
 * status. */
typedef struct dscomm_backend_ops {
    size_t size;
    size_t request_size; /* bytes of this backend's request */

    /* Collective over the group; gives up after open_ms and names the ranks
     * that did not come. Calls on the store end soon after that, whatever
     * time-out they are given. */
    dscomm_status_t (*open)(const dscomm_backend_args_t *args, void **ret_impl);
    /* Local. Works have been completed or cancelled. Never waits for peers. */
    void (*close)(void *impl);
    /* Start one message. Messages to one peer with one tag are received in the
     * order sent. On failure the request was not started. */
    dscomm_status_t (*isend)(void *impl, const dscomm_message_t *message,
                             dscomm_request_t *request);
    dscomm_status_t (*irecv)(void *impl, const dscomm_message_t *message,
                             dscomm_request_t *request);
    /* Forgets a started request, of a group that is revoked or being freed; or
     * a receive that nobody waits for any more, on a group that goes on: a
     * message that comes later is kept for the next receive. Where vain is set,
     * it is a receive for which nothing was or will be sent. Afterwards the
     * backend does not touch the request, nor its buffer, unless it sets held:
     * its transport does not give the buffer back, so the core never uses or
     * frees memory of its own that was there, until the process ends. */
    void (*cancel)(void *impl, dscomm_request_t *request);
    /* Advances whatever can advance; 0 where nothing did, or how many requests
     * were completed. A backend that sees long messages move returns 1 for that
     * as well: a group's deadline counts from when something last moved. */
    unsigned (*progress)(void *impl);
    /* Marks the group broken for all ranks, with status and sentence; the first
     * call wins. From any thread; takes no lock that another slot may hold. A
     * sentence need not say which collective messages are for: the core adds
     * it. */
    void (*revoke)(void *impl, dscomm_status_t status, const char *sentence);
    /* OK, or what revoked the group; the sentence goes to text (size bytes) if
     * text is not NULL. Cheap: every poll asks. */
    dscomm_status_t (*status)(void *impl, char *text, size_t size);

    /* From here on optional. */

    /* DSCOMM_CAP_* of this impl. */
    uint64_t (*capabilities)(void *impl);
    /* 1 where run and start take this collective natively; the answer may
     * depend on coll, dtype, op, count (not of a _v call, where that is this
     * rank's own), and on whether root is DSCOMM_ROOT_FINALIZE, and must be the
     * same on all ranks. Without it, none is taken. Never asked where
     * capabilities has DSCOMM_CAP_NATIVE_COLLECTIVES: then all of them are. */
    int (*native)(void *impl, const dscomm_coll_args_t *args);
    /* One collective from beginning to end. Never called while requests of
     * start are incomplete. Without start, a call with a work is made of
     * messages: then all ranks must make a call in the same form. The same is
     * true with DSCOMM_CAP_BLOCKING_APART, where what start does matches no
     * run. */
    dscomm_status_t (*run)(void *impl, const dscomm_coll_args_t *args);
    /* Starts one; collectives of one impl take effect in the order started.
     * args is copied by the backend; arrays in it stay valid. */
    dscomm_status_t (*start)(void *impl, const dscomm_coll_args_t *args,
                             dscomm_request_t *request);
    /* Blocking forms of isend and irecv, for backends that can do better than
     * start and progress. May be called while requests are incomplete, which
     * go on meanwhile. request tells what was received. */
    dscomm_status_t (*send)(void *impl, const dscomm_message_t *message);
    dscomm_status_t (*recv)(void *impl, const dscomm_message_t *message,
                            dscomm_request_t *request);
    /* Sleeps until progress may have something to do, at most timeout_us;
     * called after progress was fruitless for a while. Without it the core
     * yields. */
    void (*wait)(void *impl, unsigned timeout_us);
    /* Who is late: writes a sentence on what request (NULL: the oldest started
     * collective) waits for into text, for a time-out's message; or why request
     * has failed with ERR_PEER_FAILED although the group goes on. */
    void (*explain)(void *impl, const dscomm_request_t *request, char *text,
                    size_t size);
    /* Memory the transport moves without copies: whole pages, zeroed. The core
     * gives back what is left before close. mem_alloc may answer
     * ERR_UNSUPPORTED without a sentence: then the core gives plain memory, and
     * frees it itself. */
    dscomm_status_t (*mem_alloc)(void *impl, size_t size, void **ret_memory);
    dscomm_status_t (*mem_free)(void *impl, void *memory);
    dscomm_status_t (*set_stream)(void *impl, void *stream);
    /* Last call of a group that ends in order, after its final barrier: from
     * here on a peer that leaves has not died. */
    void (*quiesce)(void *impl);
    /* dscomm_finalize() begins: this rank starts nothing more on the group, but
     * for a world's last barrier (which may be messages, see
     * DSCOMM_TAG_COLLECTIVE), and what it sent has been taken over by the
     * transport. Peers that wait for something else of it, once they have what
     * it sent, end with ERR_PEER_FAILED, if the backend can tell them. Receives
     * may still be incomplete. */
    void (*leave)(void *impl);
    /* Changes ops, a copy for this impl alone: sets optional slots to NULL that
     * it does without, for all ranks alike, and slots to what serves it better.
     * Called once, after open. */
    void (*trim)(void *impl, struct dscomm_backend_ops *ops);
    /* Asked when a buffer in the memory of a device first comes; devices: how
     * many there are. NULL where run takes such buffers, for collectives that
     * only move and reduce: not AVG, PREMUL_SUM or a _v call, and in place only
     * all_reduce and broadcast; with DSCOMM_CAP_DEVICE_MEMORY messages do so as
     * well; else why not, static text. All other buffers of devices the core
     * replaces by host memory, and without this slot all. */
    const char *(*device)(void *impl, int devices);
    /* Before any open, for backends whose launcher has connected the processes
     * already, so that rank 0's address need not be known: collective over the
     * processes that it has started, which must be the ranks of the world. To a
     * question it says OK where it would try, else ERR_UNSUPPORTED without a
     * sentence: locally, cheaply, and the same on all ranks. */
    dscomm_status_t (*introduce)(dscomm_introduction_t *introduction);
    /* What this module finds on this machine, for dscomm_backend_info(): a
     * phrase, "MPI libraries: openmpi, mpich". Static text; any thread; loads
     * nothing. */
    const char *(*describe)(void);
    /* Takes back a started receive for which no message has begun to come: 1,
     * and the request is forgotten as by cancel; a message that comes later is
     * kept for the next receive. 0 where a message has: the receive goes on.
     * Without it, receives can neither be cancelled nor have a deadline of
     * their own. */
    int (*withdraw)(void *impl, dscomm_request_t *request);
    /* What was chosen by measuring, in words, for reports ("" before the call);
     * nothing where nothing was. */
    void (*tuning)(void *impl, char *text, size_t size);
    /* 1 if a message has begun to come that a receive like wanted (peer and tag
     * count) would take; source, tag and bytes of found then tell of the oldest
     * one. Called after progress. If ret_taken is not NULL, that message is set
     * aside: no other receive or probe sees it until a receive whose
     * message.taken is *ret_taken gets it; what is left is freed by close. */
    int (*probe)(void *impl, const dscomm_message_t *wanted,
                 dscomm_request_t *found, void **ret_taken);
    /* 1 where rank has begun the collective with number sequence, or a later
     * one: text gets which. 0 where it has not, as far as this rank sees. For
     * run's collectives, of which the core knows nothing on other ranks. */
    int (*begun)(void *impl, int rank, uint64_t sequence, char *text,
                 size_t size);
    /* 1 if a message has begun to come for a started receive that is in
     * progress. The group's deadline holds for it from then on, in place of its
     * own. Without it, this holds only after the receive's own deadline. */
    int (*matched)(void *impl, const dscomm_request_t *request);
} dscomm_backend_ops_t;

/* One row of the settings table. The value is text in the environment, and a
 * number here: BOOL 0/1, INT, BYTES ("64K", "4M"), MSEC (seconds in the
 * environment, "1.5"), ENUM (index in words). STRING has no number. */
typedef enum {
    DSCOMM_SETTING_BOOL = 0,
    DSCOMM_SETTING_INT = 1,
    DSCOMM_SETTING_BYTES = 2,
    DSCOMM_SETTING_MSEC = 3,
    DSCOMM_SETTING_ENUM = 4,
    DSCOMM_SETTING_STRING = 5
} dscomm_setting_type_t;

typedef struct dscomm_setting {
    const char *name; /* "DSCOMM_SHM_RING" */
    dscomm_setting_type_t type;
    const char *default_value; /* as in the environment; NULL = unset */
    int64_t min, max; /* INT, BYTES, MSEC (in ms) */
    /* ENUM: "auto|yes|no"; STRING: what is accepted, in words, or NULL; "path"
     * is ignored in set-uid programs */
    const char *words;
    const char *help;
} dscomm_setting_t;

typedef struct dscomm_backend {
    uint32_t abi; /* DSCOMM_BACKEND_ABI */
    uint32_t priority; /* larger is tried first by "auto" */
    const char *name; /* as in the file's name */
    const dscomm_backend_ops_t *ops;
    /* ends with a row whose name is NULL; or NULL */
    const dscomm_setting_t *settings;
    /* May this module serve a world whose ranks live on hosts[0 ... ranks-1]
     * (equal text = can share memory)? Returns NULL for yes, or why not: text
     * that is static or dscomm_last_error(). Optional. Local and cheap. */
    const char *(*usable)(const char *const *hosts, int ranks);
    /* As usable, but asked by "auto" alone: is there no better one for these
     * hosts, whatever its priority? oversubscribed: as in
     * dscomm_backend_args_t. Optional. */
    const char *(*advisable)(const char *const *hosts, int ranks,
                             int oversubscribed);
    /* As advisable, but asked where another backend would use this one for a
     * part of its ranks. Optional. */
    const char *(*beneath)(int oversubscribed);
} dscomm_backend_t;

#define DSCOMM_BACKEND_EXPORT DSCOMM_API

/* Services of libdscomm for backends. They live in the symbol version
 * DSCOMM_PRIVATE_2, which is renamed with every DSCOMM_BACKEND_ABI. */

/* Lets works on other groups of the process go on, and those of group that are
 * their callers' own; cheap where there are none. group: the one that waits, in
 * a slot that may wait. 1 where something moved. */
DSCOMM_API int dscomm_backend_progress_others(dscomm_group_t *group);

/* The following serve open, which waits for other ranks: args is what open got,
 * or those of an inner open. */

/* OK, or why the group can no longer be made: the process of one of its ranks
 * has ended, another rank has failed in open, or the group that it is made from
 * was revoked. To be called about every DSCOMM_CREATION_LOOK_MS by whoever
 * waits in another way than by the next call; what came before counts, so look
 * once more for what is waited for. Cheap. */
#define DSCOMM_CREATION_LOOK_MS 20
DSCOMM_API dscomm_status_t
dscomm_backend_creation_check(const dscomm_backend_args_t *args);
/* dscomm_store_multi_get() from args->store within timeout_ms, and within the
 * time that open has, which ends as soon as the above fails. ERR_TIMEOUT has a
 * sentence about keys. */
DSCOMM_API dscomm_status_t dscomm_backend_creation_get(
    const dscomm_backend_args_t *args, const char *const *keys, size_t count,
    int timeout_ms, void **ret_values, size_t *ret_sizes);
/* A connection to a rank has ended: the reason, which may take a moment to
 * show. Always fails; ERR_PEER_FAILED where nothing is known but that. */
DSCOMM_API dscomm_status_t
dscomm_backend_creation_lost(const dscomm_backend_args_t *args, int rank);
/* This rank cannot go on, for the reason of dscomm_last_error(). The first
 * reason of a group is kept; a rank that blames another one (ERR_PEER_FAILED,
 * ERR_TIMEOUT, ERR_IO) takes over that. Returns the status that the rank then
 * has. The core does so when open fails; a backend that sends the reason to
 * others does it before. */
DSCOMM_API dscomm_status_t dscomm_backend_creation_fail(
    const dscomm_backend_args_t *args, dscomm_status_t status);
/* A rank for messages: "rank 3 (pid 812 on b)", its number in the world;
 * returns text. */
#define DSCOMM_CREATION_RANK_MAX 128
DSCOMM_API const char *
dscomm_backend_creation_rank(const dscomm_backend_args_t *args, int rank,
                             char text[DSCOMM_CREATION_RANK_MAX]);

/* 1 where works or messages of any group of the process are incomplete, so that
 * a slot which cannot call the above while it waits has to see to them in
 * another way, with a thread perhaps. Cheap. */
DSCOMM_API int dscomm_backend_has_works(void);

/* The number of a setting: what the environment says, else the default.
 * ERR_ENVIRONMENT with the accepted values where it makes no sense. */
DSCOMM_API dscomm_status_t dscomm_setting_number(const dscomm_setting_t *row,
                                                 int64_t *ret_value);
/* The text of a STRING setting, or NULL. */
DSCOMM_API const char *dscomm_setting_text(const dscomm_setting_t *row);

/* dest[i] = sources[0][i] op sources[1][i] op ..., folded from left to right,
 * for count elements and nsources >= 1; see collective.h for the arithmetic.
 * dest may be equal to one of the sources, but overlap none in part. Any
 * alignment. factors: PREMUL_SUM: nsources factors; AVG: factors[0] is the
 * divisor, a whole number not less than nsources; else NULL. */
typedef void (*dscomm_reduce_fn)(void *dest, const void *const *sources,
                                 size_t nsources, size_t count,
                                 const double *factors);

/* The fastest kernel of this processor; NULL where op does not apply to
 * dtype. */
DSCOMM_API dscomm_reduce_fn dscomm_reduce_kernel(dscomm_dtype_t dtype,
                                                 dscomm_op_t op);

/* The same for DSCOMM_OP_USER, by args->user; any number of elements of
 * args->dtype. */
DSCOMM_API void dscomm_reduce_user(const dscomm_coll_args_t *args, void *dest,
                                   const void *const *sources, size_t nsources,
                                   size_t count);

/* "all_reduce(count 5, float32, sum) #17", for messages; returns buffer. */
DSCOMM_API const char *dscomm_coll_describe(const dscomm_coll_args_t *args,
                                            char *buffer, size_t size);

/* Backends over other backends: an impl may open impls of its own for some or
 * all of its ranks, and call their slots. What holds between the core and a
 * backend then holds between it and those: one slot of an impl at a time,
 * requests of ops->request_size bytes whose head is zero at the start, a store
 * of their own, close before this impl's close returns. */
typedef struct dscomm_inner {
    const dscomm_backend_ops_t *ops; /* missing optional slots are NULL */
    void *impl;
} dscomm_inner_t;

/* ranks: numbers in the group, in the order of those in the new one; at least
 * two of them, this rank's among them. name: for messages. part: unique in the
 * group, equal on all of ranks; letters, digits, '-'. parent: an impl of the
 * same backend whose ranks have all of these among them, or NULL; closed
 * later. */
typedef struct dscomm_inner_plan {
    const char *backend, *name, *part;
    const int *ranks;
    int count;
    void *parent;
} dscomm_inner_plan_t;

/* Collective over plan->ranks, in open only; args as open got them. The inner
 * open gets what is left of args->open_ms. */
DSCOMM_API dscomm_status_t dscomm_inner_open(const dscomm_backend_args_t *args,
                                             const dscomm_inner_plan_t *plan,
                                             dscomm_inner_t **ret_inner);
/* NULL is fine. */
DSCOMM_API void dscomm_inner_close(dscomm_inner_t *inner);

/* For usable, with hosts NULL: why this process cannot load it, until this
 * thread's next failure. For advisable: what the backend's own usable and
 * beneath say as well. NULL: it can be used. */
DSCOMM_API const char *dscomm_inner_usable(const char *backend,
                                           const char *const *hosts, int ranks,
                                           int oversubscribed);

/* For introduce: what the backend's own does. */
DSCOMM_API dscomm_status_t dscomm_inner_introduce(
    const char *backend, dscomm_introduction_t *introduction);

/* For slots that are inside a call which cannot let works go on: begin before
 * it and end after it, with the same help, of which turn and arg are set. Where
 * the call takes longer than about 0.1 ms, a thread of the library's calls turn
 * again and again, with short pauses, or longer ones where it returned 0, as
 * nothing moved; end waits for a turn that has begun. Signals are blocked
 * there. Where there can be no thread, works go on later. turn must not
 * wait. */
typedef struct dscomm_help {
    int (*turn)(void *arg);
    void *arg;
    struct dscomm_help *next; /* this and state are the library's */
    int state;
} dscomm_help_t;
DSCOMM_API void dscomm_help_begin(dscomm_help_t *help);
DSCOMM_API void dscomm_help_end(dscomm_help_t *help);

/* The text by which this process is known in hosts of usable. */
#define DSCOMM_HOST_MAX 512
DSCOMM_API void dscomm_backend_host(char text[DSCOMM_HOST_MAX]);

#ifdef __cplusplus
}
#endif

#endif
