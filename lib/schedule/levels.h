/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels: the impls of a group whose nodes have several ranks.
 *
 * The group has an impl of one backend inside its node, and one of another
 * backend between nodes. A message goes by the impl that reaches its peer. If
 * the backend between nodes has its own blocking collectives, the group has a
 * second impl of it, for the ranks that act for their nodes (hierarchical.h).
 *
 * A group on one node, or with one rank a node, has no levels: open gives it
 * that backend's impl and slots, as if the user had given that backend's name.
 */
#ifndef LIB_LEVELS_H
#define LIB_LEVELS_H

#include "lib/group/group.h"
#include "lib/schedule/layout.h"

enum {
    LEVEL_NODE, /* the ranks of this node, if there are several */
    LEVEL_NETWORK, /* all ranks */
    /* One rank of each node: the ranks of equal local number if all nodes have
     * equally many ranks, else the first ones. */
    LEVEL_RAIL,
    LEVEL_COUNT
};

typedef struct {
    dscomm_backend_ops_t ops;
    void *impl; /* NULL: this rank is not in the level */
    dscomm_store_t *store;
    bool opened; /* open was called */
    char *id;
    int *members; /* its ranks in the group */
    int *world_ranks;
    int count;
    uint64_t sequence; /* of the last collective */
    pthread_mutex_t lock; /* held by the thread in a slot, in a blocking call */
} dscomm_level_t;

#define LEVELS_ROOMS 2 /* buffers of one collective, at most */

typedef struct {
    char *bytes;
    size_t size;
} dscomm_room_t;

typedef struct {
    dscomm_group_t *group;
    int rank, ranks;
    dscomm_nodes_t hosts; /* which ranks share memory */
    dscomm_layout_t layout; /* of hosts */
    dscomm_level_t level[LEVEL_COUNT];
    /* Blocking collectives are those of the backends, so they do not match
     * calls with a work, which are schedules. */
    bool blocking;
    bool composes; /* blocking collectives use several levels */
    bool direct; /* messages inside a node go by LEVEL_NODE */
    size_t slice; /* bytes from which an all_reduce uses all rails */
    size_t level_at; /* offset in a request of its level */
    unsigned ticks;
    int64_t idle_ns; /* since when waits have seen no progress; 0: none waits */
    dscomm_room_t rooms[LEVELS_ROOMS]; /* of hierarchical.c */
    atomic_int ended; /* 1 + the level that has the failure, or 0 */
} dscomm_levels_t;

/* The slots of the backend two_level. Its blocking collectives are composed of
 * blocking calls of its levels. */
extern const dscomm_backend_ops_t dscomm_priv_levels_ops;

dscomm_status_t dscomm_priv_levels_open(const dscomm_backend_args_t *args,
                                        void **ret_impl);
void dscomm_priv_levels_close(void *impl);
void dscomm_priv_levels_trim(void *impl, dscomm_backend_ops_t *ops);
uint64_t dscomm_priv_levels_capabilities(void *impl);
unsigned dscomm_priv_levels_progress(void *impl);
void dscomm_priv_levels_wait(void *impl, unsigned timeout_us);
void dscomm_priv_levels_revoke(void *impl, const dscomm_failure_t *failure);
dscomm_status_t dscomm_priv_levels_status(void *impl,
                                          dscomm_failure_t *ret_failure);
dscomm_status_t dscomm_priv_levels_mem_alloc(void *impl, size_t size,
                                             void **ret_memory);
dscomm_status_t dscomm_priv_levels_mem_free(void *impl, void *memory);
void dscomm_priv_levels_quiesce(void *impl);
void dscomm_priv_levels_leave(void *impl);

/* The slots of messages, in level-message.c. */
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
void dscomm_priv_levels_expect(void *impl, dscomm_request_t *request);
int dscomm_priv_levels_probe(void *impl, const dscomm_message_t *wanted,
                             dscomm_request_t *found, void **ret_taken);

/* DSCOMM_CAP_* of a level; 0 if this rank is not in it. */
uint64_t dscomm_priv_level_capabilities(const dscomm_level_t *level);
/* OK, or the failure that has ended the group. */
dscomm_status_t dscomm_priv_levels_check(dscomm_levels_t *levels);
/* Runs one blocking collective of a level; args->sequence is set to the
 * level's. On failure the group ends on all levels. */
dscomm_status_t dscomm_priv_level_run(dscomm_levels_t *levels,
                                      dscomm_level_t *level,
                                      dscomm_coll_args_t *args);
/* Revokes the group with this thread's last failure, which has status. Returns
 * the status with which the group has ended. */
dscomm_status_t dscomm_priv_levels_give_up(dscomm_levels_t *levels,
                                           dscomm_status_t status);
/* Advances the levels that no other thread uses: a turn of dscomm_help_t. */
int dscomm_priv_levels_turn(void *levels);

#endif
