/* SPDX-License-Identifier: BSD-3-Clause */
/* Code that the kinds of store share: waiting, values, and operations on a
 * table of this process. memory:// is such a table with a mutex, for the
 * threads of one process. */
#include "config.h"

#include "lib/store/memory.h"

#include "lib/base/status.h"
#include "lib/base/thread.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAMES_MAX 6 /* missing keys that a sentence names */

typedef dscomm_priv_local_t local_t;
typedef dscomm_priv_bytes_t bytes_t;
typedef dscomm_priv_request_t request_t;

/* Waiting */

dscomm_priv_deadline_t dscomm_priv_deadline(int timeout_ms)
{
    const int64_t at = dscomm_priv_clock() + timeout_ms * NS_PER_MS;

    return (dscomm_priv_deadline_t){at, at + STORE_GRACE_MS * NS_PER_MS,
                                    timeout_ms};
}

dscomm_priv_deadline_t dscomm_priv_grace(dscomm_priv_deadline_t deadline)
{
    deadline.at = deadline.end;
    return deadline;
}

/* A random number below the given one. g_random_int() would give a forked child
 * the numbers of its parent. */
static int64_t draw(int64_t now, int64_t below)
{
    uint64_t mixed = (uint64_t)now ^ (uint64_t)getpid() << 32;

    mixed += (uintptr_t)&mixed; /* differs in each thread */

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((mixed >> 31) % (uint64_t)below);
}

void dscomm_priv_back_off(dscomm_priv_deadline_t deadline, int64_t *pause_ns,
                          int64_t most_ns)
{
    int64_t now = dscomm_priv_clock(), left = deadline.at - now;
    int64_t pause = *pause_ns - draw(now, *pause_ns / 2 + 1);

    if (left > 0)
        g_usleep((gulong)((MIN(pause, left) + 999) / 1000));
    *pause_ns = MIN(*pause_ns * 2, most_ns);
}

void dscomm_priv_gate_init(dscomm_priv_gate_t *gate)
{
    pthread_mutex_init(&gate->mutex, NULL);
    dscomm_priv_cond_init(&gate->cond);
    gate->taken = false;
}

void dscomm_priv_gate_clear(dscomm_priv_gate_t *gate)
{
    pthread_mutex_destroy(&gate->mutex);
    pthread_cond_destroy(&gate->cond);
}

dscomm_status_t dscomm_priv_gate_enter(dscomm_priv_gate_t *gate,
                                       dscomm_priv_deadline_t deadline)
{
    bool mine;

    pthread_mutex_lock(&gate->mutex);
    while (gate->taken) {
        if (!dscomm_priv_cond_until(&gate->cond, &gate->mutex, deadline.end))
            break;
    }
    mine = !gate->taken;
    gate->taken = true; /* no change if another thread has it */
    pthread_mutex_unlock(&gate->mutex);
    if (!mine)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "another thread used the store for all of %d ms: "
                           "open one store a thread, or allow more time",
                           deadline.ms);
    return DSCOMM_OK;
}

void dscomm_priv_gate_leave(dscomm_priv_gate_t *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->taken = false;
    pthread_cond_signal(&gate->cond);
    pthread_mutex_unlock(&gate->mutex);
}

/* Values and sentences */

void *dscomm_priv_value(const void *data, size_t size)
{
    char *value = g_try_malloc(size + 1);

    if (!value) {
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a value of %zu bytes",
                    size);
        return NULL;
    }
    if (data && size)
        memcpy(value, data, size);
    value[size] = '\0';
    return value;
}

void dscomm_priv_values_drop(void **values, size_t count)
{
    for (size_t i = 0; values && i < count; i++)
        g_clear_pointer(&values[i], g_free);
}

/* Of a long key the sentence shows the end, because long keys differ there. */
dscomm_status_t dscomm_priv_fail_missing(const dscomm_priv_request_t *request,
                                         const uint8_t *present)
{
    const char *const *keys = request->keys;
    const size_t count = request->count;
    const int ms = request->deadline.ms;
    char names[384], name[48];
    size_t missing = 0, length = 0, over;

    names[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (present && present[i])
            continue;
        over =
            strlen(keys[i]) < sizeof name ? 0 : strlen(keys[i]) - sizeof name;
        if (missing++ < NAMES_MAX && length < sizeof names)
            length += (size_t)snprintf(
                names + length, sizeof names - length, "%s'%s%s'",
                length ? ", " : "", over ? "..." : "",
                dscomm_priv_quote(keys[i] + 1 + over, name, sizeof name));
    }
    if (missing > NAMES_MAX && length < sizeof names)
        snprintf(names + length, sizeof names - length, " and %zu more",
                 missing - NAMES_MAX);
    if (!missing)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "the last of %zu keys came after the %d ms allowed",
                           count, ms);
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "%zu of %zu keys not set within %d ms: %s", missing,
                       count, ms, names);
}

/* Operations on any table of this process */

/* The value of key in the locked table, or NULL. */
static bytes_t *local_find(const local_t *self, const char *key)
{
    return dscomm_priv_table_get(&self->table, dscomm_priv_data_text(key));
}

static dscomm_status_t local_look(local_t *self, request_t *request)
{
    for (size_t i = 0; i < request->count; i++)
        request->present[i] = local_find(self, request->keys[i]) != NULL;
    return DSCOMM_OK;
}

/* Copies the values of the keys, all of which are in the locked table. Does
 * nothing if the request wants no values. */
static dscomm_status_t local_copy(const local_t *self, request_t *request)
{
    for (size_t i = 0; request->values && i < request->count; i++) {
        const dscomm_priv_data_t value =
            local_find(self, request->keys[i])->data;

        request->values[i] = dscomm_priv_value(value.data, value.size);
        if (!request->values[i]) {
            dscomm_priv_values_drop(request->values, i);
            return DSCOMM_ERR_NO_MEMORY;
        }
        request->sizes[i] = value.size;
    }
    return DSCOMM_OK;
}

/* Stores a copy of the request's value. */
static dscomm_status_t local_set(local_t *self, request_t *request)
{
    bytes_t *value = dscomm_priv_budget_copy(
        &self->table.budget, request->value.data, request->value.size);

    return value ? self->put(self, *request->keys, value)
                 : DSCOMM_ERR_NO_MEMORY;
}

static dscomm_status_t local_add(local_t *self, request_t *request)
{
    bytes_t *text;
    dscomm_status_t status = dscomm_priv_table_sum(
        &self->table, dscomm_priv_data_text(*request->keys), request->number,
        &request->number, &text);

    return status ? status : self->put(self, *request->keys, text);
}

static dscomm_status_t local_compare_set(local_t *self, request_t *request)
{
    dscomm_priv_data_t answer = request->value;
    dscomm_status_t status = DSCOMM_OK;
    bytes_t *found;
    bool replace;
    void *value;

    replace = dscomm_priv_table_compare(&self->table,
                                        dscomm_priv_data_text(*request->keys),
                                        request->expected, &found);
    if (!replace)
        answer = found ? found->data : request->expected;
    value = dscomm_priv_value(answer.data, answer.size);
    if (!value)
        return DSCOMM_ERR_NO_MEMORY;
    if (replace)
        status = local_set(self, request);
    if (status) {
        g_free(value);
        return status;
    }
    *request->values = value;
    *request->sizes = answer.size;
    return DSCOMM_OK;
}

static dscomm_status_t local_append(local_t *self, request_t *request)
{
    bytes_t *joined;
    dscomm_status_t status = dscomm_priv_table_join(
        &self->table, dscomm_priv_data_text(*request->keys), request->value,
        &joined);

    return status ? status : self->put(self, *request->keys, joined);
}

static dscomm_status_t local_delete(local_t *self, request_t *request)
{
    dscomm_status_t status = DSCOMM_OK;

    request->number = 0;
    for (size_t i = 0; i < request->count && !status; i++) {
        if (!local_find(self, request->keys[i]))
            continue;
        status = self->put(self, request->keys[i], NULL);
        request->number++;
    }
    return status;
}

static dscomm_status_t local_num_keys(local_t *self, request_t *request)
{
    request->number = (int64_t)self->table.pairs.count;
    for (const char *const *key = self->own; key && *key; key++)
        request->number -= local_find(self, *key) != NULL;
    return DSCOMM_OK;
}

/* Waits until the keys are there; the table is then locked. */
static dscomm_status_t local_wait(local_t *self, request_t *request)
{
    dscomm_status_t status = self->enter(self, false, request->deadline);

    while (!status) {
        const bool last = dscomm_priv_clock() >= request->deadline.at;

        local_look(self, request);
        if (!memchr(request->present, 0, request->count))
            break;
        if (last) {
            self->leave(self);
            return dscomm_priv_fail_missing(request, request->present);
        }
        status = self->wait(self, request->deadline);
    }
    return status;
}

static dscomm_status_t local_get(local_t *self, request_t *request)
{
    dscomm_status_t status;

    request->present = g_try_malloc(request->count);
    if (!request->present)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %zu keys",
                           request->count);
    status = local_wait(self, request);
    if (!status) {
        status = local_copy(self, request);
        self->leave(self);
    }
    g_free(request->present);
    return status;
}

dscomm_status_t dscomm_priv_local_execute(dscomm_priv_store_t *store,
                                          request_t *request)
{
    static const struct {
        dscomm_status_t (*run)(local_t *self, request_t *request);
        bool changes;
    } commands[STORE_COMMANDS] = {
        [STORE_SET] = {local_set, true},
        [STORE_APPEND] = {local_append, true},
        [STORE_ADD] = {local_add, true},
        [STORE_COMPARE_SET] = {local_compare_set, true},
        [STORE_DELETE] = {local_delete, true},
        [STORE_LOOK] = {local_look, false},
        [STORE_NUM_KEYS] = {local_num_keys, false},
    };
    local_t *self = (local_t *)store;
    dscomm_status_t status;

    if (request->command == STORE_GET)
        return local_get(self, request);
    status = self->enter(self, commands[request->command].changes,
                         request->deadline);
    if (status)
        return status;
    status = commands[request->command].run(self, request);
    self->leave(self);
    return status;
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
        status = dscomm_priv_table_set(&self->table, name, value);
    else
        dscomm_priv_table_remove(&self->table, name);
    dscomm_priv_bytes_unref(value);
    pthread_cond_broadcast(&((memory_t *)self)->changed);
    return status;
}

static void memory_close(dscomm_priv_store_t *self)
{
    memory_t *memory = (memory_t *)self;

    dscomm_priv_table_clear(&memory->local.table);
    pthread_cond_destroy(&memory->changed);
    pthread_mutex_destroy(&memory->mutex);
    g_free(memory);
}

static dscomm_status_t memory_wait(local_t *self,
                                   dscomm_priv_deadline_t deadline)
{
    memory_t *memory = (memory_t *)self;

    dscomm_priv_cond_until(&memory->changed, &memory->mutex, deadline.at);
    return DSCOMM_OK;
}

static const dscomm_priv_store_ops_t ops = {
    .close = memory_close,
    .execute = dscomm_priv_local_execute,
};

dscomm_status_t dscomm_priv_store_memory(dscomm_priv_store_t **ret_store)
{
    memory_t *memory = g_try_new0(memory_t, 1);

    if (!memory)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a store");
    memory->local = (local_t){.head.ops = &ops,
                              .enter = memory_enter,
                              .leave = memory_leave,
                              .wait = memory_wait,
                              .put = memory_put,
                              .table.budget.most = DSCOMM_STORE_TOTAL_MAX};
    pthread_mutex_init(&memory->mutex, NULL);
    dscomm_priv_cond_init(&memory->changed);
    *ret_store = &memory->local.head;
    return DSCOMM_OK;
}
