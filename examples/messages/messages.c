/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: walks on a ring of cells, of which each rank has some.
 *
 *     dscomm run -n 4 messages [STEPS]
 *
 * The walk of no step is in cell 0. A step goes to the next cell on the left or
 * on the right, so that as many walks reach a cell as have reached its two
 * neighbours before. A rank has CELLS cells, and copies of the next cell on
 * either side (halos), which its neighbours send in each step. Rank 0 collects
 * all cells in the end, and compares them with binomial coefficients. */
#include <dscomm/dscomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 8, MAX_STEPS = 60 }; /* 2 to the power of MAX_STEPS is counted */
enum { TAG_TO_LEFT, TAG_TO_RIGHT, TAG_RESULT };

/* Gets the halos, cells[0] and cells[CELLS + 1]. All four messages are started
 * before the call waits. On two ranks both neighbours are the same rank, and
 * only the tags tell its messages apart. */
static void exchange(dscomm_group_t *world, int64_t *cells)
{
    int rank = dscomm_group_rank(world), size = dscomm_group_size(world);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    dscomm_work_t *works[4];

    DSCOMM_CHECK(dscomm_irecv(world, &cells[0], 1, DSCOMM_INT64, left,
                              TAG_TO_RIGHT, &works[0]));
    DSCOMM_CHECK(dscomm_irecv(world, &cells[CELLS + 1], 1, DSCOMM_INT64, right,
                              TAG_TO_LEFT, &works[1]));
    DSCOMM_CHECK(dscomm_isend(world, &cells[1], 1, DSCOMM_INT64, left,
                              TAG_TO_LEFT, &works[2]));
    DSCOMM_CHECK(dscomm_isend(world, &cells[CELLS], 1, DSCOMM_INT64, right,
                              TAG_TO_RIGHT, &works[3]));
    DSCOMM_CHECK(dscomm_work_wait_all(works, 4, DSCOMM_TIMEOUT_DEFAULT));
    for (int i = 0; i < 4; i++)
        dscomm_work_free(works[i]);
}

/* Compares the cells of a rank, and returns how many are wrong. Of all walks,
 * steps over k have k steps to the right, and end in cell 2 k - steps. */
static int check(const int64_t *cells, int rank, int size, int steps)
{
    int64_t want[CELLS] = {0}, walks = 1, sum = 0;
    int all = size * CELLS, wrong = 0;

    for (int k = 0; k <= steps; k++) {
        int cell = ((2 * k - steps) % all + all) % all;
        if (cell / CELLS == rank)
            want[cell % CELLS] += walks;
        walks = walks * (steps - k) / (k + 1);
    }
    for (int i = 0; i < CELLS; i++) {
        sum += cells[i];
        wrong += cells[i] != want[i];
    }
    printf("rank %d: %lld walks, %d wrong cells\n", rank, (long long)sum,
           wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    dscomm_group_t *world;
    int64_t cells[CELLS + 2] = {0}, last[CELLS + 2], result[CELLS];
    char none[] = "", *end = none;
    long steps = argc > 1 ? strtol(argv[1], &end, 10) : 20;
    int source, wrong = 0;

    if (argc > 2 || *end || steps < 1 || steps > MAX_STEPS) {
        fprintf(stderr, "usage: messages [STEPS]    from 1 to %d\n", MAX_STEPS);
        return 2;
    }
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    int rank = dscomm_group_rank(world), size = dscomm_group_size(world);
    cells[1] = rank == 0;
    for (int step = 0; step < steps; step++) {
        exchange(world, cells);
        memcpy(last, cells, sizeof last);
        for (int i = 1; i <= CELLS; i++)
            cells[i] = last[i - 1] + last[i + 1];
    }
    if (rank > 0)
        DSCOMM_CHECK(
            dscomm_send(world, &cells[1], CELLS, DSCOMM_INT64, 0, TAG_RESULT));
    else
        wrong = check(&cells[1], 0, size, (int)steps);
    for (int i = 1; rank == 0 && i < size; i++) { /* in the order of arrival */
        DSCOMM_CHECK(dscomm_recv(world, result, CELLS, DSCOMM_INT64,
                                 DSCOMM_ANY_SOURCE, TAG_RESULT, &source, NULL));
        wrong += check(result, source, size, (int)steps);
    }
    DSCOMM_CHECK(dscomm_finalize(world));
    if (wrong)
        fputs("messages: the walks are not binomial coefficients\n", stderr);
    return wrong > 0;
}
