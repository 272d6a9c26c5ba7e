/* SPDX-License-Identifier: BSD-3-Clause */
/* Compressors on buffers of a device whose driver there is, fake-cuda.c, but no
 * runtime for it: the work is done on a copy. A rank that is content prints
 * "content". */
#include "config.h"

#include <dscomm/compression.h>
#include <dscomm/dscomm.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 5000
#define CALLS 3

static int (*take)(uint64_t *pointer, size_t bytes);
static int (*to_host)(void *dest, uint64_t source, size_t bytes);
static int (*to_device)(uint64_t dest, const void *source, size_t bytes);
static int (*push)(void *context);
static int (*attribute)(void *value, int which, uint64_t pointer);

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
}

int main(void)
{
    static float got[COUNT], want[COUNT];
    dscomm_onebit_t *there, *here;
    dscomm_group_t *world;
    void *context = NULL;
    uint64_t x;

    DSCOMM_CHECK(dscomm_init(NULL, &world));
    load();
    need(!take(&x, sizeof got) && !attribute(&context, 1, x) && !push(context),
         "memory of the device");
    DSCOMM_CHECK(dscomm_onebit_create(world, COUNT, NULL, &there));
    DSCOMM_CHECK(dscomm_onebit_create(world, COUNT, NULL, &here));
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < COUNT; i++)
            want[i] = (float)((i * 7919 + call * 31 +
                               dscomm_group_rank(world) * 101) %
                                  1000 -
                              500);
        need(!to_device(x, want, sizeof want), "a copy to it");
        DSCOMM_CHECK(dscomm_onebit_all_reduce(there, (void *)(uintptr_t)x,
                                              DSCOMM_FLOAT32, NULL));
        DSCOMM_CHECK(
            dscomm_onebit_all_reduce(here, want, DSCOMM_FLOAT32, NULL));
        need(!to_host(got, x, sizeof got), "a copy from it");
        need(!memcmp(got, want, sizeof got), "the same result");
    }
    DSCOMM_CHECK(dscomm_onebit_free(there));
    DSCOMM_CHECK(dscomm_onebit_free(here));
    DSCOMM_CHECK(dscomm_finalize(world));
    printf("content\n");
    return 0;
}
