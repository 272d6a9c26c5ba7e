/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: one started call, and the backend's request behind it. */
#ifndef LIB_WORK_H
#define LIB_WORK_H

#include "lib/group/group.h"
#include "lib/work/hook.h"

#include <dscomm/work.h>

/* What was called. */
enum {
    CALL_COLLECTIVE,
    CALL_MESSAGE,
    CALL_COMPOUND, /* coalesced calls: children of their own */
    CALL_CUSTOM, /* made by the caller of dscomm_work_create() */
};

/* A buffer in place of a call's own ones, as the first member of what knows how
 * both belong together: the copy of a device's buffers, or one for several
 * calls. */
typedef struct dscomm_bounce {
    /* Copies the results to where they belong; received: bytes of a message. */
    dscomm_status_t (*finish)(struct dscomm_bounce *bounce, size_t received);
    void (*free)(struct dscomm_bounce *bounce);
} dscomm_bounce_t;

/* One call, as recorded and as started. */
typedef struct dscomm_call {
    int type; /* CALL_* */
    int async; /* the caller gets a work */
    int internal; /* not the user's: hooks do not see it */
    /* of a collective: what runs it; NULL: the backend */
    const struct dscomm_algorithm *algorithm;
    dscomm_bounce_t
        *bounce; /* NULL: none; owned by the work, if there is one */
    /* ns: when a receive for which no message has come is taken back,
     * INT64_MAX: never; 0: the group's deadline holds */
    int64_t deadline_ns;
    uint32_t parts; /* coalesced calls that it stands for; 0: itself */
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
    };
} dscomm_call_t;

/* How works of one kind run, in static memory. A function that is NULL has
 * nothing to do, unless it says otherwise. All are called with the group's lock
 * held. */
typedef struct dscomm_work_kind {
    /* Starts the call. It may end at once, in work->request.status. On failure
     * nothing was started. */
    dscomm_status_t (*start)(dscomm_work_t *work);
    /* After the backend's progress: goes on with what is not the backend's. */
    void (*advance)(dscomm_work_t *work);
    /* Forgets what is under way. NULL: the backend's request is. */
    void (*cancel)(dscomm_work_t *work, dscomm_status_t status);
    /* The work, which was started, has ended or was cancelled. */
    void (*end)(dscomm_work_t *work);
    /* A child of a compound has ended; frees the child. */
    void (*child_end)(dscomm_work_t *child, dscomm_status_t status);
    /* Frees memory of the kind's own; may be called again. */
    void (*release)(dscomm_work_t *work);

    /* The rank that the work's message number index waits for; -1: there are no
     * more messages. NULL: only the backend knows. */
    int (*peer)(const dscomm_work_t *work, uint32_t index);
    /* Nothing has come for a while: from now on, learns about other calls from
     * all ranks. */
    void (*listen)(dscomm_work_t *work);
    /* The next two may release the lock meanwhile, and work may be gone
     * afterwards. ERR_MISMATCH, and ret_text is the sentence, if another rank
     * has made another call. */
    /* The work has waited for a while. NULL: others cannot be asked. */
    dscomm_status_t (*look)(dscomm_work_t *work, char *ret_text, size_t size);
    /* The group's deadline has passed: OK, and ret_text is who is late. NULL:
     * the backend explains it. */
    dscomm_status_t (*overdue)(dscomm_work_t *work, char *ret_text,
                               size_t size);
    /* For a call with a deadline of its own: 1 if that has passed at now, and
     * work is complete. */
    int (*expire)(dscomm_work_t *work, int64_t now);
} dscomm_work_kind_t;

struct dscomm_work {
    _Atomic(dscomm_status_t) status; /* final when not IN_PROGRESS; set last */
    dscomm_group_t *group;
    const dscomm_work_kind_t *kind; /* NULL: never used */
    dscomm_call_t call;
    dscomm_work_t *next, *prev; /* pending list; next: free list */
    int pending; /* on the pending list */
    int held; /* by a blocking call, like the group's lock */
    int zombie; /* freed by its user */
    char *text; /* sentence of a failure; NULL: no memory for one */
    size_t *displs; /* owned displacements of a _v call */
    void *copy; /* owned bytes of an internal send */
    /* Time in which somebody waited for it or tested it, or the progress thread
     * looked at it, while nothing moved on the group; see is_overdue(). */
    int64_t waited_ns, looked_ns; /* looked_ns: when somebody did last */
    uint64_t seen; /* the group's completed at that time */
    dscomm_hook_span_t span;
    struct dscomm_run *run; /* of a schedule */
    dscomm_work_t *compound; /* of which this is a child */
    size_t remaining; /* of a compound: children not retired */
    dscomm_status_t failure; /* of a compound: the first one */
    dscomm_message_info_t *received; /* of a compound: what its receives got */
    size_t receives; /* their number */
    _Alignas(64) dscomm_request_t request; /* and what follows, request_size */
};

/* All below are called with the group's lock held, unless they say
 * otherwise. */

/* A work of the group's free list, with call copied into it. call->bounce is
 * freed with the work, or on failure. */
dscomm_status_t dscomm_priv_work_new(dscomm_group_t *group,
                                     const dscomm_work_kind_t *kind,
                                     const dscomm_call_t *call,
                                     dscomm_work_t **ret_work);
/* Gives back one that nothing refers to. */
void dscomm_priv_work_discard(dscomm_work_t *work);
/* Starts work. On failure nothing was started, and work is the caller's
 * still. */
dscomm_status_t dscomm_priv_work_launch(dscomm_work_t *work);
/* A collective that this rank cannot start leaves peers waiting, so the group
 * ends, with status and dscomm_last_error(). Returns status. */
dscomm_status_t dscomm_priv_work_give_up(dscomm_group_t *group,
                                         dscomm_status_t status);
/* Completes a work; text is NULL or the sentence. Frees it if its user did. */
void dscomm_priv_work_retire(dscomm_work_t *work, dscomm_status_t status,
                             const char *text);
/* Forgets a started work: it ends with status, unless it came to its own end
 * before. */
void dscomm_priv_work_cancel(dscomm_work_t *work, dscomm_status_t status,
                             const char *text);
/* Cancels all pending works. */
void dscomm_priv_works_cancel(dscomm_group_t *group, dscomm_status_t status,
                              const char *text);
/* These two may let go of the lock meanwhile. Waits until work is complete, at
 * most timeout_ms. */
void dscomm_priv_work_wait_locked(dscomm_work_t *work, int timeout_ms);
/* Waits for all collectives. */
void dscomm_priv_works_drain(dscomm_group_t *group);
/* Frees the slabs; no lock, nobody uses the group any more. */
void dscomm_priv_works_destroy(dscomm_group_t *group);

/* No lock held by the caller from here on. */

/* Starts call, to be waited by the caller or given to the user. */
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
/* Waits for all collectives, after a call that must not return before. */
void dscomm_priv_works_await(dscomm_group_t *group);
/* The status; the sentence becomes this thread's. */
dscomm_status_t dscomm_priv_work_result(dscomm_work_t *work);
/* Waits until work is complete, at most timeout_ms. */
dscomm_status_t dscomm_priv_work_wait(dscomm_work_t *work, int timeout_ms);

/* "recv from rank 2 with tag 7", for messages. */
void dscomm_priv_work_describe(const dscomm_work_t *work, char *text,
                               size_t size);

static inline void dscomm_priv_bounce_free(dscomm_bounce_t *bounce)
{
    if (bounce)
        bounce->free(bounce);
}

/* After the backend's progress. */
static inline void dscomm_priv_work_advance(dscomm_work_t *work)
{
    if (work->kind->advance)
        work->kind->advance(work);
}

static inline int dscomm_priv_work_done(dscomm_work_t *work)
{
    return atomic_load_explicit(&work->status, memory_order_acquire) !=
           DSCOMM_IN_PROGRESS;
}

#endif
