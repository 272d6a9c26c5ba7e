/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a channel, of its idle calls and its windows. A channel lives
 * until its group has ended and its last compressor is freed, because ranks may
 * free their last compressors at different times. */
#include "config.h"

#include "compression/core/window.h"

#include <dscomm/dscomm.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void channel_destroy(dscomm_channel_t *channel)
{
    dscomm_priv_exchange_free(channel->idle);
    pthread_mutex_destroy(&channel->windows.lock);
    pthread_mutex_destroy(&channel->idle_lock);
    pthread_mutex_destroy(&channel->lock);
    g_free(channel);
}

/* Takes and releases the lock, so that a thread that has just ended the last
 * call has released it. */
static void mutex_pass(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

/* Called when the group ends, after its calls were cancelled. */
static void channel_end(void *value)
{
    dscomm_channel_t *channel = value;

    if (dscomm_priv_channel_is_inherited(channel))
        return;
    mutex_pass(&channel->lock);
    channel->timeout_ms = dscomm_group_timeout(channel->parent);
    dscomm_group_free(channel->group);
    channel->group = channel->parent = NULL;
    if (!channel->compressors)
        channel_destroy(channel);
}

static dscomm_channel_t *new_channel(dscomm_group_t *group)
{
    dscomm_channel_t *channel = g_try_new0(dscomm_channel_t, 1);

    if (!channel)
        return NULL;
    channel->parent = group;
    channel->process = getpid();
    channel->rank = dscomm_group_rank(group);
    channel->ranks = dscomm_group_size(group);
    channel->identity =
        dscomm_priv_hash(dscomm_group_id(group), strlen(dscomm_group_id(group)),
                         DSCOMM_HASH_SEED);
    pthread_mutex_init(&channel->lock, NULL);
    pthread_mutex_init(&channel->idle_lock, NULL);
    pthread_mutex_init(&channel->windows.lock, NULL);
    return channel;
}

static dscomm_status_t open_channel(dscomm_group_t *group,
                                    dscomm_channel_t **ret_channel)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_channel_t *channel = new_channel(group);
    dscomm_status_t status = DSCOMM_OK;
    char name[64];

    if (!channel)
        return dscomm_priv_channel_fail(group);
    snprintf(name, sizeof name, "%.40s/compressed", dscomm_group_name(group));
    attr.name = name;
    if (channel->ranks > 1)
        status =
            dscomm_group_split(group, 0, channel->rank, &attr, &channel->group);
    if (status == DSCOMM_OK)
        status = dscomm_group_attach(group, &dscomm_priv_channel_key, channel,
                                     channel_end);
    if (status < 0) {
        if (channel->group) /* the other ranks may keep their windows */
            dscomm_group_abort(channel->group, dscomm_last_error());
        dscomm_group_free(channel->group);
        channel_destroy(channel);
        return status;
    }
    *ret_channel = channel;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_channel_take(dscomm_group_t *group,
                                         dscomm_channel_t **ret_channel)
{
    dscomm_channel_t *channel = dscomm_priv_channel_of(group);
    dscomm_status_t status = DSCOMM_OK;

    if (!channel)
        status = open_channel(group, &channel);
    if (status < 0)
        return status;
    channel->compressors++;
    *ret_channel = channel;
    return DSCOMM_OK;
}

void dscomm_priv_channel_give(dscomm_channel_t *channel)
{
    dscomm_exchange_t *idle;

    if (!channel || --channel->compressors)
        return;
    mutex_pass(&channel->lock);
    pthread_mutex_lock(&channel->idle_lock);
    idle = channel->idle;
    channel->idle = NULL;
    pthread_mutex_unlock(&channel->idle_lock);
    dscomm_priv_exchange_free(idle);
    dscomm_priv_window_leave(channel);
    if (!channel->parent)
        channel_destroy(channel);
}
