/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that gets no memory: it goes on, and its clients report it.
 * Allocations fail in the server's thread only. */
#include "tests/lib/store/fixture.h"

#include "tests/backends/inject-memory.h"

#include <stdatomic.h>
#include <stdbool.h>

#define ALL 1000000
#define REFUSED 68 /* the command */
#define STEPS 12 /* more allocations than a call causes in the server */

static _Thread_local bool is_client;
/* allocations that succeed before the first that fails */
static atomic_int passing;
static atomic_int failing; /* requests that fail */

int inject_memory_fails(void)
{
    if (is_client || !atomic_load(&failing))
        return 0;
    if (atomic_fetch_sub(&passing, 1) > 0)
        return 0;
    return atomic_fetch_sub(&failing, 1) > 0;
}

static void fail(int first, int count)
{
    atomic_store(&failing, 0);
    atomic_store(&passing, first);
    atomic_store(&failing, count);
}

static const struct {
    const char *name;
    int call;
} calls[] = {
    {"set", CALL_SET},          {"add", CALL_ADD},
    {"append", CALL_APPEND},    {"compare_set", CALL_COMPARE_SET},
    {"get", CALL_GET},          {"check", CALL_CHECK},
    {"delete", CALL_DELETE},    {"num_keys", CALL_NUM_KEYS},
    {"a last will", CALL_WILL},
};

/* Returns whether the status and the sentence of a call are right. */
static bool is_true(dscomm_status_t status)
{
    const char *sentence = dscomm_last_error();

    if (!status)
        return true;
    return status == DSCOMM_ERR_NO_MEMORY &&
           strstr(sentence, "out of memory") && !strstr(sentence, "ended") &&
           !strstr(sentence, "no decimal number") &&
           !strstr(sentence, "most 8");
}

/* Every allocation of a call fails, one in each trial. */
static void test_each(int port)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        dscomm_store_t *store = must_open_store(url_of(port), NULL, 0);
        int wrong = 0, failed = 0;

        for (int k = 0; k < STEPS; k++) {
            dscomm_status_t status;

            call_store(store, CALL_SET, 0);
            fail(k, 1);
            status = call_store(store, calls[i].call, WAIT_MS);
            fail(0, 0);
            failed += status != DSCOMM_OK;
            if (is_true(status))
                continue;
            wrong++;
            tap_text("wrong:", dscomm_last_error());
        }
        is_int(wrong, 0, "%s: each failure is named truly", calls[i].name);
        ok(failed < STEPS, "%s: after the last one it succeeds", calls[i].name);
        dscomm_store_close(store);
    }
}

/* All allocations fail, for longer than a client waits. */
static void test_none(int port)
{
    dscomm_store_t *store = must_open_store(url_of(port), NULL, 0), *other;

    call_store(store, CALL_SET, 0);
    fail(0, ALL);
    status_is(call_store(store, CALL_ADD, 0), DSCOMM_ERR_NO_MEMORY,
              "a server without memory");
    ok(is_true(DSCOMM_ERR_NO_MEMORY), "%s", dscomm_last_error());
    status_is(call_store(store, CALL_WILL, 0), DSCOMM_ERR_NO_MEMORY,
              "and when it goes on");
    ok(is_true(DSCOMM_ERR_NO_MEMORY), "%s", dscomm_last_error());
    status_is(open_store(url_of(port), NULL, 0, 20000, &other),
              DSCOMM_ERR_PROTOCOL, "another store is not opened");
    error_says("out of memory");
    fail(0, 6);
    status_is(call_store(store, CALL_ADD, 0), DSCOMM_OK,
              "a call waits for memory");
    fail(0, 6);
    status_is(open_store(url_of(port), NULL, 0, 20000, &other), DSCOMM_OK,
              "so does opening a store");
    fail(0, 0);
    dscomm_store_close(other);
    dscomm_store_close(store);
}

/* A process reports that it was refused: at most the report is lost. */
static void test_report(int port)
{
    static const uint8_t rank[sizeof(dscomm_priv_rank_t)] = "2 run job";
    int wrong = 0;

    for (int k = 0; k < STEPS; k++) {
        const int fd = raw_client(port);
        raw_t report = {.data = {REFUSED}, .size = 1};

        memcpy(report.data + report.size, rank, sizeof rank);
        report.size += sizeof rank;
        fail(k, ALL);
        raw_echo(fd, &report, 1);
        fail(0, 0);
        close(fd);
        wrong += !is_alive(port);
    }
    is_int(wrong, 0, "a report for which there is no memory");
}

/* A refused request is named in the sentence, too. */
static void test_refused(int port)
{
    static char large[DSCOMM_STORE_VALUE_MAX];
    dscomm_store_t *store = must_open_store(url_of(port), NULL, 0);
    int64_t sum;

    status_is(dscomm_store_set(store, "text", "apples", 6), DSCOMM_OK,
              "a word");
    status_is(dscomm_store_add(store, "text", 1, &sum), DSCOMM_ERR_INVALID,
              "is no number");
    ok(strstr(dscomm_last_error(), "'text'") &&
           strstr(dscomm_last_error(), "'apples' is no decimal number"),
       "%s", dscomm_last_error());
    status_is(dscomm_store_add(store, "large", INT64_MAX, &sum), DSCOMM_OK,
              "a large number");
    status_is(dscomm_store_add(store, "large", 1, &sum), DSCOMM_ERR_INVALID,
              "has no successor");
    error_says("64 bits");
    status_is(dscomm_store_append(store, "text", large, sizeof large - 5),
              DSCOMM_ERR_INVALID, "a value that would become too long");
    error_says("8388603 bytes to the 6");
    dscomm_store_close(store);
}

int main(void)
{
    dscomm_priv_server_t *server;
    int port;

    inject_memory_prepare();
    is_client = true;
    server = start_server(NULL, NULL, &port);
    test_each(port);
    test_none(port);
    test_report(port);
    test_refused(port);
    dscomm_priv_server_close(server);
    return tap_done();
}
