/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: either all ranks get one, or none does, for a reason that the log
 * tells. They grow. Calls end only when others have read, and memory that
 * others have mapped is not released. Ranks are threads that represent
 * processes; device-packets.c tests how rows are sent. */
#include "config.h"

#include "compression/core/window.h"
#include "compression/device/device.h"
#include "tests/compression/pairs.h"

#include <stdatomic.h>

#define SHORT 5000
/* The rows of this compressor need more than a window of 2 MiB. */
#define LONG ((size_t)10 << 20)
#define MANY 12

static atomic_int lines;
static const char *expected;

static void count_lines(dscomm_log_level_t level, const char *domain,
                        const char *message, void *arg)
{
    (void)level;
    (void)domain;
    (void)arg;
    lines += strstr(message, expected) != NULL;
}

/* The obstacle, on rank 1. */
static enum {
    NO_DEVICE,
    SWITCHED_OFF,
    NOT_MAPPED,
    NOT_ALLOCATED,
    SAME_PROCESS
} obstacle;

static void calls_in_spite(rank_t *self)
{
    pair_t pair;

    fake_device_choose(self->rank == 1 && obstacle == NO_DEVICE ? -1
                                                                : self->rank);
    fake_device_unmappable = self->rank == 1 && obstacle == NOT_MAPPED;
    pair = pair_new(self, SHORT);
    fake_device_free(pair.x);
    fake_device_choose(self->rank);
    pair.x = fake_device_alloc(SHORT * sizeof(float));
    meet(self);
    fake_device_full(0);
    if (self->rank == 0)
        fake_device_counted(FAKE_READ);
    meet(self);
    for (int call = 0; call < 3; call++)
        pair_call(self, &pair, call == 1);
    pair_free(self, &pair);
    fake_device_unmappable = 0;
}

/* Each rank logs one line with the reason. */
static void check_line(int why, const char *line)
{
    obstacle = why;
    expected = line;
    lines = 0;
    fake_device_one_process = why == SAME_PROCESS;
    fake_device_full(why == NOT_ALLOCATED);
    if (why == SWITCHED_OFF)
        setenv("DSCOMM_CUDA_IPC", "no", 1);
    dscomm_log_set_levels("compression:info");
    dscomm_log_set_handler(count_lines, NULL);
    ranks_run(3, 20000, calls_in_spite, line);
    dscomm_log_set_handler(NULL, NULL);
    dscomm_log_set_levels("error");
    is_int(lines, 3, "each rank says so once");
    ok(!fake_device_counted(FAKE_READ), "none reads memory of another");
    is_int(fake_device_pieces(), 0, "all memory is free");
    fake_device_one_process = 0;
    unsetenv("DSCOMM_CUDA_IPC");
}

/* The obstacle is gone: the next compressor gets the window that the first one
 * did not. */
static void later(rank_t *self)
{
    dscomm_compressor_t *first;
    pair_t pair;

    fake_device_choose(self->rank ? self->rank : -1);
    first = open_with(self, SHORT, "onebit");
    fake_device_choose(self->rank);
    pair = pair_new(self, SHORT);
    meet(self);
    fake_device_counted(FAKE_READ);
    meet(self);
    pair_call(self, &pair, 0);
    ALONE(self, 0, CHECK(self, fake_device_counted(FAKE_READ)));
    pair_free(self, &pair);
    CHECK(self, !dscomm_compressor_free(first));
}

/* More and more compressors, some calls at the same time, so that one window is
 * not enough. */
static void growing(rank_t *self)
{
    pair_t pairs[MANY];
    dscomm_work_t *works[MANY] = {NULL};

    fake_device_choose(self->rank);
    for (int i = 0; i < MANY; i++) {
        pairs[i] = pair_new(self, i == 5 ? LONG : SHORT);
        pair_call(self, &pairs[i], 0);
    }
    meet(self);
    fake_device_counted(FAKE_READ);
    meet(self);
    for (int call = 0; call < 3; call++) {
        for (int i = 0; i < MANY; i++) {
            pair_fill(self, &pairs[i]);
            CHECK(self,
                  !dscomm_compressor_all_reduce(pairs[i].there, pairs[i].x,
                                                DSCOMM_FLOAT32, &works[i]));
        }
        for (int i = MANY; i-- > 0;) {
            finish(self, works[i]);
        }
        for (int i = 0; i < MANY; i++)
            pair_compare(self, &pairs[i]);
    }
    ALONE(self, 0,
          CHECK(self, fake_device_counted(FAKE_READ) >=
                          3 * 2 * (size_t)(self->size - 1) * LONG / 8));
    for (int i = 0; i < MANY; i++)
        pair_free(self, &pairs[i]);
}

/* A window is made while a call is outstanding. */
static void growing_meanwhile(rank_t *self)
{
    dscomm_work_t *work = NULL;
    pair_t pair, next;

    fake_device_choose(self->rank);
    pair = pair_new(self, SHORT);
    pair_fill(self, &pair);
    CHECK(self, !dscomm_compressor_all_reduce(pair.there, pair.x,
                                              DSCOMM_FLOAT32, &work));
    next = pair_new(self, LONG);
    finish(self, work);
    pair_compare(self, &pair);
    pair_call(self, &next, 0);
    pair_free(self, &next);
    pair_free(self, &pair);
}

/* A window that is refused while a device works is released afterwards. */
static void refused_meanwhile(rank_t *self)
{
    dscomm_group_t *groups[] = {all_of(self, 0), all_of(self, 0)};
    dscomm_compressor_t *cs[2];
    void *stream = fake_device_stream_new();
    float *x;

    fake_device_choose(self->rank);
    x = fake_device_alloc(SHORT * sizeof *x);
    cs[0] = open_on(self, groups[0], SHORT);
    CHECK(self, !dscomm_compressor_set_stream(cs[0], stream));
    meet(self);
    fake_device_hold(1);
    meet(self);
    reduce(self, cs[0], x);
    cs[1] = open_on(self, groups[1], SHORT);
    meet(self);
    fake_device_hold(0);
    for (int i = 0; i < 2; i++)
        close_on(self, groups[i], &cs[i], 1);
    fake_device_stream_free(stream);
    fake_device_free(x);
}

/* Rows in a window are not copied to the host. */
static void no_staging(rank_t *self)
{
    const size_t headers = 16 * (size_t)(self->size + 1);
    pair_t pair;

    fake_device_choose(self->rank);
    pair = pair_new(self, LONG);
    pair_call(self, &pair, 0);
    pair_fill(self, &pair);
    ALONE(self, 0, fake_device_counted(FAKE_COPIED));
    reduce(self, pair.there, pair.x);
    ALONE(self, 0,
          CHECK(self, fake_device_counted(FAKE_COPIED) ==
                          (size_t)self->size * headers));
    pair_compare(self, &pair);
    pair_free(self, &pair);
}

/* Rank 1's device stops before it reads rank 0's result; three copies come
 * before that: headers, and rows to be reduced. Rank 0 has its own result then,
 * but its call does not end. */
static void unread(rank_t *self)
{
    dscomm_work_t *work = NULL;
    pair_t pair;

    fake_device_choose(self->rank);
    pair = pair_new(self, SHORT);
    pair_call(self, &pair, 0);
    pair_fill(self, &pair);
    ALONE(self, 1, fake_device_stop(1, 3, FAKE_NEVER));
    CHECK(self, !dscomm_compressor_all_reduce(pair.there, pair.x,
                                              DSCOMM_FLOAT32, &work));
    for (int i = 0; i < 50; i++)
        CHECK(self, dscomm_work_wait(work, 2) == DSCOMM_IN_PROGRESS);
    ALONE(self, 1, fake_device_met());
    finish(self, work);
    pair_compare(self, &pair);
    pair_free(self, &pair);
}

/* The first rank to leave keeps its memory as long as others have it mapped. */
static void leaving(rank_t *self)
{
    dscomm_compressor_t *c;

    fake_device_choose(self->rank);
    c = open_with(self, SHORT, "onebit");
    meet(self);
    for (int r = 0; r < self->size; r++) {
        if (r == self->rank)
            CHECK(self, !dscomm_compressor_free(c));
        meet(self);
        /* Each rank had its own window and mapped those of all others. */
        if (r + 1 < self->size)
            CHECK(self,
                  fake_device_pieces() ==
                      self->size + (self->size - r - 1) * (self->size - 1));
        meet(self);
    }
    CHECK(self, !fake_device_pieces());
}

/* A window that one rank has left is not used by the ranks that still have it:
 * later compressors are made without a device, and get no other window. */
static void returning(rank_t *self)
{
    dscomm_compressor_t *c;
    pair_t pair;

    fake_device_choose(self->rank);
    c = open_with(self, SHORT, "onebit");
    ALONE(self, 0, CHECK(self, !dscomm_compressor_free(c)));
    fake_device_choose(-1);
    pair = pair_new(self, SHORT);
    fake_device_free(pair.x);
    fake_device_choose(self->rank);
    pair.x = fake_device_alloc(SHORT * sizeof(float));
    for (int call = 0; call < 3; call++)
        pair_call(self, &pair, call == 1);
    pair_free(self, &pair);
    if (self->rank > 0)
        CHECK(self, !dscomm_compressor_free(c));
}

/* Its device is stopped when it leaves a window, which stays; a later window
 * does not. */
static void returning_late(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 2000);
    void *stream = fake_device_stream_new();
    float *x;
    int pieces = 0;

    fake_device_choose(self->rank);
    x = fake_device_alloc(SHORT * sizeof *x);
    for (int turn = 0; turn < 3; turn++) {
        dscomm_compressor_t *c = open_on(self, group, SHORT);

        CHECK(self, !dscomm_compressor_set_stream(c, stream));
        meet(self);
        fake_device_hold(turn == 0);
        meet(self);
        reduce(self, c, x);
        meet(self);
        CHECK(self, !dscomm_compressor_free(c));
        meet(self);
        fake_device_hold(0);
        fake_device_wait(stream);
        meet(self);
        if (turn == 0)
            pieces = fake_device_pieces();
        meet(self);
    }
    CHECK(self, fake_device_pieces() == pieces);
    CHECK(self, !dscomm_group_free(group));
    meet(self);
    fake_device_stream_free(stream);
    fake_device_free(x);
}

/* A rank does not call, or one of its devices is stopped, which may be another
 * than that of its window. The calls of the other ranks end at the deadline,
 * and release everything that they have taken. */
#define ELSEWHERE 9
static int stands; /* 0, 1, or ELSEWHERE */

static void failing_call(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 2000);
    dscomm_device_queue_t *queue = NULL;
    dscomm_compressor_t *c;
    float *x;

    fake_device_choose(self->rank);
    c = open_on(self, group, SHORT);
    if (self->rank == 1 && stands)
        fake_device_choose(stands);
    x = fake_device_alloc(SHORT * sizeof *x);
    meet(self);
    /* It has copied headers by then, or nothing from this device. */
    if (self->rank == 1 && stands)
        fake_device_stop(1, stands == 1, FAKE_NEVER);
    meet(self);
    if (self->rank != 1 || stands) {
        dscomm_status_t status = try_reduce(c, x);

        CHECK(self,
              status == DSCOMM_ERR_TIMEOUT || status == DSCOMM_ERR_ABORTED);
    }
    close_on(self, group, &c, 1);
    meet(self);
    if (self->rank == 1) {
        fake_device_met();
        CHECK(self, !dscomm_priv_device_queue(MAX(stands, 1), &queue));
        CHECK(self, !fake_device_table()->sync(queue));
    }
    meet(self);
    fake_device_free(x);
}

/* The runtime fails in any of its calls while a compressor is made: it is made
 * all the same. */
static void failing_create(rank_t *self)
{
    pair_t pair;

    fake_device_choose(self->rank);
    ALONE(self, 0, fake_device_fail(fail_at));
    pair = pair_new(self, SHORT);
    ALONE(self, 0, fail_beyond = fake_device_fail(-1) >= 0);
    pair_call(self, &pair, 0);
    pair_free(self, &pair);
}

int main(void)
{
    ranks_use_modules();
    dscomm_priv_device_use(fake_device_table());
    check_line(NO_DEVICE,
               "thread, and rank 1 had no device when its compressor");
    check_line(SWITCHED_OFF, "thread, and rank 0 has DSCOMM_CUDA_IPC=no");
    check_line(NOT_MAPPED,
               "thread, and rank 1 cannot map the device memory of rank "
               "0: FAKE_ERROR (717)");
    check_line(NOT_ALLOCATED,
               "and rank 0 has no device memory for others: FAKE_");
    check_line(SAME_PROCESS,
               "and rank 0 is of the same process as rank 1, and none");
    fake_device_one_process = 1;
    ranks_run(2, 20000, refused_meanwhile, "no window while a device works");
    is_int(fake_device_pieces(), 0, "all memory is free");
    fake_device_one_process = 0;
    ranks_run(3, 20000, later, "a device that comes later");
    ranks_run(2, 60000, growing, "windows that grow");
    ranks_run(3, 60000, growing, "windows that grow");
    ranks_run(3, 60000, growing_meanwhile, "windows that grow meanwhile");
    ranks_run(2, 60000, no_staging, "headers alone come to the host");
    ranks_run(3, 60000, no_staging, "headers alone come to the host");
    ranks_run(2, 20000, unread, "a result that was not read yet");
    ranks_run(3, 20000, leaving, "leaving one after the other");
    is_int(fake_device_pieces(), 0, "all memory is free");
    ranks_run(2, 20000, returning, "coming back after another one stayed");
    ranks_run(3, 20000, returning, "coming back after others stayed");
    is_int(fake_device_pieces(), 0, "all memory is free");
    fail_everywhere(2, failing_create, 5, 100);
    is_int(fake_device_pieces(), 0, "all memory is free");
    ranks_run(3, 20000, failing_call, "a rank that does not call");
    is_int(fake_device_pieces(), 0, "all memory is free");
    stands = 1;
    ranks_run(3, 20000, failing_call, "a rank whose device stands");
    stands = ELSEWHERE;
    ranks_run(3, 20000, failing_call, "a device elsewhere that stands");
    ok(fake_device_pieces() > 0, "what it may still read stays");
    ranks_run(2, 20000, returning_late, "coming back after a device stood");
    is_int(fake_device_early(), 0, "no memory went that others had mapped");
    dscomm_priv_device_use(NULL);
    return tap_done();
}
