/* SPDX-License-Identifier: BSD-3-Clause */
/* See recorded.h. */
#include "config.h"

#include "lib/group/recorded.h"
#include "lib/group/world.h"

#include <string.h>

#define DIFFERENCE_CALLS 64 /* that are compared */

struct dscomm_recorded_group {
    const dscomm_group_t *group;
    dscomm_recorder_t view;
    int *slots; /* by world rank; -1: none */
};

/* Notes which slot each rank of the world has. */
static void slots_find(dscomm_recorded_group_t *seen)
{
    const dscomm_world_t *world = seen->group->identity.world;

    for (int r = 0; r < world->size; r++)
        seen->slots[r] = -1;
    for (uint32_t i = 0; i < seen->view.slots; i++) {
        const dscomm_recorder_slot_t *slot = &seen->view.memory->slot[i];

        if (atomic_load(&slot->pid) && slot->rank >= 0 &&
            slot->rank < world->size &&
            strncmp(slot->world, world->meeting.id, sizeof slot->world) == 0)
            seen->slots[slot->rank] = (int)i;
    }
}

dscomm_recorded_group_t *dscomm_priv_recorded_open(const dscomm_group_t *group)
{
    const dscomm_world_t *world = group ? group->identity.world : NULL;
    dscomm_recorded_group_t *seen;

    if (!world || !world->recorder.memory)
        return NULL;
    seen = g_try_new0(dscomm_recorded_group_t, 1);
    if (!seen)
        return NULL;
    seen->group = group;
    seen->view = (dscomm_recorder_t)DSCOMM_RECORDER_INIT;
    seen->slots = g_try_new(int, (gsize)world->size);
    if (seen->slots && !dscomm_priv_recorder_view(&world->recorder,
                                                  RECORDER_READ, &seen->view)) {
        slots_find(seen);
        return seen;
    }
    dscomm_priv_recorded_close(seen);
    return NULL;
}

void dscomm_priv_recorded_close(dscomm_recorded_group_t *seen)
{
    if (!seen)
        return;
    dscomm_priv_recorder_close(&seen->view);
    g_free(seen->slots);
    g_free(seen);
}

/* Returns the group's number in the slot; 0: it is not there. */
static uint32_t number_find(const dscomm_group_t *group,
                            const dscomm_recorder_slot_t *slot)
{
    const uint32_t last = atomic_load(&slot->groups);
    dscomm_recorder_group_t found;

    for (uint32_t i = 0; i < MIN(last, RECORDER_GROUPS); i++)
        if (dscomm_priv_recorder_read_group(slot, last - i, &found) &&
            strncmp(found.id, group->identity.id, sizeof found.id - 1) == 0)
            return last - i;
    return 0;
}

static const dscomm_recorder_slot_t *
slot_of(const dscomm_recorded_group_t *seen, int world_rank)
{
    if (world_rank < 0 || world_rank >= seen->group->identity.world->size ||
        seen->slots[world_rank] < 0)
        return NULL;
    return &seen->view.memory->slot[seen->slots[world_rank]];
}

const dscomm_recorder_slot_t *
dscomm_priv_recorded_slot(const dscomm_recorded_group_t *seen, int world_rank,
                          uint32_t *ret_number)
{
    const dscomm_recorder_slot_t *slot = slot_of(seen, world_rank);

    *ret_number = slot ? number_find(seen->group, slot) : 0;
    return *ret_number ? slot : NULL;
}

int64_t dscomm_priv_recorded_pid(const dscomm_recorded_group_t *seen,
                                 int world_rank)
{
    const dscomm_recorder_slot_t *slot = slot_of(seen, world_rank);

    return slot ? atomic_load(&slot->pid) : 0;
}

bool dscomm_priv_recorded_failed(const dscomm_recorded_group_t *seen,
                                 int world_rank)
{
    const dscomm_recorder_slot_t *slot = slot_of(seen, world_rank);

    return slot && atomic_load(&slot->has_failed) == 2 &&
           strncmp(slot->failure.group, seen->group->identity.name,
                   sizeof slot->failure.group - 1) == 0;
}

bool dscomm_priv_recorded_may_have_called(const dscomm_recorded_group_t *seen,
                                          int world_rank, uint64_t sequence)
{
    uint32_t number;
    const dscomm_recorder_slot_t *slot =
        dscomm_priv_recorded_slot(seen, world_rank, &number);
    const uint64_t last = slot ? atomic_load(&slot->calls) : 0;
    dscomm_recorded_t call;

    for (uint64_t i = 0; i < MIN(last, RECORDER_CALLS); i++)
        if (dscomm_priv_recorder_read(slot, last - i, &call) &&
            call.group == number && call.coll < DSCOMM_COLL_SEND)
            return call.sequence >= sequence;
    return !slot || last > RECORDER_CALLS;
}

const dscomm_recorder_slot_t *
dscomm_priv_recorded_find(const dscomm_recorded_group_t *seen, int world_rank,
                          uint64_t sequence, dscomm_recorded_t *ret_call)
{
    uint32_t number;
    const dscomm_recorder_slot_t *slot =
        dscomm_priv_recorded_slot(seen, world_rank, &number);
    const uint64_t last = slot ? atomic_load(&slot->calls) : 0;

    for (uint64_t i = 0; i < MIN(last, RECORDER_CALLS); i++) {
        if (!dscomm_priv_recorder_read(slot, last - i, ret_call) ||
            ret_call->group != number || ret_call->coll >= DSCOMM_COLL_SEND)
            continue;
        if (ret_call->sequence <= sequence)
            return ret_call->sequence == sequence ? slot : NULL;
    }
    return NULL;
}

bool dscomm_priv_recorded_call(const dscomm_recorded_group_t *seen,
                               int world_rank, uint64_t sequence,
                               dscomm_call_seen_t *ret_call)
{
    dscomm_recorded_t call;
    const dscomm_recorder_slot_t *slot =
        dscomm_priv_recorded_find(seen, world_rank, sequence, &call);

    if (!slot)
        return false;
    *ret_call = (dscomm_call_seen_t){
        .rank = world_rank,
        .pid = atomic_load(&slot->pid),
        .fingerprint = call.fingerprint,
        .coll = call.coll,
        .sequence = sequence,
    };
    dscomm_priv_recorder_describe(slot, &call, ret_call->text,
                                  sizeof ret_call->text);
    return true;
}

uint64_t dscomm_priv_recorded_difference(const dscomm_recorded_group_t *seen,
                                         int one, int other, uint64_t last)
{
    const uint64_t first =
        last > DIFFERENCE_CALLS ? last - DIFFERENCE_CALLS + 1 : 1;
    dscomm_call_seen_t mine, theirs;

    for (uint64_t s = first; s <= last; s++)
        if (dscomm_priv_recorded_call(seen, one, s, &mine) &&
            dscomm_priv_recorded_call(seen, other, s, &theirs) &&
            mine.fingerprint != theirs.fingerprint)
            return s;
    return 0;
}
