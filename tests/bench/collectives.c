/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of collectives and of a ping-pong, to compare with another library's on
 * the same machine in the same minutes. Not a test.
 *
 *     dscomm run -n 2 tests/bench/collectives [-o OPS] [-b BYTES] [-e BYTES]
 *         [-f FACTOR] [-t MS] [-m] [-u]
 *
 * OPS is a comma-separated list (all_reduce, broadcast, all_gather,
 * reduce_scatter, all_to_all, barrier, pingpong). Rank r is bound to processor
 * r modulo their number; -u leaves ranks unbound. -m takes buffers from
 * dscomm_mem_alloc. A figure is the median over batches of the mean time of one
 * call in the slowest rank; bytes are those of the message (broadcast,
 * all_reduce, pingpong, which is one way), of the gathered result, or of one
 * rank's input. Buffers hold 0x3f bytes, since lines of zeros can be stored
 * faster than others. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dscomm/dscomm.h>

#define BATCHES 11

typedef struct {
    dscomm_group_t *world;
    int rank, size;
    void *send, *recv;
} bench_t;

typedef dscomm_status_t (*run_t)(bench_t *bench, size_t bytes, int i);

static dscomm_status_t run_all_reduce(bench_t *b, size_t bytes, int i)
{
    (void)i;
    return dscomm_all_reduce(b->world, b->send, b->recv, bytes / 4,
                             DSCOMM_FLOAT32, DSCOMM_SUM, NULL);
}

/* The root rotates, so that it cannot run ahead. */
static dscomm_status_t run_broadcast(bench_t *b, size_t bytes, int i)
{
    return dscomm_broadcast(b->world, b->send, bytes, DSCOMM_UINT8, i % b->size,
                            NULL);
}

static dscomm_status_t run_all_gather(bench_t *b, size_t bytes, int i)
{
    (void)i;
    return dscomm_all_gather(b->world, b->send, b->recv,
                             bytes / (size_t)b->size, DSCOMM_UINT8, NULL);
}

static dscomm_status_t run_reduce_scatter(bench_t *b, size_t bytes, int i)
{
    (void)i;
    return dscomm_reduce_scatter(b->world, b->send, b->recv,
                                 bytes / 4 / (size_t)b->size, DSCOMM_FLOAT32,
                                 DSCOMM_SUM, NULL);
}

static dscomm_status_t run_all_to_all(bench_t *b, size_t bytes, int i)
{
    (void)i;
    return dscomm_all_to_all(b->world, b->send, b->recv,
                             bytes / (size_t)b->size, DSCOMM_UINT8, NULL);
}

static dscomm_status_t run_barrier(bench_t *b, size_t bytes, int i)
{
    (void)bytes;
    (void)i;
    return dscomm_barrier(b->world, NULL);
}

static dscomm_status_t run_pingpong(bench_t *b, size_t bytes, int i)
{
    dscomm_status_t status;

    (void)i;
    if (b->rank > 1)
        return DSCOMM_OK;
    if (b->rank == 0) {
        status = dscomm_send(b->world, b->send, bytes, DSCOMM_UINT8, 1, 7);
        return status ? status
                      : dscomm_recv(b->world, b->recv, bytes, DSCOMM_UINT8, 1,
                                    7, NULL, NULL);
    }
    status =
        dscomm_recv(b->world, b->recv, bytes, DSCOMM_UINT8, 0, 7, NULL, NULL);
    return status ? status
                  : dscomm_send(b->world, b->send, bytes, DSCOMM_UINT8, 0, 7);
}

static const struct {
    const char *name;
    run_t run;
} operations[] = {
    {"all_reduce", run_all_reduce}, {"broadcast", run_broadcast},
    {"all_gather", run_all_gather}, {"reduce_scatter", run_reduce_scatter},
    {"all_to_all", run_all_to_all}, {"barrier", run_barrier},
    {"pingpong", run_pingpong}};

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Mean time of a call over count calls, in the slowest rank. */
static double batch(bench_t *bench, run_t run, size_t bytes, int count)
{
    double time, slowest;

    DSCOMM_CHECK(dscomm_barrier(bench->world, NULL));
    time = now_us();
    for (int i = 0; i < count; i++)
        DSCOMM_CHECK(run(bench, bytes, i));
    time = (now_us() - time) / count;
    DSCOMM_CHECK(dscomm_all_reduce(bench->world, &time, &slowest, 1,
                                   DSCOMM_FLOAT64, DSCOMM_MAX, NULL));
    return run == run_pingpong ? slowest / 2 : slowest;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Calls a batch, so that all batches take about budget_us. */
static int batch_size(bench_t *bench, run_t run, size_t bytes, double budget_us)
{
    double one = batch(bench, run, bytes, 1);
    double wanted;

    one = batch(bench, run, bytes, one < 1000 ? 20 : 2);
    wanted = budget_us / BATCHES / one;
    return wanted < 1 ? 1 : wanted > 20000 ? 20000 : (int)wanted;
}

static void measure(bench_t *bench, const char *name, run_t run, size_t bytes,
                    double budget_us)
{
    int count = batch_size(bench, run, bytes, budget_us);
    double times[BATCHES];

    batch(bench, run, bytes, count);
    for (int i = 0; i < BATCHES; i++)
        times[i] = batch(bench, run, bytes, count);
    qsort(times, BATCHES, sizeof *times, compare);
    if (bench->rank == 0)
        printf("dscomm,%s,%d,%zu,%.3f,%.3f,%.3f,%d,%d\n", name, bench->size,
               run == run_barrier ? 0 : bytes, times[BATCHES / 2], times[0],
               times[BATCHES * 9 / 10], BATCHES, count);
    fflush(stdout);
}

static void bind_self(int rank)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)(rank % sysconf(_SC_NPROCESSORS_ONLN)), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *buffer(bench_t *bench, size_t bytes, int shared)
{
    void *memory = NULL;

    if (shared)
        DSCOMM_CHECK(dscomm_mem_alloc(bench->world, bytes, &memory));
    else if (posix_memalign(&memory, 4096, bytes)) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(memory, 0x3f, bytes);
    return memory;
}

static int listed(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') &&
            (at[length] == 0 || at[length] == ','))
            return 1;
    return 0;
}

static void usage(void)
{
    fprintf(stderr, "usage: collectives [-o OPS] [-b BYTES] [-e BYTES] "
                    "[-f FACTOR] [-t MS] [-m] [-u]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    const char *wanted = NULL;
    size_t low = 8, high = (size_t)16 << 20, factor = 4;
    int shared = 0, bound = 1, option;
    double budget_ms = 150;
    bench_t bench;

    while ((option = getopt(argc, argv, "o:b:e:f:t:mu")) != -1) {
        switch (option) {
        case 'o':
            wanted = optarg;
            break;
        case 'b':
            low = strtoull(optarg, NULL, 0);
            break;
        case 'e':
            high = strtoull(optarg, NULL, 0);
            break;
        case 'f':
            factor = strtoull(optarg, NULL, 0);
            break;
        case 't':
            budget_ms = atof(optarg);
            break;
        case 'm':
            shared = 1;
            break;
        case 'u':
            bound = 0;
            break;
        default:
            usage();
        }
    }
    if (!low || high < low || factor < 2)
        usage();
    DSCOMM_CHECK(dscomm_init(NULL, &bench.world));
    bench.rank = dscomm_group_rank(bench.world);
    bench.size = dscomm_group_size(bench.world);
    if (bound)
        bind_self(bench.rank);
    bench.send = buffer(&bench, high, shared);
    bench.recv = buffer(&bench, high, shared);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (size_t bytes = low; bytes <= high; bytes *= factor) {
            if (wanted && !listed(wanted, operations[i].name))
                break;
            measure(&bench, operations[i].name, operations[i].run, bytes,
                    budget_ms * 1e3);
            if (operations[i].run == run_barrier)
                break;
        }
    if (!shared) {
        free(bench.send);
        free(bench.recv);
    }
    DSCOMM_CHECK(dscomm_finalize(bench.world));
    return 0;
}
