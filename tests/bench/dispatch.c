/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a call of the public API beyond the same call of the backend:
 * checks, fingerprint, sequence number. Not a test.
 *
 *     tests/bench/dispatch
 *
 * One rank, backend self, which does almost nothing. The two calls alternate;
 * figures are nanoseconds, medians of rounds. */
#include "config.h"

#include <stdio.h>

#include "lib/group/group.h"
#include "tests/bench/bench.h"

#include <dscomm/dscomm.h>

#define ROUNDS 2001
#define CALLS 1000 /* in a round */

static double api(dscomm_group_t *group, const float *in, float *out)
{
    double start = now_ns();

    for (int i = 0; i < CALLS; i++)
        DSCOMM_CHECK(dscomm_all_reduce(group, in, out, 2, DSCOMM_FLOAT32,
                                       DSCOMM_SUM, NULL));
    return (now_ns() - start) / CALLS;
}

static double backend(dscomm_group_t *group, const float *in, float *out)
{
    dscomm_coll_args_t args = {.coll = DSCOMM_COLL_ALL_REDUCE,
                               .dtype = DSCOMM_FLOAT32,
                               .op = DSCOMM_SUM,
                               .root = -1,
                               .count = 2,
                               .element = sizeof *in,
                               .send = in,
                               .recv = out,
                               .factor = 1.0};
    double start = now_ns();

    for (int i = 0; i < CALLS; i++) {
        args.sequence++;
        DSCOMM_CHECK(group->ops.run(group->impl, &args));
    }
    return (now_ns() - start) / CALLS;
}

int main(void)
{
    static double calls[ROUNDS], native[ROUNDS], over[ROUNDS];
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *group;
    float in[2] = {1, 2}, out[2];

    attr.has_rank = 1;
    attr.rank = 0;
    attr.world_size = 1;
    DSCOMM_CHECK(dscomm_init(&attr, &group));
    for (int i = 0; i < ROUNDS; i++) {
        calls[i] = api(group, in, out);
        native[i] = backend(group, in, out);
        over[i] = calls[i] - native[i];
    }
    printf("dscomm_all_reduce %.1f ns, the backend's run %.1f ns, over it %.1f "
           "ns\n",
           median(calls, ROUNDS), median(native, ROUNDS), median(over, ROUNDS));
    DSCOMM_CHECK(dscomm_finalize(group));
    return 0;
}
