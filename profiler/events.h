/* SPDX-License-Identifier: BSD-3-Clause */
/* The last events of each thread, for traces and for finding stragglers. A
 * thread writes to a ring of its own, without locks or locked instructions, and
 * overwrites its oldest events. Rings are memory of the process: they are never
 * freed, a ring of a thread that has ended goes to another one, and one
 * profiler uses them at a time. */
#ifndef PROFILER_EVENTS_H
#define PROFILER_EVENTS_H

#include <dscomm/dscomm.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RING_EVENTS 65536 /* of a thread that are kept; power of two */
#define RINGS 16 /* threads that record at a time */
#define THREADS 1024 /* that are told apart; later ones share a number */
#define THREAD_NAME_MAX 16

/* The kinds of events. Each is a row of the table in chrome.c. */
typedef enum {
    EVENT_OPERATION, /* from begin to completion */
    EVENT_WAIT, /* for the work of an operation */
    EVENT_RANGE, /* of the program */
    EVENT_KINDS
} event_kind_t;

/* The phases of which an event has the time; the rest is DSCOMM_PHASE_OTHER. */
#define EVENT_PHASES (DSCOMM_PHASE_COUNT - 1)

typedef struct {
    union { /* when it began */
        int64_t begin_ticks; /* in a ring: of lib/base/ticks.h */
        int64_t begin_ns; /* in a trace: of the monotonic clock */
    };
    union {
        int64_t end_ticks;
        int64_t end_ns;
    };
    uint64_t sequence, bytes; /* as in dscomm_op_info_t */
    int32_t op, peer, tag; /* the same; peer: root or peer */
    uint16_t group; /* its place in the table of groups; 0 for a range */
    uint16_t text; /* number of the call site, or of the range's name */
    int16_t status; /* dscomm_status_t */
    uint16_t thread; /* number of the thread that has recorded it */
    uint8_t kind; /* event_kind_t */
    uint8_t coll, dtype;
    uint8_t is_async; /* the operation has a work */
    uint8_t has_phases;
    /* The parts of the phases in the event's time, in 1/65535: that of
     * dscomm_phase_t i + 1 has 16 bits from bit 16 * i on. */
    uint64_t phases;
} event_t;

_Static_assert(EVENT_PHASES == 4, "a word holds four");

static inline uint16_t event_phase(const event_t *event, int i)
{
    return (uint16_t)(event->phases >> 16 * i);
}

/* An event in a ring: words that hold, lowest bits first,
 *
 *     0 to 3  begin_ticks, end_ticks, sequence, bytes
 *     4       op, peer
 *     5       tag, group, text
 *     6       phases
 *     7       status, thread, kind, coll, dtype, is_async and 2 * has_phases
 */
#define EVENT_WORDS 8

typedef struct {
    uint64_t word[EVENT_WORDS];
} event_words_t;

_Static_assert(sizeof(event_words_t) == 64,
               "the number that profiler.h states");

static inline event_words_t event_pack(const event_t *event)
{
    return (event_words_t){{
        (uint64_t)event->begin_ticks,
        (uint64_t)event->end_ticks,
        event->sequence,
        event->bytes,
        (uint32_t)event->op | (uint64_t)(uint32_t)event->peer << 32,
        (uint32_t)event->tag | (uint64_t)event->group << 32 |
            (uint64_t)event->text << 48,
        event->phases,
        (uint16_t)event->status | (uint64_t)event->kind << 32 |
            (uint64_t)event->coll << 40 | (uint64_t)event->dtype << 48 |
            (uint64_t)event->is_async << 56 | (uint64_t)event->has_phases << 57,
    }};
}

static inline event_t event_unpack(const event_words_t *words)
{
    const uint64_t *word = words->word;

    return (event_t){
        .begin_ticks = (int64_t)word[0],
        .end_ticks = (int64_t)word[1],
        .sequence = word[2],
        .bytes = word[3],
        .op = (int32_t)word[4],
        .peer = (int32_t)(word[4] >> 32),
        .tag = (int32_t)word[5],
        .group = (uint16_t)(word[5] >> 32),
        .text = (uint16_t)(word[5] >> 48),
        .phases = word[6],
        .status = (int16_t)word[7],
        .thread = (uint16_t)(word[7] >> 16),
        .kind = (uint8_t)(word[7] >> 32),
        .coll = (uint8_t)(word[7] >> 40),
        .dtype = (uint8_t)(word[7] >> 48),
        .is_async = word[7] >> 56 & 1,
        .has_phases = word[7] >> 57 & 1,
    };
}

typedef struct {
    int tid;
    char name[THREAD_NAME_MAX];
} event_thread_t;

/* Gives the rings to owner, with no events. */
void dscomm_priv_events_begin(const void *owner);
/* Forgets all events, if they are owner's. */
void dscomm_priv_events_forget(const void *owner);

extern const void *_Atomic dscomm_priv_events_owner
    __attribute__((visibility("hidden")));

/* True if the rings are owner's. */
static inline bool events_are_of(const void *owner)
{
    return atomic_load_explicit(&dscomm_priv_events_owner,
                                memory_order_relaxed) == owner;
}

/* Adds an event of this thread; the caller has asked whose the rings are. A
 * wait, of which only the sum of times is known, begins when the thread's
 * previous event has ended, or later. */
void dscomm_priv_event_put(const event_words_t *event, bool is_wait);

/* The same, whatever the event's member thread says. Inline, so that the words
 * are made in registers. */
static inline void event_add(const event_t *event)
{
    const event_words_t words = event_pack(event);

    dscomm_priv_event_put(&words, event->kind == EVENT_WAIT);
}

/* Notes that something else has happened now in this thread: no later wait
 * begins before. */
void dscomm_priv_event_mark(int64_t now_ticks);

/* Appends the events of owner to events, with times in ticks, thread by thread,
 * and returns the number of those that were overwritten or found no ring. Other
 * threads may add events at the same time. */
uint64_t dscomm_priv_events_copy(const void *owner, GArray *events);

/* The thread of a number; false if there is none. */
bool dscomm_priv_event_thread(unsigned number, event_thread_t *ret_thread);

#endif
