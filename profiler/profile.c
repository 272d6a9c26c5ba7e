/* SPDX-License-Identifier: BSD-3-Clause */
/* The entries of a profile, and its rows. */
#include "config.h"

#include "profiler/profiler.h"
#include "profiler/trace.h"

#include "lib/base/attr.h"

#include <string.h>

static guint entry_hash(gconstpointer key)
{
    const profile_entry_t *entry = key;

    return g_str_hash(entry->op) ^ g_str_hash(entry->group) << 1 ^
           g_str_hash(entry->site) << 2 ^ (guint)entry->kind << 28 ^
           (guint)entry->group_size << 16 ^ (guint)entry->value ^
           (guint)(entry->value >> 32);
}

static gboolean entry_equal(gconstpointer a, gconstpointer b)
{
    const profile_entry_t *x = a, *y = b;

    return x->kind == y->kind && x->coll == y->coll &&
           x->group_size == y->group_size && x->value == y->value &&
           !strcmp(x->op, y->op) && !strcmp(x->group, y->group) &&
           !strcmp(x->site, y->site);
}

static void entry_free(gpointer data)
{
    profile_entry_t *entry = data;

    g_array_unref(entry->histogram);
    g_free(entry);
}

static GHashTable *entries_new(void)
{
    return g_hash_table_new_full(entry_hash, entry_equal, entry_free, NULL);
}

dscomm_profile_t *dscomm_priv_profile_new(int world_size)
{
    dscomm_profile_t *profile = g_new0(dscomm_profile_t, 1);

    profile->world_size = world_size;
    profile->texts = g_string_chunk_new(4096);
    profile->entries = entries_new();
    profile->classes = entries_new();
    profile->missing = g_string_new(NULL);
    profile->traces = g_ptr_array_new();
    profile->arrivals =
        g_array_new(FALSE, FALSE, sizeof(dscomm_profile_arrival_t));
    profile->stragglers =
        g_array_new(FALSE, FALSE, sizeof(dscomm_profile_straggler_t));
    for (int i = 0; i < PROFILE_VIEWS; i++)
        profile->views[i] = g_ptr_array_new();
    return profile;
}

void dscomm_profile_free(dscomm_profile_t *profile)
{
    if (!profile)
        return;
    for (int i = 0; i < PROFILE_VIEWS; i++)
        g_ptr_array_unref(profile->views[i]);
    g_hash_table_unref(profile->entries);
    g_hash_table_unref(profile->classes);
    g_ptr_array_unref(profile->traces);
    g_array_unref(profile->arrivals);
    g_array_unref(profile->stragglers);
    g_string_chunk_free(profile->texts);
    g_string_free(profile->missing, TRUE);
    g_free(profile);
}

/* Adds the buckets of other to those of entry; both ascend. */
static void histogram_add(profile_entry_t *entry, const GArray *other)
{
    const GArray *old = entry->histogram;
    GArray *sum = g_array_sized_new(FALSE, FALSE, sizeof(profile_bucket_t),
                                    old->len + other->len);
    guint i = 0, j = 0;

    while (i < old->len || j < other->len) {
        const profile_bucket_t *a =
            i < old->len ? &g_array_index(old, profile_bucket_t, i) : NULL;
        const profile_bucket_t *b =
            j < other->len ? &g_array_index(other, profile_bucket_t, j) : NULL;
        const bool first = a && (!b || a->bucket <= b->bucket);
        const bool second = b && (!a || b->bucket <= a->bucket);
        const profile_bucket_t both = {
            .bucket = first ? a->bucket : b->bucket,
            .count = (first ? a->count : 0) + (second ? b->count : 0),
        };

        g_array_append_val(sum, both);
        i += first;
        j += second;
    }
    g_array_unref(entry->histogram);
    entry->histogram = sum;
}

/* The entry with this key in table, which is added if it is not there. */
static profile_entry_t *entry_get(dscomm_profile_t *profile, GHashTable *table,
                                  const profile_entry_t *key)
{
    profile_entry_t *entry = g_hash_table_lookup(table, key);

    if (entry)
        return entry;
    entry = g_new0(profile_entry_t, 1);
    entry->kind = key->kind;
    entry->coll = key->coll;
    entry->group_size = key->group_size;
    entry->value = key->value;
    entry->op = g_string_chunk_insert_const(profile->texts, key->op);
    entry->group = g_string_chunk_insert_const(profile->texts, key->group);
    entry->site = g_string_chunk_insert_const(profile->texts, key->site);
    entry->order = UINT64_MAX;
    entry->min_ns = INT64_MAX;
    entry->histogram = g_array_new(FALSE, FALSE, sizeof(profile_bucket_t));
    g_hash_table_add(table, entry);
    return entry;
}

static void entry_add(profile_entry_t *entry, const profile_entry_t *other)
{
    entry->order = MIN(entry->order, other->order);
    entry->count += other->count;
    entry->failed += other->failed;
    entry->bytes += other->bytes;
    entry->sent += other->sent;
    entry->plain += other->plain;
    entry->device_count += other->device_count;
    entry->device_ns = profile_time_sum(entry->device_ns, other->device_ns);
    entry->total_ns = profile_time_sum(entry->total_ns, other->total_ns);
    entry->waited_ns = profile_time_sum(entry->waited_ns, other->waited_ns);
    entry->min_ns = MIN(entry->min_ns, other->min_ns);
    entry->max_ns = MAX(entry->max_ns, other->max_ns);
    histogram_add(entry, other->histogram);
}

void dscomm_priv_profile_add(dscomm_profile_t *profile,
                             const profile_entry_t *other)
{
    profile_entry_t *entry = entry_get(profile, profile->entries, other);

    entry_add(entry, other);
    entry->ranks += other->ranks;
}

/* Adds an entry of one size, or of a class, to the entry of its class. */
static void class_add(dscomm_profile_t *profile, const profile_entry_t *from)
{
    profile_entry_t key = *from, *entry;

    key.kind = ROW_CLASS;
    if (from->kind == ROW_SIZE)
        key.value = size_class(from->value);
    entry = entry_get(profile, profile->classes, &key);
    entry_add(entry, from);
    /* Ranks of several sizes may be the same ones. */
    entry->ranks = MAX(entry->ranks, from->ranks);
}

static uint64_t entry_first(const profile_entry_t *entry)
{
    if (entry->kind == ROW_CLASS)
        return class_first((unsigned)entry->value);
    return entry->value;
}

static int entry_compare(gconstpointer a, gconstpointer b)
{
    const profile_entry_t *x = *(profile_entry_t *const *)a;
    const profile_entry_t *y = *(profile_entry_t *const *)b;
    const uint64_t first = entry_first(x), second = entry_first(y);
    int order = x->coll - y->coll;

    if (!order)
        order = strcmp(x->op, y->op);
    if (!order)
        order = strcmp(x->group, y->group);
    if (!order)
        order = x->group_size - y->group_size;
    if (!order)
        order = strcmp(x->site, y->site);
    if (!order)
        order = (first > second) - (first < second);
    return order ? order : (int)x->kind - (int)y->kind;
}

void dscomm_priv_profile_finish(dscomm_profile_t *profile)
{
    static const dscomm_profile_by_t views[] = {
        [ROW_SIZE] = DSCOMM_PROFILE_BY_SIZE,
        [ROW_CLASS] = DSCOMM_PROFILE_BY_SIZE,
        [ROW_PEER] = DSCOMM_PROFILE_BY_PEER,
        [ROW_RANGE] = DSCOMM_PROFILE_BY_RANGE,
        [ROW_CODEC] = DSCOMM_PROFILE_BY_CODEC,
        [ROW_PHASE] = DSCOMM_PROFILE_BY_PHASE,
    };
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, profile->entries);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const profile_entry_t *entry = key;

        if (views[entry->kind] == DSCOMM_PROFILE_BY_SIZE)
            class_add(profile, entry);
        g_ptr_array_add(profile->views[views[entry->kind]], key);
    }
    g_hash_table_iter_init(&iter, profile->classes);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_ptr_array_add(profile->views[DSCOMM_PROFILE_BY_CLASS], key);
    for (int i = 0; i < PROFILE_VIEWS; i++)
        g_ptr_array_sort(profile->views[i], entry_compare);
    dscomm_priv_trace_match(profile);
}

/* By the nearest rank: the smallest value that at least percent per cent of all
 * do not exceed. */
int64_t dscomm_priv_profile_percentile(const profile_entry_t *entry,
                                       unsigned percent)
{
    uint64_t all = 0, below = 0, rank;

    for (guint i = 0; i < entry->histogram->len; i++)
        all += g_array_index(entry->histogram, profile_bucket_t, i).count;
    rank = all / 100 * percent + (all % 100 * percent + 99) / 100;
    for (guint i = 0; i < entry->histogram->len; i++) {
        const profile_bucket_t *b =
            &g_array_index(entry->histogram, profile_bucket_t, i);

        below += b->count;
        if (below >= rank)
            return CLAMP(histogram_value(b->bucket), entry->min_ns,
                         MAX(entry->max_ns, entry->min_ns));
    }
    return 0;
}

double dscomm_priv_bus_factor(int coll, int ranks)
{
    const double n = ranks;

    switch (coll) {
    case DSCOMM_COLL_BROADCAST:
    case DSCOMM_COLL_REDUCE:
    case DSCOMM_COLL_SEND:
    case DSCOMM_COLL_RECV:
        return 1;
    case DSCOMM_COLL_ALL_REDUCE:
        return n > 0 ? 2 * (n - 1) / n : 0;
    case DSCOMM_COLL_ALL_GATHER:
    case DSCOMM_COLL_REDUCE_SCATTER:
    case DSCOMM_COLL_GATHER:
    case DSCOMM_COLL_SCATTER:
    case DSCOMM_COLL_ALL_TO_ALL:
    case DSCOMM_COLL_ALL_TO_ALL_V: /* if its own part is of mean length */
        return n > 0 ? (n - 1) / n : 0;
    default: /* a barrier, and _v calls whose bytes are this rank's own */
        return -1;
    }
}

static void row_set_bandwidth(const profile_entry_t *entry,
                              dscomm_profile_row_t *row)
{
    const double factor =
        dscomm_priv_bus_factor(entry->coll, entry->group_size);

    if (entry->kind == ROW_RANGE || entry->kind == ROW_PHASE || factor < 0 ||
        entry->total_ns <= 0)
        return;
    row->algbw = (double)entry->bytes * 1e9 / (double)entry->total_ns;
    row->busbw = row->algbw * factor;
}

static void row_set_bytes(const profile_entry_t *entry,
                          dscomm_profile_row_t *row)
{
    if (entry->kind != ROW_PEER && entry->kind != ROW_RANGE)
        row->bytes = row->bytes_most = entry_first(entry);
    if (entry->kind == ROW_CLASS)
        row->bytes_most = class_last((unsigned)entry->value);
    if (entry->kind == ROW_PHASE) {
        row->bytes = class_first((unsigned)(entry->value >> PHASE_BITS));
        row->bytes_most = class_last((unsigned)(entry->value >> PHASE_BITS));
    }
    row->sent_bytes = entry->sent;
    row->plain_bytes = entry->plain;
    row->saved_bytes = (int64_t)(entry->plain - entry->sent);
}

static void row_set_times(const profile_entry_t *entry,
                          dscomm_profile_row_t *row)
{
    row->total_ns = entry->total_ns;
    row->waited_ns = entry->waited_ns;
    row->device_count = entry->device_count;
    row->device_ns = entry->device_ns;
    if (!entry->count)
        return;
    row->mean_ns = (int64_t)((uint64_t)entry->total_ns / entry->count);
    if (entry->min_ns == INT64_MAX)
        return;
    row->min_ns = entry->min_ns;
    row->max_ns = entry->max_ns;
    row->p50_ns = dscomm_priv_profile_percentile(entry, 50);
    row->p99_ns = dscomm_priv_profile_percentile(entry, 99);
}

const char *dscomm_priv_phase_name(dscomm_phase_t phase)
{
    static const char *const phases[1 << PHASE_BITS] = {
        [DSCOMM_PHASE_OTHER] = "other",
        [DSCOMM_PHASE_COPY_IN] = "copy_in",
        [DSCOMM_PHASE_WAIT] = "wait",
        [DSCOMM_PHASE_REDUCE] = "reduce",
        [DSCOMM_PHASE_COPY_OUT] = "copy_out",
    };

    return phases[phase];
}

bool dscomm_priv_profile_get(const dscomm_profile_t *profile,
                             dscomm_profile_by_t by, size_t index,
                             dscomm_profile_row_t *ret_row)
{
    const GPtrArray *view = profile->views[by];
    const profile_entry_t *entry;
    bool encoded;

    if (index >= view->len)
        return false;
    entry = g_ptr_array_index(view, index);
    encoded = entry->kind == ROW_CODEC;
    *ret_row = (dscomm_profile_row_t){
        .size = sizeof *ret_row,
        .op = entry->op,
        .group = entry->group,
        .site = encoded ? "" : entry->site,
        .codec = encoded ? entry->site : "",
        .phase =
            entry->kind == ROW_PHASE
                ? dscomm_priv_phase_name((dscomm_phase_t)PHASE_OF(entry->value))
                : "",
        .group_size = entry->group_size,
        .peer = entry->kind == ROW_PEER ? (int)entry->value - 1 : -1,
        .ranks = MIN(entry->ranks, profile->ranks),
        .count = entry->count,
        .failed = entry->failed,
        .total_bytes = entry->bytes,
    };
    row_set_bytes(entry, ret_row);
    row_set_times(entry, ret_row);
    row_set_bandwidth(entry, ret_row);
    return true;
}

dscomm_status_t dscomm_profile_row(const dscomm_profile_t *profile,
                                   dscomm_profile_by_t by, size_t index,
                                   dscomm_profile_row_t *ret_row)
{
    const char *name = "dscomm_profile_row";
    dscomm_status_t status =
        dscomm_priv_info_check(name, "ret_row", (const size_t *)ret_row);
    dscomm_profile_row_t row;

    if (status < 0)
        return status;
    if (!profile || (unsigned)by >= PROFILE_VIEWS)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: profile is NULL, or by is %d, which is no "
                           "dscomm_profile_by_t",
                           name, (int)by);
    if (!dscomm_priv_profile_get(profile, by, index, &row))
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND, "%s: there is no row %zu",
                           name, index);
    dscomm_priv_info_copy(&row, sizeof row, ret_row);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_profile_info(const dscomm_profile_t *profile,
                                    dscomm_profile_info_t *ret_info)
{
    const char *name = "dscomm_profile_info";
    dscomm_status_t status =
        dscomm_priv_info_check(name, "ret_info", (const size_t *)ret_info);
    dscomm_profile_info_t info;

    if (status < 0)
        return status;
    if (!profile)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: profile is NULL", name);
    info = (dscomm_profile_info_t){
        .size = sizeof info,
        .ranks = profile->ranks,
        .world_size = profile->world_size,
        .missing = profile->missing->str,
        .dropped = profile->dropped,
    };
    for (guint i = 0; i < profile->traces->len; i++) {
        info.events += profile_trace(profile, i)->events->len;
        info.events_dropped += profile_trace(profile, i)->dropped;
    }
    dscomm_priv_info_copy(&info, sizeof info, ret_info);
    return DSCOMM_OK;
}

/* Copies member index of rows, of size bytes each, to ret_row. */
static dscomm_status_t array_row_copy(const char *name, const GArray *rows,
                                      size_t index, size_t size, void *ret_row)
{
    if (index >= rows->len)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND, "%s: there is no row %zu",
                           name, index);
    dscomm_priv_info_copy(rows->data + index * size, size, ret_row);
    return DSCOMM_OK;
}

dscomm_status_t
dscomm_profile_straggler(const dscomm_profile_t *profile, size_t index,
                         dscomm_profile_straggler_t *ret_straggler)
{
    const char *name = "dscomm_profile_straggler";
    dscomm_status_t status = dscomm_priv_info_check(
        name, "ret_straggler", (const size_t *)ret_straggler);

    if (status == DSCOMM_OK && !profile)
        status = dscomm_fail(DSCOMM_ERR_INVALID, "%s: profile is NULL", name);
    if (status < 0)
        return status;
    return array_row_copy(name, profile->stragglers, index,
                          sizeof(dscomm_profile_straggler_t), ret_straggler);
}

dscomm_status_t dscomm_profile_arrival(const dscomm_profile_t *profile,
                                       size_t index,
                                       dscomm_profile_arrival_t *ret_arrival)
{
    const char *name = "dscomm_profile_arrival";
    dscomm_status_t status = dscomm_priv_info_check(
        name, "ret_arrival", (const size_t *)ret_arrival);

    if (status == DSCOMM_OK && !profile)
        status = dscomm_fail(DSCOMM_ERR_INVALID, "%s: profile is NULL", name);
    if (status < 0)
        return status;
    return array_row_copy(name, profile->arrivals, index,
                          sizeof(dscomm_profile_arrival_t), ret_arrival);
}

void dscomm_priv_profile_miss(dscomm_profile_t *profile, int rank)
{
    g_string_append_printf(profile->missing, "%s%d",
                           profile->missing->len ? ", " : "", rank);
}
