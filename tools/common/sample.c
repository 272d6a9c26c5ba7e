/* SPDX-License-Identifier: BSD-3-Clause */
/* See sample.h. The rates count all calls; bytes and waits are of those that
 * the recorder still has. */
#include "config.h"

#include "tools/common/sample.h"

#include "lib/base/types.h"

#include <string.h>

/* What the ranks of a machine have called of a group's collective; or, under
 * sequence 0, that they are members of it. */
typedef struct {
    uint64_t last_ticks; /* when the last rank called it */
    int ranks;
} called_t;

/* The key of a collective that is the same for all ranks; g_free(). */
static char *call_key(const dscomm_recorder_slot_t *slot,
                      const dscomm_recorder_group_t *group, uint64_t sequence)
{
    return g_strdup_printf("%.*s %s #%llu", (int)sizeof slot->world,
                           slot->world, group->id,
                           (unsigned long long)sequence);
}

static const called_t *called_find(GHashTable *called,
                                   const dscomm_recorder_slot_t *slot,
                                   const dscomm_recorder_group_t *group,
                                   uint64_t sequence)
{
    char *key = call_key(slot, group, sequence);
    const called_t *found = g_hash_table_lookup(called, key);

    g_free(key);
    return found;
}

static void called_note(GHashTable *called, char *key, uint64_t ticks)
{
    called_t *known = g_hash_table_lookup(called, key);

    if (known) {
        g_free(key);
    } else {
        known = g_new0(called_t, 1);
        g_hash_table_insert(called, key, known);
    }
    known->last_ticks = MAX(known->last_ticks, ticks);
    known->ranks++;
}

typedef void (*visit_t)(const dscomm_recorder_slot_t *slot,
                        const dscomm_recorder_group_t *group,
                        const dscomm_recorded_t *call, void *arg);

/* Calls visit for the calls after the first ones that the slot still has. */
static void slot_walk(const dscomm_recorder_slot_t *slot, uint64_t first,
                      visit_t visit, void *arg)
{
    const uint64_t last = atomic_load(&slot->calls);
    dscomm_recorder_group_t group;
    dscomm_recorded_t call;

    if (last > first + RECORDER_CALLS)
        first = last - RECORDER_CALLS;
    for (uint64_t serial = first + 1; serial <= last; serial++)
        if (dscomm_priv_recorder_read(slot, serial, &call) &&
            dscomm_priv_recorder_read_group(slot, call.group, &group))
            visit(slot, &group, &call, arg);
}

static void note_call(const dscomm_recorder_slot_t *slot,
                      const dscomm_recorder_group_t *group,
                      const dscomm_recorded_t *call, void *arg)
{
    if (call->coll < DSCOMM_COLL_SEND)
        called_note(arg, call_key(slot, group, call->sequence), call->called);
}

/* Notes all that the rank of the slot has called, and its groups. */
static void slot_note(const dscomm_recorder_slot_t *slot, GHashTable *called)
{
    const uint32_t last = atomic_load(&slot->groups);
    dscomm_recorder_group_t group;

    slot_walk(slot, 0, note_call, called);
    for (uint32_t i = 0; i < MIN(last, RECORDER_GROUPS); i++)
        if (dscomm_priv_recorder_read_group(slot, last - i, &group))
            called_note(called, call_key(slot, &group, 0), 0);
}

/* The calls of one rank since the former sample. */
typedef struct {
    GHashTable *called; /* called_t */
    uint64_t calls, bytes;
    uint64_t first_ticks, last_ticks, waited; /* ticks */
    bool across; /* collectives with ranks of other machines */
} sums_t;

/* True if the group has ranks on other machines, whose calls are not known. */
static bool group_is_across(const dscomm_recorder_slot_t *slot,
                            const dscomm_recorder_group_t *group,
                            GHashTable *called)
{
    const called_t *members = called_find(called, slot, group, 0);

    return members && members->ranks < group->size;
}

static void sum_call(const dscomm_recorder_slot_t *slot,
                     const dscomm_recorder_group_t *group,
                     const dscomm_recorded_t *call, void *arg)
{
    sums_t *sums = arg;
    const int ranks =
        dscomm_priv_coll_has(call->coll, SHAPE_ALL) ? group->size : 1;
    const called_t *called =
        called_find(sums->called, slot, group, call->sequence);

    sums->calls++;
    sums->bytes += call->count *
                   dscomm_dtype_size((dscomm_dtype_t)call->dtype) *
                   (uint64_t)ranks;
    if (!sums->first_ticks)
        sums->first_ticks = call->called;
    sums->last_ticks = MAX(sums->last_ticks, call->called);
    if (call->coll >= DSCOMM_COLL_SEND)
        return;
    sums->across |= group_is_across(slot, group, sums->called);
    if (called && called->last_ticks > call->called)
        sums->waited += called->last_ticks - call->called;
}

/* 1 if another rank of this machine has not made the collective, else 0; or
 * SAMPLE_UNKNOWN, if a rank of another machine may not have made it. */
static double call_waits(const dscomm_recorder_slot_t *slot,
                         const dscomm_recorded_t *call, GHashTable *called)
{
    dscomm_recorder_group_t group;
    const called_t *members, *callers;

    if (call->coll >= DSCOMM_COLL_SEND ||
        !dscomm_priv_recorder_read_group(slot, call->group, &group))
        return 0;
    members = called_find(called, slot, &group, 0);
    callers = called_find(called, slot, &group, call->sequence);
    if (members && callers && callers->ranks < members->ranks)
        return 1;
    return group_is_across(slot, &group, called) ? SAMPLE_UNKNOWN : 0;
}

/* Finds the call that the rank is in. Returns whether it waits there, as
 * call_waits(). */
static double find_current(const dscomm_recorder_slot_t *slot,
                           GHashTable *called, sample_t *sample)
{
    const uint64_t last = atomic_load(&slot->calls);
    const dscomm_moment_t now = dscomm_priv_moment_by(slot->is_counted);
    dscomm_recorded_t call;
    int64_t called_ns;

    for (uint64_t i = 0; i < MIN(last, RECORDER_CALLS); i++) {
        if (!dscomm_priv_recorder_read(slot, last - i, &call))
            continue;
        if (i && call.ended)
            continue;
        called_ns = dscomm_priv_ticks_to_ns(call.called, &slot->opened, &now);
        sample->current_s = (double)MAX(now.monotonic_ns - called_ns, 0) / 1e9;
        if (call.ended)
            continue;
        dscomm_priv_recorder_describe(slot, &call, sample->current,
                                      sizeof sample->current);
        return call_waits(slot, &call, called);
    }
    return 0;
}

/* The former sample of the same rank; a process may be a rank of several
 * worlds. */
static const sample_t *sample_find(const GArray *samples, const sample_t *later)
{
    for (guint i = 0; samples && i < samples->len; i++) {
        const sample_t *sample = &g_array_index(samples, sample_t, i);

        if (sample->pid == later->pid && sample->rank == later->rank &&
            sample->opened_ns == later->opened_ns)
            return sample;
    }
    return NULL;
}

static void sample_rates(const dscomm_recorder_slot_t *slot, GHashTable *called,
                         const sample_t *before, double seconds,
                         sample_t *sample)
{
    sums_t sums = {.called = called};

    if (!before || sample->calls <= before->calls || seconds <= 0)
        return;
    slot_walk(slot, before->calls, sum_call, &sums);
    sample->calls_per_s = (double)(sample->calls - before->calls) / seconds;
    if (sums.calls)
        sample->bytes_per_s =
            sample->calls_per_s * (double)sums.bytes / (double)sums.calls;
    if (sums.across)
        sample->wait = SAMPLE_UNKNOWN;
    else if (sums.last_ticks > sums.first_ticks)
        sample->wait = MIN(1, (double)sums.waited /
                                  (double)(sums.last_ticks - sums.first_ticks));
}

void sample_wait(const sample_t *sample, char *text, size_t size)
{
    g_snprintf(text, size, sample->wait < 0 ? "-" : "%.0f%%",
               100 * sample->wait);
}

static int sample_order(const void *a, const void *b)
{
    const sample_t *one = a, *other = b;

    return one->rank - other->rank;
}

void samples_sort(GArray *samples)
{
    g_array_sort(samples, sample_order);
}

/* Fills the sample of a rank. */
static void sample_fill(const dscomm_recorder_slot_t *slot, GHashTable *called,
                        const GArray *before, double seconds, sample_t *sample)
{
    double waits;

    sample->state = dscomm_priv_recorder_state(slot);
    sample->calls = atomic_load(&slot->calls);
    waits = find_current(slot, called, sample);
    sample_rates(slot, called, sample_find(before, sample), seconds, sample);
    if (waits > 0 && sample->current_s >= seconds)
        sample->wait = 1;
    else if (waits < 0)
        sample->wait = SAMPLE_UNKNOWN;
    else if (waits > 0 &&
             sample->wait >=
                 0) /* the rest of the time was as the calls before */
        sample->wait += (1 - sample->wait) * sample->current_s / seconds;
}

GArray *sample_take(const dscomm_recorder_t *recorder, const GArray *before,
                    double seconds)
{
    GArray *samples = g_array_new(false, true, sizeof(sample_t));
    GHashTable *called =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    dscomm_recorder_t view = DSCOMM_RECORDER_INIT;

    dscomm_priv_recorder_view(recorder, RECORDER_READ, &view);
    for (uint32_t i = 0; i < view.slots; i++)
        if (atomic_load(&view.memory->slot[i].pid))
            slot_note(&view.memory->slot[i], called);
    for (uint32_t i = 0; i < view.slots; i++) {
        const dscomm_recorder_slot_t *slot = &view.memory->slot[i];
        sample_t sample = {.rank = slot->rank,
                           .pid = (int)atomic_load(&slot->pid),
                           .opened_ns = slot->opened.monotonic_ns};

        if (!sample.pid)
            continue;
        sample_fill(slot, called, before, seconds, &sample);
        g_array_append_val(samples, sample);
    }
    dscomm_priv_recorder_close(&view);
    g_hash_table_destroy(called);
    samples_sort(samples);
    return samples;
}

int samples_nodes(const GArray *samples)
{
    GHashTable *nodes = g_hash_table_new(NULL, NULL);
    int count;

    for (guint i = 0; i < samples->len; i++)
        g_hash_table_add(
            nodes, GINT_TO_POINTER(g_array_index(samples, sample_t, i).node));
    count = (int)g_hash_table_size(nodes);
    g_hash_table_destroy(nodes);
    return count;
}

/* The members of a line before the call: rank, pid, opened_ns, state, calls;
 * calls and bytes a second; wait, in 1/1000; and current_s, in us. */
char *samples_print(const GArray *samples)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < samples->len; i++) {
        const sample_t *sample = &g_array_index(samples, sample_t, i);

        g_string_append_printf(
            text, "%d %d %lld %d %llu %.0f %.0f %.0f %.0f %s\n", sample->rank,
            sample->pid, (long long)sample->opened_ns, (int)sample->state,
            (unsigned long long)sample->calls, sample->calls_per_s,
            sample->bytes_per_s, 1e3 * sample->wait, 1e6 * sample->current_s,
            sample->current);
    }
    return g_string_free(text, false);
}

#define LINE_WAIT 7 /* the only member that may be negative */

static bool line_parse(const char *line, sample_t *sample)
{
    gint64 number[9];
    char *end;

    for (size_t i = 0; i < G_N_ELEMENTS(number); i++) {
        number[i] = g_ascii_strtoll(line, &end, 10);
        if (end == line || (number[i] < 0 && i != LINE_WAIT))
            return false;
        line = end;
    }
    if (number[0] > G_MAXINT || number[1] > G_MAXINT || number[3] > SLOT_LEFT)
        return false;
    sample->rank = (int)number[0];
    sample->pid = (int)number[1];
    sample->opened_ns = number[2];
    sample->state = (slot_state_t)number[3];
    sample->calls = (uint64_t)number[4];
    sample->calls_per_s = (double)number[5];
    sample->bytes_per_s = (double)number[6];
    sample->wait = number[LINE_WAIT] < 0
                       ? SAMPLE_UNKNOWN
                       : (double)MIN(number[LINE_WAIT], 1000) / 1e3;
    sample->current_s = (double)number[8] / 1e6;
    g_strlcpy(sample->current, *line == ' ' ? line + 1 : line,
              sizeof sample->current);
    return true;
}

void samples_parse(const char *text, int node, GArray *samples)
{
    char **lines = g_strsplit(text, "\n", -1);

    for (char **line = lines; *line; line++) {
        sample_t sample = {.node = node};

        if (line_parse(*line, &sample))
            g_array_append_val(samples, sample);
    }
    g_strfreev(lines);
}
