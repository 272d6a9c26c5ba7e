/* SPDX-License-Identifier: BSD-3-Clause */
/* A program in which one rank is late; see trace.sh.
 *
 *     late ROUNDS VICTIM
 *
 * In each round rank VICTIM waits until all others have said that they make the
 * next call, sleeps, and makes it then. The others have a group of their own,
 * in which the victim is not. */
#include "config.h"

#include <dscomm/dscomm.h>
#include <dscomm/profiler.h>
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

int main(int argc, char **argv)
{
    int32_t x = 1, y;

    if (argc != 3)
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
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
