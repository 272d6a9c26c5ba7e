/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: one for each group that has compressors. */
#include "config.h"

#include "compression/compressor.h"

#include <dscomm/dscomm.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GPtrArray *channels;

static dscomm_channel_t *find(const dscomm_group_t *group)
{
    dscomm_channel_t *found = NULL;

    pthread_mutex_lock(&lock);
    for (guint i = 0; channels && i < channels->len && !found; i++) {
        dscomm_channel_t *channel = g_ptr_array_index(channels, i);

        if (channel->parent == group)
            found = channel;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void keep(dscomm_channel_t *channel)
{
    pthread_mutex_lock(&lock);
    if (!channels)
        channels = g_ptr_array_new();
    g_ptr_array_add(channels, channel);
    pthread_mutex_unlock(&lock);
}

static void forget(dscomm_channel_t *channel)
{
    pthread_mutex_lock(&lock);
    g_ptr_array_remove_fast(channels, channel);
    pthread_mutex_unlock(&lock);
}

static void destroy(dscomm_channel_t *channel)
{
    dscomm_priv_exchange_free(channel->idle);
    pthread_mutex_destroy(&channel->idle_lock);
    pthread_mutex_destroy(&channel->lock);
    g_free(channel);
}

dscomm_status_t dscomm_priv_channel_take(dscomm_group_t *group,
                                         dscomm_channel_t **ret_channel)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_channel_t *channel = find(group);
    dscomm_status_t status = DSCOMM_OK;
    char name[64];

    if (!channel) {
        channel = g_new0(dscomm_channel_t, 1);
        channel->parent = group;
        channel->rank = dscomm_group_rank(group);
        channel->ranks = dscomm_group_size(group);
        pthread_mutex_init(&channel->lock, NULL);
        pthread_mutex_init(&channel->idle_lock, NULL);
        snprintf(name, sizeof name, "%.40s/compressed",
                 dscomm_group_name(group));
        attr.name = name;
        if (channel->ranks > 1)
            status = dscomm_group_split(group, 0, channel->rank, &attr,
                                        &channel->group);
        if (status < 0) {
            destroy(channel);
            return status;
        }
        keep(channel);
    }
    channel->compressors++;
    *ret_channel = channel;
    return DSCOMM_OK;
}

/* Whoever has just ended the last call, perhaps another thread, is out of it
 * afterwards. */
static void meet(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

void dscomm_priv_channel_give(dscomm_channel_t *channel)
{
    if (!channel || --channel->compressors)
        return;
    forget(channel);
    meet(&channel->lock);
    meet(&channel->idle_lock);
    dscomm_group_free(channel->group);
    destroy(channel);
}
