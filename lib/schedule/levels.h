/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels: the impls of a group whose nodes have several ranks.
 *
 * Such a group holds the impl of a backend inside its node and one of a backend
 * between nodes, and a message goes by the one that reaches its peer. Where the
 * backend between nodes has blocking collectives of its own, the group holds a
 * second impl of it, for the ranks that act for their nodes (hierarchical.h).
 *
 * A group on one node, or with one rank a node, has no levels: open gives it
 * that backend's impl and slots, as if it had been asked for by name. */
#ifndef LIB_LEVELS_H
#define LIB_LEVELS_H

#include "lib/group/group.h"
#include "lib/schedule/layout.h"

enum {
    LEVEL_NODE, /* the ranks of this node, if they are several */
    LEVEL_NETWORK, /* all ranks */
    /* One rank of each node: those of equal local number if all nodes have
     * equally many ranks, else the first ones. */
    LEVEL_RAIL,
    LEVEL_COUNT
};

typedef struct {
    dscomm_backend_ops_t ops;
    void *impl; /* NULL: this rank does not have the level */
    dscomm_store_t *store;
    bool opened; /* or began to be */
    char *id;
    int *members; /* its ranks in the group */
    int *world_ranks;
    int count;
    uint64_t sequence; /* of the last collective */
    pthread_mutex_t lock; /* held by whoever is in a slot, in a blocking call */
} dscomm_level_t;

typedef struct {
    char *bytes;
    size_t size;
} dscomm_room_t;

typedef struct {
    dscomm_group_t *group;
    int rank, ranks;
    dscomm_nodes_t hosts; /* who shares memory */
    dscomm_layout_t layout; /* of hosts */
    dscomm_level_t level[LEVEL_COUNT];
    /* Blocking collectives go by the backends' own: then calls with a work,
     * which are schedules, do not match them. */
    bool blocking;
    bool composes; /* they go by several levels */
    bool direct; /* messages inside a node go by LEVEL_NODE */
    size_t slice; /* bytes of an all_reduce from which it goes by all rails */
    size_t level_at; /* in a request: the level that has it */
    unsigned ticks;
    dscomm_room_t rooms[2]; /* of hierarchical.c */
    atomic_int ended; /* 1 + the level that tells why, or 0 */
} dscomm_levels_t;

/* The slots of the backend two_level, whose blocking collectives are composed
 * of blocking calls of its levels. */
extern const dscomm_backend_ops_t dscomm_priv_levels_ops;

dscomm_status_t dscomm_priv_levels_open(const dscomm_backend_args_t *args,
                                        void **ret_impl);
void dscomm_priv_levels_close(void *impl);
void dscomm_priv_levels_trim(void *impl, dscomm_backend_ops_t *ops);
uint64_t dscomm_priv_levels_capabilities(void *impl);
unsigned dscomm_priv_levels_progress(void *impl);
void dscomm_priv_levels_revoke(void *impl, const dscomm_failure_t *failure);
dscomm_status_t dscomm_priv_levels_status(void *impl,
                                          dscomm_failure_t *ret_failure);
dscomm_status_t dscomm_priv_levels_mem_alloc(void *impl, size_t size,
                                             void **ret_memory);
dscomm_status_t dscomm_priv_levels_mem_free(void *impl, void *memory);
void dscomm_priv_levels_quiesce(void *impl);
void dscomm_priv_levels_leave(void *impl);
dscomm_status_t dscomm_priv_levels_bootstrap(dscomm_bootstrap_t *bootstrap);

/* Those of messages, in level-message.c. */
dscomm_status_t dscomm_priv_levels_isend(void *impl,
                                         const dscomm_message_t *message,
                                         dscomm_request_t *request);
dscomm_status_t dscomm_priv_levels_irecv(void *impl,
                                         const dscomm_message_t *message,
                                         dscomm_request_t *request);
void dscomm_priv_levels_cancel(void *impl, dscomm_request_t *request);
int dscomm_priv_levels_explain(void *impl, const dscomm_request_t *request,
                               char *text, size_t size);
int dscomm_priv_levels_withdraw(void *impl, dscomm_request_t *request);
int dscomm_priv_levels_matched(void *impl, const dscomm_request_t *request);
int dscomm_priv_levels_probe(void *impl, const dscomm_message_t *wanted,
                             dscomm_request_t *found, void **ret_taken);

/* DSCOMM_CAP_* of a level; 0 where this rank does not have it. */
uint64_t dscomm_priv_level_capabilities(const dscomm_level_t *level);
/* OK, or the failure that has ended the group. */
dscomm_status_t dscomm_priv_levels_check(dscomm_levels_t *levels);
/* One collective by a level's blocking call; the sequence is the level's. On
 * failure the group has ended for all levels. */
dscomm_status_t dscomm_priv_level_run(dscomm_levels_t *levels,
                                      dscomm_level_t *level,
                                      dscomm_coll_args_t *args);
/* Ends the group for this thread's last failure, which has status. Returns what
 * the group has ended with. */
dscomm_status_t dscomm_priv_levels_give_up(dscomm_levels_t *levels,
                                           dscomm_status_t status);
/* Lets the levels go on that no other thread is in: a turn of dscomm_help_t. */
int dscomm_priv_levels_turn(void *levels);

#endif
