/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank whose awaited message does not come learns the calls of other ranks
 * long before the deadline. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <time.h>

#define DEADLINE_MS 60000

/* Waits once, or many times for a short time, none of which is long enough by
 * itself. */
static dscomm_status_t await(dscomm_work_t *work, int step_ms)
{
    dscomm_status_t status;
    time_t start = time(NULL);

    do
        status = dscomm_work_wait(work, step_ms);
    while (status == DSCOMM_IN_PROGRESS &&
           time(NULL) - start < DEADLINE_MS / 4000);
    dscomm_work_free(work);
    return status;
}

static int step_ms;

/* Rank 2 calls with root 1, the others with root 0. Rank 0 sends to rank 2,
 * which waits for rank 1; but rank 1 gets its part from rank 0 and returns. */
static void other_root(rank_t *self)
{
    dscomm_group_t *group;
    int32_t all[3] = {5, 6, 7}, own = 0;
    dscomm_status_t status;
    dscomm_work_t *work;
    time_t start = time(NULL);

    CHECK(self, !dscomm_group_split(self->world, 0, 0, NULL, &group));
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, !dscomm_scatter(group, all, &own, 1, DSCOMM_INT32,
                                self->rank == 2 ? 1 : 0, &work));
    status = await(work, step_ms);
    if (self->rank == 2) {
        CHECK(self, status == DSCOMM_ERR_MISMATCH);
        CHECK(self, strstr(dscomm_last_error(), ": rank 2 (pid "));
        CHECK(self, strstr(dscomm_last_error(),
                           ") called scatter(count 1, int32, root 1)"));
        CHECK(self, strstr(dscomm_last_error(), ") and 1 other called scatter("
                                                "count 1, int32, root 0)"));
        CHECK(self, dscomm_barrier(group, NULL) == DSCOMM_ERR_MISMATCH);
    } else {
        CHECK(self, status == DSCOMM_OK && own == 5 + self->rank);
    }
    CHECK(self, time(NULL) - start < DEADLINE_MS / 2000);
    dscomm_group_free(group);
}

/* A rank that is only late does not disturb ranks that have posted early
 * receives. */
static void late(rank_t *self)
{
    int32_t all[3] = {5, 6, 7}, own = 0;

    if (self->rank == 0)
        usleep(1500000);
    CHECK(self,
          !dscomm_scatter(self->world, all, &own, 1, DSCOMM_INT32, 0, NULL));
    CHECK(self, own == 5 + self->rank);
    CHECK(self,
          !dscomm_gather(self->world, &own, all, 1, DSCOMM_INT32, 2, NULL));
    CHECK(self, self->rank != 2 || (all[0] == 5 && all[2] == 7));
}

int main(void)
{
    ranks_use_modules();
    step_ms = DSCOMM_TIMEOUT_DEFAULT;
    ranks_run(3, DEADLINE_MS, other_root, "a rank with another root");
    for (step_ms = 0; step_ms <= 5; step_ms += 5)
        ranks_run(3, DEADLINE_MS, other_root, "a rank that polls");
    ranks_run(3, DEADLINE_MS, late, "a rank that is late");
    return tap_done();
}
