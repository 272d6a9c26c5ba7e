/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting times of a call, for other ranks and for its device. */
#include "config.h"

#include "compression/device/device.h"
#include "lib/base/clock.h"

#include <dscomm/dscomm.h>

/* Messages have the deadline of their group; a device has none. Its deadline
 * counts from the call's last progress. Only time in which the device was
 * watched counts, because progress at other times could not be seen. */
dscomm_status_t dscomm_priv_exchange_watch(dscomm_exchange_t *x, int moved)
{
    const int64_t now = dscomm_priv_clock();
    const int64_t limit = x->timeout_ms * NS_PER_MS;

    if (!x->since_ns || moved || now - x->seen_ns > limit / 4)
        x->since_ns = now;
    x->seen_ns = now;
    if (x->awaited || now - x->since_ns <= limit)
        return DSCOMM_IN_PROGRESS;
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "rank %d waits for its device, which has not gone on "
                       "for %d ms",
                       x->channel->rank, x->timeout_ms);
}

/* Testing any message makes progress on all messages of the group. Fails if one
 * of the groups has ended. */
static dscomm_status_t messages_progress(const dscomm_exchange_t *x)
{
    size_t works = x->packet_count * (size_t)x->channel->ranks, i = 0;

    while (i < works && !x->gathers[i])
        i++;
    if (i < works)
        dscomm_work_test(x->gathers[i]);
    return dscomm_priv_channel_status(x->channel);
}

dscomm_status_t dscomm_priv_exchange_await(dscomm_exchange_t *x, stage_t stage,
                                           size_t p)
{
    dscomm_status_t status = dscomm_priv_device_reached(x, stage, p);

    x->awaited = NULL;
    x->since_ns = 0;
    while (status == DSCOMM_IN_PROGRESS) {
        status = dscomm_priv_exchange_watch(x, 0);
        if (status == DSCOMM_IN_PROGRESS)
            status = messages_progress(x);
        if (status < 0)
            break;
        dscomm_priv_device_rest(x->since_ns);
        x->seen_ns = dscomm_priv_clock();
        status = dscomm_priv_device_reached(x, stage, p);
    }
    x->since_ns = 0;
    return status;
}
