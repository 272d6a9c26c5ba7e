/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs: a schedule on its way, with buffers, requests and scratch. */
#ifndef LIB_RUN_H
#define LIB_RUN_H

#include "lib/schedule/schedule.h"

/* Through what a run talks. */
typedef struct {
    const dscomm_backend_ops_t *ops;
    void *impl;
    const char *name; /* of the group, for sentences */
    const dscomm_group_t *group; /* or NULL */
    const int *world_ranks; /* of its ranks; NULL: the same numbers */
} dscomm_port_t;

/* One chain of the window. */
typedef struct {
    uint32_t chain;
    uint32_t next, end; /* steps */
    uint32_t outstanding; /* messages of the round */
} dscomm_run_slot_t;

typedef struct {
    const dscomm_step_t *step;
    dscomm_run_slot_t *slot;
    dscomm_request_t *request;
} dscomm_run_message_t;

typedef struct dscomm_early dscomm_early_t;

typedef struct dscomm_run {
    struct dscomm_run *next; /* in the cache */
    struct dscomm_shape *shape; /* where it belongs there */
    const dscomm_schedule_t *schedule;
    dscomm_port_t port;
    dscomm_coll_args_t args; /* of this time */
    char *base[AT_COUNT];
    dscomm_run_slot_t *slots;
    dscomm_run_message_t *messages; /* under way */
    uint32_t nmessages, open; /* open: slots with a chain */
    char *requests;
    dscomm_request_t **idle; /* requests not under way */
    uint32_t nidle;
    const void **pointers; /* of the sources of one reduction, */
    double *factors; /* and their factors */
    dscomm_early_t *early; /* early receives; NULL: none, see early.h */
    /* a message of the wrong length, whose sender's header has yet to come */
    const dscomm_step_t *suspect;
    size_t suspect_bytes;
    dscomm_status_t status; /* IN_PROGRESS until it ends */
    int held; /* the backend has not given scratch back: never used again */
    int differs; /* why it failed: a rank seems to have made another call */
    uint32_t chain; /* of the message headers; set before the start */
    dscomm_failure_t failure; /* why it failed */
} dscomm_run_t;

/* Bytes of one run of schedule. */
size_t dscomm_priv_run_bytes(const dscomm_schedule_t *schedule,
                             const dscomm_port_t *port);
/* Memory for runs of schedule over port; NULL where there is none. Both must
 * stay. */
dscomm_run_t *dscomm_priv_run_new(const dscomm_schedule_t *schedule,
                                  const dscomm_port_t *port);
void dscomm_priv_run_free(dscomm_run_t *run);

/* Starts it; args must fit the schedule. It may end at once. */
void dscomm_priv_run_start(dscomm_run_t *run, const dscomm_coll_args_t *args);
/* After the backend's progress: goes on. Returns how many messages have
 * arrived. When run->status is OK it has ended. When it is a failure, so is
 * run->failure; nobody else has been told, and messages are under way until the
 * run is cancelled. */
unsigned dscomm_priv_run_advance(dscomm_run_t *run);
/* Forgets what is under way: the run ends with status. */
void dscomm_priv_run_cancel(dscomm_run_t *run, dscomm_status_t status);
/* What it waits for, in words: the ranks whose messages have not come, and
 * those that have not taken its own. One of them is late, or waits in turn for
 * a rank that is; more cannot be known here. */
void dscomm_priv_run_explain(const dscomm_run_t *run, char *text, size_t size);

/* Bytes of one request, in cache lines of its own. */
static inline size_t dscomm_priv_port_request_size(const dscomm_port_t *port)
{
    return (MAX(port->ops->request_size, sizeof(dscomm_request_t)) + 63) &
           ~(size_t)63;
}

/* Tags are those from DSCOMM_TAG_COLLECTIVE down. The collective's number keeps
 * collectives apart that are under way together; it repeats after more of them
 * than memory can hold. A transport with fewer bits for tags may fold them.
 * Field 0 is that of message headers, which match whatever the algorithm; the
 * others are slots of the window: the chains of one slot follow one another on
 * every rank, so their messages come in order. */
#define TAG_FIELD_BITS 5
#define TAG_SEQUENCE_MASK ((UINT32_C(1) << (27 - TAG_FIELD_BITS)) - 1)

G_STATIC_ASSERT(WINDOW_MOST < 1 << TAG_FIELD_BITS);

static inline int dscomm_priv_run_tag(const dscomm_run_t *run, uint32_t field)
{
    uint32_t sequence = (uint32_t)run->args.sequence & TAG_SEQUENCE_MASK;

    return DSCOMM_TAG_COLLECTIVE - (int)(sequence << TAG_FIELD_BITS | field);
}

#endif
