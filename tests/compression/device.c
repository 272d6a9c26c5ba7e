/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers on a device, which is the fake one. Results, errors and saved states
 * are those of the same calls in host memory, to the last bit, wherever buffers
 * are in each call. Only rows are copied. The host computes whatever the device
 * cannot. Failures of the device have sentences. */
#include "config.h"

#include "compression/device/device.h"
#include "tests/compression/pairs.h"

#define CALLS 4
#define MOST 70000

typedef struct {
    size_t count;
    dscomm_geometry_t geometry;
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    const char *codec;
    int feedback, masked;
} case_t;

static const case_t cases[] = {
    {1, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_AVG, "onebit", -1, 0},
    {5000, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_SUM, "onebit", -1, 0},
    {MOST, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT16, DSCOMM_AVG, "onebit", -1, 0},
    {MOST, DSCOMM_GEOMETRY_NATIVE, DSCOMM_BFLOAT16, DSCOMM_AVG, "onebit", 1, 0},
    {77, DSCOMM_GEOMETRY_DEEPSPEED, DSCOMM_FLOAT32, DSCOMM_AVG, "onebit", -1,
     0},
    {9999, DSCOMM_GEOMETRY_DEEPSPEED, DSCOMM_FLOAT16, DSCOMM_SUM, "onebit", -1,
     0},
    {0, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_AVG, "onebit", -1, 0},
    /* By the host. */
    {5000, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT64, DSCOMM_AVG, "onebit", -1, 0},
    {5000, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_AVG, "onebit", 0, 0},
    {5000, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_AVG, "onebit", -1, 1},
    {5000, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_AVG, "int8", -1, 0},
    {5000, DSCOMM_GEOMETRY_NATIVE, DSCOMM_BFLOAT16, DSCOMM_AVG, "topk", -1, 0},
};
static const case_t *current;
static int current_off;

static dscomm_compressor_t *open_case(rank_t *self, const case_t *k)
{
    dscomm_compressor_t *c = OPEN(
        self, self->world, k->count, .codec = k->codec, .geometry = k->geometry,
        .sum = k->op == DSCOMM_SUM,
        .feedback = k->feedback ? DSCOMM_FEEDBACK_CODEC : DSCOMM_FEEDBACK_OFF);
    uint8_t *mask = malloc(k->count + 1);

    for (size_t i = 0; i < k->count; i++)
        mask[i] = i % 3 != 0;
    if (k->masked)
        CHECK(self, !dscomm_compressor_set_mask(c, mask));
    free(mask);
    return c;
}

/* On the device the buffer begins so many bytes off, or it is in host memory.
 */
static pair_t pair_of(rank_t *self, const case_t *k, int off)
{
    dscomm_compressor_t *there = open_case(self, k);

    return pair_make(there, open_case(self, k), k->count, k->dtype, off);
}

static void compare(rank_t *self, const case_t *k, int off)
{
    pair_t pair = pair_of(self, k, off);

    for (int call = 0; call < CALLS; call++) {
        pair_call(self, &pair, call == 1);
        if (call % 2)
            CHECK(self, is_same(self, &pair));
    }
    pair_free(self, &pair);
}

static void equal(rank_t *self)
{
    compare(self, current, current_off);
}

/* Every codec with every dtype, with and without errors and a mask, in both
 * geometries if it supports both. */
static void matrix(rank_t *self)
{
    static const char *const codecs[] = {"none",   "float16", "bfloat16",
                                         "onebit", "int8",    "topk"};
    static const dscomm_dtype_t dtypes[] = {DSCOMM_FLOAT32, DSCOMM_FLOAT16,
                                            DSCOMM_BFLOAT16, DSCOMM_FLOAT64};

    for (int i = 0; i < 6 * 4 * 2 * 2 * 2; i++) {
        case_t k = {1300,           (dscomm_geometry_t)(i / 96),
                    DSCOMM_FLOAT32, DSCOMM_AVG,
                    codecs[i % 6],  i / 24 % 2,
                    i / 48 % 2};

        k.dtype = dtypes[i / 6 % 4];
        if (k.geometry && strcmp(k.codec, "onebit"))
            continue;
        compare(self, &k, self->rank % 2);
    }
}

/* The buffer is alternately on the device and on the host; errors are
 * overwritten, reset or loaded in between. */
static void moving(rank_t *self)
{
    pair_t pair = pair_of(self, &cases[1], 0);
    dscomm_compressor_t *const cs[] = {pair.there, pair.here};
    const size_t state_bytes = info_of(self, pair.there).state_bytes;
    float *worker, *server;
    char *state = NULL;

    for (int call = 0; call < 8; call++) {
        const int is_here = call % 3 == 1;

        pair_fill(self, &pair);
        memcpy(pair.got, pair.want, pair.bytes);
        reduce(self, pair.there, is_here ? pair.got : pair.x);
        if (is_here)
            fake_device_write(pair.x, pair.got, pair.bytes);
        pair_compare(self, &pair);
        if (call == 4)
            state = save(self, pair.there);
        for (int i = 0; i < 2; i++) {
            if (call == 2) {
                CHECK(self, !dscomm_compressor_errors(cs[i], &worker, &server));
                worker[7] = 5;
                server[0] = -2;
            }
            if (call == 5)
                CHECK(self, !dscomm_compressor_reset(cs[i]));
            if (call == 6)
                CHECK(self, !dscomm_compressor_load(cs[i], state, state_bytes));
        }
    }
    CHECK(self, is_same(self, &pair));
    pair_free(self, &pair);
    free(state);
}

static const case_t small = {
    4, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_SUM, "onebit", -1, 0};
static const case_t big = {
    4 << 20, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_AVG, "onebit", -1,
    0};
static float large;

/* Values that are not finite on one rank, or only in the sum, with few
 * elements; later calls are right again. */
static void not_finite(rank_t *self)
{
    pair_t pair = pair_of(self, current, 0);

    pair_not_finite(self, &pair, large);
    pair_free(self, &pair);
}

/* Several buffers in one call, some of them in host memory. */
static void fused(rank_t *self)
{
    static const int which[] = {1, 6, 10, 0, 8};
    enum { MANY = sizeof which / sizeof *which };
    pair_t pairs[MANY];

    for (int i = 0; i < MANY; i++) {
        pairs[i] = pair_of(self, &cases[which[i]], i == 2 ? ON_HOST : 0);
        pairs[i].call = 10 * i;
    }
    for (int call = 0; call < 2; call++)
        pairs_call(self, pairs, MANY);
    for (int i = 0; i < MANY; i++)
        pair_free(self, &pairs[i]);
}

/* One bit is copied for each element of 4 bytes, less than three times. */
static void rows_only(rank_t *self)
{
    pair_t pair = pair_of(self, &cases[1], 0);
    size_t n = (size_t)self->size, row;

    pair_call(self, &pair, 0);
    pair_fill(self, &pair);
    fake_device_counted(FAKE_COPIED);
    reduce(self, pair.there, pair.x);
    row = 16 + (pair.count / n + 1023) / 1024 * 128;
    CHECK(self, fake_device_counted(FAKE_COPIED) == (3 * n - 1) * row);
    pair_compare(self, &pair);
    pair_free(self, &pair);
}

/* To reset or to replace errors, nothing need be copied from the device, nor
 * need it work at all; it goes on with the new errors. */
static void discarded(rank_t *self)
{
    pair_t pair = pair_of(self, &cases[1], 0);
    dscomm_compressor_t *const cs[] = {pair.there, pair.here};
    const size_t state_bytes = info_of(self, pair.there).state_bytes;
    const size_t rows = 3 - 1, row = 16 + (5000 + 1023) / 1024 * 128;
    char *state = NULL;

    for (int call = 0; call < 6; call++) {
        pair_call(self, &pair, 0);
        /* A reset with a working device copies no errors. */
        CHECK(self,
              call != 3 || fake_device_counted(FAKE_COPIED) == rows * row);
        if (!call)
            state = save(self, pair.there);
        fake_device_counted(FAKE_COPIED);
        fake_device_fail(call >= 3 ? 0 : -1);
        for (int i = 0; i < 2 && call; i++)
            CHECK(self, call % 2
                            ? !dscomm_compressor_load(cs[i], state, state_bytes)
                            : !dscomm_compressor_reset(cs[i]));
        fake_device_fail(-1);
        CHECK(self, !fake_device_counted(FAKE_COPIED));
    }
    CHECK(self, is_same(self, &pair));
    pair_free(self, &pair);
    free(state);
}

/* Many buffers in one call: three kernels, or a few more if there are more than
 * one kernel takes; results are those of separate calls. */
static void together(rank_t *self)
{
    pair_t pairs[PAIRS_MAX];

    for (int i = 0; i < PAIRS_MAX; i++) {
        case_t k = cases[1];

        k.count = (size_t)(i * 37 % 1500);
        pairs[i] = pair_of(self, &k, 0);
        pairs[i].call = 10 * i;
    }
    for (int call = 0; call < 2; call++) {
        fake_device_counted(FAKE_LAUNCHES);
        pairs_call(self, pairs, PAIRS_MAX);
        CHECK(self, self->size > 1 || fake_device_real ||
                        fake_device_counted(FAKE_LAUNCHES) == 3 * 3);
    }
    for (int i = 0; i < PAIRS_MAX; i++)
        pair_free(self, &pairs[i]);
}

/* All calls are enqueued on a stream, and the host waits only at the end. Calls
 * that the device cannot make come in between. */
static void on_stream(rank_t *self)
{
    static const int which[] = {1, 10};
    void *stream = fake_device_stream_new();

    for (int i = 0; i < 2; i++) {
        pair_t pair = pair_of(self, &cases[which[i]], 0);
        char *all = malloc(2 * CALLS * pair.bytes);

        CHECK(self, !dscomm_compressor_set_stream(pair.there, stream));
        for (size_t call = 0; call < CALLS; call++) {
            char *sent = all + call * pair.bytes;

            pair_draw(self, &pair);
            memcpy(sent, pair.want, pair.bytes);
            fake_device_write_on(stream, pair.x, sent, pair.bytes);
            reduce_as(self, pair.there, pair.x, DSCOMM_FLOAT32, call == 1);
            fake_device_read_on(stream, sent + CALLS * pair.bytes, pair.x,
                                pair.bytes);
        }
        fake_device_wait(stream);
        pair.call = 0;
        for (size_t call = 0; call < CALLS; call++) {
            pair_draw(self, &pair);
            reduce(self, pair.here, pair.want);
            CHECK(self, !memcmp(all + (CALLS + call) * pair.bytes, pair.want,
                                pair.bytes));
        }
        CHECK(self, is_same(self, &pair));
        CHECK(self, !dscomm_compressor_set_stream(pair.there, NULL));
        pair_free(self, &pair);
        free(all);
    }
    CHECK(self,
          dscomm_compressor_set_stream(NULL, stream) == DSCOMM_ERR_INVALID);
    fake_device_stream_free(stream);
}

/* The call returns before its result can be there. */
static void no_wait(rank_t *self)
{
    pair_t pair = pair_of(self, &cases[1], 0);
    void *stream = fake_device_stream_new();

    CHECK(self, !dscomm_compressor_set_stream(pair.there, stream));
    for (int call = 0; call < 3; call++) {
        pair_draw(self, &pair);
        fake_device_write_on(stream, pair.x, pair.want, pair.bytes);
        fake_device_hold(call < 2);
        reduce(self, pair.there, pair.x);
        fake_device_read_on(stream, pair.got, pair.x, pair.bytes);
        fake_device_hold(0);
        reduce(self, pair.here, pair.want);
        fake_device_wait(stream);
        CHECK(self, !memcmp(pair.got, pair.want, pair.bytes));
    }
    pair_free(self, &pair);
    fake_device_stream_free(stream);
}

/* The device has no room, and later has: results and errors are the same. */
static void without_room(rank_t *self)
{
    pair_t pair = pair_of(self, &cases[1], 0);

    for (int call = 0; call < 4; call++) {
        fake_device_full(call < 2);
        pair_call(self, &pair, call == 1);
        CHECK(self, is_same(self, &pair));
    }
    pair_free(self, &pair);
}

/* Calls that succeeded without what failed. */
static int tolerated;

static void failing(rank_t *self)
{
    const case_t *k = &cases[1];
    dscomm_compressor_t *c = open_case(self, k);
    float *x = fake_device_alloc(k->count * sizeof *x);
    dscomm_status_t status;

    fake_device_fail(fail_at);
    status = dscomm_compressor_all_reduce(c, x, k->dtype, NULL);
    fail_beyond = fake_device_fail(-1) >= 0;
    tolerated += !fail_beyond && status == DSCOMM_OK;
    CHECK(self, status == DSCOMM_OK || status == DSCOMM_ERR_IO);
    CHECK(self, status == DSCOMM_OK || strstr(dscomm_last_error(),
                                              "dscomm_compressor_all_reduce"));
    CHECK(self, status != DSCOMM_ERR_IO ||
                    strstr(dscomm_last_error(), "cuda says FAKE_ERROR"));
    CHECK(self, !dscomm_compressor_free(c));
    fake_device_free(x);
}

static void count_and_fail(void)
{
    ranks_run(1, 20000, rows_only, "rows alone travel");
    ranks_run(1, 20000, discarded, "errors that are not needed");
    ranks_run(1, 20000, no_wait, "a call that does not wait");
    fail_everywhere(1, failing, 15, 100);
    is_int(tolerated, 5,
           "but for five that give memory, which the call can do without");
}

/* Runs a case aligned, and misaligned by one element, so that vector loads
 * cannot be used throughout. */
static void each_case(const case_t *k, int size)
{
    const int step = (int)dscomm_dtype_size(k->dtype);
    char what[80];

    current = k;
    for (current_off = 0; current_off <= step; current_off += step) {
        snprintf(what, sizeof what, "%zu elements, %s, %s, %s%s, %d off",
                 k->count, k->codec, k->geometry ? "deepspeed" : "native",
                 dscomm_dtype_name(k->dtype), k->masked ? ", masked" : "",
                 current_off);
        ranks_run(size, 20000, equal, what);
    }
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 8};

    ranks_use_modules();
    ok(dscomm_codec_device_problem() == NULL || *dscomm_codec_device_problem(),
       "without kernels for devices there is a reason");
    dscomm_priv_device_use(fake_device_table());
    ok(!dscomm_codec_device_problem(), "with kernels there is none");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            each_case(&cases[i], sizes[s]);
    current_off = 0;
    for (size_t s = 0; s < 3; s++) {
        ranks_run(sizes[s], 60000, matrix, "all codecs and dtypes");
        ranks_run(sizes[s], 20000, moving, "now here, now there");
        current = &cases[1];
        large = 3e38f;
        ranks_run(sizes[s], 20000, not_finite, "not finite");
        current = &small;
        large = 1.5e38f;
        ranks_run(sizes[s], 20000, not_finite, "a sum that is not finite");
        ranks_run(sizes[s], 20000, fused, "several in one call");
        ranks_run(sizes[s], 20000, together, "many in one call");
        ranks_run(sizes[s], 20000, on_stream, "on a stream");
        ranks_run(sizes[s], 20000, without_room, "without room");
    }
    for (size_t s = 0; s < 3 && fake_device_real; s++) {
        current = &big;
        ranks_run(sizes[s], 60000, equal, "4 Mi elements");
    }
    if (!fake_device_real)
        count_and_fail();
    is_int(fake_device_pieces(), 0, "all memory of the device is free");
    dscomm_priv_device_use(NULL);
    return tap_done();
}
