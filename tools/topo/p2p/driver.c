/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's driver, see driver.h. */
#include "config.h"

#include "tools/topo/p2p/driver.h"

#include <dlfcn.h>
#include <stdbool.h>

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */
#define NO_DEVICE 100 /* CUDA_ERROR_NO_DEVICE */

#define SLOT(member, symbol)                                                   \
    {                                                                          \
        offsetof(topo_driver_t, member), symbol                                \
    }
static const struct {
    size_t offset;
    const char *symbol;
} slots[] = {
    SLOT(init, "cuInit"),
    SLOT(device_count, "cuDeviceGetCount"),
    SLOT(device_get, "cuDeviceGet"),
    SLOT(device_address, "cuDeviceGetPCIBusId"),
    SLOT(can_access, "cuDeviceCanAccessPeer"),
    SLOT(context_retain, "cuDevicePrimaryCtxRetain"),
    SLOT(context_release, "cuDevicePrimaryCtxRelease_v2"),
    SLOT(context_set, "cuCtxSetCurrent"),
    SLOT(context_wait, "cuCtxSynchronize"),
    SLOT(access_enable, "cuCtxEnablePeerAccess"),
    SLOT(memory_alloc, "cuMemAlloc_v2"),
    SLOT(memory_free, "cuMemFree_v2"),
    SLOT(memory_set, "cuMemsetD8_v2"),
    SLOT(host_alloc, "cuMemAllocHost_v2"),
    SLOT(host_free, "cuMemFreeHost"),
    SLOT(stream_create, "cuStreamCreate"),
    SLOT(stream_destroy, "cuStreamDestroy_v2"),
    SLOT(stream_wait, "cuStreamSynchronize"),
    SLOT(event_create, "cuEventCreate"),
    SLOT(event_destroy, "cuEventDestroy_v2"),
    SLOT(event_record, "cuEventRecord"),
    SLOT(event_elapsed, "cuEventElapsedTime"),
    SLOT(copy, "cuMemcpyDtoDAsync_v2"),
    SLOT(copy_peer, "cuMemcpyPeerAsync"),
    SLOT(copy_to_device, "cuMemcpyHtoDAsync_v2"),
    SLOT(copy_to_host, "cuMemcpyDtoHAsync_v2"),
    SLOT(error_name, "cuGetErrorName"),
};

char *topo_driver_error(const topo_driver_t *driver, const char *what, int code)
{
    const char *name = NULL;

    driver->error_name(code, &name);
    return g_strdup_printf(
        "%s: %s%s", what, name ? name : "unknown error",
        code == OUT_OF_MEMORY ? "; smaller --elements need less memory" : "");
}

char *topo_driver_none(void)
{
    return g_strdup("CUDA shows no device to this process: nvidia-smi -L lists "
                    "those of the machine, of which CUDA_VISIBLE_DEVICES may "
                    "hide some; --host measures between cores, --ranks between "
                    "ranks");
}

char *topo_driver_load(topo_driver_t *ret_driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int code;

    if (!library)
        return g_strdup("there is no CUDA driver, libcuda.so.1, and so no "
                        "device; --host measures between cores, --ranks "
                        "between ranks");
    for (size_t i = 0; i < G_N_ELEMENTS(slots); i++) {
        void *function = dlsym(library, slots[i].symbol);

        if (!function)
            return g_strdup_printf("CUDA's driver has no %s: it is too old",
                                   slots[i].symbol);
        *(void **)((char *)ret_driver + slots[i].offset) = function;
    }
    code = ret_driver->init(0);
    if (code == NO_DEVICE)
        return topo_driver_none();
    return code ? topo_driver_error(ret_driver, "cuInit", code) : NULL;
}
