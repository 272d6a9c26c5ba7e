/* SPDX-License-Identifier: BSD-3-Clause */
/* A profile of what a table has counted. */
#include "config.h"

#include "profiler/profiler.h"
#include "profiler/text.h"
#include "profiler/trace.h"

#include <string.h>

static uint64_t histogram_copy(const row_t *row, GArray *histogram)
{
    const _Atomic uint64_t *from = atomic_load(&row->histogram);
    uint64_t all = 0;

    for (uint32_t i = 0; from && i < HISTOGRAM_BUCKETS; i++) {
        const profile_bucket_t b = {
            i, atomic_load_explicit(&from[i], memory_order_relaxed)};

        if (b.count)
            g_array_append_val(histogram, b);
        all += b.count;
    }
    return all;
}

static void entry_name(const table_t *table, row_key_t key,
                       profile_entry_t *entry)
{
    entry->kind = key.kind;
    entry->coll = key.coll;
    entry->value = key.value;
    entry->site = dscomm_priv_text(key.site);
    if (key.kind == ROW_RANGE) {
        entry->op = dscomm_priv_text((unsigned)key.value);
        entry->group = "";
        entry->coll = -1;
        entry->value = 0;
        return;
    }
    entry->op = dscomm_coll_name((dscomm_coll_t)key.coll);
    entry->group = table->groups[key.group].name;
    entry->group_size = table->groups[key.group].size;
}

static void table_row_copy(dscomm_profile_t *profile, const table_t *table,
                           const row_t *row)
{
    const row_key_t key = dscomm_priv_row_key(row);
    const int64_t blocked_ns = atomic_load(&row->blocked_ns);
    GArray *histogram = g_array_new(FALSE, FALSE, sizeof(profile_bucket_t));
    profile_entry_t entry = {
        .ranks = 1,
        .order = atomic_load(&row->order),
        .failed = atomic_load(&row->failed),
        .bytes = atomic_load(&row->bytes),
        .sent = atomic_load(&row->sent),
        .plain = atomic_load(&row->plain),
        .device_count = atomic_load(&row->device_count),
        .device_ns = atomic_load(&row->device_ns),
        .total_ns = atomic_load(&row->total_ns) + blocked_ns,
        .waited_ns = atomic_load(&row->waited_ns) + blocked_ns,
        .min_ns = atomic_load(&row->min_ns),
        .max_ns = atomic_load(&row->max_ns),
        .histogram = histogram,
    };

    entry_name(table, key, &entry);
    entry.count = histogram_copy(row, histogram) + atomic_load(&row->count);
    if (key.kind == ROW_SIZE)
        entry.bytes = entry.count * key.value;
    if (entry.count || entry.failed)
        dscomm_priv_profile_add(profile, &entry);
    g_array_unref(histogram);
}

void dscomm_priv_profile_add_table(dscomm_profile_t *profile,
                                   const table_t *table)
{
    for (int i = 0; i < TABLE_ROWS; i++)
        if (atomic_load_explicit(&table->rows[i].key, memory_order_acquire) > 1)
            table_row_copy(profile, table, &table->rows[i]);
    profile->dropped += atomic_load(&table->dropped);
}

dscomm_status_t dscomm_profiler_snapshot(const dscomm_profiler_t *profiler,
                                         dscomm_profile_t **ret_profile)
{
    dscomm_profile_t *profile;

    if (!profiler || !ret_profile)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_profiler_snapshot: profiler or ret_profile "
                           "is NULL");
    profile = dscomm_priv_profile_new(1);
    profile->ranks = 1;
    dscomm_priv_profile_add_table(profile, &profiler->table);
    dscomm_priv_trace_take(profile, profiler);
    dscomm_priv_profile_finish(profile);
    *ret_profile = profile;
    return DSCOMM_OK;
}
