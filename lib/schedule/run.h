/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs: a schedule in execution, with buffers, requests and scratch. */
#ifndef LIB_RUN_H
#define LIB_RUN_H

#include "lib/schedule/schedule.h"

/* The backend and the group by which a run sends messages. */
typedef struct {
    const dscomm_backend_ops_t *ops;
    void *impl;
    const char *name; /* of the group, for sentences */
    const dscomm_group_t *group; /* or NULL */
    /* world ranks of the group's ranks; NULL: the same numbers */
    const int *world_ranks;
} dscomm_port_t;

/* A slot of the window with its present chain. */
typedef struct {
    uint32_t chain;
    uint32_t next, end; /* steps */
    uint32_t outstanding; /* messages of the round under way */
} dscomm_run_slot_t;

typedef struct {
    const dscomm_step_t *step;
    dscomm_run_slot_t *slot;
    dscomm_request_t *request;
} dscomm_run_message_t;

typedef struct dscomm_early dscomm_early_t;

typedef struct dscomm_run {
    struct dscomm_run *next; /* in the list of idle runs */
    struct dscomm_shape *shape; /* its shape in the cache */
    const dscomm_schedule_t *schedule;
    dscomm_port_t port;
    dscomm_coll_args_t args; /* of the present call */
    char *base[AT_COUNT];
    dscomm_run_slot_t *slots;
    dscomm_run_message_t *messages; /* under way */
    uint32_t nmessages, open; /* open: number of slots with a chain */
    char *requests;
    dscomm_request_t **idle; /* requests not under way */
    uint32_t nidle;
    const void **pointers; /* of the sources of one reduction, */
    double *factors; /* and their factors */
    dscomm_early_t *early; /* early receives; NULL: none, see early.h */
    /* a message of the wrong length, whose sender's header has yet to come */
    const dscomm_step_t *suspect;
    size_t suspect_bytes;
    dscomm_status_t status; /* IN_PROGRESS until the run ends */
    int held; /* the backend keeps scratch: it is never used again */
    int differs; /* a header shows that a rank has made another call, */
    bool earlier; /* and that a call before this one was another one */
    uint32_t chain; /* for the message headers; set before the start */
    int agreed, differing; /* headers that show the expected counts, or not */
    dscomm_failure_t failure; /* the reason of a failed status */
} dscomm_run_t;

/* Bytes of one run of schedule. */
size_t dscomm_priv_run_bytes(const dscomm_schedule_t *schedule,
                             const dscomm_port_t *port);
/* Allocates a run of schedule on port; NULL: no memory. Both must stay valid.
 */
dscomm_run_t *dscomm_priv_run_new(const dscomm_schedule_t *schedule,
                                  const dscomm_port_t *port);
void dscomm_priv_run_free(dscomm_run_t *run);

/* Starts run; args must match its schedule. It may end at once. */
void dscomm_priv_run_start(dscomm_run_t *run, const dscomm_coll_args_t *args);
/* Starts run as well, but sends and receives by the backend's slots send_now
 * and recv_now, with so many polls of each receive, as long as every message
 * comes so soon: then the run ends here. Else it goes on like any other. */
void dscomm_priv_run_now(dscomm_run_t *run, const dscomm_coll_args_t *args,
                         unsigned polls);
/* Advances run after the backend's progress. Returns the number of messages
 * that have arrived. run->status OK: the run has ended. Failure: run->failure
 * is the record; peers are not notified, and messages are under way until the
 * run is cancelled. */
unsigned dscomm_priv_run_advance(dscomm_run_t *run);
/* Writes what the backend knows of the wait for the only peer that messages
 * under way have: "waiting for rank 1 (pid 12 on b) at 10.0.0.2:4711"; "" if
 * there are several. Returns the peer, or -1. */
int dscomm_priv_run_describe_peer(const dscomm_run_t *run, char *text,
                                  size_t size);
/* Compares the other headers of a run that has failed by the counts of one
 * pair, until none is under way, the group has ended, or the clock shows end.
 */
void dscomm_priv_run_compare_rest(dscomm_run_t *run, int64_t end);
/* Cancels the messages under way; the run ends with status. */
void dscomm_priv_run_cancel(dscomm_run_t *run, dscomm_status_t status);
/* Lists the ranks whose messages are missing, and those that have not received
 * this rank's. One of them is late, or waits for a rank that is; more is not
 * known here. */
void dscomm_priv_run_explain(const dscomm_run_t *run, char *text, size_t size);
/* Returns the only rank that has messages of the run under way; -1 if there are
 * several, or none. */
int dscomm_priv_run_awaited(const dscomm_run_t *run);

/* Bytes of one request, rounded up to cache lines. */
static inline size_t dscomm_priv_port_request_size(const dscomm_port_t *port)
{
    return (MAX(port->ops->request_size, sizeof(dscomm_request_t)) + 63) &
           ~(size_t)63;
}

/* Bytes of the longest message that begins with a header. */
static inline size_t dscomm_priv_run_room(const dscomm_run_t *run)
{
    return HEADER_WHOLE + dscomm_priv_header_most(run->schedule->ranks);
}

/* Tags are DSCOMM_TAG_COLLECTIVE and below. A tag contains the collective's
 * number, which separates collectives under way at the same time; it repeats
 * after more collectives than memory can hold. A transport with fewer tag bits
 * may fold it. Field 0 is for messages with a header, which match whatever the
 * algorithm. The other fields are the slots of the window: the chains of a slot
 * follow one another on every rank, so their messages arrive in order. */
#define TAG_FIELD_BITS 5
#define TAG_SEQUENCE_MASK ((UINT32_C(1) << (27 - TAG_FIELD_BITS)) - 1)

G_STATIC_ASSERT(WINDOW_MOST < 1 << TAG_FIELD_BITS);

static inline int dscomm_priv_run_tag(const dscomm_run_t *run, uint32_t field)
{
    uint32_t sequence = (uint32_t)run->args.sequence & TAG_SEQUENCE_MASK;

    return DSCOMM_TAG_COLLECTIVE - (int)(sequence << TAG_FIELD_BITS | field);
}

#endif
