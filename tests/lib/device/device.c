/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory for libraries: without a driver, then with the driver of
 * driver.c, whose memory the host cannot access. */
#include "config.h"

#include "tests/tap.h"

#include <dlfcn.h>
#include <dscomm/dscomm.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 1000

static char bytes[BYTES], copies[BYTES];

static void without_driver(void)
{
    char *staging;

    is_int(dscomm_device_owns(bytes), 0, "no driver: the host's memory");
    is_int(dscomm_device_pinned(bytes), 0, "no driver: it is not pinned");
    dscomm_device_set_context(bytes);
    ok(!dscomm_device_context(), "no driver: no context");
    is_int(dscomm_device_copy(bytes, copies, BYTES, NULL),
           DSCOMM_ERR_UNSUPPORTED, "no driver: no copies");
    ok(strstr(dscomm_last_error(), "has not loaded CUDA") != NULL,
       "the reason");
    staging = dscomm_device_staging_alloc(bytes, BYTES);
    ok(staging && memset(staging, 1, BYTES), "no driver: plain memory");
    dscomm_device_staging_free(staging);
    dscomm_device_staging_free(NULL);
}

static void *symbol(void *driver, const char *name)
{
    void *found = dlsym(driver, name);

    if (!found)
        bail("the driver has no %s", name);
    return found;
}

static char *device_alloc(void *driver)
{
    int (*alloc)(uint64_t * pointer, size_t size);
    uint64_t pointer = 0;

    *(void **)&alloc = symbol(driver, "cuMemAlloc_v2");
    alloc(&pointer, BYTES);
    return (char *)(uintptr_t)pointer;
}

static _Thread_local int is_slow;
static atomic_int inside, go_on;

/* The library's: a slow thread goes on when another one has found the driver.
 */
__attribute__((visibility("default"))) int
dl_iterate_phdr(int (*see)(struct dl_phdr_info *, size_t, void *), void *data)
{
    int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    int result;

    *(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    result = next(see, data);
    if (is_slow) {
        atomic_store(&inside, 1);
        while (!atomic_load(&go_on))
            sched_yield();
    }
    return result;
}

static void *look_slowly(void *device)
{
    is_slow = 1;
    return dscomm_device_owns(device) ? device : NULL;
}

static void check_first_looks(char *device)
{
    pthread_t slow;
    void *seen;

    if (pthread_create(&slow, NULL, look_slowly, device))
        bail("no thread");
    for (int i = 0; i < 10000 && !atomic_load(&inside); i++)
        usleep(1000);
    ok(atomic_load(&inside) && dscomm_device_owns(device),
       "a thread finds the driver");
    atomic_store(&go_on, 1);
    pthread_join(slow, &seen);
    ok(seen == device, "one that has begun to look before, too");
}

static void check_context(void *driver)
{
    int (*retain)(void **context, int device);
    void *context = NULL;

    *(void **)&retain = symbol(driver, "cuDevicePrimaryCtxRetain");
    retain(&context, 0);
    ok(!dscomm_device_context(), "a thread begins without a context");
    dscomm_device_set_context(context);
    ok(context && dscomm_device_context() == context, "it gets one");
    dscomm_device_set_context(NULL);
    ok(!dscomm_device_context(), "and leaves it");
}

static void check_copies(char *device)
{
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (char)(7 * i);
    is_int(dscomm_device_copy(device, bytes, BYTES, NULL), 0, "to the device");
    is_int(dscomm_device_copy(copies, device + 1, BYTES - 1, NULL), 0,
           "from the device");
    ok(!memcmp(copies, bytes + 1, BYTES - 1), "the same bytes");
    is_int(dscomm_device_copy(copies, bytes, BYTES, NULL), DSCOMM_ERR_INVALID,
           "not on the host");
    is_int(dscomm_device_copy(device, device + 1, 1, NULL), DSCOMM_ERR_INVALID,
           "not on the device");
    is_int(dscomm_device_copy(device + 1, bytes, BYTES, NULL), DSCOMM_ERR_IO,
           "not beyond its end");
    ok(strstr(dscomm_last_error(), "copying to a device: CUDA says") != NULL,
       "the reason");
}

static void check_staging(void *driver, const char *device)
{
    const size_t *pinned = symbol(driver, "fake_cuda_pinned");
    char *staging = dscomm_device_staging_alloc(device, BYTES);

    ok(staging && memset(staging, 1, BYTES), "memory for copies");
    ok(*pinned >= BYTES, "it is pinned");
    ok(!dscomm_device_owns(staging), "it is the host's");
    ok(dscomm_device_pinned(staging) && dscomm_device_pinned(staging + 1),
       "as the driver says");
    ok(!dscomm_device_pinned(bytes) && !dscomm_device_pinned(device) &&
           !dscomm_device_pinned(NULL),
       "other memory is not");
    dscomm_device_staging_free(staging);
    ok(dscomm_device_staging_alloc(device, BYTES) == staging, "it is cached");
    dscomm_device_staging_free(staging);
}

int main(void)
{
    const char *build = getenv("abs_top_builddir");
    char *path = NULL, *device;
    void *driver;

    without_driver();
    if (asprintf(&path, "%s/tests/lib/device/.libs/libcuda.so.1",
                 build ? build : ".") < 0 ||
        access(path, F_OK)) {
        skip("the stand-in for CUDA is no shared library");
        return tap_done();
    }
    driver = dlopen(path, RTLD_NOW);
    if (!driver)
        bail("%s", dlerror());
    free(path);
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
        skip("libc does not find a loaded library by its SONAME");
        return tap_done();
    }
    device = device_alloc(driver);
    check_first_looks(device);
    ok(dscomm_device_owns(device) && dscomm_device_owns(device + BYTES - 1),
       "the device's memory");
    ok(!dscomm_device_owns(bytes) && !dscomm_device_owns(NULL),
       "the host's, and none");
    check_context(driver);
    check_copies(device);
    check_staging(driver, device);
    return tap_done();
}
