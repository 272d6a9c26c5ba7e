/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets, at the rank that starts them. */
#include "config.h"
#include "lib/call/access.h"

#include "lib/base/status.h"
#include "lib/call/recording.h"
#include "lib/device/device.h"
#include "lib/group/failure.h"

#include <string.h>

/* Ends work, with the reason for the caller if status is a failure that is this
 * access's alone. */
static void access_finish(dscomm_work_t *work, dscomm_status_t status)
{
    char what[128];

    if (status == DSCOMM_ERR_INVALID)
        work->text = g_strdup_printf(
            "%s of group '%s': that rank has no such memory, which was perhaps "
            "deregistered; the group goes on",
            dscomm_priv_access_text(&work->call, what, sizeof what),
            work->group->identity.name);
    work->request.status = status;
}

/* True if an older get of the same rank's memory has not asked for its data,
 * which come in the order of the gets. */
static bool get_must_wait(const dscomm_work_t *work)
{
    for (const dscomm_work_t *w = work->group->works.pending; w != work;
         w = w->next)
        if (w->kind == work->kind && w->call.access.gets && w->copy &&
            w->call.access.peer == work->call.access.peer &&
            !dscomm_priv_access_of(w)->posted[ACCESS_DATA])
            return true;
    return false;
}

/* Receives what the owner sends after its answer. */
static void get_data(dscomm_work_t *work)
{
    dscomm_status_t status;

    if (get_must_wait(work))
        return;
    status = dscomm_priv_access_post(
        work, ACCESS_DATA,
        (dscomm_message_t){.recv = work->call.access.data,
                           .bytes = work->call.access.bytes,
                           .tag = TAG_GET_DATA});
    if (status < 0)
        work->request.status = dscomm_priv_group_give_up(work->group, status);
}

/* Requests may complete at any time, as threads advance backends that serve
 * several groups, so each is looked at once. */
static void access_advance(dscomm_work_t *work)
{
    const access_t *access = dscomm_priv_access_of(work);
    dscomm_status_t status;

    if (!access)
        return;
    status = dscomm_priv_access_status(work);
    if (status == DSCOMM_IN_PROGRESS)
        return;
    if (status == DSCOMM_OK)
        status = (dscomm_status_t)(int64_t)GUINT64_FROM_LE(
            (uint64_t)access->answer.status);
    if (status == DSCOMM_OK && work->call.access.gets &&
        !access->posted[ACCESS_DATA])
        get_data(work);
    else
        access_finish(work, status);
}

/* Copies between memories of devices, through the host's. */
static dscomm_status_t devices_copy(void *dest, const void *source,
                                    size_t bytes, void *stream)
{
    void *host = dscomm_device_staging_alloc(source, bytes);
    dscomm_status_t status =
        host ? dscomm_device_copy(host, source, bytes, stream)
             : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no host memory for %zu bytes of a device", bytes);

    if (status == DSCOMM_OK)
        status = dscomm_device_copy(dest, host, bytes, stream);
    dscomm_device_staging_free(host);
    return status;
}

/* The memory is this rank's own. */
static dscomm_status_t access_own(dscomm_work_t *work)
{
    const bool gets = work->call.access.gets;
    const size_t bytes = work->call.access.bytes;
    void *stream = work->group->memory.stream;
    const dscomm_mem_t *mem = dscomm_priv_mem_find(
        work->group, work->call.access.id, work->call.access.offset, bytes);
    char *there = mem ? mem->address + work->call.access.offset : NULL;
    char *dest = gets ? work->call.access.data : there;
    const char *source = gets ? there : work->call.access.data;
    dscomm_status_t status = DSCOMM_OK;

    if (mem && mem->on_device && work->call.access.mem)
        status = devices_copy(dest, source, bytes, stream);
    else if (mem && (mem->on_device || work->call.access.mem))
        status = dscomm_device_copy(dest, source, bytes, stream);
    else if (mem)
        memmove(dest, source, bytes);
    if (status == DSCOMM_OK)
        access_finish(work, mem ? DSCOMM_OK : DSCOMM_ERR_INVALID);
    return status;
}

/* Makes the access by messages. After the first one the peer expects the rest,
 * so that the group ends if that cannot be started. */
static dscomm_status_t access_ask(dscomm_work_t *work)
{
    const bool gets = work->call.access.gets;
    uint64_t *puts = dscomm_priv_access_puts(work->group);
    dscomm_status_t status = dscomm_priv_access_new(work);
    access_t *access = dscomm_priv_access_of(work);

    if (status == DSCOMM_OK && !puts)
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "group '%s': no memory for counts of puts",
                             work->group->identity.name);
    if (status < 0)
        return status;
    access->asked = (asked_t){
        .gets = GUINT64_TO_LE(gets),
        .id = GUINT64_TO_LE(work->call.access.id),
        .offset = GUINT64_TO_LE(work->call.access.offset),
        .bytes = GUINT64_TO_LE(work->call.access.bytes),
    };
    status =
        dscomm_priv_access_post(work, ACCESS_ASK,
                                (dscomm_message_t){.send = &access->asked,
                                                   .bytes = sizeof(asked_t),
                                                   .tag = TAG_ASK,
                                                   .followed = !gets});
    if (status < 0)
        return status;
    if (!gets) {
        puts[work->call.access.peer]++;
        status = dscomm_priv_access_post(
            work, ACCESS_DATA,
            (dscomm_message_t){.send = work->call.access.data,
                               .bytes = work->call.access.bytes,
                               .tag = TAG_PUT_DATA});
    }
    if (status >= 0)
        status = dscomm_priv_access_post(
            work, ACCESS_ANSWER,
            (dscomm_message_t){.recv = &access->answer,
                               .bytes = sizeof(answer_t),
                               .tag = TAG_ANSWERED});
    if (status >= 0)
        return DSCOMM_OK;
    status = dscomm_priv_group_give_up(work->group, status);
    dscomm_priv_access_cancel(work, status);
    return status;
}

static dscomm_status_t access_native(dscomm_work_t *work)
{
    const dscomm_group_t *group = work->group;
    const dscomm_mem_t *own = work->call.access.mem;
    const dscomm_access_t access = {
        .data = work->call.access.data,
        .bytes = work->call.access.bytes,
        .peer = work->call.access.peer,
        .key = work->call.access.key,
        .offset = (size_t)work->call.access.offset,
        .registered = own ? own->registered : NULL,
    };

    return work->call.access.gets
               ? group->ops.get(group->impl, &access, &work->request)
               : group->ops.put(group->impl, &access, &work->request);
}

/* Sets the registration that has all data, which are on a device. Messages do
 * not reach them. */
static dscomm_status_t access_find_data(dscomm_work_t *work)
{
    const dscomm_group_t *group = work->group;
    const uintptr_t data = (uintptr_t)work->call.access.data;
    const size_t bytes = work->call.access.bytes;
    dscomm_mem_t *mem = NULL;

    if (work->call.access.native || work->call.access.peer == group->rank)
        SLIST_FOREACH (mem, &group->memory.registered, link)
            if (mem->on_device && mem->registered && bytes <= mem->bytes &&
                data - (uintptr_t)mem->address <= mem->bytes - bytes)
                break;
    work->call.access.mem = mem;
    return mem ? DSCOMM_OK
               : dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                             "%s on group '%s': data is memory of a device; "
                             "copy it to memory of the host",
                             work->call.access.gets ? "dscomm_get"
                                                    : "dscomm_put",
                             group->identity.name);
}

static dscomm_status_t access_start(dscomm_work_t *work)
{
    dscomm_status_t status = DSCOMM_OK;

    if (work->call.access.on_device)
        status = access_find_data(work);
    if (status < 0)
        return status;
    if (!work->call.access.bytes)
        work->request.status = DSCOMM_OK;
    else if (work->call.access.peer == work->group->rank)
        status = access_own(work);
    else if (work->call.access.native)
        status = access_native(work);
    else
        status = access_ask(work);
    if (status >= 0)
        dscomm_priv_access_begin(work->group);
    if (status >= 0 && work->call.access.mem)
        work->call.access.mem->served++;
    return status;
}

static void access_end(dscomm_work_t *work)
{
    if (work->call.access.mem)
        work->call.access.mem->served--;
    dscomm_priv_access_end(work);
}

static const dscomm_work_kind_t access_kind = {
    .start = access_start,
    .advance = access_advance,
    .cancel = dscomm_priv_access_cancel,
    .end = access_end,
    .overdue = dscomm_priv_access_overdue,
};

/* OK, or the reason why the group cannot make such a call now. */
static dscomm_status_t access_check_group(dscomm_group_t *group,
                                          const char *name)
{
    const dscomm_status_t status = dscomm_priv_group_usable(group, name);

    return status == DSCOMM_OK && dscomm_priv_group_is(group, GROUP_COALESCING)
               ? dscomm_priv_recording_refuse(group, name)
               : status;
}

static dscomm_status_t access_call(dscomm_group_t *group, const char *name,
                                   dscomm_call_t *call, const void *key,
                                   dscomm_work_t **ret_work)
{
    mem_key_t read;
    dscomm_status_t status = access_check_group(group, name);

    if (status == DSCOMM_OK && !call->access.data && call->access.bytes)
        status = dscomm_priv_invalid(
            group, name, "data is NULL, but bytes is %zu", call->access.bytes);
    if (status == DSCOMM_OK)
        status = dscomm_priv_mem_key_read(group, name, key, &read);
    if (status < 0)
        return status;
    if (call->access.bytes > read.bytes ||
        call->access.offset > read.bytes - call->access.bytes)
        return dscomm_priv_invalid(
            group, name,
            "%zu bytes from offset %" G_GUINT64_FORMAT
            " on are not in the memory of %" G_GUINT64_FORMAT " bytes",
            call->access.bytes, call->access.offset, read.bytes);
    call->type = CALL_ACCESS;
    call->async = ret_work != NULL;
    call->access.peer = read.rank;
    call->access.id = read.id;
    call->access.native = read.is_native && group->ops.put && group->ops.get;
    memcpy(call->access.key, read.native, sizeof read.native);
    call->access.on_device = call->access.bytes &&
                             dscomm_priv_device_present() &&
                             dscomm_device_owns(call->access.data);
    if (call->access.on_device)
        status =
            dscomm_priv_device_sync(call->access.data, group->memory.stream);
    if (status < 0)
        return status;
    return ret_work
               ? dscomm_priv_work_start(group, &access_kind, call, ret_work)
               : dscomm_priv_work_block(group, &access_kind, call, NULL);
}

dscomm_status_t dscomm_put(dscomm_group_t *group, const void *data,
                           size_t bytes, const void *key, size_t offset,
                           dscomm_work_t **ret_work)
{
    dscomm_call_t call = {
        .access = {.data = (void *)data, .bytes = bytes, .offset = offset}};

    return access_call(group, "dscomm_put", &call, key, ret_work);
}

dscomm_status_t dscomm_get(dscomm_group_t *group, void *data, size_t bytes,
                           const void *key, size_t offset,
                           dscomm_work_t **ret_work)
{
    dscomm_call_t call = {
        .access = {
            .gets = true, .data = data, .bytes = bytes, .offset = offset}};

    return access_call(group, "dscomm_get", &call, key, ret_work);
}
