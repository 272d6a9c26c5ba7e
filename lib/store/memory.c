/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores with a table in this process, and memory:// among them: a table behind
 * a mutex, for the threads of one process. */
#include "config.h"

#include "lib/store/local.h"

#include "lib/base/status.h"

typedef dscomm_priv_local_t local_t;
typedef dscomm_priv_bytes_t bytes_t;

/* Operations on any such table */

bytes_t *dscomm_priv_local_find(const local_t *self, const char *key)
{
    return dscomm_priv_table_get(self->table, dscomm_priv_data_text(key));
}

size_t dscomm_priv_local_present(const local_t *self, const char *const *keys,
                                 size_t count, uint8_t *present)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        present[i] = dscomm_priv_local_find(self, keys[i]) != NULL;
        found += present[i];
    }
    return found;
}

dscomm_status_t dscomm_priv_local_copy(const local_t *self,
                                       const char *const *keys, size_t count,
                                       void **ret_values, size_t *ret_sizes)
{
    for (size_t i = 0; i < count; i++) {
        const dscomm_priv_data_t value =
            dscomm_priv_local_find(self, keys[i])->data;

        ret_values[i] = dscomm_priv_value(value.data, value.size);
        if (!ret_values[i]) {
            dscomm_priv_values_drop(ret_values, i);
            return DSCOMM_ERR_NO_MEMORY;
        }
        ret_sizes[i] = value.size;
    }
    return DSCOMM_OK;
}

/* Stores a copy of data. */
static dscomm_status_t local_put(local_t *self, const char *key,
                                 dscomm_priv_data_t data)
{
    bytes_t *value = dscomm_priv_budget_copy(
        dscomm_priv_table_budget(self->table), data.data, data.size);

    return value ? self->put(self, key, value) : DSCOMM_ERR_NO_MEMORY;
}

dscomm_status_t dscomm_priv_local_set(dscomm_priv_store_t *store,
                                      const char *key, const void *value,
                                      size_t size,
                                      dscomm_priv_deadline_t deadline)
{
    local_t *self = (local_t *)store;
    dscomm_status_t status = self->enter(self, true, deadline);

    if (status)
        return status;
    status = local_put(self, key, (dscomm_priv_data_t){value, size});
    self->leave(self);
    return status;
}

dscomm_status_t dscomm_priv_local_add(dscomm_priv_store_t *store,
                                      const char *key, int64_t delta,
                                      dscomm_priv_deadline_t deadline,
                                      int64_t *ret_sum)
{
    local_t *self = (local_t *)store;
    dscomm_status_t status = self->enter(self, true, deadline);
    bytes_t *text;

    if (status)
        return status;
    status = dscomm_priv_table_sum(self->table, dscomm_priv_data_text(key),
                                   delta, ret_sum, &text);
    if (!status)
        status = self->put(self, key, text);
    self->leave(self);
    return status;
}

dscomm_status_t dscomm_priv_local_compare_set(
    dscomm_priv_store_t *store, const char *key, dscomm_priv_data_t expected,
    dscomm_priv_data_t desired, dscomm_priv_deadline_t deadline,
    void **ret_value, size_t *ret_size)
{
    local_t *self = (local_t *)store;
    dscomm_status_t status = self->enter(self, true, deadline);
    dscomm_priv_data_t answer = desired;
    bytes_t *found;
    bool replace;
    void *value;

    if (status)
        return status;
    replace = dscomm_priv_table_compare(self->table, dscomm_priv_data_text(key),
                                        expected, &found);
    if (!replace)
        answer = found ? found->data : expected;
    value = dscomm_priv_value(answer.data, answer.size);
    if (!value)
        status = DSCOMM_ERR_NO_MEMORY;
    else if (replace)
        status = local_put(self, key, desired);
    self->leave(self);
    if (status) {
        g_free(value);
        return status;
    }
    *ret_value = value;
    *ret_size = answer.size;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_local_append(dscomm_priv_store_t *store,
                                         const char *key, const void *value,
                                         size_t size,
                                         dscomm_priv_deadline_t deadline)
{
    local_t *self = (local_t *)store;
    dscomm_status_t status = self->enter(self, true, deadline);
    bytes_t *joined;

    if (status)
        return status;
    status = dscomm_priv_table_join(self->table, dscomm_priv_data_text(key),
                                    (dscomm_priv_data_t){value, size}, &joined);
    if (!status)
        status = self->put(self, key, joined);
    self->leave(self);
    return status;
}

dscomm_status_t dscomm_priv_local_remove(dscomm_priv_store_t *store,
                                         const char *key,
                                         dscomm_priv_deadline_t deadline,
                                         int *ret_deleted)
{
    local_t *self = (local_t *)store;
    dscomm_status_t status = self->enter(self, true, deadline);

    if (status)
        return status;
    *ret_deleted = dscomm_priv_local_find(self, key) != NULL;
    if (*ret_deleted)
        status = self->put(self, key, NULL);
    self->leave(self);
    return status;
}

dscomm_status_t dscomm_priv_local_look(dscomm_priv_store_t *store,
                                       const char *const *keys, size_t count,
                                       dscomm_priv_deadline_t deadline,
                                       uint8_t *ret_present)
{
    local_t *self = (local_t *)store;
    dscomm_status_t status = self->enter(self, false, deadline);

    if (status)
        return status;
    dscomm_priv_local_present(self, keys, count, ret_present);
    self->leave(self);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_local_num_keys(dscomm_priv_store_t *store,
                                           dscomm_priv_deadline_t deadline,
                                           int64_t *ret_count)
{
    local_t *self = (local_t *)store;
    dscomm_status_t status = self->enter(self, false, deadline);

    if (status)
        return status;
    *ret_count = (int64_t)dscomm_priv_table_count(self->table) -
                 (self->count_own ? self->count_own(self) : 0);
    self->leave(self);
    return DSCOMM_OK;
}

/* memory:// */

typedef struct {
    local_t local;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a key was set */
} memory_t;

static dscomm_status_t memory_enter(local_t *self, bool exclusive,
                                    dscomm_priv_deadline_t deadline)
{
    (void)exclusive;
    (void)deadline;
    pthread_mutex_lock(&((memory_t *)self)->mutex);
    return DSCOMM_OK;
}

static void memory_leave(local_t *self)
{
    pthread_mutex_unlock(&((memory_t *)self)->mutex);
}

static dscomm_status_t memory_put(local_t *self, const char *key,
                                  bytes_t *value)
{
    const dscomm_priv_data_t name = dscomm_priv_data_text(key);
    dscomm_status_t status = DSCOMM_OK;

    if (value)
        status = dscomm_priv_table_set(self->table, name, value);
    else
        dscomm_priv_table_remove(self->table, name);
    dscomm_priv_bytes_unref(value);
    pthread_cond_broadcast(&((memory_t *)self)->changed);
    return status;
}

static void memory_close(dscomm_priv_store_t *self)
{
    memory_t *memory = (memory_t *)self;

    dscomm_priv_table_free(memory->local.table);
    pthread_cond_destroy(&memory->changed);
    pthread_mutex_destroy(&memory->mutex);
    g_free(memory);
}

static dscomm_status_t wait_keys(memory_t *memory, const char *const *keys,
                                 size_t count, dscomm_priv_deadline_t deadline,
                                 uint8_t *present)
{
    bool in_time = true;

    while (dscomm_priv_local_present(&memory->local, keys, count, present) <
           count) {
        if (!in_time)
            return dscomm_priv_fail_missing(keys, present, count, deadline);
        in_time =
            dscomm_priv_cond_wait(&memory->changed, &memory->mutex, deadline);
    }
    return DSCOMM_OK;
}

static dscomm_status_t memory_get(dscomm_priv_store_t *self,
                                  const char *const *keys, size_t count,
                                  dscomm_priv_deadline_t deadline,
                                  void **ret_values, size_t *ret_sizes)
{
    memory_t *memory = (memory_t *)self;
    uint8_t *present = g_try_malloc(count);
    dscomm_status_t status;

    if (!present)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %zu keys",
                           count);
    pthread_mutex_lock(&memory->mutex);
    status = wait_keys(memory, keys, count, deadline, present);
    if (!status && ret_values)
        status = dscomm_priv_local_copy(&memory->local, keys, count, ret_values,
                                        ret_sizes);
    pthread_mutex_unlock(&memory->mutex);
    g_free(present);
    return status;
}

static const dscomm_priv_store_ops_t ops = {
    .close = memory_close,
    .get = memory_get,
    LOCAL_OPS,
};

dscomm_status_t dscomm_priv_store_memory(dscomm_priv_store_t **ret_store)
{
    memory_t *memory = g_try_new0(memory_t, 1);

    if (!memory)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a store");
    memory->local =
        (local_t){.head.ops = &ops,
                  .enter = memory_enter,
                  .leave = memory_leave,
                  .put = memory_put,
                  .table = dscomm_priv_table_new(DSCOMM_STORE_TOTAL_MAX)};
    if (!memory->local.table) {
        g_free(memory);
        return DSCOMM_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&memory->mutex, NULL);
    dscomm_priv_cond_init(&memory->changed);
    *ret_store = &memory->local.head;
    return DSCOMM_OK;
}
