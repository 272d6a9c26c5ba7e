/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of events: threads write while another one reads, old events are
 * overwritten and counted, a wait begins after what its thread did before. */
#include "config.h"

#include "profiler/events.h"
#include "tests/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS 3
#define EVENTS 200000 /* of each, more than a ring has */

static const char owner, other;
static atomic_bool done;

/* An event of which each member tells the number. */
static event_t event_of(unsigned writer, uint64_t n)
{
    return (event_t){
        .begin_ticks = (int64_t)n,
        .end_ticks = (int64_t)n + 1,
        .sequence = n * 3,
        .bytes = ~n,
        .op = (int32_t)writer,
        .peer = -(int32_t)n,
        .tag = (int32_t)n,
        .group = (uint16_t)(n % 1024),
        .text = (uint16_t)(n % 4096),
        .status = (int16_t) - (int)(n % 30),
        .kind = EVENT_OPERATION,
        .coll = (uint8_t)(n % 16),
        .dtype = (uint8_t)(n % 14),
        .is_async = n % 2,
        .has_phases = n / 2 % 2,
        .phases = n * 5,
    };
}

static bool event_is_whole(const event_t *event)
{
    const event_t want =
        event_of((unsigned)event->op, (uint64_t)event->begin_ticks);

    return event->op < WRITERS && event->end_ticks == want.end_ticks &&
           event->sequence == want.sequence && event->bytes == want.bytes &&
           event->peer == want.peer && event->tag == want.tag &&
           event->group == want.group && event->text == want.text &&
           event->status == want.status && event->kind == want.kind &&
           event->coll == want.coll && event->dtype == want.dtype &&
           event->is_async == want.is_async &&
           event->has_phases == want.has_phases && event->phases == want.phases;
}

static void *writer_run(void *arg)
{
    const unsigned writer = *(const unsigned *)arg;

    for (uint64_t n = 0; n < EVENTS; n++) {
        const event_t event = event_of(writer, n);

        event_add(&event);
    }
    return NULL;
}

/* Reads until the writers have ended; returns the events that were torn, or of
 * which one is missing in the middle. */
static unsigned read_all(void)
{
    unsigned wrong = 0;
    bool last;

    do {
        GArray *events = g_array_new(FALSE, FALSE, sizeof(event_t));

        last = atomic_load(&done);
        dscomm_priv_events_copy(&owner, events);
        for (guint i = 0; i < events->len; i++) {
            const event_t *event = &g_array_index(events, event_t, i);

            wrong += !event_is_whole(event);
            wrong += i && event[-1].op == event->op &&
                     event[-1].begin_ticks + 1 != event->begin_ticks;
        }
        g_array_unref(events);
    } while (!last);
    return wrong;
}

static void *reader_run(void *arg)
{
    *(unsigned *)arg = read_all();
    return NULL;
}

static void threads(void)
{
    GArray *events = g_array_new(FALSE, FALSE, sizeof(event_t));
    unsigned numbers[WRITERS] = {0, 1, 2}, wrong = 1;
    pthread_t writers[WRITERS], reader;
    event_thread_t thread;
    uint64_t dropped;

    dscomm_priv_events_begin(&owner);
    if (pthread_create(&reader, NULL, reader_run, &wrong))
        bail("no thread");
    for (int i = 0; i < WRITERS; i++)
        if (pthread_create(&writers[i], NULL, writer_run, &numbers[i]))
            bail("no thread");
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    atomic_store(&done, true);
    pthread_join(reader, NULL);
    is_int(wrong, 0, "all events that are read are whole and in order");
    dropped = dscomm_priv_events_copy(&owner, events);
    is_int((long long)(events->len + dropped), WRITERS * EVENTS,
           "each event is there or counted as dropped");
    ok(events->len >= RING_EVENTS - 1, "a ring keeps its last events");
    ok(dscomm_priv_event_thread(
           g_array_index(events, event_t, events->len - 1).thread, &thread) &&
           thread.tid > 0,
       "their thread is known");
    is_int((long long)dscomm_priv_events_copy(&other, events), 0,
           "another profiler has none");
    dscomm_priv_events_begin(&owner);
    g_array_set_size(events, 0);
    is_int((long long)dscomm_priv_events_copy(&owner, events) + events->len, 0,
           "nor has the next one");
    g_array_unref(events);
}

static void waits(void)
{
    GArray *events = g_array_new(FALSE, FALSE, sizeof(event_t));
    event_t event = {.begin_ticks = 10, .end_ticks = 20};

    dscomm_priv_events_begin(&owner);
    event_add(&event);
    event = (event_t){.begin_ticks = 15, .end_ticks = 30, .kind = EVENT_WAIT};
    event_add(&event);
    dscomm_priv_event_mark(40);
    event = (event_t){.begin_ticks = 25, .end_ticks = 50, .kind = EVENT_WAIT};
    event_add(&event);
    event = (event_t){.begin_ticks = 60, .end_ticks = 70, .kind = EVENT_WAIT};
    event_add(&event);
    ok(events_are_of(&owner) && !events_are_of(&other), "the rings are owned");
    dscomm_priv_events_forget(&other);
    dscomm_priv_events_copy(&owner, events);
    is_int(events->len, 4,
           "four events, which another profiler cannot discard");
    is_int(g_array_index(events, event_t, 1).begin_ticks, 20,
           "a wait begins after the last operation");
    is_int(g_array_index(events, event_t, 2).begin_ticks, 40,
           "and after a range that has begun");
    is_int(g_array_index(events, event_t, 3).begin_ticks, 60, "or later");
    g_array_unref(events);
}

/* A process whose thread keys are all in use has no rings. */
static void no_keys(void)
{
    const event_t event = {.begin_ticks = 10, .end_ticks = 20};
    GArray *events;
    pthread_key_t key;
    uint64_t dropped;
    int status = -1;
    const pid_t pid = fork();

    if (pid) {
        ok(waitpid(pid, &status, 0) == pid && status == 0,
           "an event without a thread key is counted as dropped");
        return;
    }
    while (!pthread_key_create(&key, NULL))
        ;
    events = g_array_new(FALSE, FALSE, sizeof(event_t));
    dscomm_priv_events_begin(&owner);
    event_add(&event);
    dscomm_priv_event_mark(30);
    dropped = dscomm_priv_events_copy(&owner, events);
    _exit(dropped == 1 && !events->len ? 0 : 1);
}

int main(void)
{
    no_keys();
    threads();
    waits();
    return tap_done();
}
