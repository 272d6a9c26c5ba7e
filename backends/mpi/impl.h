/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and functions that the sources of an engine share: a group in a
 * process, and its requests. */
#ifndef BACKENDS_MPI_IMPL_H
#define BACKENDS_MPI_IMPL_H

#include "backends/ending.h"
#include "backends/mpi/engine.h"

#include <glib.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#if defined(OPEN_MPI)
#define ENGINE_NAME "openmpi"
#else
#define ENGINE_NAME "mpich"
#endif

#define NS_PER_MS INT64_C(1000000)

/* Tests of a request before it is left to MPI; most complete meanwhile. */
#define LAST_TESTS 64

typedef enum { ENGINE_SEND, ENGINE_RECEIVE } engine_kind_t;

/* The core's head comes first. */
typedef struct engine_request {
    dscomm_request_t head;
    engine_kind_t kind;
    unsigned parts; /* incomplete MPI requests */
    /* cancelled: the library owns the memory, and frees it on completion */
    int orphan;
    int delayed; /* not begun: see engine_may_call() */
    dscomm_status_t failure;
    TAILQ_ENTRY(engine_request)
    link; /* of a message that MPI has not been given yet */
    dscomm_message_t message;
    int64_t key; /* the key of its tag, see message.c */
    /* until completion: buffer of a message that is longer than the receive */
    void *stage;
} engine_request_t;

/* A message that arrived before its receive was posted. */
typedef struct engine_arrival {
    TAILQ_ENTRY(engine_arrival) link;
    MPI_Message message;
    size_t bytes;
    int64_t key;
    int source;
    int taken; /* set aside by a probe */
} engine_arrival_t;

/* Incomplete MPI requests and their owners, without gaps. */
typedef struct {
    MPI_Request *handles;
    engine_request_t **owners;
    MPI_Status *statuses;
    int *indices;
    int count, room;
} engine_active_t;

typedef struct engine {
    TAILQ_ENTRY(engine) link; /* in library.c */
    const char *name;
    dscomm_group_t *group;
    int rank, ranks, timeout_ms;
    const int *world_ranks;
    MPI_Comm comm;
    int blocking; /* on all ranks: MPI's blocking calls are used */
    size_t chunk; /* most elements of one MPI call */
    int tag_limit; /* user tags below it are MPI tags */
    /* number of MPI tags for the core's tags, from tag_limit on */
    int tag_room;

    /* lock is own_lock, or one lock for all groups if MPI allows only one
     * thread at a time. It guards the members below, and is held during calls
     * of MPI except those of run. */
    pthread_mutex_t own_lock, *lock;
    pthread_t opener;
    int funneled; /* 1: only thread opener may call MPI */
    /* requests that other threads have started, for thread opener */
    TAILQ_HEAD(, engine_request) delayed;
    engine_active_t active;
    TAILQ_HEAD(, engine_request) receives; /* oldest first */
    TAILQ_HEAD(, engine_arrival) arrivals;
    int *headers; /* of each rank: the tag of its next message, or -1 */
    unsigned completed;
    /* cancelled receives whose messages may still come */
    TAILQ_HEAD(, engine_request) owed;
    int strayed; /* 1: a send was cancelled that may never be received */

    /* engine_poll(), called by failure.c, which must not include headers above
     * it: a failure makes progress on its notices. */
    void (*poll)(struct engine *engine);
    ending_t ending;
    atomic_int notify_due; /* 1: notices must be sent to the other ranks */
    atomic_long notices_checked; /* coarse clock at the last look for notices */
    uint32_t mark; /* identifies the group in notices */
    int met_all; /* all of MPI's ranks met when the group ended */
    int closed; /* group is invalid: see unclean in open.c */
} engine_t;

/* latch.c */

/* A latch: set when a call of MPI has returned. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
} engine_latch_t;

/* The clock of deadlines. */
static inline int64_t mpi_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

void engine_latch_init(engine_latch_t *latch);
void engine_latch_set(engine_latch_t *latch);
/* Returns 1 if the latch is set, 0 at end_ns (mpi_now_ns()), or a
 * negative status: the reason why the group of args, which may be NULL, can no
 * longer be made. */
int engine_latch_await(engine_latch_t *latch, const dscomm_backend_args_t *args,
                       int64_t end_ns);
/* As pthread_create(), but the thread gets no signals. */
int engine_thread_start(void *(*body)(void *arg), void *arg,
                        pthread_t *ret_thread);

/* begin.c */

/* Calls MPI_Init_thread(), or waits for an earlier call of it, within a time.
 * Returns as soon as the group of args, which may be NULL, can no longer be
 * made. *ret_level is the level that MPI provides. */
dscomm_status_t engine_begin(const dscomm_backend_args_t *args, int timeout_ms,
                             int *ret_level);
/* 1 if the call above has initialised MPI, or will do so. */
int engine_has_begun(void);
/* Calls MPI_Finalize(), if engine_begin() initialised MPI, and waits so long
 * for its end. */
void engine_end(int timeout_ms);

/* library.c */

/* Initialises MPI as engine_begin() does, unless it is initialised.
 * *ret_level: which threads may call it, as MPI_Query_thread(). */
dscomm_status_t engine_library_open(const dscomm_backend_args_t *args,
                                    int timeout_ms, int *ret_level);
/* One lock for the whole process, if MPI allows one thread at a time. */
extern pthread_mutex_t engine_library_lock;
/* Between these two calls, errors of MPI calls without a group are returned
 * and do not end the program, whatever error handler the program has set. */
void engine_errors_hold(void);
void engine_errors_release(void);
/* Adds a group to those that are notified when the program finalises MPI. */
void engine_library_enlist(engine_t *engine);
void engine_library_delist(engine_t *engine);
/* Whether one of these groups has ended because a rank died or was silent. */
bool engine_library_lost_rank(void);
int engine_library_alive(void);
/* Sets whether some rank may never call MPI_Finalize(). */
void engine_library_set_unsafe(int so);
/* Whether a message that nobody has received does harm: MPICH 4.2 over UCX
 * aborts the process in MPI_Finalize(). */
bool engine_must_receive(void);
/* Records whether there may be such a message. Then MPI is not finalised,
 * although Hydra kills the other ranks (SIGKILL) if one ends without
 * finalising. */
void engine_library_strand(bool so);
/* Counts threads that are inside MPI: by is 1 when a thread enters, -1 when it
 * has returned. A thread that its group has abandoned may never return; then
 * MPI is not finalised. */
void engine_library_enter(int by);

/* open.c */
dscomm_status_t engine_open(const dscomm_backend_args_t *args, void **ret_impl);
void engine_quiesce(void *impl);
void engine_close(void *impl);
/* ERR_ENVIRONMENT if MPI has fewer ranks than the group. */
dscomm_status_t engine_check_world(int ranks);

/* bootstrap.c */
dscomm_status_t engine_bootstrap(dscomm_bootstrap_t *bootstrap);

/* failure.c */

void engine_revoke(void *impl, const dscomm_failure_t *failure);
dscomm_status_t engine_status(void *impl, dscomm_failure_t *ret_failure);
/* The failure of a call on a group that is revoked, or OK. */
dscomm_status_t engine_check(engine_t *engine);
/* Revokes the group for this thread's last failure, which has status, and fails
 * with that unless the group has ended before. */
dscomm_status_t engine_give_up(engine_t *engine, dscomm_status_t status);
/* Revokes the group because rank has sent invalid bytes; what names them. */
void engine_revoke_sender(engine_t *engine, int rank, const char *what);
/* Handles an error of MPI: call what has failed with code. Revokes the
 * group. */
dscomm_status_t engine_fail(engine_t *engine, int code, const char *what);
/* The same; the status is otherwise, unless code gives a better one. */
dscomm_status_t engine_fail_as(engine_t *engine, dscomm_status_t otherwise,
                               int code, const char *what);
/* As engine_fail(), for a message to or from peer, a rank of the group. That
 * rank becomes the culprit, unless MPI gives a reason of this process. */
dscomm_status_t engine_fail_peer(engine_t *engine, int peer, int code,
                                 const char *what);
/* Looks for notices every few ms, so that a rank that calls this often, or
 * makes only blocking calls, also learns of a failure. Any thread, with or
 * without the lock. */
void engine_check_notices(engine_t *engine);
/* Releases the lock. */
void engine_leave(engine_t *engine);

/* notice.c */

/* User tags that the engine reserves: the last ones. */
#define WIRE_HEADER(engine) ((engine)->tag_limit - 1)
#define WIRE_FOLLOW(engine) ((engine)->tag_limit - 2)
#define WIRE_NOTICE(engine) ((engine)->tag_limit - 3)
#define TAGS_TAKEN 3
/* With the lock held: sends the notices that are due to the other ranks. */
void engine_notify(engine_t *engine);
/* Handles a notice of source, which has revoked the group. */
void engine_notified(engine_t *engine, int source, MPI_Message *message,
                     size_t bytes);

/* active.c: with the lock held. */

/* Reserves room for so many more handles, and for one a rank, so that notices
 * can be sent when memory is short. */
dscomm_status_t engine_reserve(engine_t *engine, size_t count);
void engine_add(engine_t *engine, MPI_Request handle, engine_request_t *owner);
/* Tests the requests, and completes those that MPI has completed. */
void engine_test(engine_t *engine);
/* Takes over a request that the core no longer waits for. Its MPI requests
 * complete later, and the result is dropped. */
void engine_orphan(engine_t *engine, engine_request_t *request);
/* Abandons the requests that are left. */
void engine_active_clear(engine_t *engine);

/* message.c */

dscomm_status_t engine_isend(void *impl, const dscomm_message_t *message,
                             dscomm_request_t *request);
dscomm_status_t engine_irecv(void *impl, const dscomm_message_t *message,
                             dscomm_request_t *request);
void engine_cancel(void *impl, dscomm_request_t *request);
int engine_withdraw(void *impl, dscomm_request_t *request);
int engine_matched(void *impl, const dscomm_request_t *request);
int engine_probe(void *impl, const dscomm_message_t *wanted,
                 dscomm_request_t *found, void **ret_taken);
unsigned engine_progress(void *impl);
/* Whether this thread may call MPI. Below MPI_THREAD_SERIALIZED only one
 * thread may; what other threads start begins when that one makes progress. */
static inline int engine_may_call(const engine_t *engine)
{
    return !engine->funneled || pthread_equal(pthread_self(), engine->opener);
}
/* With the lock held. */
void engine_poll(engine_t *engine);
/* MPI's largest tag. */
int engine_tag_bound(void);
void engine_message_setup(engine_t *engine);
/* Receives all messages that have arrived into memory that is then freed. */
void engine_message_discard(engine_t *engine);
void engine_message_clear(engine_t *engine);
int engine_explain(void *impl, const dscomm_request_t *request, char *text,
                   size_t size);

/* device.c */

const char *engine_device(void *impl, int devices);
/* The reason that engine_device() would give if there were a device. */
const char *engine_device_why(void);

/* types.c */

extern const MPI_Datatype engine_types[DSCOMM_DTYPE_COUNT];
/* MPI's operator for op on dtype, or MPI_OP_NULL; for AVG that of the sum. */
MPI_Op engine_op(int dtype, int op);
dscomm_status_t engine_types_setup(void);

/* collective.c */

int engine_native(void *impl, const dscomm_coll_args_t *args);
dscomm_status_t engine_run(void *impl, const dscomm_coll_args_t *args);

#endif
