/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks whose job secrets differ: all of them learn why they do not meet, long
 * before their deadline. */
#include "config.h"

#include "tests/backends/job.h"
#include "tests/lib/store/raw.h"
#include "tests/tap.h"

#include "lib/store/store.h"

#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 60000
#define SECRET "sixteen letters."
#define OTHER "sixteen letters!"
#define RANKS_MOST 3
#define ALONE_MS 5000

typedef struct {
    const char *what;
    int ranks, odd; /* number of ranks; the rank that cannot meet rank 0 */
    const char *secrets[RANKS_MOST];
    const char *cause; /* in the sentence of rank 0 */
} scenario_t;

static const scenario_t scenarios[] = {
    {"two secrets",
     2,
     1,
     {SECRET, OTHER},
     "it has another job secret than rank 0, or none"},
    {"a secret of rank 0 alone",
     2,
     1,
     {SECRET, NULL},
     "it has another job secret than rank 0, or none"},
    {"a secret of rank 1 alone",
     2,
     1,
     {NULL, SECRET},
     "it has a job secret, and rank 0 has none"},
    {"one of three ranks has another secret",
     3,
     2,
     {SECRET, SECRET, OTHER},
     "it has another job secret than rank 0, or none"},
};

/* The last rank joins when all others have: they learn the reason from rank 0,
 * and not that nobody serves the store any more. */
static void await_others(const job_rank_t *me)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;
    char key[32];
    void *value;
    size_t size;

    attr.timeout_ms = TIMEOUT_MS;
    if (dscomm_store_open(me->rendezvous, &attr, &store))
        return;
    snprintf(key, sizeof key, "dscomm/0/1/r/%d", me->rank - 1);
    if (dscomm_store_get(store, key, DSCOMM_TIMEOUT_DEFAULT, &value, &size) ==
        DSCOMM_OK)
        dscomm_store_free(value);
    dscomm_store_close(store);
}

static void set_secret(const char *secret)
{
    if (secret)
        setenv("DSCOMM_JOB_SECRET", secret, 1);
    else
        unsetenv("DSCOMM_JOB_SECRET");
}

static void meet(job_rank_t *me)
{
    const scenario_t *scenario = me->arg;

    set_secret(scenario->secrets[0]);
    if (me->rank == scenario->odd)
        await_others(me);
    set_secret(scenario->secrets[me->rank]);
    if (job_init(me) == DSCOMM_OK)
        job_report(me, dscomm_finalize(me->world));
}

static void check(const scenario_t *scenario)
{
    char who[64];
    job_t job;
    pid_t odd;

    job_make(&job, scenario->ranks, job_slowly(TIMEOUT_MS), meet,
             (void *)scenario);
    job_use_tcp(&job);
    job_start(&job);
    odd = job.pids[scenario->odd];
    ok(job_join(&job, job_slowly(TIMEOUT_MS / 2)),
       "%s: all ranks end long before the deadline", scenario->what);
    snprintf(who, sizeof who, "rank %d of %d (pid %d on ", scenario->odd,
             scenario->ranks, (int)odd);
    for (int r = 0; r < scenario->ranks; r++) {
        const int odd_one = r == scenario->odd;

        ok(job_reported(&job, 1u << r, DSCOMM_ERR_MISMATCH, TIMEOUT_MS / 2,
                        "DSCOMM_JOB_SECRET_FILE", odd_one ? "127.0.0.1" : who,
                        odd_one ? NULL : scenario->cause, NULL),
           "  rank %d: %s", r, job.reports[r].sentence);
    }
    job_end(&job, scenario->what);
}

static void come_alone(job_rank_t *me)
{
    if (job_init(me) == DSCOMM_OK)
        job_report(me, dscomm_finalize(me->world));
}

/* A stranger reports that it was refused, as soon as the server is there. */
static void send_refused(int port)
{
    const double end = job_now_ms() + job_slowly(TIMEOUT_MS);
    dscomm_priv_rank_t rank = {.world = "another", .name = "rank 7 of 9"};
    raw_t raw = {.size = 0};
    uint32_t echo;
    int fd;

    while ((fd = raw_connect(port)) < 0 && job_now_ms() < end)
        job_sleep_ms(10);
    raw_hello(&raw);
    raw_put(&raw, 68, 1);
    memcpy(raw.data + raw.size, &rank, sizeof rank);
    raw.size += sizeof rank;
    raw_ping(&raw, 1);
    raw_send(fd, raw.data, raw.size);
    raw_recv(fd, &echo, 4, job_slowly(ALONE_MS));
    close(fd);
}

/* The stranger's report does not end the start-up, but is in the sentence when
 * the start-up has failed. */
static void check_stranger(void)
{
    job_t job;

    job_make(&job, 2, job_slowly(ALONE_MS), come_alone, NULL);
    job_use_tcp(&job);
    job_start_rank(&job, 0);
    send_refused(atoi(strrchr(job.rendezvous, ':') + 1));
    job_join(&job, job_slowly(TIMEOUT_MS));
    ok(job_reported(&job, 1, DSCOMM_ERR_MISMATCH, TIMEOUT_MS,
                    "rank 1 of 2 did not come within ",
                    "s; 1 connection was refused",
                    "that it is rank 7 of 9:", "DSCOMM_JOB_SECRET_FILE", NULL),
       "a stranger is named: %s", job.reports[0].sentence);
    ok(job.reports[0].took_ms >= ALONE_MS, "but ends nothing: %.0f ms",
       job.reports[0].took_ms);
    job_end(&job, "a stranger");
}

int main(void)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        check(&scenarios[i]);
    check_stranger();
    return job_done();
}
