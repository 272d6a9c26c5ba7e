/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory, see accelerator.h. */
#include "config.h"

#include "tools/perf/accelerator.h"

#include <dlfcn.h>
#include <stdint.h>

#define LIBRARY "libcuda.so.1"

/* The functions of the driver; each returns 0, or an error. */
static struct {
    int (*init)(unsigned flags);
    int (*count)(int *ret_count);
    int (*get)(int *ret_device, int ordinal);
    int (*retain)(void **ret_context, int device);
    int (*set)(void *context);
    int (*alloc)(uint64_t *ret_pointer, size_t bytes);
    int (*release)(uint64_t pointer);
    int (*error_name)(int error, const char **ret_name);
} driver;

static const struct {
    const char *symbol;
    void *slot;
} slots[] = {
    {"cuInit", &driver.init},
    {"cuDeviceGetCount", &driver.count},
    {"cuDeviceGet", &driver.get},
    {"cuDevicePrimaryCtxRetain", &driver.retain},
    {"cuCtxSetCurrent", &driver.set},
    {"cuMemAlloc_v2", &driver.alloc},
    {"cuMemFree_v2", &driver.release},
    {"cuGetErrorName", &driver.error_name},
};

/* Loads the driver, which stays loaded. NULL, or what is wrong; g_free(). */
static char *driver_load(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);

    if (!handle)
        return g_strdup_printf("no CUDA device: %s", dlerror());
    for (size_t i = 0; i < G_N_ELEMENTS(slots); i++) {
        void *symbol = dlsym(handle, slots[i].symbol);

        if (!symbol)
            return g_strdup_printf("%s lacks %s; install a newer driver",
                                   LIBRARY, slots[i].symbol);
        *(void **)slots[i].slot = symbol;
    }
    return NULL;
}

static char *describe(const char *what, int error)
{
    const char *name = NULL;

    if (driver.error_name(error, &name) != 0 || !name)
        name = "an unknown error";
    return g_strdup_printf("%s: %s", what, name);
}

char *perf_accelerator_open(int local)
{
    char *problem = driver_load();
    int count = 0, device = 0, error;
    void *context = NULL;

    if (problem)
        return problem;
    error = driver.init(0);
    if (!error)
        error = driver.count(&count);
    if (!error && count < 1)
        return g_strdup("CUDA's driver has no device");
    if (!error)
        error = driver.get(&device, local % count);
    if (!error)
        error = driver.retain(&context, device);
    if (!error)
        error = driver.set(context);
    return error ? describe("no CUDA device", error) : NULL;
}

char *perf_accelerator_alloc(size_t bytes, void **ret_memory)
{
    uint64_t pointer = 0;
    int error = driver.alloc(&pointer, bytes);

    if (error)
        return describe("device memory for a buffer (a smaller size, -e, "
                        "needs less)",
                        error);
    *ret_memory = (void *)(uintptr_t)pointer;
    return NULL;
}

void perf_accelerator_free(void *memory)
{
    if (memory)
        driver.release((uintptr_t)memory);
}
