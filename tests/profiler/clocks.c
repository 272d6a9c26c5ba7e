/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks of three machines, of which two are ahead, behind, and faster than
 * rank 0's: times are translated within the error that is stated. Ranks are
 * threads. */
#include "config.h"

#include "profiler/clocks.h"

#include "lib/base/clock.h"
#include "tests/tap.h"

#include <pthread.h>
#include <unistd.h>

#define RANKS 5
#define WAIT_MS 30000
#define SHORT_MS 2000

typedef struct {
    const char *machine;
    int64_t ahead_ns;
    double faster; /* ns for each ns */
} machine_t;

static const machine_t machines[RANKS] = {
    {"a", 0, 0},
    {"a", 0, 0},
    {"b", INT64_C(1000000000000), 1e-3},
    {"b", INT64_C(1000000000000), 1e-3},
    {"c", -5000000000, -1e-3},
};

static _Thread_local const machine_t *mine;
static int64_t began;
static dscomm_store_t *store;

/* Returns the time of a clock that is ahead and faster, at a time of rank 0's.
 */
static int64_t shown(const machine_t *machine, int64_t ns)
{
    return ns + machine->ahead_ns +
           (int64_t)(machine->faster * (double)(ns - began));
}

static int64_t now(void)
{
    return shown(mine, dscomm_priv_clock());
}

typedef struct {
    int rank;
    clocks_t clocks;
    int64_t middle_ns; /* of rank 0's clock */
} rank_t;

static void *rank_run(void *arg)
{
    rank_t *rank = arg;
    clocks_t *clocks = &rank->clocks;

    mine = &machines[rank->rank];
    dscomm_priv_clocks_init(clocks, rank->rank, RANKS);
    snprintf(clocks->identity, sizeof clocks->identity, "%s", mine->machine);
    clocks->now = now;
    dscomm_priv_clocks_measure(clocks, store, WAIT_MS);
    usleep(20000);
    rank->middle_ns = dscomm_priv_clock();
    usleep(20000);
    dscomm_priv_clocks_measure(clocks, store, WAIT_MS);
    return NULL;
}

static void machines_compare(void)
{
    static rank_t ranks[RANKS];
    pthread_t threads[RANKS];

    began = dscomm_priv_clock();
    for (int i = 0; i < RANKS; i++) {
        ranks[i].rank = i;
        if (pthread_create(&threads[i], NULL, rank_run, &ranks[i]))
            bail("no thread");
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < RANKS; i++) {
        const clocks_t *clocks = &ranks[i].clocks;
        const int64_t error = dscomm_priv_clocks_error(clocks);
        const int64_t got = dscomm_priv_clocks_apply(
            clocks, shown(&machines[i], ranks[i].middle_ns));

        ok(clocks->is_shared == (i < 2), "rank %d: shares the clock: %d", i,
           clocks->is_shared);
        ok(i < 2 ? error == 0 : error > 0, "rank %d: its error is known", i);
        ok(got >= ranks[i].middle_ns - error - 1 &&
               got <= ranks[i].middle_ns + error + 1,
           "rank %d: a time between both measurements is right", i);
    }
    ok(ranks[2].clocks.is_leader + ranks[3].clocks.is_leader == 1,
       "one rank asks for its machine");
    for (int i = 0; i < RANKS; i++)
        dscomm_priv_clocks_clear(&ranks[i].clocks);
}

static void alone(void)
{
    clocks_t clocks;

    mine = &machines[2];
    dscomm_priv_clocks_init(&clocks, 1, 2);
    dscomm_store_close(store);
    if (dscomm_store_open("memory://", NULL, &store))
        bail("%s", dscomm_last_error());
    dscomm_priv_clocks_measure(&clocks, store, 50);
    is_int(dscomm_priv_clocks_error(&clocks), -1,
           "without rank 0 the error is not known");
    is_int(dscomm_priv_clocks_apply(&clocks, 17), 17, "and times stay");
    dscomm_priv_clocks_clear(&clocks);
    dscomm_priv_clocks_init(&clocks, 0, 2);
    dscomm_priv_clocks_measure(&clocks, store, 50);
    is_int(dscomm_priv_clocks_error(&clocks), 0,
           "rank 0 has no error, even if nobody comes");
    dscomm_priv_clocks_clear(&clocks);
}

/* One of four machines asks for the time, is silent at first, and has a second
 * rank. It must not keep the others from their answers, at the begin or at the
 * end. */
static void *silent_run(void *arg)
{
    rank_t *rank = arg;
    const bool is_silent = rank->rank == 1;
    clocks_t *clocks = &rank->clocks;

    mine = &machines[4];
    dscomm_priv_clocks_init(clocks, rank->rank, RANKS);
    snprintf(clocks->identity, sizeof clocks->identity, "%d",
             rank->rank == 4 ? 1 : rank->rank);
    if (rank->rank == 4)
        usleep(400000); /* so that rank 1 is the leader */
    /* The leader comes, and has no time left for asking. */
    dscomm_priv_clocks_measure(clocks, store, is_silent ? 200 : SHORT_MS);
    if (is_silent)
        usleep((SHORT_MS + 100) * 1000);
    rank->middle_ns = clocks->count;
    dscomm_priv_clocks_measure(clocks, store, SHORT_MS);
    return NULL;
}

static void silent(void)
{
    static rank_t ranks[RANKS];
    pthread_t threads[RANKS];

    dscomm_store_close(store);
    if (dscomm_store_open("memory://", NULL, &store))
        bail("%s", dscomm_last_error());
    for (int i = 0; i < RANKS; i++) {
        ranks[i].rank = i;
        if (pthread_create(&threads[i], NULL, silent_run, &ranks[i]))
            bail("no thread");
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < RANKS; i++) {
        const bool late = i == 1 || i == 4;

        is_int(ranks[i].middle_ns, !late, "rank %d, at the begin", i);
        is_int(ranks[i].clocks.count, late ? 1 : 2, "rank %d, at the end", i);
        dscomm_priv_clocks_clear(&ranks[i].clocks);
    }
    ok(ranks[1].clocks.is_leader && !ranks[4].clocks.is_leader,
       "a leader that has failed stays it");
    dscomm_priv_clocks_clear(&ranks[0].clocks);
}

int main(void)
{
    if (dscomm_store_open("memory://", NULL, &store))
        bail("%s", dscomm_last_error());
    machines_compare();
    alone();
    silent();
    dscomm_store_close(store);
    return tap_done();
}
