/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls named after the codec do what those of all compressors do. They are
 * taken by address: a binding for another language sees no macros. */
#include "config.h"

#include "tests/compression/compress.h"

#define COUNT 1500

static const struct {
    dscomm_status_t (*create)(dscomm_group_t *, size_t,
                              const dscomm_compressor_attr_t *,
                              dscomm_onebit_t **);
    dscomm_status_t (*free)(dscomm_onebit_t *);
    dscomm_status_t (*all_reduce)(dscomm_onebit_t *, void *, dscomm_dtype_t,
                                  dscomm_work_t **);
    dscomm_status_t (*many)(dscomm_onebit_t *const *, void *const *, size_t,
                            dscomm_dtype_t, dscomm_work_t **);
    dscomm_status_t (*reset)(dscomm_onebit_t *);
    dscomm_status_t (*set_mask)(dscomm_onebit_t *, const uint8_t *);
    dscomm_status_t (*info)(const dscomm_onebit_t *,
                            dscomm_compressor_info_t *);
    dscomm_status_t (*errors)(dscomm_onebit_t *, float **, float **);
    dscomm_status_t (*save)(const dscomm_onebit_t *, void *, size_t);
    dscomm_status_t (*load)(dscomm_onebit_t *, const void *, size_t);
    dscomm_status_t (*save_file)(const dscomm_onebit_t *, const char *);
    dscomm_status_t (*load_file)(dscomm_onebit_t *, const char *);
} onebit = {
    dscomm_onebit_create,     dscomm_onebit_free,
    dscomm_onebit_all_reduce, dscomm_onebit_all_reduce_many,
    dscomm_onebit_reset,      dscomm_onebit_set_mask,
    dscomm_onebit_info,       dscomm_onebit_errors,
    dscomm_onebit_save,       dscomm_onebit_load,
    dscomm_onebit_save_file,  dscomm_onebit_load_file,
};

/* The next call gives the same bits with both. */
static void same_next(rank_t *self, dscomm_onebit_t *o, dscomm_compressor_t *c,
                      int call)
{
    float x[COUNT], y[COUNT];

    fill_noise(x, COUNT, self->rank, call);
    memcpy(y, x, sizeof x);
    CHECK(self, !onebit.all_reduce(o, x, DSCOMM_FLOAT32, NULL));
    reduce(self, c, y);
    CHECK(self, !memcmp(x, y, sizeof x));
}

static void calls(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
    dscomm_onebit_t *o = NULL;
    float x[COUNT], y[COUNT];
    void *buffer = x;
    uint8_t mask[COUNT];

    for (int i = 0; i < COUNT; i++)
        mask[i] = i % 3 != 0;
    CHECK(self, !onebit.create(self->world, COUNT, NULL, &o));
    same_next(self, o, c, 1);
    same_next(self, o, c, 2);
    fill_noise(x, COUNT, self->rank, 3);
    memcpy(y, x, sizeof x);
    CHECK(self, !onebit.many(&o, &buffer, 1, DSCOMM_FLOAT32, NULL));
    reduce(self, c, y);
    CHECK(self, !memcmp(x, y, sizeof x));
    CHECK(self, !onebit.set_mask(o, mask));
    CHECK(self, !dscomm_compressor_set_mask(c, mask));
    same_next(self, o, c, 4);
    CHECK(self, !onebit.reset(o) && !dscomm_compressor_reset(c));
    same_next(self, o, c, 5);
    CHECK(self, !onebit.free(o) && !onebit.free(NULL));
    CHECK(self, !dscomm_compressor_free(c));
}

static void state(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
    dscomm_compressor_info_t info = {.size = sizeof info};
    dscomm_onebit_t *o = NULL;
    float *worker = NULL, *server = NULL;
    char path[] = "/tmp/dscomm-onebit-XXXXXX", *memory;
    int fd = mkstemp(path);

    CHECK(self, !onebit.create(self->world, COUNT, NULL, &o));
    same_next(self, o, c, 1);
    CHECK(self, !onebit.info(o, &info) && info.count == COUNT);
    CHECK(self, !onebit.errors(o, &worker, &server) && worker && server);
    memory = malloc(info.state_bytes);
    CHECK(self, !onebit.save(o, memory, info.state_bytes));
    CHECK(self, fd >= 0 && !onebit.save_file(o, path));
    CHECK(self, !onebit.reset(o));
    CHECK(self, !onebit.load(o, memory, info.state_bytes));
    same_next(self, o, c, 2);
    CHECK(self, !onebit.load_file(o, path));
    CHECK(self, !dscomm_compressor_load(c, memory, info.state_bytes));
    same_next(self, o, c, 3);
    close(fd);
    unlink(path);
    free(memory);
    CHECK(self, !onebit.free(o) && !dscomm_compressor_free(c));
}

int main(void)
{
    ranks_use_modules();
    ranks_run(2, 10000, calls, "calls");
    ranks_run(2, 10000, state, "the state");
    return tap_done();
}
