/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressors on buffers of a device. Its driver is tests/lib/device/driver.c,
 * without a runtime, so the work is done on a copy; or there is a real device.
 * Results are those of host memory. Arguments: counts of elements (5000);
 * before them, -r and a number of calls with each, at any times. A rank that
 * passes prints "content", the last count and the milliseconds of a call. */
#include "config.h"

#include <dscomm/compression.h>
#include <dscomm/dscomm.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT 5000
#define LARGE 10000000
#define CALLS 3
#define TIMED 10

static int rounds = CALLS;
static int (*take)(uint64_t *pointer, size_t bytes);
static int (*to_host)(void *dest, uint64_t source, size_t bytes);
static int (*to_device)(uint64_t dest, const void *source, size_t bytes);
static int (*push)(void *context);
static int (*attribute)(void *value, int which, uint64_t pointer);
static int (*init)(unsigned flags);
static int (*retain)(void **context, int device);

static void need(int cond, const char *what)
{
    if (cond)
        return;
    fprintf(stderr, "not so: %s (%s)\n", what, dscomm_last_error());
    exit(3);
}

static void load(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);

    need(handle != NULL, "there is a libcuda");
    *(void **)&take = dlsym(handle, "cuMemAlloc_v2");
    *(void **)&to_host = dlsym(handle, "cuMemcpyDtoH_v2");
    *(void **)&to_device = dlsym(handle, "cuMemcpyHtoD_v2");
    *(void **)&push = dlsym(handle, "cuCtxPushCurrent_v2");
    *(void **)&attribute = dlsym(handle, "cuPointerGetAttribute");
    *(void **)&init = dlsym(handle, "cuInit");
    *(void **)&retain = dlsym(handle, "cuDevicePrimaryCtxRetain");
}

/* The fake device has a context for its memory only. */
static uint64_t memory_of_device(size_t bytes)
{
    void *context = NULL;
    uint64_t x = 0;

    if (init)
        need(!init(0) && !retain(&context, 0) && !push(context), "a context");
    need(!take(&x, bytes), "memory of the device");
    if (!init)
        need(!attribute(&context, 1, x) && !push(context), "a context");
    return x;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void fill(float *x, size_t count, int seed)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(((int)(i % 65521) * 79 + seed) % 1000 - 500);
}

/* While a call is outstanding, another compressor is made, for which the window
 * has no room; ranks come to that one by one. */
static void reduce(dscomm_group_t *world, dscomm_compressor_t *there, void *x,
                   size_t larger)
{
    dscomm_compressor_t *other = NULL;
    dscomm_work_t *work = NULL;

    DSCOMM_CHECK(dscomm_compressor_all_reduce(there, x, DSCOMM_FLOAT32,
                                              larger ? &work : NULL));
    if (!larger)
        return;
    usleep(5000 * (useconds_t)dscomm_group_rank(world));
    DSCOMM_CHECK(dscomm_onebit_create(world, larger, NULL, &other));
    DSCOMM_CHECK(dscomm_work_wait(work, -1));
    dscomm_work_free(work);
    DSCOMM_CHECK(dscomm_compressor_free(other));
}

/* Returns the milliseconds of a call. */
static double run(dscomm_group_t *world, size_t count)
{
    float *got = malloc(count * sizeof *got);
    float *want = malloc(count * sizeof *want);
    uint64_t device = memory_of_device(count * sizeof *got);
    void *x = (void *)(uintptr_t)device;
    dscomm_compressor_t *there, *here;
    double begin;

    need(got && want, "memory");
    DSCOMM_CHECK(dscomm_onebit_create(world, count, NULL, &there));
    DSCOMM_CHECK(dscomm_onebit_create(world, count, NULL, &here));
    for (int call = 0; call < rounds; call++) {
        if (rounds > CALLS)
            usleep((useconds_t)rand() % 500);
        fill(want, count, call * 31 + dscomm_group_rank(world) * 101);
        need(!to_device(device, want, count * sizeof *want), "a copy to it");
        reduce(world, there, x, call == 1 ? LARGE : 0);
        DSCOMM_CHECK(
            dscomm_compressor_all_reduce(here, want, DSCOMM_FLOAT32, NULL));
        need(!to_host(got, device, count * sizeof *got), "a copy from it");
        need(!memcmp(got, want, count * sizeof *got), "the same result");
    }
    begin = now();
    for (int call = 0; call < TIMED; call++)
        DSCOMM_CHECK(
            dscomm_compressor_all_reduce(there, x, DSCOMM_FLOAT32, NULL));
    begin = now() - begin;
    DSCOMM_CHECK(dscomm_compressor_free(there));
    DSCOMM_CHECK(dscomm_compressor_free(here));
    free(got);
    free(want);
    return begin / TIMED;
}

int main(int argc, char **argv)
{
    dscomm_group_t *world;
    int first = 1;

    DSCOMM_CHECK(dscomm_init(NULL, &world));
    load();
    if (argc > 2 && !strcmp(argv[1], "-r")) {
        rounds = atoi(argv[2]);
        srand((unsigned)dscomm_group_rank(world));
        first = 3;
    }
    for (int i = first; i < argc || i == first; i++) {
        size_t count = i < argc ? strtoull(argv[i], NULL, 10) : COUNT;
        double time = run(world, count);

        printf("content %zu elements, %.3f ms\n", count, time);
    }
    DSCOMM_CHECK(dscomm_finalize(world));
    return 0;
}
