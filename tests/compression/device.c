/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of a device, which the fake one is: results, errors and saved states
 * are those of the same calls in host memory, to the last bit, wherever buffers
 * are from call to call; rows alone travel; what the device cannot do is done
 * on the host; its failures have a sentence. */
#include "config.h"

#include "compression/device.h"
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

static dscomm_compressor_t *open_case(rank_t *self, const case_t *k)
{
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_compressor_t *c = NULL;
    uint8_t *mask = malloc(k->count + 1);

    attr.codec = k->codec;
    attr.geometry = k->geometry;
    attr.op = k->op;
    attr.feedback = k->feedback;
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
        uint16_t word = (uint16_t)(value * 15000);

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

/* One compressor on the device, its twin in host memory. */
static void equal(rank_t *self)
{
    const case_t *k = current;
    size_t bytes = k->count * dscomm_dtype_size(k->dtype);
    dscomm_compressor_t *cs[] = {open_case(self, k), open_case(self, k)};
    void *x = fake_device_alloc(bytes), *got = malloc(bytes + 1);
    void *want = malloc(bytes + 1);

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
    fake_device_free(x);
    free(got);
    free(want);
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
static void spoilt(rank_t *self)
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

/* Of 4 bytes an element, a bit travels, three times and some. */
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
    CHECK(self, fake_device_copied() == (3 * n + 2) * row);
    CHECK(self, !dscomm_compressor_free(c));
    fake_device_free(x);
}

static int at; /* the call of the table that fails */

static void failing(rank_t *self)
{
    const case_t *k = &cases[1];
    dscomm_compressor_t *c = open_case(self, k);
    float *x = fake_device_alloc(k->count * sizeof *x);
    dscomm_status_t status;

    fake_device_fail(at);
    status = dscomm_compressor_all_reduce(c, x, k->dtype, NULL);
    fake_device_fail(-1);
    CHECK(self, status == DSCOMM_ERR_IO || status == DSCOMM_ERR_NO_MEMORY);
    CHECK(self, strstr(dscomm_last_error(), "dscomm_compressor_all_reduce"));
    CHECK(self, status != DSCOMM_ERR_IO ||
                    strstr(dscomm_last_error(), "the fake says FAKE_ERROR"));
    CHECK(self, !dscomm_compressor_free(c));
    fake_device_free(x);
}

static void count_and_fail(void)
{
    ranks_run(1, 20000, rows_only, "rows alone travel");
    for (at = 0; at < 17; at++)
        ranks_run(1, 20000, failing, "a failure of the device");
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 5};

    ranks_use_modules();
    dscomm_priv_device_use(fake_device_table());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t s = 0; s < 4; s++) {
            char what[80];

            current = &cases[i];
            snprintf(what, sizeof what, "%zu elements, %s, %s, %s%s",
                     current->count, current->codec,
                     current->geometry ? "deepspeed" : "native",
                     dscomm_dtype_name(current->dtype),
                     current->masked ? ", masked" : "");
            ranks_run(sizes[s], 20000, equal, what);
        }
    for (size_t s = 0; s < 3; s++) {
        ranks_run(sizes[s], 20000, moving, "now here, now there");
        current = &cases[1];
        large = 3e38f;
        ranks_run(sizes[s], 20000, spoilt, "not finite");
        current = &small;
        large = 1.5e38f;
        ranks_run(sizes[s], 20000, spoilt, "a sum that is not finite");
        ranks_run(sizes[s], 20000, fused, "several in one call");
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
