/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for cuda.so, of the fake devices, in a process whose driver is
 * tests/backends/fake-cuda.c. Memory of either is a device's, and the host can
 * touch it, as an MPI that is CUDA-aware could. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/compression/fake-kernels.h"

#include <dlfcn.h>
#include <sys/mman.h>

#undef PROT_NONE
#define PROT_NONE (PROT_READ | PROT_WRITE)
#define fake_device_number fake_memory_number
int fake_memory_number(const void *pointer);
#include "tests/compression/fake-memory.c"
#undef fake_device_number

int fake_device_number(const void *pointer)
{
    static int (*attribute)(void *value, int which, uint64_t pointer);
    unsigned type = 0;
    int number = fake_memory_number(pointer);

    if (!attribute)
        *(void **)&attribute =
            dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuPointerGetAttribute");
    if (number < 0 && !attribute(&type, 2, (uintptr_t)pointer) && type == 2)
        number = 0;
    return number;
}

FAKE_EXPORT const dscomm_device_ops_t *dscomm_device_cuda(uint32_t abi);
const dscomm_device_ops_t *dscomm_device_cuda(uint32_t abi)
{
    return abi == DSCOMM_DEVICE_ABI ? fake_device_table() : NULL;
}
