/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals: messages that tell how many puts they follow. */
#include "config.h"
#include "lib/call/access.h"

#include "lib/base/status.h"
#include "lib/call/receive.h"
#include "lib/call/recording.h"

#include <stdlib.h>

static dscomm_call_t signal_describe(int rank)
{
    return (dscomm_call_t){
        .type = CALL_MESSAGE,
        .p2p = {.message = {.bytes = sizeof(uint64_t),
                            .peer = rank,
                            .tag = TAG_SIGNALLED},
                .dtype = DSCOMM_UINT64,
                .count = 1},
    };
}

static dscomm_status_t signal_check(dscomm_group_t *group, const char *name,
                                    int rank)
{
    const dscomm_status_t status = dscomm_priv_group_usable(group, name);

    if (status < 0)
        return status;
    if (dscomm_priv_group_is(group, GROUP_COALESCING))
        return dscomm_priv_recording_refuse(group, name);
    return dscomm_priv_check_peer(group, name, rank, 0, 0);
}

static dscomm_status_t signal_start(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;
    dscomm_message_t *message = &work->call.p2p.message;
    uint64_t *follows;

    if (message->peer == group->rank) {
        group->memory.signals++;
        work->request.status = DSCOMM_OK;
        return DSCOMM_OK;
    }
    follows = malloc(sizeof *follows);
    if (!follows)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "group '%s': no memory for a signal",
                           group->identity.name);
    *follows = group->memory.puts
                   ? GUINT64_TO_LE(group->memory.puts[message->peer])
                   : 0;
    work->copy = follows;
    message->send = follows;
    return group->ops.isend(group->impl, message, &work->request);
}

static const dscomm_work_kind_t signal_kind = {.start = signal_start};

dscomm_status_t dscomm_signal(dscomm_group_t *group, int rank,
                              dscomm_work_t **ret_work)
{
    dscomm_call_t call = signal_describe(rank);
    dscomm_status_t status = signal_check(group, "dscomm_signal", rank);

    if (status < 0)
        return status;
    call.async = ret_work != NULL;
    call.p2p.sequence = ++group->life.messages;
    return ret_work
               ? dscomm_priv_work_start(group, &signal_kind, &call, ret_work)
               : dscomm_priv_work_block(group, &signal_kind, &call, NULL);
}

/* A work that takes a signal of this rank to itself. */
static void own_advance(dscomm_work_t *work)
{
    if (!work->group->memory.signals)
        return;
    work->group->memory.signals--;
    work->request.status = DSCOMM_OK;
}

static dscomm_status_t own_start(dscomm_work_t *work)
{
    dscomm_priv_access_begin(work->group);
    own_advance(work);
    return DSCOMM_OK;
}

static int own_expire(dscomm_work_t *work, int64_t now)
{
    if (now < work->call.deadline_ns)
        return 0;
    dscomm_priv_work_retire(work, DSCOMM_ERR_TIMEOUT, "no signal has come");
    return 1;
}

static const dscomm_work_kind_t own_kind = {
    .start = own_start,
    .advance = own_advance,
    .cancel = dscomm_priv_access_forget,
    .end = dscomm_priv_access_end,
    .expire = own_expire,
};

static dscomm_status_t own_wait(dscomm_group_t *group, int64_t deadline_ns)
{
    const dscomm_call_t call = {
        .type = CALL_ACCESS,
        .deadline_ns = deadline_ns,
        .access = {.served = true, .peer = group->rank},
    };

    return dscomm_priv_work_block(group, &own_kind, &call, NULL);
}

/* A work that is complete when so many puts of the peer have come: offset. */
static void landed_advance(dscomm_work_t *work)
{
    const dscomm_group_t *group = work->group;

    if (group->memory.puts[group->size + work->call.access.peer] >=
        work->call.access.offset)
        work->request.status = DSCOMM_OK;
}

static dscomm_status_t landed_start(dscomm_work_t *work)
{
    dscomm_priv_access_begin(work->group);
    landed_advance(work);
    return DSCOMM_OK;
}

static const dscomm_work_kind_t landed_kind = {
    .start = landed_start,
    .advance = landed_advance,
    .cancel = dscomm_priv_access_forget,
    .end = dscomm_priv_access_end,
    .overdue = dscomm_priv_access_overdue,
};

static dscomm_status_t landed_wait(dscomm_group_t *group, int rank,
                                   uint64_t puts)
{
    const dscomm_call_t call = {
        .type = CALL_ACCESS,
        .access = {.served = true, .peer = rank, .offset = puts},
    };

    if (!puts)
        return DSCOMM_OK;
    if (!dscomm_priv_access_puts(group))
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "group '%s': no memory for counts of puts",
                           group->identity.name);
    return dscomm_priv_work_block(group, &landed_kind, &call, NULL);
}

/* The number is received into memory of the work, which the backend may keep.
 */
static dscomm_status_t arrival_start(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;
    dscomm_message_t *message = &work->call.p2p.message;

    work->copy = calloc(1, message->bytes);
    if (!work->copy)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "group '%s': no memory for a signal",
                           group->identity.name);
    message->recv = work->copy;
    return group->ops.irecv(group->impl, message, &work->request);
}

static void arrival_end(dscomm_work_t *work)
{
    const uint64_t *follows = work->copy;

    work->group->memory.followed =
        work->request.status == DSCOMM_OK ? GUINT64_FROM_LE(*follows) : 0;
}

static const dscomm_work_kind_t arrival_kind = {
    .start = arrival_start,
    .end = arrival_end,
    .expire = dscomm_priv_receive_expire,
};

dscomm_status_t dscomm_signal_wait(dscomm_group_t *group, int rank,
                                   int timeout_ms)
{
    const char *name = "dscomm_signal_wait";
    dscomm_call_t call = signal_describe(rank);
    dscomm_status_t status = signal_check(group, name, rank);

    if (status == DSCOMM_OK)
        status = dscomm_priv_receive_deadline(group, name, timeout_ms,
                                              &call.deadline_ns);
    if (status < 0)
        return status;
    call.p2p.receive = 1;
    call.p2p.sequence = ++group->life.messages;
    status = rank == group->rank
                 ? own_wait(group, call.deadline_ns)
                 : dscomm_priv_work_block(group, &arrival_kind, &call, NULL);
    if (status == DSCOMM_ERR_TIMEOUT &&
        dscomm_priv_group_usable(group, name) == DSCOMM_OK)
        return dscomm_fail(status,
                           "%s on group '%s': no signal of rank %d has come in "
                           "time; the group goes on",
                           name, group->identity.name, rank);
    return status < 0 || rank == group->rank
               ? status
               : landed_wait(group, rank, group->memory.followed);
}
