/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitored barrier: names everyone who is late, and forgives. */
#include "config.h"

#include "tests/lib/ranks.h"

static void all_come(rank_t *self)
{
    for (int i = 0; i < 20; i++)
        CHECK(self, !dscomm_monitored_barrier(self->world, -1));
}

/* Ranks 1 and 3 stay away once; what they send afterwards confuses nobody. */
static void two_late(rank_t *self)
{
    int late = self->rank == 1 || self->rank == 3;

    if (late)
        usleep(400000);
    CHECK(self,
          dscomm_monitored_barrier(self->world, 100) == DSCOMM_ERR_TIMEOUT);
    if (!late)
        CHECK(self, strstr(dscomm_last_error(), "ranks 1, 3 of 5"));
    else
        CHECK(self, strstr(dscomm_last_error(), "came too late"));
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
    CHECK(self, !dscomm_barrier(self->world, NULL));
    for (int i = 0; i < 3; i++)
        CHECK(self, !dscomm_monitored_barrier(self->world, 5000));
}

static void root_late(rank_t *self)
{
    if (self->rank == 0) {
        CHECK(self, !dscomm_barrier(self->world, NULL));
        CHECK(self, dscomm_monitored_barrier(self->world, 50) == DSCOMM_OK);
    } else {
        CHECK(self,
              dscomm_monitored_barrier(self->world, 20) == DSCOMM_ERR_TIMEOUT);
        CHECK(self, strstr(dscomm_last_error(), "rank 0 sent no answer"));
        CHECK(self, !dscomm_barrier(self->world, NULL));
    }
    CHECK(self, !dscomm_monitored_barrier(self->world, 5000));
}

/* Its messages are not for those who take any tag. */
static void any_tag(rank_t *self)
{
    dscomm_work_t *work;
    int x = self->rank, y = -1;

    CHECK(self, !dscomm_irecv(self->world, &y, 1, DSCOMM_INT32,
                              DSCOMM_ANY_SOURCE, DSCOMM_ANY_TAG, &work));
    CHECK(self, !dscomm_monitored_barrier(self->world, -1));
    CHECK(self, dscomm_work_test(work) == DSCOMM_IN_PROGRESS);
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self,
          !dscomm_send(self->world, &x, 1, DSCOMM_INT32, 1 - self->rank, 0));
    CHECK(self, !dscomm_work_wait(work, -1) && y == 1 - self->rank);
    dscomm_work_free(work);
}

int main(void)
{
    ranks_use_modules();
    ranks_run(1, 10000, all_come, "alone");
    ranks_run(5, 10000, all_come, "everyone comes");
    ranks_run(5, 10000, two_late, "two are late");
    ranks_run(3, 10000, root_late, "rank 0 is late");
    ranks_run(2, 10000, any_tag, "any tag does not match");
    return tap_done();
}
