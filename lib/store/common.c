/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that all kinds of store use: deadlines, copies of values, and the
 * sentence about missing keys. */
#include "config.h"

#include "lib/store/store.h"

#include "lib/base/status.h"
#include "lib/base/thread.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Time for an answer after a call's deadline. */
#define GRACE_MS 1000
/* The same, if the server has not answered the last request. */
#define SILENT_MS 300
/* The same after the deadline of a call that makes several requests. */
#define DUE_MS 100
#define NAMES_MAX 6 /* missing keys that a sentence names */

/* Waiting */

dscomm_priv_deadline_t dscomm_priv_deadline(int timeout_ms)
{
    const gint64 at = g_get_monotonic_time() + (gint64)timeout_ms * 1000;

    return (dscomm_priv_deadline_t){at, at + GRACE_MS * 1000, timeout_ms};
}

/* The last moment for an answer to a request that is made now. A server that
 * has answered all requests so far gets the usual grace period, also after due.
 */
static gint64 answer_limit(dscomm_priv_limit_t limit, gint64 now, bool silent)
{
    const gint64 due = MIN(limit.due, G_MAXINT64 - DUE_MS * 1000);
    gint64 last;

    if (silent)
        last = now < due ? due + DUE_MS * 1000 : now;
    else
        last = MAX(due + DUE_MS * 1000, now + GRACE_MS * 1000);
    return MIN(last, limit.end);
}

dscomm_priv_deadline_t dscomm_priv_deadline_within(dscomm_priv_limit_t limit,
                                                   int timeout_ms, bool waits,
                                                   bool silent)
{
    const gint64 now = g_get_monotonic_time();
    const gint64 last = answer_limit(limit, now, silent);
    const gint64 grace = (silent ? SILENT_MS : GRACE_MS) * 1000;
    const gint64 asked = now + (gint64)timeout_ms * 1000;
    gint64 at = MIN(asked, MAX(last - DUE_MS * 1000, now));

    if (!waits)
        at = MIN(at, MAX(limit.due, now));
    if (at < asked)
        timeout_ms = (int)((at - now) / 1000);
    return (dscomm_priv_deadline_t){at, MIN(at + grace, last), timeout_ms};
}

gboolean dscomm_priv_deadline_passed(dscomm_priv_deadline_t deadline)
{
    return g_get_monotonic_time() >= deadline.at;
}

int dscomm_priv_deadline_left(dscomm_priv_deadline_t deadline)
{
    gint64 left = deadline.at - g_get_monotonic_time();

    return left > 0 ? (int)((left + 999) / 1000) : 0;
}

dscomm_priv_deadline_t dscomm_priv_grace(dscomm_priv_deadline_t deadline)
{
    deadline.at = deadline.end;
    return deadline;
}

/* A random number below the given one. g_random_int() would give a forked child
 * the numbers of its parent. */
static gint64 draw(gint64 now, gint64 below)
{
    uint64_t mixed = (uint64_t)now ^ (uint64_t)getpid() << 32;

    mixed += (uintptr_t)&mixed; /* differs in each thread */

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (gint64)((mixed >> 31) % (uint64_t)below);
}

void dscomm_priv_back_off(dscomm_priv_deadline_t deadline, gint64 *pause_us,
                          gint64 most_us)
{
    gint64 now = g_get_monotonic_time(), left = deadline.at - now;
    gint64 pause = *pause_us - draw(now, *pause_us / 2 + 1);

    if (left > 0)
        g_usleep((gulong)MIN(pause, left));
    *pause_us = MIN(*pause_us * 2, most_us);
}

gboolean dscomm_priv_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                               dscomm_priv_deadline_t deadline)
{
    struct timespec until = {deadline.at / G_USEC_PER_SEC,
                             deadline.at % G_USEC_PER_SEC * 1000};

    return pthread_cond_timedwait(cond, mutex, &until) == 0;
}

void dscomm_priv_gate_init(dscomm_priv_gate_t *gate)
{
    pthread_mutex_init(&gate->mutex, NULL);
    dscomm_priv_cond_init(&gate->cond);
    gate->taken = FALSE;
}

void dscomm_priv_gate_clear(dscomm_priv_gate_t *gate)
{
    pthread_mutex_destroy(&gate->mutex);
    pthread_cond_destroy(&gate->cond);
}

dscomm_status_t dscomm_priv_gate_enter(dscomm_priv_gate_t *gate,
                                       dscomm_priv_deadline_t deadline)
{
    dscomm_priv_deadline_t until = dscomm_priv_grace(deadline);
    gboolean mine;

    pthread_mutex_lock(&gate->mutex);
    while (gate->taken) {
        if (!dscomm_priv_cond_wait(&gate->cond, &gate->mutex, until))
            break;
    }
    mine = !gate->taken;
    gate->taken = TRUE; /* no change if another thread has it */
    pthread_mutex_unlock(&gate->mutex);
    if (!mine)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "another thread used the store for all of %d ms: "
                           "open one store a thread, or allow more time",
                           deadline.ms);
    return DSCOMM_OK;
}

void dscomm_priv_gate_leave(dscomm_priv_gate_t *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->taken = FALSE;
    pthread_cond_signal(&gate->cond);
    pthread_mutex_unlock(&gate->mutex);
}

/* Values and sentences */

void *dscomm_priv_value(const void *data, size_t size)
{
    char *value = g_try_malloc(size + 1);

    if (!value) {
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a value of %zu bytes",
                    size);
        return NULL;
    }
    if (data && size)
        memcpy(value, data, size);
    value[size] = '\0';
    return value;
}

void dscomm_priv_values_drop(void **values, size_t count)
{
    for (size_t i = 0; values && i < count; i++) {
        g_free(values[i]);
        values[i] = NULL;
    }
}

/* Of a long key the sentence shows the end, because long keys differ there. */
dscomm_status_t dscomm_priv_fail_missing(const dscomm_priv_request_t *request,
                                         const uint8_t *present)
{
    const char *const *keys = request->keys;
    const size_t count = request->count;
    const int ms = request->deadline.ms;
    char names[384], name[48];
    size_t missing = 0, length = 0, over;

    names[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (present && present[i])
            continue;
        over =
            strlen(keys[i]) < sizeof name ? 0 : strlen(keys[i]) - sizeof name;
        if (missing++ < NAMES_MAX && length < sizeof names)
            length += (size_t)snprintf(
                names + length, sizeof names - length, "%s'%s%s'",
                length ? ", " : "", over ? "..." : "",
                dscomm_priv_quote(keys[i] + 1 + over, name, sizeof name));
    }
    if (missing > NAMES_MAX && length < sizeof names)
        snprintf(names + length, sizeof names - length, " and %zu more",
                 missing - NAMES_MAX);
    if (!missing)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "the last of %zu keys came after the %d ms allowed",
                           count, ms);
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "%zu of %zu keys not set within %d ms: %s", missing,
                       count, ms, names);
}
