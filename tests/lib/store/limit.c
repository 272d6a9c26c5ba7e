/* SPDX-License-Identifier: BSD-3-Clause */
/* The one deadline of a call that sends several requests to a store whose
 * server is stopped: how much time each request gets, and that none is sent
 * after the deadline. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/store/store.h"
#include "tests/lib/store/fixture.h"
#include "tests/tap.h"

#define MS NS_PER_MS
#define NEVER INT64_MAX
#define GRACE (1000 * MS)
#define SILENT (300 * MS)
#define DUE (100 * MS)

/* Times are relative to the request. */
static const struct {
    const char *name;
    int64_t due, end; /* of the view */
    int timeout_ms;
    bool waits, silent;
    int64_t at, last;
} rows[] = {
    {"no limit", NEVER, NEVER, 5000, false, false, 5000 * MS, 6000 * MS},
    {"no limit, silent", NEVER, NEVER, 5000, true, true, 5000 * MS, 5300 * MS},
    {"long before it is due", 5000 * MS, 6500 * MS, 9000, false, false,
     5000 * MS, 5000 * MS + DUE},
    {"the same, silent", 5000 * MS, 6500 * MS, 9000, false, true, 5000 * MS,
     5000 * MS + DUE},
    {"a short wait before", 5000 * MS, 6500 * MS, 200, true, false, 200 * MS,
     200 * MS + GRACE},
    {"the same, silent", 5000 * MS, 6500 * MS, 200, true, true, 200 * MS,
     200 * MS + SILENT},
    {"a long wait before", 5000 * MS, 6500 * MS, 9000, true, true, 5000 * MS,
     5000 * MS + DUE},
    {"shortly before", 10 * MS, 1510 * MS, 9000, false, false, 10 * MS, GRACE},
    {"the same, silent", 10 * MS, 1510 * MS, 9000, false, true, 10 * MS,
     10 * MS + DUE},
    {"after it was due", -10 * MS, 1490 * MS, 9000, false, false, 0, GRACE},
    {"the same, silent", -10 * MS, 1490 * MS, 9000, false, true, 0, 0},
    {"a wait after it, silent", -10 * MS, 1490 * MS, 200, true, true, 0, 0},
    {"an end that is nearer", -10 * MS, 400 * MS, 200, true, false, 200 * MS,
     400 * MS},
};

/* Returns whether value is the wanted time for a moment between before and
 * after. */
static bool is_at(int64_t value, int64_t wanted, int64_t before, int64_t after)
{
    return value >= before + wanted && value <= after + wanted;
}

static void test_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int64_t before = dscomm_priv_clock();
        const dscomm_priv_limit_t limit = {
            rows[i].due == NEVER ? NEVER : before + rows[i].due,
            rows[i].end == NEVER ? NEVER : before + rows[i].end,
        };
        const dscomm_priv_deadline_t deadline = dscomm_priv_deadline_within(
            limit, rows[i].timeout_ms, rows[i].waits, rows[i].silent);
        const int64_t after = dscomm_priv_clock();

        ok(is_at(deadline.at, rows[i].at, before, after) &&
               is_at(deadline.end, rows[i].last, before, after),
           "%s: %s", rows[i].waits ? "keys" : "an answer", rows[i].name);
    }
}

/* The server answers only the handshake, and accepts only one connection: a
 * request on another one would find that it has ended. */
static void test_silent(void)
{
    fake_t fake = {0};
    dscomm_store_t *store = fake_open(&fake);
    int failed = 0;

    ok(!dscomm_priv_store_silent(store, NULL), "a store that has answered");
    dscomm_priv_store_limit_diagnosis(store, 200);
    is_int(dscomm_store_set(store, "a", "b", 1), DSCOMM_ERR_TIMEOUT,
           "a diagnosis, of a server that answers nothing");
    ok(dscomm_priv_store_silent(store, NULL), "it is silent then");
    dscomm_priv_store_limit(
        store, dscomm_priv_clock(),
        dscomm_priv_clock_after(dscomm_priv_clock(), 60000));
    for (int i = 0; i < 100; i++)
        failed += call_store(store, i % (CALL_MULTI_GET + 1), 200) ==
                  DSCOMM_ERR_TIMEOUT;
    is_int(failed, 100, "after the deadline all requests fail");
    fake_close(&fake, store);
}

/* A deadline that has passed before the request does not make the server
 * silent. */
static void test_passed(void)
{
    const int64_t now = dscomm_priv_clock();
    fake_t fake = {0};
    dscomm_store_t *store = fake_open(&fake);

    dscomm_priv_store_limit(store, now, now);
    is_int(dscomm_store_set(store, "a", "b", 1), DSCOMM_ERR_TIMEOUT,
           "a request after the end");
    ok(!dscomm_priv_store_silent(store, NULL), "  does not make it silent");
    fake_close(&fake, store);
}

int main(void)
{
    test_rows();
    test_passed();
    test_silent();
    return tap_done();
}
