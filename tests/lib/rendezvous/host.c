/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of other jobs, and with other world sizes, at rank 0's store. */
#include "config.h"

#include "lib/rendezvous/rendezvous.h"

#include "lib/base/clock.h"
#include "lib/rendezvous/join-decision.h"
#include "lib/store/store.h"
#include "tests/tap.h"

#include <glib.h>
#include <string.h>

#define KEY DSCOMM_HOST_KEY
#define SOON_NS (500 * NS_PER_MS) /* half the time of a late rank 0 */
#define TRIES 5 /* one of these attempts is not delayed by the machine */

static dscomm_store_t *store;

static dscomm_join_t join_of(int rank, int size, const char *run)
{
    dscomm_join_t join = {.rank = rank,
                          .size = size,
                          .serve = 1,
                          .ports = 1,
                          .url = (char *)"tcp://127.0.0.1:7"};

    g_strlcpy(join.run_id, run, sizeof join.run_id);
    return join;
}

static dscomm_status_t meet(int rank, int size, const char *run, int ms)
{
    const dscomm_join_t join = join_of(rank, size, run);

    return dscomm_priv_host_meet(
        &join, store, 1, dscomm_priv_clock_after(dscomm_priv_clock(), ms));
}

static int is_there(const char *key)
{
    int present = 0;

    return dscomm_store_check(store, &key, 1, &present) == DSCOMM_OK && present;
}

/* Which rank is refused, and whether the job is notified as well. */
static const struct {
    int rank, size;
    const char *run;
    int told;
    const char *says;
} strangers[] = {
    {3, 4, "0", 1, "of 4 ranks;"},
    {1, 4, "0", 1, "of 4 ranks;"},
    {1, 1000, "0", 1, "of 1000 ranks"},
    {1, 2, "other/0", 0, "of 2 ranks and run 'other/0'"},
    {1, 2, "", 0, "of 2 ranks and run ''"},
};

static void test_strangers(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(strangers); i++) {
        char *key =
            g_strdup_printf("dscomm/%s/1/" DSCOMM_JOIN_WRONG, strangers[i].run);
        int64_t begin = dscomm_priv_clock();

        is_int(meet(strangers[i].rank, strangers[i].size, strangers[i].run,
                    1800000),
               DSCOMM_ERR_MISMATCH, "stranger %zu is refused", i);
        ok(strstr(dscomm_last_error(), strangers[i].says) &&
               strstr(dscomm_last_error(), "told of 2 ranks, rank ") &&
               strstr(dscomm_last_error(), "tcp://127.0.0.1:7") &&
               strstr(dscomm_last_error(), "MASTER_PORT"),
           "  %s", dscomm_last_error());
        ok(dscomm_priv_clock() - begin < 30000000000, "  soon");
        is_int(is_there(key), strangers[i].told, "  the job is told");
        dscomm_store_delete(store, key, NULL);
        g_free(key);
    }
}

/* The sentence for a rank whose store an agent serves. */
static void test_agent(void)
{
    static const struct {
        const char *run;
        dscomm_status_t want;
    } runs[] = {{"job/0", DSCOMM_OK},
                {"job/12", DSCOMM_OK},
                {"job", DSCOMM_OK},
                {"0", DSCOMM_OK},
                {"job1/0", DSCOMM_ERR_MISMATCH},
                {"jo/0", DSCOMM_ERR_MISMATCH},
                {"other/0", DSCOMM_ERR_MISMATCH}};

    dscomm_store_set(store, "dscomm-run/run", "job", 3);
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        dscomm_join_t join = join_of(1, 2, runs[i].run);

        join.serve = 0;
        is_int(dscomm_priv_host_meet(&join, store, 1, 0), runs[i].want,
               "a rank of run '%s' at an agent of 'job'", runs[i].run);
        ok(runs[i].want == DSCOMM_OK ||
               (strstr(dscomm_last_error(), "for run 'job'") &&
                strstr(dscomm_last_error(), runs[i].run)),
           "  %s", runs[i].want ? dscomm_last_error() : "");
    }
}

/* A rank without a run id at the store of dscomm run. */
static void test_nameless(void)
{
    is_int(meet(1, 2, "0", 1800000), DSCOMM_ERR_MISMATCH,
           "a rank without a run at dscomm run");
    ok(strstr(dscomm_last_error(),
              "dscomm run serves the store there for run 'job', and this "
              "process is rank 1 of 2") != NULL,
       "  %s", dscomm_last_error());
}

/* A rank that expects an agent's store, at rank 0's own store. */
static void test_leftover(void)
{
    dscomm_join_t client = join_of(1, 3, "old/0");

    client.serve = 0;
    is_int(meet(0, 2, "0", 1000), DSCOMM_OK, "rank 0 says so");
    is_int(dscomm_priv_host_meet(
               &client, store, 1,
               dscomm_priv_clock_after(dscomm_priv_clock(), 60000)),
           DSCOMM_ERR_MISMATCH, "a rank of an agent at a rank 0");
    ok(strstr(dscomm_last_error(), "told of 2 ranks, serves the store there") &&
           strstr(dscomm_last_error(), "rank 1 of 3 ranks and run 'old/0'") &&
           strstr(dscomm_last_error(), "TORCHELASTIC_USE_AGENT_STORE"),
       "  %s", dscomm_last_error());
}

/* In an agent's store, which may be empty, no rank waits for a rank 0. */
static void test_empty(void)
{
    dscomm_join_t client = join_of(1, 2, "job/0");
    int64_t least = INT64_MAX;

    client.serve = 0;
    for (int i = 0; i < TRIES; i++) {
        const int64_t begin = dscomm_priv_clock();

        is_int(dscomm_priv_host_meet(&client, store, 1,
                                     dscomm_priv_clock_after(begin, 60000)),
               DSCOMM_OK, "an agent's store may be for several");
        least = MIN(least, dscomm_priv_clock() - begin);
    }
    ok(least < SOON_NS, "and is used at once");
}

/* The store that rank 0 serves identifies its job from the start, so a rank
 * that finds the store empty knows that it is not rank 0's. */
static void test_from_the_start(void)
{
    const dscomm_join_t host = join_of(0, 2, "0");
    dscomm_join_t client = join_of(1, 2, "old/0");
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    char *text = dscomm_priv_host_text(&host);
    const dscomm_priv_job_t job = {
        .ports = 1, .key = "/" DSCOMM_HOST_KEY, .text = text};
    dscomm_store_t *served;

    attr.serve = 1;
    if (dscomm_priv_store_open("tcp://127.0.0.1:0", &attr, &job, &served))
        bail("%s", dscomm_last_error());
    client.serve = 0;
    is_int(dscomm_priv_host_meet(&client, served, 1, 0), DSCOMM_ERR_MISMATCH,
           "a rank of an agent at a rank 0 that has just begun");
    ok(strstr(dscomm_last_error(), "told of 2 ranks, serves the store there") !=
           NULL,
       "  %s", dscomm_last_error());
    dscomm_store_close(served);
    g_free(text);
}

static void renew(void)
{
    dscomm_store_close(store);
    if (dscomm_store_open("memory://", NULL, &store))
        bail("%s", dscomm_last_error());
}

int main(void)
{
    if (dscomm_store_open("memory://", NULL, &store))
        bail("%s", dscomm_last_error());
    test_empty();
    test_from_the_start();
    test_leftover();
    renew();
    is_int(meet(1, 2, "0", 200), DSCOMM_ERR_TIMEOUT, "no rank 0 says so");
    ok(strstr(dscomm_last_error(), "another program has the port") != NULL,
       "  %s", dscomm_last_error());
    is_int(meet(0, 2, "0", 1000), DSCOMM_OK, "rank 0 says so");
    is_int(meet(1, 2, "0", 1000), DSCOMM_OK, "rank 1 is its own");
    test_strangers();
    is_int(meet(0, 2, "a\n\tb", 1000), DSCOMM_OK, "an odd run");
    is_int(meet(1, 2, "a\n\tb", 1000), DSCOMM_OK, "is the same for rank 1");
    renew();
    test_agent();
    test_nameless();
    dscomm_store_set(store, KEY, "2", 1);
    is_int(meet(1, 2, "0", 1000), DSCOMM_ERR_PROTOCOL, "nonsense");
    dscomm_store_close(store);
    return tap_done();
}
