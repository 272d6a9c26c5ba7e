/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses on both sides: their messages, and their end. */
#include "config.h"
#include "lib/call/access.h"

#include "lib/base/status.h"
#include "lib/group/failure.h"

#include <stdlib.h>

/* Bytes before the requests. */
#define HEAD ((sizeof(access_t) + 63) & ~(size_t)63)

static size_t request_room(const dscomm_group_t *group)
{
    return (group->ops.request_size + 63) & ~(size_t)63;
}

dscomm_status_t dscomm_priv_access_new(dscomm_work_t *work)
{
    work->copy = calloc(1, HEAD + ACCESS_MESSAGES * request_room(work->group));
    return work->copy
               ? DSCOMM_OK
               : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "group '%s': rank %d has no memory for a "
                             "put or get",
                             work->group->identity.name, work->group->rank);
}

dscomm_request_t *dscomm_priv_access_request(const dscomm_work_t *work,
                                             int which)
{
    return (void *)((char *)work->copy + HEAD +
                    (size_t)which * request_room(work->group));
}

dscomm_status_t dscomm_priv_access_post(dscomm_work_t *work, int which,
                                        dscomm_message_t message)
{
    const dscomm_group_t *group = work->group;
    dscomm_request_t *request = dscomm_priv_access_request(work, which);
    dscomm_status_t status;

    message.peer = work->call.access.peer;
    request->status = DSCOMM_IN_PROGRESS;
    status = message.send ? group->ops.isend(group->impl, &message, request)
                          : group->ops.irecv(group->impl, &message, request);
    dscomm_priv_access_of(work)->posted[which] = status >= 0;
    return status;
}

dscomm_status_t dscomm_priv_access_status(const dscomm_work_t *work)
{
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < ACCESS_MESSAGES; i++) {
        const dscomm_status_t one = dscomm_priv_access_request(work, i)->status;

        if (!dscomm_priv_access_of(work)->posted[i] ||
            one == DSCOMM_ERR_TRUNCATED)
            continue;
        if (one == DSCOMM_IN_PROGRESS)
            return one;
        if (status == DSCOMM_OK)
            status = one;
    }
    return status;
}

void dscomm_priv_access_cancel(dscomm_work_t *work, dscomm_status_t status)
{
    dscomm_group_t *group = work->group;

    (void)status;
    if (!work->copy) {
        group->ops.cancel(group->impl, &work->request);
        return;
    }
    for (int i = 0; i < ACCESS_MESSAGES; i++) {
        dscomm_request_t *request = dscomm_priv_access_request(work, i);

        if (!dscomm_priv_access_of(work)->posted[i] ||
            request->status != DSCOMM_IN_PROGRESS)
            continue;
        group->ops.cancel(group->impl, request);
        work->request.held |= request->held;
        group->works.held |= request->held;
    }
}

void dscomm_priv_access_forget(dscomm_work_t *work, dscomm_status_t status)
{
    (void)work;
    (void)status;
}

dscomm_status_t dscomm_priv_access_overdue(dscomm_work_t *work,
                                           dscomm_failure_t *ret_failure)
{
    const int peer = work->call.access.peer;

    dscomm_priv_group_accuse(work->group, peer, ret_failure);
    if (work->call.access.served)
        dscomm_backend_failure_detail(
            ret_failure, "rank %d has not brought it to its end", peer);
    else if (work->call.access.native)
        dscomm_backend_failure_detail(
            ret_failure,
            "its memory was not reached in time: perhaps the ranks are not "
            "connected yet, and rank %d is in no call of dscomm",
            peer);
    else
        dscomm_backend_failure_detail(
            ret_failure,
            "rank %d has not answered: perhaps it is in no call of dscomm",
            peer);
    return DSCOMM_OK;
}

void dscomm_priv_access_begin(dscomm_group_t *group)
{
    dscomm_priv_works_scheduled(group, 1);
}

void dscomm_priv_access_end(dscomm_work_t *work)
{
    dscomm_priv_works_scheduled(work->group, -1);
}

dscomm_mem_t *dscomm_priv_mem_find(const dscomm_group_t *group, uint64_t id,
                                   uint64_t offset, uint64_t bytes)
{
    dscomm_mem_t *mem;

    SLIST_FOREACH (mem, &group->memory.registered, link)
        if (mem->id == id)
            return bytes <= mem->bytes && offset <= mem->bytes - bytes ? mem
                                                                       : NULL;
    return NULL;
}

uint64_t *dscomm_priv_access_puts(dscomm_group_t *group)
{
    if (!group->memory.puts)
        group->memory.puts = g_try_new0(uint64_t, 2 * (size_t)group->size);
    return group->memory.puts;
}
