/* SPDX-License-Identifier: BSD-3-Clause */
/* Point to point: check, describe, dispatch to the backend. */
#include "config.h"
#include "lib/base/status.h"
#include "lib/call/dispatch.h"
#include "lib/call/receive.h"
#include "lib/call/recording.h"

#include <stdbool.h>
#include <string.h>

dscomm_status_t dscomm_priv_check_peer(const dscomm_group_t *group,
                                       const char *name, int peer, int tag,
                                       int receive)
{
    if ((peer < 0 || peer >= group->size) &&
        !(receive && peer == DSCOMM_ANY_SOURCE))
        return dscomm_priv_invalid(group, name, "rank %d is not in 0 ... %d",
                                   peer, group->size - 1);
    if (tag < 0 && !(receive && tag == DSCOMM_ANY_TAG))
        return dscomm_priv_invalid(group, name, "tag %d is not in 0 ... %d",
                                   tag, DSCOMM_TAG_MAX);
    if (peer == DSCOMM_ANY_SOURCE &&
        !(group->capabilities & DSCOMM_CAP_ANY_SOURCE))
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s on group '%s': backend %s cannot receive from "
                           "any source; name the sender",
                           name, group->identity.name, group->module->name);
    return DSCOMM_OK;
}

/* The slow path of checking: finds the reason. */
static dscomm_status_t message_check(const dscomm_group_t *group,
                                     const dscomm_call_t *call,
                                     const char *name)
{
    const dscomm_message_t *message = &call->p2p.message;
    dscomm_dtype_t dtype = (dscomm_dtype_t)call->p2p.dtype;
    size_t count = call->p2p.count;

    if (!group)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: group is NULL", name);
    if ((unsigned)dtype >= DSCOMM_DTYPE_COUNT)
        return dscomm_priv_invalid(group, name, "%d is no dtype", (int)dtype);
    if (count > (size_t)PTRDIFF_MAX / dscomm_priv_element_of(dtype))
        return dscomm_priv_invalid(group, name,
                                   "%zu elements of %s are more than "
                                   "memory can hold",
                                   count, dscomm_dtype_name(dtype));
    if (!message->send && !message->recv && count)
        return dscomm_priv_invalid(
            group, name, "the buffer is NULL, but its count is %zu", count);
    return dscomm_priv_check_peer(group, name, message->peer, message->tag,
                                  call->p2p.receive);
}

static inline dscomm_call_t message_describe(const void *send, void *recv,
                                             size_t count, dscomm_dtype_t dtype,
                                             int peer, int tag)
{
    dscomm_call_t call = {.type = CALL_MESSAGE};

    call.p2p.message.send = send;
    call.p2p.message.recv = recv;
    call.p2p.message.bytes = count * dscomm_priv_element_of(dtype);
    call.p2p.message.peer = peer;
    call.p2p.message.tag = tag;
    call.p2p.dtype = (int)dtype;
    call.p2p.count = count;
    return call;
}

/* Never true for invalid arguments; may be false for valid ones. */
static inline int message_is_quick(const dscomm_group_t *group,
                                   const dscomm_call_t *call,
                                   const void *buffer)
{
    return dscomm_priv_quick(group, buffer, call->p2p.count,
                             (dscomm_dtype_t)call->p2p.dtype) &&
           (unsigned)call->p2p.message.peer < (unsigned)group->size &&
           call->p2p.message.tag >= 0;
}

static dscomm_status_t message_transfer(dscomm_group_t *group,
                                        const dscomm_call_t *call)
{
    const dscomm_message_t *message = &call->p2p.message;
    const uint64_t serial = dscomm_priv_recorder_message(
        group->recorder, group->recorded_as,
        call->p2p.receive ? DSCOMM_COLL_RECV : DSCOMM_COLL_SEND, message,
        call->p2p.dtype, call->p2p.count, call->p2p.sequence, RECORDED_STARTED);
    dscomm_status_t status;

    if (call->p2p.receive) {
        memset(group->works.request, 0, sizeof *group->works.request);
        status = group->ops.recv(group->impl, message, group->works.request);
    } else {
        status = group->ops.send(group->impl, message);
    }
    dscomm_priv_recorder_end(group->recorder, serial, message->bytes, status);
    if (G_UNLIKELY(status < 0))
        dscomm_priv_group_failed(group);
    return status;
}

/* Records a message without a work when it is complete, because such a call
 * does not wait long. */
static void message_record_now(dscomm_group_t *group, const dscomm_call_t *call,
                               dscomm_status_t status)
{
    const uint64_t serial = dscomm_priv_recorder_message(
        group->recorder, group->recorded_as,
        call->p2p.receive ? DSCOMM_COLL_RECV : DSCOMM_COLL_SEND,
        &call->p2p.message, call->p2p.dtype, call->p2p.count,
        call->p2p.sequence, RECORDED_STARTED);

    dscomm_priv_recorder_end(group->recorder, serial, call->p2p.message.bytes,
                             status);
}

/* True if the message has been sent. */
static bool message_send_now(dscomm_group_t *group, dscomm_call_t *call)
{
    const dscomm_message_t *message = &call->p2p.message;

    if (!group->ops.send_now || !dscomm_priv_may_be_now(group) ||
        !group->ops.send_now(group->impl, message))
        return false;
    call->p2p.sequence = ++group->life.messages;
    message_record_now(group, call, DSCOMM_OK);
    return true;
}

/* Receives a message without a work if it comes soon. */
static dscomm_status_t message_recv_now(dscomm_group_t *group,
                                        dscomm_call_t *call)
{
    dscomm_request_t *request = group->works.request;
    char text[DSCOMM_ERROR_MAX];

    call->p2p.sequence = ++group->life.messages;
    call->p2p.message.waits = 1;
    if (!group->ops.recv_now(group->impl, &call->p2p.message, request,
                             (unsigned)dscomm_priv_work_spins(group)))
        return dscomm_priv_work_block(group, &dscomm_priv_message_kind, call,
                                      request);
    message_record_now(group, call, request->status);
    if (request->status < 0)
        dscomm_priv_fail_with(
            request->status,
            dscomm_priv_truncated_text(group, request, call->p2p.message.bytes,
                                       text));
    return request->status;
}

/* Sends or receives while there are hooks or works. */
static dscomm_status_t message_transfer_slow(dscomm_group_t *group,
                                             dscomm_call_t *call)
{
    dscomm_hook_span_t span = dscomm_priv_hook_begin(group, call);
    int pending = dscomm_priv_group_is(group, GROUP_PENDING) != 0;
    dscomm_status_t status;

    if (pending)
        pthread_mutex_lock(&group->works.lock);
    status = message_transfer(group, call);
    if (pending) {
        group->works.unscanned = 1;
        pthread_mutex_unlock(&group->works.lock);
    }
    dscomm_priv_hook_end(group, call, span, status, group->works.request);
    return status;
}

static dscomm_status_t message_block(dscomm_group_t *group, dscomm_call_t *call)
{
    int can =
        call->p2p.receive ? group->ops.recv != NULL : group->ops.send != NULL;

    /* The backend's blocking slots do not advance schedules, so they are not
     * used while there are any. */
    if (can && !call->bounce && !dscomm_priv_group_is(group, GROUP_SCHEDULED))
        return message_transfer_slow(group, call);
    call->p2p.message.waits = call->p2p.receive;
    return dscomm_priv_work_block(group, &dscomm_priv_message_kind, call,
                                  group->works.request);
}

static dscomm_status_t message_stage(dscomm_group_t *group, dscomm_call_t *call)
{
    if (G_LIKELY(!dscomm_priv_stage_wanted(group, call)))
        return DSCOMM_OK;
    return dscomm_priv_stage_call(group, call);
}

static dscomm_status_t message_record(dscomm_group_t *group,
                                      const dscomm_call_t *call,
                                      const char *name)
{
    if (dscomm_priv_stage_wanted(group, call))
        return dscomm_priv_stage_refuse(group, name);
    return dscomm_priv_recording_message(group, call);
}

/* A blocking call while works are pending. */
static dscomm_status_t message_block_slow(dscomm_group_t *group,
                                          dscomm_call_t *call, const char *name,
                                          int wants_answer)
{
    dscomm_status_t status = dscomm_priv_group_usable(group, name);

    if (status < 0)
        return status;
    if (dscomm_priv_group_is(group, GROUP_COALESCING)) {
        if (wants_answer)
            return dscomm_fail(DSCOMM_ERR_STATE,
                               "%s on group '%s': between coalesce_begin and "
                               "_end ret_source and ret_bytes must be NULL",
                               name, group->identity.name);
        return message_record(group, call, name);
    }
    call->p2p.sequence = ++group->life.messages;
    status = message_stage(group, call);
    return status < 0 ? status : message_block(group, call);
}

dscomm_status_t dscomm_send(dscomm_group_t *group, const void *buffer,
                            size_t count, dscomm_dtype_t dtype, int dest,
                            int tag)
{
    dscomm_call_t call =
        message_describe(buffer, NULL, count, dtype, dest, tag);

    if (G_UNLIKELY(!message_is_quick(group, &call, buffer))) {
        dscomm_status_t status = message_check(group, &call, "send");
        if (status < 0)
            return status;
    }
    if (G_UNLIKELY(dscomm_priv_group_busy(group) || !group->ops.send ||
                   dscomm_priv_device_present()))
        return message_send_now(group, &call)
                   ? DSCOMM_OK
                   : message_block_slow(group, &call, "send", 0);
    call.p2p.sequence = ++group->life.messages;
    return message_transfer(group, &call);
}

dscomm_status_t dscomm_recv(dscomm_group_t *group, void *buffer, size_t count,
                            dscomm_dtype_t dtype, int source, int tag,
                            int *ret_source, size_t *ret_bytes)
{
    dscomm_call_t call =
        message_describe(NULL, buffer, count, dtype, source, tag);
    dscomm_status_t status = DSCOMM_OK;

    call.p2p.receive = 1;
    if (G_UNLIKELY(!message_is_quick(group, &call, buffer)))
        status = message_check(group, &call, "recv");
    if (status < 0)
        return status;
    if (G_UNLIKELY(dscomm_priv_group_busy(group) || !group->ops.recv ||
                   dscomm_priv_device_present())) {
        status = group->ops.recv_now && dscomm_priv_may_be_now(group)
                     ? message_recv_now(group, &call)
                     : message_block_slow(group, &call, "recv",
                                          ret_source || ret_bytes);
    } else {
        call.p2p.sequence = ++group->life.messages;
        status = message_transfer(group, &call);
    }
    if (status == DSCOMM_OK || status == DSCOMM_ERR_TRUNCATED) {
        if (ret_source)
            *ret_source = group->works.request->source;
        if (ret_bytes)
            *ret_bytes = group->works.request->bytes;
    }
    return status;
}

/* Receives with a deadline; ret_info->size has been checked. */
static dscomm_status_t recv_within(dscomm_group_t *group, dscomm_call_t *call,
                                   dscomm_message_info_t *ret_info)
{
    dscomm_request_t request;
    dscomm_status_t status;

    call->p2p.sequence = ++group->life.messages;
    status = message_stage(group, call);
    if (status == DSCOMM_OK)
        status = dscomm_priv_work_block(group, &dscomm_priv_message_kind, call,
                                        &request);
    if (status == DSCOMM_OK || status == DSCOMM_ERR_TRUNCATED)
        dscomm_priv_message_info_fill(ret_info, status, &request);
    return status;
}

dscomm_status_t dscomm_recv_within(dscomm_group_t *group, void *buffer,
                                   size_t count, dscomm_dtype_t dtype,
                                   int source, int tag, int timeout_ms,
                                   dscomm_message_info_t *ret_info)
{
    const char *name = "dscomm_recv_within";
    dscomm_call_t call =
        message_describe(NULL, buffer, count, dtype, source, tag);
    dscomm_status_t status;

    call.p2p.receive = 1;
    call.p2p.message.waits = 1;
    status = dscomm_priv_group_ready(group, name);
    if (status == DSCOMM_OK)
        status = message_check(group, &call, name);
    if (status == DSCOMM_OK)
        status = dscomm_priv_message_info_check(ret_info, name);
    if (status == DSCOMM_OK)
        status = dscomm_priv_receive_deadline(group, name, timeout_ms,
                                              &call.deadline_ns);
    return status < 0 ? status : recv_within(group, &call, ret_info);
}

static dscomm_status_t recv_taken(dscomm_matched_t *matched, void *buffer,
                                  size_t count, dscomm_dtype_t dtype,
                                  dscomm_message_info_t *ret_info)
{
    const char *name = "dscomm_recv_matched";
    dscomm_group_t *group = matched->group;
    dscomm_call_t call = message_describe(NULL, buffer, count, dtype,
                                          matched->source, matched->tag);
    dscomm_status_t status = dscomm_priv_group_ready(group, name);

    call.p2p.receive = 1;
    call.p2p.message.taken = matched->taken;
    if (status == DSCOMM_OK)
        status = message_check(group, &call, name);
    if (status == DSCOMM_OK)
        status = dscomm_priv_message_info_check(ret_info, name);
    return status < 0 ? status : recv_within(group, &call, ret_info);
}

/* True if the message is still set aside after this status, or its group has
 * failed. */
static bool is_kept(dscomm_status_t status)
{
    return status == DSCOMM_ERR_INVALID || status == DSCOMM_ERR_STATE ||
           status == DSCOMM_ERR_NO_MEMORY;
}

dscomm_status_t dscomm_recv_matched(dscomm_matched_t *matched, void *buffer,
                                    size_t count, dscomm_dtype_t dtype,
                                    dscomm_message_info_t *ret_info)
{
    dscomm_status_t status;

    if (!matched)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_recv_matched: matched is NULL");
    status = recv_taken(matched, buffer, count, dtype, ret_info);
    if (!is_kept(status)) {
        SLIST_REMOVE(&matched->group->works.matched, matched, dscomm_matched,
                     link);
        g_free(matched);
    }
    return status;
}

static dscomm_status_t p2p_begin(dscomm_group_t *group, dscomm_call_t *call,
                                 const void *buffer, const char *name,
                                 dscomm_work_t **ret_work)
{
    dscomm_status_t status = DSCOMM_OK;

    if (!message_is_quick(group, call, buffer))
        status = message_check(group, call, name);
    if (status == DSCOMM_OK)
        status = dscomm_priv_group_usable(group, name);
    if (status < 0)
        return status;
    if (dscomm_priv_group_is(group, GROUP_COALESCING))
        return ret_work ? dscomm_priv_recording_refuse(group, name)
                        : message_record(group, call, name);
    if (!ret_work)
        return dscomm_priv_invalid(group, name,
                                   "ret_work is NULL; only between "
                                   "coalesce_begin and _end may it be");
    call->async = 1;
    call->p2p.sequence = ++group->life.messages;
    status = message_stage(group, call);
    if (status < 0)
        return status;
    return dscomm_priv_work_start(group, &dscomm_priv_message_kind, call,
                                  ret_work);
}

dscomm_status_t dscomm_isend(dscomm_group_t *group, const void *buffer,
                             size_t count, dscomm_dtype_t dtype, int dest,
                             int tag, dscomm_work_t **ret_work)
{
    dscomm_call_t call =
        message_describe(buffer, NULL, count, dtype, dest, tag);

    return p2p_begin(group, &call, buffer, "isend", ret_work);
}

dscomm_status_t dscomm_irecv(dscomm_group_t *group, void *buffer, size_t count,
                             dscomm_dtype_t dtype, int source, int tag,
                             dscomm_work_t **ret_work)
{
    dscomm_call_t call =
        message_describe(NULL, buffer, count, dtype, source, tag);

    call.p2p.receive = 1;
    return p2p_begin(group, &call, buffer, "irecv", ret_work);
}
