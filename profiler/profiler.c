/* SPDX-License-Identifier: BSD-3-Clause */
/* A profiler's life, and what it does at the hooks. */
#include "config.h"

#include "profiler/events.h"
#include "profiler/lock.h"
#include "profiler/profiler.h"
#include "profiler/text.h"

#include "lib/base/attr.h"
#include "lib/base/write-guard.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

#define RANGES_MAX 16

/* The library's lock protects the two below, and attaching and detaching. */

/* Freed profilers. Their memory, with that of their tables, is used again and
 * never freed: operations in flight end with a hook table that points at it,
 * perhaps in a thread of the library. */
static dscomm_profiler_t *freed;
static _Atomic(dscomm_profiler_t *) attached;

static const dscomm_hooks_t hooks = {
    .size = sizeof hooks,
    .begin = dscomm_priv_profiler_begin,
    .end = dscomm_priv_profiler_end,
    .waited = dscomm_priv_profiler_waited,
    .note = dscomm_priv_profiler_note,
    .device = dscomm_priv_profiler_device,
};

/* Time in which the rate of the ticks is measured, which is then exact to some
 * 0.005 %. */
#define RATE_NS (2 * NS_PER_MS)

/* Returns the shortest of several readings: the thread may be interrupted in
 * between. */
dscomm_moment_t dscomm_priv_profiler_moment(void)
{
    dscomm_moment_t best = {0};
    uint64_t shortest = UINT64_MAX;

    for (int i = 0; i < 8; i++) {
        const uint64_t first = dscomm_priv_ticks();
        const int64_t ns = dscomm_priv_clock();
        const uint64_t took = dscomm_priv_ticks() - first;

        if (took >= shortest)
            continue;
        shortest = took;
        best.ticks = first + took / 2;
        best.monotonic_ns = ns;
    }
    return best;
}

/* Measures the rate of the ticks; again for each profiler, over a longer time.
 * Called with the lock. */
static void rate_measure(dscomm_profiler_t *profiler)
{
    static dscomm_moment_t first;
    dscomm_moment_t now;

    dscomm_priv_ticks_choose();
    if (!first.monotonic_ns)
        first = dscomm_priv_profiler_moment();
    do
        now = dscomm_priv_profiler_moment();
    while (now.monotonic_ns - first.monotonic_ns < RATE_NS);
    profiler->began = first;
    profiler->ns_per_tick =
        dscomm_priv_ticks_counted
            ? (double)(now.monotonic_ns - first.monotonic_ns) /
                  (double)(now.ticks - first.ticks)
            : 1;
}

static bool group_counts(const dscomm_profiler_t *profiler,
                         const group_t *group)
{
    const unsigned state =
        atomic_load_explicit(&group->state, memory_order_relaxed);

    if (state == GROUP_DEFAULT)
        return atomic_load_explicit(&profiler->started, memory_order_relaxed);
    return state == GROUP_STARTED;
}

/* False: no operation of this kind counts, of any group. */
static bool profiler_wants(const dscomm_profiler_t *profiler, int coll)
{
    return (profiler->colls >> coll & 1) &&
           (atomic_load_explicit(&profiler->started, memory_order_relaxed) ||
            atomic_load_explicit(&profiler->has_started, memory_order_relaxed));
}

/* The group's entry; NULL if its operations do not count. */
static const group_t *counted_group(dscomm_profiler_t *profiler,
                                    const dscomm_group_t *handle)
{
    const group_t *group =
        dscomm_priv_table_group_add(&profiler->table, handle);

    if (G_UNLIKELY(!group)) {
        atomic_fetch_add(&profiler->table.dropped, 1);
        return NULL;
    }
    return group_counts(profiler, group) ? group : NULL;
}

uint64_t dscomm_priv_profiler_begin(const dscomm_op_info_t *info, void *arg)
{
    dscomm_profiler_t *profiler = arg;
    const group_t *group;
    uint64_t token;

    if (!profiler_wants(profiler, info->coll))
        return 0;
    group = counted_group(profiler, info->group);
    if (!group)
        return 0;
    token = dscomm_priv_ticks() & TOKEN_TIME;
    if (profiler->debug)
        token |= (uint64_t)dscomm_priv_text_site() << 48;
    return token ? token : 1;
}

/* True if nothing that began at these ticks counts any more. */
static bool is_reset(const _Atomic uint64_t *since_ticks, uint64_t began)
{
    return began < atomic_load_explicit(since_ticks, memory_order_relaxed);
}

/* False also if another profiler's events are kept since this one was detached.
 */
static bool keeps_events(const dscomm_profiler_t *profiler)
{
    return profiler->trace && events_are_of(profiler);
}

/* The ticks since an operation began. */
static uint64_t token_passed(uint64_t token, uint64_t now)
{
    return (now - token) & TOKEN_TIME;
}

/* The group of an operation that counts; else NULL. */
static group_t *operation_group(const dscomm_profiler_t *profiler,
                                const dscomm_op_info_t *info, uint64_t began)
{
    group_t *group;

    if (is_reset(&profiler->since_ticks, began) || !profiler->table.groups)
        return NULL;
    group = dscomm_priv_table_group(&profiler->table, info->group);
    return group && !is_reset(&group->since_ticks, began) ? group : NULL;
}

static row_key_t operation_key(const dscomm_profiler_t *profiler,
                               const dscomm_op_info_t *info,
                               const group_t *group, uint64_t token)
{
    return (row_key_t){
        .coll = info->coll,
        .site = (unsigned)(token >> 48 & (TEXT_COUNT - 1)),
        .group = (unsigned)(group - profiler->table.groups),
    };
}

/* Adds a message to the row of its peer, which tells no sites apart. */
static void peer_add(dscomm_profiler_t *profiler, row_key_t key,
                     const dscomm_op_info_t *info, dscomm_status_t status,
                     int64_t ns)
{
    row_t *row;

    key.kind = ROW_PEER;
    key.site = 0;
    key.value = (uint64_t)(MAX(info->root, -1) + 1);
    row = dscomm_priv_table_row(&profiler->table, key);
    if (row && status == DSCOMM_OK)
        dscomm_priv_row_add(row, info->bytes, ns);
    else if (row)
        atomic_fetch_add(&row->failed, 1);
}

/* Adds the times of the phases that there were. */
static void phases_add(dscomm_profiler_t *profiler, row_key_t key,
                       const dscomm_op_info_t *info)
{
    key.kind = ROW_PHASE;
    key.site = 0;
    for (unsigned i = 0; i < DSCOMM_PHASE_COUNT; i++) {
        row_t *row;

        if (info->phases[i] <= 0)
            continue;
        key.value = size_class(info->bytes) << PHASE_BITS | i;
        row = dscomm_priv_table_row(&profiler->table, key);
        if (row)
            dscomm_priv_row_add(row, info->bytes, info->phases[i]);
    }
}

/* Writes a line in DeepSpeed's form. */
static void print_operation(const dscomm_profiler_t *profiler,
                            const dscomm_op_info_t *info, const group_t *group,
                            unsigned site, dscomm_status_t status, int64_t ns)
{
    const double gbit =
        ns > 0 ? (double)info->bytes * 8 / (double)ns : 0; /* per s */
    const double factor = dscomm_priv_bus_factor(info->coll, group->size);
    const double known = factor < 0 ? 0 : gbit;
    dscomm_write_guard_t guard;
    char size[32], line[1024];
    int length;
    ssize_t written;

    dscomm_priv_size_text(info->bytes, size, sizeof size);
    length = g_snprintf(
        line, sizeof line,
        "[Rank %d] comm op: %s%s%s%s | time (ms): %.2f | msg size: %s | algbw "
        "(Gbps): %.2f | busbw (Gbps): %.2f%s%s",
        profiler->rank, dscomm_coll_name((dscomm_coll_t)info->coll),
        site ? " | [Caller Func: " : "", dscomm_priv_text(site),
        site ? "]" : "", (double)ns / 1e6, size, known, known * MAX(factor, 0),
        status < 0 ? " | failed: " : "",
        status < 0 ? dscomm_strerror(status) : "");
    dscomm_priv_text_blank(line);
    length = MIN(length, (int)sizeof line - 2);
    line[length++] = '\n';
    dscomm_priv_write_guard(&guard);
    written = write(STDERR_FILENO, line, (size_t)length);
    dscomm_priv_write_unguard(&guard);
    (void)written; /* a line that cannot be written is left out */
}

/* The phases of an event that has taken ns, as it keeps them. Not inline, so
 * that it costs nothing without phases. */
__attribute__((noinline)) static uint64_t event_phases(const int64_t *phases,
                                                       int64_t ns)
{
    int64_t left = UINT16_MAX;
    uint64_t word = 0;

    for (int i = 0; i < EVENT_PHASES; i++) {
        const double part = (double)phases[i + 1] / (double)MAX(ns, 1);
        const int64_t parts = (int64_t)(part * UINT16_MAX + 0.5);
        const int64_t kept = CLAMP(parts, 0, left);

        word |= (uint64_t)kept << 16 * i;
        left -= kept;
    }
    return word;
}

/* Records an operation that has ended now, or the wait for one, as an event.
 * It has taken ns, which are passed ticks. Not inline, so that it costs nothing
 * without events. */
__attribute__((noinline)) static void
operation_record(event_kind_t kind, const dscomm_op_info_t *info, row_key_t key,
                 dscomm_status_t status, int64_t now, int64_t passed,
                 int64_t ns)
{
    const event_t event = {
        .begin_ticks = now - passed,
        .end_ticks = now,
        .sequence = info->sequence,
        .bytes = info->bytes,
        .op = info->op,
        .peer = info->root,
        .tag = info->tag,
        .group = (uint16_t)key.group,
        .text = (uint16_t)key.site,
        .status = (int16_t)status,
        .kind = (uint8_t)kind,
        .coll = (uint8_t)info->coll,
        .dtype = (uint8_t)info->dtype,
        .is_async = info->async != 0,
        .has_phases = info->phases != NULL,
        .phases = G_UNLIKELY(info->phases) ? event_phases(info->phases, ns) : 0,
    };

    event_add(&event);
}

void dscomm_priv_profiler_end(const dscomm_op_info_t *info,
                              dscomm_status_t status, uint64_t token, void *arg)
{
    dscomm_profiler_t *profiler = arg;
    const group_t *group;
    uint64_t now, passed;
    row_key_t key;
    int64_t ns;
    row_t *row;

    if (!token)
        return;
    now = dscomm_priv_ticks();
    passed = token_passed(token, now);
    group = operation_group(profiler, info, now - passed);
    if (!group)
        return;
    ns = (int64_t)((double)(int64_t)passed * profiler->ns_per_tick);
    key = operation_key(profiler, info, group, token);
    if (keeps_events(profiler))
        operation_record(EVENT_OPERATION, info, key, status, (int64_t)now,
                         (int64_t)passed, ns);
    row = dscomm_priv_table_size(&profiler->table, key, info->bytes);
    if (G_UNLIKELY(!row))
        atomic_fetch_add(&profiler->table.dropped, 1);
    else if (G_UNLIKELY(status < 0))
        atomic_fetch_add(&row->failed, 1);
    else if (info->async)
        dscomm_priv_row_add(row, info->bytes, ns);
    else
        dscomm_priv_row_add_blocked(row, info->bytes, ns);
    if (info->coll == DSCOMM_COLL_SEND || info->coll == DSCOMM_COLL_RECV)
        peer_add(profiler, key, info, status, ns);
    if (G_UNLIKELY(info->phases) && status == DSCOMM_OK)
        phases_add(profiler, key, info);
    if (G_UNLIKELY(profiler->verbose))
        print_operation(profiler, info, group, key.site, status, ns);
}

void dscomm_priv_profiler_waited(const dscomm_op_info_t *info,
                                 int64_t nanoseconds, uint64_t token, void *arg)
{
    dscomm_profiler_t *profiler = arg;
    const group_t *group;
    row_key_t key;
    uint64_t now;
    row_t *row;

    if (!token)
        return;
    now = dscomm_priv_ticks();
    group = operation_group(profiler, info, now - token_passed(token, now));
    if (!group)
        return;
    key = operation_key(profiler, info, group, token);
    if (keeps_events(profiler))
        operation_record(EVENT_WAIT, info, key, DSCOMM_OK, (int64_t)now,
                         (int64_t)((double)nanoseconds / profiler->ns_per_tick),
                         nanoseconds);
    row = dscomm_priv_table_size(&profiler->table, key, info->bytes);
    if (row)
        atomic_fetch_add(&row->waited_ns, nanoseconds);
}

void dscomm_priv_profiler_device(const dscomm_op_info_t *info,
                                 int64_t nanoseconds, uint64_t token, void *arg)
{
    dscomm_profiler_t *profiler = arg;
    const group_t *group;
    uint64_t now;
    row_t *row;

    if (!token)
        return;
    now = dscomm_priv_ticks();
    group = operation_group(profiler, info, now - token_passed(token, now));
    if (!group)
        return;
    row = dscomm_priv_table_size(&profiler->table,
                                 operation_key(profiler, info, group, token),
                                 info->bytes);
    if (!row)
        return;
    atomic_fetch_add(&row->device_ns, nanoseconds);
    atomic_fetch_add(&row->device_count, 1);
}

void dscomm_priv_profiler_note(const dscomm_note_t *note, void *arg)
{
    dscomm_profiler_t *profiler = arg;
    const group_t *group;
    row_t *row;

    if (!profiler_wants(profiler, note->coll))
        return;
    group = counted_group(profiler, note->group);
    if (!group)
        return;
    row = dscomm_priv_table_row(
        &profiler->table,
        (row_key_t){.kind = ROW_CODEC,
                    .coll = note->coll,
                    .site = dscomm_priv_text_number(note->codec),
                    .group = (unsigned)(group - profiler->table.groups),
                    .value = note->bytes});
    if (!row)
        atomic_fetch_add(&profiler->table.dropped, 1);
    else if (note->status < 0)
        atomic_fetch_add(&row->failed, 1);
    else
        dscomm_priv_row_add_encoded(row, note);
}

dscomm_status_t dscomm_priv_colls_parse(const char *what, dscomm_status_t error,
                                        const char *list, uint32_t *ret_colls)
{
    char **names = g_strsplit_set(list, ",+", -1);
    dscomm_status_t status = DSCOMM_OK;
    uint32_t colls = 0;

    for (char **name = names; *name && status == DSCOMM_OK; name++) {
        int coll = 0;

        g_strstrip(*name);
        while (coll < DSCOMM_COLL_COUNT &&
               strcmp(*name, dscomm_coll_name((dscomm_coll_t)coll)) != 0)
            coll++;
        if (coll == DSCOMM_COLL_COUNT)
            status = dscomm_fail(error,
                                 "%s: prof_ops names '%s', which is no "
                                 "operation; give names such as all_reduce or "
                                 "send, separated by commas or +",
                                 what, *name);
        else
            colls |= UINT32_C(1) << coll;
    }
    g_strfreev(names);
    if (status == DSCOMM_OK)
        *ret_colls = colls;
    return status;
}

dscomm_status_t dscomm_profiler_attr_init(dscomm_profiler_attr_t *attr,
                                          size_t size)
{
    return dscomm_priv_attr_init("dscomm_profiler_attr_init", attr, size);
}

/* Called with the lock. */
static dscomm_status_t profiler_new(dscomm_profiler_t **ret_profiler)
{
    dscomm_profiler_t *profiler = freed;

    if (!profiler)
        profiler = g_new0(dscomm_profiler_t, 1);
    else
        freed = profiler->next;
    *ret_profiler = profiler;
    if (dscomm_priv_table_init(&profiler->table))
        return DSCOMM_OK;
    profiler->next = freed;
    freed = profiler;
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                       "dscomm_profiler_attach: no memory for the table");
}

/* Keeps the table until the profiler is used again: a thread may be in a hook
 * for another world. Called with the lock. */
static void profiler_drop(dscomm_profiler_t *profiler)
{
    atomic_store(&profiler->since_ticks, UINT64_MAX);
    profiler->next = freed;
    freed = profiler;
}

/* Called with the lock. */
static dscomm_status_t profiler_install(dscomm_profiler_t *profiler)
{
    dscomm_hooks_t own = hooks;
    dscomm_status_t status;

    own.arg = profiler;
    own.flags = profiler->phases ? DSCOMM_HOOKS_PHASES : 0;
    status = dscomm_hooks_set(&own);
    if (status == DSCOMM_ERR_STATE)
        return dscomm_fail(status,
                           "dscomm_profiler_attach: another profiler or hook "
                           "table is attached (DSCOMM_PROFILE attaches one); "
                           "detach it first");
    if (status < 0)
        return status;
    atomic_store(&profiler->attached, true);
    atomic_store(&attached, profiler);
    dscomm_priv_text_want_sites(profiler->debug);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_profiler_attach(const dscomm_profiler_attr_t *attr,
                                       dscomm_profiler_t **ret_profiler)
{
    dscomm_profiler_attr_t merged = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profiler_t *profiler = NULL;
    uint32_t colls = UINT32_MAX;
    dscomm_status_t status = dscomm_priv_attr_read(
        "dscomm_profiler_attach: attr", "start from DSCOMM_PROFILER_ATTR_INIT",
        attr, sizeof merged, &merged);

    if (status < 0)
        return status;
    if (!ret_profiler)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_profiler_attach: ret_profiler is NULL");
    if (merged.level < 0 || merged.level > 2)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_profiler_attach: level is %d; give 1 for "
                           "operations or 2 for their phases, too",
                           merged.level);
    if (merged.prof_ops && !merged.prof_all)
        status = dscomm_priv_colls_parse("dscomm_profiler_attach",
                                         DSCOMM_ERR_INVALID, merged.prof_ops,
                                         &colls);
    if (status < 0)
        return status;
    dscomm_priv_profiler_lock();
    status = profiler_new(&profiler);
    if (status == DSCOMM_OK) {
        profiler->colls = colls;
        profiler->verbose = merged.verbose;
        profiler->debug = merged.debug;
        profiler->trace = merged.trace;
        profiler->phases = merged.level == 2;
        profiler->rank = -1;
        rate_measure(profiler);
        atomic_store(&profiler->since_ticks, dscomm_priv_ticks());
        atomic_store(&profiler->started, merged.enabled != 0);
        atomic_store(&profiler->has_started, false);
        status = profiler_install(profiler);
        if (status < 0)
            profiler_drop(profiler);
    }
    dscomm_priv_profiler_unlock();
    if (status < 0)
        return status;
    if (profiler->trace)
        dscomm_priv_events_begin(profiler);
    *ret_profiler = profiler;
    return DSCOMM_OK;
}

void dscomm_profiler_detach(dscomm_profiler_t *profiler)
{
    if (!profiler)
        return;
    dscomm_priv_profiler_lock();
    if (atomic_exchange(&profiler->attached, false)) {
        atomic_store(&attached, NULL);
        dscomm_priv_text_want_sites(false);
        dscomm_hooks_set(NULL);
    }
    dscomm_priv_profiler_unlock();
}

void dscomm_profiler_free(dscomm_profiler_t *profiler)
{
    if (!profiler)
        return;
    dscomm_profiler_detach(profiler);
    dscomm_priv_profiler_lock();
    profiler_drop(profiler);
    dscomm_priv_profiler_unlock();
}

/* The status of a call that names handle: it must not be freed. */
static dscomm_status_t handle_check(const dscomm_group_t *handle,
                                    const char *name)
{
    int rank;

    if (dscomm_group_to_global(handle, 0, &rank) == DSCOMM_OK)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_INVALID, "%s: the group was freed", name);
}

static dscomm_status_t profiler_switch(dscomm_profiler_t *profiler,
                                       const dscomm_group_t *handle, bool start,
                                       const char *name)
{
    group_t *group;
    dscomm_status_t status;

    if (!profiler)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: profiler is NULL", name);
    if (handle) {
        status = start ? handle_check(handle, name) : DSCOMM_OK;
        if (status < 0)
            return status;
        group = dscomm_priv_table_group_add(&profiler->table, handle);
        if (!group)
            return dscomm_fail(DSCOMM_ERR_STATE,
                               "%s: the profiler has %d groups already", name,
                               TABLE_GROUPS);
        atomic_store(&group->state, start ? GROUP_STARTED : GROUP_STOPPED);
        if (start)
            atomic_store(&profiler->has_started, true);
        return DSCOMM_OK;
    }
    for (int i = 0; i < TABLE_GROUPS; i++)
        atomic_store(&profiler->table.groups[i].state, GROUP_DEFAULT);
    atomic_store(&profiler->has_started, false);
    atomic_store(&profiler->started, start);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_profiler_start(dscomm_profiler_t *profiler,
                                      const dscomm_group_t *group)
{
    return profiler_switch(profiler, group, true, "dscomm_profiler_start");
}

dscomm_status_t dscomm_profiler_stop(dscomm_profiler_t *profiler,
                                     const dscomm_group_t *group)
{
    return profiler_switch(profiler, group, false, "dscomm_profiler_stop");
}

dscomm_status_t dscomm_profiler_reset(dscomm_profiler_t *profiler,
                                      const dscomm_group_t *handle)
{
    group_t *group;

    if (!profiler)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_profiler_reset: profiler is NULL");
    if (!handle) {
        atomic_store(&profiler->since_ticks, dscomm_priv_ticks());
        dscomm_priv_table_reset(&profiler->table, NULL);
        if (profiler->trace)
            dscomm_priv_events_forget(profiler);
        return DSCOMM_OK;
    }
    group = dscomm_priv_table_group(&profiler->table, handle);
    if (group) {
        atomic_store(&group->since_ticks, dscomm_priv_ticks());
        dscomm_priv_table_reset(&profiler->table, group);
    }
    return DSCOMM_OK;
}

/* Ranges of this thread. Those deeper than RANGES_MAX are counted only, so that
 * begin and end stay paired. */
static _Thread_local struct {
    unsigned depth;
    struct {
        unsigned name; /* text.h; 0: not timed */
        int64_t began; /* ticks */
    } open[RANGES_MAX];
} ranges;

void dscomm_profiler_range_begin(const char *name)
{
    dscomm_profiler_t *profiler = atomic_load(&attached);
    const unsigned depth = ranges.depth++;
    unsigned number;

    if (depth < RANGES_MAX)
        ranges.open[depth].name = 0;
    if (!profiler || !atomic_load(&profiler->started))
        return;
    number = depth < RANGES_MAX ? dscomm_priv_text_number(name) : TEXT_OTHERS;
    if (!number || number == TEXT_OTHERS) {
        atomic_fetch_add(&profiler->table.dropped, 1);
        return;
    }
    ranges.open[depth].name = number;
    ranges.open[depth].began = (int64_t)dscomm_priv_ticks();
    if (profiler->trace)
        dscomm_priv_event_mark(ranges.open[depth].began);
}

static void range_record(unsigned name, int64_t began, int64_t now)
{
    const event_t event = {.begin_ticks = began,
                           .end_ticks = now,
                           .text = (uint16_t)name,
                           .kind = EVENT_RANGE};

    event_add(&event);
}

void dscomm_profiler_range_end(void)
{
    dscomm_profiler_t *profiler = atomic_load(&attached);
    int64_t began, now;
    unsigned name;
    row_t *row;

    if (!ranges.depth || --ranges.depth >= RANGES_MAX ||
        !ranges.open[ranges.depth].name || !profiler)
        return;
    name = ranges.open[ranges.depth].name;
    began = ranges.open[ranges.depth].began;
    if (is_reset(&profiler->since_ticks, (uint64_t)began))
        return;
    now = (int64_t)dscomm_priv_ticks();
    if (keeps_events(profiler))
        range_record(name, began, now);
    row = dscomm_priv_table_row(&profiler->table,
                                (row_key_t){.kind = ROW_RANGE, .value = name});
    if (row)
        dscomm_priv_row_add(
            row, 0, (int64_t)((double)(now - began) * profiler->ns_per_tick));
    else
        atomic_fetch_add(&profiler->table.dropped, 1);
}
