/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast 1-bit compression is: milliseconds of every row of kernels that runs
 * on this processor, and how close they come to the speed of memory.
 * Compression reads values and errors twice and writes errors: five streams.
 * Decompression writes values past the caches. The limits are loops with such
 * accesses and one addition each. All measurements alternate; a figure is the
 * median over rounds, in processor time of this thread.
 *
 *   codecs [-n ROUNDS] [ELEMENTS...]
 *
 * With -c CODEC: the time in which that codec encodes, without and with errors,
 * and decodes, with the row that DSCOMM_CPU permits. */
#include "config.h"

#include "compression/codecs/kernels.h"
#include "tests/bench/bench.h"

#include <dscomm/codec.h>
#include <dscomm/info.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MAX = 101, ROWS_MAX = 8, BLOCK = 4096 };

#if defined(__x86_64__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2")))
typedef __m256 wide_t;
#define LOAD(at) _mm256_load_ps(at)
#define STORE(at, x) _mm256_store_ps(at, x)
#define PAST(at, x) _mm256_stream_ps(at, x)
#else
#define WIDE
typedef float wide_t __attribute__((vector_size(16)));
#define LOAD(at) (*(const wide_t *)(at))
#define STORE(at, x) (*(wide_t *)(at) = (x))
#define PAST STORE
#endif
#define LANES (sizeof(wide_t) / sizeof(float))

typedef struct {
    float *x, *e;
    uint8_t *bits;
    /* large enough for every codec of the library, none of which needs more
     * than float32 */
    char *code;
    size_t count;
} data_t;

static volatile float sink;

WIDE static void limit_compress(const data_t *d)
{
    wide_t a = LOAD(d->x), b = a, c = a, f = a;

    for (size_t i = 0; i < d->count; i += 4 * LANES) {
        a += LOAD(d->x + i) + LOAD(d->e + i);
        b += LOAD(d->x + i + LANES) + LOAD(d->e + i + LANES);
        c += LOAD(d->x + i + 2 * LANES) + LOAD(d->e + i + 2 * LANES);
        f += LOAD(d->x + i + 3 * LANES) + LOAD(d->e + i + 3 * LANES);
    }
    a += b + c + f;
    sink = a[0];
    for (size_t i = 0; i < d->count; i += LANES)
        STORE(d->e + i, LOAD(d->x + i) + LOAD(d->e + i));
}

WIDE static void limit_decompress(const data_t *d)
{
    wide_t a = LOAD(d->x);

    for (size_t i = 0; i < d->count; i += LANES)
        PAST(d->e + i, a);
}

static const dscomm_codec_kernels_t *row;

/* Compresses in blocks, like a compressor. */
static void compress(const data_t *d)
{
    double sums[KERNEL_SUMS] = {0};

    for (size_t i = 0; i < d->count; i += BLOCK)
        row->measure(sums, d->x + i, d->e + i, BLOCK);
    for (size_t i = 0; i < d->count; i += BLOCK)
        row->sign(d->x + i, d->e + i, BLOCK, (float)(sums[0] * 1e-30) + 0.5f,
                  d->bits + i / 8);
}

static void decompress(const data_t *d)
{
    for (size_t i = 0; i < d->count; i += BLOCK)
        row->put_signs(d->bits + i / 8, BLOCK, 0.5f, d->count >= 1 << 22,
                       d->e + i);
    atomic_thread_fence(memory_order_seq_cst);
}

typedef void (*task_t)(const data_t *d);

/* Time of one task, repeated for at least a millisecond. */
static double once(task_t task, const data_t *d)
{
    double start = clock_ns(CLOCK_THREAD_CPUTIME_ID), end;
    int times = 0;

    do {
        task(d);
        times++;
        end = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    } while (end - start < 1e6);
    return (end - start) / times / 1e9;
}

static int is_usable(const char *name)
{
    const char *found = strstr(dscomm_kernels(), name);

    return found && (!found[strlen(name)] || found[strlen(name)] == ' ');
}

static void fill(const data_t *d)
{
    uint32_t word = 1;

    for (size_t i = 0; i < d->count; i++) {
        word = word * 1664525 + 1013904223;
        d->x[i] = (float)(int32_t)word / 0x80000000u;
        d->e[i] = 0;
    }
    memset(d->bits, 0x5a, d->count / 8);
}

static void measure(const char *name, task_t task, task_t limit,
                    const data_t *d, int rounds)
{
    static double times[ROWS_MAX + 1][ROUNDS_MAX];
    double best;
    int rows = 0;

    for (int r = 0; r < rounds; r++) {
        times[0][r] = once(limit, d);
        for (rows = 0; (row = dscomm_priv_codec_kernels_row((size_t)rows));
             rows++)
            times[rows + 1][r] = is_usable(row->name) ? once(task, d) : 0;
        fill(d);
    }
    best = median(times[0], (size_t)rounds);
    printf("%10zu  %-10s limit %9.3f ms", d->count, name, best * 1e3);
    for (int i = 0; i < rows; i++) {
        double time = median(times[i + 1], (size_t)rounds);

        if (time > 0)
            printf("  %s %9.3f (%.2f)",
                   dscomm_priv_codec_kernels_row((size_t)i)->name, time * 1e3,
                   best / time);
    }
    printf("\n");
}

static const dscomm_codec_t *codec;
static dscomm_codec_args_t args = {.size = sizeof args};

static void encode_with(const data_t *d, float *e)
{
    size_t block = codec->bytes(&args, BLOCK);

    for (size_t i = 0; i < d->count; i += BLOCK)
        codec->encode(&args, 0.5f, d->x + i, e ? e + i : NULL, BLOCK,
                      d->code + i / BLOCK * block);
}

static void encode(const data_t *d)
{
    encode_with(d, NULL);
}

static void encode_feedback(const data_t *d)
{
    encode_with(d, d->e);
}

static void decode(const data_t *d)
{
    size_t block = codec->bytes(&args, BLOCK);

    for (size_t i = 0; i < d->count; i += BLOCK)
        codec->decode(&args, 0.5f, d->code + i / BLOCK * block, BLOCK,
                      d->e + i);
}

static void measure_codec(const data_t *d, int rounds)
{
    static const struct {
        const char *name;
        task_t task;
    } tasks[] = {{"encode", encode},
                 {"with errors", encode_feedback},
                 {"decode", decode}};
    double times[ROUNDS_MAX];

    args.parameter = codec->parameter;
    printf("%10zu  %-10s", d->count, codec->name);
    for (size_t t = 0; t < sizeof tasks / sizeof *tasks; t++) {
        fill(d);
        encode(d);
        for (int r = 0; r < rounds; r++)
            times[r] = once(tasks[t].task, d);
        printf("  %s %9.3f ms", tasks[t].name,
               median(times, (size_t)rounds) * 1e3);
    }
    printf("  (%s)\n", dscomm_priv_codec_kernels()->name);
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [-n ROUNDS] [-c CODEC] [ELEMENTS...]\n",
            program);
    return 2;
}

static int run(size_t count, int rounds)
{
    data_t d = {.count = (count + BLOCK - 1) / BLOCK * BLOCK};
    size_t bytes = d.count * sizeof(float);

    if (!count || bytes / sizeof(float) < count)
        return 2;
    d.x = aligned_alloc(4096, bytes);
    d.e = aligned_alloc(4096, bytes);
    d.bits = aligned_alloc(64, bytes / 32);
    d.code = aligned_alloc(64, 2 * bytes);
    if (!d.x || !d.e || !d.bits || !d.code) {
        fprintf(stderr, "no memory for %zu elements\n", d.count);
        return 1;
    }
    fill(&d);
    if (codec) {
        measure_codec(&d, rounds);
    } else {
        measure("compress", compress, limit_compress, &d, rounds);
        measure("decompress", decompress, limit_decompress, &d, rounds);
    }
    free(d.code);
    free(d.x);
    free(d.e);
    free(d.bits);
    return 0;
}

int main(int argc, char **argv)
{
    static const size_t standard[] = {1 << 16, 1 << 20, 1 << 22, 1 << 24,
                                      1 << 26};
    int option, rounds = 15, status = 0;

    while ((option = getopt(argc, argv, "n:c:")) != -1) {
        if (option == 'n')
            rounds = atoi(optarg);
        else if (option != 'c' || !(codec = dscomm_codec_find(optarg)))
            return usage(argv[0]);
    }
    if (rounds < 1 || rounds > ROUNDS_MAX)
        return usage(argv[0]);
    for (int i = optind; i < argc && !status; i++)
        status = run(strtoull(argv[i], NULL, 0), rounds);
    for (size_t i = 0; i < 5 && optind == argc && !status; i++)
        status = run(standard[i], rounds);
    return status == 2 ? usage(argv[0]) : status;
}
