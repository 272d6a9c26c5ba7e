/* SPDX-License-Identifier: BSD-3-Clause */
/* The culprit of a message that has timed out. The rank for which it waits may
 * wait for another one itself, as its flight recorder shows. */
#include "config.h"

#include "lib/group/failure.h"
#include "lib/group/recorded.h"
#include "lib/recorder/dump.h"

#include <stdio.h>
#include <string.h>

/* Calls that are read to find a rank's last blocking one. */
#define LOOK_BACK 64

/* Finds the last blocking call of a rank. */
static bool rank_last_call(const dscomm_recorder_slot_t *slot,
                           dscomm_recorded_t *ret_call)
{
    const uint64_t last = atomic_load(&slot->calls);

    for (uint64_t i = 0; i < MIN(last, LOOK_BACK); i++) {
        if (!dscomm_priv_recorder_read(slot, last - i, ret_call))
            return false;
        if (!(ret_call->flags & (RECORDED_ASYNC | RECORDED_INTERNAL)))
            return true;
    }
    return false;
}

/* True if the call began before half of the deadline that has passed: a rank
 * that has called late is what the others waited for. */
static bool call_is_old(const dscomm_recorder_slot_t *slot,
                        const dscomm_recorded_t *call, int timeout_ms)
{
    const dscomm_moment_t now = dscomm_priv_moment_by(slot->is_counted);
    const int64_t called =
        dscomm_priv_ticks_to_ns(call->called, &slot->opened, &now);

    return now.monotonic_ns - called >= timeout_ms * NS_PER_MS / 2;
}

/* Finds the rank of group for which a rank of this machine waits in a blocking
 * message. False: it waits in none, cannot run, or that is not known. */
static bool rank_awaits(const dscomm_recorded_group_t *seen,
                        const dscomm_group_t *group, int rank, int timeout_ms,
                        int *ret_peer)
{
    const int world_rank = group->identity.world_ranks[rank];
    uint32_t number;
    const dscomm_recorder_slot_t *slot =
        dscomm_priv_recorded_slot(seen, world_rank, &number);
    dscomm_recorded_t call;

    if (!slot || dscomm_priv_recorder_state(slot) != SLOT_RUNNING ||
        !rank_last_call(slot, &call) || call.group != number ||
        (call.coll != DSCOMM_COLL_SEND && call.coll != DSCOMM_COLL_RECV) ||
        call.peer < 0 || call.peer >= group->size)
        return false;
    /* the same deadline may have passed there a moment before */
    if (call.ended && (call.status != DSCOMM_ERR_TIMEOUT ||
                       !dscomm_priv_recorded_failed(seen, world_rank)))
        return false;
    *ret_peer = call.peer;
    return call_is_old(slot, &call, timeout_ms);
}

void dscomm_priv_failure_follow(const dscomm_group_t *group, int timeout_ms,
                                dscomm_failure_t *failure)
{
    /* blocking calls of others have the group's deadline */
    const int deadline_ms = MIN(timeout_ms, group->timeout_ms);
    dscomm_recorded_group_t *seen = dscomm_priv_recorded_open(group);
    int rank = failure->group_rank, peer, steps = 0;
    char text[160] = "";

    while (seen && rank >= 0 && rank < group->size && rank != group->rank &&
           steps < group->size &&
           rank_awaits(seen, group, rank, deadline_ms, &peer)) {
        const size_t used = strlen(text);

        snprintf(text + used, sizeof text - used, "; rank %d waits for rank %d",
                 rank, peer);
        rank = peer;
        steps++;
    }
    dscomm_priv_recorded_close(seen);
    if (!steps || rank == group->rank || steps == group->size)
        return;
    dscomm_backend_failure_detail(failure, "%s%s", failure->detail, text);
    dscomm_priv_group_accuse(group, rank, failure);
}

void dscomm_backend_failure_follow(const dscomm_group_t *group,
                                   dscomm_failure_t *failure)
{
    dscomm_priv_failure_follow(group, group->timeout_ms, failure);
}
