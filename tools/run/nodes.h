/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a job, each with its own dscomm run. They meet at a store that
 * node 0 serves, agree on the ranks, and then watch each other: an event that
 * ends or restarts the job on one node does so on all. */
#ifndef TOOLS_NODES_H
#define TOOLS_NODES_H

#include "tools/common/nodes-store.h"
#include "tools/run/spawn.h"

typedef struct tool_nodes tool_nodes_t;

/* This node's place, from the command line. */
typedef struct {
    int nodes; /* of the job; of an elastic one, the most */
    int least; /* nodes of an elastic job; 0: the job is not elastic */
    int node_rank; /* -1: given by node 0, in an elastic job */
    const char *host; /* host of node 0, for all nodes */
    int port;
    const char *id; /* run id; NULL: node 0 makes a random one */
    gint64 join_us; /* time for all nodes to arrive, or the least */
    /* time that an elastic job waits for further nodes after that */
    gint64 last_call_us;
    gint64 silence_us; /* time without a heartbeat after which a node is lost */
} tool_place_t;

typedef enum {
    /* all nodes end their ranks, and then call tool_nodes_ready() */
    TOOL_NODES_RESTART,
    TOOL_NODES_START, /* all are ready */
    TOOL_NODES_END /* the job has ended on all nodes */
} tool_nodes_kind_t;

typedef struct {
    tool_nodes_kind_t kind;
    int node; /* the node that caused it, or -1 */
    int status; /* END: exit status */
    char *text; /* the reason: "rank 3 (pid 7) exited with status 1", or "" */
} tool_nodes_event_t;

/* Waits until all nodes have come and agree, then sets the members of job that
 * depend on the others: ranks, address and run id. Unless the result is
 * TOOL_OK, a sentence went to stderr. No thread may exist that receives
 * signals. */
int tool_nodes_join(tool_job_t *job, const tool_place_t *place,
                    tool_nodes_t **ret_nodes);

/* Starts watching: posts go to the other nodes, and their events come here. */
void tool_nodes_watch(tool_nodes_t *nodes);

/* A descriptor that is readable if there is an event. */
int tool_nodes_fd(const tool_nodes_t *nodes);
/* The next event, to be freed with tool_nodes_event_free(), or NULL. */
tool_nodes_event_t *tool_nodes_next(tool_nodes_t *nodes);
void tool_nodes_event_free(tool_nodes_event_t *event);
/* The name of a node, for messages. */
const char *tool_nodes_host(const tool_nodes_t *nodes, int node);

/* Post events of this node. If several end the job or start it again, the
 * first one counts, on all nodes. None of these functions blocks. */
void tool_nodes_end(tool_nodes_t *nodes, int status, const char *text);
void tool_nodes_restart(tool_nodes_t *nodes, const char *text);
/* Posts that all ranks of this node have ended with status 0. */
void tool_nodes_done(tool_nodes_t *nodes);
/* Posts that no rank is left on this node, so that the next attempt may
 * begin. */
void tool_nodes_ready(tool_nodes_t *nodes);

/* Sends the remaining posts and closes the store; NULL is fine. */
void tool_nodes_leave(tool_nodes_t *nodes);

/* Called in a process that outlives a dscomm run that was killed: sets key in
 * the job's store, which is at url, to text. */
void tool_nodes_report_killed(const char *url, const char *key,
                              const char *text);

/* elastic.c: the nodes of an elastic job, which meet before each attempt */

typedef struct tool_elastic tool_elastic_t;

/* Meets node 0, which serves the store until the job ends. *ret_elastic is to
 * be closed also if the result is not TOOL_OK: a sentence went to stderr. */
int tool_elastic_open(tool_job_t *job, const tool_place_t *place,
                      tool_elastic_t **ret_elastic);
/* Waits until this node takes part in an attempt, and sets the members of job
 * that depend on it. If *ret_nodes is NULL, the job has ended, with a sentence
 * on stderr, and the result is its exit status. */
int tool_elastic_join(tool_elastic_t *elastic, tool_nodes_t **ret_nodes);
/* NULL is fine. */
void tool_elastic_close(tool_elastic_t *elastic);

/* For nodes.c, nodes-join.c, elastic.c, and the store of a job on one node */

/* Key of the run's id, by which ranks of other jobs find that this is not
 * their store. */
#define TOOL_NODES_RUN "run"
/* Key of the event that ends the job. */
#define TOOL_NODES_OVER "end"
/* Key of the number of nodes that have read how the job ended, or why it did
 * not begin. */
#define TOOL_NODES_READ "bye"

/* Interval between checks of the store, and between heartbeats. It is longer
 * with hundreds of nodes, because node 0 serves all of them; but several
 * intervals fit into the silence after which a node is lost. */
static inline gint64 tool_nodes_tick_us(int nodes)
{
    return CLAMP(nodes * (gint64)1000, G_USEC_PER_SEC / 10, G_USEC_PER_SEC);
}

static inline gint64 tool_nodes_beat_us(int nodes, gint64 silence_us)
{
    return MAX(MIN(nodes * (gint64)1000, silence_us / 4), G_USEC_PER_SEC / 2);
}

/* Makes the object before the nodes have met, so that a node without
 * descriptors does not come. NULL: a sentence went to stderr. */
tool_nodes_t *tool_nodes_new(const tool_job_t *job, const tool_place_t *place,
                             const char *url);
/* Adds what the nodes have agreed on; takes over the store. hosts has one entry
 * for each node, and is copied. */
void tool_nodes_plan(tool_nodes_t *nodes, char *const *hosts,
                     dscomm_store_t *store);

/* Sets key to text, unless it is set already: the first value stays. */
dscomm_status_t tool_nodes_set_once(dscomm_store_t *store, const char *key,
                                    const char *text);

/* Opens the store as another node than node 0, until deadline; after a while,
 * prints that it waits for node 0. */
dscomm_status_t tool_nodes_await_store(const tool_job_t *job, const char *url,
                                       int64_t deadline,
                                       dscomm_store_t **ret_store);

#endif
