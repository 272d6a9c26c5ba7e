/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations in progress: the state of a collective, and of a message. */
#ifndef SHM_REQUEST_H
#define SHM_REQUEST_H

#include "backends/shm/shm.h"

/* The result of one turn of a running operation; negative: a dscomm_status_t.
 */
enum { SHM_AGAIN = 0, SHM_DONE = 1 };

/* A collective as a state machine that never waits: advance does whatever is
 * possible now. Pieces are numbered from 0. A piece takes one step (two, for
 * reductions with a scattered result) and some bytes of every ring. */
struct shm_op {
    const dscomm_coll_args_t *args;
    int (*advance)(shm_t *shm, shm_op_t *op);
    int (*begin)(shm_t *shm, shm_op_t *op); /* after a trial */
    dscomm_reduce_fn kernel;
    size_t bytes; /* of one part: the bytes for, or from, one rank */
    size_t total; /* of a reduction: the bytes of one rank's whole input */
    size_t chunk; /* bytes of one part in one piece */
    size_t region; /* bytes of a ring that one piece takes */
    size_t pieces;
    size_t published; /* pieces put into this rank's ring */
    size_t reduced; /* pieces whose part is reduced by this rank */
    size_t finished; /* pieces read to the end */
    uint64_t first; /* step of the operation */
    uint64_t data; /* step of piece 0 */
    uint64_t taken; /* a step taken for piece `published`, not yet written */
    int stage;
    int peer; /* next rank to look at in the current piece */
    int next; /* next result to copy out of piece `finished` */
    bool stream; /* results bypass the cache */
    bool inlined; /* the data is in the flags' lines */
    bool referenced; /* peers read this rank's buffer in place */
    /* bits of the ranks that were read in place already */
    uint64_t references[SHM_MAX_RANKS / 64];
};

/* SHM_DRAIN: replaces a receive that was cancelled while its message arrived,
 * and discards the rest of the message. */
typedef enum { SHM_COLLECTIVE, SHM_SEND, SHM_RECV, SHM_DRAIN } shm_kind_t;

struct shm_request {
    dscomm_request_t head;
    shm_kind_t kind;
    shm_request_t *next;
    union {
        struct {
            dscomm_coll_args_t args;
            shm_op_t op;
        } collective;
        struct {
            dscomm_message_t message;
            size_t moved; /* bytes through the channel so far */
            uint64_t id; /* of a large message, given by its sender */
            /* shm_reference() of a message that is read in place */
            uint64_t reference;
            uint64_t total; /* bytes of the message that a receive matched */
            bool ahead; /* the bytes come without an answer */
            bool blocking; /* the caller waits for it in a blocking call */
            bool orphaned; /* see leave.c */
        } p2p;
    };
};

static inline bool shm_list_empty(const shm_list_t *list)
{
    return !list->head;
}

static inline void shm_list_append(shm_list_t *list, shm_request_t *request)
{
    request->next = NULL;
    if (list->head)
        list->tail->next = request;
    else
        list->head = request;
    list->tail = request;
}

static inline bool shm_list_remove(shm_list_t *list, shm_request_t *request)
{
    shm_request_t **link = &list->head, *before = NULL;

    while (*link && *link != request) {
        before = *link;
        link = &before->next;
    }
    if (!*link)
        return false;
    *link = request->next;
    if (list->tail == request)
        list->tail = before;
    return true;
}

void shm_collective_cancel(shm_t *shm, shm_request_t *request);

/* The functions that begin each kind of collective */
int shm_exchange_begin(shm_t *shm, shm_op_t *op);
int shm_reduce_begin(shm_t *shm, shm_op_t *op);
/* and each algorithm of reductions */
int shm_flat_begin(shm_t *shm, shm_op_t *op);
int shm_parts_begin(shm_t *shm, shm_op_t *op);
int shm_direct_begin(shm_t *shm, shm_op_t *op);
/* Goes on with an operation whose ranks have raised the flag of its first step,
 * with a reference to the send buffer and one to the result in its line. */
int shm_read_begin(shm_t *shm, shm_op_t *op);

/* Write how an operation, which has nothing but args, would be carried out. */
void shm_exchange_info(shm_t *shm, shm_op_t *op, dscomm_native_info_t *info);
void shm_reduce_info(shm_t *shm, shm_op_t *op, dscomm_native_info_t *info);

/* Adds one rank: bytes that it gets from others, and that it reads and writes.
 */
static inline void shm_info_add(dscomm_native_info_t *info, uint64_t moved,
                                uint64_t memory)
{
    info->moved += moved;
    info->memory += memory;
    info->busiest = MAX(info->busiest, memory);
}

#endif
