/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that fail: out of step, or without a peer; and the state after them. */
#include "config.h"

#include "tests/compression/compress.h"

#define COUNT 100

/* With status on the rank that finds it first, and the others are aborted; they
 * tell the same. */
static int has_failed(dscomm_status_t got, dscomm_status_t status,
                      const char *text)
{
    return (got == status || got == DSCOMM_ERR_ABORTED) &&
           strstr(dscomm_last_error(), text);
}

/* Ranks call with different arguments. */
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

/* A call for the first of three compressors, and for another one, which is not
 * the same on all ranks. */
static void call_out_of_step(rank_t *self, dscomm_compressor_t **cs, float *x)
{
    float y[COUNT] = {0};
    void *buffers[2] = {x, y};

    CHECK(self, dscomm_compressor_all_reduce_many(
                    (dscomm_compressor_t *[]){cs[0], cs[1 + self->rank % 2]},
                    buffers, 2, DSCOMM_FLOAT32, NULL) < 0);
}

/* Ranks use the same compressors in different orders. */
static void out_of_step(rank_t *self)
{
    dscomm_compressor_t *cs[] = {open_with(self, COUNT, NULL),
                                 open_with(self, COUNT, NULL),
                                 open_with(self, COUNT, NULL)};
    float x[COUNT] = {0};

    call_out_of_step(self, cs, x);
    CHECK(self, strstr(dscomm_last_error(), "in the same order"));
    CHECK(self, try_reduce(cs[0], x) < 0);
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
    close_all(self, cs, 3);
}

/* Two calls in different orders, with buffers of equal or different sizes. */
static void swapped(rank_t *self)
{
    static const size_t counts[3][2] = {{100, 100}, {100, 50000}, {1, 100}};

    for (int i = 0; i < 6; i++) {
        dscomm_compressor_t *cs[2];
        dscomm_group_t *group = all_of(self, 0);
        dscomm_status_t status = DSCOMM_OK;
        float *x = calloc(50000, sizeof *x);

        for (int k = 0; k < 2; k++)
            cs[k] = OPEN(self, group, counts[i % 3][k],
                         .codec = k && i >= 3 ? "int8" : NULL);
        for (int k = 0; k < 2 && status == DSCOMM_OK; k++)
            status = try_reduce(cs[(k + self->rank) % 2], x);
        CHECK(self,
              has_failed(status, DSCOMM_ERR_MISMATCH, "in the same order"));
        close_on(self, group, cs, 2);
        free(x);
    }
}

/* Ranks have different masks, or one has none; calls with equal masks
 * succeed. */
static void other_mask(rank_t *self)
{
    uint8_t mask[COUNT] = {0, 1, 0}, same[COUNT] = {0, 255, 0};

    for (int how = 0; how < 2; how++) {
        dscomm_group_t *group = all_of(self, 0);
        dscomm_compressor_t *c = open_on(self, group, COUNT);
        dscomm_status_t status;
        float x[COUNT] = {1, 1, 1};

        CHECK(self, !dscomm_compressor_set_mask(c, self->rank ? same : mask));
        reduce(self, c, x);
        mask[2] = self->rank == 1;
        CHECK(self, !dscomm_compressor_set_mask(
                        c, how && self->rank == 1 ? NULL : mask));
        status = try_reduce(c, x);
        CHECK(self,
              has_failed(status, DSCOMM_ERR_MISMATCH, "with the same masks"));
        close_on(self, group, &c, 1);
    }
}

/* The last rank has a buffer of another dtype. */
static void other_dtype(rank_t *self)
{
    const int is_last = self->rank + 1 == self->size;
    dscomm_group_t *group = all_of(self, 0);
    dscomm_compressor_t *c = open_on(self, group, COUNT);
    dscomm_status_t status;
    double x[COUNT] = {0};

    status = dscomm_compressor_all_reduce_many(
        &c, (void *[]){x}, 1, is_last ? DSCOMM_FLOAT64 : DSCOMM_FLOAT32, NULL);
    CHECK(self, has_failed(status, DSCOMM_ERR_MISMATCH, "all_reduce_many"));
    CHECK(self, strstr(dscomm_last_error(), "with a float32 buffer") ||
                    strstr(dscomm_last_error(), "with a float64 buffer"));
    close_on(self, group, &c, 1);
}

/* After a failure no rank can make another compressor of that group. */
static void made_too_late(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 0), *next = NULL;
    dscomm_compressor_t *c = open_on(self, group, COUNT), *later = NULL;
    float x[COUNT] = {0};

    CHECK(self, dscomm_compressor_all_reduce(
                    c, x, self->rank ? DSCOMM_FLOAT16 : DSCOMM_FLOAT32, NULL));
    CHECK(self, dscomm_compressor_create(group, COUNT, NULL, &later) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, strstr(dscomm_last_error(), "has failed") && !later);
    CHECK(self, !dscomm_group_split(group, 0, 0, NULL, &next));
    later = open_on(self, next, COUNT);
    reduce(self, later, x);
    close_on(self, next, &later, 1);
    close_on(self, group, &c, 1);
}

/* One rank does not call: the others fail at the deadline, which is long enough
 * for a slow machine to make the compressor. The first to give up names the
 * rank for which it has waited, and so do the ranks that fail because of it. */
static void silent(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 2000);
    dscomm_compressor_t *c = open_on(self, group, 100);
    dscomm_work_t *work = NULL;
    float x[100] = {0};

    meet(self);
    if (self->rank != 1) {
        dscomm_status_t status = dscomm_compressor_all_reduce(
            c, x, DSCOMM_FLOAT32, self->rank ? NULL : &work);

        CHECK(self, self->rank || (status == DSCOMM_OK && work));
        if (work)
            status = dscomm_work_wait(work, -1);
        CHECK(self, has_failed(status, DSCOMM_ERR_TIMEOUT,
                               "recv from rank 1 with tag"));
        dscomm_work_free(work);
    }
    meet(self);
    close_on(self, group, &c, 1);
}

/* Makes a compressor of a group with a short deadline. A slow machine may miss
 * that; then all ranks try again. */
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

/* The same with blocking calls, and a deadline that is not much longer than the
 * interval of checks. */
static void silent_blocking(rank_t *self)
{
    dscomm_group_t *group = NULL;
    dscomm_compressor_t *c = open_hasty(self, 200, &group);
    float x[100] = {0};

    CHECK(self, c);
    if (self->rank != 1) {
        dscomm_status_t status = try_reduce(c, x);

        CHECK(self, has_failed(status, DSCOMM_ERR_TIMEOUT,
                               "recv from rank 1 with tag"));
    }
    meet(self);
    close_on(self, group, &c, 1);
}

/* After a call that failed, the state is lost: it must be loaded or reset. */
static void lost(rank_t *self)
{
    dscomm_compressor_t *cs[] = {open_with(self, COUNT, NULL),
                                 open_with(self, COUNT, NULL),
                                 open_with(self, COUNT, NULL)};
    dscomm_compressor_t *other = cs[1 + self->rank % 2];
    const size_t bytes = info_of(self, cs[0]).state_bytes;
    float x[COUNT], *worker, *server;
    char *before, *after;

    fill_noise(x, COUNT, self->rank, 0);
    reduce(self, cs[0], x);
    before = save(self, cs[0]);
    after = save(self, cs[0]);
    call_out_of_step(self, cs, x);

    CHECK(self,
          dscomm_compressor_save(cs[0], after, bytes) == DSCOMM_ERR_STATE);
    CHECK(self, strstr(dscomm_last_error(), "reset the compressor"));
    CHECK(self, dscomm_compressor_save_file(cs[0], "/nowhere/at/all") ==
                    DSCOMM_ERR_STATE);
    CHECK(self, dscomm_compressor_errors(cs[0], &worker, &server) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, !dscomm_compressor_load(cs[0], before, bytes));
    CHECK(self, !dscomm_compressor_save(cs[0], after, bytes));
    CHECK(self, !memcmp(before, after, bytes));
    CHECK(self, dscomm_compressor_errors(other, &worker, &server) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, !dscomm_compressor_reset(other));
    CHECK(self, !dscomm_compressor_errors(other, &worker, &server));
    CHECK(self, worker && worker[0] == 0);
    /* A compressor that was not called is unchanged. */
    CHECK(self, !dscomm_compressor_save(cs[2 - self->rank % 2], after, bytes));
    free(before);
    free(after);
    close_all(self, cs, 3);
}

static void run_all(void)
{
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
}

int main(void)
{
    ranks_use_modules();
    unsetenv("DSCOMM_PROGRESS");
    run_all();
    printf("# a thread of the library goes on with works\n");
    setenv("DSCOMM_PROGRESS", "thread", 1);
    run_all();
    return tap_done();
}
