/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: one started call, and the backend's request behind it. */
#ifndef LIB_WORK_H
#define LIB_WORK_H

#include "lib/group/group.h"
#include "lib/work/hook.h"
#include "lib/schedule/algorithm.h"
#include "lib/schedule/run.h"

#include <dscomm/work.h>

enum {
    CALL_COLLECTIVE,
    CALL_MESSAGE,
    CALL_COMPOUND, /* coalesced calls: children of their own */
    CALL_CUSTOM, /* made by the caller of dscomm_work_create() */
};

/* Small calls that go as one, see fusion.h. */
typedef struct dscomm_fusion dscomm_fusion_t;
/* Host memory in place of a device's, see stage.h. */
typedef struct dscomm_stage dscomm_stage_t;

/* One call, as recorded and as started. */
typedef struct dscomm_call {
    int kind; /* CALL_* */
    int async; /* the caller gets a work */
    int internal; /* not the user's: hooks do not see it */
    /* of a collective: what runs it; NULL: the backend */
    const dscomm_algorithm_t *algorithm;
    dscomm_fusion_t *fusion; /* owned by the work, once there is one */
    dscomm_stage_t *stage; /* the same */
    uint32_t parts; /* coalesced calls that it stands for; 0: itself */
    union {
        dscomm_coll_args_t coll;
        struct {
            dscomm_message_t message;
            int receive; /* 0: a send */
            int dtype;
            size_t count;
            uint64_t sequence;
            /* ns: when a receive for which no message has come is taken back,
             * INT64_MAX: never; 0: the group's deadline holds */
            int64_t deadline_ns;
            size_t place; /* of a coalesced receive: its number among those */
        } p2p;
        struct {
            dscomm_work_ops_t ops;
            void *state;
        } custom;
    };
} dscomm_call_t;

struct dscomm_work {
    _Atomic(dscomm_status_t) status; /* final when not IN_PROGRESS; set last */
    dscomm_group_t *group;
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
    dscomm_run_t *run; /* of a collective with an algorithm */
    dscomm_work_t *compound; /* of which this is a child */
    size_t remaining; /* of a compound: children not retired */
    dscomm_status_t failure; /* of a compound: the first one */
    dscomm_message_info_t *received; /* of a compound: what its receives got */
    size_t receives; /* their number */
    _Alignas(64) dscomm_request_t request; /* and what follows, request_size */
};

/* All below are called with the group's lock held, unless they say
 * otherwise. */

/* A work of the group's free list, with call copied into it. */
dscomm_status_t dscomm_priv_work_new(dscomm_group_t *group,
                                     const dscomm_call_t *call,
                                     dscomm_work_t **ret_work);
/* Gives back one that nothing refers to. */
void dscomm_priv_work_discard(dscomm_work_t *work);
/* Hands work to the backend. On failure nothing was started, and work is the
 * caller's still. */
dscomm_status_t dscomm_priv_work_launch(dscomm_work_t *work);
/* After the backend's progress: goes on with what is not the backend's. */
void dscomm_priv_work_advance(dscomm_work_t *work);
/* Completes a work; text is NULL or the sentence. Frees it if its user did. */
void dscomm_priv_work_retire(dscomm_work_t *work, dscomm_status_t status,
                             const char *text);
/* A compound whose children have all been started. */
void dscomm_priv_work_seal(dscomm_work_t *work);
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
                                       const dscomm_call_t *call,
                                       dscomm_work_t **ret_work);
/* Starts, waits and frees. ret_request, if not NULL, gets the request's head
 * once the call was started. */
dscomm_status_t dscomm_priv_work_block(dscomm_group_t *group,
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

static inline int dscomm_priv_work_done(dscomm_work_t *work)
{
    return atomic_load_explicit(&work->status, memory_order_acquire) !=
           DSCOMM_IN_PROGRESS;
}

#endif
