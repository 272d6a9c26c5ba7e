/* SPDX-License-Identifier: BSD-3-Clause */
/* One call, from its start to its end or failure. A blocking call is run by its
 * caller, any other one as a work. Nothing is allocated if the channel had a
 * call of this size before. */
#include "config.h"

#include "compression/device/device.h"
#include "lib/base/clock.h"

#include <dscomm/dscomm.h>
#include <string.h>

/* Interval at which a blocking call checks its group, in ms. */
#define LOOK_MS 100

/* Frees all works after the group has ended. If one of them was not complete,
 * the backend may still use its rows, so that memory is never reused. */
static void works_drop(dscomm_exchange_t *x)
{
    const size_t works = dscomm_priv_exchange_works(x);

    for (size_t i = 0; x->gathers && i < works; i++) {
        if (!x->gathers[i])
            continue;
        if (dscomm_work_test(x->gathers[i]) != DSCOMM_OK)
            x->abandoned = 1;
        dscomm_work_free(x->gathers[i]);
    }
}

/* Reports the call to the hooks of the process. It is not a failure if they
 * cannot be called. */
static void compressed_call_note(const dscomm_exchange_t *x,
                                 dscomm_status_t status)
{
    const uint64_t ranks = (uint64_t)x->channel->ranks;
    dscomm_note_t note = {
        .size = sizeof note,
        .group = x->channel->parent,
        .coll = DSCOMM_COLL_ALL_REDUCE,
        .status = status,
        .nanoseconds = dscomm_priv_clock() - x->began_ns,
    };

    for (size_t i = 0; i < x->part_count; i++) {
        const dscomm_compressor_t *c = part_at(x, i)->c;
        const char *codec = c->codec->name;

        note.codec = i && strcmp(note.codec, codec) != 0 ? "several" : codec;
        note.bytes += c->count * dscomm_dtype_size(x->dtype);
        note.sent_bytes += dscomm_priv_wire_bytes(c);
    }
    note.plain_bytes = 2 * (ranks - 1) * note.bytes / ranks;
    if (note.group && note.codec)
        dscomm_hook_note(&note);
}

/* Revokes the channel's group, so that the calls of all ranks end. The sentence
 * then is this thread's last one. */
static dscomm_status_t compressed_call_fail(dscomm_exchange_t *x,
                                            dscomm_status_t status)
{
    char text[512]; /* as long as the longest sentence */

    g_strlcpy(text, dscomm_last_error(), sizeof text);
    if (x->channel->group)
        dscomm_group_abort(x->channel->group, text);
    works_drop(x);
    if (dscomm_priv_device_settle(x, MIN(x->timeout_ms, DSCOMM_SETTLE_MS)) < 0)
        x->abandoned = 1;
    status = dscomm_fail(status, "%s on group '%s': %s", x->name,
                         dscomm_group_name(x->channel->parent), text);
    compressed_call_note(x, status);
    for (size_t i = 0; i < x->part_count; i++)
        part_at(x, i)->c->lost = 1;
    dscomm_priv_exchange_retire(x);
    return status;
}

/* The progress of a call: the number of steps done. */
static size_t call_steps(const dscomm_exchange_t *x)
{
    return x->gathered + x->reduced + x->spread + x->fetched + x->decoded +
           x->sent + (size_t)x->acknowledged;
}

/* Makes all progress that is possible, until the call is complete. Called with
 * the channel's lock. */
static dscomm_status_t call_progress(dscomm_exchange_t *x)
{
    size_t before = call_steps(x);
    dscomm_status_t status = dscomm_priv_exchange_go_on(x);

    if (status == DSCOMM_IN_PROGRESS)
        status = dscomm_priv_exchange_watch(x, call_steps(x) != before);
    if (status < 0)
        return compressed_call_fail(x, status);
    if (status == DSCOMM_OK) {
        compressed_call_note(x, status);
        dscomm_priv_exchange_retire(x);
    }
    return status;
}

static dscomm_status_t call_advance(void *state)
{
    dscomm_exchange_t *x = state;
    dscomm_channel_t *channel = x->channel;
    dscomm_status_t status;

    if (pthread_mutex_trylock(&channel->lock))
        return DSCOMM_IN_PROGRESS;
    status = call_progress(x);
    pthread_mutex_unlock(&channel->lock);
    return status;
}

/* Does not take the channel's lock: this thread may hold it, in another call
 * that tests a work; or another thread may hold it and wait for a lock of the
 * core. */
static void call_cancel(void *state, dscomm_status_t status)
{
    dscomm_exchange_t *x = state;

    if (dscomm_group_status(x->channel->parent) != status)
        dscomm_fail(status, "the group has ended");
    compressed_call_fail(x, status);
}

/* Waits for the next event of the call. The whole wait counts as time in which
 * the device was watched. */
static void call_wait(dscomm_exchange_t *x)
{
    int most_ms = x->waits ? 0 : MIN(LOOK_MS, x->timeout_ms / 8 + 1);

    if (x->awaited)
        dscomm_work_wait(x->awaited, most_ms);
    if (x->waits)
        dscomm_priv_device_rest(x->since_ns);
    x->seen_ns = dscomm_priv_clock();
}

/* Runs the call. Fails if the compressors' group has ended, because that does
 * not end the channel's own group. */
static dscomm_status_t compressed_call_run(dscomm_exchange_t *x)
{
    dscomm_channel_t *channel = x->channel;
    dscomm_status_t status;

    for (;;) {
        pthread_mutex_lock(&channel->lock);
        status = dscomm_group_status(channel->parent);
        status =
            status < 0 ? compressed_call_fail(x, status) : call_progress(x);
        pthread_mutex_unlock(&channel->lock);
        if (status != DSCOMM_IN_PROGRESS)
            return status;
        call_wait(x);
    }
}

/* Fails because there is no memory for the call itself. The other ranks' calls
 * end as well. */
static dscomm_status_t fail_early(dscomm_channel_t *channel, const char *name)
{
    const dscomm_status_t status =
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s on group '%s': no memory", name,
                    dscomm_group_name(channel->parent));

    if (channel->group)
        dscomm_group_abort(channel->group, dscomm_last_error());
    return status;
}

/* Copies the errors of a recoverable compressor. They are on the host, because
 * no device computes for such. */
static void errors_keep(const dscomm_compressor_t *c)
{
    if (!c->kept)
        return;
    memcpy(c->kept, c->worker, c->padded * sizeof(float));
    memcpy(c->kept + c->padded, c->server,
           dscomm_priv_part_count(c, c->channel->rank) * sizeof(float));
}

dscomm_status_t dscomm_priv_exchange(const char *name,
                                     dscomm_compressor_t *const *compressors,
                                     void *const *buffers, size_t n,
                                     dscomm_dtype_t dtype,
                                     dscomm_work_t **ret_work)
{
    static const dscomm_work_ops_t ops = {sizeof ops, call_advance,
                                          call_cancel};
    dscomm_channel_t *channel = compressors[0]->channel;
    dscomm_exchange_t *x;
    dscomm_status_t status;

    pthread_mutex_lock(&channel->lock);
    x = dscomm_priv_exchange_new(channel);
    if (!x) {
        pthread_mutex_unlock(&channel->lock);
        return fail_early(channel, name);
    }
    x->name = name;
    x->began_ns = dscomm_priv_clock();
    status = dscomm_priv_exchange_plan(x, compressors, buffers, n, dtype);
    for (size_t i = 0; i < n; i++) {
        g_atomic_int_set(&compressors[i]->busy, status == DSCOMM_OK);
        compressors[i]->calls += status == DSCOMM_OK;
    }
    for (size_t i = 0; i < n && status == DSCOMM_OK; i++)
        errors_keep(compressors[i]);
    if (status == DSCOMM_OK)
        status = dscomm_priv_device_begin(x);
    if (status == DSCOMM_OK)
        status = dscomm_priv_exchange_room(x);
    if (status == DSCOMM_OK)
        status = dscomm_priv_exchange_start(x);
    if (status < 0)
        status = compressed_call_fail(x, status);
    pthread_mutex_unlock(&channel->lock);
    if (status < 0)
        return status;
    if (!ret_work)
        return compressed_call_run(x);
    status = dscomm_work_create(channel->parent, &ops, x, ret_work);
    if (status < 0) {
        pthread_mutex_lock(&channel->lock);
        status = compressed_call_fail(x, status);
        pthread_mutex_unlock(&channel->lock);
    }
    return status;
}
