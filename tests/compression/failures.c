/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that fail: out of step, without a peer, and what is left of them. */
#include "config.h"

#include "tests/compression/compress.h"

#define COUNT 100

/* Different arguments at the same time. */
static void mismatched(rank_t *self)
{
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_compressor_t *c = NULL;
    size_t count = self->rank == 1 ? 101 : 100;

    CHECK(self, dscomm_compressor_create(self->world, count, NULL, &c) ==
                    DSCOMM_ERR_MISMATCH);
    CHECK(self, strstr(dscomm_last_error(), "rank 1") &&
                    strstr(dscomm_last_error(), "count"));
    attr.codec = self->rank == 2 ? "int8" : "onebit";
    CHECK(self, dscomm_compressor_create(self->world, 100, &attr, &c) ==
                    DSCOMM_ERR_MISMATCH);
    CHECK(self, strstr(dscomm_last_error(), "codec of rank 2"));
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
}

/* The same compressors in another order. */
static void out_of_step(rank_t *self)
{
    dscomm_compressor_t *cs[3] = {open_with(self, 100, NULL),
                                  open_with(self, 100, NULL),
                                  open_with(self, 100, NULL)};
    dscomm_compressor_t *order[2] = {cs[0], cs[1 + self->rank % 2]};
    float x[100] = {0}, y[100] = {0};
    void *buffers[2] = {x, y};

    CHECK(self, dscomm_compressor_all_reduce_many(order, buffers, 2,
                                                  DSCOMM_FLOAT32, NULL) < 0);
    CHECK(self, strstr(dscomm_last_error(), "in the same order"));
    CHECK(self,
          dscomm_compressor_all_reduce(cs[0], x, DSCOMM_FLOAT32, NULL) < 0);
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
    close_all(self, cs, 3);
}

/* Two calls in another order, of buffers of the same size or not. */
static void swapped(rank_t *self)
{
    static const size_t counts[3][2] = {{100, 100}, {100, 50000}, {1, 100}};

    for (int i = 0; i < 6; i++) {
        dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
        dscomm_compressor_t *cs[2] = {NULL, NULL};
        dscomm_group_t *group = NULL;
        dscomm_status_t status = DSCOMM_OK;
        float *x = calloc(50000, sizeof *x);

        CHECK(self, !dscomm_group_split(self->world, 0, 0, NULL, &group));
        for (int k = 0; k < 2; k++) {
            attr.codec = k && i >= 3 ? "int8" : NULL;
            CHECK(self, !dscomm_compressor_create(group, counts[i % 3][k],
                                                  &attr, &cs[k]));
        }
        for (int k = 0; k < 2 && status == DSCOMM_OK; k++)
            status = dscomm_compressor_all_reduce(cs[(k + self->rank) % 2], x,
                                                  DSCOMM_FLOAT32, NULL);
        CHECK(self,
              status == DSCOMM_ERR_MISMATCH || status == DSCOMM_ERR_ABORTED);
        CHECK(self, strstr(dscomm_last_error(), "in the same order"));
        close_all(self, cs, 2);
        CHECK(self, !dscomm_group_free(group));
        free(x);
    }
}

/* Ranks with different masks, or one without: where the mask was the same, it
 * goes well. */
static void other_mask(rank_t *self)
{
    uint8_t mask[COUNT] = {0, 1, 0}, same[COUNT] = {0, 255, 0};

    for (int how = 0; how < 2; how++) {
        dscomm_group_t *group = NULL;
        dscomm_compressor_t *c = NULL;
        dscomm_status_t status;
        float x[COUNT] = {1, 1, 1};

        CHECK(self, !dscomm_group_split(self->world, 0, 0, NULL, &group));
        CHECK(self, !dscomm_compressor_create(group, COUNT, NULL, &c));
        CHECK(self, !dscomm_compressor_set_mask(c, self->rank ? same : mask));
        reduce(self, c, x);
        mask[2] = self->rank == 1;
        CHECK(self, !dscomm_compressor_set_mask(
                        c, how && self->rank == 1 ? NULL : mask));
        status = dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, NULL);
        CHECK(self,
              status == DSCOMM_ERR_MISMATCH || status == DSCOMM_ERR_ABORTED);
        CHECK(self, strstr(dscomm_last_error(), "with the same masks"));
        CHECK(self, !dscomm_compressor_free(c));
        CHECK(self, !dscomm_group_free(group));
    }
}

/* The last rank has a buffer of another dtype. */
static void other_dtype(rank_t *self)
{
    const int is_last = self->rank + 1 == self->size;
    dscomm_group_t *group = NULL;
    dscomm_compressor_t *c = NULL;
    dscomm_status_t status;
    double x[COUNT] = {0};

    CHECK(self, !dscomm_group_split(self->world, 0, 0, NULL, &group));
    CHECK(self, !dscomm_compressor_create(group, COUNT, NULL, &c));
    status = dscomm_compressor_all_reduce_many(
        &c, (void *[]){x}, 1, is_last ? DSCOMM_FLOAT64 : DSCOMM_FLOAT32, NULL);
    CHECK(self, status == DSCOMM_ERR_MISMATCH || status == DSCOMM_ERR_ABORTED);
    CHECK(self, strstr(dscomm_last_error(), "with a float32 buffer") ||
                    strstr(dscomm_last_error(), "with a float64 buffer"));
    CHECK(self, strstr(dscomm_last_error(), "all_reduce_many"));
    CHECK(self, !dscomm_compressor_free(c));
    CHECK(self, !dscomm_group_free(group));
}

/* After a failure no rank is given another compressor of that group. */
static void made_too_late(rank_t *self)
{
    dscomm_group_t *group = NULL, *next = NULL;
    dscomm_compressor_t *c = NULL, *later = NULL;
    float x[COUNT] = {0};

    CHECK(self, !dscomm_group_split(self->world, 0, 0, NULL, &group));
    CHECK(self, !dscomm_compressor_create(group, COUNT, NULL, &c));
    CHECK(self, dscomm_compressor_all_reduce(
                    c, x, self->rank ? DSCOMM_FLOAT16 : DSCOMM_FLOAT32, NULL));
    CHECK(self, dscomm_compressor_create(group, COUNT, NULL, &later) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, strstr(dscomm_last_error(), "has failed") && !later);
    CHECK(self, !dscomm_group_split(group, 0, 0, NULL, &next));
    CHECK(self, !dscomm_compressor_create(next, COUNT, NULL, &later));
    reduce(self, later, x);
    CHECK(self, !dscomm_compressor_free(later));
    CHECK(self, !dscomm_compressor_free(c));
    CHECK(self, !dscomm_group_free(next));
    CHECK(self, !dscomm_group_free(group));
}

/* One rank does not call: the others learn at the deadline, which leaves a slow
 * machine the time to make the compressor. The first to give up tells whom it
 * waited for, and so do those whom it takes along. */
static void silent(rank_t *self)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_compressor_t *c = NULL;
    dscomm_group_t *group = NULL;
    dscomm_work_t *work = NULL;
    float x[100] = {0};

    attr.timeout_ms = 2000;
    CHECK(self, !dscomm_group_split(self->world, 0, 0, &attr, &group));
    CHECK(self, !dscomm_compressor_create(group, 100, NULL, &c));
    CHECK(self, !dscomm_barrier(self->world, NULL));
    if (self->rank != 1) {
        dscomm_status_t status = dscomm_compressor_all_reduce(
            c, x, DSCOMM_FLOAT32, self->rank ? NULL : &work);

        CHECK(self, self->rank || (status == DSCOMM_OK && work));
        if (work)
            status = dscomm_work_wait(work, -1);
        CHECK(self,
              status == DSCOMM_ERR_TIMEOUT || status == DSCOMM_ERR_ABORTED);
        CHECK(self, strstr(dscomm_last_error(), "recv from rank 1 with tag"));
        dscomm_work_free(work);
    }
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, !dscomm_compressor_free(c));
    CHECK(self, !dscomm_group_free(group));
}

/* A compressor of a group with a short deadline, which a slow machine may miss
 * while it is made: all ranks try again then. */
static dscomm_compressor_t *open_hasty(rank_t *self, int timeout_ms,
                                       dscomm_group_t **ret_group)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;

    attr.timeout_ms = timeout_ms;
    for (int tries = 0; tries < 50; tries++) {
        dscomm_compressor_t *c = NULL;
        int32_t there = 0, all = 0;

        *ret_group = NULL;
        there = !dscomm_group_split(self->world, 0, 0, &attr, ret_group) &&
                !dscomm_compressor_create(*ret_group, 100, NULL, &c);
        CHECK(self, !dscomm_all_reduce(self->world, &there, &all, 1,
                                       DSCOMM_INT32, DSCOMM_MIN, NULL));
        if (all)
            return c;
        CHECK(self, !dscomm_compressor_free(c));
        CHECK(self, !dscomm_group_free(*ret_group));
    }
    return NULL;
}

/* The same where nobody has a work to look at, and the deadline is not much
 * longer than a look. */
static void silent_blocking(rank_t *self)
{
    dscomm_group_t *group = NULL;
    dscomm_compressor_t *c = open_hasty(self, 200, &group);
    float x[100] = {0};

    CHECK(self, c);
    if (self->rank != 1) {
        dscomm_status_t status =
            dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, NULL);

        CHECK(self,
              status == DSCOMM_ERR_TIMEOUT || status == DSCOMM_ERR_ABORTED);
        CHECK(self, strstr(dscomm_last_error(), "recv from rank 1 with tag"));
    }
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, !dscomm_compressor_free(c));
    CHECK(self, !dscomm_group_free(group));
}

/* The state after a call that failed is none: it has to be loaded or reset. */
static void lost(rank_t *self)
{
    dscomm_compressor_t *cs[3] = {open_with(self, COUNT, NULL),
                                  open_with(self, COUNT, NULL),
                                  open_with(self, COUNT, NULL)};
    dscomm_compressor_t *order[2] = {cs[0], cs[1 + self->rank % 2]};
    dscomm_compressor_info_t info = {.size = sizeof info};
    float x[COUNT], y[COUNT] = {0}, *worker, *server;
    void *buffers[2] = {x, y};
    char *before, *after;

    CHECK(self, !dscomm_compressor_info(cs[0], &info));
    before = malloc(info.state_bytes);
    after = malloc(info.state_bytes);
    fill_noise(x, COUNT, self->rank, 0);
    reduce(self, cs[0], x);
    CHECK(self, !dscomm_compressor_save(cs[0], before, info.state_bytes));
    CHECK(self, dscomm_compressor_all_reduce_many(order, buffers, 2,
                                                  DSCOMM_FLOAT32, NULL) < 0);

    CHECK(self, dscomm_compressor_save(cs[0], after, info.state_bytes) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, strstr(dscomm_last_error(), "reset the compressor"));
    CHECK(self, dscomm_compressor_save_file(cs[0], "/nowhere/at/all") ==
                    DSCOMM_ERR_STATE);
    CHECK(self, dscomm_compressor_errors(cs[0], &worker, &server) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, !dscomm_compressor_load(cs[0], before, info.state_bytes));
    CHECK(self, !dscomm_compressor_save(cs[0], after, info.state_bytes));
    CHECK(self, !memcmp(before, after, info.state_bytes));
    CHECK(self, dscomm_compressor_errors(order[1], &worker, &server) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, !dscomm_compressor_reset(order[1]));
    CHECK(self, !dscomm_compressor_errors(order[1], &worker, &server));
    CHECK(self, worker && worker[0] == 0);
    /* One that was not called is as it was. */
    CHECK(self, !dscomm_compressor_save(cs[2 - self->rank % 2], after,
                                        info.state_bytes));
    free(before);
    free(after);
    close_all(self, cs, 3);
}

int main(void)
{
    ranks_use_modules();
    ranks_run(3, 10000, mismatched, "other arguments");
    ranks_run(2, 10000, out_of_step, "another order");
    ranks_run(2, 10000, swapped, "two calls in another order");
    ranks_run(3, 10000, swapped, "two calls in another order");
    ranks_run(3, 10000, other_mask, "another mask");
    ranks_run(2, 10000, other_dtype, "another dtype");
    ranks_run(3, 10000, other_dtype, "another dtype");
    ranks_run(3, 10000, made_too_late, "a compressor after that");
    ranks_run(2, 10000, lost, "the state after that");
    ranks_run(3, 10000, silent, "a rank that does not call");
    ranks_run(3, 10000, silent_blocking, "the same, and all others block");
    return tap_done();
}
