/* SPDX-License-Identifier: BSD-3-Clause */
/* Two levels: one backend inside each node, another between nodes.
 *
 * A group has up to three impls of other backends, its levels:
 *
 *   INSIDE  the ranks of this node, where they are several
 *   FLAT    all ranks
 *   RAIL    one rank of each node: those of equal local number where all nodes
 *           have equally many ranks; else the first of each node alone, and no
 *           other rank has this level
 *
 * A group on one node has INSIDE alone, one with a rank on each node FLAT
 * alone; then everything goes straight to it. Otherwise a collective is a plan
 * of a few steps, each a collective of one level; what has no plan is one step
 * on FLAT. One collective runs at a time, in the order of their start, so that
 * all ranks start the steps of each level in the same order. */
#ifndef TWO_LEVEL_H
#define TWO_LEVEL_H

#include "backends/ending.h"

#include <glib.h>
#include <pthread.h>

enum { TWO_INSIDE, TWO_FLAT, TWO_RAIL, TWO_LEVELS };

enum {
    TWO_SETTING_INSIDE,
    TWO_SETTING_BETWEEN,
    TWO_SETTING_ANY_SOURCE,
    TWO_SETTING_SLICE
};

extern const dscomm_setting_t two_settings[];

struct two;

/* ops is NULL where this rank has not the level. */
typedef struct {
    dscomm_inner_t *inner;
    const dscomm_backend_ops_t *ops;
    void *impl;
    uint64_t sequence; /* of the latest step */
    unsigned live; /* started requests */
    char *name; /* of it as a group; the group's own where it has all ranks */
    int *members; /* the group's numbers of its ranks, or NULL */
    int count;
    GPtrArray *idle; /* requests of its size */
    pthread_mutex_t lock; /* held by whoever is in a slot, in run.c */
} two_level_t;

typedef struct two_request {
    dscomm_request_t head;
    struct two_request *next;
    two_level_t *level; /* of a message */
    dscomm_request_t *inner; /* of a message */
    dscomm_coll_args_t args; /* of a collective */
    int collective;
} two_request_t;

/* after: what is left to do in memory when the step is done, or NULL. */
typedef struct two_step {
    two_level_t *level;
    dscomm_coll_args_t args;
    void (*after)(struct two *two, const struct two_step *step);
} two_step_t;

/* The head of the queue, while it runs. */
typedef struct {
    const dscomm_coll_args_t *args; /* NULL: not planned yet */
    two_step_t steps[3];
    int count, at;
    dscomm_request_t *request; /* of the step, or NULL */
} two_plan_t;

typedef struct {
    char *bytes;
    size_t size;
} two_scratch_t;

typedef struct two {
    char *name;
    dscomm_group_t *group;
    int rank, ranks, is_world;
    int *world_ranks;

    /* Nodes are numbered by their first ranks, and so are ranks in a node. */
    int nodes, is_even, is_sorted; /* ranks ascend from node to node */
    int *host; /* of each rank: equal = together; a number in the world */
    int *node, *local; /* of each rank */
    int *size, *first; /* of each node: ranks, and those before it */
    int *order; /* ranks, node by node */

    two_level_t levels[TWO_LEVELS];
    two_level_t *only; /* the one to which everything goes, or NULL */
    int able; /* on all nodes INSIDE runs all collectives by itself */
    /* Blocking calls between nodes match no others: a blocking collective runs
     * the levels' blocking calls, one with a work is made of messages. */
    int apart;
    int direct; /* messages in a node go by INSIDE */
    int loose; /* FLAT's latest collective may not have waited for all ranks */
    size_t slice; /* bytes from which nodes split a reduction */

    two_request_t *messages, *queue; /* queue: collectives, oldest first */
    two_plan_t plan;
    size_t *counts, *displs; /* ranks entries: of steps */
    size_t *even; /* ranks entries: of questions to FLAT */
    two_scratch_t scratch[2];
    int held; /* a level does not give scratch back */
    unsigned ticks;
    const two_request_t *failed; /* the latest whose peer failed, and why */
    char why[512];

    ending_t ending;
} two_t;

/* places.c: who is where. hosts is what the parent's ranks were found to be, or
 * NULL. */
dscomm_status_t two_places_find(two_t *two, const dscomm_backend_args_t *args,
                                const two_t *parent);
void two_places_free(two_t *two);

/* levels.c: opening and closing them. */
dscomm_status_t two_levels_open(two_t *two, const dscomm_backend_args_t *args,
                                const two_t *parent);
void two_levels_close(two_t *two);
/* A request of level, its head zero; and back. */
dscomm_request_t *two_request_take(two_level_t *level);
void two_request_give(two_level_t *level, dscomm_request_t *request);

/* message.c */
dscomm_status_t two_isend(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *request);
dscomm_status_t two_irecv(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *request);
/* Where everything goes to one level. */
dscomm_status_t two_send(void *impl, const dscomm_message_t *message);
dscomm_status_t two_recv(void *impl, const dscomm_message_t *message,
                         dscomm_request_t *request);
/* Looks for messages that are complete; returns how many. */
unsigned two_messages_scan(two_t *two);
void two_message_cancel(two_t *two, two_request_t *request);
int two_withdraw(void *impl, dscomm_request_t *request);
int two_matched(void *impl, const dscomm_request_t *request);
int two_probe(void *impl, const dscomm_message_t *wanted,
              dscomm_request_t *found, void **ret_taken);

/* collective.c */
int two_level_native(const two_t *two, const two_level_t *level,
                     const dscomm_coll_args_t *args);
int two_native(void *impl, const dscomm_coll_args_t *args);
dscomm_status_t two_start(void *impl, const dscomm_coll_args_t *args,
                          dscomm_request_t *request);
/* Goes on with the oldest collectives; returns how many are complete. */
unsigned two_collectives_advance(two_t *two);
void two_collective_cancel(two_t *two, two_request_t *request);

/* run.c: a blocking collective, where there is such a slot; and which of the
 * blocking slots there are. */
dscomm_status_t two_run(void *impl, const dscomm_coll_args_t *args);
void two_trim(void *impl, dscomm_backend_ops_t *ops);

/* sentence.c: what a level says, with the group's name and numbers of ranks;
 * and what its explain slot says. */
void two_sentence(const two_t *two, const two_level_t *level, char *text,
                  size_t size);
void two_level_explain(const two_t *two, const two_level_t *level,
                       const dscomm_request_t *request, char *text,
                       size_t size);

/* plan.c: has this collective a plan of several levels, on all ranks alike? And
 * two->plan for args; ERR_NO_MEMORY. */
int two_plan_fits(two_t *two, const dscomm_coll_args_t *args);
dscomm_status_t two_plan_make(two_t *two, const dscomm_coll_args_t *args);

/* two-level.c */
uint64_t two_level_capabilities(const two_level_t *level);
void two_revoke(void *impl, dscomm_status_t status, const char *sentence);
dscomm_status_t two_status(void *impl, char *text, size_t size);
/* OK, or the failure that revoked the group. */
dscomm_status_t two_check(two_t *two);

#endif
