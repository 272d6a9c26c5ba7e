/* SPDX-License-Identifier: BSD-3-Clause */
/* How rows of a device are sent: packet by packet, while others are still being
 * copied, on both sides; through the host, or directly if the backend accepts
 * device memory. Results are those of the same calls in host memory. Marks may
 * be reached late, and any function of the table may fail. */
#include "config.h"

#include "compression/device/device.h"
#include "tests/compression/pairs.h"

#include <stdatomic.h>

/* A row of 2 ranks is one packet and a little more. */
#define LONG ((size_t)2 * (2097152 + 4096))
#define SHORT 5000
#define HEADER 16

/* Rank 0's device stops before it copies the second packet, until rank 1's
 * device has received the first one; so that one was sent meanwhile. */
static void overlap(rank_t *self, int copies, fake_event_t until)
{
    pair_t pair;

    fake_device_choose(self->rank);
    pair = pair_new(self, LONG);
    pair_call(self, &pair, 0);
    ALONE(self, 0, fake_device_stop(0, copies, until));
    pair_call(self, &pair, copies > 1);
    if (self->rank == 0)
        CHECK(self, fake_device_met());
    pair_free(self, &pair);
}

static void overlap_parts(rank_t *self)
{
    overlap(self, 1, FAKE_UP);
}

static void overlap_results(rank_t *self)
{
    overlap(self, 3, FAKE_UNPACK);
}

static void calls(rank_t *self, size_t count)
{
    pair_t pair;

    fake_device_choose(self->rank);
    pair = pair_new(self, count);
    for (int call = 0; call < 4; call++)
        pair_call(self, &pair, call % 2);
    pair_free(self, &pair);
}

static void short_calls(rank_t *self)
{
    calls(self, SHORT);
}

static void long_calls(rank_t *self)
{
    calls(self, LONG);
}

/* No more memory is needed after the first call. */
static void no_more_room(rank_t *self)
{
    pair_t pair;

    fake_device_choose(self->rank);
    pair = pair_new(self, SHORT);
    pair_call(self, &pair, 0);
    meet(self);
    fake_device_full(1);
    for (int call = 0; call < 3; call++)
        pair_call(self, &pair, call == 1);
    meet(self);
    fake_device_full(0);
    pair_free(self, &pair);
}

/* A result that is not finite: once because of a rank's data, once because of
 * the sum. */
static void not_finite(rank_t *self)
{
    pair_t pair = pair_new(self, SHORT);

    pair_not_finite(self, &pair, 3e38f);
    pair_free(self, &pair);
}

/* Several buffers in one call; where has the device of each, or -1. */
static void together(rank_t *self, const int *where, int n)
{
    pair_t pairs[PAIRS_MAX];

    for (int i = 0; i < n; i++) {
        size_t count = (size_t)(i * 1237 % SHORT);
        dscomm_compressor_t *there = open_with(self, count, "onebit");
        dscomm_compressor_t *here = open_with(self, count, "onebit");

        fake_device_choose(where[i]);
        pairs[i] = pair_make(there, here, count, DSCOMM_FLOAT32,
                             where[i] < 0 ? ON_HOST : 0);
        pairs[i].call = 10 * i;
    }
    for (int call = 0; call < 3; call++)
        pairs_call(self, pairs, n);
    for (int i = 0; i < n; i++)
        pair_free(self, &pairs[i]);
}

static void many(rank_t *self)
{
    static const int where[PAIRS_MAX] = {0};

    together(self, where, PAIRS_MAX);
}

/* Buffers on two devices and in host memory; placed differently on one rank. */
static void mixed(rank_t *self)
{
    static const int where[] = {0, 1, -1, 0, 0, -1, 1, 0};
    static const int one[] = {1, 1, 1, 1, 1, 1, 1, 1};

    together(self, self->rank == 1 ? one : where, 8);
}

static void rank_on_host(rank_t *self)
{
    static const int there[] = {0, 0}, here[] = {-1, -1};

    together(self, self->rank == 1 ? here : there, 2);
}

/* If rows are sent directly, only headers are copied. To the host: those of
 * encoded rows and of the result, and in both phases those received from other
 * ranks. To the device: its own, and the result's without a scale. */
static void headers_only(rank_t *self)
{
    const size_t n = (size_t)self->size;
    const size_t each = HEADER * (n + 1 + 2 * (n - 1)) + HEADER * n + 12;
    pair_t pair;

    fake_device_choose(self->rank);
    pair = pair_new(self, SHORT);
    pair_call(self, &pair, 0);
    pair_fill(self, &pair);
    ALONE(self, 0, fake_device_counted(FAKE_COPIED));
    reduce(self, pair.there, pair.x);
    ALONE(self, 0, CHECK(self, fake_device_counted(FAKE_COPIED) == n * each));
    pair_compare(self, &pair);
    pair_free(self, &pair);
}

/* A rank gives up while the device is stopped, and the sentence names the
 * device. */
static void stuck(rank_t *self)
{
    pair_t pair = pair_new(self, SHORT);

    pair_call(self, &pair, 0);
    pair_fill(self, &pair);
    fake_device_stop(0, 0, FAKE_NEVER);
    CHECK(self, has_timed_out(try_reduce(pair.there, pair.x)));
    CHECK(self, !fake_device_met());
    pair_free(self, &pair);
}

/* Aborts after a mark was set that the stopped device cannot reach. */
static void *abort_later(void *group)
{
    while (!fake_device_counted(FAKE_MARKS))
        usleep(1000);
    dscomm_group_abort(group, "in between");
    return NULL;
}

static void abort_stuck(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 0);
    dscomm_compressor_t *c = open_on(self, group, SHORT);
    float *x = fake_device_alloc(SHORT * sizeof *x);
    pthread_t thread;

    fake_device_stop(0, 0, FAKE_NEVER);
    fake_device_counted(FAKE_MARKS);
    pthread_create(&thread, NULL, abort_later, group);
    CHECK(self, try_reduce(c, x) == DSCOMM_ERR_ABORTED);
    CHECK(self, !fake_device_met());
    pthread_join(thread, NULL);
    close_on(self, group, &c, 1);
    fake_device_free(x);
}

/* The device stops before a call, in work of the call before it. */
static void stuck_before(rank_t *self)
{
    pair_t pair = pair_new(self, SHORT);
    void *stream = fake_device_stream_new();

    CHECK(self, !dscomm_compressor_set_stream(pair.there, stream));
    pair_fill(self, &pair);
    fake_device_hold(1);
    reduce(self, pair.there, pair.x);
    CHECK(self, has_timed_out(try_reduce(pair.there, pair.x)));
    fake_device_hold(0);
    fake_device_wait(stream);
    pair_free(self, &pair);
    fake_device_stream_free(stream);
}

/* Without a stream, a work ends when its result is there. */
static void held(rank_t *self)
{
    pair_t pair = pair_new(self, SHORT);
    dscomm_work_t *work = NULL;

    pair_fill(self, &pair);
    fake_device_hold(1);
    CHECK(self, !dscomm_compressor_all_reduce(pair.there, pair.x,
                                              DSCOMM_FLOAT32, &work));
    for (int i = 0; i < 10; i++)
        CHECK(self, dscomm_work_wait(work, 1) == DSCOMM_IN_PROGRESS);
    fake_device_hold(0);
    finish(self, work);
    pair_compare(self, &pair);
    pair_free(self, &pair);
}

FAKE_EXPORT extern void *thread_kept; /* see tests/lib/work/thread.c */
void *thread_kept;

/* Leaves a call that no other rank joins. */
static void leave_call(rank_t *self, dscomm_group_t *group, float *x)
{
    dscomm_compressor_t *c = open_on(self, group, SHORT);
    dscomm_work_t *work = NULL;

    meet(self);
    if (self->rank == 0) {
        CHECK(self, !dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, &work));
        CHECK(self, !dscomm_group_abort(group, "nobody joins"));
        CHECK(self, dscomm_work_wait(work, -1) == DSCOMM_ERR_ABORTED);
        dscomm_work_free(work);
    }
    CHECK(self, !dscomm_compressor_free(c));
}

/* MPI may write a row after all memory of the call was released. */
static void late_row(rank_t *self)
{
    char late[HEADER], *kept;
    dscomm_group_t *group;
    pair_t pair;

    memset(late, 0x5a, sizeof late);
    pair = pair_new(self, SHORT);
    pair_fill(self, &pair);
    group = all_of(self, 0);
    if (self->rank == 0)
        thread_kept = NULL;
    meet(self);
    leave_call(self, group, fake_device_aware ? pair.x : pair.want);
    meet(self);
    kept = thread_kept;
    CHECK(self, kept);
    dscomm_group_free(group);
    meet(self);
    if (kept && self->rank == 0)
        memcpy(kept, late, sizeof late);
    for (int call = 0; call < 3; call++)
        pair_call(self, &pair, 0);
    CHECK(self, kept && !memcmp(kept, late, sizeof late));
    pair_free(self, &pair);
}

/* The runtime fails in each of its calls: all ranks end, with the right result
 * or with a failure. */
static void failing(rank_t *self)
{
    pair_t pair;
    dscomm_status_t status;

    fake_device_choose(self->rank);
    pair = pair_new(self, SHORT);
    pair_fill(self, &pair);
    ALONE(self, 0, fake_device_fail(fail_at));
    status = try_reduce(pair.there, pair.x);
    CHECK(self, status == DSCOMM_OK || status == DSCOMM_ERR_IO ||
                    status == DSCOMM_ERR_ABORTED);
    ALONE(self, 0, fail_beyond = fake_device_fail(-1) >= 0);
    if (fail_beyond) {
        CHECK(self, status == DSCOMM_OK);
        pair_compare(self, &pair);
    }
    pair_free(self, &pair);
}

/* How rows travel. */
typedef enum { STAGED, AWARE, WINDOWS, WAYS } way_t;
static way_t way;

static void choose(way_t next)
{
    way = next;
    fake_device_aware = way == AWARE;
    fake_device_one_process = way != WINDOWS;
}

static atomic_int direct_lines, staged_lines, read_lines;

static void count_lines(dscomm_log_level_t level, const char *domain,
                        const char *message, void *arg)
{
    (void)level;
    (void)domain;
    (void)arg;
    direct_lines += strstr(message, "go as they are to backend thread") != NULL;
    staged_lines += strstr(message, "go by host memory, since") != NULL;
    read_lines += strstr(message, "read there by the other ranks") != NULL;
}

/* Checks that each rank logs once how its rows are sent. */
static void look_at_log(void)
{
    direct_lines = staged_lines = read_lines = 0;
    dscomm_log_set_levels("compression:info");
    dscomm_log_set_handler(count_lines, NULL);
    ranks_run(2, 20000, short_calls, "calls that are told of");
    dscomm_log_set_handler(NULL, NULL);
    dscomm_log_set_levels("error");
    is_int(direct_lines, way == AWARE ? 2 : 0, "directly");
    is_int(staged_lines, way == STAGED ? 2 : 0, "by way of the host");
    is_int(read_lines, way == WINDOWS ? 2 : 0, "through windows");
}

static void each_way(int late)
{
    static const char *const names[] = {"by way of the host", "as they are",
                                        "through windows"};
    static const int sizes[] = {1, 2, 3, 5};

    fake_device_late(late);
    printf("# %s, marks %d looks late\n", names[way], late);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        ranks_run(sizes[s], 20000, short_calls, "short calls");
        ranks_run(sizes[s], 20000, no_more_room, "room from the first call");
        ranks_run(sizes[s], 20000, not_finite, "not finite");
        ranks_run(sizes[s], 20000, many, "many in one call");
        ranks_run(sizes[s], 20000, mixed, "here and there in one call");
        ranks_run(sizes[s], 20000, rank_on_host, "a rank without a device");
    }
    fake_device_late(0);
}

int main(void)
{
    /* pieces of memory of calls that failed while messages were in progress */
    int left = 0;

    ranks_use_modules();
    dscomm_priv_device_use(fake_device_table());
    for (int i = 0; i < WAYS; i++) {
        choose(i);
        look_at_log();
        each_way(0);
        each_way(25);
        ranks_run(2, 60000, long_calls, "long calls");
        is_int(fake_device_pieces(), left, "all memory of the devices is free");
        ranks_run(2, 20000, late_row, "a row that comes after a failure");
        fail_everywhere(2, failing, 30, 200);
        left = fake_device_pieces();
    }
    is_int(fake_device_early(), 0, "no memory went that others had mapped");
    choose(AWARE);
    ranks_run(2, 20000, headers_only, "headers alone come to the host");
    ranks_run(3, 20000, headers_only, "headers alone come to the host");
    choose(STAGED);
    ranks_run(2, 60000, overlap_parts,
              "parts are sent while others are copied");
    ranks_run(2, 60000, overlap_results, "and so are results");
    ranks_run(1, 20000, held, "a result that is late");
    is_int(fake_device_pieces(), left, "all memory of the devices is free");
    ranks_run(1, 300, stuck, "a device that does not go on");
    ranks_run(1, 60000, abort_stuck, "an abort while a device stands");
    ranks_run(1, 300, stuck_before, "a device that stands before a call");
    dscomm_priv_device_use(NULL);
    return tap_done();
}
