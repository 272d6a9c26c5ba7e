/* SPDX-License-Identifier: BSD-3-Clause */
/* The meeting of a group's ranks before there is a communicator: all ranks get
 * the same decision. The ranks call one after the other, in one process. */
#include "config.h"

#include "backends/mpi/engine.h"
#include "tests/tap.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 3

static dscomm_store_t *store;

/* Replaces the library's function: fails so many times. */
static int failures;
dscomm_status_t __real_dscomm_backend_creation_get(
    const dscomm_backend_args_t *args, const char *const *keys, size_t count,
    int timeout_ms, void **ret_values, size_t *ret_sizes);
dscomm_status_t __wrap_dscomm_backend_creation_get(
    const dscomm_backend_args_t *args, const char *const *keys, size_t count,
    int timeout_ms, void **ret_values, size_t *ret_sizes);

dscomm_status_t __wrap_dscomm_backend_creation_get(
    const dscomm_backend_args_t *args, const char *const *keys, size_t count,
    int timeout_ms, void **ret_values, size_t *ret_sizes)
{
    if (failures && failures--)
        return dscomm_fail(DSCOMM_ERR_PEER_FAILED, "rank 2 died");
    return __real_dscomm_backend_creation_get(args, keys, count, timeout_ms,
                                              ret_values, ret_sizes);
}

/* Returns what rank gets: the map, or the failure. */
static dscomm_status_t come(int rank, dscomm_status_t own, const char *engine,
                            mpi_map_t **ret_map)
{
    static const int world_ranks[] = {0, 1, 2};
    const dscomm_backend_args_t args = {.size = sizeof args,
                                        .name = "g",
                                        .id = "w",
                                        .rank = rank,
                                        .ranks = RANKS,
                                        .store = store,
                                        .world_ranks = world_ranks,
                                        .open_ms = 100};
    mpi_card_t card = {
        .mpi_rank = 10 + rank, .blocking = 1, .chunk = 5, .based = 1};

    g_strlcpy(card.engine, engine, sizeof card.engine);
    *ret_map = NULL;
    if (own < 0)
        dscomm_fail(own, "no such thing");
    return mpi_meet(&args, own, &card, ret_map);
}

static void refused(int rank, dscomm_status_t own, const char *engine,
                    dscomm_status_t wanted, const char *sentence)
{
    mpi_map_t *map;

    is_int(come(rank, own, engine, &map), wanted, "rank %d is refused", rank);
    is_str(dscomm_last_error(), sentence, "rank %d knows why", rank);
}

static void open_store(void)
{
    if (dscomm_store_open("memory://", NULL, &store))
        bail("no store");
}

/* Publishes a card whose rank never waits for the decision. */
static void leave_card(int rank, const char *engine)
{
    mpi_card_t card = {.mpi_rank = 10 + rank,
                       .blocking = rank != 1,
                       .chunk = 5,
                       .based = rank != 1};
    int64_t number = 0;
    char key[8];

    g_strlcpy(card.engine, engine, sizeof card.engine);
    g_snprintf(key, sizeof key, "m/%d", rank);
    if (dscomm_store_add(store, "here", 1, &number))
        bail("no number");
    card.number = (int32_t)number;
    if (dscomm_store_set(store, key, &card, sizeof card))
        bail("no card");
}

/* The last rank to arrive decides for all; two groups that are made in the same
 * way differ. */
static void test_all(void)
{
    mpi_map_t *maps[2];

    for (int i = 0; i < 2; i++) {
        open_store();
        leave_card(0, "openmpi");
        leave_card(1, "openmpi");
        is_int(come(2, DSCOMM_OK, "openmpi", &maps[i]), DSCOMM_OK, "a group");
        dscomm_store_close(store);
    }
    for (int r = 0; r < RANKS; r++)
        is_int(maps[0]->mpi_ranks[r], 10 + r, "where rank %d is", r);
    is_int(maps[0]->blocking, 0, "one does not want blocking calls");
    is_int(maps[0]->based, 0, "one lacks the communicator of all");
    ok(maps[0]->tag != maps[1]->tag && maps[0]->mark != maps[1]->mark,
       "groups of one name differ in tag and mark");
    dscomm_store_free(maps[0]);
    dscomm_store_free(maps[1]);
}

/* All ranks have met, and one learns of a death before it has the map. The
 * others have the map, so it uses the map as well. */
static void test_again(void)
{
    mpi_map_t *map;

    open_store();
    leave_card(0, "openmpi");
    leave_card(1, "openmpi");
    is_int(come(2, DSCOMM_OK, "openmpi", &map), DSCOMM_OK, "a group");
    dscomm_store_free(map);
    dscomm_store_set(store, "here", "0", 1);
    failures = 1;
    is_int(come(1, DSCOMM_OK, "openmpi", &map), DSCOMM_OK,
           "a map that was there before a death was seen");
    dscomm_store_free(map);
    dscomm_store_close(store);
}

/* A rank dies before all have met: no rank makes the group. */
static void test_death(void)
{
    open_store();
    failures = 1;
    refused(1, DSCOMM_OK, "openmpi", DSCOMM_ERR_PEER_FAILED, "rank 2 died");
    refused(0, DSCOMM_OK, "openmpi", DSCOMM_ERR_PEER_FAILED, "rank 2 died");
    dscomm_store_close(store);
}

/* One rank gives up, then the last one arrives: no rank makes the group. */
static void test_late(void)
{
    const char *sentence =
        "rank 0, rank 2 of 3 did not come within 0.1 s; did all "
        "reach the same call?";

    open_store();
    refused(1, DSCOMM_OK, "openmpi", DSCOMM_ERR_TIMEOUT, sentence);
    refused(2, DSCOMM_OK, "openmpi", DSCOMM_ERR_TIMEOUT, sentence);
    refused(0, DSCOMM_OK, "openmpi", DSCOMM_ERR_TIMEOUT, sentence);
    dscomm_store_close(store);
}

/* The last rank has arrived, but has ended before it published the decision. */
static void test_silent(void)
{
    open_store();
    leave_card(0, "openmpi");
    dscomm_store_set(store, "here", "2", 1);
    leave_card(2, "openmpi");
    dscomm_store_set(store, "here", "1", 1);
    refused(1, DSCOMM_OK, "openmpi", DSCOMM_ERR_TIMEOUT,
            "rank 2, the last of 3 ranks to come, has not gone on within 0.1 "
            "s; it stands still");
    dscomm_store_close(store);
}

/* A rank has come and left no card: the last one's wait for it
 * ends by its deadline. */
static void test_no_card(void)
{
    open_store();
    leave_card(0, "openmpi");
    dscomm_store_add(store, "here", 1, NULL);
    refused(2, DSCOMM_OK, "openmpi", DSCOMM_ERR_TIMEOUT,
            "rank 1 of 3 did not come within 0.1 s; did all reach the same "
            "call?");
    dscomm_store_close(store);
}

/* A rank that cannot take part does not wait, and all others learn of it. */
static void test_unable(void)
{
    char host[65] = "", sentence[160];

    gethostname(host, sizeof host - 1);
    g_snprintf(sentence, sizeof sentence,
               "rank 1 (pid %ld on %s): no such thing", (long)getpid(), host);
    open_store();
    refused(1, DSCOMM_ERR_ENVIRONMENT, "", DSCOMM_ERR_ENVIRONMENT,
            "no such thing");
    refused(2, DSCOMM_OK, "openmpi", DSCOMM_ERR_ENVIRONMENT, sentence);
    refused(0, DSCOMM_ERR_TIMEOUT, "", DSCOMM_ERR_ENVIRONMENT, sentence);
    dscomm_store_close(store);
}

/* MPI's call has not returned on any rank. */
static void test_stuck(void)
{
    open_store();
    for (int r = RANKS - 1; r >= 0; r--)
        refused(r, DSCOMM_ERR_TIMEOUT, "", DSCOMM_ERR_TIMEOUT, "no such thing");
    dscomm_store_close(store);
}

static void test_libraries(void)
{
    const char *sentence =
        "rank 0 uses openmpi and rank 1 mpich; set DSCOMM_MPI_LIBRARY";

    open_store();
    leave_card(0, "openmpi");
    leave_card(1, "mpich");
    refused(2, DSCOMM_OK, "openmpi", DSCOMM_ERR_NO_BACKEND, sentence);
    refused(1, DSCOMM_OK, "mpich", DSCOMM_ERR_NO_BACKEND, sentence);
    dscomm_store_close(store);
}

/* The card was written by another version. */
static void test_version(void)
{
    open_store();
    dscomm_store_set(store, "m/0", "x", 1);
    dscomm_store_add(store, "here", 1, NULL);
    leave_card(1, "openmpi");
    refused(2, DSCOMM_OK, "openmpi", DSCOMM_ERR_PROTOCOL,
            "rank 0 has another version of backend mpi");
    refused(1, DSCOMM_OK, "openmpi", DSCOMM_ERR_PROTOCOL,
            "rank 0 has another version of backend mpi");
    dscomm_store_close(store);
}

int main(void)
{
    test_all();
    test_again();
    test_death();
    test_late();
    test_silent();
    test_no_card();
    test_unable();
    test_stuck();
    test_libraries();
    test_version();
    return tap_done();
}
