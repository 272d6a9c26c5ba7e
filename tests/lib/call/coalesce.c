/* SPDX-License-Identifier: BSD-3-Clause */
/* Coalescing: calls that are recorded or refused, and the end of a
 * recording. */
#include "config.h"

#include "tests/lib/work/ranks.h"

static void together(rank_t *self)
{
    int32_t a = self->rank, b = 1, sum = 0, most = 0, out = self->rank, in = -1;
    int next = (self->rank + 1) % 3, before = (self->rank + 2) % 3;
    const size_t counts[3] = {1, 1, 1};
    int32_t all[3] = {0};

    for (int i = 0; i < 2; i++) {
        dscomm_work_t *work = NULL;

        sum = most = 0;
        in = -1;
        CHECK(self, !dscomm_coalesce_begin(self->world));
        CHECK(self, !sum_one(self->world, &b, &sum, NULL));
        CHECK(self, !dscomm_all_reduce(self->world, &a, &most, 1, DSCOMM_INT32,
                                       DSCOMM_MAX, NULL));
        CHECK(self, !recv_one(self->world, &in, before, 1));
        CHECK(self,
              !dscomm_isend(self->world, &out, 1, DSCOMM_INT32, next, 1, NULL));
        CHECK(self, !dscomm_all_gather_v(self->world, &a, 1, all, counts, NULL,
                                         DSCOMM_INT32, NULL));
        CHECK(self, sum == 0 && most == 0 && in == -1);
        CHECK(self, !dscomm_coalesce_end(self->world, i ? &work : NULL));
        if (work) {
            FINISH(self, work, DSCOMM_OK);
        }
        CHECK(self, sum == 3 && most == 2 && in == before);
        CHECK(self, all[0] == 0 && all[1] == 1 && all[2] == 2);
    }
    CHECK(self, dscomm_group_sequence(self->world) == 6);
}

static void refused(rank_t *self)
{
    int32_t a = 1, b = 0;
    dscomm_group_t *group;
    dscomm_work_t *work;
    size_t size;
    void *blob;
    int source;

    CHECK(self, !dscomm_coalesce_begin(self->world));
    CHECK(self, dscomm_coalesce_begin(self->world) == DSCOMM_ERR_STATE);
    FAILS(self, DSCOMM_ERR_STATE, "without a work",
          dscomm_barrier(self->world, &work));
    CHECK(self, irecv_one(self->world, &b, 0, 1, &work) == DSCOMM_ERR_STATE);
    CHECK(self, dscomm_recv(self->world, &b, 1, DSCOMM_INT32, 0, 1, &source,
                            NULL) == DSCOMM_ERR_STATE);
    CHECK(self, dscomm_monitored_barrier(self->world, 0) == DSCOMM_ERR_STATE);
    CHECK(self, dscomm_broadcast_blob(self->world, "x", 1, 0, &blob, &size) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, dscomm_group_split(self->world, 0, 0, NULL, &group) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, sum_one(self->world, NULL, &b, NULL) == DSCOMM_ERR_INVALID);
    CHECK(self, !sum_one(self->world, &a, &b, NULL));
    CHECK(self, !dscomm_coalesce_end(self->world, NULL) && b == 2);
    CHECK(self, dscomm_coalesce_end(self->world, NULL) == DSCOMM_ERR_STATE);
    CHECK(self, !dscomm_coalesce_begin(self->world));
    CHECK(self, !dscomm_coalesce_end(self->world, &work));
    CHECK(self, !dscomm_work_test(work));
    dscomm_work_free(work);
}

/* One call fails, because a message is truncated; the others go on. */
static void partly(rank_t *self)
{
    int32_t out[2] = {1, 2}, in = 0, a = 1, sum = 0;

    CHECK(self, !dscomm_coalesce_begin(self->world));
    CHECK(self,
          !dscomm_send(self->world, out, 2, DSCOMM_INT32, 1 - self->rank, 1));
    CHECK(self, !recv_one(self->world, &in, 1 - self->rank, 1));
    CHECK(self, !sum_one(self->world, &a, &sum, NULL));
    FAILS(self, DSCOMM_ERR_TRUNCATED, "message of 8 bytes",
          dscomm_coalesce_end(self->world, NULL));
    CHECK(self, in == 1 && sum == 2);
}

/* The group can be freed in spite of a recording or a work. */
static void abandoned(rank_t *self)
{
    dscomm_group_t *group = split_all(self, 0);
    dscomm_work_t *work;
    int x;

    CHECK(self, !dscomm_coalesce_begin(group));
    CHECK(self, !recv_one(group, &x, 0, 1));
    CHECK(self, !recv_one(group, &x, 1, 1));
    CHECK(self, !dscomm_coalesce_end(group, &work));
    CHECK(self, dscomm_work_wait(work, 5) == DSCOMM_IN_PROGRESS);
    CHECK(self, !dscomm_coalesce_begin(group));
    CHECK(self, !dscomm_barrier(group, NULL));
    CHECK(self, !dscomm_group_free(group));
    FINISH(self, work, DSCOMM_ERR_ABORTED);
}

int main(void)
{
    ranks_use_modules();
    ranks_run(3, 10000, together, "several calls as one");
    ranks_run(2, 10000, refused, "what cannot be recorded");
    ranks_run(2, 10000, partly, "one part fails");
    ranks_run(2, 10000, abandoned, "what is left behind");
    return tap_done();
}
