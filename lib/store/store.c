/* SPDX-License-Identifier: BSD-3-Clause */
/* dscomm_store_t: a view of a store, with a prefix. Checks arguments, puts the
 * prefix before keys, and calls the kind of store. */
#include "config.h"

#include "lib/store/store.h"

#include "lib/base/attr.h"
#include "lib/base/process.h"
#include "lib/base/status.h"

#include <stdbool.h>
#include <string.h>

#define TIMEOUT_MS 300000
/* Time for all requests of a diagnosis to a silent server. */
#define DIAGNOSIS_MS 20
/* STORE_GRACE_MS, if the server has not answered the last request. */
#define SILENT_MS 300
/* The same after the deadline of a call that makes several requests. */
#define DUE_MS 100

struct dscomm_store {
    dscomm_priv_store_t *shared;
    int timeout_ms;
    dscomm_priv_limit_t limit; /* of all calls */
    char prefix[]; /* "/" or "/PREFIX/", before every key */
};

#define NOT_NULL(argument)                                                     \
    do {                                                                       \
        if (!(argument))                                                       \
            return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s is NULL", __func__, \
                               #argument);                                     \
    } while (0)

#define USABLE(store)                                                          \
    do {                                                                       \
        NOT_NULL(store);                                                       \
        if (is_inherited(store))                                               \
            return dscomm_fail(DSCOMM_ERR_STATE,                               \
                               "%s: the store was opened before this process " \
                               "was forked: open one of its own",              \
                               __func__);                                      \
    } while (0)

static bool is_inherited(const dscomm_store_t *store)
{
    return store->shared->generation != dscomm_priv_generation();
}

/* Opening and closing */

static dscomm_status_t read_attr(const dscomm_store_attr_t *attr,
                                 dscomm_store_attr_t *ret_attr)
{
    dscomm_store_attr_t known = DSCOMM_STORE_ATTR_INIT;
    dscomm_status_t status = dscomm_priv_attr_read(
        "dscomm_store_open: attr", "start from DSCOMM_STORE_ATTR_INIT", attr,
        sizeof known, &known);

    if (status < 0)
        return status;
    known.size = sizeof known;
    if (known.timeout_ms < DSCOMM_TIMEOUT_DEFAULT)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store attribute timeout_ms is %d: give "
                           "milliseconds, or 0 for %d",
                           known.timeout_ms, TIMEOUT_MS);
    if (known.world_size < 0 || known.listen_fd < 0)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store attribute %s is negative: 0 is for none",
                           known.world_size < 0 ? "world_size" : "listen_fd");
    if (known.timeout_ms <= 0)
        known.timeout_ms = TIMEOUT_MS;
    *ret_attr = known;
    return DSCOMM_OK;
}

static dscomm_status_t open_kind(const char *url,
                                 const dscomm_store_attr_t *attr,
                                 const dscomm_priv_job_t *job,
                                 dscomm_priv_store_t **ret_shared)
{
    char shown[80];

    if (strcmp(url, "memory://") == 0)
        return dscomm_priv_store_memory(ret_shared);
    if (g_str_has_prefix(url, "file:///"))
        return dscomm_priv_store_file(url + strlen("file://"), attr,
                                      ret_shared);
    if (g_str_has_prefix(url, "tcp://"))
        return dscomm_priv_store_tcp(url + strlen("tcp://"), attr, job,
                                     ret_shared);
    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "store '%s': give memory://, file:///PATH or "
                       "tcp://HOST:PORT",
                       dscomm_priv_quote(url, shown, sizeof shown));
}

/* Returns a view whose keys start with prefix and, unless name is empty, with
 * name and a slash. NULL after dscomm_fail(): no memory. */
static dscomm_store_t *view_new(dscomm_priv_store_t *shared, const char *prefix,
                                const char *name, int timeout_ms,
                                dscomm_priv_limit_t limit)
{
    const size_t length = strlen(prefix);
    dscomm_store_t *store =
        g_try_malloc(sizeof *store + length + strlen(name) + 2);

    if (!store) {
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a view of a store");
        return NULL;
    }
    store->shared = shared;
    memcpy(store->prefix, prefix, length);
    strcpy(store->prefix + length, name);
    strcat(store->prefix, *name ? "/" : "");
    store->timeout_ms = timeout_ms;
    store->limit = limit;
    return store;
}

dscomm_status_t dscomm_store_attr_init(dscomm_store_attr_t *attr, size_t size)
{
    return dscomm_priv_attr_init("dscomm_store_attr_init", attr, size);
}

dscomm_status_t dscomm_store_open(const char *url,
                                  const dscomm_store_attr_t *attr,
                                  dscomm_store_t **ret_store)
{
    NOT_NULL(url);
    NOT_NULL(ret_store);
    return dscomm_priv_store_open(url, attr, NULL, ret_store);
}

/* Makes the first view of a store that has just been opened; closes it on
 * failure. */
static dscomm_status_t store_begin(dscomm_priv_store_t *shared, int timeout_ms,
                                   dscomm_store_t **ret_store)
{
    const dscomm_priv_limit_t no_limit = {INT64_MAX, INT64_MAX};

    g_atomic_ref_count_init(&shared->refs);
    shared->generation = dscomm_priv_generation();
    *ret_store = view_new(shared, "/", "", timeout_ms, no_limit);
    if (!*ret_store)
        shared->ops->close(shared);
    return *ret_store ? DSCOMM_OK : DSCOMM_ERR_NO_MEMORY;
}

dscomm_status_t dscomm_priv_store_open_anonymous(int fd,
                                                 dscomm_store_t **ret_store)
{
    dscomm_priv_store_t *shared;
    dscomm_status_t status = dscomm_priv_process_watch();

    if (!status)
        status = dscomm_priv_store_anonymous(fd, &shared);
    return status ? status : store_begin(shared, TIMEOUT_MS, ret_store);
}

dscomm_status_t dscomm_priv_store_open(const char *url,
                                       const dscomm_store_attr_t *attr,
                                       const dscomm_priv_job_t *job,
                                       dscomm_store_t **ret_store)
{
    dscomm_store_attr_t known;
    dscomm_priv_store_t *shared;
    dscomm_status_t status = read_attr(attr, &known);

    if (status)
        return status;
    status = dscomm_priv_process_watch();
    if (!status)
        status = open_kind(url, &known, job, &shared);
    return status ? status : store_begin(shared, known.timeout_ms, ret_store);
}

dscomm_status_t dscomm_store_open_custom(const dscomm_store_custom_t *custom,
                                         const dscomm_store_attr_t *attr,
                                         dscomm_store_t **ret_store)
{
    dscomm_store_custom_t own = DSCOMM_STORE_CUSTOM_INIT;
    void (*close)(void *arg);
    dscomm_store_attr_t known;
    dscomm_priv_store_t *shared;
    dscomm_status_t status;

    NOT_NULL(custom);
    NOT_NULL(ret_store);
    status = dscomm_priv_attr_read("dscomm_store_open_custom: custom",
                                   "start from DSCOMM_STORE_CUSTOM_INIT",
                                   custom, sizeof own, &own);
    if (!status)
        status = read_attr(attr, &known);
    if (!status)
        status = dscomm_priv_process_watch();
    close = own.close;
    own.close = NULL; /* if opening fails, arg stays the program's */
    if (!status)
        status = dscomm_priv_store_custom(&own, &shared);
    if (!status)
        status = store_begin(shared, known.timeout_ms, ret_store);
    if (!status)
        dscomm_priv_store_custom_owns(shared, close);
    return status;
}

dscomm_status_t dscomm_store_prefix(dscomm_store_t *store, const char *prefix,
                                    dscomm_store_t **ret_store)
{
    dscomm_store_t *view;

    USABLE(store);
    NOT_NULL(prefix);
    NOT_NULL(ret_store);
    if (strlen(store->prefix) + strlen(prefix) + 1 >= WHOLE_KEY_MAX)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "prefix of %zu bytes: a key has at most %zu with "
                           "all its prefixes",
                           strlen(prefix), DSCOMM_STORE_KEY_MAX);
    view = view_new(store->shared, store->prefix, prefix, store->timeout_ms,
                    store->limit);
    if (!view)
        return DSCOMM_ERR_NO_MEMORY;
    g_atomic_ref_count_inc(&store->shared->refs);
    *ret_store = view;
    return DSCOMM_OK;
}

/* Called in a forked child. Sockets, locks and threads are the parent's, and
 * their state is undefined here, so nothing is freed. The list keeps the memory
 * reachable for leak checkers. */
static void leave_behind(dscomm_priv_store_t *shared)
{
    static dscomm_priv_store_t *list;

    do
        shared->inherited = g_atomic_pointer_get(&list);
    while (!g_atomic_pointer_compare_and_exchange(&list, shared->inherited,
                                                  shared));
}

void dscomm_store_close(dscomm_store_t *store)
{
    if (!store)
        return;
    if (g_atomic_ref_count_dec(&store->shared->refs)) {
        if (is_inherited(store))
            leave_behind(store->shared);
        else
            store->shared->ops->close(store->shared);
    }
    g_free(store);
}

void dscomm_priv_store_limit(dscomm_store_t *store, int64_t due, int64_t end)
{
    store->limit = (dscomm_priv_limit_t){due, end};
}

void dscomm_priv_store_limit_diagnosis(dscomm_store_t *store, int most_ms)
{
    const int64_t now = dscomm_priv_clock();

    dscomm_priv_store_limit(store, now + DIAGNOSIS_MS * NS_PER_MS,
                            now + most_ms * NS_PER_MS);
}

bool dscomm_priv_store_silent(const dscomm_store_t *store,
                              dscomm_priv_store_place_t *ret_place)
{
    return store->shared->ops->silent &&
           store->shared->ops->silent(store->shared, ret_place);
}

int dscomm_store_port(const dscomm_store_t *store)
{
    if (!store || !store->shared->ops->port)
        return 0;
    return store->shared->ops->port(store->shared);
}

int dscomm_priv_store_clients(const dscomm_store_t *store)
{
    const dscomm_priv_store_t *shared = store->shared;

    return shared->ops->clients ? shared->ops->clients(shared) : -1;
}

void dscomm_store_free(void *value)
{
    g_free(value);
}

/* Arguments */

static dscomm_status_t check_keys(const dscomm_store_t *store,
                                  const char *const *keys, size_t count)
{
    const char *problem;

    for (size_t i = 0; i < count; i++) {
        problem = NULL;
        if (!keys[i] || !keys[i][0])
            problem = keys[i] ? "empty" : "NULL";
        else if (strlen(store->prefix) + strlen(keys[i]) > WHOLE_KEY_MAX)
            problem =
                "longer than a key may be with all its prefixes (8191 bytes)";
        if (problem)
            return dscomm_fail(DSCOMM_ERR_INVALID, "store key %zu of %zu is %s",
                               i + 1, count, problem);
    }
    return DSCOMM_OK;
}

/* Puts the view's prefix before the keys. The result is one block of memory,
 * for g_free(). */
static dscomm_status_t whole_keys(const dscomm_store_t *store,
                                  const char *const *keys, size_t count,
                                  char ***ret_whole)
{
    const size_t prefix = strlen(store->prefix);
    dscomm_status_t status = check_keys(store, keys, count);
    size_t bytes = (count + 1) * sizeof(char *);
    char **whole, *next;

    if (status)
        return status;
    for (size_t i = 0; i < count; i++)
        bytes += prefix + strlen(keys[i]) + 1;
    whole = g_try_malloc(bytes);
    if (!whole)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %zu keys",
                           count);
    next = (char *)(whole + count + 1);
    for (size_t i = 0; i < count; i++) {
        whole[i] = memcpy(next, store->prefix, prefix);
        next = g_stpcpy(next + prefix, keys[i]) + 1;
    }
    whole[count] = NULL;
    *ret_whole = whole;
    return DSCOMM_OK;
}

static dscomm_status_t check_value(const void *value, size_t size)
{
    if (!value && size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store value is NULL, its size is %zu", size);
    if (size > DSCOMM_STORE_VALUE_MAX)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store value of %zu bytes: at most %zu are "
                           "possible; split it over several keys",
                           size, DSCOMM_STORE_VALUE_MAX);
    return DSCOMM_OK;
}

/* The last moment for an answer to a request that is made now. A server that
 * has answered all requests so far gets the usual grace period, also after due.
 */
static int64_t answer_limit(dscomm_priv_limit_t limit, int64_t now, bool silent)
{
    const int64_t due = MIN(limit.due, INT64_MAX - DUE_MS * NS_PER_MS);
    int64_t last;

    if (silent)
        last = now < due ? due + DUE_MS * NS_PER_MS : now;
    else
        last = MAX(due + DUE_MS * NS_PER_MS, now + STORE_GRACE_MS * NS_PER_MS);
    return MIN(last, limit.end);
}

dscomm_priv_deadline_t dscomm_priv_deadline_within(dscomm_priv_limit_t limit,
                                                   int timeout_ms, bool waits,
                                                   bool silent)
{
    const int64_t now = dscomm_priv_clock();
    const int64_t last = answer_limit(limit, now, silent);
    const int64_t grace = (silent ? SILENT_MS : STORE_GRACE_MS) * NS_PER_MS;
    const int64_t asked = now + timeout_ms * NS_PER_MS;
    int64_t at = MIN(asked, MAX(last - DUE_MS * NS_PER_MS, now));

    if (!waits)
        at = MIN(at, MAX(limit.due, now));
    if (at < asked)
        timeout_ms = (int)((at - now) / NS_PER_MS);
    return (dscomm_priv_deadline_t){at, MIN(at + grace, last), timeout_ms};
}

static dscomm_priv_deadline_t deadline_of(const dscomm_store_t *store,
                                          int timeout_ms)
{
    const bool waits = timeout_ms != DSCOMM_TIMEOUT_DEFAULT;

    return dscomm_priv_deadline_within(
        store->limit, waits ? timeout_ms : store->timeout_ms, waits,
        dscomm_priv_store_silent(store, NULL));
}

/* Calls */

/* Executes request on keys of the view. Without keys there is nothing to do. */
static dscomm_status_t store_execute(dscomm_store_t *store,
                                     const char *const *keys, size_t count,
                                     int timeout_ms,
                                     dscomm_priv_request_t *request)
{
    dscomm_priv_store_t *shared = store->shared;
    dscomm_status_t status;
    char **whole;

    if (timeout_ms < DSCOMM_TIMEOUT_DEFAULT)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store time-out of %d ms: give 0 or more, or "
                           "DSCOMM_TIMEOUT_DEFAULT",
                           timeout_ms);
    status = whole_keys(store, keys, count, &whole);
    if (status)
        return status;
    request->keys = (const char *const *)whole;
    request->count = count;
    request->deadline = deadline_of(store, timeout_ms);
    if (count)
        status = shared->ops->execute(shared, request);
    g_free(whole);
    return status;
}

/* The same for one key, by a command that does not wait for keys. */
static dscomm_status_t execute_one(dscomm_store_t *store, const char *key,
                                   dscomm_priv_request_t *request)
{
    return store_execute(store, &key, 1, DSCOMM_TIMEOUT_DEFAULT, request);
}

static dscomm_status_t store_change(dscomm_store_t *store, const char *key,
                                    const void *value, size_t size,
                                    dscomm_priv_command_t command)
{
    dscomm_priv_request_t request = {.command = command,
                                     .value = {value, size}};
    dscomm_status_t status = check_value(value, size);

    return status ? status : execute_one(store, key, &request);
}

dscomm_status_t dscomm_store_set(dscomm_store_t *store, const char *key,
                                 const void *value, size_t size)
{
    USABLE(store);
    return store_change(store, key, value, size, STORE_SET);
}

dscomm_status_t dscomm_store_append(dscomm_store_t *store, const char *key,
                                    const void *value, size_t size)
{
    USABLE(store);
    return store_change(store, key, value, size, STORE_APPEND);
}

/* Waits for the keys. Fills values and sizes on success only; both may be NULL.
 */
static dscomm_status_t store_fetch(dscomm_store_t *store,
                                   const char *const *keys, size_t count,
                                   int timeout_ms, void **values, size_t *sizes)
{
    dscomm_priv_request_t request = {
        .command = STORE_GET, .values = values, .sizes = sizes};

    return store_execute(store, keys, count, timeout_ms, &request);
}

dscomm_status_t dscomm_store_get(dscomm_store_t *store, const char *key,
                                 int timeout_ms, void **ret_value,
                                 size_t *ret_size)
{
    dscomm_status_t status;
    void *value = NULL;
    size_t size = 0;

    USABLE(store);
    NOT_NULL(ret_value);
    NOT_NULL(ret_size);
    status = store_fetch(store, &key, 1, timeout_ms, &value, &size);
    if (status)
        return status;
    *ret_value = value;
    *ret_size = size;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_store_multi_get(dscomm_store_t *store,
                                       const char *const *keys, size_t count,
                                       int timeout_ms, void **ret_values,
                                       size_t *ret_sizes)
{
    USABLE(store);
    if (count) {
        NOT_NULL(keys);
        NOT_NULL(ret_values);
        NOT_NULL(ret_sizes);
        memset(ret_values, 0, count * sizeof *ret_values);
    }
    return store_fetch(store, keys, count, timeout_ms, ret_values, ret_sizes);
}

dscomm_status_t dscomm_store_wait(dscomm_store_t *store,
                                  const char *const *keys, size_t count,
                                  int timeout_ms)
{
    USABLE(store);
    if (count)
        NOT_NULL(keys);
    return store_fetch(store, keys, count, timeout_ms, NULL, NULL);
}

dscomm_status_t dscomm_store_add(dscomm_store_t *store, const char *key,
                                 int64_t delta, int64_t *ret_sum)
{
    dscomm_priv_request_t request = {.command = STORE_ADD, .number = delta};
    dscomm_status_t status;

    USABLE(store);
    status = execute_one(store, key, &request);
    if (!status && ret_sum)
        *ret_sum = request.number;
    return status;
}

dscomm_status_t dscomm_store_compare_set(dscomm_store_t *store, const char *key,
                                         const void *expected,
                                         size_t expected_size,
                                         const void *desired,
                                         size_t desired_size, void **ret_value,
                                         size_t *ret_size)
{
    void *value;
    size_t size;
    dscomm_priv_request_t request = {.command = STORE_COMPARE_SET,
                                     .expected = {expected, expected_size},
                                     .value = {desired, desired_size},
                                     .values = &value,
                                     .sizes = &size};
    dscomm_status_t status;

    USABLE(store);
    status = check_value(expected, expected_size);
    if (!status)
        status = check_value(desired, desired_size);
    if (!status)
        status = execute_one(store, key, &request);
    if (status)
        return status;
    if (ret_size)
        *ret_size = size;
    if (ret_value)
        *ret_value = value;
    else
        g_free(value);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_store_delete(dscomm_store_t *store, const char *key,
                                    int *ret_deleted)
{
    dscomm_priv_request_t request = {.command = STORE_DELETE};
    dscomm_status_t status;

    USABLE(store);
    status = execute_one(store, key, &request);
    if (!status && ret_deleted)
        *ret_deleted = (int)request.number;
    return status;
}

dscomm_status_t dscomm_priv_store_delete(dscomm_store_t *store,
                                         const char *const *keys, size_t count)
{
    dscomm_priv_request_t request = {.command = STORE_DELETE};

    USABLE(store);
    return store_execute(store, keys, count, DSCOMM_TIMEOUT_DEFAULT, &request);
}

dscomm_status_t dscomm_store_check(dscomm_store_t *store,
                                   const char *const *keys, size_t count,
                                   int *ret_present)
{
    dscomm_priv_request_t request = {.command = STORE_LOOK};
    dscomm_status_t status;
    uint8_t few[16];

    USABLE(store);
    NOT_NULL(ret_present);
    if (count)
        NOT_NULL(keys);
    request.present = count > sizeof few ? g_try_malloc(count) : few;
    if (!request.present)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %zu keys",
                           count);
    status =
        store_execute(store, keys, count, DSCOMM_TIMEOUT_DEFAULT, &request);
    if (!status)
        *ret_present = !count || !memchr(request.present, 0, count);
    if (request.present != few)
        g_free(request.present);
    return status;
}

dscomm_status_t dscomm_priv_store_look(dscomm_priv_look_t *looks, size_t count)
{
    dscomm_priv_store_t *shared = looks->store->shared;
    char ***wholes = g_try_new0(char **, count);
    const char **keys = g_try_new(const char *, count);
    uint8_t *present = g_try_malloc0(count);
    dscomm_priv_request_t request = {.command = STORE_LOOK,
                                     .keys = keys,
                                     .count = count,
                                     .present = present};
    dscomm_status_t status = DSCOMM_OK;

    if (!wholes || !keys || !present)
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "no memory for %zu keys of the store", count);
    for (size_t i = 0; i < count && !status; i++) {
        status = whole_keys(looks[i].store, &looks[i].key, 1, &wholes[i]);
        keys[i] = status ? NULL : wholes[i][0];
    }
    request.deadline = deadline_of(looks->store, DSCOMM_TIMEOUT_DEFAULT);
    if (!status)
        status = shared->ops->execute(shared, &request);
    for (size_t i = 0; i < count && !status; i++)
        looks[i].present = present[i];
    for (size_t i = 0; i < count && wholes; i++)
        g_free(wholes[i]);
    g_free(present);
    g_free(keys);
    g_free(wholes);
    return status;
}

dscomm_status_t dscomm_store_num_keys(dscomm_store_t *store, int64_t *ret_count)
{
    dscomm_priv_request_t request = {.command = STORE_NUM_KEYS};
    dscomm_status_t status;

    USABLE(store);
    NOT_NULL(ret_count);
    request.deadline = deadline_of(store, DSCOMM_TIMEOUT_DEFAULT);
    status = store->shared->ops->execute(store->shared, &request);
    if (!status)
        *ret_count = request.number;
    return status;
}

dscomm_status_t dscomm_priv_store_will(dscomm_store_t *store, const char *key,
                                       const char *value)
{
    const dscomm_priv_data_t data = {value, strlen(value)};
    dscomm_status_t status;
    char **whole;

    USABLE(store);
    if (!store->shared->ops->will)
        return DSCOMM_OK;
    status = whole_keys(store, &key, 1, &whole);
    if (status)
        return status;
    status =
        store->shared->ops->will(store->shared, whole[0], data,
                                 deadline_of(store, DSCOMM_TIMEOUT_DEFAULT));
    g_free(whole);
    return status;
}

void dscomm_priv_store_withdraw(dscomm_store_t *store, const char *key)
{
    char **whole;

    if (!store->shared->ops->withdraw || is_inherited(store) ||
        whole_keys(store, &key, 1, &whole) < 0)
        return;
    store->shared->ops->withdraw(store->shared, whole[0]);
    g_free(whole);
}
