/* SPDX-License-Identifier: BSD-3-Clause */
/* Staging of device buffers, see work.h. */
#include "config.h"
#include "lib/base/types.h"
#include "lib/device/device.h"
#include "lib/group/failure.h"
#include "lib/work/work.h"

#include <glib.h>

/* The memory that a call reads and writes. */
typedef struct {
    const char *send;
    char *recv;
    size_t sends, recvs; /* bytes */
    int gaps; /* parts of recv are not written */
} extent_t;

/* Host memory in place of bytes at device. */
typedef struct {
    char *device, *host;
    size_t bytes;
} cover_t;

typedef struct {
    dscomm_bounce_t bounce;
    cover_t send, recv; /* if they overlap, only recv */
    char *result; /* on the device: written by the call */
    size_t results;
    void *stream; /* the group's stream at the time of the call */
} stage_t;

static size_t counts_extent(const size_t *counts, const size_t *displs,
                            int size)
{
    size_t most = 0;

    for (int r = 0; r < size; r++)
        if (counts[r])
            most = MAX(most, displs[r] + counts[r]);
    return most;
}

/* The number of elements that a collective reads or writes. */
static size_t shape_elements(const dscomm_group_t *group,
                             const dscomm_coll_args_t *args, int shape,
                             const size_t *counts, const size_t *displs)
{
    switch (shape) {
    case SHAPE_OWN:
        return args->count;
    case SHAPE_ALL:
        return args->count * (size_t)group->size;
    case SHAPE_COUNTS:
        return counts_extent(counts, displs, group->size);
    default:
        return 0;
    }
}

static extent_t collective_extent(const dscomm_group_t *group,
                                  const dscomm_coll_args_t *args)
{
    const int is_root = args->root < 0 || args->root == group->rank;
    const dscomm_priv_coll_t *coll = dscomm_priv_coll(args->coll);
    /* In reduce_scatter_v, recv_counts describe what is read. */
    const int by_recv = args->coll == DSCOMM_COLL_REDUCE_SCATTER_V;
    extent_t extent = {.send = args->send, .recv = args->recv};

    if (is_root ||
        (coll->rooted != ROOTED_SEND && coll->rooted != ROOTED_BUFFER))
        extent.sends =
            args->element *
            shape_elements(group, args, coll->send,
                           by_recv ? args->recv_counts : args->send_counts,
                           by_recv ? args->recv_displs : args->send_displs);
    if (is_root || coll->rooted != ROOTED_RECV)
        extent.recvs = args->element * shape_elements(group, args, coll->recv,
                                                      args->recv_counts,
                                                      args->recv_displs);
    extent.gaps = coll->recv == SHAPE_COUNTS;
    return extent;
}

static extent_t buffer_extent(const dscomm_group_t *group,
                              const dscomm_call_t *call)
{
    const dscomm_message_t *message = &call->p2p.message;

    if (call->type == CALL_COLLECTIVE)
        return collective_extent(group, &call->coll);
    return (extent_t){.send = message->send,
                      .recv = message->recv,
                      .sends = message->send ? message->bytes : 0,
                      .recvs = message->recv ? message->bytes : 0};
}

static int on_device(const void *pointer, size_t bytes)
{
    return bytes && dscomm_device_owns(pointer);
}

int dscomm_priv_stage_wanted(const dscomm_group_t *group,
                             const dscomm_call_t *call)
{
    extent_t extent;

    if (G_LIKELY(!dscomm_priv_device_present()))
        return 0;
    extent = buffer_extent(group, call);
    return on_device(extent.send, extent.sends) ||
           on_device(extent.recv, extent.recvs);
}

/* Allocates host memory for bytes at device, and copies reads bytes at read
 * into it. */
static dscomm_status_t cover_make(const stage_t *stage, cover_t *ret_cover,
                                  char *device, size_t bytes, const char *read,
                                  size_t reads)
{
    dscomm_status_t status = DSCOMM_OK;

    ret_cover->host = dscomm_device_staging_alloc(device, bytes);
    if (!ret_cover->host)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no host memory for %zu bytes of a device", bytes);
    ret_cover->device = device;
    ret_cover->bytes = bytes;
    if (reads)
        status = dscomm_device_copy(ret_cover->host + (read - device), read,
                                    reads, stage->stream);
    return status;
}

static int extents_overlap(const extent_t *extent)
{
    const uintptr_t send = (uintptr_t)extent->send;
    const uintptr_t recv = (uintptr_t)extent->recv;

    return extent->sends && extent->recvs && send < recv + extent->recvs &&
           recv < send + extent->sends;
}

/* Covers both buffers, which overlap, by one block of host memory. */
static dscomm_status_t cover_both(stage_t *stage, const extent_t *extent)
{
    const char *begin = MIN(extent->send, (const char *)extent->recv);
    const char *end =
        MAX(extent->send + extent->sends, extent->recv + extent->recvs);

    return cover_make(stage, &stage->recv, (char *)begin, (size_t)(end - begin),
                      extent->gaps ? begin : extent->send,
                      extent->gaps ? (size_t)(end - begin) : extent->sends);
}

static dscomm_status_t cover_each(stage_t *stage, const extent_t *extent)
{
    dscomm_status_t status = DSCOMM_OK;

    if (on_device(extent->send, extent->sends))
        status = cover_make(stage, &stage->send, (char *)extent->send,
                            extent->sends, extent->send, extent->sends);
    if (status == DSCOMM_OK && on_device(extent->recv, extent->recvs))
        status = cover_make(stage, &stage->recv, extent->recv, extent->recvs,
                            extent->recv, extent->gaps ? extent->recvs : 0);
    return status;
}

/* Returns the host address that replaces pointer; or pointer itself, if it is
 * not replaced. */
static void *stage_host_address(const stage_t *stage, const void *pointer)
{
    const cover_t *covers[] = {&stage->send, &stage->recv};

    for (size_t i = 0; i < G_N_ELEMENTS(covers); i++)
        if (covers[i]->host && (const char *)pointer >= covers[i]->device &&
            (const char *)pointer < covers[i]->device + covers[i]->bytes)
            return covers[i]->host +
                   ((const char *)pointer - covers[i]->device);
    return (void *)pointer;
}

static void stage_replace(const stage_t *stage, dscomm_call_t *call)
{
    if (call->type == CALL_COLLECTIVE) {
        call->coll.send = stage_host_address(stage, call->coll.send);
        call->coll.recv = stage_host_address(stage, call->coll.recv);
    } else {
        call->p2p.message.send =
            stage_host_address(stage, call->p2p.message.send);
        call->p2p.message.recv =
            stage_host_address(stage, call->p2p.message.recv);
    }
}

/* True if the backend takes device buffers; queries it once for each group. */
static int takes_devices(dscomm_group_t *group)
{
    const char *why = "it takes none";

    if (!group->memory.devices) {
        if (group->ops.device)
            why = group->ops.device(group->impl, dscomm_priv_device_count());
        group->memory.devices =
            why ? GROUP_DEVICES_STAGED : GROUP_DEVICES_TAKEN;
        dscomm_log(DSCOMM_LOG_INFO, "core",
                   "group '%s': buffers of a device %s backend %s%s%s",
                   group->identity.name,
                   why ? "are staged in host memory for" : "go as they are to",
                   group->module->name, why ? ": " : "", why ? why : "");
    }
    return group->memory.devices == GROUP_DEVICES_TAKEN;
}

dscomm_status_t dscomm_priv_stage_refuse(const dscomm_group_t *group,
                                         const char *name)
{
    return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                       "%s on group '%s': between coalesce_begin and _end "
                       "buffers must be in host memory, and this one is a "
                       "device's",
                       name, group->identity.name);
}

static dscomm_status_t stage_finish(dscomm_bounce_t *bounce, size_t received)
{
    const stage_t *stage = (const stage_t *)bounce;
    const size_t bytes = MIN(stage->results, received);

    if (!bytes)
        return DSCOMM_OK;
    return dscomm_device_copy(stage->result,
                              stage_host_address(stage, stage->result), bytes,
                              stage->stream);
}

static void stage_free(dscomm_bounce_t *bounce)
{
    stage_t *stage = (stage_t *)bounce;

    dscomm_device_staging_free(stage->send.host);
    dscomm_device_staging_free(stage->recv.host);
    g_free(stage);
}

/* True for collectives that only move or reduce elements. Collectives that
 * divide or multiply, or whose buffers overlap (except in all_reduce and
 * broadcast), are staged. */
static int buffers_are_plain(const dscomm_coll_args_t *args,
                             const extent_t *extent)
{
    if (args->op == DSCOMM_AVG || args->op >= DSCOMM_PREMUL_SUM ||
        args->send_counts || args->recv_counts)
        return 0;
    return !extents_overlap(extent) || args->coll == DSCOMM_COLL_ALL_REDUCE ||
           args->coll == DSCOMM_COLL_BROADCAST;
}

/* 1 if the backend can take the device buffers of call: by run, or by isend and
 * irecv. */
static int is_spared(dscomm_group_t *group, const dscomm_call_t *call,
                     const extent_t *extent)
{
    if (!takes_devices(group))
        return 0;
    if (call->type == CALL_MESSAGE)
        return (group->capabilities & DSCOMM_CAP_DEVICE_MEMORY) != 0;
    return call->type == CALL_COLLECTIVE && !call->async && !call->algorithm &&
           group->ops.run && buffers_are_plain(&call->coll, extent);
}

/* Waits for what is on the stream before the call. Each device has a default
 * stream, so both buffers' devices may have to be waited for. */
static dscomm_status_t stream_await(const dscomm_group_t *group,
                                    const extent_t *extent)
{
    const int sends = on_device(extent->send, extent->sends);
    dscomm_status_t status = DSCOMM_OK;

    if (sends)
        status = dscomm_priv_device_sync(extent->send, group->memory.stream);
    if (!status && (!sends || !group->memory.stream) &&
        on_device(extent->recv, extent->recvs))
        status = dscomm_priv_device_sync(extent->recv, group->memory.stream);
    return status;
}

static dscomm_status_t stage_make(const dscomm_group_t *group,
                                  dscomm_call_t *call, const extent_t *extent)
{
    stage_t *stage = g_try_new0(stage_t, 1);
    dscomm_status_t status;

    if (!stage)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "group '%s': rank %d has no memory for copies of "
                           "device buffers",
                           group->identity.name, group->rank);
    stage->bounce = (dscomm_bounce_t){stage_finish, stage_free};
    stage->stream = group->memory.stream;
    status = extents_overlap(extent) ? cover_both(stage, extent)
                                     : cover_each(stage, extent);
    if (status < 0) {
        stage_free(&stage->bounce);
        return status;
    }
    if (stage->recv.host && extent->recvs) {
        stage->result = extent->recv;
        stage->results = extent->recvs;
    }
    stage_replace(stage, call);
    call->bounce = &stage->bounce;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_stage_call(dscomm_group_t *group,
                                       dscomm_call_t *call)
{
    const extent_t extent = buffer_extent(group, call);
    dscomm_status_t status;

    call->time = NULL;
    if (dscomm_priv_hook_wants_device())
        dscomm_priv_device_time_begin(
            group, call,
            on_device(extent.send, extent.sends) ? extent.send : extent.recv);
    status = is_spared(group, call, &extent) ? stream_await(group, &extent)
                                             : stage_make(group, call, &extent);
    if (status < 0) {
        dscomm_priv_device_time_drop(call->time);
        call->time = NULL;
    }
    if (status < 0 && call->type == CALL_COLLECTIVE)
        dscomm_priv_group_give_up(group, status);
    return status;
}
