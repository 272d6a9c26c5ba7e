/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast the reduction kernels are: GB/s of results of every row that runs on
 * this processor. For comparison, the speed of memory: the faster of two loops
 * that only combine their sources by an or; one stores to the cache, one past
 * it. All alternate; a figure is the median over rounds, in processor time of
 * this thread.
 *
 *   kernels [-s SOURCES] [-b BYTES,...] [-d DTYPE] [-o OP] [-n ROUNDS] [-i]
 *
 * Defaults: two sources of 4 KiB, 128 KiB and 64 MiB, all dtypes and operators,
 * 15 rounds. -i: the first source is the destination. */
#include "config.h"

#include "lib/base/cpu.h"
#include "lib/reduce/kernels.h"
#include "tests/bench/bench.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MAX = 101, SOURCES_MAX = 64, ROWS_MAX = 8, SIZES_MAX = 8 };

#define BYTES_MAX ((size_t)1 << 32)
#define BATCH 100e3 /* nanoseconds, at least */

typedef struct {
    size_t nsources, bytes, largest, rounds;
    int in_place;
    unsigned char *buffers[SOURCES_MAX + 1];
    const void *sources[SOURCES_MAX];
    double factors[SOURCES_MAX];
    unsigned char *dest;
} bench_t;

typedef struct {
    const char *name;
    dscomm_reduce_fn run; /* NULL: none */
    double rounds[ROUNDS_MAX], median;
} column_t;

/* The speed of memory */

#if defined(__x86_64__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2")))
typedef __m256i wide_t;
#define WIDE_LOAD(at) _mm256_loadu_si256((const __m256i *)(at))
#define WIDE_STORE(at, x) _mm256_store_si256((__m256i *)(at), x)
#define WIDE_PAST(at, x) _mm256_stream_si256((__m256i *)(at), x)
#define WIDE_OR(a, b) _mm256_or_si256(a, b)
#define WIDE_DONE() _mm_sfence()
#else
#define WIDE
typedef uint64_t wide_t __attribute__((vector_size(16), may_alias));
#define WIDE_LOAD(at) (*(const wide_t *)(at))
#define WIDE_STORE(at, x) (*(wide_t *)(at) = (x))
#define WIDE_PAST WIDE_STORE
#define WIDE_OR(a, b) ((a) | (b))
#define WIDE_DONE() ((void)0)
#endif

#define LIMIT(name, store)                                                     \
    WIDE static void name(void *dest, const void *const *sources, size_t n,    \
                          size_t bytes, const double *factors)                 \
    {                                                                          \
        const size_t w = sizeof(wide_t);                                       \
        unsigned char *to = dest;                                              \
                                                                               \
        (void)factors;                                                         \
        for (size_t at = 0; at + 4 * w <= bytes; at += 4 * w) {                \
            const unsigned char *from = (const unsigned char *)sources[0];     \
            wide_t a = WIDE_LOAD(from + at), b = WIDE_LOAD(from + at + w);     \
            wide_t c = WIDE_LOAD(from + at + 2 * w);                           \
            wide_t d = WIDE_LOAD(from + at + 3 * w);                           \
                                                                               \
            for (size_t s = 1; s < n; s++) {                                   \
                from = (const unsigned char *)sources[s] + at;                 \
                a = WIDE_OR(a, WIDE_LOAD(from));                               \
                b = WIDE_OR(b, WIDE_LOAD(from + w));                           \
                c = WIDE_OR(c, WIDE_LOAD(from + 2 * w));                       \
                d = WIDE_OR(d, WIDE_LOAD(from + 3 * w));                       \
            }                                                                  \
            store(to + at, a);                                                 \
            store(to + at + w, b);                                             \
            store(to + at + 2 * w, c);                                         \
            store(to + at + 3 * w, d);                                         \
        }                                                                      \
        WIDE_DONE();                                                           \
    }

LIMIT(limit_plain, WIDE_STORE)
LIMIT(limit_past, WIDE_PAST)

static void call(const bench_t *bench, dscomm_reduce_fn run, size_t count,
                 size_t times)
{
    for (size_t i = 0; i < times; i++)
        run(bench->dest, bench->sources, bench->nsources, count,
            bench->factors);
}

/* The first call is not timed: it finds the cache as the column before left
 * it. */
static double batch(const bench_t *bench, dscomm_reduce_fn run, size_t count)
{
    size_t runs = 0, burst = bench->bytes < 65536 ? 65536 / bench->bytes : 1;
    double start, took;

    call(bench, run, count, 1);
    start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    do {
        call(bench, run, count, burst);
        runs += burst;
        took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    } while (took < BATCH);
    return (double)bench->bytes * (double)runs / took;
}

/* Measures the columns alternately. */
static void measure(const bench_t *bench, column_t *columns, size_t ncolumns,
                    size_t element)
{
    for (size_t round = 0; round < bench->rounds; round++) {
        for (size_t i = 0; i < ncolumns; i++) {
            int limit = i < 2;

            if (columns[i].run)
                columns[i].rounds[round] =
                    batch(bench, columns[i].run,
                          limit ? bench->bytes : bench->bytes / element);
        }
    }
    for (size_t i = 0; i < ncolumns; i++)
        columns[i].median = median(columns[i].rounds, bench->rounds);
}

/* The output */

static size_t rows(column_t *columns)
{
    const dscomm_kernels_t *row;
    size_t n = 0;

    for (size_t i = 0; (row = dscomm_priv_kernels_row(i)); i++) {
        if (!(row->cpu & ~dscomm_priv_cpu_features()) && n < ROWS_MAX)
            columns[n++].name = row->name;
    }
    return n;
}

static const dscomm_kernels_t *row_named(const char *name)
{
    const dscomm_kernels_t *row;

    for (size_t i = 0; (row = dscomm_priv_kernels_row(i)); i++) {
        if (strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

static void print_line(const bench_t *bench, dscomm_dtype_t dtype,
                       dscomm_op_t op)
{
    static column_t columns[ROWS_MAX + 2];
    size_t n = 2 + rows(columns + 2);
    double limit, best = 0;

    columns[0].run = limit_plain;
    columns[1].run = bench->in_place ? limit_plain : limit_past;
    for (size_t i = 2; i < n; i++)
        columns[i].run = row_named(columns[i].name)->table[dtype][op];
    measure(bench, columns, n, dscomm_dtype_size(dtype));
    limit = columns[0].median;
    if (columns[1].median > limit)
        limit = columns[1].median;
    printf("%-12s %-10s %7.1f", dscomm_dtype_name(dtype), dscomm_op_name(op),
           limit);
    for (size_t i = 2; i < n; i++) {
        double value = columns[i].median;

        if (columns[i].run) {
            printf(" %7.2f", value);
            best = value > best ? value : best;
        } else {
            printf(" %7s", "-");
        }
    }
    printf(" %7.2f\n", best / limit);
    fflush(stdout);
}

static void print_table(const bench_t *bench, int dtype, int op)
{
    column_t columns[ROWS_MAX];
    size_t n = rows(columns);

    printf("%zu sources of %zu bytes%s, GB/s of result\n%-12s %-10s %7s",
           bench->nsources, bench->bytes, bench->in_place ? ", in place" : "",
           "dtype", "op", "limit");
    for (size_t i = 0; i < n; i++)
        printf(" %7s", columns[i].name);
    printf(" %7s\n", "ratio");
    for (int d = 0; d < DSCOMM_DTYPE_COUNT; d++) {
        for (int o = 0; o < DSCOMM_OP_COUNT; o++) {
            if (dscomm_op_applies(o, d) && (dtype < 0 || dtype == d) &&
                (op < 0 || op == o))
                print_line(bench, d, o);
        }
    }
}

/* Fills the buffers with bytes that are moderate numbers, and not zero, in
 * every type. */
static int prepare(bench_t *bench)
{
    for (size_t s = 0; s <= bench->nsources; s++) {
        bench->buffers[s] =
            aligned_alloc(4096, (bench->largest + 4095) / 4096 * 4096);
        if (!bench->buffers[s])
            return -1;
        memset(bench->buffers[s], 0x3f, bench->largest);
    }
    for (size_t s = 0; s < bench->nsources; s++) {
        bench->sources[s] = bench->buffers[s];
        bench->factors[s] = (double)bench->nsources;
    }
    bench->dest = bench->buffers[bench->in_place ? 0 : bench->nsources];
    return 0;
}

/* Refuses the value of an option, for a reason; ends the program. */
static void refuse(int option, const char *value, const char *why)
{
    fprintf(stderr, "kernels: -%c %s: %s\n", option, value, why);
    exit(2);
}

/* Reads a number from 'least' to 'most'; any other value is refused. */
static size_t read_number(int option, const char *text, size_t least,
                          size_t most)
{
    GError *error = NULL;
    guint64 number = 0;

    if (!g_ascii_string_to_unsigned(text, 10, least, most, &number, &error))
        refuse(option, text, error->message);
    return (size_t)number;
}

static size_t read_sizes(const char *text, size_t *sizes, size_t *ret_largest)
{
    char **words = g_strsplit(text, ",", -1);
    const size_t n = g_strv_length(words);

    if (n < 1 || n > SIZES_MAX)
        refuse('b', text, "give from 1 to 8 numbers");
    *ret_largest = 0;
    for (size_t i = 0; i < n; i++) {
        sizes[i] = read_number('b', words[i], 256, BYTES_MAX);
        *ret_largest = MAX(*ret_largest, sizes[i]);
    }
    g_strfreev(words);
    return n;
}

static int usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [-s SOURCES] [-b BYTES,...] [-d DTYPE] [-o OP] "
            "[-n ROUNDS] [-i]\n",
            program);
    return 2;
}

int main(int argc, char **argv)
{
    static bench_t bench = {.nsources = 2, .rounds = 15};
    const char *bytes = "4096,131072,67108864";
    dscomm_dtype_t dtype = (dscomm_dtype_t)-1;
    dscomm_op_t op = (dscomm_op_t)-1;
    size_t sizes[SIZES_MAX], nsizes;
    int option;

    while ((option = getopt(argc, argv, "s:b:d:o:n:i")) != -1) {
        if (option == 's')
            bench.nsources = read_number('s', optarg, 1, SOURCES_MAX);
        else if (option == 'b')
            bytes = optarg;
        else if (option == 'd' && dscomm_dtype_from_name(optarg, &dtype))
            refuse('d', optarg, "no such type");
        else if (option == 'o' && dscomm_op_from_name(optarg, &op))
            refuse('o', optarg, "no such operator");
        else if (option == 'n')
            bench.rounds = read_number('n', optarg, 1, ROUNDS_MAX);
        else if (option == 'i')
            bench.in_place = 1;
        else if (option == '?')
            return usage(argv[0]);
    }
    if (optind < argc)
        return usage(argv[0]);
    nsizes = read_sizes(bytes, sizes, &bench.largest);
    if (prepare(&bench) < 0) {
        perror("kernels");
        return 1;
    }
    for (size_t i = 0; i < nsizes; i++) {
        bench.bytes = sizes[i];
        print_table(&bench, (int)dtype, (int)op);
    }
    for (size_t s = 0; s <= bench.nsources; s++)
        free(bench.buffers[s]);
    return 0;
}
