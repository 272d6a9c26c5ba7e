/* SPDX-License-Identifier: BSD-3-Clause */
/* See events.h. */
#include "config.h"

#include "profiler/events.h"
#include "profiler/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_LINE 64

/* words by which the ring is brought into the cache ahead of its use */
#define AHEAD (3 * CACHE_LINE / sizeof(uint64_t))

typedef _Atomic uint64_t word_t;

/* A ring. Its thread may overwrite what another one reads: who has read events
 * up to head reads head again, and leaves out those that are a ring behind. */
typedef struct {
    word_t *words; /* RING_EVENTS times EVENT_WORDS; NULL: not made yet */
    _Atomic uint64_t head; /* events ever written */
    _Atomic uint64_t first; /* index of the first one of the owner */
    bool taken; /* by a thread that lives */
    uint16_t thread; /* its number */
    int64_t mark_ticks; /* of the thread: where its previous event ended */
} ring_t;

/* The library's lock protects taking and giving back rings, and the owner. */
static ring_t rings[RINGS];
static event_thread_t threads[THREADS];
static unsigned thread_count;
const void *_Atomic dscomm_priv_events_owner;
static _Atomic uint64_t lost; /* events of threads that have no ring */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor gives the ring back */
static bool has_key; /* false: the process has no more keys, so no rings */

/* The ring of this thread; NULL: it has none yet, &none: it gets none. */
static ring_t none;
static _Thread_local ring_t *own;

static void ring_give_back(void *arg)
{
    ring_t *ring = arg;

    own = &none;
    dscomm_priv_profiler_lock();
    ring->taken = false;
    dscomm_priv_profiler_unlock();
}

static void key_make(void)
{
    has_key = pthread_key_create(&key, ring_give_back) == 0;
}

/* Numbers this thread. Called with the lock. */
static uint16_t thread_add(void)
{
    const unsigned number = MIN(thread_count, THREADS - 1);
    event_thread_t *thread = &threads[number];

    thread->tid = (int)gettid();
    if (pthread_getname_np(pthread_self(), thread->name, THREAD_NAME_MAX))
        *thread->name = '\0';
    thread_count = number + 1;
    return (uint16_t)number;
}

/* Touches all of its memory, so that events cause no page faults. */
static bool ring_prepare(ring_t *ring)
{
    const size_t size = RING_EVENTS * (EVENT_WORDS * sizeof(uint64_t));

    if (!ring->words)
        ring->words = aligned_alloc(CACHE_LINE, size);
    if (ring->words)
        memset((void *)ring->words, 0, size);
    return ring->words != NULL;
}

/* Called with the lock. */
static ring_t *ring_find(void)
{
    for (int i = 0; i < RINGS; i++)
        if (!rings[i].taken && (rings[i].words || ring_prepare(&rings[i])))
            return &rings[i];
    return NULL;
}

/* Gives this thread a ring. */
static ring_t *ring_take(void)
{
    ring_t *ring;

    pthread_once(&key_once, key_make);
    dscomm_priv_profiler_lock();
    ring = has_key ? ring_find() : NULL;
    if (ring) {
        ring->taken = true;
        ring->thread = thread_add();
        ring->mark_ticks = 0;
    }
    dscomm_priv_profiler_unlock();
    own = ring ? ring : &none;
    if (ring)
        pthread_setspecific(key, ring);
    return own;
}

static ring_t *ring_own(void)
{
    ring_t *ring = own;

    return G_LIKELY(ring) ? ring : ring_take();
}

static inline void word_put(word_t *words, int index, uint64_t value)
{
    atomic_store_explicit(&words[index], value, memory_order_relaxed);
}

void dscomm_priv_event_put(const event_words_t *event, bool is_wait)
{
    ring_t *ring = ring_own();
    int64_t begin = (int64_t)event->word[0];
    const int64_t end = (int64_t)event->word[1];
    uint64_t head;
    word_t *to;

    if (G_UNLIKELY(!ring->words)) {
        atomic_fetch_add(&lost, 1);
        return;
    }
    if (is_wait)
        begin = CLAMP(ring->mark_ticks, begin, end);
    head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    /* Who sees a word of this event then sees the head of all before it. */
    atomic_thread_fence(memory_order_release);
    to = &ring->words[head % RING_EVENTS * EVENT_WORDS];
    word_put(to, 0, (uint64_t)begin);
    for (int i = 1; i < EVENT_WORDS - 1; i++)
        word_put(to, i, event->word[i]);
    word_put(to, EVENT_WORDS - 1,
             event->word[EVENT_WORDS - 1] | (uint64_t)ring->thread << 16);
    __builtin_prefetch(to + AHEAD, 1);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    ring->mark_ticks = end;
}

void dscomm_priv_event_mark(int64_t now_ticks)
{
    ring_t *ring = ring_own();

    if (ring->words)
        ring->mark_ticks = now_ticks;
}

/* Called with the lock. */
static void rings_empty(void)
{
    for (int i = 0; i < RINGS; i++)
        atomic_store(&rings[i].first, atomic_load(&rings[i].head));
    atomic_store(&lost, 0);
}

void dscomm_priv_events_begin(const void *new_owner)
{
    dscomm_priv_profiler_lock();
    atomic_store(&dscomm_priv_events_owner, new_owner);
    rings_empty();
    dscomm_priv_profiler_unlock();
}

void dscomm_priv_events_forget(const void *of)
{
    dscomm_priv_profiler_lock();
    if (events_are_of(of))
        rings_empty();
    dscomm_priv_profiler_unlock();
}

static event_t ring_read(const ring_t *ring, uint64_t index)
{
    const word_t *from = &ring->words[index % RING_EVENTS * EVENT_WORDS];
    event_words_t words;

    for (size_t i = 0; i < EVENT_WORDS; i++)
        words.word[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
    return event_unpack(&words);
}

/* The oldest event before head that is complete: the one before it may be
 * being overwritten. */
static uint64_t ring_oldest(uint64_t head, uint64_t first)
{
    return head >= first + RING_EVENTS ? head - RING_EVENTS + 1 : first;
}

/* Returns the number of events that are not there any more. */
static uint64_t ring_copy(const ring_t *ring, GArray *events)
{
    const uint64_t first = atomic_load(&ring->first);
    const uint64_t head =
        atomic_load_explicit(&ring->head, memory_order_acquire);
    const uint64_t begin = ring_oldest(head, first);
    const guint length = events->len;
    uint64_t oldest;

    for (uint64_t i = begin; i < head; i++) {
        const event_t event = ring_read(ring, i);

        g_array_append_val(events, event);
    }
    atomic_thread_fence(memory_order_acquire);
    oldest = ring_oldest(
        atomic_load_explicit(&ring->head, memory_order_relaxed), first);
    if (oldest > begin)
        g_array_remove_range(
            events, length,
            (guint)MIN(oldest - begin, (uint64_t)(events->len - length)));
    return oldest - first;
}

uint64_t dscomm_priv_events_copy(const void *of, GArray *events)
{
    uint64_t dropped = 0;

    dscomm_priv_profiler_lock();
    if (events_are_of(of)) {
        dropped = atomic_load(&lost);
        for (int i = 0; i < RINGS; i++)
            if (rings[i].words)
                dropped += ring_copy(&rings[i], events);
    }
    dscomm_priv_profiler_unlock();
    return dropped;
}

bool dscomm_priv_event_thread(unsigned number, event_thread_t *ret_thread)
{
    bool known;

    dscomm_priv_profiler_lock();
    known = number < thread_count;
    if (known)
        *ret_thread = threads[number];
    dscomm_priv_profiler_unlock();
    return known;
}
