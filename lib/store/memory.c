/* SPDX-License-Identifier: BSD-3-Clause */
/* memory://: a table behind a mutex, for the threads of one process. */
#include "config.h"

#include "lib/store/tcp/table.h"
#include "lib/store/store.h"

#include "lib/base/status.h"

typedef struct {
    dscomm_priv_store_t head;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a key was set */
    dscomm_priv_table_t *table;
} memory_t;

static memory_t *lock(dscomm_priv_store_t *self)
{
    memory_t *memory = (memory_t *)self;

    pthread_mutex_lock(&memory->mutex);
    return memory;
}

/* Stores value, takes over its reference, and wakes who waits. */
static dscomm_status_t store(memory_t *memory, const char *key,
                             dscomm_priv_bytes_t *value)
{
    dscomm_status_t status =
        dscomm_priv_table_set(memory->table, dscomm_priv_data_text(key), value);

    dscomm_priv_bytes_unref(value);
    pthread_cond_broadcast(&memory->changed);
    return status;
}

static dscomm_priv_bytes_t *copy_of(memory_t *memory, const void *data,
                                    size_t size)
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
    memory_t *memory = lock(self);
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;
    dscomm_priv_bytes_t *value = copy_of(memory, data, size);

    (void)deadline;
    if (value)
        status = store(memory, key, value);
    pthread_mutex_unlock(&memory->mutex);
    return status;
}

static dscomm_priv_bytes_t *get(const memory_t *memory, const char *key)
{
    return dscomm_priv_table_get(memory->table, dscomm_priv_data_text(key));
}

/* Whether all are there; tells which, unless present is NULL. */
static bool all_present(const memory_t *memory, const char *const *keys,
                        size_t count, uint8_t *present)
{
    bool all = true;

    for (size_t i = 0; i < count && (all || present); i++) {
        const bool here = get(memory, keys[i]) != NULL;

        if (present)
            present[i] = here;
        all = all && here;
    }
    return all;
}

static dscomm_status_t wait_keys(memory_t *memory, const char *const *keys,
                                 size_t count, dscomm_priv_deadline_t deadline)
{
    dscomm_status_t status;
    gboolean in_time = TRUE;
    uint8_t *present;

    while (!all_present(memory, keys, count, NULL)) {
        if (!in_time)
            break;
        in_time =
            dscomm_priv_cond_wait(&memory->changed, &memory->mutex, deadline);
    }
    if (in_time || all_present(memory, keys, count, NULL))
        return DSCOMM_OK;
    present = g_try_malloc(count);
    if (present)
        all_present(memory, keys, count, present);
    status = dscomm_priv_fail_missing(keys, present, count, deadline);
    g_free(present);
    return status;
}

static dscomm_status_t copy_values(const memory_t *memory,
                                   const char *const *keys, size_t count,
                                   void **ret_values, size_t *ret_sizes)
{
    for (size_t i = 0; i < count; i++) {
        const dscomm_priv_data_t value = get(memory, keys[i])->data;

        ret_values[i] = dscomm_priv_value(value.data, value.size);
        if (!ret_values[i]) {
            dscomm_priv_values_drop(ret_values, i);
            return DSCOMM_ERR_NO_MEMORY;
        }
        ret_sizes[i] = value.size;
    }
    return DSCOMM_OK;
}

static dscomm_status_t memory_get(dscomm_priv_store_t *self,
                                  const char *const *keys, size_t count,
                                  dscomm_priv_deadline_t deadline,
                                  void **ret_values, size_t *ret_sizes)
{
    memory_t *memory = lock(self);
    dscomm_status_t status = wait_keys(memory, keys, count, deadline);

    if (!status && ret_values)
        status = copy_values(memory, keys, count, ret_values, ret_sizes);
    pthread_mutex_unlock(&memory->mutex);
    return status;
}

static dscomm_status_t memory_add(dscomm_priv_store_t *self, const char *key,
                                  int64_t delta,
                                  dscomm_priv_deadline_t deadline,
                                  int64_t *ret_sum)
{
    memory_t *memory = lock(self);
    dscomm_priv_bytes_t *text;
    dscomm_status_t status;

    (void)deadline;
    status = dscomm_priv_table_sum(memory->table, dscomm_priv_data_text(key),
                                   delta, ret_sum, &text);
    if (!status)
        status = store(memory, key, text);
    pthread_mutex_unlock(&memory->mutex);
    return status;
}

static dscomm_status_t memory_compare_set(dscomm_priv_store_t *self,
                                          const char *key,
                                          dscomm_priv_data_t before,
                                          dscomm_priv_data_t after,
                                          dscomm_priv_deadline_t deadline,
                                          void **ret_value, size_t *ret_size)
{
    memory_t *memory = lock(self);
    dscomm_priv_bytes_t *own = NULL, *found;
    dscomm_status_t status = DSCOMM_OK;
    dscomm_priv_data_t answer = after;
    const bool replace = dscomm_priv_table_compare(
        memory->table, dscomm_priv_data_text(key), before, &found);
    void *value;

    (void)deadline;
    if (!replace)
        answer = found ? found->data : before;
    value = dscomm_priv_value(answer.data, answer.size);
    if (value && replace)
        own = copy_of(memory, after.data, after.size);
    if (!value || (replace && !own))
        status = DSCOMM_ERR_NO_MEMORY;
    else if (replace)
        status = store(memory, key, own);
    pthread_mutex_unlock(&memory->mutex);
    if (status) {
        g_free(value);
        return status;
    }
    *ret_value = value;
    *ret_size = answer.size;
    return DSCOMM_OK;
}

static dscomm_status_t memory_append(dscomm_priv_store_t *self, const char *key,
                                     const void *data, size_t size,
                                     dscomm_priv_deadline_t deadline)
{
    memory_t *memory = lock(self);
    dscomm_status_t status;

    (void)deadline;
    status = dscomm_priv_table_append(memory->table, dscomm_priv_data_text(key),
                                      (dscomm_priv_data_t){data, size});
    pthread_cond_broadcast(&memory->changed);
    pthread_mutex_unlock(&memory->mutex);
    return status;
}

static dscomm_status_t memory_remove(dscomm_priv_store_t *self, const char *key,
                                     dscomm_priv_deadline_t deadline,
                                     int *ret_deleted)
{
    memory_t *memory = lock(self);

    (void)deadline;
    *ret_deleted =
        dscomm_priv_table_remove(memory->table, dscomm_priv_data_text(key));
    pthread_mutex_unlock(&memory->mutex);
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
    for (size_t i = 0; i < count && present; i++)
        present = get(memory, keys[i]) != NULL;
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
    memory_t *memory = g_try_new0(memory_t, 1);

    if (!memory)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a store");
    memory->table = dscomm_priv_table_new(DSCOMM_STORE_TOTAL_MAX);
    if (!memory->table) {
        g_free(memory);
        return DSCOMM_ERR_NO_MEMORY;
    }
    memory->head.ops = &ops;
    pthread_mutex_init(&memory->mutex, NULL);
    dscomm_priv_cond_init(&memory->changed);
    *ret_store = &memory->head;
    return DSCOMM_OK;
}
