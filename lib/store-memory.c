/* SPDX-License-Identifier: BSD-3-Clause */
/* memory://: a table behind a mutex, for the threads of one process. */
#include "config.h"

#include "lib/store-table.h"
#include "lib/store.h"

#include <string.h>

typedef struct {
    dscomm_priv_store_t head;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a key was set */
    dscomm_priv_table_t *table;
} memory_t;

static GBytes *key_of(const char *key)
{
    return g_bytes_new_static(key, strlen(key));
}

static memory_t *lock(dscomm_priv_store_t *self)
{
    memory_t *memory = (memory_t *)self;

    pthread_mutex_lock(&memory->mutex);
    return memory;
}

/* Stores value, takes over its reference, and wakes who waits. */
static dscomm_status_t store(memory_t *memory, GBytes *key, GBytes *value)
{
    dscomm_status_t status = dscomm_priv_table_set(memory->table, key, value);

    g_bytes_unref(value);
    pthread_cond_broadcast(&memory->changed);
    return status;
}

static GBytes *copy_of(memory_t *memory, const void *data, size_t size)
{
    return dscomm_priv_budget_copy(dscomm_priv_table_budget(memory->table),
                                   data, size);
}

static void memory_close(dscomm_priv_store_t *self)
{
    memory_t *memory = (memory_t *)self;

    dscomm_priv_table_free(memory->table);
    pthread_cond_destroy(&memory->changed);
    pthread_mutex_destroy(&memory->mutex);
    g_free(memory);
}

static dscomm_status_t memory_set(dscomm_priv_store_t *self, const char *key,
                                  const void *data, size_t size,
                                  dscomm_priv_deadline_t deadline)
{
    GBytes *name = key_of(key), *value;
    memory_t *memory = lock(self);
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;

    (void)deadline;
    value = copy_of(memory, data, size);
    if (value)
        status = store(memory, name, value);
    pthread_mutex_unlock(&memory->mutex);
    g_bytes_unref(name);
    return status;
}

/* Whether all are there; tells which, unless present is NULL. */
static gboolean all_present(memory_t *memory, GBytes *const *names,
                            size_t count, uint8_t *present)
{
    gboolean all = TRUE;

    for (size_t i = 0; i < count && (all || present); i++) {
        gboolean here = dscomm_priv_table_get(memory->table, names[i]) != NULL;

        if (present)
            present[i] = here != 0;
        all = all && here;
    }
    return all;
}

static dscomm_status_t wait_keys(memory_t *memory, const char *const *keys,
                                 GBytes *const *names, size_t count,
                                 dscomm_priv_deadline_t deadline)
{
    dscomm_status_t status;
    gboolean in_time = TRUE;
    uint8_t *present;

    while (!all_present(memory, names, count, NULL)) {
        if (!in_time)
            break;
        in_time =
            dscomm_priv_cond_wait(&memory->changed, &memory->mutex, deadline);
    }
    if (in_time || all_present(memory, names, count, NULL))
        return DSCOMM_OK;
    present = g_try_malloc(count);
    if (present)
        all_present(memory, names, count, present);
    status = dscomm_priv_fail_missing(keys, present, count, deadline);
    g_free(present);
    return status;
}

static dscomm_status_t copy_values(memory_t *memory, GBytes *const *names,
                                   size_t count, void **ret_values,
                                   size_t *ret_sizes)
{
    for (size_t i = 0; i < count; i++) {
        GBytes *value = dscomm_priv_table_get(memory->table, names[i]);
        gsize size;
        const void *data = g_bytes_get_data(value, &size);

        ret_values[i] = dscomm_priv_value(data, size);
        if (!ret_values[i]) {
            dscomm_priv_values_drop(ret_values, i);
            return DSCOMM_ERR_NO_MEMORY;
        }
        ret_sizes[i] = size;
    }
    return DSCOMM_OK;
}

static dscomm_status_t memory_get(dscomm_priv_store_t *self,
                                  const char *const *keys, size_t count,
                                  dscomm_priv_deadline_t deadline,
                                  void **ret_values, size_t *ret_sizes)
{
    GBytes **names = g_new(GBytes *, count);
    dscomm_status_t status;
    memory_t *memory;

    for (size_t i = 0; i < count; i++)
        names[i] = key_of(keys[i]);
    memory = lock(self);
    status = wait_keys(memory, keys, names, count, deadline);
    if (!status && ret_values)
        status = copy_values(memory, names, count, ret_values, ret_sizes);
    pthread_mutex_unlock(&memory->mutex);
    for (size_t i = 0; i < count; i++)
        g_bytes_unref(names[i]);
    g_free(names);
    return status;
}

static dscomm_status_t memory_add(dscomm_priv_store_t *self, const char *key,
                                  int64_t delta,
                                  dscomm_priv_deadline_t deadline,
                                  int64_t *ret_sum)
{
    GBytes *name = key_of(key), *text;
    memory_t *memory = lock(self);
    dscomm_status_t status;

    (void)deadline;
    status = dscomm_priv_table_sum(memory->table, name, delta, ret_sum, &text);
    if (!status)
        status = store(memory, name, text);
    pthread_mutex_unlock(&memory->mutex);
    g_bytes_unref(name);
    return status;
}

static dscomm_status_t memory_compare_set(dscomm_priv_store_t *self,
                                          const char *key,
                                          dscomm_priv_data_t before,
                                          dscomm_priv_data_t after,
                                          dscomm_priv_deadline_t deadline,
                                          void **ret_value, size_t *ret_size)
{
    GBytes *expected = g_bytes_new_static(before.data, before.size);
    GBytes *desired = g_bytes_new_static(after.data, after.size);
    GBytes *name = key_of(key), *answer, *own = NULL;
    memory_t *memory = lock(self);
    dscomm_status_t status = DSCOMM_OK;
    gboolean replace;
    const void *data;
    void *value;
    gsize size;

    (void)deadline;
    answer = dscomm_priv_table_compare(memory->table, name, expected, desired,
                                       &replace);
    if (!answer)
        answer = g_bytes_ref(expected);
    data = g_bytes_get_data(answer, &size);
    value = dscomm_priv_value(data, size);
    if (value && replace)
        own = copy_of(memory, data, size); /* desired is the caller's */
    if (!value || (replace && !own))
        status = DSCOMM_ERR_NO_MEMORY;
    else if (replace)
        status = store(memory, name, own);
    g_bytes_unref(answer);
    pthread_mutex_unlock(&memory->mutex);
    g_bytes_unref(name);
    g_bytes_unref(expected);
    g_bytes_unref(desired);
    if (status) {
        g_free(value);
        return status;
    }
    *ret_value = value;
    *ret_size = size;
    return DSCOMM_OK;
}

static dscomm_status_t memory_append(dscomm_priv_store_t *self, const char *key,
                                     const void *data, size_t size,
                                     dscomm_priv_deadline_t deadline)
{
    GBytes *name = key_of(key), *value;
    memory_t *memory = lock(self);
    dscomm_status_t status;

    (void)deadline;
    status = dscomm_priv_table_join(memory->table, name, data, size, &value);
    if (!status)
        status = store(memory, name, value);
    pthread_mutex_unlock(&memory->mutex);
    g_bytes_unref(name);
    return status;
}

static dscomm_status_t memory_remove(dscomm_priv_store_t *self, const char *key,
                                     dscomm_priv_deadline_t deadline,
                                     int *ret_deleted)
{
    GBytes *name = key_of(key);
    memory_t *memory = lock(self);

    (void)deadline;
    *ret_deleted = dscomm_priv_table_remove(memory->table, name) ? 1 : 0;
    pthread_mutex_unlock(&memory->mutex);
    g_bytes_unref(name);
    return DSCOMM_OK;
}

static dscomm_status_t memory_check(dscomm_priv_store_t *self,
                                    const char *const *keys, size_t count,
                                    dscomm_priv_deadline_t deadline,
                                    int *ret_present)
{
    memory_t *memory = lock(self);
    int present = 1;

    (void)deadline;
    for (size_t i = 0; i < count && present; i++) {
        GBytes *name = key_of(keys[i]);

        present = dscomm_priv_table_get(memory->table, name) != NULL;
        g_bytes_unref(name);
    }
    pthread_mutex_unlock(&memory->mutex);
    *ret_present = present;
    return DSCOMM_OK;
}

static dscomm_status_t memory_num_keys(dscomm_priv_store_t *self,
                                       dscomm_priv_deadline_t deadline,
                                       int64_t *ret_count)
{
    memory_t *memory = lock(self);

    (void)deadline;
    *ret_count = (int64_t)dscomm_priv_table_count(memory->table);
    pthread_mutex_unlock(&memory->mutex);
    return DSCOMM_OK;
}

static const dscomm_priv_store_ops_t ops = {
    .close = memory_close,
    .set = memory_set,
    .get = memory_get,
    .add = memory_add,
    .compare_set = memory_compare_set,
    .append = memory_append,
    .remove = memory_remove,
    .check = memory_check,
    .num_keys = memory_num_keys,
};

dscomm_status_t dscomm_priv_store_memory(dscomm_priv_store_t **ret_store)
{
    memory_t *memory = g_new(memory_t, 1);

    memory->head.ops = &ops;
    pthread_mutex_init(&memory->mutex, NULL);
    dscomm_priv_cond_init(&memory->changed);
    memory->table = dscomm_priv_table_new(DSCOMM_STORE_TOTAL_MAX);
    *ret_store = &memory->head;
    return DSCOMM_OK;
}
