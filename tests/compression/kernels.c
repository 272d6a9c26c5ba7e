/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of kernels: the plain row is compared with definitions, the other
 * rows with the plain one, bit for bit. */
#include "config.h"

#include "compression/codecs/arithmetic.h"
#include "compression/codecs/kernels.h"
#include "tests/lib/reduce/formats.h"
#include "tests/tap.h"

#include <dscomm/info.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 5000

static const dscomm_codec_kernels_t *const plain_row =
    &dscomm_priv_codec_kernels_c;

static uint64_t state = 88172645463325252u;

static uint32_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* Kinds of input */
typedef float (*source_t)(void);

static float plain(void)
{
    return (float)(int32_t)draw() / 0x40000000;
}

static float tiny(void)
{
    return minifloat_value(draw() & 0x80ffffff);
}

static float anything(void)
{
    static const uint32_t odd[] = {0,          0x80000000, 0x7f800000,
                                   0xff800000, 0x7fc00000, 0x7f800001,
                                   0x00000001, 0x7f7fffff, 0x3f800000};
    uint32_t bits = draw();

    return minifloat_value(bits % 4 ? draw() : odd[bits / 4 % 9]);
}

static const struct {
    const char *name;
    source_t draw;
} kinds[] = {{"plain", plain}, {"tiny", tiny}, {"anything", anything}};

/* The buffers of a kernel. */
typedef struct {
    float x[MOST], e[MOST], sum[MOST];
    uint16_t codes[MOST];
    int8_t bytes[MOST];
    uint8_t bits[MOST / 8 + 1];
    double sums[KERNEL_SUMS];
    float scale;
} data_t;

static void fill(data_t *d, source_t source)
{
    memset(d, 0, sizeof *d);
    for (int i = 0; i < MOST; i++) {
        d->x[i] = source();
        d->e[i] = source();
        d->sum[i] = source();
        d->codes[i] = (uint16_t)draw();
        d->bytes[i] = (int8_t)draw();
    }
    for (size_t i = 0; i < sizeof d->bits; i++)
        d->bits[i] = (uint8_t)draw();
    d->scale = fabsf(plain());
}

/* The kernels. Bits, bytes and the codes of casts alone, which are of values
 * without errors, begin at any address. How many elements are picked is another
 * part of them each time. */
#define KERNELS(K)                                                             \
    K("measure", row->measure(d->sums, x, e, count))                           \
    K("sign", row->sign(x, e, count, d->scale, bits))                          \
    K("add_signs", row->add_signs(bits, count, d->scale, sum))                 \
    K("put_signs", row->put_signs(bits, count, d->scale, 0, sum))              \
    K("stream", row->put_signs(bits, count, d->scale, 1, sum))                 \
    K("quantize", d->scale = row->quantize(x, e, group, bytes))                \
    K("add_codes", row->add_codes(bytes, count, d->scale, sum))                \
    K("add", row->add(x, e, count))                                            \
    K("to_half", row->to_half(x, e, count, codes))                             \
    K("to_bfloat", row->to_bfloat(x, e, count, codes))                         \
    K("from_half", row->from_half(codes, count, sum))                          \
    K("from_bfloat", row->from_bfloat(codes, count, sum))                      \
    K("to_half alone", row->to_half(x, NULL, count, loose))                    \
    K("to_bfloat alone", row->to_bfloat(x, NULL, count, loose))                \
    K("pick", some ? row->pick(x, some, k < some ? k : some, codes) : (void)0)

#define KERNEL_NAME(name, call) name,
static const char *const kernels[] = {KERNELS(KERNEL_NAME)};

/* Runs one kernel on count elements from element `at` on. */
static void use(size_t kernel, const dscomm_codec_kernels_t *row, data_t *d,
                size_t at, size_t count)
{
    size_t group = count < KERNEL_GROUP ? count : KERNEL_GROUP, i = 0;
    size_t some = count < KERNEL_PICK_MOST ? count : KERNEL_PICK_MOST;
    size_t k = 1 + some / (1 + some % 101);
    float *x = d->x + at, *e = d->e + at, *sum = d->sum + at;
    uint16_t *codes = d->codes + at;
    uint8_t *bits = d->bits + at % 7;
    int8_t *bytes = d->bytes + at % 5;
    char *loose = (char *)codes + at % 2;

#define KERNEL_USE(name, call)                                                 \
    if (kernel == i++)                                                         \
        call;
    KERNELS(KERNEL_USE)
}

/* Compares bits; if both are NaN, they may differ, because no rule says which
 * NaN a sum of two has. */
static int same_float(float a, float b)
{
    return minifloat_bits(a) == minifloat_bits(b) || (isnan(a) && isnan(b));
}

static int same_codes(const data_t *a, const data_t *b, int i)
{
    return a->codes[i] == b->codes[i] ||
           ((a->codes[i] & 0x7fff) > 0x7f80 &&
            (b->codes[i] & 0x7fff) > 0x7f80) ||
           ((a->codes[i] & 0x7fff) > 0x7c00 && (b->codes[i] & 0x7fff) > 0x7c00);
}

static int same(const data_t *a, const data_t *b)
{
    int equal = same_float(a->scale, b->scale) &&
                !memcmp(a->bytes, b->bytes, sizeof a->bytes) &&
                !memcmp(a->bits, b->bits, sizeof a->bits);

    for (int i = 0; i < MOST && equal; i++)
        equal = same_float(a->e[i], b->e[i]) &&
                same_float(a->sum[i], b->sum[i]) && same_codes(a, b, i);
    for (int i = 0; i < KERNEL_SUMS && equal; i++)
        equal = a->sums[i] == b->sums[i] ||
                (isnan(a->sums[i]) && isnan(b->sums[i]));
    return equal;
}

static int is_usable(const char *name)
{
    const char *found = strstr(dscomm_kernels(), name);

    return found && (!found[strlen(name)] || found[strlen(name)] == ' ');
}

static data_t one, other;

static void compare(const dscomm_codec_kernels_t *row, size_t k, size_t kind)
{
    static const size_t counts[] = {0,   1,   7,   8,   9,    15,   16,   17,
                                    31,  32,  33,  63,  64,   65,   100,  127,
                                    128, 255, 256, 257, 1000, 4095, 4096, 4100};
    int wrong = 0;

    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (size_t at = 0; at < 5 && !wrong; at++) {
            fill(&one, kinds[kind].draw);
            other = one;
            use(k, plain_row, &one, at, counts[c]);
            use(k, row, &other, at, counts[c]);
            wrong = !same(&one, &other);
            if (wrong)
                printf("# %zu elements from %zu\n", counts[c], at);
        }
    ok(!wrong, "%s: %s, %s values, as %s", row->name, kernels[k],
       kinds[kind].name, plain_row->name);
}

static void test_row(const dscomm_codec_kernels_t *row)
{
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
        for (size_t kind = 0; kind < 3; kind++)
            compare(row, k, kind);
}

static void test_signs(void)
{
    static const float x[] = {1, -1, 0, -0.0f, NAN, -3, 5, -INFINITY, 2};
    float e[9] = {0}, sum[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint8_t bits[2] = {0xff, 0xff};

    plain_row->sign(x, e, 9, 2, bits);
    is_int(bits[0], 0xba,
           "signs: the first element is the highest bit, NaN and "
           "-0 are plus");
    is_int(bits[1], 0x80, "signs: the last byte is filled with zeros");
    ok(e[0] == -1 && e[1] == 1 && e[2] == -2 && e[3] == -2 && isnan(e[4]) &&
           e[5] == -1 && e[6] == 3 && e[7] == -INFINITY && e[8] == 0,
       "signs: what is lost");
    plain_row->add_signs(bits, 9, 0.5f, sum);
    ok(sum[0] == 1.5f && sum[1] == 0.5f && sum[7] == 0.5f && sum[8] == 1.5f,
       "signs: added");
}

/* Integers, whose squares and sums are exact. */
static void test_measure(void)
{
    float x[101], e[101];
    double sums[KERNEL_SUMS] = {0}, all = 0, want = 0;

    for (int i = 0; i < 101; i++) {
        x[i] = (float)(i * i);
        e[i] = (float)-i;
        want += (double)(i * i - i) * (double)(i * i - i);
    }
    plain_row->measure(sums, x, e, 101);
    for (int i = 0; i < KERNEL_SUMS; i++)
        all += sums[i];
    ok(all == want, "measure: the sum of squares");
    ok(sums[31] == (double)(31 * 31 - 31) * (31 * 31 - 31) +
                       (double)(63 * 63 - 63) * (63 * 63 - 63) +
                       (double)(95 * 95 - 95) * (95 * 95 - 95),
       "measure: each in its place");
}

static void test_quantize(void)
{
    float x[4] = {127, -63.5f, 0.25f, 1.5f}, e[4] = {0, 0, 0.25f, 0};
    float none[2] = {1, 2}, infinite[2] = {INFINITY, 1};
    int8_t codes[4];

    ok(plain_row->quantize(x, e, 4, codes) == 1, "quantize: the scale");
    ok(codes[0] == 127 && codes[1] == -64 && codes[2] == 0 && codes[3] == 2,
       "quantize: rounded to nearest even");
    ok(e[0] == 0 && e[1] == 0.5f && e[2] == 0.5f && e[3] == -0.5f,
       "quantize: what is lost");
    ok(isnan(plain_row->quantize(infinite, none, 2, codes)) && none[0] == 1 &&
           none[1] == 2 && !codes[0],
       "quantize: infinity makes all NaN and keeps the errors");
}

/* All codes of a format, and numbers between them. */
static void test_cast(const char *name, dscomm_dtype_t dtype,
                      void (*to)(const float *, float *, size_t, void *),
                      void (*from)(const void *, size_t, float *))
{
    const format_t *format = format_of(dtype);
    int wrong = 0, lost = 0, back = 0;

    for (unsigned code = 0; code < 0x10000; code++) {
        uint16_t in = (uint16_t)code;
        float value;

        from(&in, 1, &value);
        if (!isnan(value) || !isnan(format_value(format, code)))
            back += (double)value != format_value(format, code);
    }
    for (int i = 0; i < 200000; i++) {
        float x = anything(), e = -0.0f; /* e = -0 does not change x */
        uint16_t code;
        uint64_t want = format_round(format, x);

        to(&x, &e, 1, &code);
        if (isnan(x)) {
            wrong += !isnan(format_value(format, code));
            continue;
        }
        wrong += code != want;
        if (isfinite(format_value(format, code)))
            lost += e != x - (float)format_value(format, code);
    }
    is_int(back, 0, "%s: what all codes stand for", name);
    is_int(wrong, 0, "%s: the nearest code", name);
    is_int(lost, 0, "%s: what is lost", name);
}

/* The sign, the exponent and the bits that float16 keeps, with some of the bits
 * that it rounds away: a tie, numbers next to it, and the smallest ones. */
#define KEPT ((uint32_t)1 << 19)
#define ROUNDED 13

static int wrong_halves(const dscomm_codec_kernels_t *row, uint32_t first,
                        uint32_t low)
{
    const format_t *format = format_of(DSCOMM_FLOAT16);
    static float x[KERNEL_PICK_MOST], e[KERNEL_PICK_MOST];
    static uint16_t codes[2][KERNEL_PICK_MOST];
    int wrong = 0;

    for (uint32_t i = 0; i < KERNEL_PICK_MOST; i++) {
        uint32_t bits = (first + i) << ROUNDED | low;

        memcpy(&x[i], &bits, sizeof bits);
        e[i] = -0.0f; /* does not change x */
    }
    row->to_half(x, NULL, KERNEL_PICK_MOST, codes[0]);
    row->to_half(x, e, KERNEL_PICK_MOST, codes[1]);
    for (uint32_t i = 0; i < KERNEL_PICK_MOST; i++) {
        const double value = format_value(format, codes[0][i]);

        wrong += codes[0][i] != codes[1][i];
        if (isnan(x[i]))
            wrong += !isnan(value);
        else
            wrong += codes[0][i] != format_round(format, x[i]);
        if (isfinite(value))
            wrong += e[i] != x[i] - (float)value;
    }
    return wrong;
}

static void test_halves(const dscomm_codec_kernels_t *row)
{
    static const uint32_t lows[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff};

    for (size_t k = 0; k < sizeof lows / sizeof lows[0]; k++) {
        int wrong = 0;

        for (uint32_t at = 0; at < KEPT; at += KERNEL_PICK_MOST)
            wrong += wrong_halves(row, at, lows[k]);
        is_int(wrong, 0, "%s: float16 of all floats that end with %#x",
               row->name, lows[k]);
    }
}

static void test_rows(void)
{
    const dscomm_codec_kernels_t *row;

    for (size_t r = 0; (row = dscomm_priv_codec_kernels_row(r)); r++) {
        if (!is_usable(row->name)) {
            skip("%s: not on this processor", row->name);
            continue;
        }
        test_halves(row);
        if (row != plain_row)
            test_row(row);
    }
}

static const float *sorted;

static int by_magnitude(const void *a, const void *b)
{
    uint16_t i = *(const uint16_t *)a, k = *(const uint16_t *)b;
    uint32_t x = minifloat_bits(fabsf(sorted[i]));
    uint32_t y = minifloat_bits(fabsf(sorted[k]));

    return x != y ? (x < y ? 1 : -1) : i - k;
}

static int by_place(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

static float of_five(void)
{
    return (float)(draw() % 5) - 2;
}

/* Compares with all elements sorted. */
static void test_pick(void)
{
    static const source_t sources[] = {plain, tiny, anything, of_five};
    static const size_t counts[] = {1,  2,   31,   32,   33,  63,
                                    64, 500, 1000, 4095, 4096};
    static float u[KERNEL_PICK_MOST];
    uint16_t want[KERNEL_PICK_MOST], got[KERNEL_PICK_MOST];
    int wrong = 0;

    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t n = 0; n < 40; n++) {
            size_t k = n < 20 ? 1 + n * 3 : 1 + counts[c] * (n - 20) / 19;

            k = k < counts[c] ? k : counts[c];
            for (size_t i = 0; i < counts[c]; i++) {
                u[i] = sources[n % 4]();
                want[i] = (uint16_t)i;
            }
            sorted = u;
            qsort(want, counts[c], sizeof *want, by_magnitude);
            qsort(want, k, sizeof *want, by_place);
            plain_row->pick(u, counts[c], k, got);
            wrong += memcmp(want, got, k * sizeof *want) != 0;
        }
    is_int(wrong, 0, "pick: the largest magnitudes, of equal ones the first");
}

int main(void)
{
    test_pick();
    test_signs();
    test_measure();
    test_quantize();
    test_cast("float16", DSCOMM_FLOAT16, plain_row->to_half,
              plain_row->from_half);
    test_cast("bfloat16", DSCOMM_BFLOAT16, plain_row->to_bfloat,
              plain_row->from_bfloat);
    test_rows();
    return tap_done();
}
