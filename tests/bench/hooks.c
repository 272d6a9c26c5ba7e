/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of hooks and of the profiler in a call: without a table, with one
 * whose functions do nothing, with a profiler, with one that times phases,
 * with one that keeps events, and with one that does both. Not a test.
 *
 *     tests/bench/hooks [KIND CALLS]
 *
 * One rank, backend self, which does almost nothing. The kinds of calls
 * alternate; figures are nanoseconds, medians of rounds. With arguments, makes
 * so many calls of one kind: under callgrind, the difference of two numbers of
 * calls is that of the instructions. tests/bench/dispatch measures
 * what hooks cost while there are none. */
#include "config.h"

#include <stdio.h>

#include "tests/bench/bench.h"

#include <dscomm/dscomm.h>
#include <dscomm/profiler.h>
#include <string.h>

#define ROUNDS 1001
#define CALLS 1000 /* in a round */

static dscomm_group_t *group;
static float in[2] = {1, 2}, out[2];

static double run(int calls)
{
    double start = now_ns();

    for (int i = 0; i < calls; i++)
        DSCOMM_CHECK(dscomm_all_reduce(group, in, out, 2, DSCOMM_FLOAT32,
                                       DSCOMM_SUM, NULL));
    return (now_ns() - start) / calls;
}

static uint64_t on_begin(const dscomm_op_info_t *info, void *arg)
{
    (void)info, (void)arg;
    return 1;
}

static void on_end(const dscomm_op_info_t *info, dscomm_status_t status,
                   uint64_t token, void *arg)
{
    (void)info, (void)status, (void)token, (void)arg;
}

static double run_hooked(int calls)
{
    static const dscomm_hooks_t hooks = {
        .size = sizeof hooks, .begin = on_begin, .end = on_end};
    double ns;

    DSCOMM_CHECK(dscomm_hooks_set(&hooks));
    ns = run(calls);
    dscomm_hooks_set(NULL);
    return ns;
}

static double run_attached(int calls, int trace, int level)
{
    static dscomm_profiler_t *profiler;
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    double ns;

    attr.enabled = 1;
    attr.trace = trace;
    attr.level = level;
    DSCOMM_CHECK(dscomm_profiler_attach(&attr, &profiler));
    run(1); /* makes the row */
    ns = run(calls);
    dscomm_profiler_free(profiler);
    return ns;
}

static double run_profiled(int calls)
{
    return run_attached(calls, 0, 1);
}

static double run_traced(int calls)
{
    return run_attached(calls, 1, 1);
}

static double run_phased(int calls)
{
    return run_attached(calls, 0, 2);
}

static double run_both(int calls)
{
    return run_attached(calls, 1, 2);
}

static const struct {
    const char *name;
    double (*run)(int calls);
} kinds[] = {
    {"off", run},           {"empty", run_hooked}, {"profiler", run_profiled},
    {"phases", run_phased}, {"trace", run_traced}, {"both", run_both}};

#define KINDS (sizeof kinds / sizeof *kinds)

int main(int argc, char **argv)
{
    static double ns[KINDS][ROUNDS];
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;

    attr.has_rank = 1;
    attr.world_size = 1;
    DSCOMM_CHECK(dscomm_init(&attr, &group));
    for (size_t k = 0; argc == 3 && k < KINDS; k++)
        if (!strcmp(argv[1], kinds[k].name))
            kinds[k].run(atoi(argv[2]));
    for (int i = 0; argc < 3 && i < ROUNDS; i++)
        for (size_t k = 0; k < KINDS; k++)
            ns[k][i] = kinds[k].run(CALLS);
    for (size_t k = 0; argc < 3 && k < KINDS; k++)
        printf("all_reduce, hooks %s: %.1f ns\n", kinds[k].name,
               median(ns[k], ROUNDS));
    DSCOMM_CHECK(dscomm_finalize(group));
    return 0;
}
