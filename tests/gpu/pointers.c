/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of memory: the library finds it by the driver alone, before there
 * is a context, with one, and from a thread without one; and it makes no
 * context itself. */
#include "config.h"

#include "tests/tap.h"

#include <dlfcn.h>
#include <dscomm/device.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static struct {
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*state)(int device, unsigned *flags, int *active);
    int (*push)(void *context);
    int (*take)(uint64_t *pointer, size_t bytes);
    int (*take_host)(void **pointer, size_t bytes);
    int (*take_managed)(uint64_t *pointer, size_t bytes, unsigned flags);
} driver;

static const char *const names[] = {"cuInit",
                                    "cuDevicePrimaryCtxRetain",
                                    "cuDevicePrimaryCtxGetState",
                                    "cuCtxPushCurrent_v2",
                                    "cuMemAlloc_v2",
                                    "cuMemAllocHost_v2",
                                    "cuMemAllocManaged"};

typedef struct {
    const void *pointer;
    int is_device;
    const char *what;
} kind_t;

static kind_t kinds[4];

static void look(const char *when)
{
    for (int i = 0; i < 4; i++)
        if (kinds[i].pointer)
            is_int(dscomm_device_owns(kinds[i].pointer), kinds[i].is_device,
                   "%s: %s", when, kinds[i].what);
}

static void *look_without_context(void *argument)
{
    look("a thread without a context");
    return argument;
}

static int is_active(void)
{
    unsigned flags;
    int active = -1;

    driver.state(0, &flags, &active);
    return active;
}

static void load(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    void **slots = (void **)(void *)&driver;

    if (!handle)
        skip_all("no CUDA driver");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(slots[i] = dlsym(handle, names[i])))
            bail("libcuda has no %s", names[i]);
}

int main(void)
{
    uint64_t there = 0, managed = 0;
    void *context, *pinned = NULL;
    char *plain = malloc(100);
    pthread_t thread;

    kinds[0] = (kind_t){plain, 0, "malloc"};
    look("no driver");
    load();
    look("no context");
    if (driver.init(0))
        skip_all("no CUDA device");
    look("still none");
    is_int(is_active(), 0, "nothing has made a context");
    if (driver.retain(&context, 0) || driver.push(context) ||
        driver.take(&there, 100) || driver.take_host(&pinned, 100) ||
        driver.take_managed(&managed, 100, 1))
        bail("no memory of all kinds");
    kinds[1] = (kind_t){(void *)(uintptr_t)there, 1, "cuMemAlloc"};
    kinds[2] = (kind_t){pinned, 0, "cuMemAllocHost"};
    kinds[3] = (kind_t){(void *)(uintptr_t)managed, 0, "cuMemAllocManaged"};
    look("a context");
    pthread_create(&thread, NULL, look_without_context, NULL);
    pthread_join(thread, NULL);
    free(plain);
    return tap_done();
}
