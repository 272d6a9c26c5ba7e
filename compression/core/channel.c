/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: each group that has or had compressors has one, as an
 * attachment. */
#include "config.h"

#include "compression/core/compressor.h"

#include <dscomm/dscomm.h>
#include <unistd.h>

const char dscomm_priv_channel_key;

dscomm_channel_t *dscomm_priv_channel_of(dscomm_group_t *group)
{
    return dscomm_group_attached(group, &dscomm_priv_channel_key);
}

dscomm_status_t dscomm_priv_channel_fail(dscomm_group_t *group)
{
    const dscomm_status_t status = dscomm_fail(
        DSCOMM_ERR_NO_MEMORY, "no memory for a compressor of group '%s'",
        dscomm_group_name(group));

    dscomm_group_abort(group, dscomm_last_error());
    return status;
}

dscomm_status_t dscomm_priv_channel_status(const dscomm_channel_t *channel)
{
    dscomm_status_t status = dscomm_group_status(channel->parent);

    return status == DSCOMM_OK && channel->group
               ? dscomm_group_status(channel->group)
               : status;
}

int dscomm_priv_channel_is_inherited(const dscomm_channel_t *channel)
{
    return channel->process != getpid();
}

int dscomm_priv_channel_timeout(const dscomm_channel_t *channel)
{
    return channel->parent ? dscomm_group_timeout(channel->parent)
                           : channel->timeout_ms;
}
