/* SPDX-License-Identifier: BSD-3-Clause */
/* Works: their memory, start and end. */
#include "config.h"
#include "lib/work/work.h"
#include "lib/base/op.h"
#include "lib/base/process.h"
#include "lib/base/status.h"
#include "lib/group/failure.h"
#include "lib/work/event.h"
#include "lib/work/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_WORKS 16
/* head of a slab; its works begin on a cache line */
#define SLAB_HEAD 64

struct dscomm_work_slab {
    struct dscomm_work_slab *next;
};

/* Bytes of a work with its request, rounded up to cache lines. */
static size_t work_size(const dscomm_group_t *group)
{
    size_t size = offsetof(dscomm_work_t, request) + group->ops.request_size;

    return (MAX(size, sizeof(dscomm_work_t)) + 63) & ~(size_t)63;
}

static dscomm_status_t slots_grow(dscomm_group_t *group)
{
    const size_t size = work_size(group);
    char *memory = aligned_alloc(64, SLAB_HEAD + SLAB_WORKS * size);
    struct dscomm_work_slab *slab = (void *)memory;

    if (!slab)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "group '%s': rank %d has no memory for %d works of "
                           "%zu bytes",
                           group->identity.name, group->rank, SLAB_WORKS, size);
    memset(memory, 0, SLAB_HEAD + SLAB_WORKS * size);
    group->works.size = size;
    slab->next = group->works.slabs;
    group->works.slabs = slab;
    for (int i = SLAB_WORKS - 1; i >= 0; i--) {
        dscomm_work_t *work = (void *)(memory + SLAB_HEAD + (size_t)i * size);

        work->group = group;
        work->next = group->works.idle;
        group->works.idle = work;
    }
    return DSCOMM_OK;
}

/* Copies the displacements, because the work outlives the scratch space. */
static dscomm_status_t own_displs(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;
    dscomm_coll_args_t *args = &work->call.coll;
    size_t size = (size_t)group->size, *send = group->scratch;

    if (args->send_displs != send && args->recv_displs != send + size)
        return DSCOMM_OK;
    work->displs = g_try_new(size_t, 2 * size);
    if (!work->displs)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "group '%s': rank %d has no memory for "
                           "displacements of %zu ranks",
                           group->identity.name, group->rank, size);
    memcpy(work->displs, send, 2 * size * sizeof(*send));
    if (args->send_displs == send)
        args->send_displs = work->displs;
    if (args->recv_displs == send + size)
        args->recv_displs = work->displs + size;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_work_new(dscomm_group_t *group,
                                     const dscomm_work_kind_t *kind,
                                     const dscomm_call_t *call,
                                     dscomm_work_t **ret_work)
{
    dscomm_work_t *work;
    dscomm_status_t status;

    if (!group->works.idle) {
        status = slots_grow(group);
        if (status < 0) {
            dscomm_priv_bounce_free(call->bounce);
            dscomm_priv_device_time_drop(call->time);
            return call->type == CALL_COLLECTIVE || call->type == CALL_COMPOUND
                       ? dscomm_priv_group_give_up(group, status)
                       : status;
        }
    }
    work = group->works.idle;
    group->works.idle = work->next;
    /* Clears all but call, in two parts, because one would be long enough to
     * slow a start. */
    memset(work, 0, offsetof(dscomm_work_t, call));
    memset(&work->next, 0,
           offsetof(dscomm_work_t, span) - offsetof(dscomm_work_t, next));
    memset(&work->span, 0,
           offsetof(dscomm_work_t, request) - offsetof(dscomm_work_t, span));
    memset(&work->request, 0, sizeof work->request);
    work->group = group;
    work->kind = kind;
    work->call = *call;
    if (call->type == CALL_COLLECTIVE)
        dscomm_priv_op_hold(call->coll.user);
    atomic_store_explicit(&work->status, DSCOMM_IN_PROGRESS,
                          memory_order_relaxed);
    dscomm_priv_group_hold(group);
    status = call->type == CALL_COLLECTIVE ? own_displs(work) : DSCOMM_OK;
    if (status < 0) {
        dscomm_priv_device_time_drop(call->time);
        dscomm_priv_work_discard(work);
        return dscomm_priv_group_give_up(group, status);
    }
    *ret_work = work;
    return DSCOMM_OK;
}

static void drop_op(dscomm_work_t *work)
{
    dscomm_call_t *call = &work->call;

    if (call->type != CALL_COLLECTIVE || !call->coll.user)
        return;
    dscomm_priv_op_drop(call->coll.user);
    call->coll.user = NULL;
}

/* Frees the memory of a work, except what the backend may use until the process
 * ends. */
static void work_free_memory(dscomm_work_t *work)
{
    dscomm_priv_buffer_free(work->copy, work->request.held);
    work->copy = NULL;
    if (work->request.held)
        dscomm_priv_buffer_free(work->call.bounce, true);
    else
        dscomm_priv_bounce_free(work->call.bounce);
    work->call.bounce = NULL;
    g_clear_pointer(&work->text, free);
    g_clear_pointer(&work->displs, g_free);
    if (work->kind && work->kind->release)
        work->kind->release(work);
    drop_op(work);
}

/* The group's memory stays valid: its impl is open, or the caller has a
 * reference. */
void dscomm_priv_work_discard(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;

    work_free_memory(work);
    work->next = group->works.idle;
    group->works.idle = work;
    dscomm_priv_group_release(group);
}

/* False for what blocking calls wait for: they check its deadline. */
static bool work_needs_watch(const dscomm_work_t *work)
{
    const dscomm_work_t *whole = work->compound ? work->compound : work;

    return work->zombie || (!whole->held && dscomm_priv_work_is_users(work));
}

static void link_pending(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;

    work->pending = 1;
    work->next = NULL;
    work->prev = group->works.pending_tail;
    if (work->prev)
        work->prev->next = work;
    else
        group->works.pending = work;
    group->works.pending_tail = work;
    group->works.unscanned = 1;
    if (!work->held)
        dscomm_priv_pending_add(group, work_needs_watch(work));
}

static void unlink_pending(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;

    if (!work->pending)
        return;
    work->pending = 0;
    if (work->prev)
        work->prev->next = work->next;
    else
        group->works.pending = work->next;
    if (work->next)
        work->next->prev = work->prev;
    else
        group->works.pending_tail = work->prev;
}

/* Records a custom work, or an access to memory, as a message from and to no
 * rank. */
static uint64_t record_custom(const dscomm_group_t *group, unsigned flags)
{
    const dscomm_message_t none = {.peer = -1, .tag = -1};

    return dscomm_priv_recorder_message(group->recorder, group->recorded_as,
                                        RECORDED_CUSTOM, &none, DSCOMM_UINT8, 0,
                                        0, flags);
}

/* The calls of a coalesced work are recorded, and it is not. */
static void work_record(dscomm_work_t *work)
{
    const dscomm_group_t *group = work->group;
    const dscomm_call_t *call = &work->call;
    const unsigned flags = (call->async ? RECORDED_ASYNC : 0) |
                           (call->internal ? RECORDED_INTERNAL : 0);

    if (call->recorded)
        work->recorded = call->recorded;
    else if (call->type == CALL_COLLECTIVE)
        work->recorded =
            dscomm_priv_recorder_collective(group->recorder, group->recorded_as,
                                            group->size, &call->coll, flags);
    else if (call->type == CALL_MESSAGE)
        work->recorded = dscomm_priv_recorder_message(
            group->recorder, group->recorded_as,
            call->p2p.receive ? DSCOMM_COLL_RECV : DSCOMM_COLL_SEND,
            &call->p2p.message, call->p2p.dtype, call->p2p.count,
            call->p2p.sequence, flags);
    else if (call->type == CALL_CUSTOM || call->type == CALL_ACCESS)
        work->recorded = record_custom(group, flags);
}

static void work_record_end(const dscomm_work_t *work, dscomm_status_t status)
{
    if (work->recorded)
        dscomm_priv_recorder_change(work->group->recorder, work->recorded,
                                    (uint64_t)(uint8_t)status
                                        << RECORDED_STATUS_SHIFT,
                                    dscomm_priv_ticks());
}

dscomm_status_t dscomm_priv_work_launch(dscomm_work_t *work)
{
    dscomm_group_t *group = work->group;
    dscomm_status_t status;

    work->request.status = DSCOMM_IN_PROGRESS;
    if (!work->call.internal && work->call.type != CALL_ACCESS)
        work->span = dscomm_priv_hook_begin(group, &work->call);
    if (work->call.type == CALL_COLLECTIVE)
        dscomm_priv_hook_phases(work->span.hooks, &work->call.coll,
                                &work->phases);
    work_record(work);
    status = work->kind->start(work);
    group->works.unscanned = 1;
    if (status < 0) {
        work_record_end(work, status);
        dscomm_priv_group_failed(group);
        dscomm_priv_hook_end(group, &work->call, work->span, status,
                             &work->request);
        return status;
    }
    dscomm_priv_recorder_change(group->recorder, work->recorded,
                                (uint64_t)RECORDED_STARTED << 24, 0);
    if (work->request.status == DSCOMM_IN_PROGRESS)
        link_pending(work);
    else
        dscomm_priv_work_retire(work, work->request.status, NULL);
    return DSCOMM_OK;
}

/* Sets the work's sentence. A collective's sentence begins with the call,
 * because transports know only messages, and the group may have ended in
 * another collective. If text names the collective with number sequence, and
 * that is this one, text is enough. */
static void work_set_text(dscomm_work_t *work, const char *text,
                          uint64_t sequence)
{
    const dscomm_coll_args_t *args = &work->call.coll;
    char what[160], whole[DSCOMM_ERROR_MAX + sizeof what];

    if (work->call.type != CALL_COLLECTIVE || args->sequence == sequence) {
        work->text = strdup(text);
        return;
    }
    snprintf(whole, sizeof whole, "%s: %s",
             dscomm_coll_describe(args, what, sizeof what), text);
    work->text = strdup(whole);
}

void dscomm_priv_work_explain(dscomm_work_t *work,
                              const dscomm_failure_t *failure)
{
    char text[DSCOMM_ERROR_MAX];

    work_set_text(work, dscomm_priv_failure_sentence(failure, text),
                  failure->sequence);
}

void dscomm_priv_works_interrupt(dscomm_group_t *group)
{
    const dscomm_work_t *work = group->works.pending;

    while (work && work->call.type != CALL_COLLECTIVE)
        work = work->next;
    if (work && group->ops.status(group->impl, NULL) != DSCOMM_OK)
        dscomm_priv_group_interrupt(group, &work->call.coll);
}

const char *dscomm_priv_access_text(const dscomm_call_t *call, char *text,
                                    size_t size)
{
    const bool gets = call->access.gets;

    if (call->access.peer < 0)
        snprintf(text, size, "the end of a registration of memory");
    else if (call->access.served)
        snprintf(text, size, "%s of rank %d, which this rank serves",
                 gets ? "get" : "put", call->access.peer);
    else
        snprintf(text, size, "%s of %zu bytes %s the memory of rank %d",
                 gets ? "get" : "put", call->access.bytes, gets ? "from" : "to",
                 call->access.peer);
    return text;
}

const char *dscomm_priv_truncated_text(const dscomm_group_t *group,
                                       const dscomm_request_t *request,
                                       size_t room, char *text)
{
    snprintf(text, DSCOMM_ERROR_MAX,
             "recv on group '%s': the message of %zu bytes from rank %d with "
             "tag %d is longer than the buffer of %zu bytes",
             group->identity.name, request->bytes, request->source,
             request->tag, room);
    return text;
}

/* Makes the sentence of a request that failed while the group goes on. */
static void request_explain(dscomm_work_t *work, dscomm_status_t status)
{
    dscomm_group_t *group = work->group;
    const dscomm_call_t *call = &work->call;
    char text[DSCOMM_ERROR_MAX], what[160];

    if (status == DSCOMM_ERR_TRUNCATED)
        dscomm_priv_truncated_text(group, &work->request,
                                   call->p2p.message.bytes, text);
    else if (status == DSCOMM_ERR_PEER_FAILED && group->ops.explain &&
             call->type != CALL_ACCESS)
        group->ops.explain(group->impl, &work->request, text, sizeof text);
    else if (call->type == CALL_COLLECTIVE)
        snprintf(text, sizeof text, "%s of group '%s' failed: %s",
                 dscomm_coll_describe(&call->coll, what, sizeof what),
                 group->identity.name, dscomm_strerror(status));
    else if (call->type == CALL_ACCESS)
        snprintf(text, sizeof text, "%s of group '%s' failed: %s",
                 dscomm_priv_access_text(call, what, sizeof what),
                 group->identity.name, dscomm_strerror(status));
    else
        snprintf(text, sizeof text, "%s with rank %d on group '%s' failed: %s",
                 call->p2p.receive ? "recv" : "send", call->p2p.message.peer,
                 group->identity.name, dscomm_strerror(status));
    work_set_text(work, text,
                  call->type == CALL_COLLECTIVE ? call->coll.sequence : 0);
}

static void failure_explain(dscomm_work_t *work, dscomm_status_t status)
{
    dscomm_failure_t failure;

    if (dscomm_priv_group_revoked(work->group, &failure) == status)
        dscomm_priv_work_explain(work, &failure);
    else
        request_explain(work, status);
}

/* Copies the results to the caller's buffers. */
static dscomm_status_t finish_bounce(dscomm_work_t *work,
                                     dscomm_status_t status)
{
    dscomm_bounce_t *bounce = work->call.bounce;
    const size_t bytes =
        work->call.type == CALL_MESSAGE ? work->request.bytes : SIZE_MAX;
    dscomm_status_t copied;

    if (status != DSCOMM_OK && status != DSCOMM_ERR_TRUNCATED)
        return status;
    copied = bounce->finish(bounce, bytes);
    if (copied < 0)
        work_set_text(work, dscomm_last_error(), 0);
    return copied < 0 ? copied : status;
}

/* The status is stored last: a thread that sees it, without the lock, may use
 * the work. */
void dscomm_priv_work_retire(dscomm_work_t *work, dscomm_status_t status,
                             const char *text)
{
    dscomm_group_t *group = work->group;
    dscomm_status_t ended;

    if (status < 0)
        dscomm_priv_works_interrupt(group);
    unlink_pending(work);
    if (work->call.type == CALL_MESSAGE && work->call.p2p.message.peer >= 0)
        work->request.source = work->call.p2p.message.peer;
    /* A rank that left because the group had ended revoked it before, so that
     * failure is the cause. */
    if (status == DSCOMM_ERR_PEER_FAILED &&
        (ended = dscomm_priv_group_revoked(group, NULL)) < 0)
        status = ended;
    if (work->kind->end)
        work->kind->end(work);
    if (work->call.bounce) {
        if (work->call.type == CALL_COLLECTIVE)
            dscomm_phase(&work->call.coll, DSCOMM_PHASE_COPY_OUT);
        status = finish_bounce(work, status);
    }
    work->group->works.completed++;
    if (status < 0 && !work->text && text)
        work_set_text(work, text, 0);
    else if (status < 0 && !work->text)
        failure_explain(work, status);
    work_record_end(work, status);
    if (G_UNLIKELY(dscomm_priv_work_is_timed(work)))
        work->span.ended_ns = dscomm_priv_clock();
    dscomm_priv_hook_end(work->group, &work->call, work->span, status,
                         &work->request);
    if (work->compound) {
        work->compound->kind->child_end(work, status);
    } else if (work->zombie) {
        dscomm_priv_work_discard(work);
    } else {
        const bool is_users = !work->held && dscomm_priv_work_is_users(work);

        atomic_store_explicit(&work->status, status, memory_order_release);
        if (is_users)
            dscomm_priv_event_signal(group);
    }
}

void dscomm_priv_work_cancel(dscomm_work_t *work, dscomm_status_t status,
                             const char *text)
{
    if (work->request.status == DSCOMM_IN_PROGRESS) {
        if (work->kind->cancel)
            work->kind->cancel(work, status);
        else
            work->group->ops.cancel(work->group->impl, &work->request);
        work->group->works.held |=
            work->request.held; /* the backend may use buffers */
        dscomm_priv_work_retire(work, status, text);
    } else {
        dscomm_priv_work_retire(work, work->request.status, NULL);
    }
}

void dscomm_priv_works_cancel(dscomm_group_t *group, dscomm_status_t status,
                              const char *text)
{
    while (group->works.pending)
        dscomm_priv_work_cancel(group->works.pending, status, text);
}

void dscomm_priv_works_scan(dscomm_group_t *group, bool only_custom)
{
    dscomm_work_t *work, *next;

    if (!only_custom)
        group->works.unscanned = 0;
    for (work = group->works.pending; work; work = next) {
        next = work->next;
        if (only_custom && work->call.type != CALL_CUSTOM)
            continue;
        if (work->kind->advance)
            work->kind->advance(work);
        if (work->request.status != DSCOMM_IN_PROGRESS)
            dscomm_priv_work_retire(work, work->request.status, NULL);
    }
}

int dscomm_priv_works_broken(dscomm_group_t *group)
{
    if (group->ops.status(group->impl, NULL) == DSCOMM_OK)
        return 0;
    dscomm_priv_works_scan(group, false);
    dscomm_priv_works_cancel(group, dscomm_priv_group_revoked(group, NULL),
                             NULL);
    return 1;
}

void dscomm_priv_works_destroy(dscomm_group_t *group)
{
    struct dscomm_work_slab *slab;

    while ((slab = group->works.slabs) != NULL) {
        for (size_t k = 0; k < SLAB_WORKS; k++) {
            dscomm_work_t *work =
                (void *)((char *)slab + SLAB_HEAD + k * group->works.size);

            work_free_memory(work);
        }
        group->works.slabs = slab->next;
        free(slab);
    }
}
