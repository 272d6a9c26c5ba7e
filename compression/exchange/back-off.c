/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a call waits for other ranks, and for its device; and what becomes
 * of memory that a device may use longer than that. */
#include "config.h"

#include "compression/device/device.h"

#include <dscomm/dscomm.h>
#include <pthread.h>

/* A device is asked again and again for so long, and then with pauses. */
#define EAGER_US 2000
#define PAUSE_US 50
/* Calls for which a full device is not asked, at first and at most. */
#define SHORT_FIRST 16
#define SHORT_MOST 1024

/* Messages have the deadline of their group, which ends them; a device has
 * none. Its deadline counts from when the call last went on. Only time in which
 * somebody has looked counts: what came while nobody did could not be seen. */
dscomm_status_t dscomm_priv_exchange_watch(dscomm_exchange_t *x, int moved)
{
    gint64 now = g_get_monotonic_time(), limit = (gint64)x->timeout_ms * 1000;

    if (!x->since || moved || now - x->seen > limit / 4)
        x->since = now;
    x->seen = now;
    if (x->awaited || now - x->since <= limit)
        return DSCOMM_IN_PROGRESS;
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "rank %d waits for its device, which has not gone on "
                       "for %d ms",
                       x->channel->rank, x->timeout_ms);
}

static void rest(gint64 since)
{
    if (g_get_monotonic_time() - since < EAGER_US)
        g_thread_yield();
    else
        g_usleep(PAUSE_US);
}

void dscomm_priv_exchange_rest(const dscomm_exchange_t *x)
{
    rest(x->since);
}

/* It stays where tools that look for leaks find it, if there is memory to note
 * it. */
void dscomm_priv_park(void *memory)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static GSList *all;
    GSList *link = g_try_new(GSList, 1);

    if (!link)
        return;
    pthread_mutex_lock(&lock);
    *link = (GSList){memory, all};
    all = link;
    pthread_mutex_unlock(&lock);
}

static const dscomm_device_ops_t *ops(void)
{
    return dscomm_priv_device_table();
}

/* Until the queue has ended what it has, or so long, or, where channel is not
 * NULL, until one of its groups ends: the table's code. */
static int look(const dscomm_channel_t *channel, dscomm_device_queue_t *queue,
                void **event, int most_ms, int *ret_reached)
{
    const gint64 since = g_get_monotonic_time();
    const gint64 end = since + (gint64)most_ms * 1000;
    void *own = NULL, **mark = event ? event : &own;
    int code = ops()->mark(queue, mark);

    *ret_reached = 0;
    if (!code)
        code = ops()->reached(queue, *mark, ret_reached);
    while (!code && !*ret_reached && g_get_monotonic_time() < end &&
           (!channel || dscomm_priv_channel_status(channel) == DSCOMM_OK)) {
        rest(since);
        code = ops()->reached(queue, *mark, ret_reached);
    }
    if (own)
        ops()->unmark(queue, own);
    return code;
}

int dscomm_priv_device_is_idle(dscomm_device_queue_t *queue, int most_ms)
{
    int reached;

    return !look(NULL, queue, NULL, most_ms, &reached) && reached;
}

static dscomm_status_t drain(const dscomm_channel_t *channel,
                             dscomm_device_queue_t *queue, void **event,
                             int most_ms)
{
    int reached, code = look(channel, queue, event, most_ms, &reached);
    dscomm_status_t status = DSCOMM_OK;

    if (code || reached)
        return dscomm_priv_device_result(code, "waiting for a device");
    if (channel)
        status = dscomm_priv_channel_status(channel);
    if (status < 0)
        return status;
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "this rank waits for its device, which has not ended "
                       "what it began before in %d ms",
                       most_ms);
}

dscomm_status_t dscomm_priv_device_drain(dscomm_device_queue_t *queue,
                                         void **event, int most_ms)
{
    return drain(NULL, queue, event, most_ms);
}

dscomm_status_t dscomm_priv_exchange_drain(const dscomm_exchange_t *x,
                                           dscomm_device_queue_t *queue)
{
    return drain(x->channel, queue, NULL, x->timeout_ms);
}

int dscomm_priv_device_is_short(dscomm_shortage_t *shortage, size_t bytes)
{
    if (!shortage->left || bytes < shortage->bytes)
        return 0;
    shortage->left--;
    return 1;
}

void dscomm_priv_device_asked(dscomm_shortage_t *shortage, size_t bytes,
                              int code)
{
    unsigned pause = MAX(SHORT_FIRST, MIN(2 * shortage->pause, SHORT_MOST));

    *shortage = code ? (dscomm_shortage_t){bytes, pause, pause}
                     : (dscomm_shortage_t){0};
}

dscomm_status_t dscomm_priv_device_release(dscomm_device_queue_t *queue,
                                           int on_host, void *memory,
                                           int most_ms)
{
    dscomm_status_t status = dscomm_priv_device_drain(queue, NULL, most_ms);

    if (status < 0)
        dscomm_priv_park(memory);
    else
        ops()->release(queue, on_host, memory);
    return status;
}

/* To look at any of its messages lets all of the group's go on. A failure where
 * one of the groups has ended. */
static dscomm_status_t look_around(const dscomm_exchange_t *x)
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
    x->since = 0;
    while (status == DSCOMM_IN_PROGRESS) {
        status = dscomm_priv_exchange_watch(x, 0);
        if (status == DSCOMM_IN_PROGRESS)
            status = look_around(x);
        if (status < 0)
            break;
        dscomm_priv_exchange_rest(x);
        x->seen = g_get_monotonic_time();
        status = dscomm_priv_device_reached(x, stage, p);
    }
    x->since = 0;
    return status;
}
