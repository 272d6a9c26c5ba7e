/* SPDX-License-Identifier: BSD-3-Clause */
/* Point to point: the queues of messages above the channels. */
#ifndef SHM_P2P_H
#define SHM_P2P_H

#include "backends/shm/channel.h"
#include "backends/shm/request.h"

/* The state of messages with one peer. */
typedef struct {
    /* the channel to the peer, from the peer, is in use */
    bool sends, receives;
    shm_end_t out, in;
    unsigned interest; /* number of requests that wait for its frames */
    shm_list_t frames; /* requests whose next frame has no room yet */
    shm_list_t waiting; /* large sends that the peer has not granted yet */
    shm_list_t sending; /* sends in chunks that go ahead, or are granted */
    shm_list_t arriving; /* receives of chunks from the peer */
    uint64_t next_id;
} shm_pair_t;

/* A message that arrived before its receive was posted. */
typedef struct shm_early {
    struct shm_early *next;
    int source, tag;
    uint64_t bytes, id, reference;
    /* the send, if it is a large message of this rank to itself */
    shm_request_t *self;
    bool large;
    bool ahead; /* its bytes come in chunks */
    bool taken; /* set aside by a probe */
    unsigned char *kept; /* bytes of chunks that were taken from the channel */
    size_t moved; /* number of these */
    unsigned char data[];
} shm_early_t;

struct shm_p2p {
    shm_list_t posted; /* receives without a message, oldest first */
    unsigned any; /* number of those from any source */
    unsigned busy; /* sum of pairs->interest, and any */
    int first; /* the rank that is polled first; rotates */
    shm_early_t *early, **early_tail;
    shm_pair_t pairs[]; /* of each rank */
};

static inline shm_pair_t *shm_pair(shm_t *shm, int rank)
{
    return &shm->p2p->pairs[rank];
}

static inline void shm_want(shm_t *shm, int rank)
{
    shm_pair(shm, rank)->interest++;
    shm->p2p->busy++;
}

static inline void shm_unwant(shm_t *shm, int rank)
{
    shm_pair(shm, rank)->interest--;
    shm->p2p->busy--;
}

/* Whether a posted receive needs the frames of its source, or of all ranks. */
static inline void shm_want_source(shm_t *shm, int source)
{
    if (source == DSCOMM_ANY_SOURCE) {
        shm->p2p->any++;
        shm->p2p->busy++;
    } else {
        shm_want(shm, source);
    }
}

static inline void shm_unwant_source(shm_t *shm, int source)
{
    if (source == DSCOMM_ANY_SOURCE) {
        shm->p2p->any--;
        shm->p2p->busy--;
    } else {
        shm_unwant(shm, source);
    }
}

/* cancel.c: receives that were cancelled halfway, see SHM_DRAIN. */
void shm_drains_free(shm_pair_t *pair);

/* match.c: matches messages with receives. */
/* Removes and returns the oldest posted receive that matches a message; or
 * NULL. */
shm_request_t *shm_posted_take(shm_p2p_t *p2p, int source, int tag);
/* The oldest early message that matches a receive, or NULL; take removes it. */
shm_early_t *shm_early_find(const shm_p2p_t *p2p,
                            const dscomm_message_t *wanted);
shm_early_t *shm_early_take(shm_p2p_t *p2p, const dscomm_message_t *wanted);
/* Appends a new early message with room for bytes of data; NULL: no memory. */
shm_early_t *shm_early_add(shm_p2p_t *p2p, int source, int tag, size_t bytes);
void shm_early_free(shm_early_t *early);
/* Ends the group, because there is no memory for a message of source that must
 * be kept. */
dscomm_status_t shm_early_fail(shm_t *shm, int source);
/* Marks a receive complete: bytes of the message, OK or ERR_TRUNCATED. */
void shm_received(shm_t *shm, shm_request_t *request, int source, int tag,
                  uint64_t bytes);
void shm_completed(shm_t *shm, shm_request_t *request, dscomm_status_t status);

#endif
