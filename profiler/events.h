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

typedef struct {
    int64_t begin_ns, end_ns; /* of the monotonic clock */
    uint64_t sequence, bytes; /* as in dscomm_op_info_t */
    int32_t op, peer, tag; /* the same; peer: root or peer */
    uint16_t group; /* its place in the table of groups; 0 for a range */
    uint16_t text; /* number of the call site, or of the range's name */
    int16_t status; /* dscomm_status_t */
    uint16_t thread; /* number of the thread that has recorded it */
    uint8_t kind; /* event_kind_t */
    uint8_t coll, dtype;
    uint8_t is_async; /* the operation has a work */
} event_t;

typedef struct {
    int tid;
    char name[THREAD_NAME_MAX];
} event_thread_t;

/* Gives the rings to owner, with no events. */
void dscomm_priv_events_begin(const void *owner);
/* Forgets all events. */
void dscomm_priv_events_forget(void);

/* Adds an event of this thread, whatever its member thread says. A wait, of
 * which only the sum of times is known, begins when the thread's previous event
 * has ended, or later. */
void dscomm_priv_event_add(const event_t *event);
/* Notes that something else has happened now in this thread: no later wait
 * begins before. */
void dscomm_priv_event_mark(int64_t now);

/* Appends the events of owner to events, thread by thread, and returns the
 * number of those that were overwritten or found no ring. Other threads may add
 * events at the same time. */
uint64_t dscomm_priv_events_copy(const void *owner, GArray *events);

/* The thread of a number; false if there is none. */
bool dscomm_priv_event_thread(unsigned number, event_thread_t *ret_thread);

#endif
