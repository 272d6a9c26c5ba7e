/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a call of the public API beyond the same call of the backend:
 * checks, fingerprint, sequence number, flight recorder; and in it the cost of
 * the look at the word in which hooks are noted. Not a test.
 *
 *     tests/bench/dispatch [api|backend|bare|looking CALLS]
 *
 * One rank, backend self, which does almost nothing. The kinds of calls
 * alternate; figures are nanoseconds, medians of rounds. With arguments, makes
 * so many calls of one kind: under callgrind, the difference of two numbers of
 * calls is that of the instructions.
 *
 * bare is a call after its arguments were checked, looking the same with the
 * look. Their difference is the most that hooks cost while there are none,
 * because the same look notices forks and works. */
#include "config.h"

#include <stdio.h>

#include "lib/call/dispatch.h"
#include "lib/group/group.h"
#include "tests/bench/bench.h"

#include <dscomm/dscomm.h>
#include <string.h>

#define ROUNDS 2001
#define CALLS 1000 /* in a round */

static dscomm_group_t *group;
static float in[2] = {1, 2}, out[2];

static double run_api(int calls)
{
    double start = now_ns();

    for (int i = 0; i < calls; i++)
        DSCOMM_CHECK(dscomm_all_reduce(group, in, out, 2, DSCOMM_FLOAT32,
                                       DSCOMM_SUM, NULL));
    return (now_ns() - start) / calls;
}

static dscomm_coll_args_t arguments(void)
{
    return dscomm_priv_args(DSCOMM_COLL_ALL_REDUCE, in, out, 2, 2,
                            DSCOMM_FLOAT32, DSCOMM_SUM, -1);
}

static double run_backend(int calls)
{
    dscomm_coll_args_t args = arguments();
    double start = now_ns();

    for (int i = 0; i < calls; i++) {
        args.sequence++;
        DSCOMM_CHECK(group->ops.run(group->impl, &args));
    }
    return (now_ns() - start) / calls;
}

/* looks is a constant. */
static inline __attribute__((always_inline)) double run_inner(int calls,
                                                              int looks)
{
    dscomm_coll_args_t args = arguments();
    double start = now_ns();

    for (int i = 0; i < calls; i++) {
        if (looks && dscomm_priv_group_busy(group))
            abort();
        args.sequence = ++group->sequence;
        DSCOMM_CHECK(dscomm_priv_group_run(group, &args));
    }
    return (now_ns() - start) / calls;
}

static double run_bare(int calls)
{
    return run_inner(calls, 0);
}

static double run_looking(int calls)
{
    return run_inner(calls, 1);
}

enum { API, BACKEND, BARE, LOOKING, KINDS };

static const struct {
    const char *name;
    double (*run)(int calls);
} kinds[] = {
    [API] = {"api", run_api},
    [BACKEND] = {"backend", run_backend},
    [BARE] = {"bare", run_bare},
    [LOOKING] = {"looking", run_looking},
};

static void measure(void)
{
    static double ns[KINDS][ROUNDS], over[ROUNDS], look[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < KINDS; k++)
            ns[k][i] = kinds[k].run(CALLS);
        over[i] = ns[API][i] - ns[BACKEND][i];
        look[i] = ns[LOOKING][i] - ns[BARE][i];
    }
    printf("dscomm_all_reduce %.1f ns, the backend's run %.1f ns, over it %.1f "
           "ns\n",
           median(ns[API], ROUNDS), median(ns[BACKEND], ROUNDS),
           median(over, ROUNDS));
    printf("the look for hooks, forks and works: %.2f ns\n",
           median(look, ROUNDS));
}

int main(int argc, char **argv)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

    attr.has_rank = 1;
    attr.rank = 0;
    attr.world_size = 1;
    DSCOMM_CHECK(dscomm_init(&attr, &group));
    for (int k = 0; argc == 3 && k < KINDS; k++)
        if (!strcmp(argv[1], kinds[k].name))
            kinds[k].run(atoi(argv[2]));
    if (argc < 3)
        measure();
    DSCOMM_CHECK(dscomm_finalize(group));
    return 0;
}
