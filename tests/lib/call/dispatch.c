/* SPDX-License-Identifier: BSD-3-Clause */
/* Native collectives and schedules together on one group: their order and
 * numbers, and what peers learn of a rank that cannot go on. */
#include "config.h"

#include "lib/group/group.h"
#include "tests/lib/work/hungry.h"
#include "tests/lib/work/ranks.h"

#include <sys/wait.h>

#define MOST 8

/* The backend in thread.c has all_reduce, but neither gather nor all_to_all. In
 * a gather only the root waits. */
static dscomm_status_t gather(rank_t *self, int32_t *in, int32_t *out,
                              dscomm_work_t **ret_work)
{
    return dscomm_gather(self->world, in, out, 1, DSCOMM_INT32, 0, ret_work);
}

/* A blocking schedule returns after native collectives that were started before
 * it. */
static void behind_native(rank_t *self)
{
    int32_t one = 1, all[RANKS_MAX];

    for (int i = 0; i < 50; i++) {
        int32_t sum = 0;
        dscomm_work_t *work;

        if (self->rank == i % self->size)
            usleep(1000);
        CHECK(self, !sum_one(self->world, &one, &sum, &work));
        CHECK(self, !gather(self, &one, all, NULL));
        CHECK(self, sum == self->size);
        CHECK(self, !dscomm_work_wait(work, 0));
        dscomm_work_free(work);
    }
}

/* A blocking call returns after schedules that are parts of another work, which
 * is held or freed. */
static void behind_coalesced(rank_t *self)
{
    int32_t in[MOST], out[MOST], one = 1, sum;

    for (int i = 0; i < 50; i++) {
        dscomm_work_t *work;

        if (self->rank == i % self->size)
            usleep(1000);
        CHECK(self, !dscomm_coalesce_begin(self->world));
        for (int r = 0; r < self->size; r++)
            in[r] = 10 * self->rank + r;
        CHECK(self, !exchange_one(self->world, in, out, NULL));
        CHECK(self, !dscomm_coalesce_end(self->world, &work));
        if (i % 2)
            dscomm_work_free(work);
        if (i % 4 < 2)
            CHECK(self, !gather(self, &one, (int32_t[RANKS_MAX]){0}, NULL));
        else
            CHECK(self, !sum_one(self->world, &one, &sum, NULL));
        for (int r = 0; r < self->size; r++)
            CHECK(self, out[r] == 10 * r + self->rank);
        if (i % 2)
            continue;
        CHECK(self, !dscomm_work_wait(work, 0));
        dscomm_work_free(work);
    }
}

/* The end of a recording is a blocking call like others, unless it has only
 * messages. */
static void coalesced_behind(rank_t *self)
{
    int32_t one = 1, all[RANKS_MAX], sum = 0, note = 0;
    int peer = self->rank ^ 1;
    dscomm_work_t *work;

    if (self->rank == 0)
        usleep(20000);
    CHECK(self, !sum_one(self->world, &one, &sum, &work));
    CHECK(self, !dscomm_coalesce_begin(self->world));
    CHECK(self, !gather(self, &one, all, NULL));
    CHECK(self, !dscomm_coalesce_end(self->world, NULL));
    CHECK(self, sum == self->size);
    dscomm_work_free(work);
    /* The peer starts the collective only after it has the message. */
    if (self->rank % 2)
        CHECK(self, !recv_one(self->world, &note, peer, 1));
    CHECK(self, !sum_one(self->world, &one, &sum, &work));
    if (self->rank % 2 == 0) {
        CHECK(self, !dscomm_coalesce_begin(self->world));
        CHECK(self, !send_one(self->world, &one, peer, 1));
        CHECK(self, !dscomm_coalesce_end(self->world, NULL));
    }
    FINISH(self, work, DSCOMM_OK);
}

/* Numbers in tags repeat. */
static void numbers_wrap(rank_t *self)
{
    int32_t in[MOST][RANKS_MAX], out[MOST][RANKS_MAX];
    dscomm_work_t *works[MOST];

    self->world->sequence = (UINT64_C(1) << 22) - MOST;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < MOST; i++) {
            for (int r = 0; r < self->size; r++)
                in[i][r] = 1000 * round + 100 * i + 10 * self->rank + r;
            CHECK(self, !exchange_one(self->world, in[i], out[i], &works[i]));
        }
        for (int i = MOST - 1; i >= 0; i--) {
            FINISH(self, works[i], DSCOMM_OK);
            for (int r = 0; r < self->size; r++)
                CHECK(self, out[i][r] ==
                                1000 * round + 100 * i + 10 * r + self->rank);
        }
    }
}

/* From now on rank 0, which knows that all ranks are there, has no memory for
 * requests. */
static void starve(rank_t *self)
{
    int32_t note = 0;

    if (self->rank)
        CHECK(self, !send_one(self->world, &note, 0, 1));
    for (int r = 1; r < self->size && !self->rank; r++)
        CHECK(self, !recv_one(self->world, &note, r, 1));
    if (self->rank == 0)
        self->world->ops.request_size = SIZE_MAX / 64;
}

static void no_memory(rank_t *self)
{
    const size_t size = self->world->ops.request_size;
    int32_t in[RANKS_MAX] = {0}, out[RANKS_MAX];

    starve(self);
    CHECK(self,
          exchange_one(self->world, in, out, NULL) == DSCOMM_ERR_NO_MEMORY);
    self->world->ops.request_size = size;
    CHECK(self, strstr(dscomm_last_error(), "rank 0 has no memory"));
    CHECK(self, dscomm_barrier(self->world, NULL) == DSCOMM_ERR_NO_MEMORY);
}

/* The same for works, when all works that have memory are in use. */
static void no_memory_coalesced(rank_t *self)
{
    const size_t size = self->world->ops.request_size;
    int32_t one = 1, all[RANKS_MAX];
    dscomm_work_t *works[16] = {NULL};

    starve(self);
    for (int i = 0; i < 16 && !self->rank; i++)
        CHECK(self, !dscomm_isend(self->world, &one, 1, DSCOMM_INT32, 0, 2,
                                  &works[i]));
    CHECK(self, !dscomm_coalesce_begin(self->world));
    CHECK(self, !gather(self, &one, all, NULL));
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, dscomm_coalesce_end(self->world, NULL) == DSCOMM_ERR_NO_MEMORY);
    self->world->ops.request_size = size;
    CHECK(self, strstr(dscomm_last_error(), "rank 0 has no memory"));
    for (int i = 0; i < 16; i++)
        dscomm_work_free(works[i]);
}

/* A rank that waits for a schedule learns why its group has ended. */
static void aborted(rank_t *self)
{
    int32_t in[RANKS_MAX] = {0}, out[RANKS_MAX];
    dscomm_work_t *works[3];

    if (self->rank == 0) {
        usleep(20000);
        CHECK(self, !dscomm_group_abort(self->world, "enough"));
        return;
    }
    for (int i = 0; i < 3; i++)
        CHECK(self, !exchange_one(self->world, in, out, &works[i]));
    for (int i = 2; i >= 0; i--) {
        FAILS(self, DSCOMM_ERR_ABORTED, "enough",
              dscomm_work_wait(works[i], -1));
        dscomm_work_free(works[i]);
    }
}

/* The group can be freed while schedules are in progress, and a forked child
 * can free its copies. */
static void abandoned(rank_t *self)
{
    int32_t in[RANKS_MAX] = {0}, out[RANKS_MAX];
    dscomm_group_t *group = split_all(self, 0);
    dscomm_work_t *work;
    pid_t child;
    int status = -1;

    if (self->rank == 0) {
        CHECK(self, !exchange_one(group, in, out, &work));
        child = fork();
        if (child == 0)
            _exit(dscomm_work_wait(work, -1) != DSCOMM_ERR_STATE ||
                  dscomm_finalize(self->world));
        waitpid(child, &status, 0);
        CHECK(self, WIFEXITED(status) && !WEXITSTATUS(status));
        CHECK(self, !dscomm_group_free(group));
        FINISH(self, work, DSCOMM_ERR_ABORTED);
    } else {
        CHECK(self, !dscomm_group_free(group));
    }
}

/* The call takes longer than the deadline, but there are always messages in
 * between: rank 1 forwards a few segments at a time, and in the end none. */
static void slow(rank_t *self)
{
    const size_t bytes = 96 * (64 << 10);
    dscomm_status_t status = DSCOMM_IN_PROGRESS;
    char *buffer = calloc(1, bytes);
    dscomm_group_t *group;
    dscomm_work_t *work;

    memset(buffer, self->rank ? 0 : 42, bytes);
    group = split_all(self, 1000);
    CHECK(self,
          !dscomm_broadcast(group, buffer, bytes, DSCOMM_UINT8, 0, &work));
    while (self->rank == 1 && status == DSCOMM_IN_PROGRESS) {
        usleep(60000);
        status = dscomm_work_test(work);
    }
    CHECK(self, !dscomm_work_wait(work, -1));
    CHECK(self, buffer[0] == 42 && buffer[bytes - 1] == 42);
    dscomm_work_free(work);
    CHECK(self, !dscomm_barrier(self->world, NULL));
    if (self->rank != 1) {
        status = dscomm_broadcast(group, buffer, bytes, DSCOMM_UINT8, 1, NULL);
        FAILS(self, DSCOMM_ERR_TIMEOUT, "1000 ms", status);
        CHECK(self, strstr(dscomm_last_error(), "rank 1"));
    }
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, !dscomm_group_free(group));
    free(buffer);
}

/* Collectives that all ranks have started end before the world does. */
static void unwaited(rank_t *self)
{
    static int32_t in[RANKS_MAX][RANKS_MAX], out[RANKS_MAX][RANKS_MAX];
    dscomm_work_t *work;

    for (int i = 0; i < 20; i++) {
        CHECK(self, !exchange_one(self->world, in[self->rank], out[self->rank],
                                  &work));
        if (i % 2)
            dscomm_work_free(work);
    }
}

int main(void)
{
    ranks_use_modules();
    ranks_run(4, 10000, behind_native, "a schedule behind the backend's own");
    ranks_run(4, 10000, behind_coalesced, "a call behind coalesced schedules");
    ranks_run(4, 10000, coalesced_behind, "a recording behind a collective");
    ranks_run(3, 10000, numbers_wrap, "numbers come round again");
    ranks_run(3, 10000, no_memory, "a rank without memory");
    ranks_run(3, 10000, no_memory_coalesced, "the same, coalesced");
    ranks_run(3, 10000, aborted, "an aborted group");
    ranks_run(2, 10000, abandoned, "a group freed, a process forked");
    ranks_run(3, 10000, unwaited, "works that nobody waits for");
    setenv("DSCOMM_ALGORITHM", "broadcast:chain", 1);
    ranks_run(3, 10000, slow, "longer than the deadline");
    return tap_done();
}
