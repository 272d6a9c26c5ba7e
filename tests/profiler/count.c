/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that counts its own operations; see profile.sh. It knows nothing of
 * the profiler.
 *
 *     count PREFIX OPERATIONS SEED [VICTIM]
 *
 * Makes so many operations, drawn from SEED, the same on all ranks, and writes
 * what this rank has called to PREFIX.RANK: a line "op,group,bytes" for each.
 * Rank VICTIM kills itself before the last barrier. */
#include "config.h"

#include <dscomm/dscomm.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT_MAX 3000

static float in[16 * COUNT_MAX], out[16 * COUNT_MAX];
static dscomm_group_t *world, *part;
static FILE *file;

static void note(const char *op, const dscomm_group_t *group, size_t bytes)
{
    fprintf(file, "%s,%s,%zu\n", op, dscomm_group_name(group), bytes);
}

static void wait_for(dscomm_work_t *work)
{
    DSCOMM_CHECK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
}

/* A message to the next rank, of a size that depends on the sender. */
static void ring(dscomm_group_t *group, size_t count)
{
    const int size = dscomm_group_size(group), rank = dscomm_group_rank(group);
    const int next = (rank + 1) % size, prev = (rank + size - 1) % size;
    dscomm_work_t *work;

    DSCOMM_CHECK(
        dscomm_irecv(group, out, COUNT_MAX, DSCOMM_FLOAT32, prev, 1, &work));
    DSCOMM_CHECK(
        dscomm_send(group, in, count + (size_t)rank, DSCOMM_FLOAT32, next, 1));
    wait_for(work);
    note("send", group, 4 * (count + (size_t)rank));
    note("recv", group, 4 * (count + (size_t)prev));
}

static void operation(dscomm_group_t *group, int which, size_t count)
{
    const size_t size = (size_t)dscomm_group_size(group);
    dscomm_work_t *work;

    switch (which) {
    case 0:
        DSCOMM_CHECK(dscomm_all_reduce(group, in, out, count, DSCOMM_FLOAT32,
                                       DSCOMM_SUM, NULL));
        note("all_reduce", group, 4 * count);
        break;
    case 1:
        DSCOMM_CHECK(
            dscomm_all_gather(group, in, out, count, DSCOMM_FLOAT32, &work));
        wait_for(work);
        note("all_gather", group, 4 * count * size);
        break;
    case 2:
        DSCOMM_CHECK(
            dscomm_broadcast(group, in, count, DSCOMM_FLOAT32, 0, NULL));
        note("broadcast", group, 4 * count);
        break;
    case 3:
        DSCOMM_CHECK(dscomm_barrier(group, NULL));
        note("barrier", group, 0);
        break;
    default:
        ring(group, count);
    }
}

int main(int argc, char **argv)
{
    const int ranks[] = {2, 0};
    unsigned seed;
    char path[4096];
    int rank;

    if (argc < 4)
        return 2;
    DSCOMM_CHECK(dscomm_init(NULL, &world));
    rank = dscomm_group_rank(world);
    DSCOMM_CHECK(dscomm_group_new(world, ranks, 2, NULL, &part));
    snprintf(path, sizeof path, "%s.%d", argv[1], rank);
    file = fopen(path, "w");
    if (!file)
        return 1;
    seed = (unsigned)atoi(argv[3]);
    for (int i = 0; i < atoi(argv[2]); i++) {
        const int which = rand_r(&seed) % 5;
        const size_t count = (size_t)rand_r(&seed) % 40 * 7;

        const bool all = rand_r(&seed) % 3;

        if (all || part)
            operation(all ? world : part, which, count);
    }
    if (fclose(file))
        return 1;
    if (argc > 4 && atoi(argv[4]) == rank) {
        usleep(500000); /* the others end their last operation */
        raise(SIGKILL);
    }
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
