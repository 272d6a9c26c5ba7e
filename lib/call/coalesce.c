/* SPDX-License-Identifier: BSD-3-Clause */
/* Coalescing: calls are recorded, then started in order as the children of one
 * compound work. */
#include "config.h"
#include "lib/call/dispatch.h"
#include "lib/call/receive.h"
#include "lib/call/recording.h"
#include "lib/group/failure.h"
#include "lib/schedule/collective.h"
#include "lib/work/pending.h"

#include <dscomm/hook.h>
#include <stdlib.h>
#include <string.h>

dscomm_status_t dscomm_coalesce_begin(dscomm_group_t *group)
{
    dscomm_status_t status =
        dscomm_priv_group_ready(group, "dscomm_coalesce_begin");

    if (status < 0)
        return status;
    group->recording.last = 0;
    group->recording.extension.call = NULL;
    dscomm_priv_group_set(group, GROUP_COALESCING);
    return DSCOMM_OK;
}

/* Numbers the call. Fused calls have the sequence of the first one, so that
 * ranks that fused other calls detect the difference. */
static void call_number(dscomm_group_t *group, dscomm_call_t *call)
{
    if (call->type == CALL_COLLECTIVE) {
        call->coll.sequence = group->sequence + 1;
        group->sequence += MAX(call->parts, 1);
        dscomm_priv_complete_displs(group, &call->coll);
    } else {
        call->p2p.sequence = ++group->life.messages;
    }
}

/* Called when a child has ended, and after the last one was started. */
static void compound_count(dscomm_work_t *compound)
{
    if (--compound->children.remaining == 0)
        dscomm_priv_work_retire(compound, compound->children.failure, NULL);
}

static void compound_child_end(dscomm_work_t *child, dscomm_status_t status)
{
    dscomm_work_t *compound = child->compound;

    if (dscomm_priv_receive_is(child) && compound->children.received)
        dscomm_priv_message_info_fill(
            &compound->children.received[child->call.p2p.place], status,
            &child->request);
    if (status < 0 && compound->children.failure == DSCOMM_OK) {
        compound->children.failure = status;
        compound->text = g_steal_pointer(&child->text);
    }
    dscomm_priv_work_discard(child);
    compound_count(compound);
}

static void compound_release(dscomm_work_t *compound)
{
    g_clear_pointer(&compound->children.received, g_free);
}

static const dscomm_work_kind_t compound_kind = {
    .child_end = compound_child_end,
    .release = compound_release,
};

static const dscomm_work_kind_t *call_kind(const dscomm_call_t *call)
{
    return call->type == CALL_MESSAGE ? &dscomm_priv_message_kind
                                      : dscomm_priv_collective_kind(call);
}

/* Called with the group's lock held. */
static dscomm_status_t compound_start_child(dscomm_work_t *compound,
                                            dscomm_call_t *call)
{
    dscomm_work_t *child;
    dscomm_status_t status;

    call_number(compound->group, call);
    status =
        dscomm_priv_work_new(compound->group, call_kind(call), call, &child);
    call->bounce = NULL;
    if (status < 0)
        return status;
    child->compound = compound;
    compound->children.remaining++;
    status = dscomm_priv_work_launch(child);
    if (status < 0) {
        compound->children.remaining--;
        dscomm_priv_work_discard(child);
    }
    return status;
}

/* Numbers the receives among calls, and allocates their results. */
static dscomm_status_t number_receives(dscomm_work_t *compound,
                                       const dscomm_array_t *calls)
{
    for (uint32_t i = 0; i < calls->len; i++) {
        dscomm_call_t *call = (dscomm_call_t *)calls->data + i;

        if (call->type == CALL_MESSAGE && call->p2p.receive)
            call->p2p.place = compound->children.receives++;
    }
    if (!compound->children.receives)
        return DSCOMM_OK;
    compound->children.received =
        g_try_new0(dscomm_message_info_t, compound->children.receives);
    if (!compound->children.received)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "dscomm_coalesce_end on group '%s': rank %d has no "
                           "memory for what %zu receives get",
                           compound->group->identity.name,
                           compound->group->rank, compound->children.receives);
    for (size_t i = 0; i < compound->children.receives; i++)
        compound->children.received[i].size =
            sizeof *compound->children.received;
    return DSCOMM_OK;
}

/* Called with the group's lock held. The compound counts one more than its
 * children, so that it cannot complete before the last is started. If a child
 * cannot be started, the call fails; the children before it go on without an
 * owner. */
static dscomm_status_t coalesced_start_all(dscomm_group_t *group,
                                           dscomm_array_t *calls, int held,
                                           dscomm_work_t **ret_work)
{
    dscomm_call_t call = {.type = CALL_COMPOUND, .async = 1};
    dscomm_work_t *compound;
    dscomm_status_t status;
    guint i;

    call.coll.sequence = group->sequence + 1;
    status = dscomm_priv_work_new(group, &compound_kind, &call, &compound);
    if (status < 0)
        return status;
    compound->children.remaining = 1;
    compound->held = held;
    status = number_receives(compound, calls);
    if (status < 0)
        dscomm_priv_group_give_up(group, status);
    for (i = 0; i < calls->len && status == DSCOMM_OK; i++)
        status =
            compound_start_child(compound, (dscomm_call_t *)calls->data + i);
    if (status == DSCOMM_OK)
        *ret_work = compound;
    else
        compound->zombie = 1;
    if (status < 0 && group->works.pending)
        dscomm_priv_pending_add(group, true);
    compound_count(compound);
    return status;
}

static void calls_free(dscomm_array_t *calls)
{
    const dscomm_call_t *call = calls->data;

    for (uint32_t i = 0; i < calls->len; i++)
        dscomm_priv_bounce_free(call[i].bounce);
    dscomm_priv_array_clear(calls);
}

/* Moves messages after the collectives, each in their order. Which collectives
 * are fused must not depend on messages, because these differ between ranks. */
static dscomm_status_t calls_part_messages(dscomm_group_t *group)
{
    dscomm_call_t *calls = dscomm_priv_recording_calls(group), *messages;
    const uint32_t count = group->recording.calls.len;
    uint32_t moved = 0, kept = 0;

    for (uint32_t i = 0; i < count; i++)
        moved += calls[i].type == CALL_MESSAGE;
    if (!moved || moved == count)
        return DSCOMM_OK;
    messages = calloc(moved, sizeof *messages);
    if (!messages)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "dscomm_coalesce_end on group '%s': rank %d has no "
                           "memory for %u messages",
                           group->identity.name, group->rank, moved);
    moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        dscomm_call_t call = calls[i];

        *(call.type == CALL_MESSAGE ? &messages[moved++] : &calls[kept++]) =
            call;
    }
    memcpy(calls + kept, messages, moved * sizeof *messages);
    free(messages);
    return DSCOMM_OK;
}

/* Makes the list of calls to start from the recorded ones; small calls of one
 * kind are fused. */
static dscomm_status_t calls_plan(dscomm_group_t *group, dscomm_array_t *calls)
{
    const dscomm_call_t *call = dscomm_priv_recording_calls(group);
    size_t left = group->recording.calls.len, extent;
    dscomm_call_t *planned;
    dscomm_status_t status = calls_part_messages(group);

    if (status < 0)
        return status;
    for (; left; left -= extent, call += extent) {
        dscomm_call_t one = *call;

        extent = dscomm_priv_fusion_extent(call, left);
        planned = dscomm_priv_array_add(calls, sizeof *planned);
        if (planned)
            *planned = one;
        if (!planned ||
            (extent > 1 && !dscomm_priv_fusion_new(call, extent, &one)))
            return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                               "dscomm_coalesce_end on group '%s': rank %d has "
                               "no memory for a buffer for %zu calls",
                               group->identity.name, group->rank, extent);
        if (one.type == CALL_COLLECTIVE) {
            dscomm_priv_complete_displs(group, &one.coll);
            one.algorithm = dscomm_priv_dispatch_choose(group, &one.coll, 1);
            dscomm_priv_recording_forget_scratch(group, &one.coll);
        }
        *planned = one;
    }
    return DSCOMM_OK;
}

/* True if the only recorded call is a collective, to be run as a blocking one.
 * The backend's blocking calls must match calls with a work, because other
 * ranks may have coalesced more calls. */
static int recording_is_one_collective(const dscomm_group_t *group)
{
    return group->recording.calls.len == 1 && group->recording.last == 1 &&
           group->ops.start &&
           !(group->capabilities & DSCOMM_CAP_SEPARATE_MATCHING);
}

static dscomm_status_t calls_run_plain(dscomm_group_t *group)
{
    dscomm_call_t call = *dscomm_priv_recording_calls(group);

    call.async = 0;
    call_number(group, &call);
    call.algorithm = dscomm_priv_dispatch_choose(group, &call.coll, 1);
    return dscomm_priv_dispatch_block(group, &call);
}

/* Starts the calls; held: of a blocking call. Without memory the group ends,
 * because peers would wait for this rank. */
static dscomm_status_t coalesced_start(dscomm_group_t *group, int held,
                                       dscomm_work_t **ret_work)
{
    dscomm_array_t calls = {0};
    dscomm_status_t status = calls_plan(group, &calls);

    if (status == DSCOMM_OK) {
        pthread_mutex_lock(&group->works.lock);
        status = coalesced_start_all(group, &calls, held, ret_work);
        pthread_mutex_unlock(&group->works.lock);
    } else {
        dscomm_priv_group_give_up(group, status);
    }
    calls_free(&calls);
    return status;
}

dscomm_status_t dscomm_coalesce_end(dscomm_group_t *group,
                                    dscomm_work_t **ret_work)
{
    const char *name = "dscomm_coalesce_end";
    dscomm_work_t *work = NULL;
    uint64_t before;
    dscomm_status_t status;

    status = dscomm_priv_group_usable(group, name);
    if (status < 0) {
        if (group)
            dscomm_priv_recording_drop(group);
        return status;
    }
    if (!dscomm_priv_group_is(group, GROUP_COALESCING))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s on group '%s': there was no coalesce_begin",
                           name, group->identity.name);
    dscomm_priv_group_clear(group, GROUP_COALESCING);
    dscomm_priv_recording_settle(group);
    if (!ret_work && recording_is_one_collective(group)) {
        status = calls_run_plain(group);
        dscomm_priv_recording_clear(group);
        return status;
    }
    before = group->sequence;
    status = coalesced_start(group, !ret_work, &work);
    dscomm_priv_recording_clear(group);
    if (status < 0)
        return status;
    if (ret_work) {
        *ret_work = work;
        return DSCOMM_OK;
    }
    status = dscomm_priv_work_wait(work, DSCOMM_TIMEOUT_DEFAULT);
    dscomm_work_free(work);
    if (group->sequence > before)
        dscomm_priv_works_await(group);
    return status;
}
