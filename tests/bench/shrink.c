/* SPDX-License-Identifier: BSD-3-Clause */
/* How long survivors take from the death of a rank to the end of their first
 * all_reduce in the group that dscomm_group_shrink() has made. Not a test.
 *
 *     tests/bench/shrink [RANKS [ROUNDS [VICTIM]]]
 *
 * By default 8 ranks, 21 rounds, and rank 0 dies, which serves the store. The
 * figures are milliseconds until the last survivor is done: least, median and
 * most of all rounds. */
#include "config.h"

#include "tests/bench/bench.h"
#include "tests/port.h"

#include <dscomm/dscomm.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define ROUNDS_MAX 1000
#define STEPS 100 /* before the death */

static double *times; /* of each rank, in shared memory */
static int ranks = 8, rounds = 21, victim;

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, dscomm_last_error());
    exit(1);
}

static dscomm_status_t reduce(dscomm_group_t *group)
{
    float in = 1, out;

    return dscomm_all_reduce(group, &in, &out, 1, DSCOMM_FLOAT32, DSCOMM_SUM,
                             NULL);
}

static void live(int rank, const char *where)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world, *smaller;
    dscomm_status_t status = DSCOMM_OK;

    attr.init_method = where;
    attr.has_rank = 1;
    attr.rank = rank;
    attr.world_size = ranks;
    attr.timeout_ms = 60000;
    must(dscomm_init(&attr, &world) == DSCOMM_OK, "dscomm_init");
    for (int i = 1; status == DSCOMM_OK && i <= STEPS; i++) {
        status = reduce(world);
        must(status == DSCOMM_OK || i == STEPS, "dscomm_all_reduce");
    }
    if (rank == victim) {
        must(status == DSCOMM_OK, "dscomm_all_reduce");
        times[rank] = now_ns();
        raise(SIGKILL);
    }
    /* A survivor may still be in the last step when the victim dies. */
    if (status == DSCOMM_OK)
        status = reduce(world);
    must(status != DSCOMM_OK, "the victim's death");
    must(dscomm_group_shrink(world, NULL, &smaller) == DSCOMM_OK,
         "dscomm_group_shrink");
    must(reduce(smaller) == DSCOMM_OK, "dscomm_all_reduce");
    times[rank] = now_ns();
    must(dscomm_finalize(world) == DSCOMM_OK, "dscomm_finalize");
    exit(0);
}

static double measure(void)
{
    char where[64];
    int status, failed = 0;
    double last = 0;

    snprintf(where, sizeof where, "tcp://127.0.0.1:%d", port_find_free(1));
    for (int r = 0; r < ranks; r++) {
        const pid_t pid = fork();

        must(pid >= 0, "fork");
        if (pid == 0)
            live(r, where);
    }
    for (int r = 0; r < ranks; r++)
        failed += wait(&status) < 0 || status != 0;
    must(failed == 1, "the survivors");
    for (int r = 0; r < ranks; r++)
        last = times[r] > last ? times[r] : last;
    return (last - times[victim]) / 1e6;
}

int main(int argc, char **argv)
{
    static double spans[ROUNDS_MAX];
    double middle;

    if (argc > 1)
        ranks = atoi(argv[1]);
    if (argc > 2)
        rounds = atoi(argv[2]);
    if (argc > 3)
        victim = atoi(argv[3]);
    must(ranks > 1 && rounds > 0 && rounds <= ROUNDS_MAX && victim >= 0 &&
             victim < ranks,
         "usage: shrink [RANKS [ROUNDS [VICTIM]]]");
    times = mmap(NULL, (size_t)ranks * sizeof *times, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(times != MAP_FAILED, "mmap");
    for (int r = 0; r < rounds; r++)
        spans[r] = measure();
    middle = median(spans, (size_t)rounds);
    printf("%d ranks, rank %d dies, %d rounds, ms: least %.1f, median %.1f, "
           "most %.1f\n",
           ranks, victim, rounds, spans[0], middle, spans[rounds - 1]);
    return 0;
}
