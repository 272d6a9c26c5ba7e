/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for a device's queue; keeps memory that a device may use for longer;
 * limits allocations on a full device. */
#include "config.h"

#include "compression/device/device.h"
#include "lib/base/clock.h"

#include <dscomm/dscomm.h>
#include <pthread.h>

/* Time for which a device is polled without pauses; later there are pauses. */
#define EAGER_NS (2 * NS_PER_MS)
#define PAUSE_US 50
/* The number of calls that do not try to allocate on a full device: first,
 * most. */
#define SHORT_FIRST 16
#define SHORT_MOST 1024

void dscomm_priv_device_rest(int64_t since_ns)
{
    if (dscomm_priv_clock() - since_ns < EAGER_NS)
        g_thread_yield();
    else
        g_usleep(PAUSE_US);
}

/* Retained memory stays in a list, so that leak checkers find it, if there is
 * memory for the entry. */
void dscomm_priv_retain(void *memory)
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

/* Waits until the queue is empty, until most_ms has passed, or until one of
 * channel's groups ends, if channel is not NULL. Returns the table's code. */
static int queue_look(const dscomm_channel_t *channel,
                      dscomm_device_queue_t *queue, void **event, int most_ms,
                      int *ret_reached)
{
    const int64_t since_ns = dscomm_priv_clock();
    const int64_t end_ns = since_ns + most_ms * NS_PER_MS;
    void *own = NULL, **mark = event ? event : &own;
    int code = device_ops()->mark(queue, mark);

    *ret_reached = 0;
    if (!code)
        code = device_ops()->reached(queue, *mark, ret_reached);
    while (!code && !*ret_reached && dscomm_priv_clock() < end_ns &&
           (!channel || dscomm_priv_channel_status(channel) == DSCOMM_OK)) {
        dscomm_priv_device_rest(since_ns);
        code = device_ops()->reached(queue, *mark, ret_reached);
    }
    if (own)
        device_ops()->unmark(queue, own);
    return code;
}

int dscomm_priv_device_is_idle(dscomm_device_queue_t *queue, int most_ms)
{
    int reached;

    return !queue_look(NULL, queue, NULL, most_ms, &reached) && reached;
}

dscomm_status_t dscomm_priv_device_drain(const dscomm_channel_t *channel,
                                         dscomm_device_queue_t *queue,
                                         void **event, int most_ms)
{
    int reached, code = queue_look(channel, queue, event, most_ms, &reached);
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

int dscomm_priv_device_is_short(dscomm_shortage_t *shortage, size_t bytes)
{
    if (!shortage->left || bytes < shortage->bytes)
        return 0;
    shortage->left--;
    return 1;
}

void dscomm_priv_device_note_try(dscomm_shortage_t *shortage, size_t bytes,
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
    dscomm_status_t status =
        dscomm_priv_device_drain(NULL, queue, NULL, most_ms);

    if (status < 0)
        dscomm_priv_retain(memory);
    else
        device_ops()->release(queue, on_host, memory);
    return status;
}
