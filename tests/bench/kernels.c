/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast the reduction kernels are: GB/s of result, the median of a few
 * rounds, one line a dtype and one column an operator, and memcpy of as many
 * bytes for comparison.
 *
 *   kernels [SOURCES [BYTES [ROW]]]      defaults: 2 65536 c */
#include "config.h"

#include "lib/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 7, SOURCES_MAX = 64 };

typedef struct {
    const dscomm_kernels_t *row;
    size_t nsources, bytes;
    unsigned char *dest;
    void *sources[SOURCES_MAX];
    double factors[SOURCES_MAX];
} bench_t;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* kernel NULL: memcpy. */
static void run(const bench_t *bench, dscomm_reduce_fn kernel, size_t count)
{
    if (kernel)
        kernel(bench->dest, (const void *const *)bench->sources,
               bench->nsources, count, bench->factors);
    else
        memcpy(bench->dest, bench->sources[0], bench->bytes);
    __asm__ volatile("" : : "r"(bench->dest) : "memory");
}

static double gigabytes(const bench_t *bench, dscomm_reduce_fn kernel,
                        size_t count)
{
    double rounds[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        double start = seconds(), took;
        size_t runs = 0;

        do {
            run(bench, kernel, count);
            runs++;
            took = seconds() - start;
        } while (took < 0.004);
        rounds[i] = (double)bench->bytes * (double)runs / took * 1e-9;
    }
    qsort(rounds, ROUNDS, sizeof rounds[0], ascending);
    return rounds[ROUNDS / 2];
}

/* Bytes that are modest numbers in every type, and no zeros. */
static int prepare(bench_t *bench)
{
    bench->dest = aligned_alloc(64, (bench->bytes + 63) / 64 * 64);
    if (!bench->dest)
        return -1;
    memset(bench->dest, 0, bench->bytes);
    for (size_t s = 0; s < bench->nsources; s++) {
        bench->sources[s] = aligned_alloc(64, (bench->bytes + 63) / 64 * 64);
        if (!bench->sources[s])
            return -1;
        memset(bench->sources[s], 0x3f, bench->bytes);
        bench->factors[s] = (double)bench->nsources;
    }
    return 0;
}

static void print_table(const bench_t *bench)
{
    printf("%-12s", bench->row->name);
    for (int op = 0; op < DSCOMM_OP_COUNT; op++)
        printf(" %10s", dscomm_op_name(op));
    printf("\n");
    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++) {
        printf("%-12s", dscomm_dtype_name(dtype));
        for (int op = 0; op < DSCOMM_OP_COUNT; op++) {
            dscomm_reduce_fn kernel = bench->row->table[dtype][op];

            if (kernel)
                printf(" %10.1f",
                       gigabytes(bench, kernel,
                                 bench->bytes / dscomm_dtype_size(dtype)));
            else
                printf(" %10s", "-");
        }
        printf("\n");
    }
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

int main(int argc, char **argv)
{
    static bench_t bench;

    bench.nsources = argc > 1 ? strtoul(argv[1], NULL, 10) : 2;
    bench.bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 65536;
    bench.row = row_named(argc > 3 ? argv[3] : "c");
    if (!bench.row || bench.nsources < 1 || bench.nsources > SOURCES_MAX ||
        bench.bytes < 8) {
        fprintf(stderr, "usage: %s [SOURCES (1-%d) [BYTES [ROW]]]\n", argv[0],
                SOURCES_MAX);
        return 2;
    }
    if (prepare(&bench) < 0) {
        perror("kernels");
        return 1;
    }
    printf("%zu sources of %zu bytes, GB/s of result; memcpy %.1f\n",
           bench.nsources, bench.bytes, gigabytes(&bench, NULL, 0));
    print_table(&bench);
    for (size_t s = 0; s < bench.nsources; s++)
        free(bench.sources[s]);
    free(bench.dest);
    return 0;
}
