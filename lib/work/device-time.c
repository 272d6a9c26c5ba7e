/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of devices, for hooks: a pair of events on the group's stream encloses
 * each call with buffers in device memory. Nothing waits for events: a time is
 * reported by the first call that finds it complete, the next such call of the
 * group or dscomm_hooks_set(). */
#include "config.h"
#include "lib/device/device.h"
#include "lib/work/work.h"

#include <pthread.h>
#include <sys/queue.h>

#define TIMES 16 /* of one group that are not complete */

typedef enum { TIME_FREE, TIME_BEGUN, TIME_ENDED } time_state_t;

struct dscomm_device_time {
    time_state_t state;
    dscomm_device_span_t events;
    void *stream; /* of both events; the group may get another one meanwhile */
    dscomm_op_info_t info; /* of the call, without its buffers */
    dscomm_hook_span_t span;
};

typedef struct dscomm_device_times {
    LIST_ENTRY(dscomm_device_times) in_list;
    dscomm_device_time_t all[TIMES];
} times_t;

/* protects the list and all times */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, dscomm_device_times) list;

/* Reports the times that are complete. Called with the lock. */
static void times_report(times_t *times)
{
    for (int i = 0; i < TIMES; i++) {
        dscomm_device_time_t *time = &times->all[i];
        const dscomm_hook_span_t span = time->span;
        int64_t ns = 0;
        int result;

        if (time->state != TIME_ENDED)
            continue;
        result = dscomm_priv_device_span_read(&time->events, &ns);
        if (result > 0)
            span.hooks->device(&time->info, ns, span.token, span.hooks->arg);
        if (result)
            time->state = TIME_FREE;
    }
}

void dscomm_priv_device_times_report(void)
{
    times_t *times;

    pthread_mutex_lock(&lock);
    LIST_FOREACH (times, &list, in_list)
        times_report(times);
    pthread_mutex_unlock(&lock);
}

/* The group's times, which are made. Called with the lock. NULL: no memory. */
static times_t *times_of(dscomm_group_t *group)
{
    times_t *times = group->memory.times;

    if (times)
        return times;
    times = g_try_new0(times_t, 1);
    if (!times)
        return NULL;
    LIST_INSERT_HEAD(&list, times, in_list);
    group->memory.times = times;
    return times;
}

/* A time that is not in use; NULL: none, and the call is not timed. */
static dscomm_device_time_t *time_take(times_t *times)
{
    times_report(times);
    for (int i = 0; i < TIMES; i++)
        if (times->all[i].state == TIME_FREE)
            return &times->all[i];
    return NULL;
}

void dscomm_priv_device_time_begin(dscomm_group_t *group, dscomm_call_t *call,
                                   const void *pointer)
{
    dscomm_device_time_t *time;
    times_t *times;

    pthread_mutex_lock(&lock);
    times = times_of(group);
    time = times ? time_take(times) : NULL;
    if (time && dscomm_priv_device_span_begin(&time->events, pointer,
                                              group->memory.stream)) {
        time->state = TIME_BEGUN;
        time->stream = group->memory.stream;
        call->time = time;
    }
    pthread_mutex_unlock(&lock);
}

void dscomm_priv_device_time_end(const dscomm_group_t *group,
                                 dscomm_device_time_t *time,
                                 dscomm_hook_span_t span,
                                 const dscomm_op_info_t *info)
{
    pthread_mutex_lock(&lock);
    time->state = TIME_FREE;
    if (span.hooks && span.hooks->device &&
        dscomm_priv_device_span_end(&time->events, time->stream)) {
        time->state = TIME_ENDED;
        time->span = span;
        time->info = *info;
        time->info.send = time->info.recv = NULL;
        time->info.phases = NULL;
    }
    times_report(group->memory.times);
    pthread_mutex_unlock(&lock);
}

void dscomm_priv_device_time_drop(dscomm_device_time_t *time)
{
    if (!time)
        return;
    pthread_mutex_lock(&lock);
    time->state = TIME_FREE;
    pthread_mutex_unlock(&lock);
}

/* Called before the group's memory is freed. In a forked child the driver does
 * not work, and the list is the parent's. */
static void times_end(dscomm_group_t *group)
{
    times_t *times = group->memory.times;

    if (!times || dscomm_priv_group_forked(group))
        return;
    pthread_mutex_lock(&lock);
    times_report(times);
    LIST_REMOVE(times, in_list);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < TIMES; i++)
        dscomm_priv_device_span_free(&times->all[i].events);
    group->memory.times = NULL;
    g_free(times);
}

const dscomm_group_part_t dscomm_priv_device_times_part = {
    .on[PART_FREE] = times_end,
};

/* In a forked child: the driver does not work there. */
void dscomm_priv_device_times_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    LIST_INIT(&list);
}
