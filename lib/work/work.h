/* SPDX-License-Identifier: BSD-3-Clause */
/* Works. A work is one started call with the backend's request. */
#ifndef LIB_WORK_H
#define LIB_WORK_H

#include "lib/base/clock.h"
#include "lib/group/group.h"

#include <dscomm/hook.h>
#include <dscomm/memory.h>
#include <dscomm/work.h>
#include <stdbool.h>

/* The type of a call. */
enum {
    CALL_COLLECTIVE,
    CALL_MESSAGE,
    CALL_COMPOUND, /* coalesced calls: children of their own */
    CALL_CUSTOM, /* made by the caller of dscomm_work_create() */
    CALL_ACCESS, /* put or get, or one that another rank asks for; hooks do not
                    see it */
};

/* A buffer that replaces the buffers of a call: a copy of buffers in device
 * memory, or one buffer for several fused calls. It is the first member of its
 * maker's structure. */
typedef struct dscomm_bounce {
    /* Copies the results to the call's buffers; received: bytes of a
     * message. */
    dscomm_status_t (*finish)(struct dscomm_bounce *bounce, size_t received);
    void (*free)(struct dscomm_bounce *bounce);
} dscomm_bounce_t;

/* The time that a device takes for a call, see device-time.c. */
typedef struct dscomm_device_time dscomm_device_time_t;

/* The description of one call, recorded or started. */
typedef struct dscomm_call {
    int type; /* CALL_* */
    int async; /* the caller gets a work */
    int internal; /* made by the library itself: hooks do not see it */
    /* of a collective: the algorithm that runs it; NULL: the backend does */
    const struct dscomm_algorithm *algorithm;
    dscomm_bounce_t
        *bounce; /* NULL: none; owned by the work, if there is one */
    /* A receive's own deadline, ns: if no message has come by then, it is taken
     * back. INT64_MAX: never; 0: the group's deadline holds. */
    int64_t deadline_ns;
    dscomm_device_time_t *time; /* NULL: it is not measured */
    uint32_t parts; /* number of coalesced calls fused into it; 0: none */
    uint64_t recorded; /* its serial in the flight recorder; 0: none yet */
    union {
        dscomm_coll_args_t coll;
        struct {
            dscomm_message_t message;
            int receive; /* 0: a send */
            int dtype;
            size_t count;
            uint64_t sequence;
            size_t place; /* of a coalesced receive: its number among those */
        } p2p;
        struct {
            dscomm_work_ops_t ops;
            void *state;
        } custom;
        struct {
            bool gets; /* false: puts */
            bool served; /* peer accesses this rank's memory */
            bool native; /* the backend makes it */
            bool on_device; /* data is memory of a device */
            int peer;
            void *data; /* this rank's buffer */
            size_t bytes;
            uint64_t id, offset; /* of the memory, and in it */
            /* served: the memory; NULL: none yet. Else: that of data on a
             * device, or NULL. */
            dscomm_mem_t *mem;
            void *taken; /* served: the message that asks for it */
            unsigned char key[DSCOMM_BACKEND_KEY]; /* the backend's */
        } access;
    };
} dscomm_call_t;

/* The functions of one kind of work, in static memory. A function may be NULL:
 * then nothing is done, unless its comment says otherwise. All are called with
 * the group's lock held. */
typedef struct dscomm_work_kind {
    /* Starts the call. The call may complete at once; work->request.status then
     * has the result. On failure nothing was started. */
    dscomm_status_t (*start)(dscomm_work_t *work);
    /* Advances what the core itself does for the work. Called after each
     * progress of the backend. */
    void (*advance)(dscomm_work_t *work);
    /* Cancels what was started. NULL: cancels the backend's request. */
    void (*cancel)(dscomm_work_t *work, dscomm_status_t status);
    /* Called once, when a started work has completed or was cancelled. */
    void (*end)(dscomm_work_t *work);
    /* Called for a compound when one of its children has ended; frees the
     * child. */
    void (*child_end)(dscomm_work_t *child, dscomm_status_t status);
    /* Frees the kind's own memory; may be called again. */
    void (*release)(dscomm_work_t *work);

    /* The work waits for messages, numbered from 0: returns the rank that
     * message index waits for, or -1 beyond the last. Only for a kind that has
     * a diagnosis. */
    int (*peer)(const dscomm_work_t *work, uint32_t index);
    /* Called when nothing has come for a while: from now on, accepts headers of
     * other calls from all ranks, to find a mismatch (see schedule/early.h). */
    void (*post_early)(dscomm_work_t *work);
    /* The next two look for a mismatch by the diagnosis. They return
     * ERR_MISMATCH and *ret_failure if another rank has made another call, else
     * OK. They may release the lock, and the work may be freed when they
     * return. */
    /* Called after the work has waited for a while. NULL: this kind has no
     * diagnosis. */
    dscomm_status_t (*look)(dscomm_work_t *work, dscomm_failure_t *ret_failure);
    /* Called when the work's deadline has passed. *ret_failure is a record of
     * the group; with OK, its culprit and detail become the ranks that are
     * late. NULL: the backend explains it. */
    dscomm_status_t (*overdue)(dscomm_work_t *work,
                               dscomm_failure_t *ret_failure);
    /* Called for a call that has its own deadline: if that has passed at now
     * (ns), completes the work and returns 1; else 0. */
    int (*expire)(dscomm_work_t *work, int64_t now);
} dscomm_work_kind_t;

/* An operation that began under hooks; hooks is NULL without hooks. */
typedef struct {
    const dscomm_hooks_t *hooks;
    uint64_t token;
    int64_t waited_ns; /* in calls that waited for the work */
    int64_t ended_ns; /* the time of the end, if waits are timed */
} dscomm_hook_span_t;

struct dscomm_work {
    /* the final status, unless IN_PROGRESS; stored last */
    _Atomic(dscomm_status_t) status;
    dscomm_group_t *group;
    const dscomm_work_kind_t *kind; /* NULL: never used */
    dscomm_call_t call;
    dscomm_phases_t phases; /* call.coll's, if the hooks want them */
    dscomm_work_t *next, *prev; /* pending list; next: free list */
    int pending; /* on the pending list */
    int held; /* 1: a blocking call owns it, and unless it is a compound, holds
                 the group's lock */
    int zombie; /* 1: the user freed it before it was complete */
    char *text; /* sentence of a failure; NULL: no memory for one */
    size_t *displs; /* owned displacements of a _v call */
    void *copy; /* owned bytes of an internal send */
    /* Time without progress on the group, in ns: of the waits and tests for
     * this work, and of the progress thread; see is_overdue(). */
    int64_t waited_ns, looked_ns; /* looked_ns: the time of the last test */
    uint64_t seen; /* works.completed at that time */
    /* The time without progress that it may have. 0: as long as the group's. */
    int timeout_ms;
    dscomm_hook_span_t span;
    uint64_t recorded; /* serial in the flight recorder; 0: none */
    struct dscomm_run *run; /* of a schedule */
    dscomm_work_t *compound; /* the compound of which this is a child */
    struct {
        size_t remaining; /* children not retired */
        dscomm_status_t failure; /* the first one */
        dscomm_message_info_t *received; /* results of receives */
        size_t receives; /* their number */
    } children; /* of a compound */
    /* with the backend's part, request_size bytes in all */
    _Alignas(64) dscomm_request_t request;
};

/* The following are called with the group's lock held, unless the comment says
 * otherwise. */

/* Takes a work from the group's free list and copies call into it. The work
 * owns call->bounce and call->time, which are freed also on failure. */
dscomm_status_t dscomm_priv_work_new(dscomm_group_t *group,
                                     const dscomm_work_kind_t *kind,
                                     const dscomm_call_t *call,
                                     dscomm_work_t **ret_work);
/* Returns a work to the free list; nothing may refer to it. */
void dscomm_priv_work_discard(dscomm_work_t *work);
/* Starts work. On failure nothing was started, and the caller still owns
 * work. */
dscomm_status_t dscomm_priv_work_launch(dscomm_work_t *work);
/* If the group has ended, notes the oldest pending collective for the failure
 * record. */
void dscomm_priv_works_interrupt(dscomm_group_t *group);
/* Gives a work that fails the sentence of failure, which has ended its
 * group. */
void dscomm_priv_work_explain(dscomm_work_t *work,
                              const dscomm_failure_t *failure);
/* Completes a work with status and, if not NULL, the sentence text. Frees the
 * work if its user freed it before. */
void dscomm_priv_work_retire(dscomm_work_t *work, dscomm_status_t status,
                             const char *text);
/* Cancels a started work: it completes with status and text, unless it is
 * complete already. */
void dscomm_priv_work_cancel(dscomm_work_t *work, dscomm_status_t status,
                             const char *text);
/* Cancels all pending works. */
void dscomm_priv_works_cancel(dscomm_group_t *group, dscomm_status_t status,
                              const char *text);
/* Advances works, or only custom ones, and retires those that are complete. */
void dscomm_priv_works_scan(dscomm_group_t *group, bool only_custom);
/* If the group is revoked, ends all its works and returns 1. */
int dscomm_priv_works_broken(dscomm_group_t *group);
/* Counts a pending work that only the core advances, by 1 or -1: while there is
 * one, blocking calls are works as well. */
static inline void dscomm_priv_works_scheduled(dscomm_group_t *group, int more)
{
    const bool before = group->works.scheduled > 0;

    group->works.scheduled += (unsigned)more;
    if (!before)
        dscomm_priv_group_set(group, GROUP_SCHEDULED);
    else if (!group->works.scheduled)
        dscomm_priv_group_clear(group, GROUP_SCHEDULED);
}
/* Waits until all collectives of the group are complete. May release the lock
 * while it waits. */
void dscomm_priv_works_drain(dscomm_group_t *group);
/* Frees the memory of all works. Called without the lock, when no thread uses
 * the group any more. */
void dscomm_priv_works_destroy(dscomm_group_t *group);

/* The following are called without the group's lock. */

/* Starts call and returns its work; the caller waits for it or gives it to the
 * user. */
dscomm_status_t dscomm_priv_work_start(dscomm_group_t *group,
                                       const dscomm_work_kind_t *kind,
                                       const dscomm_call_t *call,
                                       dscomm_work_t **ret_work);
/* Starts, waits and frees. ret_request, if not NULL, gets the request's head
 * once the call was started. */
dscomm_status_t dscomm_priv_work_block(dscomm_group_t *group,
                                       const dscomm_work_kind_t *kind,
                                       const dscomm_call_t *call,
                                       dscomm_request_t *ret_request);
/* Returns how often a wait on group polls before it looks at the clock. */
int dscomm_priv_work_spins(const dscomm_group_t *group);
/* Waits until all collectives of the group are complete. */
void dscomm_priv_works_await(dscomm_group_t *group);
/* Waits until work is complete, at most timeout_ms. */
dscomm_status_t dscomm_priv_work_wait(dscomm_work_t *work, int timeout_ms);

/* Writes a description of the work's call for messages: "recv from rank 2 with
 * tag 7". */
void dscomm_priv_work_describe(const dscomm_work_t *work, char *text,
                               size_t size);
/* The same of a put or get; returns text. */
const char *dscomm_priv_access_text(const dscomm_call_t *call, char *text,
                                    size_t size);

/* Writes the sentence of a receive whose message is longer than its room, in
 * bytes, to text, which has room for DSCOMM_ERROR_MAX; returns that. */
const char *dscomm_priv_truncated_text(const dscomm_group_t *group,
                                       const dscomm_request_t *request,
                                       size_t room, char *text);

/* Calls the begin hook, if there is one. */
dscomm_hook_span_t dscomm_priv_hook_begin(const dscomm_group_t *group,
                                          const dscomm_call_t *call);
/* Calls the end hook that belongs to span, if there is one. request: that of a
 * receive, from which its message is known; else it may be NULL. */
void dscomm_priv_hook_end(const dscomm_group_t *group,
                          const dscomm_call_t *call, dscomm_hook_span_t span,
                          dscomm_status_t status,
                          const dscomm_request_t *request);
/* Runs a blocking collective by the backend, with the hooks if there are any.
 */
dscomm_status_t dscomm_priv_hook_run(dscomm_group_t *group,
                                     dscomm_coll_args_t *args);
/* Begins the phases of a collective, which are kept in phases, if hooks (NULL:
 * none) want them. */
static inline void dscomm_priv_hook_phases(const dscomm_hooks_t *hooks,
                                           dscomm_coll_args_t *args,
                                           dscomm_phases_t *phases)
{
    if (G_LIKELY(!hooks || !(hooks->flags & DSCOMM_HOOKS_PHASES)))
        return;
    *phases = (dscomm_phases_t){.since_ns = dscomm_priv_clock()};
    args->phases = phases;
}
/* Calls the hook waited of a complete work, once, with work->span.waited_ns. */
void dscomm_priv_hook_waited(dscomm_work_t *work);
/* True if the installed hooks want the times of devices. */
bool dscomm_priv_hook_wants_device(void);
/* In a forked child: initialises the lock. */
void dscomm_priv_hook_forked(void);

/* Times of devices, in device-time.c. */

/* Begins the time of a call with a buffer at pointer, in device memory. Sets
 * call->time, unless the device cannot measure it. */
void dscomm_priv_device_time_begin(dscomm_group_t *group, dscomm_call_t *call,
                                   const void *pointer);
/* Ends it, and reports those that are complete; the call's own may be reported
 * later. span and info are those of the hook end. */
void dscomm_priv_device_time_end(const dscomm_group_t *group,
                                 dscomm_device_time_t *time,
                                 dscomm_hook_span_t span,
                                 const dscomm_op_info_t *info);
/* Gives back the time of a call that was not made; NULL: it has none. */
void dscomm_priv_device_time_drop(dscomm_device_time_t *time);
/* Reports the times of all groups that are complete. */
void dscomm_priv_device_times_report(void);
extern const dscomm_group_part_t dscomm_priv_device_times_part;
void dscomm_priv_device_times_forked(void);

/* Staging, in stage.c: copies device buffers of a call to host memory, on which
 * the call then runs. */

/* 1 if call has a buffer in device memory. */
int dscomm_priv_stage_wanted(const dscomm_group_t *group,
                             const dscomm_call_t *call);
/* Prepares such a call. If the backend takes device buffers, waits for the
 * stream. Otherwise puts host memory into call, with a copy of what it sends,
 * and sets call->bounce, which the call's owner must finish and free. If a
 * collective fails here, the group ends. The choice is logged once for each
 * group. */
dscomm_status_t dscomm_priv_stage_call(dscomm_group_t *group,
                                       dscomm_call_t *call);
/* Fails with ERR_UNSUPPORTED: this call cannot be staged. */
dscomm_status_t dscomm_priv_stage_refuse(const dscomm_group_t *group,
                                         const char *name);

static inline void dscomm_priv_bounce_free(dscomm_bounce_t *bounce)
{
    if (bounce)
        bounce->free(bounce);
}

/* False: the library made the work for a call of its own. */
static inline bool dscomm_priv_work_is_users(const dscomm_work_t *work)
{
    return !work->call.internal || work->call.type == CALL_CUSTOM;
}

/* True if waits for work are timed, for the hook waited. */
static inline bool dscomm_priv_work_is_timed(const dscomm_work_t *work)
{
    return work->span.hooks && work->span.hooks->waited;
}

static inline int dscomm_priv_work_done(dscomm_work_t *work)
{
    return atomic_load_explicit(&work->status, memory_order_acquire) !=
           DSCOMM_IN_PROGRESS;
}

#endif
