/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of several ranks that belong together: those of one collective,
 * by the id of its group and its sequence, and the send and the receive of one
 * message, by group, ranks, tag and order. What has no counterpart, because a
 * rank is missing, has overwritten it, or does something else, stays alone. */
#include "config.h"

#include "profiler/trace.h"

#include <string.h>

/* An operation of a rank. Its key is id, which is the same text for equal ids,
 * and the next four; the others are its place in the order of one key. */
typedef struct {
    const char *id;
    uint64_t sequence; /* of a collective; 0 for a message */
    int from, to, tag; /* of a message, as ranks of the group */
    int is_receive;
    uint64_t number; /* of a message on its rank */
    int64_t begin_ns;
    guint trace, event;
} ref_t;

#define ORDER(a_, b_) (((a_) > (b_)) - ((a_) < (b_)))

static int key_compare(const ref_t *x, const ref_t *y)
{
    int order = ORDER((uintptr_t)x->id, (uintptr_t)y->id);

    if (!order)
        order = ORDER(x->sequence, y->sequence);
    if (!order)
        order = ORDER(x->from, y->from);
    if (!order)
        order = ORDER(x->to, y->to);
    return order ? order : ORDER(x->tag, y->tag);
}

static gint ref_compare(gconstpointer a, gconstpointer b)
{
    const ref_t *x = a, *y = b;
    int order = key_compare(x, y);

    if (!order)
        order = ORDER(x->is_receive, y->is_receive);
    if (!order)
        order = ORDER(x->number, y->number);
    if (!order)
        order = ORDER(x->begin_ns, y->begin_ns);
    return order ? order : ORDER(x->trace, y->trace);
}

static bool event_is_message(const event_t *event)
{
    return event->coll == DSCOMM_COLL_SEND || event->coll == DSCOMM_COLL_RECV;
}

/* Fills in the key of an operation. False: it has none, because it did not
 * succeed or names no peer or tag. */
static bool ref_fill(const trace_t *trace, const event_t *event, ref_t *ref)
{
    const trace_group_t *group =
        &g_array_index(trace->groups, trace_group_t, event->group);

    ref->id = group->id;
    ref->begin_ns = event->begin_ns;
    if (event->kind != EVENT_OPERATION || event->status != DSCOMM_OK)
        return false;
    if (!event_is_message(event)) {
        ref->sequence = event->sequence;
        return group->size > 1;
    }
    ref->is_receive = event->coll == DSCOMM_COLL_RECV;
    ref->from = ref->is_receive ? event->peer : group->rank;
    ref->to = ref->is_receive ? group->rank : event->peer;
    ref->tag = event->tag;
    ref->number = event->sequence;
    return event->peer >= 0 && event->tag >= 0;
}

/* The operations that have a key, equal keys side by side. */
static GArray *refs_make(const dscomm_profile_t *profile, bool messages)
{
    GArray *refs = g_array_new(FALSE, FALSE, sizeof(ref_t));

    for (guint t = 0; t < profile->traces->len; t++) {
        const trace_t *trace = profile_trace(profile, t);

        for (guint e = 0; e < trace->events->len; e++) {
            const event_t *event = trace_event(trace, e);
            ref_t ref = {.trace = t, .event = e};

            if (event_is_message(event) == messages &&
                ref_fill(trace, event, &ref))
                g_array_append_val(refs, ref);
        }
    }
    g_array_sort(refs, ref_compare);
    return refs;
}

/* The number of refs from first on that have its key. */
static guint run_length(const GArray *refs, guint first)
{
    const ref_t *begin = &g_array_index(refs, ref_t, first);
    guint end = first + 1;

    while (end < refs->len &&
           !key_compare(begin, &g_array_index(refs, ref_t, end)))
        end++;
    return end - first;
}

static const trace_t *ref_trace(const dscomm_profile_t *profile,
                                const ref_t *ref)
{
    return profile_trace(profile, ref->trace);
}

static const event_t *ref_event(const dscomm_profile_t *profile,
                                const ref_t *ref)
{
    return trace_event(ref_trace(profile, ref), ref->event);
}

static trace_link_t *ref_link(const dscomm_profile_t *profile, const ref_t *ref)
{
    return trace_link(ref_trace(profile, ref), ref->event);
}

static dscomm_profile_straggler_t *ref_row(const dscomm_profile_t *profile,
                                           const ref_t *ref)
{
    return &g_array_index(profile->stragglers, dscomm_profile_straggler_t,
                          ref->trace);
}

/* Whether these are one collective: no rank has two, and all call the same.
 * seen has a number for each rank, and stamp one that no other run has. */
static bool run_is_collective(const dscomm_profile_t *profile,
                              const ref_t *refs, guint count, guint *seen,
                              guint stamp)
{
    for (guint i = 0; i < count; i++) {
        if (ref_event(profile, &refs[i])->coll !=
                ref_event(profile, refs)->coll ||
            seen[refs[i].trace] == stamp)
            return false;
        seen[refs[i].trace] = stamp;
    }
    return count > 1;
}

/* An arrow through the operations in the order in which they began; so it ends
 * at the one for which the others have waited. */
static void run_link(const dscomm_profile_t *profile, const ref_t *refs,
                     guint count, uint32_t flow)
{
    for (guint i = 0; i < count; i++) {
        trace_link_t *link = ref_link(profile, &refs[i]);

        link->flow = flow;
        link->step = i == 0           ? FLOW_BEGIN
                     : i == count - 1 ? FLOW_END
                                      : FLOW_STEP;
    }
}

static void time_add(int64_t *sum, int64_t ns)
{
    *sum = profile_time_sum(*sum, ns);
}

/* The most by which the difference of two times may be wrong; INT64_MAX if the
 * clocks were not compared. */
static int64_t pair_error(const dscomm_profile_t *profile, const ref_t *x,
                          const ref_t *y)
{
    const int64_t errors[] = {ref_trace(profile, x)->error_ns,
                              ref_trace(profile, y)->error_ns};

    if (x->trace == y->trace)
        return 0;
    if (errors[0] < 0 || errors[1] < 0)
        return INT64_MAX;
    return profile_time_sum(errors[0], errors[1]);
}

/* How long an operation ran before the last rank came; 0 if that is no more
 * than the clocks may be wrong. */
static int64_t ref_held(const dscomm_profile_t *profile, const ref_t *ref,
                        const ref_t *last)
{
    const int64_t until = MIN(ref_event(profile, ref)->end_ns,
                              ref_event(profile, last)->begin_ns);
    const int64_t held = until - ref_event(profile, ref)->begin_ns;

    return held > pair_error(profile, ref, last) ? held : 0;
}

static int64_t ref_time(const dscomm_profile_t *profile, const ref_t *ref)
{
    return ref_event(profile, ref)->end_ns - ref_event(profile, ref)->begin_ns;
}

/* The entry that has counted a collective; NULL: it had no room. */
static profile_entry_t *ref_entry(const dscomm_profile_t *profile,
                                  const ref_t *ref)
{
    const trace_t *trace = ref_trace(profile, ref);
    const event_t *event = ref_event(profile, ref);
    const trace_group_t *group =
        &g_array_index(trace->groups, trace_group_t, event->group);
    profile_entry_t key = {
        .kind = ROW_SIZE,
        .coll = event->coll,
        .group_size = group->size,
        .op = dscomm_coll_name((dscomm_coll_t)event->coll),
        .group = group->name,
        .site = g_ptr_array_index(trace->texts, event->text),
        .value = event->bytes,
    };
    profile_entry_t *entry = g_hash_table_lookup(profile->entries, &key);

    if (entry)
        return entry;
    key.kind = ROW_CLASS;
    key.value = size_class(event->bytes);
    return g_hash_table_lookup(profile->entries, &key);
}

/* Compares the times of a collective with that of the fastest rank. */
static void run_compare(const dscomm_profile_t *profile, const ref_t *refs,
                        guint count)
{
    int64_t fastest = INT64_MAX;

    for (guint i = 0; i < count; i++)
        fastest = MIN(fastest, ref_time(profile, &refs[i]));
    for (guint i = 0; i < count; i++) {
        profile_entry_t *entry = ref_entry(profile, &refs[i]);

        if (!entry)
            continue;
        entry->compared++;
        time_add(&entry->fastest_ns, fastest);
        time_add(&entry->lag_ns, ref_time(profile, &refs[i]) - fastest);
    }
}

/* The number of ranks that have each group, by its id. */
static GHashTable *groups_count(const dscomm_profile_t *profile)
{
    GHashTable *counts = g_hash_table_new(NULL, NULL);

    for (guint t = 0; t < profile->traces->len; t++) {
        const GArray *groups = profile_trace(profile, t)->groups;

        for (guint g = 0; g < groups->len; g++) {
            gpointer id = (gpointer)g_array_index(groups, trace_group_t, g).id;
            const guint before =
                GPOINTER_TO_UINT(g_hash_table_lookup(counts, id));

            g_hash_table_insert(counts, id, GUINT_TO_POINTER(before + 1));
        }
    }
    return counts;
}

/* Whether all ranks of the group are among count ones, except for those that
 * are missing in the profile. */
static bool run_is_whole(const dscomm_profile_t *profile, const ref_t *refs,
                         guint count, GHashTable *groups)
{
    const event_t *event = ref_event(profile, refs);
    const trace_t *trace = ref_trace(profile, refs);
    const int size =
        g_array_index(trace->groups, trace_group_t, event->group).size;
    const int missing = MAX(profile->world_size - profile->ranks, 0);

    return (int)count >= size - missing &&
           count >= GPOINTER_TO_UINT(g_hash_table_lookup(groups, refs->id));
}

/* Adds a collective that is whole to the rows of its ranks. */
static void run_judge(dscomm_profile_t *profile, const ref_t *refs, guint count)
{
    const ref_t *last = &refs[count - 1];
    const event_t *event = ref_event(profile, last);
    const trace_t *trace = ref_trace(profile, last);
    dscomm_profile_straggler_t *late = ref_row(profile, last);
    dscomm_profile_arrival_t arrival = {
        .size = sizeof arrival,
        .op = dscomm_coll_name((dscomm_coll_t)event->coll),
        .group = g_array_index(trace->groups, trace_group_t, event->group).name,
        .group_id = last->id,
        .sequence = event->sequence,
        .bytes = event->bytes,
        .last = trace->rank,
    };

    for (guint i = 0; i < count; i++) {
        const int64_t held = ref_held(profile, &refs[i], last);
        dscomm_profile_straggler_t *row = ref_row(profile, &refs[i]);

        ref_link(profile, &refs[i])->held_ns = held;
        ref_link(profile, &refs[i])->waited_for = held ? (int)last->trace : -1;
        row->collectives++;
        time_add(&row->waited_ns, held);
        time_add(&arrival.waited_ns, held);
        arrival.late_ns = MAX(arrival.late_ns, held);
    }
    g_array_append_val(profile->arrivals, arrival);
    if (!arrival.late_ns)
        return;
    late->last++;
    time_add(&late->late_ns, arrival.late_ns);
    late->late_most_ns = MAX(late->late_most_ns, arrival.late_ns);
    time_add(&late->others_waited_ns, arrival.waited_ns);
}

static uint32_t collectives_match(dscomm_profile_t *profile)
{
    GArray *refs = refs_make(profile, false);
    GHashTable *groups = groups_count(profile);
    guint *seen = g_new0(guint, profile->traces->len);
    uint32_t flows = 0;
    guint count;

    for (guint i = 0; i < refs->len; i += count) {
        const ref_t *run = &g_array_index(refs, ref_t, i);
        bool together;

        count = run_length(refs, i);
        together = run_is_collective(profile, run, count, seen, i + 1);
        if (together)
            run_link(profile, run, count, ++flows);
        if (together && run_is_whole(profile, run, count, groups)) {
            run_judge(profile, run, count);
            run_compare(profile, run, count);
        } else {
            profile->unmatched += profile->world_size > 1;
        }
    }
    g_array_unref(refs);
    g_hash_table_unref(groups);
    g_free(seen);
    return flows;
}

/* Whether these can be one message: the sizes agree, and it is not received
 * before it is sent by more than the clocks may be wrong. */
static bool pair_is_message(const dscomm_profile_t *profile, const ref_t *send,
                            const ref_t *receive)
{
    const event_t *sent = ref_event(profile, send);
    const event_t *received = ref_event(profile, receive);

    return sent->bytes == received->bytes &&
           sent->begin_ns - received->end_ns <=
               pair_error(profile, send, receive);
}

/* Matches the messages of one channel: sends, then receives. If a rank has lost
 * events, their last ones are still there, and are matched from the end.
 * Otherwise different numbers mean that messages are in flight or were
 * cancelled, and none is matched. Returns the number of arrows. */
static uint32_t channel_match(const dscomm_profile_t *profile,
                              const ref_t *refs, guint count, uint32_t flow)
{
    const uint32_t before = flow;
    guint sends = 0, skip_sends = 0, skip_receives = 0, receives;

    while (sends < count && !refs[sends].is_receive)
        sends++;
    receives = count - sends;
    if (!sends || !receives)
        return 0;
    if (sends != receives && !ref_trace(profile, &refs[0])->dropped &&
        !ref_trace(profile, &refs[sends])->dropped)
        return 0;
    skip_sends = sends - MIN(sends, receives);
    skip_receives = receives - MIN(sends, receives);
    for (guint i = 0; i < MIN(sends, receives); i++) {
        const ref_t *pair[] = {&refs[skip_sends + i],
                               &refs[sends + skip_receives + i]};

        if (!pair_is_message(profile, pair[0], pair[1]))
            continue;
        flow++;
        *ref_link(profile, pair[0]) =
            (trace_link_t){.flow = flow, .step = FLOW_BEGIN, .waited_for = -1};
        *ref_link(profile, pair[1]) =
            (trace_link_t){.flow = flow, .step = FLOW_END, .waited_for = -1};
    }
    return flow - before;
}

static void messages_match(const dscomm_profile_t *profile, uint32_t flow)
{
    GArray *refs = refs_make(profile, true);
    guint count;

    for (guint i = 0; i < refs->len; i += count) {
        count = run_length(refs, i);
        flow +=
            channel_match(profile, &g_array_index(refs, ref_t, i), count, flow);
    }
    g_array_unref(refs);
}

static gint arrival_compare(gconstpointer a, gconstpointer b)
{
    const dscomm_profile_arrival_t *x = a, *y = b;
    int order = ORDER(y->waited_ns, x->waited_ns);

    if (!order)
        order = strcmp(x->group_id, y->group_id);
    return order ? order : ORDER(x->sequence, y->sequence);
}

static gint straggler_compare(gconstpointer a, gconstpointer b)
{
    const dscomm_profile_straggler_t *x = a, *y = b;
    const int order = ORDER(y->others_waited_ns, x->others_waited_ns);

    return order ? order : ORDER(x->rank, y->rank);
}

/* Sets the rank for which each rank has waited longest. */
static void waits_sum(dscomm_profile_t *profile)
{
    const guint ranks = profile->traces->len;
    int64_t *sums = g_new(int64_t, ranks);

    for (guint t = 0; t < ranks; t++) {
        const trace_t *trace = profile_trace(profile, t);
        dscomm_profile_straggler_t *row =
            &g_array_index(profile->stragglers, dscomm_profile_straggler_t, t);
        guint most = 0;

        memset(sums, 0, ranks * sizeof *sums);
        for (guint e = 0; e < trace->links->len; e++)
            if (trace_link(trace, e)->waited_for >= 0)
                time_add(&sums[trace_link(trace, e)->waited_for],
                         trace_link(trace, e)->held_ns);
        for (guint i = 1; i < ranks; i++)
            if (sums[i] > sums[most])
                most = i;
        if (sums[most]) {
            row->waited_for = profile_trace(profile, most)->rank;
            row->waited_for_ns = sums[most];
        }
    }
    g_free(sums);
}

static void rows_begin(dscomm_profile_t *profile)
{
    for (guint t = 0; t < profile->traces->len; t++) {
        const trace_t *trace = profile_trace(profile, t);
        const dscomm_profile_straggler_t row = {
            .size = sizeof row,
            .rank = trace->rank,
            .pid = trace->pid,
            .host = trace->host,
            .waited_for = -1,
        };

        g_array_append_val(profile->stragglers, row);
        g_array_set_size(trace->links, trace->events->len);
        for (guint e = 0; e < trace->links->len; e++)
            trace_link(trace, e)->waited_for = -1;
    }
}

void dscomm_priv_trace_match(dscomm_profile_t *profile)
{
    if (!profile->traces->len)
        return;
    rows_begin(profile);
    messages_match(profile, collectives_match(profile));
    waits_sum(profile);
    g_array_sort(profile->arrivals, arrival_compare);
    g_array_sort(profile->stragglers, straggler_compare);
}
