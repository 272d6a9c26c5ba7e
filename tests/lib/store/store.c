/* SPDX-License-Identifier: BSD-3-Clause */
/* The promises of every kind of store, checked on each. */
#include "config.h"

#include <dscomm/store.h>

#include "tests/lib/store/raw.h"
#include "tests/tap.h"

#include <pthread.h>
#include <unistd.h>

#define THREADS 4
#define ADDS 100

static const char *kind; /* for the names of the checks */

static int status_is(dscomm_status_t got, dscomm_status_t want,
                     const char *what)
{
    int passed = is_int(got, want, "%s: %s", kind, what);

    if (!passed)
        tap_text("last error:", dscomm_last_error());
    return passed;
}

/* Checks that the value of key is size bytes at want. */
static void has_bytes(dscomm_store_t *store, const char *key, const void *want,
                      size_t size, const char *what)
{
    void *value = NULL;
    size_t got = 0;

    if (!status_is(dscomm_store_get(store, key, 1000, &value, &got), DSCOMM_OK,
                   what))
        return;
    ok(got == size && memcmp(value, want, size) == 0, "%s: %s: %zu bytes", kind,
       what, size);
    ok(((char *)value)[got] == '\0', "%s: %s: a 0 follows", kind, what);
    dscomm_store_free(value);
}

static void has_text(dscomm_store_t *store, const char *key, const char *want,
                     const char *what)
{
    has_bytes(store, key, want, strlen(want), what);
}

static void set_text(dscomm_store_t *store, const char *key, const char *text)
{
    status_is(dscomm_store_set(store, key, text, strlen(text)), DSCOMM_OK,
              "set");
}

static void test_values(dscomm_store_t *store)
{
    static const char binary[] = "a\0b\xff\n";
    char *large = malloc(DSCOMM_STORE_VALUE_MAX + 1);

    set_text(store, "v/text", "one");
    has_text(store, "v/text", "one", "text");
    set_text(store, "v/text", "two");
    has_text(store, "v/text", "two", "replaced");
    status_is(dscomm_store_set(store, "v/bin", binary, sizeof binary),
              DSCOMM_OK, "set binary");
    has_bytes(store, "v/bin", binary, sizeof binary, "binary");
    status_is(dscomm_store_set(store, "v/none", NULL, 0), DSCOMM_OK,
              "set nothing");
    has_bytes(store, "v/none", "", 0, "nothing");
    for (size_t i = 0; i <= DSCOMM_STORE_VALUE_MAX; i++)
        large[i] = (char)(i * 2654435761u >> 13);
    status_is(dscomm_store_set(store, "v/large", large, DSCOMM_STORE_VALUE_MAX),
              DSCOMM_OK, "set the largest value");
    has_bytes(store, "v/large", large, DSCOMM_STORE_VALUE_MAX, "largest value");
    status_is(
        dscomm_store_set(store, "v/large", large, DSCOMM_STORE_VALUE_MAX + 1),
        DSCOMM_ERR_INVALID, "a value too large");
    status_is(dscomm_store_append(store, "v/large", "x", 1), DSCOMM_ERR_INVALID,
              "append to the largest value");
    has_bytes(store, "v/large", large, DSCOMM_STORE_VALUE_MAX, "as it was");
    status_is(dscomm_store_delete(store, "v/large", NULL), DSCOMM_OK,
              "delete it");
    free(large);
}

static void test_keys(dscomm_store_t *store)
{
    char *key = malloc(8193);

    is_int(DSCOMM_STORE_KEY_MAX, 8191, "%s: the header's limit", kind);
    memset(key, 'k', 8192);
    key[8192] = '\0';
    status_is(dscomm_store_set(store, key, "x", 1), DSCOMM_ERR_INVALID,
              "a key of 8192 bytes");
    key[8191] = '\0';
    status_is(dscomm_store_set(store, key, "x", 1), DSCOMM_OK,
              "a key of 8191 bytes");
    has_text(store, key, "x", "longest key");
    status_is(dscomm_store_delete(store, key, NULL), DSCOMM_OK, "delete it");
    status_is(dscomm_store_set(store, "", "x", 1), DSCOMM_ERR_INVALID,
              "an empty key");
    status_is(dscomm_store_set(store, NULL, "x", 1), DSCOMM_ERR_INVALID,
              "no key");
    status_is(dscomm_store_set(store, "k", NULL, 1), DSCOMM_ERR_INVALID,
              "no value");
    status_is(dscomm_store_set(NULL, "k", NULL, 0), DSCOMM_ERR_INVALID,
              "no store");
    free(key);
}

static void test_add(dscomm_store_t *store)
{
    static const struct {
        const char *before; /* NULL: absent */
        int64_t delta;
        dscomm_status_t status;
        int64_t sum;
        const char *after;
    } rows[] = {
        {NULL, 5, DSCOMM_OK, 5, "5"},
        {NULL, 0, DSCOMM_OK, 0, "0"},
        {NULL, -7, DSCOMM_OK, -7, "-7"},
        {"41", 1, DSCOMM_OK, 42, "42"},
        {"-1", -1, DSCOMM_OK, -2, "-2"},
        {"9223372036854775806", 1, DSCOMM_OK, INT64_MAX, "9223372036854775807"},
        {"9223372036854775807", 1, DSCOMM_ERR_INVALID, 0,
         "9223372036854775807"},
        {"-9223372036854775808", -1, DSCOMM_ERR_INVALID, 0,
         "-9223372036854775808"},
        {"9223372036854775808", 0, DSCOMM_ERR_INVALID, 0,
         "9223372036854775808"},
        {"seven", 1, DSCOMM_ERR_INVALID, 0, "seven"},
        {"7 apples", 1, DSCOMM_ERR_INVALID, 0, "7 apples"},
        {"", 1, DSCOMM_ERR_INVALID, 0, ""},
        {"-", 1, DSCOMM_ERR_INVALID, 0, "-"},
        {"+7", 1, DSCOMM_ERR_INVALID, 0, "+7"},
        {" 7", 1, DSCOMM_ERR_INVALID, 0, " 7"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t sum = -99;
        char what[80];

        snprintf(what, sizeof what, "'%s' + %lld",
                 rows[i].before ? rows[i].before : "(absent)",
                 (long long)rows[i].delta);
        dscomm_store_delete(store, "n", NULL);
        if (rows[i].before)
            set_text(store, "n", rows[i].before);
        status_is(dscomm_store_add(store, "n", rows[i].delta, &sum),
                  rows[i].status, what);
        is_int(sum, rows[i].status ? -99 : rows[i].sum, "%s: %s: sum", kind,
               what);
        has_text(store, "n", rows[i].after, what);
    }
    status_is(dscomm_store_add(store, "n2", 3, NULL), DSCOMM_OK,
              "add without a result");
}

static void test_compare_set(dscomm_store_t *store)
{
    static const struct {
        const char *before, *expected, *desired, *answer, *after;
    } rows[] = {
        {NULL, "", "new", "new", "new"},
        {NULL, "old", "new", "old", NULL},
        {"old", "old", "new", "new", "new"},
        {"old", "other", "new", "old", "old"},
        {"old", "", "new", "old", "old"},
        {"", "", "new", "new", "new"},
        {"old", "old", "", "", ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *value = NULL;
        size_t size = 0;
        const char *key = "cas";
        int present = -1;
        char what[80];

        snprintf(what, sizeof what, "compare_set '%s' '%s' '%s'",
                 rows[i].before ? rows[i].before : "(absent)", rows[i].expected,
                 rows[i].desired);
        dscomm_store_delete(store, key, NULL);
        if (rows[i].before)
            set_text(store, key, rows[i].before);
        if (status_is(dscomm_store_compare_set(
                          store, key, rows[i].expected,
                          strlen(rows[i].expected), rows[i].desired,
                          strlen(rows[i].desired), &value, &size),
                      DSCOMM_OK, what)) {
            is_str(value, rows[i].answer, "%s: %s: answer", kind, what);
            is_int((long long)size, (long long)strlen(rows[i].answer),
                   "%s: %s: size", kind, what);
        }
        dscomm_store_free(value);
        dscomm_store_check(store, &key, 1, &present);
        is_int(present, rows[i].after != NULL, "%s: %s: present", kind, what);
        if (rows[i].after)
            has_text(store, key, rows[i].after, what);
    }
    status_is(dscomm_store_compare_set(store, "cas", "", 0, "z", 1, NULL, NULL),
              DSCOMM_OK, "compare_set without results");
}

static void test_append(dscomm_store_t *store)
{
    status_is(dscomm_store_append(store, "app", "ab", 2), DSCOMM_OK,
              "append to nothing");
    status_is(dscomm_store_append(store, "app", "\0c", 2), DSCOMM_OK, "append");
    status_is(dscomm_store_append(store, "app", NULL, 0), DSCOMM_OK,
              "append nothing");
    has_bytes(store, "app", "ab\0c", 4, "appended");
}

static void test_delete(dscomm_store_t *store)
{
    const char *keys[] = {"d/1", "d/2"};
    int64_t before = -1, after = -1;
    int deleted = -1, present = -1;

    status_is(dscomm_store_num_keys(store, &before), DSCOMM_OK, "num_keys");
    set_text(store, "d/1", "x");
    set_text(store, "d/2", "y");
    dscomm_store_num_keys(store, &after);
    is_int(after - before, 2, "%s: two keys more", kind);
    status_is(dscomm_store_check(store, keys, 2, &present), DSCOMM_OK, "check");
    is_int(present, 1, "%s: both present", kind);
    status_is(dscomm_store_delete(store, "d/1", &deleted), DSCOMM_OK, "delete");
    is_int(deleted, 1, "%s: it was there", kind);
    status_is(dscomm_store_delete(store, "d/1", &deleted), DSCOMM_OK,
              "delete again");
    is_int(deleted, 0, "%s: it was not", kind);
    dscomm_store_check(store, keys, 2, &present);
    is_int(present, 0, "%s: one of two is missing", kind);
    dscomm_store_check(store, keys + 1, 1, &present);
    is_int(present, 1, "%s: the other is there", kind);
    dscomm_store_check(store, NULL, 0, &present);
    is_int(present, 1, "%s: all of none are there", kind);
    dscomm_store_num_keys(store, &after);
    is_int(after - before, 1, "%s: one key more", kind);
}

static void test_multi_get(dscomm_store_t *store)
{
    enum { MANY = 2500 };
    char **keys = calloc(MANY, sizeof *keys);
    void **values = calloc(MANY, sizeof *values);
    size_t *sizes = calloc(MANY, sizeof *sizes);
    int wrong = 0;

    for (int i = 0; i < MANY; i++) {
        keys[i] = malloc(24);
        snprintf(keys[i], 24, "many/%d", i);
        if (dscomm_store_set(store, keys[i], keys[i], (size_t)(i % 8)))
            wrong++;
    }
    is_int(wrong, 0, "%s: set %d keys", kind, MANY);
    if (status_is(dscomm_store_multi_get(store, (const char *const *)keys, MANY,
                                         5000, values, sizes),
                  DSCOMM_OK, "multi_get")) {
        for (int i = 0; i < MANY; i++) {
            if (sizes[i] != (size_t)(i % 8) ||
                memcmp(values[i], keys[i], sizes[i]) != 0)
                wrong++;
            dscomm_store_free(values[i]);
        }
        is_int(wrong, 0, "%s: all values are right", kind);
    }
    dscomm_store_delete(store, keys[MANY - 1], NULL);
    status_is(dscomm_store_multi_get(store, (const char *const *)keys, MANY, 50,
                                     values, sizes),
              DSCOMM_ERR_TIMEOUT, "multi_get of all but one");
    ok(strstr(dscomm_last_error(), "1 of 2500") &&
           strstr(dscomm_last_error(), "'many/2499'"),
       "%s: the missing one is named: %s", kind, dscomm_last_error());
    for (int i = 0; i < MANY; i++)
        wrong += values[i] != NULL;
    is_int(wrong, 0, "%s: nothing to free", kind);
    status_is(dscomm_store_multi_get(store, NULL, 0, 0, NULL, NULL), DSCOMM_OK,
              "multi_get of nothing");
    for (int i = 0; i < MANY; i++)
        free(keys[i]);
    free(keys);
    free(values);
    free(sizes);
}

static void test_timeout(dscomm_store_t *store)
{
    static const int timeouts[] = {0, 1, 150};
    const char *keys[20];
    char names[20][16];
    void *value = NULL;
    size_t size = 77;

    set_text(store, "t/there", "x");
    for (size_t i = 0; i < 3; i++) {
        double start = raw_now_ms(), took;

        status_is(
            dscomm_store_get(store, "t/absent", timeouts[i], &value, &size),
            DSCOMM_ERR_TIMEOUT, "get an absent key");
        took = raw_now_ms() - start;
        ok(took >= timeouts[i] && took < timeouts[i] + 1500,
           "%s: %d ms took %.1f", kind, timeouts[i], took);
        ok(!value && size == 77, "%s: outputs are untouched", kind);
        ok(strstr(dscomm_last_error(), "'t/absent'") != NULL,
           "%s: the key is named: %s", kind, dscomm_last_error());
        status_is(
            dscomm_store_get(store, "t/there", timeouts[i], &value, &size),
            DSCOMM_OK, "get a present key");
        dscomm_store_free(value);
        value = NULL;
        size = 77;
    }
    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "t/%s%d", i == 3 ? "there" : "no",
                 i);
        keys[i] = i == 3 ? "t/there" : names[i];
    }
    status_is(dscomm_store_wait(store, keys, 20, 20), DSCOMM_ERR_TIMEOUT,
              "wait for 20 keys");
    ok(strstr(dscomm_last_error(), "19 of 20") &&
           strstr(dscomm_last_error(), "'t/no0'") &&
           !strstr(dscomm_last_error(), "there") &&
           strstr(dscomm_last_error(), "and 13 more"),
       "%s: the missing are named: %s", kind, dscomm_last_error());
    status_is(dscomm_store_wait(store, keys, 1, -2), DSCOMM_ERR_INVALID,
              "a negative time-out");
    status_is(dscomm_store_wait(store, keys + 3, 1, DSCOMM_TIMEOUT_DEFAULT),
              DSCOMM_OK, "the default time-out");
}

static void test_prefix(dscomm_store_t *store)
{
    dscomm_store_t *outer = NULL, *inner = NULL, *none = NULL;
    char *long_prefix = malloc(DSCOMM_STORE_KEY_MAX + 1);

    status_is(dscomm_store_prefix(store, "job", &outer), DSCOMM_OK, "prefix");
    status_is(dscomm_store_prefix(outer, "group/1", &inner), DSCOMM_OK,
              "prefix of a prefix");
    set_text(inner, "k", "deep");
    has_text(store, "job/group/1/k", "deep", "whole key");
    has_text(outer, "group/1/k", "deep", "half a key");
    is_int(dscomm_store_port(inner), dscomm_store_port(store),
           "%s: a view's port", kind);
    dscomm_store_close(outer);
    has_text(inner, "k", "deep", "after the parent's close");
    status_is(dscomm_store_wait(inner, (const char *[]){"late"}, 1, 0),
              DSCOMM_ERR_TIMEOUT, "absent under a prefix");
    ok(strstr(dscomm_last_error(), "'job/group/1/late'") != NULL,
       "%s: with its prefix: %s", kind, dscomm_last_error());
    memset(long_prefix, 'p', DSCOMM_STORE_KEY_MAX);
    long_prefix[DSCOMM_STORE_KEY_MAX] = '\0';
    status_is(dscomm_store_prefix(store, long_prefix, &none),
              DSCOMM_ERR_INVALID, "a prefix too long");
    long_prefix[DSCOMM_STORE_KEY_MAX - 4] = '\0';
    status_is(dscomm_store_prefix(store, long_prefix, &none), DSCOMM_OK,
              "a long prefix");
    status_is(dscomm_store_set(none, "abc", "", 0), DSCOMM_OK, "fits");
    status_is(dscomm_store_delete(none, "abc", NULL), DSCOMM_OK, "delete it");
    status_is(dscomm_store_set(none, "abcd", "", 0), DSCOMM_ERR_INVALID,
              "a key too long with its prefix");
    dscomm_store_close(none);
    dscomm_store_close(inner);
    status_is(dscomm_store_prefix(store, NULL, &none), DSCOMM_ERR_INVALID,
              "no prefix");
    free(long_prefix);
}

static void *add_many(void *arg)
{
    intptr_t wrong = 0;

    for (int i = 0; i < ADDS; i++)
        wrong += dscomm_store_add(arg, "c/sum", 1, NULL) != DSCOMM_OK;
    return (void *)wrong;
}

static void test_threads(dscomm_store_t *store)
{
    pthread_t threads[THREADS];
    int64_t sum = 0;
    int wrong = 0;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, add_many, store);
    for (int i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        wrong += (int)(intptr_t)result;
    }
    is_int(wrong, 0, "%s: adds from %d threads", kind, THREADS);
    dscomm_store_add(store, "c/sum", 0, &sum);
    is_int(sum, THREADS * ADDS, "%s: none is lost", kind);
}

static void *set_later(void *arg)
{
    usleep(60000);
    dscomm_store_set(arg, "w/b", "b", 1);
    dscomm_store_append(arg, "w/c", "c", 1);
    dscomm_store_add(arg, "w/d", 1, NULL);
    dscomm_store_compare_set(arg, "w/e", "", 0, "e", 1, NULL, NULL);
    return NULL;
}

/* other: a separate store for the thread that sets */
static void test_wake(dscomm_store_t *store, dscomm_store_t *other)
{
    const char *keys[] = {"w/a", "w/b", "w/c", "w/d", "w/e", "w/b"};
    double start;
    pthread_t thread;

    set_text(store, "w/a", "a");
    start = raw_now_ms();
    pthread_create(&thread, NULL, set_later, other);
    status_is(dscomm_store_wait(store, keys, 6, 20000), DSCOMM_OK,
              "wait for keys of another thread");
    ok(raw_now_ms() - start < 10000, "%s: woken in time", kind);
    pthread_join(thread, NULL);
}

/* Tests a store and another user of it, which may be the same; closes both. */
static void test_store(dscomm_store_t *store, dscomm_store_t *other)
{
    test_values(store);
    test_keys(store);
    test_add(store);
    test_compare_set(store);
    test_append(store);
    test_delete(store);
    test_multi_get(store);
    test_timeout(store);
    test_prefix(store);
    test_threads(store);
    test_wake(store, other);
    if (other != store) {
        set_text(other, "shared", "yes");
        has_text(store, "shared", "yes", "what the other has set");
        dscomm_store_close(other);
    }
    dscomm_store_close(store);
}

static void test_kind(const char *name, const char *url,
                      const dscomm_store_attr_t *attr)
{
    dscomm_store_t *store = NULL, *other = NULL;
    char address[64];

    kind = name;
    if (!status_is(dscomm_store_open(url, attr, &store), DSCOMM_OK, "open"))
        return;
    if (strncmp(url, "tcp:", 4) == 0) {
        snprintf(address, sizeof address, "tcp://127.0.0.1:%d",
                 dscomm_store_port(store));
        status_is(dscomm_store_open(address, NULL, &other), DSCOMM_OK,
                  "a second client");
    } else if (strncmp(url, "file:", 5) == 0) {
        is_int(dscomm_store_port(store), 0, "%s: no port", kind);
        status_is(dscomm_store_open(url, attr, &other), DSCOMM_OK,
                  "a second user");
    } else {
        is_int(dscomm_store_port(store), 0, "%s: no port", kind);
        status_is(dscomm_store_prefix(store, "x", &other), DSCOMM_OK, "a view");
        dscomm_store_close(other);
        other = store;
    }
    test_store(store, other);
}

static void test_urls(void)
{
    static const struct {
        const char *url;
        dscomm_status_t status;
    } rows[] = {
        {"", DSCOMM_ERR_INVALID},
        {"memory", DSCOMM_ERR_INVALID},
        {"memory:///x", DSCOMM_ERR_INVALID},
        {"redis://localhost:1", DSCOMM_ERR_INVALID},
        {"file://relative", DSCOMM_ERR_INVALID},
        {"file:///", DSCOMM_ERR_IO},
        {"file:///dev/null", DSCOMM_ERR_INVALID},
        {"file:///no/such/folder/file", DSCOMM_ERR_IO},
        {"tcp://", DSCOMM_ERR_INVALID},
        {"tcp://localhost", DSCOMM_ERR_INVALID},
        {"tcp://:1234", DSCOMM_ERR_INVALID},
        {"tcp://localhost:", DSCOMM_ERR_INVALID},
        {"tcp://localhost:0", DSCOMM_ERR_INVALID},
        {"tcp://localhost:65536", DSCOMM_ERR_INVALID},
        {"tcp://localhost:12x", DSCOMM_ERR_INVALID},
        {"tcp://localhost:-1", DSCOMM_ERR_INVALID},
        {"tcp://::1:1234", DSCOMM_ERR_INVALID},
        {"tcp://[::1]", DSCOMM_ERR_INVALID},
        {"tcp://[::1:1234", DSCOMM_ERR_INVALID},
        {"tcp://[]:1234", DSCOMM_ERR_INVALID},
    };

    kind = "url";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dscomm_store_t *store = NULL;

        status_is(dscomm_store_open(rows[i].url, NULL, &store), rows[i].status,
                  rows[i].url);
        ok(!store, "url: %s: no store", rows[i].url);
    }
}

static void test_attributes(void)
{
    struct {
        dscomm_store_attr_t known;
        char more[8];
    } newer = {DSCOMM_STORE_ATTR_INIT, {0}};
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL;

    kind = "attributes";
    newer.known.size = sizeof newer;
    status_is(dscomm_store_open("memory://", &newer.known, &store), DSCOMM_OK,
              "a newer struct, all default");
    dscomm_store_close(store);
    newer.more[3] = 1;
    status_is(dscomm_store_open("memory://", &newer.known, &store),
              DSCOMM_ERR_INVALID, "a newer struct with a newer wish");
    attr.size = 0;
    status_is(dscomm_store_open("memory://", &attr, &store), DSCOMM_ERR_INVALID,
              "no size");
    attr.size = sizeof attr.size;
    attr.timeout_ms = -5;
    status_is(dscomm_store_open("memory://", &attr, &store), DSCOMM_OK,
              "an older struct ends before the rest");
    dscomm_store_close(store);
    attr.size = sizeof attr;
    status_is(dscomm_store_open("memory://", &attr, &store), DSCOMM_ERR_INVALID,
              "a negative time-out");
    attr.timeout_ms = 0;
    attr.world_size = -1;
    status_is(dscomm_store_open("memory://", &attr, &store), DSCOMM_ERR_INVALID,
              "a negative world");
    status_is(dscomm_store_open(NULL, NULL, &store), DSCOMM_ERR_INVALID,
              "no url");
    status_is(dscomm_store_open("memory://", NULL, NULL), DSCOMM_ERR_INVALID,
              "nowhere to put it");
    dscomm_store_close(NULL);
    dscomm_store_free(NULL);
    attr = (dscomm_store_attr_t)DSCOMM_STORE_ATTR_INIT;
    attr.timeout_ms = 30;
    status_is(dscomm_store_open("memory://", &attr, &store), DSCOMM_OK,
              "a default time-out");
    status_is(dscomm_store_wait(store, (const char *[]){"x"}, 1,
                                DSCOMM_TIMEOUT_DEFAULT),
              DSCOMM_ERR_TIMEOUT, "which ends a wait");
    dscomm_store_close(store);
}

/* A store of the program: one in memory. */
static dscomm_status_t own_set(void *arg, const char *key, const void *value,
                               size_t size)
{
    return dscomm_store_set(arg, key, value, size);
}

static dscomm_status_t own_get(void *arg, const char *key, int timeout_ms,
                               void **ret_value, size_t *ret_size)
{
    return dscomm_store_get(arg, key, timeout_ms, ret_value, ret_size);
}

static dscomm_status_t own_wait(void *arg, const char *const *keys,
                                size_t count, int timeout_ms)
{
    return dscomm_store_wait(arg, keys, count, timeout_ms);
}

static dscomm_status_t own_add(void *arg, const char *key, int64_t delta,
                               int64_t *ret_sum)
{
    return dscomm_store_add(arg, key, delta, ret_sum);
}

static dscomm_status_t own_compare_set(void *arg, const char *key,
                                       const void *expected,
                                       size_t expected_size,
                                       const void *desired, size_t desired_size,
                                       void **ret_value, size_t *ret_size)
{
    return dscomm_store_compare_set(arg, key, expected, expected_size, desired,
                                    desired_size, ret_value, ret_size);
}

static dscomm_status_t own_append(void *arg, const char *key, const void *value,
                                  size_t size)
{
    return dscomm_store_append(arg, key, value, size);
}

static dscomm_status_t own_remove(void *arg, const char *key, int *ret_deleted)
{
    return dscomm_store_delete(arg, key, ret_deleted);
}

static dscomm_status_t own_check(void *arg, const char *const *keys,
                                 size_t count, int *ret_present)
{
    return dscomm_store_check(arg, keys, count, ret_present);
}

static dscomm_status_t own_num_keys(void *arg, int64_t *ret_count)
{
    return dscomm_store_num_keys(arg, ret_count);
}

static void own_close(void *arg)
{
    dscomm_store_close(arg);
}

static dscomm_status_t own_fails(void *arg, const char *key, int64_t delta,
                                 int64_t *ret_sum)
{
    (void)arg;
    (void)key;
    *ret_sum = delta;
    return (dscomm_status_t)(delta < 0 ? -1000 : DSCOMM_ERR_IO);
}

static void test_custom(void)
{
    dscomm_store_custom_t custom = DSCOMM_STORE_CUSTOM_INIT;
    dscomm_store_t *memory = NULL, *store = NULL;
    int64_t count;

    kind = "custom";
    status_is(dscomm_store_open("memory://", NULL, &memory), DSCOMM_OK,
              "a store to call");
    custom.arg = memory;
    custom.set = own_set;
    custom.get = own_get;
    custom.wait = own_wait;
    custom.add = own_fails;
    custom.compare_set = own_compare_set;
    custom.append = own_append;
    custom.remove = own_remove;
    status_is(dscomm_store_open_custom(&custom, NULL, &store),
              DSCOMM_ERR_INVALID, "a function is missing");
    is_str(dscomm_last_error(),
           "dscomm_store_open_custom: function check is NULL", "which");
    status_is(dscomm_store_open_custom(NULL, NULL, &store), DSCOMM_ERR_INVALID,
              "no functions");
    status_is(dscomm_store_open_custom(&custom, NULL, NULL), DSCOMM_ERR_INVALID,
              "no result");
    custom.check = own_check;
    status_is(dscomm_store_open_custom(&custom, NULL, &store), DSCOMM_OK,
              "open");
    status_is(dscomm_store_num_keys(store, &count), DSCOMM_ERR_UNSUPPORTED,
              "a store that cannot count");
    status_is(dscomm_store_add(store, "x", 1, &count), DSCOMM_ERR_IO,
              "a function that fails without a sentence");
    is_str(dscomm_last_error(),
           "the program's store, key 'x': system call failed", "its sentence");
    status_is(dscomm_store_add(store, "x", -1, &count), DSCOMM_ERR_PROTOCOL,
              "a function that fails with an unknown status");
    dscomm_store_close(store);
    custom.add = own_add;
    custom.num_keys = own_num_keys;
    custom.close = own_close;
    if (status_is(dscomm_store_open_custom(&custom, NULL, &store), DSCOMM_OK,
                  "open"))
        test_store(store, store);
}

int main(void)
{
    dscomm_store_attr_t serve = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_attr_t users = DSCOMM_STORE_ATTR_INIT;
    char folder[] = "/tmp/dscomm-store-XXXXXX", url[64];

    serve.serve = 1;
    users.world_size = 2;
    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(url, sizeof url, "file://%s/store", folder);
    test_urls();
    test_attributes();
    test_kind("memory", "memory://", NULL);
    test_custom();
    test_kind("tcp", "tcp://127.0.0.1:0", &serve);
    test_kind("file", url, &users);
    ok(access(url + strlen("file://"), F_OK) != 0,
       "file: the last user has removed it");
    rmdir(folder);
    return tap_done();
}
