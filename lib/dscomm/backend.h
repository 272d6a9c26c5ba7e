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
 * revoke and status, which any thread may call at any time. Consecutive calls
 * may come from different threads, because any thread may make progress. Slots
 * of different impls may run at the same time, so the backend must lock what
 * impls share. Arguments are already checked: pointers, ranks, counts and their
 * products are valid, and no byte count overflows; buffers of no bytes may be
 * NULL. A group of one rank never reaches a module.
 *
 * Failure. A slot that fails calls dscomm_fail() with a sentence (operation,
 * group, rank, cause, remedy) and returns the negative status. The core puts
 * the group before the sentences of open. If a failure leaves peers waiting
 * (death, time-out, mismatch), the backend revokes the group: it brings a
 * failure record to every rank, whose present and later calls return the
 * record's status after dscomm_backend_fail(), within milliseconds if the
 * transport can do so. A request has no sentence of its own, so the backend
 * revokes the group before a request fails. The one exception is ERR_TRUNCATED:
 * the group goes on.
 *
 * Waiting. A slot that may wait (run, send, recv) gives up when the group's
 * time-out has passed without progress. It sees a revocation and a peer's death
 * at once. It calls dscomm_backend_progress_others() from time to time, so that
 * works on other groups of the process go on. All other slots return without
 * waiting, but for dscomm_backend_failure_earlier(), once in a group's life. */
#ifndef DSCOMM_BACKEND_H
#define DSCOMM_BACKEND_H

#include <dscomm/failure.h>
#include <dscomm/group.h>
#include <dscomm/hook.h>
#include <dscomm/info.h>
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
#define DSCOMM_BACKEND_ABI 3

/* The root of the barrier of dscomm_finalize(). It is a barrier like any other,
 * but no other call matches it, and messages call it dscomm_finalize. */
#define DSCOMM_ROOT_FINALIZE (-2)
/* The roots of the all_gather by which the ranks of a group agree on a new
 * group, in dscomm_group_new(), _split() and _mesh(). No other call matches
 * it. */
#define DSCOMM_ROOT_GROUP_NEW (-3)
#define DSCOMM_ROOT_GROUP_SPLIT (-4)
#define DSCOMM_ROOT_GROUP_MESH (-5)

/* Tags less than or equal to this one belong to collectives that the core runs
 * over messages; the barrier of dscomm_finalize() may be one. */
#define DSCOMM_TAG_COLLECTIVE (-16)

/* The value of op if the operator is one of dscomm_op_create(); the member user
 * describes it. Built-in operators will never have this value. It fits into an
 * int8_t. */
#define DSCOMM_OP_USER 126
typedef struct dscomm_user_op {
    size_t size;
    dscomm_op_fn function;
    void *arg;
    int commutative;
    int handle; /* dscomm_op_t */
    /* A text for messages, shorter than DSCOMM_OP_TEXT bytes: the name, and
     * whether the operator is commutative. */
    const char *text;
} dscomm_user_op_t;
#define DSCOMM_OP_TEXT 48

/* The times of a collective's phases, see dscomm_phase(). */
typedef struct dscomm_phases {
    int64_t ns[DSCOMM_PHASE_COUNT];
    int64_t since_ns; /* the present phase began */
    int phase; /* dscomm_phase_t */
} dscomm_phases_t;

/* One collective. coll determines which members are used. Counts are in
 * elements, as in the public call. */
typedef struct dscomm_coll_args {
    int coll; /* dscomm_coll_t, below DSCOMM_COLL_SEND */
    int dtype; /* dscomm_dtype_t */
    /* dscomm_op_t; -1 if the collective does not reduce; DSCOMM_OP_USER only if
     * capabilities has DSCOMM_CAP_USER_OPS */
    int op;
    int root; /* -1: none; DSCOMM_ROOT_* of the library's own calls */
    /* broadcast, reduce, all_reduce: elements; all_gather, gather: send count;
     * reduce_scatter, scatter: receive count; all_to_all: per peer;
     * all_to_all_v: the sum of send_counts; other _v: this rank's own count */
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
    uint64_t sequence; /* number of the collective on this group, from 1 */
    /* hash of what must be equal on all ranks: coll, dtype, op, root, and count
     * unless _v; all_gather_v and reduce_scatter_v: recv_counts */
    uint32_t fingerprint;
    /* The call of which this is a step, or NULL; messages name it. Stays valid
     * as long as the arrays. */
    const struct dscomm_coll_args *of;
    /* The operator if op is DSCOMM_OP_USER, else NULL; valid as long as the
     * arrays. */
    const dscomm_user_op_t *user;
    /* NULL, unless somebody wants the phases; valid as long as the arrays. */
    dscomm_phases_t *phases;
} dscomm_coll_args_t;

/* One point-to-point message. The structure is valid during the call only, the
 * buffer until the request is complete. A message may be shorter than the
 * receive. Tags below -1 are the core's own: they match like any other, but
 * DSCOMM_ANY_TAG does not match them. */
typedef struct dscomm_message {
    const void *send; /* of a send, else NULL */
    void *recv; /* of a receive, else NULL */
    size_t bytes; /* of the send, or room of the receive */
    int peer; /* or DSCOMM_ANY_SOURCE, if the backend has that capability */
    int tag; /* or DSCOMM_ANY_TAG on a receive */
    /* 1: a receive whose caller waits for it and starts nothing else on the
     * group until it is complete. */
    int waits;
    /* Of a receive: NULL, or the message that probe has set aside for it; peer
     * and tag are then those of that message. */
    void *taken;
    /* 1: a receive for which perhaps no message is sent: it is worth no
     * connection to the peer until expect is called for its request. */
    int early;
    /* 1: a send after which another one to the same peer is started at once, so
     * that both may go together. */
    int followed;
} dscomm_message_t;

/* Bytes of what a backend needs to reach another rank's memory. */
#define DSCOMM_BACKEND_KEY 32

/* Memory of a device, as other devices can reach it. */
typedef struct dscomm_dma_buf {
    void *address; /* on its device */
    size_t bytes;
    int descriptor; /* of the dma-buf, which may begin before the memory */
    uint64_t offset; /* of the memory in it */
} dscomm_dma_buf_t;

/* One access to the memory of another rank. */
typedef struct dscomm_access {
    void *data; /* this rank's buffer; a put only reads it */
    size_t bytes; /* > 0 */
    int peer; /* another rank */
    const void *key; /* that mem_register wrote there */
    size_t offset; /* from the beginning of that memory */
    /* NULL, or data is in memory of a device, for which mem_register_device has
     * written this. */
    void *registered;
} dscomm_access_t;

/* State of one non-blocking operation. The core allocates ops->request_size
 * bytes (at least sizeof(dscomm_request_t), aligned as by malloc) and does not
 * move them. The backend may use the bytes after this head. At the start only
 * the head is zero; the rest holds what an earlier operation left. The backend
 * sets status last, when it will not touch the request or its buffers again: in
 * progress, or in start, isend, irecv, run, send or recv. */
typedef struct dscomm_request {
    dscomm_status_t status; /* IN_PROGRESS until complete */
    int source, tag; /* of a completed receive */
    int held; /* set by cancel: see there */
    int never_sent; /* set by the core before cancel: see there */
    size_t bytes; /* of a completed receive: bytes received; if truncated, bytes
                     of the message */
} dscomm_request_t;

/* The arguments of open. Strings, arrays and store are valid until close. */
typedef struct dscomm_backend_args {
    size_t size;
    dscomm_group_t *group; /* for the services below */
    /* The impl of the group from which this group is made, if it has the same
     * backend and works; connections may be shared with it. It is closed after
     * its children. NULL for a world. */
    void *parent;
    const char *name; /* the group's, for messages */
    const char *id; /* unique in the world, equal on all ranks */
    int rank, ranks; /* this rank, and the number of ranks */
    const int *world_ranks; /* the ranks' numbers in the world, for messages */
    dscomm_store_t *store; /* private to the group: keys may be short */
    int timeout_ms; /* default deadline of every operation */
    /* 1 if, on one of the job's machines, ranks outnumber the processors on
     * which they may run: a rank that waits must yield at once. */
    int oversubscribed;
    int open_ms; /* time left for open; >= 0 */
    /* 1: the group is a world, whose ranks meet last in the barrier of
     * dscomm_finalize(). Other groups have no parent either if their backend
     * is not that of the group from which they are made, or if that group has
     * failed. */
    int world;
} dscomm_backend_args_t;

/* The bootstrap: data that rank 0 sends to all ranks of a world before they
 * have a store. */
typedef struct dscomm_bootstrap {
    size_t size;
    /* The numbers of the launcher. If ranks is 0, the launcher does not give
     * it, and the backend sets it. */
    int rank, ranks;
    void *data; /* rank 0's, to be copied to all ranks; NULL: a question */
    size_t bytes;
    int timeout_ms;
    /* Returns 1 if all ranks have the data, 0 if some may not have it yet, or a
     * negative status. The backend calls it repeatedly after data has arrived,
     * with short pauses in which it makes progress; on rank 0 also once before
     * the data is sent, when the ranks are connected. If the backend times out
     * after the first call, the core names the ranks that did not arrive. */
    int (*arrived)(void *arg);
    void *arg;
} dscomm_bootstrap_t;

/* The slots of a backend. size is that of the table with which the module was
 * compiled; members are only added at the end. Required: open, close, isend,
 * irecv, cancel, progress, revoke, status; all but open may be set by trim. */
typedef struct dscomm_backend_ops {
    size_t size;
    size_t request_size; /* bytes of this backend's request */

    /* Makes the impl of a group. Collective over the group. Gives up after
     * open_ms and names the ranks that did not arrive. Calls on the store end
     * soon after that time, even if they were given a longer time-out. */
    dscomm_status_t (*open)(const dscomm_backend_args_t *args, void **ret_impl);
    /* Frees the impl. Local: never waits for peers. All works were completed or
     * cancelled before. */
    void (*close)(void *impl);
    /* Start one message. Messages to one peer with one tag are received in the
     * order sent. On failure the request was not started. */
    dscomm_status_t (*isend)(void *impl, const dscomm_message_t *message,
                             dscomm_request_t *request);
    dscomm_status_t (*irecv)(void *impl, const dscomm_message_t *message,
                             dscomm_request_t *request);
    /* Cancels a started request. The group is revoked or being freed; or the
     * group goes on, and the request is a receive that is no longer needed: a
     * message that comes later is kept for the next receive. never_sent is 1 if
     * the core knows that no message was or will be sent to that receive. After
     * cancel the backend must not touch the request or its buffer, unless it
     * sets held, because the transport does not release the buffer: then the
     * core neither uses nor frees the buffer until the process ends, if it is
     * the core's own. */
    void (*cancel)(void *impl, dscomm_request_t *request);
    /* Makes progress. Returns the number of requests that were completed; it
     * may return 1 also if only a part of a long message has moved. A group's
     * deadline restarts whenever the result is not 0. */
    unsigned (*progress)(void *impl);
    /* Revokes the group for all ranks, which all get the failure; the first
     * revocation is kept. Called from any thread; must not take a lock that
     * another slot may hold. The record need not name the collective to which
     * messages belong: the core names the call that fails. */
    void (*revoke)(void *impl, const dscomm_failure_t *failure);
    /* Returns OK, or the status of the failure with which the group was
     * revoked, and then writes that failure to *ret_failure if that is not
     * NULL. Cheap: called by every poll. */
    dscomm_status_t (*status)(void *impl, dscomm_failure_t *ret_failure);

    /* The following slots are optional. */

    /* Returns the DSCOMM_CAP_* of this impl. */
    uint64_t (*capabilities)(void *impl);
    /* Returns 1 if run and start take this collective, else 0. The answer must
     * be the same on all ranks; it may depend on coll, dtype, op, count (except
     * for a _v call, whose count is this rank's own), and on whether root is
     * DSCOMM_ROOT_FINALIZE. Without this slot the backend takes none; with
     * DSCOMM_CAP_NATIVE_COLLECTIVES it takes all, and native is not called. */
    int (*native)(void *impl, const dscomm_coll_args_t *args);
    /* Runs one collective from beginning to end. Never called while requests of
     * start are incomplete. Without slot start, the core runs a call with a
     * work over messages; then all ranks must make a collective in the same
     * form, blocking or with a work. The same holds with
     * DSCOMM_CAP_SEPARATE_MATCHING, where a collective of start never matches
     * one of run. */
    dscomm_status_t (*run)(void *impl, const dscomm_coll_args_t *args);
    /* Starts one collective. Collectives of one impl take effect in the order
     * in which they were started. The backend copies args; arrays in it stay
     * valid until the request is complete. */
    dscomm_status_t (*start)(void *impl, const dscomm_coll_args_t *args,
                             dscomm_request_t *request);
    /* Blocking forms of isend and irecv, for backends that are faster so. May
     * be called while requests are incomplete; these must make progress. The
     * head of request gets what was received. */
    dscomm_status_t (*send)(void *impl, const dscomm_message_t *message);
    dscomm_status_t (*recv)(void *impl, const dscomm_message_t *message,
                            dscomm_request_t *request);
    /* Sleeps until progress may have something to do, at most timeout_us.
     * Called after progress has returned 0 for a while. Without this slot the
     * core yields. */
    void (*wait)(void *impl, unsigned timeout_us);
    /* Writes a sentence to text, for the message of a failure: for which ranks
     * request (NULL: the oldest started collective) waits; or, for a request
     * that failed with ERR_PEER_FAILED on a group that goes on, the reason.
     * Returns the first of those ranks, or -1 if it is not known. */
    int (*explain)(void *impl, const dscomm_request_t *request, char *text,
                   size_t size);
    /* Memory that the transport moves without copies: whole pages, zeroed. The
     * core frees what is left before close. If mem_alloc returns
     * ERR_UNSUPPORTED, without a sentence, the core gives plain memory to the
     * user instead. */
    dscomm_status_t (*mem_alloc)(void *impl, size_t size, void **ret_memory);
    dscomm_status_t (*mem_free)(void *impl, void *memory);
    /* Called last on a group that ends in order, after its final barrier. From
     * then on, a peer that leaves has not died. */
    void (*quiesce)(void *impl);
    /* Called when dscomm_finalize() begins. This rank will start nothing more
     * on the group, except a world's last barrier (which may be messages, see
     * DSCOMM_TAG_COLLECTIVE), and the transport has accepted all that it sent.
     * If the backend can notify peers, a peer that has received all that this
     * rank sent, and still waits for something else of it, ends with
     * ERR_PEER_FAILED. Receives may still be incomplete. */
    void (*leave)(void *impl);
    /* Adapts ops, a copy for this impl alone: sets optional slots that it does
     * not need to NULL, equally on all ranks, or replaces slots. Called once,
     * after open; a table with it may lack all other required slots. */
    void (*trim)(void *impl, struct dscomm_backend_ops *ops);
    /* May run be given buffers in device memory? Called when the first such
     * buffer is passed; devices is the number of devices. NULL means yes, for
     * collectives that only move or reduce: no AVG, PREMUL_SUM or _v call, and
     * in place only all_reduce and broadcast; with DSCOMM_CAP_DEVICE_MEMORY
     * also for messages. Otherwise returns the reason, as static text. The core
     * replaces all other buffers in device memory by host memory; without this
     * slot, all. */
    const char *(*device)(void *impl, int devices);
    /* For backends whose launcher has connected the processes, so that rank 0's
     * address need not be known. Called before any open; collective over the
     * processes that the launcher has started, which must be the ranks of the
     * world. Answers a question (data NULL) locally, cheaply, and equally on
     * all ranks: OK if it would try, else ERR_UNSUPPORTED without a sentence.
     */
    dscomm_status_t (*bootstrap)(dscomm_bootstrap_t *bootstrap);
    /* Returns what this module finds on this machine, for
     * dscomm_backend_info(): a static phrase, "MPI libraries: openmpi, mpich".
     * Called from any thread; must not load a library. */
    const char *(*describe)(void);
    /* Takes back a started receive. Returns 1 if no message has begun to arrive
     * for it: the request is then cancelled as by cancel, and a message that
     * comes later is kept for the next receive. Returns 0 if a message has: the
     * receive goes on. Without this slot, receives can neither be cancelled nor
     * have a deadline of their own. */
    int (*withdraw)(void *impl, dscomm_request_t *request);
    /* Writes to text, for reports, what the impl has chosen by measurement. It
     * leaves text, "" before the call, unchanged if nothing was measured. */
    void (*tuning)(void *impl, char *text, size_t size);
    /* Returns 1 if a message has begun to arrive that a receive with wanted's
     * peer and tag would take, and writes source, tag and bytes of the oldest
     * such message to found; else 0. Called after progress. If ret_taken is not
     * NULL, that message is set aside: only a receive whose message.taken is
     * *ret_taken gets it. close frees messages that were not received. */
    int (*probe)(void *impl, const dscomm_message_t *wanted,
                 dscomm_request_t *found, void **ret_taken);
    /* Returns 1 if this rank sees that rank has begun the collective with
     * number sequence, or a later one, and writes that one to text; else 0.
     * Serves the collectives of run, because the core does not see those of
     * other ranks. */
    int (*begun)(void *impl, int rank, uint64_t sequence, char *text,
                 size_t size);
    /* Returns 1 if a message has begun to arrive for a started receive that is
     * in progress: from then on the group's deadline holds for the receive
     * instead of its own. Without this slot, the core learns so only when the
     * receive's own deadline has passed. */
    int (*matched)(void *impl, const dscomm_request_t *request);
    /* Called when the message of an early receive that is in progress is
     * awaited: from now on the group must fail if its peer dies. */
    void (*expect)(void *impl, dscomm_request_t *request);
    /* Sends a message if that needs neither a wait nor a request: 1, and the
     * buffer is free again. If it returns 0, the next isend on the group, if
     * there is one, is for the same message: it goes on with what has begun, or
     * finds out why nothing has. For backends without slot send. */
    int (*send_now)(void *impl, const dscomm_message_t *message);
    /* Lists the devices that the transport has on this machine, and what of
     * them open would choose under the present settings, for
     * dscomm_backend_devices(): calls visit for each device and each part of
     * one. Returns OK if open would find a device, else the reason by
     * dscomm_fail(). Called from any thread; may open devices, and closes them
     * again. */
    dscomm_status_t (*devices)(
        void (*visit)(void *arg, const dscomm_backend_device_t *item),
        void *arg);
    /* Lets put and get of all other ranks reach the bytes from address on,
     * until mem_deregister. Writes what they need to key, of DSCOMM_BACKEND_KEY
     * bytes, and *ret_registered, for mem_deregister. If it returns
     * ERR_UNSUPPORTED, without a sentence, or the slot is missing, the core
     * serves accesses to that memory by messages; *ret_registered, which is
     * NULL at first, may be set all the same. */
    dscomm_status_t (*mem_register)(void *impl, void *address, size_t bytes,
                                    void *key, void **ret_registered);
    /* ERR_STATE: an operation that was begun may use the memory, which stays
     * registered. The end of a group ends its registrations in any case. */
    dscomm_status_t (*mem_deregister)(void *impl, void *registered);
    /* Start an access. A message that this rank sends to the same peer later
     * arrives after the data of a put. On failure the request was not started;
     * the group goes on unless the backend has revoked it. */
    dscomm_status_t (*put)(void *impl, const dscomm_access_t *access,
                           dscomm_request_t *request);
    dscomm_status_t (*get)(void *impl, const dscomm_access_t *access,
                           dscomm_request_t *request);
    /* Receives a message if it is there or comes within so many polls: 1, and
     * head has what was received, or ERR_TRUNCATED. If it returns 0, the core
     * calls irecv for the same message at once, which goes on with what has
     * begun, also if the group has ended. For backends without slot recv. */
    int (*recv_now)(void *impl, const dscomm_message_t *message,
                    dscomm_request_t *head, unsigned polls);
    /* Fills the members of *info that are within info->size, the others are 0,
     * for a call that run would take now, see dscomm_native_info_t; with a
     * broadcast's buffer as send on all ranks. Never called for a _v
     * collective. Returns OK, or ERR_UNSUPPORTED without a sentence. */
    dscomm_status_t (*native_info)(void *impl, const dscomm_coll_args_t *args,
                                   dscomm_native_info_t *info);
    /* The same as mem_register for memory of a device, in which the data of
     * this rank's put and get may be, too. The descriptor is the caller's, and
     * is closed after the call. On failure, the backend has logged the reason;
     * without this slot, mem_deregister, put or get such memory is refused. */
    dscomm_status_t (*mem_register_device)(void *impl,
                                           const dscomm_dma_buf_t *memory,
                                           void *key, void **ret_registered);
} dscomm_backend_ops_t;

/* The type of a setting. The environment has a text; dscomm_setting_number()
 * gives a number: BOOL 0/1, INT, BYTES ("64K", "4M"), MSEC (milliseconds; the
 * environment has seconds, "1.5"), ENUM (index in words). STRING has no
 * number. */
typedef enum {
    DSCOMM_SETTING_BOOL = 0,
    DSCOMM_SETTING_INT = 1,
    DSCOMM_SETTING_BYTES = 2,
    DSCOMM_SETTING_MSEC = 3,
    DSCOMM_SETTING_ENUM = 4,
    DSCOMM_SETTING_STRING = 5
} dscomm_setting_type_t;

/* Added to a row's type: a tuning file (DSCOMM_TUNING_FILE) may give the
 * setting. That is for settings that only change how fast the backend is, and
 * for which ranks with different values do no harm or fail. Never for paths,
 * secrets, devices and the like. */
#define DSCOMM_SETTING_TUNABLE 0x100

typedef struct dscomm_setting {
    const char *name; /* "DSCOMM_SHM_RING" */
    int type; /* dscomm_setting_type_t, with DSCOMM_SETTING_TUNABLE or without
               */
    const char *default_value; /* as in the environment; NULL: none */
    int64_t min, max; /* of INT, BYTES, MSEC (in ms) */
    /* ENUM: the words, "auto|yes|no". STRING: a phrase on what is accepted, or
     * NULL; with "path", the variable is ignored in set-uid programs. */
    const char *words;
    const char *help;
} dscomm_setting_t;

typedef struct dscomm_backend {
    uint32_t abi; /* DSCOMM_BACKEND_ABI */
    uint32_t priority; /* "auto" tries the largest first */
    const char *name; /* as in the file's name */
    const dscomm_backend_ops_t *ops;
    /* ends with a row whose name is NULL; or NULL */
    const dscomm_setting_t *settings;
    /* Returns NULL if this module can serve a world whose ranks are on hosts[0
     * ... ranks-1] (equal text: they can share memory), else the reason: static
     * text or dscomm_last_error(). Each rank asks for its own host alone, and
     * rank 0 then for all. Optional. Local and cheap. */
    const char *(*usable)(const char *const *hosts, int ranks);
    /* Called by "auto" in place of usable for the calling process's host alone:
     * also returns a reason if another backend is better there, whatever the
     * priorities. Optional. */
    const char *(*advisable)(void);
    /* As advisable, but called if another backend would use this one for a part
     * of its ranks. oversubscribed: as in dscomm_backend_args_t. Optional. */
    const char *(*beneath)(int oversubscribed);
} dscomm_backend_t;

#define DSCOMM_BACKEND_EXPORT DSCOMM_API

/* Services of libdscomm for backends. They live in the symbol version
 * DSCOMM_PRIVATE_3, which is renamed with every DSCOMM_BACKEND_ABI. */

/* Makes progress on other groups of the process, and on custom works of group;
 * cheap if there are none. group: the one on which the slot waits. Returns 1 if
 * something moved. */
DSCOMM_API int dscomm_backend_progress_others(dscomm_group_t *group);

/* Functions for open, which waits for other ranks. args is the argument of
 * open. */

/* OK, or the reason why the group cannot be made any more: the process of one
 * of its ranks has ended, another rank has failed in open, or the parent was
 * revoked. Call it about every DSCOMM_CREATION_LOOK_MS, unless the next
 * function waits. After a failure check once more for what is awaited, because
 * it may have arrived before. Cheap. */
#define DSCOMM_CREATION_LOOK_MS 20
DSCOMM_API dscomm_status_t
dscomm_backend_creation_check(const dscomm_backend_args_t *args);
/* dscomm_store_multi_get() from args->store, within timeout_ms and the time for
 * open. It fails as soon as the function above does. The sentence of
 * ERR_TIMEOUT is about keys. */
DSCOMM_API dscomm_status_t dscomm_backend_creation_get(
    const dscomm_backend_args_t *args, const char *const *keys, size_t count,
    int timeout_ms, void **ret_values, size_t *ret_sizes);
/* Always fails, because a connection to rank has ended: with the reason, which
 * may take a moment to become known, else with ERR_PEER_FAILED. */
DSCOMM_API dscomm_status_t
dscomm_backend_creation_lost(const dscomm_backend_args_t *args, int rank);
/* Publishes the failure of this rank, dscomm_last_error(). The first failure of
 * a group is kept; a rank that blames another rank (ERR_PEER_FAILED,
 * ERR_TIMEOUT, ERR_IO) takes over that one. Returns the resulting status. The
 * core calls this when open fails; a backend that sends its failure to other
 * ranks calls it before. */
DSCOMM_API dscomm_status_t dscomm_backend_creation_fail(
    const dscomm_backend_args_t *args, dscomm_status_t status);
/* Describes a rank for messages: "rank 3 (pid 812 on b)", with its number in
 * the world. Returns text. */
#define DSCOMM_CREATION_RANK_MAX 128
DSCOMM_API const char *
dscomm_backend_creation_rank(const dscomm_backend_args_t *args, int rank,
                             char text[DSCOMM_CREATION_RANK_MAX]);
/* Fails with DSCOMM_ERR_TIMEOUT and the names of the ranks whose keys are not
 * set; keys has one of each rank, and dscomm_backend_creation_get() has timed
 * out. */
DSCOMM_API dscomm_status_t dscomm_backend_creation_missing(
    const dscomm_backend_args_t *args, const char *const *keys);

/* Failure records. group is args->group. */

/* Makes a record about group. The culprit's number in the world is rank, or -1.
 * pid is the culprit's if it runs on this machine; 0: what group knows of that
 * rank. The caller adds collective and detail. Any thread. */
DSCOMM_API void dscomm_backend_failure(const dscomm_group_t *group,
                                       dscomm_status_t status,
                                       dscomm_failure_kind_t kind, int rank,
                                       int64_t pid,
                                       dscomm_failure_t *ret_failure);
/* Sets the detail: one line, cut off if it is too long. */
DSCOMM_API void dscomm_backend_failure_detail(dscomm_failure_t *failure,
                                              const char *format, ...)
    DSCOMM_PRINTF(2, 3);
/* Makes the record of this thread's last failure, which had status: the record
 * of the last dscomm_backend_fail(), or one whose detail is
 * dscomm_last_error(), after "group '...': " while group is made. */
DSCOMM_API void dscomm_backend_failure_last(const dscomm_group_t *group,
                                            dscomm_status_t status,
                                            dscomm_failure_t *ret_failure);
/* For a backend that cannot notify ranks without a connection: a peer that
 * seems to have died may have ended because the group had failed. If a rank has
 * published that failure in the store, failure becomes that one. It waits for
 * the store, 250 ms at most: call it without a lock, and once. */
DSCOMM_API void dscomm_backend_failure_earlier(const dscomm_group_t *group,
                                               dscomm_failure_t *failure);
/* Improves the record of a message that has timed out, whose culprit is the
 * rank for which it waits: if that rank waits in a blocking message for another
 * one, as the flight recorder of this machine shows, that one becomes the
 * culprit, and so on to a rank that waits for none. A circle of ranks changes
 * nothing.
 */
DSCOMM_API void dscomm_backend_failure_follow(const dscomm_group_t *group,
                                              dscomm_failure_t *failure);
/* Makes failure this thread's last one: dscomm_last_error() is its sentence.
 * Returns its status. */
DSCOMM_API dscomm_status_t dscomm_backend_fail(const dscomm_failure_t *failure);
/* The number in group of a rank whose number in the world is rank. Details must
 * use these numbers, because an impl may serve only some of a group's ranks.
 * The second function returns it as text, as dscomm_backend_creation_rank()
 * does: "rank 1 (pid 812 on b)"; pid as above. Any thread. */
DSCOMM_API int dscomm_backend_rank_number(const dscomm_group_t *group,
                                          int rank);
DSCOMM_API const char *dscomm_backend_rank(const dscomm_group_t *group,
                                           int rank, int64_t pid,
                                           char text[DSCOMM_CREATION_RANK_MAX]);
/* A collective that a rank has called, as seen by another rank. */
typedef struct dscomm_call_seen {
    int rank; /* its caller, in the world */
    int64_t pid; /* as above */
    uint32_t fingerprint;
    int coll;
    uint64_t sequence;
    char text[200]; /* dscomm_coll_describe() */
} dscomm_call_seen_t;
/* Makes the record of a mismatch: of so many ranks, own and other have called
 * different collectives. look writes the call of a rank, or returns 0 if that
 * call is not known; it must know those of own and other. It waits up to 200 ms
 * until look knows the calls of all ranks, or more than half of them are alike.
 * If at least three calls are known and one rank differs from most, that rank
 * is the culprit; else own. */
DSCOMM_API void dscomm_backend_mismatch(
    const dscomm_group_t *group, int ranks, int own, int other,
    int (*look)(const void *arg, int rank, dscomm_call_seen_t *ret_call),
    const void *arg, dscomm_failure_t *ret_failure);
/* Improves the record of a mismatch of counts in gather_v, scatter_v or
 * all_to_all_v, whose culprit is one of two ranks that disagree: the culprit
 * becomes the rank that contradicts most others, as far as the calls of this
 * machine's ranks show. Waits up to 200 ms for these, and, if two ranks are
 * equally likely, up to 200 ms for another machine to end the group, or, in
 * scatter_v, to contradict the root as well, for which it asks the store. */
DSCOMM_API void dscomm_backend_mismatch_counts(const dscomm_group_t *group,
                                               dscomm_failure_t *failure);
/* The packed record has the same bytes on every machine. pack writes at most
 * DSCOMM_FAILURE_PACKED bytes and returns their number. unpack returns 1, or 0
 * if data is not a record of this version; more bytes after a record are fine.
 */
#define DSCOMM_FAILURE_PACKED 832
DSCOMM_API size_t dscomm_backend_failure_pack(const dscomm_failure_t *failure,
                                              void *buffer);
DSCOMM_API int dscomm_backend_failure_unpack(const void *data, size_t size,
                                             dscomm_failure_t *ret_failure);

/* 1 if works or messages of any group of the process are incomplete. A slot
 * that cannot call the functions above while it waits must then make progress
 * in another way, for example by a thread. Cheap. */
DSCOMM_API int dscomm_backend_has_works(void);

/* Calls visit for each address of this host at which other ranks may reach this
 * process, best first: those of the interfaces that DSCOMM_SOCKET_IFNAME, or
 * else NCCL_SOCKET_IFNAME, chooses; without a choice, those that are up, and
 * the loopback only if there is no other. Ends when visit returns 0.
 * ERR_ENVIRONMENT if the choice has no interface; the sentence names those that
 * there are. */
struct sockaddr;
DSCOMM_API dscomm_status_t dscomm_backend_interfaces(
    int (*visit)(void *arg, const struct sockaddr *address, unsigned length),
    void *arg);

/* The number of a setting: the environment's, else that of the tuning file,
 * else the default. ERR_ENVIRONMENT with the accepted values if it is invalid.
 */
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

/* The fastest kernel for this processor; NULL if op does not apply to dtype. */
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

/* For run, start and what they have started: this collective's phase begins,
 * and the one before ends. A backend may do so, for a profiler; it costs a
 * predictable branch if nobody wants to know. The core begins with
 * DSCOMM_PHASE_OTHER. */
DSCOMM_API void dscomm_phase_switch(dscomm_phases_t *phases,
                                    dscomm_phase_t phase);
static inline void dscomm_phase(const dscomm_coll_args_t *args,
                                dscomm_phase_t phase)
{
    if (args->phases)
        dscomm_phase_switch(args->phases, phase);
}

/* For slots inside a call that cannot make progress on works. Call begin before
 * it and end after it, with the same help, whose turn and arg are set. If the
 * call takes longer than about 0.1 ms, a thread of the library calls turn
 * repeatedly, with short pauses, which grow while turn returns 0 (nothing
 * moved). end waits for a turn that has begun. That thread blocks all signals.
 * If the thread cannot be created, works make progress later. turn must not
 * wait. */
typedef struct dscomm_help {
    int (*turn)(void *arg);
    void *arg;
    struct dscomm_help *next; /* next and state are the library's */
    int state;
} dscomm_help_t;
DSCOMM_API void dscomm_help_begin(dscomm_help_t *help);
DSCOMM_API void dscomm_help_end(dscomm_help_t *help);

#ifdef __cplusplus
}
#endif

#endif
