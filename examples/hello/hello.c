/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest job: every rank gives its number, and all get the sum. */
#include <dscomm/dscomm.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    dscomm_group_t *world;
    int sum;

    DSCOMM_CHECK(dscomm_init(NULL, &world));
    int rank = dscomm_group_rank(world);
    DSCOMM_CHECK(dscomm_all_reduce(world, &rank, &sum, 1, DSCOMM_INT32,
                                   DSCOMM_SUM, NULL));
    printf("rank %d of %d: the sum of all ranks is %d\n", rank,
           dscomm_group_size(world), sum);
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
