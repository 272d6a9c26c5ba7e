/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of a device, which the fake one is: results, errors and saved states
 * are those of the same calls in host memory, to the last bit, wherever buffers
 * are from call to call; rows alone travel; what the device cannot do is done
 * on the host; its failures have a sentence. */
#include "config.h"

#include "compression/device/device.h"
#include "tests/compression/compress.h"
#include "tests/compression/fake-device.h"

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
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_compressor_t *c = NULL;
    uint8_t *mask = malloc(k->count + 1);

    attr.codec = k->codec;
    attr.geometry = k->geometry;
    attr.sum = k->op == DSCOMM_SUM;
    attr.feedback = k->feedback ? DSCOMM_FEEDBACK_CODEC : DSCOMM_FEEDBACK_OFF;
    CHECK(self, !dscomm_compressor_create(self->world, k->count, &attr, &c));
    for (size_t i = 0; i < k->count; i++)
        mask[i] = i % 3 != 0;
    if (k->masked)
        CHECK(self, !dscomm_compressor_set_mask(c, mask));
    free(mask);
    return c;
}

/* Any numbers; of 16 bits none that is not finite. */
static void fill(const case_t *k, void *x, int rank, int call)
{
    for (size_t i = 0; i < k->count; i++) {
        float value = noise(i, (uint64_t)(rank * 1000 + call));
        uint16_t word = (uint16_t)(int)(value * 15000);

        if (k->dtype == DSCOMM_FLOAT64)
            ((double *)x)[i] = value;
        else if (k->dtype == DSCOMM_FLOAT32)
            ((float *)x)[i] = value;
        else
            ((uint16_t *)x)[i] = word & 0xbbff;
    }
}

/* The errors of both, and what both save. */
static int is_same(dscomm_compressor_t *a, dscomm_compressor_t *b)
{
    dscomm_compressor_info_t info = {.size = sizeof info};
    char *of_a, *of_b;
    int same;

    dscomm_compressor_info(a, &info);
    of_a = malloc(info.state_bytes);
    of_b = malloc(info.state_bytes);
    same = !dscomm_compressor_save(a, of_a, info.state_bytes) &&
           !dscomm_compressor_save(b, of_b, info.state_bytes) &&
           !memcmp(of_a, of_b, info.state_bytes);
    free(of_a);
    free(of_b);
    return same;
}

static void call_with(rank_t *self, dscomm_compressor_t *c, void *x,
                      dscomm_dtype_t dtype, int with_work)
{
    dscomm_work_t *work = NULL;

    CHECK(self,
          !dscomm_compressor_all_reduce(c, x, dtype, with_work ? &work : NULL));
    if (!work)
        return;
    CHECK(self, !dscomm_work_wait(work, -1));
    dscomm_work_free(work);
}

/* One compressor on the device, its twin in host memory; on the device the
 * buffer begins so many bytes off. */
static void compare(rank_t *self, const case_t *k, int off)
{
    size_t bytes = k->count * dscomm_dtype_size(k->dtype);
    dscomm_compressor_t *cs[] = {open_case(self, k), open_case(self, k)};
    char *memory = fake_device_alloc(bytes + (size_t)off), *x = memory + off;
    void *got = malloc(bytes + 1), *want = malloc(bytes + 1);

    for (int call = 0; call < CALLS; call++) {
        fill(k, want, self->rank, call);
        fake_device_write(x, want, bytes);
        call_with(self, cs[0], x, k->dtype, call == 1);
        call_with(self, cs[1], want, k->dtype, call == 1);
        fake_device_read(got, x, bytes);
        CHECK(self, !memcmp(got, want, bytes));
        if (call % 2)
            CHECK(self, is_same(cs[0], cs[1]));
    }
    close_all(self, cs, 2);
    fake_device_free(memory);
    free(got);
    free(want);
}

static void equal(rank_t *self)
{
    compare(self, current, current_off);
}

/* Every codec with every dtype, with and without errors and a mask, in both
 * geometries where there are two. */
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

/* Now here, now there; overwritten, forgotten, loaded in between. */
static void moving(rank_t *self)
{
    const case_t *k = &cases[1];
    size_t bytes = k->count * sizeof(float);
    dscomm_compressor_t *cs[] = {open_case(self, k), open_case(self, k)};
    dscomm_compressor_info_t info = {.size = sizeof info};
    float *x = fake_device_alloc(bytes), *got = malloc(bytes);
    float *want = malloc(bytes), *worker, *server;
    char *state;

    CHECK(self, !dscomm_compressor_info(cs[0], &info));
    state = malloc(info.state_bytes);
    for (int call = 0; call < 8; call++) {
        fill(k, want, self->rank, call);
        memcpy(got, want, bytes);
        fake_device_write(x, want, bytes);
        call_with(self, cs[0], call % 3 == 1 ? got : x, k->dtype, 0);
        call_with(self, cs[1], want, k->dtype, 0);
        if (call % 3 != 1)
            fake_device_read(got, x, bytes);
        CHECK(self, !memcmp(got, want, bytes));
        for (int i = 0; i < 2 && call == 2; i++) {
            CHECK(self, !dscomm_compressor_errors(cs[i], &worker, &server));
            worker[7] = 5;
            server[0] = -2;
        }
        if (call == 4)
            CHECK(self,
                  !dscomm_compressor_save(cs[0], state, info.state_bytes));
        for (int i = 0; i < 2 && call == 5; i++)
            CHECK(self, !dscomm_compressor_reset(cs[i]));
        for (int i = 0; i < 2 && call == 6; i++)
            CHECK(self,
                  !dscomm_compressor_load(cs[i], state, info.state_bytes));
    }
    CHECK(self, is_same(cs[0], cs[1]));
    close_all(self, cs, 2);
    fake_device_free(x);
    free(got);
    free(want);
    free(state);
}

static int both_nan(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
            return 0;
    return 1;
}

static const case_t small = {
    4, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_SUM, "onebit", -1, 0};
static const case_t big = {
    4 << 20, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_AVG, "onebit", -1,
    0};
static float large;

/* What is not finite, on one rank, or in the sum alone where there are few
 * elements; then whole again. */
static void not_finite(rank_t *self)
{
    const case_t *k = current;
    size_t bytes = k->count * sizeof(float);
    dscomm_compressor_t *cs[] = {open_case(self, k), open_case(self, k)};
    float *x = fake_device_alloc(bytes), *got = malloc(bytes);
    float *want = malloc(bytes);

    for (int call = 0; call < 6; call++) {
        fill(k, want, self->rank, call);
        if (call == 1 && self->rank == 0)
            want[k->count - 1] = INFINITY;
        for (size_t i = 0; i < k->count && call == 3; i++)
            want[i] = large;
        fake_device_write(x, want, bytes);
        call_with(self, cs[0], x, k->dtype, 0);
        call_with(self, cs[1], want, k->dtype, 0);
        fake_device_read(got, x, bytes);
        CHECK(self, both_nan(got, want, k->count));
        CHECK(self, call != 1 || isnan(got[0]));
        CHECK(self, call != 3 || self->size < 3 || !isfinite(got[0]));
        CHECK(self, is_same(cs[0], cs[1]));
    }
    close_all(self, cs, 2);
    fake_device_free(x);
    free(got);
    free(want);
}

/* Several in one call, some of them in host memory. */
static void fused(rank_t *self)
{
    const case_t *which[] = {&cases[1], &cases[6], &cases[10], &cases[0],
                             &cases[8]};
    enum { MANY = sizeof which / sizeof *which };
    dscomm_compressor_t *cs[MANY], *twins[MANY];
    void *x[MANY], *want[MANY];
    float *got = malloc(5000 * sizeof *got);

    for (int i = 0; i < MANY; i++) {
        cs[i] = open_case(self, which[i]);
        twins[i] = open_case(self, which[i]);
        want[i] = malloc(5000 * sizeof(float));
        x[i] = i == 2 ? malloc(5000 * sizeof(float))
                      : fake_device_alloc(5000 * sizeof(float));
    }
    for (int call = 0; call < 2; call++) {
        for (int i = 0; i < MANY; i++) {
            fill(which[i], want[i], self->rank, call * MANY + i);
            fake_device_write(x[i], want[i], which[i]->count * sizeof(float));
        }
        CHECK(self, !dscomm_compressor_all_reduce_many(cs, x, MANY,
                                                       DSCOMM_FLOAT32, NULL));
        CHECK(self, !dscomm_compressor_all_reduce_many(twins, want, MANY,
                                                       DSCOMM_FLOAT32, NULL));
        for (int i = 0; i < MANY; i++) {
            fake_device_read(got, x[i], which[i]->count * sizeof(float));
            CHECK(self, !memcmp(got, want[i], which[i]->count * sizeof(float)));
        }
    }
    close_all(self, cs, MANY);
    close_all(self, twins, MANY);
    for (int i = 0; i < MANY; i++) {
        if (i == 2)
            free(x[i]);
        else
            fake_device_free(x[i]);
        free(want[i]);
    }
    free(got);
}

/* Of 4 bytes an element, a bit travels, less than three times. */
static void rows_only(rank_t *self)
{
    const case_t *k = &cases[1];
    dscomm_compressor_t *c = open_case(self, k);
    float *x = fake_device_alloc(k->count * sizeof *x);
    float zeros[5000] = {0};
    size_t n = (size_t)self->size, row;

    fake_device_write(x, zeros, sizeof zeros);
    call_with(self, c, x, k->dtype, 0);
    fake_device_copied();
    call_with(self, c, x, k->dtype, 0);
    row = 16 + (k->count / n + 1023) / 1024 * 128;
    CHECK(self, fake_device_copied() == (3 * n - 1) * row);
    CHECK(self, !dscomm_compressor_free(c));
    fake_device_free(x);
}

/* To forget or to replace errors, the device need not give them back, nor work
 * at all; it goes on with the new ones. */
static void discarded(rank_t *self)
{
    const case_t *k = &cases[1];
    const size_t bytes = k->count * sizeof(float);
    dscomm_compressor_t *cs[] = {open_case(self, k), open_case(self, k)};
    dscomm_compressor_info_t info = {.size = sizeof info};
    float *x = fake_device_alloc(bytes), *got = malloc(bytes);
    float *want = malloc(bytes);
    char *state;

    CHECK(self, !dscomm_compressor_info(cs[0], &info));
    state = malloc(info.state_bytes);
    for (int call = 0; call < 6; call++) {
        const size_t rows = 3 - 1, row = 16 + (5000 + 1023) / 1024 * 128;

        fill(k, want, self->rank, call);
        fake_device_write(x, want, bytes);
        call_with(self, cs[0], x, k->dtype, 0);
        call_with(self, cs[1], want, k->dtype, 0);
        fake_device_read(got, x, bytes);
        CHECK(self, !memcmp(got, want, bytes));
        /* After a reset by a device that works there was none to copy. */
        CHECK(self, call != 3 || fake_device_copied() == rows * row);
        if (!call)
            CHECK(self,
                  !dscomm_compressor_save(cs[0], state, info.state_bytes));
        fake_device_copied();
        fake_device_fail(call >= 3 ? 0 : -1);
        for (int i = 0; i < 2 && call % 2; i++)
            CHECK(self,
                  !dscomm_compressor_load(cs[i], state, info.state_bytes));
        for (int i = 0; i < 2 && call && call % 2 == 0; i++)
            CHECK(self, !dscomm_compressor_reset(cs[i]));
        fake_device_fail(-1);
        CHECK(self, !fake_device_copied());
    }
    CHECK(self, is_same(cs[0], cs[1]));
    close_all(self, cs, 2);
    fake_device_free(x);
    free(got);
    free(want);
    free(state);
}

/* Many in one call: three launches, or a few more where they are more than go
 * together, and what calls for each of them give. */
static void together(rank_t *self)
{
    enum { MANY = 40, MOST_EACH = 1500 };
    dscomm_compressor_t *cs[MANY], *twins[MANY];
    void *x[MANY], *want[MANY];
    float got[MOST_EACH];

    for (int i = 0; i < MANY; i++) {
        case_t k = cases[1];

        k.count = (size_t)(i * 37 % MOST_EACH);
        cs[i] = open_case(self, &k);
        twins[i] = open_case(self, &k);
        want[i] = malloc(MOST_EACH * sizeof(float));
        x[i] = fake_device_alloc(MOST_EACH * sizeof(float));
    }
    for (int call = 0; call < 2; call++) {
        for (size_t i = 0; i < MANY; i++) {
            case_t k = cases[1];

            k.count = i * 37 % MOST_EACH;
            fill(&k, want[i], self->rank, call * MANY + (int)i);
            fake_device_write(x[i], want[i], k.count * sizeof(float));
        }
        fake_device_launches();
        CHECK(self, !dscomm_compressor_all_reduce_many(cs, x, MANY,
                                                       DSCOMM_FLOAT32, NULL));
        CHECK(self, self->size > 1 || fake_device_real ||
                        fake_device_launches() == 3 * 3);
        CHECK(self, !dscomm_compressor_all_reduce_many(twins, want, MANY,
                                                       DSCOMM_FLOAT32, NULL));
        for (size_t i = 0; i < MANY; i++) {
            size_t bytes = i * 37 % MOST_EACH * sizeof(float);

            fake_device_read(got, x[i], bytes);
            CHECK(self, !memcmp(got, want[i], bytes));
        }
    }
    close_all(self, cs, MANY);
    close_all(self, twins, MANY);
    for (int i = 0; i < MANY; i++) {
        fake_device_free(x[i]);
        free(want[i]);
    }
}

/* All is put on a stream, call upon call, and the host looks at the end alone;
 * what the device cannot do comes between. */
static void on_stream(rank_t *self)
{
    static const case_t by_host = {
        5000, DSCOMM_GEOMETRY_NATIVE, DSCOMM_FLOAT32, DSCOMM_AVG, "int8", -1,
        0};
    const case_t *ks[] = {&cases[1], &by_host};
    const size_t bytes = 5000 * sizeof(float);
    void *stream = fake_device_stream_new(), *x = fake_device_alloc(bytes);
    char *got = malloc(2 * CALLS * bytes), *want = malloc(bytes);
    char *sent = malloc(2 * CALLS * bytes);

    for (int i = 0; i < 2; i++) {
        dscomm_compressor_t *c = open_case(self, ks[i]);
        dscomm_compressor_t *twin = open_case(self, ks[i]);

        CHECK(self, !dscomm_compressor_set_stream(c, stream));
        for (int call = 0; call < CALLS; call++) {
            char *from = sent + (size_t)call * bytes;

            fill(ks[i], from, self->rank, call);
            fake_device_write_on(stream, x, from, bytes);
            call_with(self, c, x, DSCOMM_FLOAT32, call == 1);
            fake_device_read_on(stream, got + (size_t)call * bytes, x, bytes);
        }
        fake_device_wait(stream);
        for (int call = 0; call < CALLS; call++) {
            fill(ks[i], want, self->rank, call);
            call_with(self, twin, want, DSCOMM_FLOAT32, 0);
            CHECK(self, !memcmp(got + (size_t)call * bytes, want, bytes));
        }
        CHECK(self, is_same(c, twin));
        CHECK(self, !dscomm_compressor_set_stream(c, NULL));
        CHECK(self, !dscomm_compressor_free(c));
        CHECK(self, !dscomm_compressor_free(twin));
    }
    CHECK(self,
          dscomm_compressor_set_stream(NULL, stream) == DSCOMM_ERR_INVALID);
    fake_device_stream_free(stream);
    fake_device_free(x);
    free(got);
    free(want);
    free(sent);
}

/* The call returns though its result cannot be there yet. */
static void no_wait(rank_t *self)
{
    const case_t *k = &cases[1];
    const size_t bytes = k->count * sizeof(float);
    dscomm_compressor_t *c = open_case(self, k), *twin = open_case(self, k);
    void *stream = fake_device_stream_new(), *x = fake_device_alloc(bytes);
    char *got = malloc(bytes), *want = malloc(bytes);

    CHECK(self, !dscomm_compressor_set_stream(c, stream));
    for (int call = 0; call < 3; call++) {
        fill(k, want, self->rank, call);
        fake_device_write_on(stream, x, want, bytes);
        fake_device_hold(call < 2);
        call_with(self, c, x, k->dtype, 0);
        fake_device_read_on(stream, got, x, bytes);
        fake_device_hold(0);
        call_with(self, twin, want, k->dtype, 0);
        fake_device_wait(stream);
        CHECK(self, !memcmp(got, want, bytes));
    }
    close_all(self, &c, 1);
    close_all(self, &twin, 1);
    fake_device_stream_free(stream);
    fake_device_free(x);
    free(got);
    free(want);
}

/* No room on the device, and there is later: results and errors are the
 * same. */
static void without_room(rank_t *self)
{
    const case_t *k = &cases[1];
    const size_t bytes = k->count * sizeof(float);
    dscomm_compressor_t *cs[] = {open_case(self, k), open_case(self, k)};
    float *x = fake_device_alloc(bytes), *got = malloc(bytes);
    float *want = malloc(bytes);

    for (int call = 0; call < 4; call++) {
        fake_device_full(call < 2);
        fill(k, want, self->rank, call);
        fake_device_write(x, want, bytes);
        call_with(self, cs[0], x, k->dtype, call == 1);
        call_with(self, cs[1], want, k->dtype, 0);
        fake_device_read(got, x, bytes);
        CHECK(self, !memcmp(got, want, bytes));
        CHECK(self, is_same(cs[0], cs[1]));
    }
    close_all(self, cs, 2);
    fake_device_free(x);
    free(got);
    free(want);
}

/* The call of the runtime that fails; 1: there are fewer; calls that succeeded
 * without what failed. */
static int at, beyond, forgiven;

static void failing(rank_t *self)
{
    const case_t *k = &cases[1];
    dscomm_compressor_t *c = open_case(self, k);
    float *x = fake_device_alloc(k->count * sizeof *x);
    dscomm_status_t status;

    fake_device_fail(at);
    status = dscomm_compressor_all_reduce(c, x, k->dtype, NULL);
    beyond = fake_device_fail(-1) >= 0;
    forgiven += !beyond && status == DSCOMM_OK;
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
    for (at = 0; !beyond && at < 100; at++)
        ranks_run(1, 20000, failing, "a failure of the device");
    ok(at > 15 && at < 100, "%d calls of the runtime, each of which failed",
       at);
    is_int(forgiven, 5,
           "but for five that give memory, which the call can do without");
}

/* Aligned, and off by an element, so that not all of it can be loaded many at
 * once. */
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
