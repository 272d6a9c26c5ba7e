/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of ranks, as parts of a profile, and what follows from all of
 * them. */
#ifndef PROFILER_TRACE_H
#define PROFILER_TRACE_H

#include "profiler/clocks.h"
#include "profiler/events.h"
#include "profiler/profile.h"
#include "profiler/sink.h"

/* A group of a rank. Texts are those of the profile, so that equal ones have
 * equal addresses. */
typedef struct {
    const char *id, *name;
    int size, rank; /* of this process in it */
} trace_group_t;

/* An event's relations to those of other ranks. */
typedef struct {
    uint32_t flow; /* number of the arrow that passes; 0: none */
    enum { FLOW_BEGIN, FLOW_STEP, FLOW_END } step;
    int waited_for; /* index of the rank that came last; -1: none */
    int64_t held_ns; /* how long the operation ran before that one came */
} trace_link_t;

/* The events of one rank, in the order in which they began; of those that began
 * at the same time, the longest first. Their times are those of rank 0's clock,
 * by the rank's estimate. */
typedef struct {
    int rank; /* in the world; -1: not known */
    int pid;
    const char *host;
    /* The last offset of rank 0's clock to the rank's, and its error; -1: it is
     * not known */
    int64_t offset_ns, error_ns;
    uint64_t dropped; /* events that are missing */
    GArray *groups; /* trace_group_t, by event_t.group */
    GPtrArray *texts; /* const char *, by event_t.text */
    GArray *threads; /* event_thread_t, by event_t.thread */
    GArray *events; /* event_t */
    GArray *links; /* trace_link_t, one for each event */
} trace_t;

/* Adds a trace without events to profile, which owns it. */
trace_t *dscomm_priv_trace_add(dscomm_profile_t *profile);

/* Adds the events of profiler, if it keeps some. */
void dscomm_priv_trace_take(dscomm_profile_t *profile,
                            const dscomm_profiler_t *profiler);

/* Sets the times of all events to those of rank 0's clock. */
void dscomm_priv_trace_shift(trace_t *trace, const clocks_t *clocks);

static inline const event_t *trace_event(const trace_t *trace, guint index)
{
    return &g_array_index(trace->events, event_t, index);
}

static inline trace_link_t *trace_link(const trace_t *trace, guint index)
{
    return &g_array_index(trace->links, trace_link_t, index);
}

static inline const trace_t *profile_trace(const dscomm_profile_t *profile,
                                           guint index)
{
    return g_ptr_array_index(profile->traces, index);
}

/* Matches the events of all ranks: fills in the links, arrivals and stragglers
 * of profile. */
void dscomm_priv_trace_match(dscomm_profile_t *profile);

/* Writes all events in the format of Chrome's trace viewer. */
void dscomm_priv_write_trace(const dscomm_profile_t *profile,
                             profile_sink_t *sink);

#endif
