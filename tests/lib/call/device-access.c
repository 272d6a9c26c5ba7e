/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets of memory of a device, which is emulated by
 * tests/lib/device/driver.c, over the backend of tests/lib/work/thread.c: that
 * copies by the dma-bufs that it is given. */
#include "config.h"

#include "tests/descriptors.h"
#include "tests/lib/work/ranks.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)20000)
#define FIRST 4321 /* of those that are registered: in a page */
#define PART ((size_t)9000) /* that are registered */
#define HALF (PART / 2)

/* The backend of threads reaches memory if it is not 0, and adds what is
 * registered. */
__attribute__((visibility("default"))) int thread_registers = 1;

static int (*take)(uint64_t *pointer, size_t bytes);
static int (*give)(uint64_t pointer);
static int *no_dma_buf, *fails; /* the driver's */
static void (**waiting)(void);
static uint64_t *waits_for;
static unsigned char keys[2][DSCOMM_MEM_KEY_BYTES];

static char *device_new(void)
{
    uint64_t pointer = 0;
    char zeros[BYTES] = {0};

    if (take(&pointer, BYTES))
        bail("no memory of the device");
    dscomm_device_copy((void *)(uintptr_t)pointer, zeros, BYTES, NULL);
    return (char *)(uintptr_t)pointer;
}

static void pattern(char *bytes, size_t count, int seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)(i * 7 + (size_t)seed);
}

/* Whether count bytes on the device, and nothing beside them, are those of the
 * pattern; the rest of BYTES is zero. */
static bool has_pattern(const char *device, size_t first, size_t count,
                        int seed)
{
    char want[BYTES] = {0}, got[BYTES];

    pattern(want + first, count, seed);
    return !dscomm_device_copy(got, device, BYTES, NULL) &&
           !memcmp(want, got, BYTES);
}

static dscomm_status_t barrier(rank_t *self)
{
    return dscomm_barrier(self->world, NULL);
}

/* Rank 0 puts into, and gets from, rank 1's device; its own data are on the
 * host, then on the device. */
static void body_access(rank_t *self)
{
    char *device = device_new(), host[PART], back[PART] = {0};
    dscomm_mem_t *mem = NULL;

    pattern(host, PART, 3);
    CHECK(self, !dscomm_mem_register(self->world, device + FIRST, PART, &mem));
    CHECK(self, !dscomm_mem_key(mem, keys[self->rank]));
    CHECK(self, !barrier(self));
    if (!self->rank) {
        CHECK(self, !dscomm_put(self->world, host, HALF, keys[1], 5, NULL));
        CHECK(self, !dscomm_get(self->world, back, HALF, keys[1], 5, NULL));
        CHECK(self, !memcmp(host, back, HALF));
        FAILS(self, DSCOMM_ERR_INVALID, "are not in the memory",
              dscomm_put(self->world, host, PART, keys[1], 1, NULL));
        CHECK(self, !dscomm_get(self->world, device + FIRST + 1, HALF, keys[1],
                                5, NULL));
        CHECK(self, has_pattern(device, FIRST + 1, HALF, 3));
        CHECK(self, !dscomm_put(self->world, device + FIRST + 1, HALF, keys[1],
                                6, NULL));
        FAILS(self, DSCOMM_ERR_UNSUPPORTED, "data is memory of a device; ",
              dscomm_put(self->world, device, 1, keys[1], 0, NULL));
        FAILS(self, DSCOMM_ERR_UNSUPPORTED, "data is memory of a device; ",
              dscomm_put(self->world, device + FIRST + 1, PART, keys[1], 0,
                         NULL));
    }
    CHECK(self, !barrier(self));
    if (self->rank) {
        char want[BYTES] = {0}, got[BYTES];

        pattern(want + FIRST + 5, 1, 3);
        pattern(want + FIRST + 6, HALF, 3);
        CHECK(self, !dscomm_device_copy(got, device, BYTES, NULL));
        CHECK(self, !memcmp(want, got, BYTES));
    }
    CHECK(self, !dscomm_mem_deregister(mem));
    give((uintptr_t)device);
}

/* A rank's accesses to its own device, and between two memories of it. */
static void body_own(rank_t *self)
{
    char *one = device_new(), *other = device_new(), host[PART], back[PART];
    unsigned char key[DSCOMM_MEM_KEY_BYTES];
    dscomm_mem_t *mem = NULL, *mem_other = NULL;

    pattern(host, PART, 9);
    CHECK(self, !dscomm_mem_register(self->world, one + FIRST, PART, &mem));
    CHECK(self, !dscomm_mem_register(self->world, other, BYTES, &mem_other));
    CHECK(self, !dscomm_mem_key(mem, key));
    CHECK(self, !dscomm_put(self->world, host, HALF, key, 7, NULL));
    CHECK(self, has_pattern(one, FIRST + 7, HALF, 9));
    CHECK(self, !dscomm_get(self->world, back, HALF, key, 7, NULL));
    CHECK(self, !memcmp(host, back, HALF));
    CHECK(self, !dscomm_get(self->world, other + 1, HALF, key, 7, NULL));
    CHECK(self, has_pattern(other, 1, HALF, 9));
    CHECK(self, !dscomm_mem_deregister(mem));
    FAILS(self, DSCOMM_ERR_UNSUPPORTED, "data is memory of a device; ",
          dscomm_get(self->world, one + FIRST, 1, key, 0, NULL));
    /* The other one is left to the end of the group. */
    CHECK(self, !barrier(self));
    give((uintptr_t)one);
}

static dscomm_mem_t *ended; /* with the first wait for a stream */

static void memory_end(void)
{
    dscomm_mem_t *mem = ended;

    ended = NULL;
    dscomm_mem_deregister(mem);
}

/* Memory is deregistered while a put waits for the stream on which its data
 * are written. */
static void body_ended(rank_t *self)
{
    char *device = device_new();
    unsigned char key[DSCOMM_MEM_KEY_BYTES];
    dscomm_mem_t *mem = NULL;

    CHECK(self, !barrier(self));
    if (!self->rank) {
        CHECK(self, !dscomm_mem_register(self->world, device, BYTES, &ended));
        CHECK(self,
              !dscomm_mem_register(self->world, device + FIRST, PART, &mem));
        CHECK(self, *waits_for == (uintptr_t)device + FIRST);
        CHECK(self, !dscomm_mem_key(mem, key));
        *waiting = memory_end;
        FAILS(self, DSCOMM_ERR_UNSUPPORTED, "data is memory of a device; ",
              dscomm_put(self->world, device, 1, key, 0, NULL));
        *waiting = NULL;
        CHECK(self, !ended);
        CHECK(self, !dscomm_mem_deregister(mem));
    }
    CHECK(self, !barrier(self));
    give((uintptr_t)device);
}

/* A key that was damaged, so that its memory seems to be reached by messages,
 * beside memory that is. */
static void body_damaged(rank_t *self)
{
    char *device = device_new(), host[PART] = {0}, byte = 7;
    unsigned char key[DSCOMM_MEM_KEY_BYTES];
    dscomm_mem_t *mem = NULL, *mem_host = NULL;

    CHECK(self, !dscomm_mem_register(self->world, device, BYTES, &mem));
    CHECK(self, !dscomm_mem_register(self->world, host, PART, &mem_host));
    CHECK(self, !dscomm_mem_key(mem, keys[self->rank]));
    CHECK(self, !dscomm_mem_key(mem_host, key));
    CHECK(self, !barrier(self));
    if (!self->rank) {
        memset(keys[1] + 12, 0, 4); /* the flags */
        FAILS(self, DSCOMM_ERR_INVALID, "has no such memory",
              dscomm_put(self->world, &byte, 1, keys[1], 0, NULL));
        FAILS(self, DSCOMM_ERR_INVALID, "has no such memory",
              dscomm_get(self->world, &byte, 1, keys[1], 0, NULL));
    }
    CHECK(self, !barrier(self));
    CHECK(self, !dscomm_mem_deregister(mem_host));
    CHECK(self, !dscomm_mem_deregister(mem));
    give((uintptr_t)device);
}

/* A put whose data are in memory that is deregistered ends before that. */
static void body_waits(rank_t *self)
{
    char *device = device_new(), host[PART];
    dscomm_mem_t *mem = NULL;
    dscomm_work_t *work = NULL;

    pattern(host, PART, 4);
    CHECK(self, !dscomm_mem_register(self->world, device + FIRST, PART, &mem));
    CHECK(self, !dscomm_mem_key(mem, keys[self->rank]));
    CHECK(self, !barrier(self));
    if (!self->rank) {
        CHECK(self, !dscomm_device_copy(device + FIRST, host, PART, NULL));
        CHECK(self, !dscomm_put(self->world, device + FIRST, PART, keys[1], 0,
                                &work));
        CHECK(self, !dscomm_mem_deregister(mem));
        FINISH(self, work, DSCOMM_OK);
    }
    CHECK(self, !barrier(self));
    if (self->rank) {
        CHECK(self, has_pattern(device, FIRST, PART, 4));
        CHECK(self, !dscomm_mem_deregister(mem));
    }
    give((uintptr_t)device);
}

/* Who cannot register memory refuses it. */
static void body_refused(rank_t *self)
{
    char *device = device_new();
    dscomm_mem_t *mem = NULL;

    FAILS(self, DSCOMM_ERR_UNSUPPORTED, "register memory of the host",
          dscomm_mem_register(self->world, device + FIRST, PART, &mem));
    CHECK(self, !mem);
    CHECK(self, !barrier(self));
    give((uintptr_t)device);
}

static void test_access(void)
{
    const int before = descriptors_count();

    ranks_run(2, 10000, body_access, "puts and gets reach a device");
    ranks_run(2, 10000, body_own, "each rank reaches its own device");
    ranks_run(2, 10000, body_waits, "a deregistration waits for a put");
    ranks_run(2, 10000, body_ended, "memory that ends before a put begins");
    ranks_run(2, 10000, body_damaged, "a key without its flags");
    is_int(thread_registers, 1, "the group ends what is registered");
    no_dma_buf[0] = 1;
    ranks_run(2, 10000, body_refused, "a device without dma-bufs");
    no_dma_buf[0] = 0;
    fails[0] = 1;
    ranks_run(2, 10000, body_refused, "the driver refuses");
    fails[0] = 0;
    thread_registers = 0;
    ranks_run(2, 10000, body_refused, "the backend refuses");
    /* Each rank has left one memory of the device, with its file. */
    is_int(descriptors_count() - before, 2, "all descriptors are closed");
}

int main(void)
{
    const char *build = getenv("abs_top_builddir");
    char path[4096];
    void *driver;

    snprintf(path, sizeof path, "%s/tests/lib/device/.libs/libcuda.so.1",
             build ? build : ".");
    driver = access(path, F_OK) ? NULL : dlopen(path, RTLD_NOW);
    if (!driver || !dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
        skip("the stand-in for CUDA cannot be loaded by its name");
        return tap_done();
    }
    *(void **)&take = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&give = dlsym(driver, "cuMemFree_v2");
    no_dma_buf = dlsym(driver, "fake_cuda_no_dma_buf");
    fails = dlsym(driver, "fake_cuda_dma_buf_fails");
    waiting = dlsym(driver, "fake_cuda_waiting");
    waits_for = dlsym(driver, "fake_cuda_waits_for");
    if (!take || !give || !no_dma_buf || !fails || !waiting || !waits_for)
        bail("the driver lacks a symbol");
    ranks_use_modules();
    test_access();
    return tap_done();
}
