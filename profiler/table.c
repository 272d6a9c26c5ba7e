/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of a profiler. */
#include "config.h"

#include "profiler/table.h"

#include <glib.h>
#include <string.h>

/* places that a search tries */
#define PROBES 64

/* A key that is being written; no packed key is equal to it. */
#define KEY_BUSY UINT64_C(1)
/* A packed key is never 0 or KEY_BUSY. */
#define KEY_SET UINT64_C(2)
static uint64_t key_pack(row_key_t key)
{
    return KEY_SET | (uint64_t)key.kind << 2 | (uint64_t)key.coll << 8 |
           (uint64_t)key.site << 16 | (uint64_t)key.group << 32;
}

row_key_t dscomm_priv_row_key(const row_t *row)
{
    const uint64_t key = atomic_load(&row->key);

    return (row_key_t){
        .kind = (row_kind_t)(key >> 2 & 0xf),
        .coll = (int)(key >> 8 & 0xff),
        .site = (unsigned)(key >> 16 & 0xffff),
        .group = (unsigned)(key >> 32),
        .value = atomic_load(&row->value),
    };
}

static uint32_t key_hash(uint64_t a, uint64_t b)
{
    a = a * UINT64_C(0x9e3779b97f4a7c15) ^ b * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(a >> 32 ^ a >> 51);
}

static void histogram_reset(_Atomic uint64_t *histogram)
{
    for (int i = 0; histogram && i < HISTOGRAM_BUCKETS; i++)
        atomic_store_explicit(&histogram[i], 0, memory_order_relaxed);
}

static void row_reset(row_t *row)
{
    histogram_reset(atomic_load(&row->histogram));
    atomic_store(&row->count, 0);
    atomic_store(&row->failed, 0);
    atomic_store(&row->bytes, 0);
    atomic_store(&row->sent, 0);
    atomic_store(&row->plain, 0);
    atomic_store(&row->device_count, 0);
    atomic_store(&row->device_ns, 0);
    atomic_store(&row->total_ns, 0);
    atomic_store(&row->waited_ns, 0);
    atomic_store(&row->blocked_ns, 0);
    atomic_store(&row->min_ns, INT64_MAX);
    atomic_store(&row->max_ns, 0);
}

static void table_empty(table_t *table)
{
    for (int i = 0; i < TABLE_ROWS; i++) {
        row_t *row = &table->rows[i];

        if (!atomic_load(&row->key))
            continue;
        row_reset(row);
        atomic_store(&row->histogram, NULL);
        atomic_store(&row->key, 0);
    }
    for (int i = 0; i < TABLE_GROUPS; i++) {
        group_t *group = &table->groups[i];

        atomic_store(&group->number, 0);
        atomic_store(&group->state, GROUP_DEFAULT);
        atomic_store(&group->since_ticks, 0);
    }
    atomic_store(&table->last_group, UINT64_MAX);
    atomic_store(&table->rows_used, 0);
    atomic_store(&table->histograms, 0);
    atomic_store(&table->dropped, 0);
}

bool dscomm_priv_table_init(table_t *table)
{
    const size_t size = TABLE_ROWS * sizeof(row_t);

    if (!table->rows) {
        table->rows = aligned_alloc(_Alignof(row_t), size);
        if (table->rows)
            memset(table->rows, 0, size);
    }
    if (!table->groups)
        table->groups = g_try_new0(group_t, TABLE_GROUPS);
    if (!table->rows || !table->groups)
        return false;
    table_empty(table);
    return true;
}

static group_t *group_find(const table_t *table, uint64_t number)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        group_t *group = &table->groups[(number + i) % TABLE_GROUPS];
        const uint64_t found =
            atomic_load_explicit(&group->number, memory_order_acquire);

        if (found == number)
            return group;
        if (!found)
            break;
    }
    return NULL;
}

group_t *dscomm_priv_table_group(const table_t *table,
                                 const dscomm_group_t *handle)
{
    return group_find(table, dscomm_group_number(handle));
}

/* Copies a name, cut off at the end of a character. */
static void name_copy(const char *name, char *copy, size_t size)
{
    const char *end;

    if (g_strlcpy(copy, name, size) >= size &&
        !g_utf8_validate(copy, -1, &end) && end + 4 > copy + size - 1)
        copy[end - copy] = '\0';
}

/* Fills a free place that this thread has taken. */
static void group_fill(group_t *group, const dscomm_group_t *handle)
{
    const int rank = dscomm_group_rank(handle);

    group->size = dscomm_group_size(handle);
    group->rank = rank;
    if (dscomm_group_to_global(handle, rank, &group->world_rank) < 0)
        group->world_rank = -1;
    name_copy(dscomm_group_name(handle), group->name, sizeof group->name);
    if (!group->id)
        group->id = g_malloc(GROUP_ID_MAX);
    g_strlcpy(group->id, dscomm_group_id(handle), GROUP_ID_MAX);
}

/* Notes that a group found no room: none is added any more. */
static void groups_close(table_t *table)
{
    uint64_t last = 0;

    for (int i = 0; i < TABLE_GROUPS; i++) {
        const uint64_t number = atomic_load(&table->groups[i].number);

        last = MAX(last, number & ~GROUP_NUMBER_BUSY);
    }
    atomic_store(&table->last_group, last);
}

static group_t *group_add(table_t *table, const dscomm_group_t *handle,
                          uint64_t number)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        group_t *group = &table->groups[(number + i) % TABLE_GROUPS];
        uint64_t none = atomic_load(&group->number);

        if (none || !atomic_compare_exchange_strong(&group->number, &none,
                                                    number | GROUP_NUMBER_BUSY))
            continue;
        group_fill(group, handle);
        atomic_store_explicit(&group->number, number, memory_order_release);
        return group;
    }
    groups_close(table);
    return NULL;
}

group_t *dscomm_priv_table_group_add(table_t *table,
                                     const dscomm_group_t *handle)
{
    const uint64_t number = dscomm_group_number(handle);
    group_t *group = &table->groups[number % TABLE_GROUPS];
    uint64_t last;

    if (G_LIKELY(atomic_load_explicit(&group->number, memory_order_acquire) ==
                 number))
        return group;
    last = atomic_load(&table->last_group);
    if (number > last)
        return NULL;
    group = group_find(table, number);
    if (!group && last == UINT64_MAX)
        group = group_add(table, handle, number);
    return group;
}

/* The histogram at a place of the pool, which is zero. NULL: no memory. */
static _Atomic uint64_t *pool_get(table_t *table, uint32_t place)
{
    _Atomic uint64_t *histogram = atomic_load(&table->pool[place]),
                     *other = NULL;

    if (histogram)
        return histogram;
    histogram = calloc(HISTOGRAM_BUCKETS, sizeof *histogram);
    if (!histogram ||
        atomic_compare_exchange_strong(&table->pool[place], &other, histogram))
        return histogram;
    free((void *)histogram);
    return other;
}

/* Gives a new row its histogram. False: there is no room. */
static bool row_set_histogram(table_t *table, row_t *row, row_kind_t kind)
{
    const uint32_t most = kind == ROW_SIZE ? TABLE_SIZES : TABLE_HISTOGRAMS;
    uint32_t used = atomic_load(&table->histograms);
    _Atomic uint64_t *histogram;

    if (kind == ROW_PEER || kind == ROW_PHASE)
        return true;
    do
        if (used >= most)
            return false;
    while (!atomic_compare_exchange_weak(&table->histograms, &used, used + 1));
    histogram = pool_get(table, used);
    atomic_store(&row->histogram, histogram);
    return histogram != NULL;
}

/* Fills a free place that this thread has taken. */
static bool row_fill(table_t *table, row_t *row, uint64_t key, row_key_t from)
{
    if (!row_set_histogram(table, row, from.kind)) {
        atomic_store(&row->key, 0);
        return false;
    }
    atomic_store(&row->value, from.value);
    atomic_store(&row->order, atomic_fetch_add(&table->rows_used, 1) + 1);
    atomic_store(&row->min_ns, INT64_MAX);
    atomic_store_explicit(&row->key, key, memory_order_release);
    return true;
}

row_t *dscomm_priv_table_row(table_t *table, row_key_t from)
{
    const uint64_t key = key_pack(from);
    const uint32_t first = key_hash(key, from.value);

    for (uint32_t i = 0; i < PROBES; i++) {
        row_t *row = &table->rows[(first + i) % TABLE_ROWS];
        uint64_t found = atomic_load_explicit(&row->key, memory_order_acquire);

        if (found == key &&
            atomic_load_explicit(&row->value, memory_order_relaxed) ==
                from.value)
            return row;
        if (found)
            continue;
        if (atomic_compare_exchange_strong(&row->key, &found, KEY_BUSY))
            return row_fill(table, row, key, from) ? row : NULL;
    }
    return NULL;
}

row_t *dscomm_priv_table_size(table_t *table, row_key_t key, uint64_t bytes)
{
    row_t *row;

    key.kind = ROW_SIZE;
    key.value = bytes;
    row = dscomm_priv_table_row(table, key);
    if (row)
        return row;
    key.kind = ROW_CLASS;
    key.value = size_class(bytes);
    return dscomm_priv_table_row(table, key);
}

static void counter_add(_Atomic uint64_t *number, uint64_t amount)
{
    atomic_fetch_add_explicit(number, amount, memory_order_relaxed);
}

static void row_add_extremes(row_t *row, int64_t ns)
{
    int64_t old = atomic_load_explicit(&row->min_ns, memory_order_relaxed);

    while (ns < old && !atomic_compare_exchange_weak(&row->min_ns, &old, ns))
        ;
    old = atomic_load_explicit(&row->max_ns, memory_order_relaxed);
    while (ns > old && !atomic_compare_exchange_weak(&row->max_ns, &old, ns))
        ;
}

static void row_count(row_t *row, uint64_t bytes, int64_t ns)
{
    _Atomic uint64_t *histogram =
        atomic_load_explicit(&row->histogram, memory_order_relaxed);

    if (histogram) {
        counter_add(&histogram[histogram_bucket(ns)], 1);
        row_add_extremes(row, ns);
    } else {
        counter_add(&row->count, 1);
    }
    if (dscomm_priv_row_key(row).kind != ROW_SIZE)
        counter_add(&row->bytes, bytes);
}

void dscomm_priv_row_add(row_t *row, uint64_t bytes, int64_t ns)
{
    atomic_fetch_add_explicit(&row->total_ns, ns, memory_order_relaxed);
    row_count(row, bytes, ns);
}

void dscomm_priv_row_add_blocked(row_t *row, uint64_t bytes, int64_t ns)
{
    atomic_fetch_add_explicit(&row->blocked_ns, ns, memory_order_relaxed);
    row_count(row, bytes, ns);
}

void dscomm_priv_row_add_encoded(row_t *row, const dscomm_note_t *note)
{
    dscomm_priv_row_add(row, note->bytes, note->nanoseconds);
    counter_add(&row->sent, note->sent_bytes);
    counter_add(&row->plain, note->plain_bytes);
}

void dscomm_priv_table_reset(table_t *table, const group_t *group)
{
    for (int i = 0; i < TABLE_ROWS; i++) {
        row_t *row = &table->rows[i];
        const row_key_t key = dscomm_priv_row_key(row);

        if (atomic_load(&row->key) <= KEY_BUSY)
            continue;
        if (!group ||
            (key.kind != ROW_RANGE && &table->groups[key.group] == group))
            row_reset(row);
    }
    if (!group)
        atomic_store(&table->dropped, 0);
}
