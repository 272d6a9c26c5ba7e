/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast the kernels of the module cuda.so are, relative to a copy on the
 * device, and whether they give the same results twice; how fast copies from
 * and to the host are, and whether writing rows directly to the host is faster.
 * The bytes of a kernel are those that it must transfer. Arguments: log2 of the
 * elements (28), and GB/s of the link to the host, one way, if known. */
#include "config.h"

#include "tests/compression/fake-device.h"
#include "tests/tap.h"

#include <glib.h>
#include <stdint.h>
#include <string.h>

#define ALIGN 16
#define SAMPLES 30
#define AT_A_TIME 10 /* launches between two readings of the clock */
#define ROWS_MAX 16

static const dscomm_device_ops_t *ops;
static dscomm_device_queue_t *queue;
static size_t count, row; /* number of elements; bytes of a row for them */
static char *x, *c, *next, *rows, *result;
static float *scales;
static double reference; /* bytes a second */

static void must(int code)
{
    if (code)
        bail("device: %s", ops->text(code));
}

static void *take(size_t bytes)
{
    void *memory = NULL;

    must(ops->alloc(queue, bytes, 0, &memory));
    return memory;
}

/* Fills device memory with numbers of random signs, a piece at a time. */
static void fill(char *to, size_t floats)
{
    enum { PIECE = 1 << 22 };
    float *numbers = g_new(float, PIECE);
    uint64_t state = 88172645463325252u;

    for (size_t i = 0; i < PIECE; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        numbers[i] = (float)(int32_t)(state >> 32) / 0x80000000u;
    }
    for (size_t i = 0; i < floats; i += PIECE) {
        size_t bytes = MIN(PIECE, floats - i) * sizeof *numbers;

        must(ops->copy(queue, to + i * sizeof *numbers, bytes, numbers, bytes,
                       bytes, 1));
        must(ops->sync(queue));
    }
    g_free(numbers);
}

typedef int (*launch_t)(int argument);

static int by_time(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;

    return (d > 0) - (d < 0);
}

/* Returns the median time of one launch, in seconds. */
static double seconds(launch_t launch, int argument)
{
    double times[SAMPLES];

    for (int i = -2; i < SAMPLES; i++) {
        gint64 begin = g_get_monotonic_time();

        for (int k = 0; k < AT_A_TIME; k++)
            must(launch(argument));
        must(ops->sync(queue));
        if (i >= 0)
            times[i] =
                (double)(g_get_monotonic_time() - begin) * 1e-6 / AT_A_TIME;
    }
    qsort(times, SAMPLES, sizeof *times, by_time);
    return times[SAMPLES / 2];
}

static int copy(int argument)
{
    (void)argument;
    return ops->copy(queue, next, count * 4, c, count * 4, count * 4, 1);
}

static dscomm_device_rows_t rows_for(size_t ranks, size_t chunk)
{
    return (dscomm_device_rows_t){rows, row, ranks, chunk};
}

/* Leaves the first array of errors unchanged, so that the call can be
 * repeated. */
static int work_to(int format, char *first)
{
    dscomm_device_worker_t args = {
        .format = (dscomm_device_format_t)format,
        .x = x,
        .count = count,
        .padded = count,
        .c = (float *)(void *)c,
        .s = scales,
        .next = (float *)(void *)next,
        .ret_s = scales + 1,
        .rows = {first, row, 1, count},
    };

    return ops->worker(queue, &args, 1);
}

static int worker(int format)
{
    return work_to(format, rows);
}

static int server(int ranks)
{
    dscomm_device_server_t args = {
        .rows = rows_for((size_t)ranks, count),
        .factor = 1.0f / (float)ranks,
        .count = count,
        .c = (float *)(void *)next,
        .s = scales + 2,
        .ret_row = result,
    };

    return ops->server(queue, &args, 1);
}

static int unpack(int format)
{
    dscomm_device_unpack_t args = {(dscomm_device_format_t)format,
                                   rows_for(1, count),
                                   count,
                                   0,
                                   count,
                                   next};

    return ops->unpack(queue, &args, 1);
}

static int materialise(int argument)
{
    dscomm_device_materialise_t args = {(float *)(void *)next, scales + 2,
                                        count};

    (void)argument;
    return ops->materialise(queue, &args);
}

static void rate(const char *what, launch_t launch, int argument,
                 double bytes_each, double bar)
{
    double time = seconds(launch, argument);
    double is = bytes_each * (double)count / time;

    ok(is >= bar * reference,
       "%-18s %8.3f ms %6.2f TB/s %5.1f %% of the copy, bar %2.0f %%", what,
       time * 1e3, is * 1e-12, 100 * is / reference, 100 * bar);
}

/* Returns a fingerprint of so many bytes on the device. */
static char *sum_of(const char *from, size_t bytes)
{
    char *host = g_malloc(bytes), *sum;

    must(ops->copy(queue, host, bytes, from, bytes, bytes, 1));
    must(ops->sync(queue));
    sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (guchar *)host, bytes);
    g_free(host);
    return sum;
}

/* Copies from and to pinned host memory. */
enum { PIECE_BYTES = 256 << 20 };
static char *host;

static int from_host(int argument)
{
    (void)argument;
    return ops->copy(queue, next, PIECE_BYTES, host, PIECE_BYTES, PIECE_BYTES,
                     1);
}

static int to_host(int argument)
{
    (void)argument;
    return ops->copy(queue, host, PIECE_BYTES, next, PIECE_BYTES, PIECE_BYTES,
                     1);
}

static void link_rate(const char *what, launch_t launch, double link)
{
    double is = PIECE_BYTES / seconds(launch, 0) * 1e-9;

    if (link > 0)
        ok(is >= 0.8 * link, "%-18s %6.1f GB/s of %.1f, bar 80 %%", what, is,
           link);
    else
        ok(is > 0, "%-18s %6.1f GB/s; the link's rate is not known", what, is);
}

/* The worker's row is copied to the host, or it is written to host memory. */
static int worker_to_host(int is_mapped)
{
    int code = work_to(DSCOMM_DEVICE_FLOAT32, is_mapped ? host : rows);

    return code || is_mapped ? code
                             : ops->copy(queue, host, row, rows, row, row, 1);
}

static void host_rates(double link)
{
    double copied, mapped;

    must(ops->alloc(queue, MAX(row, PIECE_BYTES), 1, (void **)&host));
    if (count * 4 >= PIECE_BYTES) {
        link_rate("from pinned memory", from_host, link);
        link_rate("to pinned memory", to_host, link);
    }
    copied = seconds(worker_to_host, 0);
    mapped = seconds(worker_to_host, 1);
    printf("# worker and its row to the host: %.3f ms by a copy, %.3f ms "
           "written there\n",
           copied * 1e3, mapped * 1e3);
    ops->release(queue, 1, host);
}

/* Fingerprints of the results of a worker, a server and an unpack with equal
 * inputs. */
static char *all_kernels(void)
{
    size_t some = MIN(count * 4, (size_t)64 << 20);
    char *sums[5], *all;

    must(ops->clear(queue, next, count * 4));
    must(ops->clear(queue, scales, 3 * sizeof *scales));
    must(ops->clear(queue, rows, row));
    must(worker(DSCOMM_DEVICE_FLOAT32));
    sums[0] = sum_of(rows, row);
    sums[1] = sum_of(next, some);
    must(ops->clear(queue, result, row));
    must(server(8));
    sums[2] = sum_of(result, row);
    sums[3] = sum_of(next, some);
    must(unpack(DSCOMM_DEVICE_FLOAT32));
    sums[4] = sum_of(next, some);
    all = g_strconcat(sums[0], sums[1], sums[2], sums[3], sums[4], NULL);
    for (int i = 0; i < 5; i++)
        g_free(sums[i]);
    return all;
}

static void repeat(void)
{
    char *first = all_kernels();
    int same = 1;

    for (int i = 1; i < 20; i++) {
        char *again = all_kernels();

        same &= !strcmp(first, again);
        g_free(again);
    }
    g_free(first);
    ok(same, "20 times worker, server, unpack: the same bits, scales, errors");
}

/* The least time of a kernel whose end is waited for. */
static int one(int argument)
{
    dscomm_device_unpack_t args = {
        DSCOMM_DEVICE_FLOAT32, rows_for(1, 1), 1, 0, 1, next};
    int code = ops->unpack(queue, &args, 1);

    (void)argument;
    return code ? code : ops->sync(queue);
}

static void prepare(void)
{
    row = (DSCOMM_DEVICE_HEADER + count / 8 + ALIGN - 1) / ALIGN * ALIGN;
    x = take(count * 4);
    c = take(count * 4);
    next = take(count * 4);
    rows = take(row * ROWS_MAX);
    result = take(row);
    scales = take(3 * sizeof *scales);
    fill(x, count);
    fill(c, count);
    fill(rows, row * ROWS_MAX / 4);
    must(ops->clear(queue, scales, 3 * sizeof *scales));
    for (size_t r = 0; r < ROWS_MAX; r++) /* scales are numbers */
        must(ops->copy(queue, rows + r * row, 4, x, 4, 4, 1));
}

int main(int argc, char **argv)
{
    count = (size_t)1 << (argc > 1 ? atoi(argv[1]) : 28);
    ops = fake_device_table();
    must(ops->open(0, &queue));
    prepare();
    reference = 8 * (double)count / seconds(copy, 0);
    printf("# %zu elements; a copy on the device: %.2f TB/s read and written\n",
           count, reference * 1e-12);
    printf("# a launch and its end: %.1f us\n", seconds(one, 0) * 1e6);
    repeat();
    rate("worker float32", worker, DSCOMM_DEVICE_FLOAT32, 12.125, 0.85);
    rate("worker float16", worker, DSCOMM_DEVICE_FLOAT16, 10.125, 0.85);
    rate("worker bfloat16", worker, DSCOMM_DEVICE_BFLOAT16, 10.125, 0.85);
    rate("server p=2", server, 2, 8.125 + 2 / 8.0, 0.85);
    rate("server p=4", server, 4, 8.125 + 4 / 8.0, 0.85);
    rate("server p=8", server, 8, 8.125 + 8 / 8.0, 0.85);
    rate("server p=16", server, 16, 8.125 + 16 / 8.0, 0.70);
    rate("unpack float32", unpack, DSCOMM_DEVICE_FLOAT32, 4.125, 0.85);
    rate("unpack float16", unpack, DSCOMM_DEVICE_FLOAT16, 2.125, 0.85);
    rate("materialise", materialise, 0, 8, 0.85);
    host_rates(argc > 2 ? g_ascii_strtod(argv[2], NULL) : 0);
    return tap_done();
}
