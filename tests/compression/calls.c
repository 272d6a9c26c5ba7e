/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on compressors: with works, several at a time, with masks, on small and
 * empty buffers; refused and aborted calls. */
#include "config.h"

#include "tests/compression/compress.h"

#define COUNT 3000
#define MANY 5

/* Works give the same bits as blocking calls, in whatever order they are waited
 * for. */
static void works(rank_t *self)
{
    dscomm_compressor_t *cs[MANY], *twins[MANY];
    dscomm_work_t *w[MANY];
    float x[MANY][COUNT], y[COUNT];
    int wrong = 0;

    for (int i = 0; i < MANY; i++) {
        cs[i] = open_with(self, COUNT, i % 2 ? "int8" : "onebit");
        twins[i] = open_with(self, COUNT, i % 2 ? "int8" : "onebit");
    }
    for (int call = 0; call < 4; call++) {
        for (int i = 0; i < MANY; i++) {
            fill_noise(x[i], COUNT, self->rank, call * MANY + i);
            CHECK(self, !dscomm_compressor_all_reduce(cs[i], x[i],
                                                      DSCOMM_FLOAT32, &w[i]));
        }
        for (int i = 0; i < MANY; i++) {
            int k = (i * 2 + self->rank) % MANY;

            finish(self, w[k]);
        }
        for (int i = 0; i < MANY; i++) {
            fill_noise(y, COUNT, self->rank, call * MANY + i);
            reduce(self, twins[i], y);
            wrong += memcmp(x[i], y, sizeof y) != 0;
        }
    }
    CHECK(self, !wrong);
    close_all(self, cs, MANY);
    close_all(self, twins, MANY);
}

/* Several buffers in one call give the same as separate calls. */
static void fused(rank_t *self)
{
    static const size_t counts[MANY] = {COUNT, 1, 0, 200, 1025};
    dscomm_compressor_t *cs[MANY], *twins[MANY];
    float x[MANY][COUNT], y[COUNT];
    void *buffers[MANY];
    dscomm_work_t *work = NULL;
    int wrong = 0;

    for (int i = 0; i < MANY; i++) {
        const char *codec = i == 3 ? "topk" : "onebit";

        cs[i] = open_with(self, counts[i], codec);
        twins[i] = open_with(self, counts[i], codec);
        buffers[i] = x[i];
    }
    for (int call = 0; call < 3; call++) {
        for (int i = 0; i < MANY; i++)
            fill_noise(x[i], counts[i], self->rank, call * MANY + i);
        CHECK(self,
              !dscomm_compressor_all_reduce_many(
                  cs, buffers, MANY, DSCOMM_FLOAT32, call == 1 ? &work : NULL));
        finish(self, work);
        work = NULL;
        for (int i = 0; i < MANY; i++) {
            fill_noise(y, counts[i], self->rank, call * MANY + i);
            reduce(self, twins[i], y);
            wrong += memcmp(x[i], y, counts[i] * sizeof *y) != 0;
        }
    }
    CHECK(self, !wrong);
    close_all(self, cs, MANY);
    close_all(self, twins, MANY);
}

/* Masked elements are zero, have no errors, and do not affect any scale. */
static void masked(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
    const dscomm_compressor_info_t info = info_of(self, c);
    float x[COUNT], *worker, *server;
    uint8_t mask[COUNT];
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        mask[i] = i % 4 == 0;
    CHECK(self, !dscomm_compressor_set_mask(c, mask));
    for (int call = 0; call < 2; call++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = mask[i] ? 1 : 1000;
        reduce(self, c, x);
        CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
        for (int i = 0; i < COUNT; i++)
            wrong +=
                mask[i] ? !(x[i] > 0 && x[i] < 2) : x[i] != 0 || worker[i] != 0;
        for (size_t i = 0; i < info.server; i++)
            wrong +=
                !mask[(size_t)self->rank * info.chunk + i] && server[i] != 0;
    }
    CHECK(self, !wrong);
    /* A quarter of the elements are one: the root of the mean square is a
     * half. */
    CHECK(self, !dscomm_compressor_reset(c));
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    reduce(self, c, x);
    CHECK(self, self->size > 1 || x[0] == 0.25f);
    CHECK(self, !dscomm_compressor_set_mask(c, NULL));
    reduce(self, c, x);
    CHECK(self, x[1] != 0);
    CHECK(self, !dscomm_compressor_free(c));
}

/* Checks that c behaves like a new compressor with the errors of the elements
 * that are not masked. */
static void like_new(rank_t *self, dscomm_compressor_t *c, const uint8_t *mask,
                     const char *codec)
{
    dscomm_compressor_t *twin = open_with(self, COUNT, codec);
    const dscomm_compressor_info_t info = info_of(self, c);
    float *worker, *server, *twins_worker, *twins_server;
    float x[COUNT], y[COUNT];
    int wrong = 0;

    CHECK(self, !dscomm_compressor_set_mask(twin, mask));
    CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
    CHECK(self, !dscomm_compressor_errors(twin, &twins_worker, &twins_server));
    for (size_t i = 0; i < COUNT; i++) {
        wrong += !mask[i] && worker[i] != 0;
        twins_worker[i] = mask[i] ? worker[i] : 0;
    }
    for (size_t i = 0; i < info.server; i++) {
        size_t at = (size_t)self->rank * info.chunk + i;

        wrong += !mask[at] && server[i] != 0;
        twins_server[i] = mask[at] ? server[i] : 0;
    }
    fill_noise(x, COUNT, self->rank, 9);
    memcpy(y, x, sizeof y);
    reduce(self, c, x);
    reduce(self, twin, y);
    CHECK(self, !wrong && !memcmp(x, y, sizeof y));
    CHECK(self, !dscomm_compressor_free(twin));
}

/* Sets a mask on a compressor that has errors, or is given some. */
static void masked_late(rank_t *self)
{
    static const char *const codecs[] = {"onebit", "int8", "topk"};
    uint8_t mask[COUNT];

    for (int i = 0; i < COUNT; i++)
        mask[i] = i % 4 == 0;
    for (int i = 0; i < 3; i++) {
        dscomm_compressor_t *c = open_with(self, COUNT, codecs[i]);
        float x[COUNT];
        char *state;

        for (int k = 0; k < COUNT; k++)
            x[k] = noise((uint64_t)k, 1) * (mask[k] ? 1 : 1000);
        reduce(self, c, x);
        state = save(self, c);
        CHECK(self, !dscomm_compressor_set_mask(c, mask));
        like_new(self, c, mask, codecs[i]);
        CHECK(self,
              !dscomm_compressor_load(c, state, info_of(self, c).state_bytes));
        like_new(self, c, mask, codecs[i]);
        CHECK(self, !dscomm_compressor_free(c));
        free(state);
    }
}

/* Fewer elements than ranks, or none, in both geometries. */
static void small(rank_t *self)
{
    static const size_t counts[] = {0, 1, 2, 9};

    for (int i = 0; i < 8; i++) {
        dscomm_geometry_t geometry = (dscomm_geometry_t)(i / 4);
        dscomm_compressor_t *c =
            OPEN(self, self->world, counts[i % 4], .geometry = geometry);
        float x[9];
        int wrong = 0;

        for (int k = 0; k < 9; k++)
            x[k] = k % 2 ? 3 : -3;
        CHECK(self, !dscomm_compressor_all_reduce(c, counts[i % 4] ? x : NULL,
                                                  DSCOMM_FLOAT32, NULL));
        for (size_t k = 0; k < 9; k++)
            wrong += k < counts[i % 4] && geometry == 0
                         ? x[k] != (k % 2 ? 3 : -3)
                         : (x[k] > 0) != (k % 2);
        CHECK(self, !wrong);
        CHECK(self, !dscomm_compressor_free(c));
    }
}

/* Attributes of which only the size is set give the defaults. */
static void defaults(rank_t *self)
{
    static const char *const codecs[] = {NULL, "int8", "topk", "none"};

    for (int i = 0; i < 4; i++) {
        dscomm_compressor_t *c = open_with(self, COUNT, codecs[i]);
        float x[COUNT], *worker, *server;
        int sent = 0;

        CHECK(self, info_of(self, c).op == DSCOMM_AVG);
        CHECK(self, info_of(self, c).geometry == DSCOMM_GEOMETRY_NATIVE);
        CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
        CHECK(self, !worker == (i == 3));
        fill_noise(x, COUNT, 0, 1);
        reduce(self, c, x);
        for (int k = 0; k < COUNT; k++)
            sent += x[k] != 0;
        /* topk keeps 1 %: 20 of 2048 elements, and 10 of the 952 of the last
         * part. */
        CHECK(self, i != 2 || sent == 30);
        CHECK(self, !dscomm_compressor_free(c));
    }
}

/* Attributes that are refused; their size is valid unless a row sets it. */
static void refused_attributes(rank_t *self)
{
    static const struct {
        dscomm_compressor_attr_t attr;
        size_t count;
        const char *sentence;
    } rows[] = {
        {{.codec = "zip"}, 4, "no codec 'zip'"},
        {{.codec = "int8", .geometry = 1}, 4, "onebit, not int8"},
        {{.geometry = 1, .padded = 24 + 1}, 4, "padded is 25"},
        {{.geometry = 1, .padded = SIZE_MAX / 8 / 48 * 48}, 4, "more than mem"},
        {{.padded = 24 + 1}, 4, "no padding"},
        {{.geometry = 7}, 4, "7 is no geometry"},
        {{.sum = 2}, 4, "sum is 2"},
        {{.sum = 1, .parameter = 1}, 4, "codec onebit has none"},
        {{.codec = "topk", .parameter = NAN}, 4, "the parameter is nan"},
        {{.feedback = 3}, 4, "feedback is 3"},
        {{.size = 3}, 4, "attr.size is 3"},
        {{.sum = 0}, SIZE_MAX / 4, "more than memory"},
    };
    dscomm_compressor_t *c = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dscomm_compressor_attr_t attr = rows[i].attr;

        attr.size = attr.size ? attr.size : sizeof attr;
        CHECK(self,
              dscomm_compressor_create(self->world, rows[i].count, &attr, &c) ==
                  (i ? DSCOMM_ERR_INVALID : DSCOMM_ERR_NOT_FOUND));
        CHECK(self, strstr(dscomm_last_error(), rows[i].sentence) && !c);
    }
    CHECK(self,
          dscomm_compressor_create(NULL, 4, NULL, &c) == DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_onebit_create(self->world, 4, NULL, NULL) ==
                    DSCOMM_ERR_INVALID);
}

/* Attributes of a newer library: members that this library does not know must
 * be zero. */
static void newer_attributes(rank_t *self)
{
    struct {
        dscomm_compressor_attr_t known;
        uint64_t more;
    } newer = {DSCOMM_COMPRESSOR_ATTR_INIT, 1};
    dscomm_compressor_t *c = NULL;

    newer.known.size = sizeof newer;
    CHECK(self, dscomm_compressor_create(self->world, 4, &newer.known, &c) ==
                    DSCOMM_ERR_INVALID);
    CHECK(self, strstr(dscomm_last_error(), "does not know") && !c);
    newer.more = 0;
    CHECK(self, !dscomm_compressor_create(self->world, 4, &newer.known, &c));
    CHECK(self, !dscomm_compressor_free(c));
}

static void attr_init(void)
{
    dscomm_compressor_attr_t attr;

    memset(&attr, 0xff, sizeof attr);
    is_int(dscomm_compressor_attr_init(&attr, sizeof attr), DSCOMM_OK,
           "attr_init");
    ok(attr.size == sizeof attr && !attr.codec && !attr.geometry && !attr.sum &&
           !attr.feedback && !attr.padded && attr.parameter == 0 &&
           !attr.recoverable,
       "all but the size is zero");
    is_int(dscomm_compressor_attr_init(NULL, sizeof attr), DSCOMM_ERR_INVALID,
           "attr_init of nothing");
    is_int(dscomm_compressor_attr_init(&attr, 3), DSCOMM_ERR_INVALID,
           "attr_init of a size that is none");
}

static void refused(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, 4, NULL), *twice[2] = {c, c};
    float x[4] = {0};
    void *buffers[2] = {x, x};

    refused_attributes(self);
    newer_attributes(self);
#define REFUSED(call, ...)                                                     \
    CHECK(self, dscomm_compressor_##call(__VA_ARGS__) == DSCOMM_ERR_INVALID)
    REFUSED(all_reduce, NULL, x, DSCOMM_FLOAT32, NULL);
    REFUSED(all_reduce, c, NULL, DSCOMM_FLOAT32, NULL);
    REFUSED(all_reduce, c, x, DSCOMM_INT32, NULL);
    CHECK(self, strstr(dscomm_last_error(), "int32"));
    REFUSED(all_reduce_many, twice, buffers, 2, DSCOMM_FLOAT32, NULL);
    CHECK(self, strstr(dscomm_last_error(), "compressor 1 is compressor 0"));
    REFUSED(all_reduce_many, twice, buffers, 0, DSCOMM_FLOAT32, NULL);
    REFUSED(all_reduce_many, NULL, buffers, 1, DSCOMM_FLOAT32, NULL);
    reduce(self, c, x);
    CHECK(self, !dscomm_compressor_free(c) && !dscomm_compressor_free(NULL));
}

/* Calls that are refused while a call is outstanding. */
static void busy(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, 4, NULL);
    dscomm_work_t *work = NULL;
    float x[4] = {1, 1, 1, 1}, *worker, *server;

    if (self->rank == 0) {
        CHECK(self, !dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, &work));
        CHECK(self, dscomm_work_wait(work, 1) == DSCOMM_IN_PROGRESS);
        CHECK(self, try_reduce(c, x) == DSCOMM_ERR_STATE);
        CHECK(self, dscomm_compressor_reset(c) == DSCOMM_ERR_STATE);
        CHECK(self, dscomm_compressor_errors(c, &worker, &server) ==
                        DSCOMM_ERR_STATE);
        CHECK(self, dscomm_compressor_free(c) == DSCOMM_ERR_STATE);
        CHECK(self, strstr(dscomm_last_error(), "not complete"));
        meet(self);
        finish(self, work);
    } else {
        meet(self);
        reduce(self, c, x);
    }
    CHECK(self, x[0] == 1);
    CHECK(self, !dscomm_compressor_free(c));
}

/* The group ends during a call. */
static void aborted(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 0);
    dscomm_compressor_t *c = open_on(self, group, 100);
    dscomm_work_t *work = NULL;
    float x[100] = {0};

    if (self->rank)
        CHECK(self, !dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, &work));
    meet(self);
    if (!self->rank)
        CHECK(self, !dscomm_group_abort(group, "enough"));
    if (work)
        CHECK(self, dscomm_work_wait(work, -1) == DSCOMM_ERR_ABORTED);
    dscomm_work_free(work);
    while (dscomm_group_status(group) == DSCOMM_OK)
        usleep(1000);
    CHECK(self, try_reduce(c, x) == DSCOMM_ERR_ABORTED);
    close_on(self, group, &c, 1);
}

/* The group ends during a blocking call, alone or beside a work. */
static void abort_blocking(rank_t *self, int beside)
{
    dscomm_group_t *group = all_of(self, 0);
    dscomm_compressor_t *cs[] = {open_on(self, group, 100),
                                 open_on(self, group, 100)};
    dscomm_work_t *work = NULL;
    float x[100] = {0}, y[100] = {0};

    meet(self);
    if (self->rank) {
        if (beside)
            CHECK(self, !dscomm_compressor_all_reduce(cs[0], x, DSCOMM_FLOAT32,
                                                      &work));
        CHECK(self, try_reduce(cs[1], y) == DSCOMM_ERR_ABORTED);
        CHECK(self, strstr(dscomm_last_error(), "enough"));
        if (work)
            CHECK(self, dscomm_work_wait(work, -1) == DSCOMM_ERR_ABORTED);
        dscomm_work_free(work);
    } else {
        usleep(50000);
        CHECK(self, !dscomm_group_abort(group, "enough"));
    }
    close_on(self, group, cs, 2);
}

static void aborted_alone(rank_t *self)
{
    abort_blocking(self, 0);
}

static void aborted_beside(rank_t *self)
{
    abort_blocking(self, 1);
}

/* The group is aborted at various moments of a long blocking call, beside a
 * work. */
static void aborted_midway(rank_t *self)
{
    enum { LARGE = 200000 };
    float *x = calloc(LARGE, sizeof *x), y[100] = {0};

    for (int round = 0; round < 20; round++) {
        dscomm_group_t *group = all_of(self, 0);
        dscomm_compressor_t *cs[] = {open_on(self, group, 100),
                                     open_on(self, group, LARGE)};
        dscomm_status_t status = DSCOMM_OK;

        meet(self);
        for (int i = 0; status == DSCOMM_OK && i < 1000; i++) {
            dscomm_work_t *work = NULL;
            dscomm_status_t beside = DSCOMM_OK;

            if (!self->rank && i == round % 5) {
                usleep((useconds_t)round * 50);
                CHECK(self, !dscomm_group_abort(group, "enough"));
            }
            status =
                dscomm_compressor_all_reduce(cs[0], y, DSCOMM_FLOAT32, &work);
            if (status == DSCOMM_OK)
                status = try_reduce(cs[1], x);
            if (work)
                beside = dscomm_work_wait(work, -1);
            CHECK(self, beside == DSCOMM_OK || beside == DSCOMM_ERR_ABORTED);
            dscomm_work_free(work);
        }
        CHECK(self, status == DSCOMM_ERR_ABORTED);
        close_on(self, group, cs, 2);
    }
    free(x);
}

static pthread_barrier_t both_there;

/* Without a watchdog, time in which a rank does not look at its work does not
 * count against its peers. Rank 0 does not look for longer than the deadline;
 * only then the other rank begins. It does not wait in the library meanwhile,
 * because that would make progress for all ranks of the process. */
static void looked_at_late(rank_t *self)
{
    dscomm_group_t *group = all_of(self, 1000);
    dscomm_compressor_t *c = open_on(self, group, 100);
    dscomm_work_t *work = NULL;
    float x[100] = {0};

    if (!self->rank)
        CHECK(self, !dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, &work));
    usleep(self->rank ? 0 : 1200000);
    pthread_barrier_wait(&both_there);
    if (self->rank)
        CHECK(self, !dscomm_compressor_all_reduce(c, x, DSCOMM_FLOAT32, &work));
    finish(self, work);
    close_on(self, group, &c, 1);
}

static void run_all(void)
{
    for (int n = 1; n <= 5; n++) {
        ranks_run(n, 10000, works, "as works");
        ranks_run(n, 10000, fused, "several in one call");
        ranks_run(n, 10000, masked, "masked");
        ranks_run(n, 10000, masked_late, "masked after calls");
        ranks_run(n, 10000, small, "small and empty buffers");
    }
    ranks_run(2, 10000, defaults, "attributes that are zero");
    ranks_run(1, 10000, refused, "refused");
    ranks_run(3, 10000, refused, "refused");
    ranks_run(3, 10000, busy, "outstanding");
    ranks_run(3, 10000, aborted, "an abort");
    ranks_run(3, 10000, aborted_alone, "an abort under a blocking call");
    ranks_run(3, 10000, aborted_beside, "the same beside a work");
    ranks_run(3, 10000, aborted_midway, "an abort at any moment");
}

int main(void)
{
    attr_init();
    ranks_use_modules();
    unsetenv("DSCOMM_PROGRESS");
    run_all();
    pthread_barrier_init(&both_there, NULL, 2);
    setenv("DSCOMM_WATCHDOG", "no", 1);
    ranks_run(2, 10000, looked_at_late, "a work that was let alone");
    unsetenv("DSCOMM_WATCHDOG");
    printf("# a thread of the library goes on with works\n");
    setenv("DSCOMM_PROGRESS", "thread", 1);
    run_all();
    return tap_done();
}
