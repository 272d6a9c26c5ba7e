/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that does not respond: a wait for it ends at the group's time-out
 * with a sentence, and can be repeated when the device goes on; memory that the
 * device may still use is not freed. A full device is tried again, at growing
 * intervals. */
#include "config.h"

#include "compression/device/device.h"
#include "tests/compression/pairs.h"

#define COUNT 5000

/* A call that has returned, before its result is there. */
typedef struct {
    pair_t pair;
    void *stream;
} begun_t;

static begun_t begin(rank_t *self)
{
    begun_t b = {pair_new(self, COUNT), fake_device_stream_new()};

    CHECK(self, !dscomm_compressor_set_stream(b.pair.there, b.stream));
    pair_fill(self, &b.pair);
    reduce(self, b.pair.here, b.pair.want);
    fake_device_hold(1);
    reduce(self, b.pair.there, b.pair.x);
    return b;
}

/* The device goes on; the result is right. */
static void end(rank_t *self, begun_t *b)
{
    fake_device_hold(0);
    fake_device_wait(b->stream);
    pair_check(self, &b->pair);
    pair_free(self, &b->pair);
    fake_device_stream_free(b->stream);
}

static int errors_time_out(const begun_t *b)
{
    float *worker, *server;

    return has_timed_out(
        dscomm_compressor_errors(b->pair.there, &worker, &server));
}

/* The errors are requested, but the device stops before it copies them. */
static void errors_from(rank_t *self)
{
    begun_t b = begin(self);

    CHECK(self, errors_time_out(&b));
    fake_device_hold(0);
    CHECK(self, is_same(self, &b.pair));
    end(self, &b);
}

/* The device stops while it copies the errors, which are needed or not. */
static void errors_half(rank_t *self)
{
    begun_t b = begin(self);

    fake_device_hold(0);
    fake_device_wait(b.stream);
    fake_device_stop(0, 0, FAKE_NEVER);
    CHECK(self, errors_time_out(&b));
    CHECK(self, has_timed_out(dscomm_compressor_reset(b.pair.there)));
    CHECK(self, !fake_device_met());
    CHECK(self, is_same(self, &b.pair));
    end(self, &b);
}

/* In a call that fails: the errors are copied to the device after work of
 * another call. */
static void errors_to(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
    begun_t b = begin(self);

    CHECK(self, has_timed_out(try_reduce(c, b.pair.x)));
    CHECK(self, !dscomm_compressor_free(c));
    end(self, &b);
}

/* The device stops before a buffer is copied whose codec it does not have; the
 * compressor then has no state. */
static void buffer_behind(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "int8");
    begun_t b = begin(self);

    CHECK(self, has_timed_out(try_reduce(c, b.pair.x)));
    CHECK(self, try_reduce(c, b.pair.x) == DSCOMM_ERR_STATE);
    CHECK(self, strstr(dscomm_last_error(), "reset the compressor"));
    CHECK(self, !dscomm_compressor_reset(c));
    CHECK(self, has_timed_out(try_reduce(c, b.pair.x)));
    CHECK(self, !dscomm_compressor_free(c));
    end(self, &b);
}

static void *abort_soon(void *group)
{
    g_usleep(50000);
    dscomm_group_abort(group, "enough");
    return NULL;
}

/* The same; the group ends long before the deadline. */
static void buffer_aborted(rank_t *self)
{
    begun_t b;
    pthread_t thread;
    gint64 since;
    dscomm_group_t *group = all_of(self, 0);
    dscomm_compressor_t *c = OPEN(self, group, COUNT, .codec = "int8");

    b = begin(self);
    since = g_get_monotonic_time();
    CHECK(self, !pthread_create(&thread, NULL, abort_soon, group));
    CHECK(self, try_reduce(c, b.pair.x) == DSCOMM_ERR_ABORTED);
    CHECK(self, strstr(dscomm_last_error(), "enough"));
    CHECK(self, g_get_monotonic_time() - since < 10 * G_USEC_PER_SEC);
    pthread_join(thread, NULL);
    close_on(self, group, &c, 1);
    end(self, &b);
}

/* The same; the copy is written to after the call has failed. */
static void buffer_half(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "int8");
    float *x = fake_device_alloc(COUNT * sizeof *x);
    dscomm_device_queue_t *queue = NULL;

    fake_device_stop(0, 0, FAKE_NEVER);
    CHECK(self, has_timed_out(try_reduce(c, x)));
    CHECK(self, !dscomm_compressor_free(c));
    CHECK(self, !fake_device_met());
    CHECK(self, !dscomm_priv_device_queue(0, &queue));
    CHECK(self, !fake_device_table()->sync(queue));
    fake_device_free(x);
}

/* The memory of a compressor on a device that is stopped is not freed, also not
 * by the last compressor of the group, nor is memory for messages. */
static void freed(rank_t *self)
{
    begun_t b = begin(self);
    int pieces = fake_device_pieces();

    CHECK(self, !dscomm_compressor_free(b.pair.there));
    CHECK(self, !dscomm_compressor_free(b.pair.here));
    CHECK(self, fake_device_pieces() == pieces);
    b.pair.there = b.pair.here = NULL;
    end(self, &b);
}

/* The same while the errors are being copied to host memory. */
static void freed_half(rank_t *self)
{
    begun_t b = begin(self);

    fake_device_hold(0);
    fake_device_wait(b.stream);
    fake_device_stop(0, 0, FAKE_NEVER);
    CHECK(self, errors_time_out(&b));
    CHECK(self, !dscomm_compressor_free(b.pair.there));
    CHECK(self, !fake_device_met());
    b.pair.there = NULL;
    end(self, &b);
}

/* A full device is tried again after more and more calls, and used when it has
 * room. */
static void full_device(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
    float *x = fake_device_alloc(COUNT * sizeof *x);

    fake_device_counted(FAKE_REFUSED);
    fake_device_full(1);
    for (int call = 1; call <= 60; call++)
        reduce(self, c, x);
    /* Tried in the first, the eighteenth and the fifty-first call. */
    CHECK(self, fake_device_counted(FAKE_REFUSED) == 3);
    fake_device_full(0);
    fake_device_counted(FAKE_LAUNCHES);
    for (int call = 61; call <= 115; call++)
        reduce(self, c, x);
    CHECK(self, fake_device_counted(FAKE_LAUNCHES) == 0);
    reduce(self, c, x);
    CHECK(self, fake_device_counted(FAKE_LAUNCHES) == 3);
    close_all(self, &c, 1);
    fake_device_free(x);
}

int main(void)
{
    int kept;

    ranks_use_modules();
    dscomm_priv_device_use(fake_device_table());
    ranks_run(1, 300, errors_from, "errors behind a call");
    ranks_run(1, 300, errors_half, "errors on their way");
    ranks_run(1, 20000, full_device, "a device that is full");
    is_int(fake_device_pieces(), 0, "all memory of the device is free");
    ranks_run(1, 20000, buffer_aborted, "a group that ends meanwhile");
    ranks_run(1, 300, errors_to, "errors that go there");
    ranks_run(1, 300, buffer_behind, "a buffer behind a call");
    ranks_run(1, 300, buffer_half, "a buffer on its way");
    kept = fake_device_pieces();
    ranks_run(1, 300, freed, "a compressor that is freed");
    ok(fake_device_pieces() > kept, "what it had there is kept");
    ranks_run(1, 300, freed_half, "one whose errors are on their way");
    dscomm_priv_device_use(NULL);
    return tap_done();
}
