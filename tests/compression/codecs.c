/* SPDX-License-Identifier: BSD-3-Clause */
/* All codecs through a compressor: exact codecs give exact results; with the
 * others nothing is lost over many calls; all dtypes; a user's codec. */
#include "config.h"

#include "tests/compression/compress.h"

#include <stddef.h>

#define COUNT 2500 /* two tiles and a half */

static const char *const codecs[] = {"none",   "float16", "bfloat16",
                                     "onebit", "int8",    "topk"};

/* Whole numbers, which the exact codecs represent exactly. */
static void exact(rank_t *self)
{
    for (int codec = 0; codec < 3; codec++)
        for (int sum = 0; sum < 2; sum++) {
            dscomm_compressor_t *c = OPEN(self, self->world, COUNT,
                                          .codec = codecs[codec], .sum = sum);
            int n = self->size, wrong = 0;
            float x[COUNT];

            for (int i = 0; i < COUNT; i++)
                x[i] = (float)(n * (i % 7 - 3) * (self->rank + 1));
            reduce(self, c, x);
            for (int i = 0; i < COUNT; i++) {
                int want = n * (i % 7 - 3) * n * (n + 1) / 2;

                wrong += x[i] != (float)(sum ? want : want / n);
            }
            CHECK(self, !wrong);
            CHECK(self, !dscomm_compressor_free(c));
        }
}

/* int8 represents whole numbers up to 127 exactly, if 127 is the largest. */
static void int8_exact(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "int8");
    float x[COUNT];
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 16 ? i % 255 - 127 : 127);
    reduce(self, c, x);
    for (int i = 0; i < COUNT; i++)
        wrong += fabsf(x[i] - (float)(i % 16 ? i % 255 - 127 : 127)) > 1e-4f;
    CHECK(self, !wrong);
    CHECK(self, !dscomm_compressor_free(c));
}

/* topk sends the two largest of eight elements; the others follow in later
 * calls. */
static void topk_order(rank_t *self)
{
    static const float first[8] = {0, 0, 0, -8, 0, 0, 0, 7};
    static const float second[8] = {0, 0, -6, 0, 0, 5, 0, 0};
    float x[8] = {1, 2, -6, -8, 3, 5, 4, 7}, zero[8] = {0};
    dscomm_compressor_t *c = OPEN(self, self->world, 8, .codec = "topk",
                                  .parameter = 0.25, .sum = 1);

    reduce(self, c, x);
    reduce(self, c, zero);
    for (int i = 0; i < 8; i++)
        CHECK(self, x[i] == (float)self->size * first[i] &&
                        zero[i] == (float)self->size * second[i]);
    CHECK(self, !dscomm_compressor_free(c));
}

/* Adds the errors of all ranks, as they would appear in a result. */
static void add_errors(rank_t *self, dscomm_compressor_t *c, double *sum)
{
    const dscomm_compressor_info_t info = info_of(self, c);
    float *worker, *server, all[COUNT], mean[COUNT];
    size_t counts[RANKS_MAX];

    CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
    if (!worker || !server)
        return;
    CHECK(self, !dscomm_all_gather(self->world, &info.server, counts,
                                   sizeof(size_t), DSCOMM_UINT8, NULL));
    CHECK(self, !dscomm_all_gather_v(self->world, server, info.server, all,
                                     counts, NULL, DSCOMM_FLOAT32, NULL));
    CHECK(self, !dscomm_all_reduce(self->world, worker, mean, COUNT,
                                   DSCOMM_FLOAT32, DSCOMM_AVG, NULL));
    for (int i = 0; i < COUNT; i++)
        sum[i] += (double)all[i] + mean[i];
}

/* The sum of results and remaining errors equals the sum of inputs. */
static void conserved(rank_t *self)
{
    for (int codec = 3; codec < 6; codec++) {
        dscomm_compressor_t *c = open_with(self, COUNT, codecs[codec]);
        double in[COUNT] = {0}, out[COUNT] = {0}, most = 0;
        float x[COUNT];

        for (int call = 0; call < 20; call++) {
            for (int r = 0; r < self->size; r++) {
                fill_noise(x, COUNT, r, call);
                for (int i = 0; i < COUNT; i++)
                    in[i] += (double)x[i] / self->size;
            }
            fill_noise(x, COUNT, self->rank, call);
            reduce(self, c, x);
            for (int i = 0; i < COUNT; i++)
                out[i] += x[i];
        }
        add_errors(self, c, out);
        for (int i = 0; i < COUNT; i++)
            most = fmax(most, fabs(in[i] - out[i]));
        CHECK(self, most < 1e-4);
        CHECK(self, !dscomm_compressor_free(c));
    }
}

/* float64 and the short floats give the same as their float32 values. */
static void dtypes(rank_t *self)
{
    dscomm_compressor_t *cs[2] = {open_with(self, COUNT, "onebit"),
                                  open_with(self, COUNT, "onebit")};
    float x[COUNT];
    double wide[COUNT];
    int wrong = 0;

    for (int call = 0; call < 3; call++) {
        fill_noise(x, COUNT, self->rank, call);
        for (int i = 0; i < COUNT; i++)
            wide[i] = x[i];
        reduce(self, cs[0], x);
        CHECK(self,
              !dscomm_compressor_all_reduce(cs[1], wide, DSCOMM_FLOAT64, NULL));
        for (int i = 0; i < COUNT; i++)
            wrong += wide[i] != x[i];
    }
    CHECK(self, !wrong);
    close_all(self, cs, 2);
}

/* Ones and halves are exact in 16 bits; so is the root of the mean square if
 * all elements are one. */
static void short_floats(rank_t *self)
{
    static const uint16_t one[2] = {0x3c00, 0x3f80};
    static const dscomm_dtype_t types[2] = {DSCOMM_FLOAT16, DSCOMM_BFLOAT16};

    for (int t = 0; t < 2; t++) {
        dscomm_compressor_t *c = open_with(self, COUNT, "onebit");
        uint16_t x[COUNT + 1];
        int wrong = 0;

        for (int i = 0; i < COUNT; i++)
            x[i + 1] = (uint16_t)(one[t] | (i % 3 ? 0 : 0x8000));
        CHECK(self, !dscomm_compressor_all_reduce(c, x + 1, types[t], NULL));
        for (int i = 0; i < COUNT; i++)
            wrong += x[i + 1] != (one[t] | (i % 3 ? 0 : 0x8000));
        CHECK(self, !wrong);
        CHECK(self, !dscomm_compressor_free(c));
    }
}

/* Decoding, by adding to zeros. */
#define DECODE(codec)                                                          \
    static int codec##_decode(const dscomm_codec_args_t *args, float scale,    \
                              const void *bytes, size_t count,                 \
                              float *ret_values)                               \
    {                                                                          \
        memset(ret_values, 0, count * sizeof *ret_values);                     \
        return codec##_accumulate(args, scale, 1, bytes, count, ret_values);   \
    }

/* A user's codec, which sends the sum of two elements. */
static size_t pair_bytes(const dscomm_codec_args_t *args, size_t count)
{
    (void)args;
    return (count + 1) / 2 * sizeof(float);
}

static void pair_encode(const dscomm_codec_args_t *args, float scale,
                        const float *values, float *errors, size_t count,
                        void *ret_bytes)
{
    (void)args, (void)scale, (void)errors;
    for (size_t i = 0; i < count; i += 2) {
        float sum = values[i] + (i + 1 < count ? values[i + 1] : 0);

        memcpy((char *)ret_bytes + i / 2 * sizeof sum, &sum, sizeof sum);
    }
}

static int pair_accumulate(const dscomm_codec_args_t *args, float scale,
                           float factor, const void *bytes, size_t count,
                           float *sum)
{
    (void)args, (void)scale;
    for (size_t i = 0; i < count; i++) {
        float pair;

        memcpy(&pair, (const char *)bytes + i / 2 * sizeof pair, sizeof pair);
        if (pair == 1e9f)
            return -1;
        sum[i] += factor * pair / 2;
    }
    return 0;
}

DECODE(pair)

static const dscomm_codec_t pair = {.size = sizeof pair,
                                    .name = "pair",
                                    .bytes = pair_bytes,
                                    .encode = pair_encode,
                                    .accumulate = pair_accumulate,
                                    .decode = pair_decode};

static void own_codec(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "pair");
    float x[COUNT];
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(self->size * (i + self->rank));
    reduce(self, c, x);
    for (int i = 0; i < COUNT; i++) {
        int n = self->size, even = i / 2 * 2;
        /* the mean over ranks of n * (even + 1/2 + rank) */
        double want = n * (even + 0.5) + n * (n - 1) / 2.0;

        wrong += x[i] != (float)want;
    }
    CHECK(self, !wrong);
    CHECK(self, !dscomm_compressor_free(c));
}

/* Invalid bytes are received. */
static void invalid_bytes(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, 10, "pair");
    float x[10] = {1e9f, 0};

    CHECK(self, try_reduce(c, x) < 0);
    CHECK(self, strstr(dscomm_last_error(), "no sense"));
    CHECK(self, !dscomm_compressor_free(c));
}

/* A codec that needs more bytes for a block whose length is not a multiple of
 * 1024: it sends each element four times. */
static size_t copies(size_t count)
{
    return count % 1024 ? 4 : 1;
}

static size_t swelling_bytes(const dscomm_codec_args_t *args, size_t count)
{
    (void)args;
    return count * copies(count) * sizeof(float);
}

static void swelling_encode(const dscomm_codec_args_t *args, float scale,
                            const float *values, float *errors, size_t count,
                            void *ret_bytes)
{
    (void)args, (void)scale, (void)errors;
    for (size_t i = 0; i < count * copies(count); i++)
        memcpy((char *)ret_bytes + i * sizeof(float),
               &values[i / copies(count)], sizeof(float));
}

/* Decodes the last of the copies. */
static int swelling_accumulate(const dscomm_codec_args_t *args, float scale,
                               float factor, const void *bytes, size_t count,
                               float *sum)
{
    (void)args, (void)scale;
    for (size_t i = 0; i < count; i++) {
        float value;

        memcpy(&value,
               (const char *)bytes +
                   (i * copies(count) + copies(count) - 1) * sizeof value,
               sizeof value);
        sum[i] += factor * value;
    }
    return 0;
}

DECODE(swelling)

static const dscomm_codec_t swelling = {.size = sizeof swelling,
                                        .name = "swelling",
                                        .bytes = swelling_bytes,
                                        .encode = swelling_encode,
                                        .accumulate = swelling_accumulate,
                                        .decode = swelling_decode};

/* Parts of 1024 or 2048 elements, and a last one of 452 that needs more
 * bytes. */
static void swollen(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, "swelling");
    float x[COUNT];
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    reduce(self, c, x);
    for (int i = 0; i < COUNT; i++)
        wrong += fabsf(x[i] - (float)i) > 1e-2f;
    CHECK(self, !wrong);
    CHECK(self, !dscomm_compressor_free(c));
}

/* A codec whose rows have too many bytes to count. */
static size_t endless_bytes(const dscomm_codec_args_t *args, size_t count)
{
    (void)args;
    return count < DSCOMM_CODEC_BLOCK ? 1 : SIZE_MAX / 2;
}

static const dscomm_codec_t unbounded = {.size = sizeof unbounded,
                                         .name = "endless",
                                         .bytes = endless_bytes,
                                         .encode = swelling_encode,
                                         .accumulate = swelling_accumulate,
                                         .decode = swelling_decode};

/* Of the swelling one a part that ends with a block of 1500 elements, which
 * needs more than one of 4096. */
static void too_long(rank_t *self)
{
    static const struct {
        const char *codec, *sentence;
        size_t count;
    } rows[] = {{"swelling", "than for a whole one", 1500},
                {"endless", "for a block of 4096", 40960}};

    for (int i = 0; i < 2; i++) {
        dscomm_compressor_attr_t attr = {.size = sizeof attr};
        dscomm_compressor_t *c = NULL;

        attr.codec = rows[i].codec;
        CHECK(self, dscomm_compressor_create(self->world, rows[i].count, &attr,
                                             &c) == DSCOMM_ERR_INVALID);
        CHECK(self, strstr(dscomm_last_error(), rows[i].sentence) && !c);
    }
}

/* A codec that records its arguments: each block begins with the position of
 * its first element. */
typedef struct {
    dscomm_codec_args_t args;
    float values[DSCOMM_CODEC_BLOCK];
} witness_block_t;

static int witness_wrong;

static size_t witness_bytes(const dscomm_codec_args_t *args, size_t count)
{
    return args->user == &witness_wrong && args->parameter == 0.5
               ? offsetof(witness_block_t, values) + count * sizeof(float)
               : 0;
}

static void witness_encode(const dscomm_codec_args_t *args, float scale,
                           const float *values, float *errors, size_t count,
                           void *ret_bytes)
{
    size_t bytes = offsetof(witness_block_t, values);
    int wrong = args->user != &witness_wrong || args->parameter != 0.5 ||
                values[0] != (float)(args->first + 100000 * args->call);

    (void)scale, (void)errors;
    memcpy(ret_bytes, args, sizeof *args);
    memcpy((char *)ret_bytes + bytes, values, count * sizeof *values);
    __atomic_add_fetch((int *)args->user, wrong, __ATOMIC_RELAXED);
}

/* Checks that the arguments of decode are those of encode in phase. */
static int witness_matches(const dscomm_codec_args_t *args, uint32_t phase,
                           const void *bytes)
{
    dscomm_codec_args_t told;

    memcpy(&told, bytes, sizeof told);
    return args->phase == phase && told.phase == phase &&
           told.first == args->first && told.call == args->call &&
           told.parameter == args->parameter && args->user == &witness_wrong;
}

static int witness_accumulate(const dscomm_codec_args_t *args, float scale,
                              float factor, const void *bytes, size_t count,
                              float *sum)
{
    float values[DSCOMM_CODEC_BLOCK];

    (void)scale;
    memcpy(values, (const char *)bytes + offsetof(witness_block_t, values),
           count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        sum[i] += factor * values[i];
    return witness_matches(args, 0, bytes) ? 0 : -1;
}

static int witness_decode(const dscomm_codec_args_t *args, float scale,
                          const void *bytes, size_t count, float *ret_values)
{
    (void)scale;
    memcpy(ret_values, (const char *)bytes + offsetof(witness_block_t, values),
           count * sizeof *ret_values);
    return witness_matches(args, 1, bytes) ? 0 : -1;
}

static const dscomm_codec_t witness = {.size = sizeof witness,
                                       .name = "witness",
                                       .user = &witness_wrong,
                                       .parameter = 2,
                                       .parameter_most = 4,
                                       .bytes = witness_bytes,
                                       .encode = witness_encode,
                                       .accumulate = witness_accumulate,
                                       .decode = witness_decode};

static void told(rank_t *self)
{
    enum { LONG = 9000 };
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_compressor_t *c = NULL;
    float x[LONG];

    attr.codec = "witness";
    attr.parameter = 5;
    CHECK(self, dscomm_compressor_create(self->world, LONG, &attr, &c) ==
                    DSCOMM_ERR_INVALID);
    CHECK(self, strstr(dscomm_last_error(), "witness is in (0, 4]"));
    c = OPEN(self, self->world, LONG, .codec = "witness", .parameter = 0.5);
    for (int call = 1; call <= 2; call++) {
        for (int i = 0; i < LONG; i++)
            x[i] = (float)(i + 100000 * call);
        reduce(self, c, x);
    }
    CHECK(self, !__atomic_load_n(&witness_wrong, __ATOMIC_RELAXED));
    CHECK(self, !dscomm_compressor_free(c));
}

static void test_register(void)
{
    dscomm_codec_t wrong = pair;

    is_str(dscomm_codec_names(), "none float16 bfloat16 onebit int8 topk",
           "the codecs");
    is_int(dscomm_codec_register(NULL), DSCOMM_ERR_INVALID, "NULL");
    wrong.size = offsetof(dscomm_codec_t, decode);
    is_int(dscomm_codec_register(&wrong), DSCOMM_ERR_INVALID, "a wrong size");
    wrong = pair;
    wrong.parameter = 1;
    is_int(dscomm_codec_register(&wrong), DSCOMM_ERR_INVALID,
           "a parameter of which there is none");
    wrong.parameter = NAN;
    wrong.parameter_most = 1;
    is_int(dscomm_codec_register(&wrong), DSCOMM_ERR_INVALID,
           "a parameter that is none");
    wrong = pair;
    wrong.name = "a b";
    is_int(dscomm_codec_register(&wrong), DSCOMM_ERR_INVALID, "a wrong name");
    wrong.name = "sixteen_letters_";
    is_int(dscomm_codec_register(&wrong), DSCOMM_ERR_INVALID, "a long name");
    wrong.name = "onebit";
    is_int(dscomm_codec_register(&wrong), DSCOMM_ERR_INVALID, "a name twice");
    wrong = pair;
    wrong.decode = NULL;
    is_int(dscomm_codec_register(&wrong), DSCOMM_ERR_INVALID, "no decode");
    wrong = pair;
    wrong.settle = dscomm_codec_find("onebit")->settle;
    is_int(dscomm_codec_register(&wrong), DSCOMM_ERR_INVALID,
           "settle without measure");
    is_int(dscomm_codec_register(&swelling), DSCOMM_OK, "one that swells");
    is_int(dscomm_codec_register(&unbounded), DSCOMM_OK, "one without an end");
    is_int(dscomm_codec_register(&witness), DSCOMM_OK, "one that is told");
    is_int(dscomm_codec_register(&pair), DSCOMM_OK, "a new one");
    ok(dscomm_codec_find("pair") == &pair, "is found");
    ok(!dscomm_codec_find("Pair") && !dscomm_codec_find(NULL),
       "others are not");
}

int main(void)
{
    ranks_use_modules();
    test_register();
    for (int n = 1; n <= 5; n++) {
        ranks_run(n, 10000, exact, "exact codecs");
        ranks_run(n, 10000, int8_exact, "int8: whole numbers");
        ranks_run(n, 10000, topk_order, "topk: the largest first");
        ranks_run(n, 10000, conserved, "nothing is lost");
        ranks_run(n, 10000, dtypes, "float64");
        ranks_run(n, 10000, short_floats, "16-bit floats");
        ranks_run(n, 10000, own_codec, "a codec of the program's own");
    }
    for (int n = 2; n <= 3; n++)
        ranks_run(n, 10000, swollen, "a codec whose short parts are longer");
    for (int n = 1; n <= 2; n++)
        ranks_run(n, 10000, told, "what a codec is told");
    ranks_run(1, 10000, too_long, "too long, or too long to count");
    ranks_run(2, 10000, invalid_bytes, "bytes that make no sense");
    return tap_done();
}
