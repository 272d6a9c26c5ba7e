/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of this rank, as a trace. */
#include "config.h"

#include "profiler/trace.h"

#include "profiler/profiler.h"
#include "profiler/text.h"

#include <string.h>
#include <unistd.h>

static void trace_free(gpointer data)
{
    trace_t *trace = data;

    g_array_unref(trace->groups);
    g_ptr_array_unref(trace->texts);
    g_array_unref(trace->threads);
    g_array_unref(trace->events);
    g_array_unref(trace->links);
    g_free(trace);
}

trace_t *dscomm_priv_trace_add(dscomm_profile_t *profile)
{
    trace_t *trace = g_new0(trace_t, 1);

    if (!profile->traces->len)
        g_ptr_array_set_free_func(profile->traces, trace_free);
    trace->rank = -1;
    trace->host = "";
    trace->groups = g_array_new(FALSE, FALSE, sizeof(trace_group_t));
    trace->texts = g_ptr_array_new();
    trace->threads = g_array_new(FALSE, FALSE, sizeof(event_thread_t));
    trace->events = g_array_new(FALSE, FALSE, sizeof(event_t));
    trace->links = g_array_new(FALSE, TRUE, sizeof(trace_link_t));
    g_ptr_array_add(profile->traces, trace);
    return trace;
}

/* Groups of two worlds of the process may have the same id; the later one gets
 * a number. */
static const char *group_id(dscomm_profile_t *profile, const table_t *table,
                            const group_t *group)
{
    const uint64_t number = atomic_load(&group->number);
    unsigned before = 0;
    const char *id;
    char *text;

    for (int i = 0; i < TABLE_GROUPS; i++) {
        const group_t *other = &table->groups[i];

        before += group_is_set(other) && atomic_load(&other->number) < number &&
                  !strcmp(other->id, group->id);
    }
    if (!before)
        return g_string_chunk_insert_const(profile->texts, group->id);
    text = g_strdup_printf("%s~%u", group->id, before + 1);
    id = g_string_chunk_insert_const(profile->texts, text);
    g_free(text);
    return id;
}

/* The groups that events name, at their places; others stay empty. */
static void groups_take(dscomm_profile_t *profile, const table_t *table,
                        trace_t *trace)
{
    unsigned count = 1;

    for (unsigned i = 0; i < TABLE_GROUPS; i++)
        if (group_is_set(&table->groups[i]))
            count = i + 1;
    for (unsigned i = 0; i < count; i++) {
        const group_t *group = &table->groups[i];
        trace_group_t taken = {"", "", 0, -1};

        if (group_is_set(group)) {
            taken.id = group_id(profile, table, group);
            taken.name =
                g_string_chunk_insert_const(profile->texts, group->name);
            taken.size = group->size;
            taken.rank = group->rank;
            trace->rank = group->world_rank;
        }
        g_array_append_val(trace->groups, taken);
    }
}

static void texts_take(dscomm_profile_t *profile, trace_t *trace)
{
    unsigned count = 1, threads = 0;

    for (guint i = 0; i < trace->events->len; i++) {
        count = MAX(count, trace_event(trace, i)->text + 1u);
        threads = MAX(threads, trace_event(trace, i)->thread + 1u);
    }
    for (unsigned i = 0; i < count; i++)
        g_ptr_array_add(trace->texts, g_string_chunk_insert_const(
                                          profile->texts, dscomm_priv_text(i)));
    for (unsigned i = 0; i < threads; i++) {
        event_thread_t thread = {0};

        dscomm_priv_event_thread(i, &thread);
        g_array_append_val(trace->threads, thread);
    }
}

static gint event_compare(gconstpointer a, gconstpointer b)
{
    const event_t *x = a, *y = b;

    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* Sets the times of all events, in ticks, to those of the monotonic clock. */
static void ticks_convert(trace_t *trace, const dscomm_moment_t *from)
{
    const dscomm_moment_t now = dscomm_priv_profiler_moment();

    for (guint i = 0; i < trace->events->len; i++) {
        event_t *event = &g_array_index(trace->events, event_t, i);

        event->begin_ns =
            dscomm_priv_ticks_to_ns((uint64_t)event->begin_ticks, from, &now);
        event->end_ns = MAX(
            event->begin_ns,
            dscomm_priv_ticks_to_ns((uint64_t)event->end_ticks, from, &now));
    }
}

void dscomm_priv_trace_take(dscomm_profile_t *profile,
                            const dscomm_profiler_t *profiler)
{
    trace_t *trace;

    if (!profiler->trace)
        return;
    trace = dscomm_priv_trace_add(profile);
    trace->dropped = dscomm_priv_events_copy(profiler, trace->events);
    ticks_convert(trace, &profiler->began);
    trace->pid = (int)getpid();
    trace->host =
        g_string_chunk_insert_const(profile->texts, g_get_host_name());
    g_array_sort(trace->events, event_compare);
    groups_take(profile, &profiler->table, trace);
    texts_take(profile, trace);
    if (profiler->rank >= 0)
        trace->rank = profiler->rank;
}

void dscomm_priv_trace_shift(trace_t *trace, const clocks_t *clocks)
{
    for (guint i = 0; i < trace->events->len; i++) {
        event_t *event = &g_array_index(trace->events, event_t, i);

        event->begin_ns = dscomm_priv_clocks_apply(clocks, event->begin_ns);
        event->end_ns = MAX(event->begin_ns,
                            dscomm_priv_clocks_apply(clocks, event->end_ns));
    }
    trace->error_ns = dscomm_priv_clocks_error(clocks);
    if (!clocks->is_shared && clocks->count)
        trace->offset_ns = clocks->points[clocks->count - 1].offset_ns;
}
