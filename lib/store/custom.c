/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores that are functions of the program, see dscomm_store_custom_t. */
#include "config.h"

#include "lib/base/status.h"
#include "lib/store/store.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    dscomm_priv_store_t head;
    dscomm_store_custom_t functions;
} custom_t;

typedef dscomm_priv_request_t request_t;

/* Keys without the slash that the other kinds have in front. */
static const char *key_of(const request_t *request, size_t index)
{
    return request->keys[index] + 1;
}

/* Rounded up, so that a wait does not end before its time. */
static int ms_left(const request_t *request)
{
    const int64_t left =
        (request->deadline.at - dscomm_priv_clock() + NS_PER_MS - 1) /
        NS_PER_MS;

    return (int)CLAMP(left, 0, INT_MAX);
}

/* Makes a value of the library's of one of the program's, which it frees. */
static dscomm_status_t value_take(request_t *request, size_t index, void *value,
                                  size_t size)
{
    dscomm_status_t status = DSCOMM_OK;

    if (size > DSCOMM_STORE_VALUE_MAX || (size && !value))
        status = dscomm_fail(DSCOMM_ERR_PROTOCOL,
                             "the program's store returned a value of %zu "
                             "bytes: at most %zu are possible, and it may not "
                             "be NULL",
                             size, DSCOMM_STORE_VALUE_MAX);
    else if (!(request->values[index] = dscomm_priv_value(value, size)))
        status = DSCOMM_ERR_NO_MEMORY;
    request->sizes[index] = size;
    free(value);
    return status;
}

static dscomm_status_t custom_get(custom_t *self, request_t *request)
{
    const char **keys = g_try_new(const char *, request->count);
    dscomm_status_t status;

    if (!keys)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %zu keys",
                           request->count);
    for (size_t i = 0; i < request->count; i++)
        keys[i] = key_of(request, i);
    status = self->functions.wait(self->functions.arg, keys, request->count,
                                  ms_left(request));
    for (size_t i = 0; request->values && i < request->count && status >= 0;
         i++) {
        void *value = NULL;
        size_t size = 0;

        status = self->functions.get(self->functions.arg, keys[i],
                                     ms_left(request), &value, &size);
        if (status >= 0)
            status = value_take(request, i, value, size);
    }
    if (status < 0)
        dscomm_priv_values_drop(request->values, request->count);
    g_free(keys);
    return status;
}

static dscomm_status_t custom_set(custom_t *self, request_t *request)
{
    return self->functions.set(self->functions.arg, key_of(request, 0),
                               request->value.data, request->value.size);
}

static dscomm_status_t custom_append(custom_t *self, request_t *request)
{
    return self->functions.append(self->functions.arg, key_of(request, 0),
                                  request->value.data, request->value.size);
}

static dscomm_status_t custom_add(custom_t *self, request_t *request)
{
    return self->functions.add(self->functions.arg, key_of(request, 0),
                               request->number, &request->number);
}

static dscomm_status_t custom_compare_set(custom_t *self, request_t *request)
{
    void *value = NULL;
    size_t size = 0;
    const dscomm_status_t status = self->functions.compare_set(
        self->functions.arg, key_of(request, 0), request->expected.data,
        request->expected.size, request->value.data, request->value.size,
        &value, &size);

    return status < 0 ? status : value_take(request, 0, value, size);
}

static dscomm_status_t custom_delete(custom_t *self, request_t *request)
{
    dscomm_status_t status = DSCOMM_OK;

    request->number = 0;
    for (size_t i = 0; i < request->count && status >= 0; i++) {
        int deleted = 0;

        status = self->functions.remove(self->functions.arg, key_of(request, i),
                                        &deleted);
        request->number += deleted != 0;
    }
    return status;
}

static dscomm_status_t custom_look(custom_t *self, request_t *request)
{
    dscomm_status_t status = DSCOMM_OK;

    for (size_t i = 0; i < request->count && status >= 0; i++) {
        const char *key = key_of(request, i);
        int present = 0;

        status = self->functions.check(self->functions.arg, &key, 1, &present);
        request->present[i] = present != 0;
    }
    return status;
}

static dscomm_status_t custom_num_keys(custom_t *self, request_t *request)
{
    if (!self->functions.num_keys)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "the program's store does not count its keys");
    return self->functions.num_keys(self->functions.arg, &request->number);
}

static dscomm_status_t custom_execute(dscomm_priv_store_t *store,
                                      request_t *request)
{
    static dscomm_status_t (*const commands[STORE_COMMANDS])(
        custom_t * self, request_t * request) = {
        [STORE_SET] = custom_set,
        [STORE_APPEND] = custom_append,
        [STORE_GET] = custom_get,
        [STORE_ADD] = custom_add,
        [STORE_COMPARE_SET] = custom_compare_set,
        [STORE_DELETE] = custom_delete,
        [STORE_LOOK] = custom_look,
        [STORE_NUM_KEYS] = custom_num_keys,
    };

    const uint64_t serial = dscomm_priv_fail_serial();
    dscomm_status_t status =
        commands[request->command]((custom_t *)store, request);
    char shown[80];

    if (status >= 0)
        return DSCOMM_OK;
    if (!strcmp(dscomm_status_name(status), "UNKNOWN"))
        status = DSCOMM_ERR_PROTOCOL;
    if (serial == dscomm_priv_fail_serial())
        return dscomm_fail(
            status, "the program's store, key '%s': %s",
            request->count
                ? dscomm_priv_quote(key_of(request, 0), shown, sizeof shown)
                : "",
            dscomm_strerror(status));
    return status;
}

static void custom_close(dscomm_priv_store_t *store)
{
    custom_t *self = (custom_t *)store;

    if (self->functions.close)
        self->functions.close(self->functions.arg);
    g_free(self);
}

static const dscomm_priv_store_ops_t ops = {
    .close = custom_close,
    .execute = custom_execute,
};

/* Returns the name of a function that is missing, or NULL. */
static const char *missing(const dscomm_store_custom_t *functions)
{
    return !functions->set           ? "set"
           : !functions->get         ? "get"
           : !functions->wait        ? "wait"
           : !functions->add         ? "add"
           : !functions->compare_set ? "compare_set"
           : !functions->append      ? "append"
           : !functions->remove      ? "remove"
           : !functions->check       ? "check"
                                     : NULL;
}

dscomm_status_t dscomm_priv_store_custom(const dscomm_store_custom_t *custom,
                                         dscomm_priv_store_t **ret_store)
{
    const char *name = missing(custom);
    custom_t *self;

    if (name)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_store_open_custom: function %s is NULL",
                           name);
    self = g_try_new0(custom_t, 1);
    if (!self)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a store");
    self->head.ops = &ops;
    self->functions = *custom;
    *ret_store = &self->head;
    return DSCOMM_OK;
}

void dscomm_priv_store_custom_owns(dscomm_priv_store_t *store,
                                   void (*close)(void *arg))
{
    ((custom_t *)store)->functions.close = close;
}
