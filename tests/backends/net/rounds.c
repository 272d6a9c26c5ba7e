/* SPDX-License-Identifier: BSD-3-Clause */
/* Not a test: ranks that sum numbers for as many seconds as the first argument
 * says, by operations of several lengths, and check the sums. The last rank
 * first sleeps for as many as the second one says. */
#include "config.h"

#include <dscomm/dscomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define COUNT (1 << 18)

static int32_t in[COUNT], out[COUNT];

int main(int argc, char **argv)
{
    const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
    dscomm_group_t *world;
    dscomm_status_t status = DSCOMM_OK;
    int32_t go_on = 1;
    int rank, ranks, wrong = 0;

    DSCOMM_CHECK(dscomm_init(NULL, &world));
    rank = dscomm_group_rank(world);
    ranks = dscomm_group_size(world);
    if (argc > 2 && rank == ranks - 1)
        sleep((unsigned)atoi(argv[2]));
    for (unsigned round = 0; go_on && status == DSCOMM_OK; round++) {
        const size_t count = round % 3 ? (size_t)1 << round % 10 : COUNT;

        for (size_t i = 0; i < count; i++)
            in[i] = (int32_t)(i + round + (unsigned)rank);
        status = dscomm_all_reduce(world, in, out, count, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL);
        for (size_t i = 0; status == DSCOMM_OK && i < count; i++)
            wrong += out[i] != (int32_t)((i + round) * (unsigned)ranks +
                                         (unsigned)(ranks * (ranks - 1) / 2));
        go_on = time(NULL) < end;
        if (status == DSCOMM_OK)
            status = dscomm_broadcast(world, &go_on, 1, DSCOMM_INT32, 0, NULL);
    }
    if (status < 0) {
        dscomm_failure_t failure = DSCOMM_FAILURE_INIT;

        fprintf(stderr, "%s\n", dscomm_last_error());
        dscomm_group_failure(world, &failure);
        fprintf(stderr, "record: rank %d, pid %lld on %s\n", failure.rank,
                (long long)failure.pid, failure.host);
    }
    if (wrong)
        fprintf(stderr, "rank %d: %d wrong sums\n", rank, wrong);
    dscomm_finalize(world);
    return status < 0 || wrong;
}
