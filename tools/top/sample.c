/* SPDX-License-Identifier: BSD-3-Clause */
/* See sample.h. The rates count all calls; bytes and waits are of those that
 * the recorder still has. */
#include "config.h"

#include "tools/top/sample.h"

#include <dscomm/hook.h>
#include <string.h>

/* Collectives whose count is that of one rank's part of the longer buffer. */
static const bool has_parts[DSCOMM_COLL_COUNT] = {
    [DSCOMM_COLL_ALL_GATHER] = true, [DSCOMM_COLL_REDUCE_SCATTER] = true,
    [DSCOMM_COLL_GATHER] = true,     [DSCOMM_COLL_SCATTER] = true,
    [DSCOMM_COLL_ALL_TO_ALL] = true,
};

/* The key of a collective that is the same for all ranks; g_free(). */
static char *call_key(const dscomm_recorder_group_t *group,
                      const dscomm_recorded_t *call)
{
    return g_strdup_printf("%s #%llu", group->id,
                           (unsigned long long)call->sequence);
}

typedef void (*visit_t)(const dscomm_recorder_group_t *group,
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
            visit(&group, &call, arg);
}

/* Keeps the time of the last rank that called a collective. */
static void note_last(const dscomm_recorder_group_t *group,
                      const dscomm_recorded_t *call, void *arg)
{
    GHashTable *last = arg;
    char *key = call_key(group, call);
    const uint64_t *known = g_hash_table_lookup(last, key);
    uint64_t *ticks;

    if (call->coll >= DSCOMM_COLL_SEND || (known && *known >= call->called)) {
        g_free(key);
        return;
    }
    ticks = g_new(uint64_t, 1);
    *ticks = call->called;
    g_hash_table_replace(last, key, ticks);
}

/* The calls of one rank since the former sample. */
typedef struct {
    GHashTable *last;
    uint64_t calls, bytes;
    uint64_t first_ticks, last_ticks, waited; /* ticks */
} sums_t;

static void sum_call(const dscomm_recorder_group_t *group,
                     const dscomm_recorded_t *call, void *arg)
{
    sums_t *sums = arg;
    const bool parts = call->coll < DSCOMM_COLL_COUNT && has_parts[call->coll];
    char *key = call_key(group, call);
    const uint64_t *last = g_hash_table_lookup(sums->last, key);

    sums->calls++;
    sums->bytes += call->count *
                   dscomm_dtype_size((dscomm_dtype_t)call->dtype) *
                   (parts ? (uint64_t)group->size : 1);
    if (!sums->first_ticks)
        sums->first_ticks = call->called;
    sums->last_ticks = MAX(sums->last_ticks, call->called);
    if (call->coll < DSCOMM_COLL_SEND && last && *last > call->called)
        sums->waited += *last - call->called;
    g_free(key);
}

/* Finds the call that the rank is in. */
static void find_current(const dscomm_recorder_slot_t *slot, sample_t *sample)
{
    const uint64_t last = atomic_load(&slot->calls);
    const dscomm_moment_t now = dscomm_priv_moment();
    dscomm_recorded_t call;

    for (uint64_t i = 0; i < MIN(last, RECORDER_CALLS); i++) {
        if (!dscomm_priv_recorder_read(slot, last - i, &call))
            continue;
        if (i && call.ended)
            continue;
        sample->current_s =
            (double)(now.monotonic_ns - dscomm_priv_ticks_to_ns(
                                            call.called, &slot->opened, &now)) /
            1e9;
        if (call.ended)
            continue;
        dscomm_priv_recorder_describe(slot, &call, sample->current,
                                      sizeof sample->current);
        return;
    }
}

static const sample_t *sample_find(const GArray *samples, int pid, int rank)
{
    for (guint i = 0; samples && i < samples->len; i++) {
        const sample_t *sample = &g_array_index(samples, sample_t, i);

        if (sample->pid == pid && sample->rank == rank)
            return sample;
    }
    return NULL;
}

static void sample_rates(const dscomm_recorder_slot_t *slot, GHashTable *last,
                         const sample_t *before, double seconds,
                         sample_t *sample)
{
    sums_t sums = {.last = last};

    if (!before || sample->calls <= before->calls || seconds <= 0)
        return;
    slot_walk(slot, before->calls, sum_call, &sums);
    sample->calls_per_s = (double)(sample->calls - before->calls) / seconds;
    if (sums.calls)
        sample->bytes_per_s =
            sample->calls_per_s * (double)sums.bytes / (double)sums.calls;
    if (sums.last_ticks > sums.first_ticks)
        sample->wait = MIN(1, (double)sums.waited /
                                  (double)(sums.last_ticks - sums.first_ticks));
}

static int sample_order(const void *a, const void *b)
{
    const sample_t *one = a, *other = b;

    return one->rank - other->rank;
}

GArray *sample_take(const dscomm_recorder_t *recorder, const GArray *before,
                    double seconds)
{
    GArray *samples = g_array_new(false, true, sizeof(sample_t));
    GHashTable *last =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    dscomm_recorder_t view = DSCOMM_RECORDER_INIT;

    dscomm_priv_recorder_view(recorder, &view);
    for (uint32_t i = 0; i < view.slots; i++)
        if (atomic_load(&view.memory->slot[i].pid))
            slot_walk(&view.memory->slot[i], 0, note_last, last);
    for (uint32_t i = 0; i < view.slots; i++) {
        const dscomm_recorder_slot_t *slot = &view.memory->slot[i];
        sample_t sample = {.rank = slot->rank,
                           .pid = (int)atomic_load(&slot->pid)};

        if (!sample.pid)
            continue;
        sample.state = dscomm_priv_recorder_state(slot);
        sample.calls = atomic_load(&slot->calls);
        find_current(slot, &sample);
        sample_rates(slot, last, sample_find(before, sample.pid, sample.rank),
                     seconds, &sample);
        g_array_append_val(samples, sample);
    }
    dscomm_priv_recorder_close(&view);
    g_hash_table_destroy(last);
    g_array_sort(samples, sample_order);
    return samples;
}
