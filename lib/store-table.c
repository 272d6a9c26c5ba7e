/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table of byte strings and the rules of TCPStore's commands. */
#include "config.h"

#include "lib/store-table.h"

#include "lib/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct dscomm_priv_table {
    GHashTable *values; /* GBytes -> GBytes */
    dscomm_priv_budget_t budget;
};

static void unref_bytes(gpointer bytes)
{
    g_bytes_unref(bytes);
}

dscomm_priv_table_t *dscomm_priv_table_new(size_t most)
{
    dscomm_priv_table_t *table = g_new0(dscomm_priv_table_t, 1);

    table->budget.most = most;
    table->values = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                          unref_bytes, unref_bytes);
    return table;
}

void dscomm_priv_table_free(dscomm_priv_table_t *table)
{
    if (!table)
        return;
    g_hash_table_unref(table->values);
    g_free(table);
}

dscomm_priv_budget_t *dscomm_priv_table_budget(dscomm_priv_table_t *table)
{
    return &table->budget;
}

GBytes *dscomm_priv_table_get(const dscomm_priv_table_t *table, GBytes *key)
{
    return g_hash_table_lookup(table->values, key);
}

dscomm_status_t dscomm_priv_table_set(dscomm_priv_table_t *table, GBytes *key,
                                      GBytes *value)
{
    gpointer own;

    if (g_hash_table_lookup_extended(table->values, key, &own, NULL)) {
        g_bytes_ref(own);
    } else {
        gsize size;
        const void *data = g_bytes_get_data(key, &size);

        own = dscomm_priv_budget_copy(&table->budget, data, size);
        if (!own)
            return DSCOMM_ERR_NO_MEMORY;
    }
    g_hash_table_replace(table->values, own, g_bytes_ref(value));
    return DSCOMM_OK;
}

gboolean dscomm_priv_table_remove(dscomm_priv_table_t *table, GBytes *key)
{
    return g_hash_table_remove(table->values, key);
}

size_t dscomm_priv_table_count(const dscomm_priv_table_t *table)
{
    return g_hash_table_size(table->values);
}

GPtrArray *dscomm_priv_table_keys(const dscomm_priv_table_t *table)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(unref_bytes);
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, table->values);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_ptr_array_add(keys, g_bytes_ref(key));
    return keys;
}

/* The whole text must be one number; torch, which uses stoll, takes "12 apples"
 * for 12. */
static gboolean number_of(GBytes *value, int64_t *ret_number)
{
    gsize size;
    const char *data = g_bytes_get_data(value, &size);
    char text[24];

    if (!size || size >= sizeof text)
        return FALSE;
    memcpy(text, data, size);
    text[size] = '\0';
    return strlen(text) == size &&
           g_ascii_string_to_signed(text, 10, INT64_MIN, INT64_MAX, ret_number,
                                    NULL);
}

static const char *quote(GBytes *bytes, size_t skip, char *buffer, size_t room)
{
    gsize size;
    const char *data = g_bytes_get_data(bytes, &size);
    char text[64];

    skip = MIN(skip, size);
    g_strlcpy(text, "", sizeof text);
    if (size > skip) {
        size = MIN(size - skip, sizeof text - 1);
        memcpy(text, data + skip, size);
        text[size] = '\0';
    }
    return dscomm_priv_quote(text, buffer, room);
}

dscomm_status_t dscomm_priv_table_sum(dscomm_priv_table_t *table, GBytes *key,
                                      int64_t delta, int64_t *ret_sum,
                                      GBytes **ret_text)
{
    GBytes *value = dscomm_priv_table_get(table, key);
    char text[24], name[64], shown[32];
    int64_t old = 0, sum;
    GBytes *made;

    if (value && !number_of(value, &old))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "add to key '%s': its value '%s' is no decimal "
                           "number of 64 bits",
                           quote(key, 1, name, sizeof name),
                           quote(value, 0, shown, sizeof shown));
    if (__builtin_add_overflow(old, delta, &sum))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "add %" PRId64 " to key '%s': the sum with %" PRId64
                           " does not fit in 64 bits",
                           delta, quote(key, 1, name, sizeof name), old);
    snprintf(text, sizeof text, "%" PRId64, sum);
    made = dscomm_priv_budget_copy(&table->budget, text, strlen(text));
    if (!made)
        return DSCOMM_ERR_NO_MEMORY;
    *ret_sum = sum;
    *ret_text = made;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_table_join(dscomm_priv_table_t *table, GBytes *key,
                                       const void *data, size_t size,
                                       GBytes **ret_value)
{
    GBytes *old = dscomm_priv_table_get(table, key);
    gsize old_size = old ? g_bytes_get_size(old) : 0, cost;
    uint8_t *joined;
    char name[64];

    if (old_size + size > DSCOMM_STORE_VALUE_MAX)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "append %zu bytes to the %zu of key '%s': a value "
                           "has at most %zu",
                           size, old_size, quote(key, 1, name, sizeof name),
                           DSCOMM_STORE_VALUE_MAX);
    cost = old_size + size + BUDGET_COPY_COST;
    if (!dscomm_priv_budget_has_room(&table->budget, cost))
        return dscomm_priv_budget_fail(&table->budget, cost);
    joined = g_try_malloc(old_size + size + 1);
    if (!joined)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for a value of %zu bytes",
                           old_size + size);
    if (old_size)
        memcpy(joined, g_bytes_get_data(old, NULL), old_size);
    if (size)
        memcpy(joined + old_size, data, size);
    *ret_value =
        dscomm_priv_budget_take(&table->budget, joined, old_size + size, cost);
    return DSCOMM_OK;
}

GBytes *dscomm_priv_table_compare(const dscomm_priv_table_t *table, GBytes *key,
                                  GBytes *expected, GBytes *desired,
                                  gboolean *ret_store)
{
    GBytes *value = dscomm_priv_table_get(table, key);

    *ret_store = value ? g_bytes_equal(value, expected)
                       : g_bytes_get_size(expected) == 0;
    if (*ret_store)
        return g_bytes_ref(desired);
    return value ? g_bytes_ref(value) : NULL;
}
