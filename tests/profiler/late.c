/* SPDX-License-Identifier: BSD-3-Clause */
/* A program in which one rank is late; see trace.sh.
 *
 *     late ROUNDS VICTIM [DEAD]
 *
 * In each round rank VICTIM waits until all others have said that they make the
 * next call, sleeps, and makes it then. The others have a group of their own,
 * in which the victim is not. Rank DEAD kills itself when all have finished the
 * rounds. */
#include "config.h"

#include <dscomm/dscomm.h>
#include <dscomm/profiler.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SLEEP_US 200000 /* more than a loaded machine delays a rank */

static dscomm_group_t *world, *others;
static int rank, size, victim;

static void others_round(int round)
{
    int32_t x = rank, y;

    DSCOMM_CHECK(
        dscomm_all_reduce(others, &x, &y, 1, DSCOMM_INT32, DSCOMM_MAX, NULL));
    DSCOMM_CHECK(dscomm_send(world, &x, 1, DSCOMM_INT32, victim, round));
}

static void victim_round(int round)
{
    int32_t x;

    for (int i = 0; i < size; i++)
        if (i != victim)
            DSCOMM_CHECK(
                dscomm_recv(world, &x, 1, DSCOMM_INT32, i, round, NULL, NULL));
    dscomm_profiler_range_begin("sleep");
    usleep(SLEEP_US);
    dscomm_profiler_range_end();
}

/* Fails on all ranks but dead, after it has killed itself. */
static dscomm_status_t rank_die(int dead, int tag)
{
    int32_t x = 0;

    if (rank != dead) {
        DSCOMM_CHECK(dscomm_send(world, &x, 1, DSCOMM_INT32, dead, tag));
        return dscomm_barrier(world, NULL);
    }
    for (int i = 0; i < size; i++)
        if (i != dead)
            DSCOMM_CHECK(
                dscomm_recv(world, &x, 1, DSCOMM_INT32, i, tag, NULL, NULL));
    raise(SIGKILL);
    return DSCOMM_OK;
}

int main(int argc, char **argv)
{
    int32_t x = 1, y;

    if (argc != 3 && argc != 4)
        return 2;
    victim = atoi(argv[2]);
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    rank = dscomm_group_rank(world);
    size = dscomm_group_size(world);
    DSCOMM_CHECK(dscomm_group_split(world, rank == victim, 0, NULL, &others));
    for (int i = 0; i < atoi(argv[1]); i++) {
        dscomm_profiler_range_begin("round \"\\\t1\"");
        if (rank == victim)
            victim_round(i);
        else
            others_round(i);
        DSCOMM_CHECK(dscomm_all_reduce(world, &x, &y, 1, DSCOMM_INT32,
                                       DSCOMM_SUM, NULL));
        dscomm_profiler_range_end();
    }
    if (argc == 4) {
        if (rank_die(atoi(argv[3]), atoi(argv[1])) == DSCOMM_OK)
            return 1;
        dscomm_finalize(world); /* reports the death once more */
        return 0;
    }
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
