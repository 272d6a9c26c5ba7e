/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with a slow rank, for the guide: 20 sums, before each of which rank
 * RANK sleeps for MS milliseconds.
 *
 *     slow RANK MS */
#include <dscomm/dscomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

int main(int argc, char **argv)
{
    dscomm_group_t *world;
    int sum;

    if (argc != 3) {
        fputs("usage: slow RANK MS\n", stderr);
        return 2;
    }
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    int rank = dscomm_group_rank(world);
    for (int i = 0; i < 20; i++) {
        if (rank == atoi(argv[1]))
            sleep_ms(atol(argv[2]));
        DSCOMM_CHECK(dscomm_all_reduce(world, &rank, &sum, 1, DSCOMM_INT32,
                                       DSCOMM_SUM, NULL));
    }
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
