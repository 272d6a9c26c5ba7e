/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces in the JSON format of Chrome's trace viewer, which Perfetto reads: a
 * process for each rank, with a row for each thread, and rows for works. Times
 * are microseconds since the first event. */
#include "config.h"

#include "profiler/trace.h"

#include <inttypes.h>

/* Rows of works have tids from here on; threads have their numbers. */
#define LANES_FIRST 10000

/* The events of one rank while they are written. */
typedef struct {
    const dscomm_profile_t *profile;
    const trace_t *trace;
    profile_sink_t *sink;
    int64_t origin_ns; /* of all ranks */
    int pid; /* in the file: the rank */
    GPtrArray *groups; /* the members that name a group, as text */
    GPtrArray *open; /* GArray of int64_t for each thread: ends of events */
    GArray *lanes; /* int64_t for each row of works: end of the last one */
} writer_t;

static void put_time(const writer_t *writer, const char *name, int64_t ns)
{
    g_string_append_printf(writer->sink->text, ",\"%s\":%" PRId64 ".%03d", name,
                           ns / 1000, (int)(ns % 1000));
}

static void put_member(const writer_t *writer, const char *name,
                       const char *text)
{
    g_string_append_printf(writer->sink->text, ",\"%s\":", name);
    dscomm_priv_json_text(text, writer->sink->text);
}

static const char *event_text(const writer_t *writer, const event_t *event)
{
    return g_ptr_array_index(writer->trace->texts, event->text);
}

static void put_phase(const writer_t *writer, dscomm_phase_t phase, int64_t ns)
{
    char name[32];

    g_snprintf(name, sizeof name, "%s_us", dscomm_priv_phase_name(phase));
    if (ns > 0)
        put_time(writer, name, ns);
}

/* Writes the times of the phases that there were. */
static void put_phases(const writer_t *writer, const event_t *event)
{
    const int64_t ns = event->end_ns - event->begin_ns;
    int64_t left = ns;

    for (int i = 0; i < EVENT_PHASES; i++) {
        const double part = (double)event_phase(event, i) / UINT16_MAX;
        const int64_t phase = MIN((int64_t)((double)ns * part + 0.5), left);

        put_phase(writer, (dscomm_phase_t)(i + 1), phase);
        left -= phase;
    }
    put_phase(writer, DSCOMM_PHASE_OTHER, left);
}

/* Writes the arguments of an operation or of a wait. */
static void put_operation(const writer_t *writer, const event_t *event,
                          const trace_link_t *link)
{
    const bool message =
        event->coll == DSCOMM_COLL_SEND || event->coll == DSCOMM_COLL_RECV;
    GString *out = writer->sink->text;

    g_string_append_printf(
        out,
        ",\"args\":{\"sequence\":%" PRIu64 "%s,\"bytes\":%" PRIu64
        ",\"dtype\":\"%s\"",
        event->sequence,
        (const char *)g_ptr_array_index(writer->groups, event->group),
        event->bytes, dscomm_dtype_name((dscomm_dtype_t)event->dtype));
    if (event->op >= 0)
        put_member(writer, "op",
                   event->op < DSCOMM_OP_COUNT
                       ? dscomm_op_name((dscomm_op_t)event->op)
                       : "user");
    if (event->peer >= 0)
        g_string_append_printf(out, ",\"%s\":%d", message ? "peer" : "root",
                               event->peer);
    if (message)
        g_string_append_printf(out, ",\"tag\":%d", event->tag);
    put_member(writer, "status",
               dscomm_strerror((dscomm_status_t)event->status));
    if (event->text)
        put_member(writer, "site", event_text(writer, event));
    if (event->has_phases)
        put_phases(writer, event);
    if (link->waited_for >= 0) {
        g_string_append_printf(
            out, ",\"waited_for\":%d",
            profile_trace(writer->profile, (guint)link->waited_for)->rank);
        put_time(writer, "held_us", link->held_ns);
    }
    g_string_append_c(out, '}');
}

/* The kinds of events: how they are named and described. */
static const struct {
    const char *category;
    const char *prefix; /* before the operation's name; NULL: the event's text
                           is its name */
    void (*put_args)(const writer_t *writer, const event_t *event,
                     const trace_link_t *link); /* or NULL */
} kinds[EVENT_KINDS] = {
    [EVENT_OPERATION] = {"operation", "", put_operation},
    [EVENT_WAIT] = {"wait", "wait ", put_operation},
    [EVENT_RANGE] = {"range", NULL, NULL},
};

static void put_name(const writer_t *writer, const event_t *event)
{
    GString *out = writer->sink->text;

    if (kinds[event->kind].prefix)
        g_string_append_printf(out, "\"%s%s\"", kinds[event->kind].prefix,
                               dscomm_coll_name((dscomm_coll_t)event->coll));
    else
        dscomm_priv_json_text(event_text(writer, event), out);
}

/* Writes the arrow of an event: from its begin, to the begin of a collective's
 * next rank, and to the end of a receive. */
static void put_flow(const writer_t *writer, const event_t *event,
                     const trace_link_t *link, int row)
{
    static const char *const steps[] = {
        [FLOW_BEGIN] = "s", [FLOW_STEP] = "t", [FLOW_END] = "f"};
    const int64_t at =
        event->coll == DSCOMM_COLL_RECV ? event->end_ns : event->begin_ns;

    if (!link->flow)
        return;
    g_string_append_printf(
        writer->sink->text,
        ",\n{\"ph\":\"%s\",\"cat\":\"flow\",\"name\":\"%s\",\"id\":%" PRIu32
        ",\"bp\":\"e\",\"pid\":%d,\"tid\":%d",
        steps[link->step],
        event->coll == DSCOMM_COLL_SEND || event->coll == DSCOMM_COLL_RECV
            ? "message"
            : dscomm_coll_name((dscomm_coll_t)event->coll),
        link->flow, writer->pid, row);
    put_time(writer, "ts", at - writer->origin_ns);
    g_string_append_c(writer->sink->text, '}');
}

static void put_event(const writer_t *writer, const event_t *event,
                      const trace_link_t *link, int row)
{
    GString *out = writer->sink->text;

    g_string_append(out, ",\n{\"ph\":\"X\",\"name\":");
    put_name(writer, event);
    g_string_append_printf(out, ",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d",
                           kinds[event->kind].category, writer->pid, row);
    put_time(writer, "ts", event->begin_ns - writer->origin_ns);
    put_time(writer, "dur", event->end_ns - event->begin_ns);
    if (kinds[event->kind].put_args)
        kinds[event->kind].put_args(writer, event, link);
    g_string_append_c(out, '}');
    put_flow(writer, event, link, row);
}

/* The row of an event that may overlap others: the first that is free. */
static int lane_find(const writer_t *writer, const event_t *event)
{
    guint lane = 0;

    while (lane < writer->lanes->len &&
           g_array_index(writer->lanes, int64_t, lane) > event->begin_ns)
        lane++;
    if (lane == writer->lanes->len)
        g_array_append_val(writer->lanes, event->end_ns);
    else
        g_array_index(writer->lanes, int64_t, lane) = event->end_ns;
    return LANES_FIRST + (int)lane;
}

/* The row of the next event to begin: that of its thread, if it lies within or
 * after the earlier ones there; a work has one of its own. */
static int row_find(const writer_t *writer, const event_t *event)
{
    GArray *open = g_ptr_array_index(writer->open, event->thread);

    if (event->kind == EVENT_OPERATION && event->is_async)
        return lane_find(writer, event);
    while (open->len &&
           g_array_index(open, int64_t, open->len - 1) <= event->begin_ns)
        g_array_set_size(open, open->len - 1);
    if (open->len &&
        g_array_index(open, int64_t, open->len - 1) < event->end_ns)
        return lane_find(writer, event);
    g_array_append_val(open, event->end_ns);
    return event->thread;
}

static void put_name_of(const writer_t *writer, const char *what, int row,
                        const char *name)
{
    g_string_append_printf(writer->sink->text,
                           ",\n{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%d,"
                           "\"tid\":%d,\"args\":{\"name\":",
                           what, writer->pid, row);
    dscomm_priv_json_text(name, writer->sink->text);
    g_string_append(writer->sink->text, "}}");
}

/* Names the process, its threads and its rows of works. */
static void put_names(const writer_t *writer)
{
    const trace_t *trace = writer->trace;
    char name[512];

    g_snprintf(name, sizeof name, "rank %d (%s, pid %d)", trace->rank,
               trace->host, trace->pid);
    put_name_of(writer, "process", 0, name);
    for (guint i = 0; i < trace->threads->len; i++) {
        const event_thread_t *thread =
            &g_array_index(trace->threads, event_thread_t, i);

        g_snprintf(name, sizeof name, "%s (thread %d)", thread->name,
                   thread->tid);
        put_name_of(writer, "thread", (int)i, name);
    }
    for (guint i = 0; i < writer->lanes->len; i++) {
        g_snprintf(name, sizeof name, "works %u", i + 1);
        put_name_of(writer, "thread", LANES_FIRST + (int)i, name);
    }
}

static void text_free(gpointer text)
{
    g_free(text);
}

static void open_free(gpointer open)
{
    g_array_unref(open);
}

static void writer_begin(writer_t *writer)
{
    const trace_t *trace = writer->trace;

    writer->groups = g_ptr_array_new_with_free_func(text_free);
    writer->open = g_ptr_array_new_with_free_func(open_free);
    writer->lanes = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (guint i = 0; i < trace->groups->len; i++) {
        const trace_group_t *group =
            &g_array_index(trace->groups, trace_group_t, i);
        GString *text = g_string_new(",\"group\":");

        dscomm_priv_json_text(group->name, text);
        g_string_append(text, ",\"group_id\":");
        dscomm_priv_json_text(group->id, text);
        g_ptr_array_add(writer->groups, g_string_free(text, FALSE));
    }
    for (guint i = 0; i < trace->threads->len; i++)
        g_ptr_array_add(writer->open,
                        g_array_new(FALSE, FALSE, sizeof(int64_t)));
}

static void writer_end(writer_t *writer)
{
    g_ptr_array_unref(writer->groups);
    g_ptr_array_unref(writer->open);
    g_array_unref(writer->lanes);
}

static void put_trace(const dscomm_profile_t *profile, guint index,
                      int64_t origin_ns, profile_sink_t *sink)
{
    writer_t writer = {.profile = profile,
                       .trace = profile_trace(profile, index),
                       .sink = sink,
                       .origin_ns = origin_ns};

    writer.pid = writer.trace->rank;
    writer_begin(&writer);
    for (guint i = 0; i < writer.trace->events->len; i++) {
        const event_t *event = trace_event(writer.trace, i);

        put_event(&writer, event, trace_link(writer.trace, i),
                  row_find(&writer, event));
        dscomm_priv_sink_step(sink);
    }
    put_names(&writer);
    writer_end(&writer);
}

/* Writes the facts about the whole trace, as the members of otherData. */
static void put_head(const dscomm_profile_t *profile, GString *out)
{
    g_string_append_printf(out,
                           "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{"
                           "\"format\":\"dscomm-trace\",\"version\":1,"
                           "\"world_size\":%d,\"missing\":[%s],\"ranks\":[",
                           profile->world_size, profile->missing->str);
    for (guint i = 0; i < profile->traces->len; i++) {
        const trace_t *trace = profile_trace(profile, i);

        g_string_append_printf(
            out,
            "%s\n{\"rank\":%d,\"events\":%u,\"dropped\":%" PRIu64
            ",\"clock_offset_ns\":%" PRId64 ",\"clock_error_ns\":%" PRId64 "}",
            i ? "," : "", trace->rank, trace->events->len, trace->dropped,
            trace->offset_ns, trace->error_ns);
    }
    g_string_append(out, "]},\n\"traceEvents\":[\n"
                         "{\"ph\":\"M\",\"name\":\"trace\",\"pid\":0,"
                         "\"tid\":0,\"args\":{}}");
}

void dscomm_priv_write_trace(const dscomm_profile_t *profile,
                             profile_sink_t *sink)
{
    int64_t origin_ns = INT64_MAX;

    for (guint i = 0; i < profile->traces->len; i++)
        if (profile_trace(profile, i)->events->len)
            origin_ns = MIN(
                origin_ns, trace_event(profile_trace(profile, i), 0)->begin_ns);
    put_head(profile, sink->text);
    for (guint i = 0; i < profile->traces->len; i++)
        put_trace(profile, i, origin_ns, sink);
    g_string_append(sink->text, "\n]}\n");
}
