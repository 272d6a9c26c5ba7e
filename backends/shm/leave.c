/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that leave in good order while others still wait for them. Calls that
 * they made before they left still count. */
#include "config.h"

#include "backends/shm/p2p.h"

#include <stdio.h>

shm_left_t shm_left(const shm_t *shm, int rank)
{
    return (shm_left_t)atomic_load_explicit(&shm_control(shm, rank)->left,
                                            memory_order_acquire);
}

void shm_leave(shm_t *shm, shm_left_t how)
{
    atomic_store_explicit(&shm->own->left, how, memory_order_release);
    shm_wake(shm);
}

/* Returns a rank that has left without beginning the current collective, or -1.
 * In the world's last barrier, ranks that leave still take part; if one calls
 * another collective instead, that is a mismatch. */
int shm_left_early(const shm_t *shm)
{
    shm_left_t enough = shm->world ? SHM_LEFT : SHM_LEAVING;

    for (int r = 0; shm->op_step && r < shm->ranks; r++)
        if (shm_left(shm, r) >= enough &&
            shm_last_sequence(shm, r) < shm->op_args->sequence)
            return r;
    return -1;
}

void shm_left_describe(const shm_t *shm, int rank, char *text, size_t size)
{
    if (rank < 0)
        snprintf(text, size,
                 "all other ranks have left group '%s' and do nothing more",
                 shm->name);
    else
        snprintf(text, size,
                 "rank %d has left (%s) and does nothing more on group '%s'",
                 shm_number(shm, rank),
                 shm_left(shm, rank) == SHM_FREED ? "dscomm_group_free"
                                                  : "dscomm_finalize",
                 shm->name);
}

static bool all_others_left(const shm_t *shm)
{
    for (int r = 0; r < shm->ranks; r++)
        if (r != shm->rank && shm_left(shm, r) == SHM_STAYS)
            return false;
    return true;
}

/* Whether no rank can send to this receive any more, because its source has
 * left. With any source, this rank itself could still send, unless it waits in
 * this call. In the world's last barrier, which may be messages of the core,
 * ranks that are leaving still send. */
static bool receive_is_orphaned(const shm_t *shm, const shm_request_t *receive)
{
    const dscomm_message_t *message = &receive->p2p.message;
    int source = message->peer;
    bool last = shm->world && message->tag <= DSCOMM_TAG_COLLECTIVE;

    if (source == DSCOMM_ANY_SOURCE)
        return receive->p2p.blocking && all_others_left(shm);
    return source != shm->rank &&
           shm_left(shm, source) >= (last ? SHM_LEFT : SHM_LEAVING);
}

/* Fails the receives whose source has left: those that are orphaned before all
 * messages that have arrived are matched, and still wait afterwards. */
void shm_left_receives(shm_t *shm)
{
    shm_request_t *receive, *next;
    bool any = false;

    if (atomic_load(&shm->own->left) != SHM_STAYS)
        return;
    for (receive = shm->p2p->posted.head; receive; receive = receive->next) {
        receive->p2p.orphaned = receive_is_orphaned(shm, receive);
        any = any || receive->p2p.orphaned;
    }
    if (!any)
        return;
    shm->advance_messages(shm);
    for (receive = shm->p2p->posted.head; receive; receive = next) {
        next = receive->next;
        if (!receive->p2p.orphaned)
            continue;
        shm_list_remove(&shm->p2p->posted, receive);
        shm_unwant_source(shm, receive->p2p.message.peer);
        receive->head.source = receive->p2p.message.peer;
        shm_completed(shm, receive, DSCOMM_ERR_PEER_FAILED);
    }
}

int shm_left_halfway(const shm_t *shm)
{
    for (int r = 0; r < shm->ranks; r++) {
        const shm_pair_t *pair = &shm->p2p->pairs[r];

        if ((pair->frames.head || pair->waiting.head || pair->sending.head ||
             pair->arriving.head) &&
            shm_left(shm, r) >= SHM_LEFT)
            return r;
    }
    return -1;
}
