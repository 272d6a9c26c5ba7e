/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for CUDA's driver with one device, whose memory the host cannot
 * touch: each allocation is mapped twice, once without access, which is what
 * the program sees. With FAKE_CUDA_OPEN set it can, as an MPI that is
 * CUDA-aware could; FAKE_CUDA_AWARE makes the MPI say that it is. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST 4096
#define INVALID_VALUE 1
#define INVALID_CONTEXT 201

static struct {
    char *device, *shadow;
    size_t bytes;
} blocks[MOST];
static int count;
static _Thread_local int depth; /* of contexts that are current */
static char context;
unsigned fake_cuda_copies;

static int find(uint64_t pointer)
{
    for (int i = 0; i < count; i++)
        if (pointer >= (uintptr_t)blocks[i].device &&
            pointer < (uintptr_t)blocks[i].device + blocks[i].bytes)
            return i;
    return -1;
}

int cuMemAlloc_v2(uint64_t *ret_pointer, size_t bytes)
{
    const int open = getenv("FAKE_CUDA_OPEN") != NULL;
    int fd = memfd_create("device", MFD_CLOEXEC);

    if (fd < 0 || count == MOST || ftruncate(fd, (off_t)bytes))
        return 2;
    blocks[count].bytes = bytes;
    blocks[count].shadow =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    blocks[count].device =
        mmap(NULL, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED,
             fd, 0);
    close(fd);
    *ret_pointer = (uintptr_t)blocks[count++].device;
    return 0;
}

int cuPointerGetAttribute(void *value, int which, uint64_t pointer)
{
    if (find(pointer) < 0)
        return INVALID_VALUE;
    if (which == 1)
        *(void **)value = &context;
    else
        *(unsigned *)value = which == 2 ? 2 : 0;
    return 0;
}

int cuDeviceGetCount(int *ret_count)
{
    *ret_count = 1;
    return 0;
}

int cuCtxPushCurrent_v2(void *pushed)
{
    depth++;
    return pushed != &context;
}

int cuCtxPopCurrent_v2(void **ret_context)
{
    depth--;
    *ret_context = &context;
    return 0;
}

int cuStreamSynchronize(void *stream)
{
    return stream || !depth ? INVALID_CONTEXT : 0;
}

static char *shadow(uint64_t pointer, size_t bytes)
{
    int i = find(pointer);
    size_t offset = i < 0 ? 0 : pointer - (uintptr_t)blocks[i].device;

    return i < 0 || offset + bytes > blocks[i].bytes
               ? NULL
               : blocks[i].shadow + offset;
}

int cuMemcpyDtoH_v2(void *dest, uint64_t source, size_t bytes)
{
    char *from = shadow(source, bytes);

    if (!depth || !from)
        return depth ? INVALID_VALUE : INVALID_CONTEXT;
    __atomic_add_fetch(&fake_cuda_copies, 1, __ATOMIC_RELAXED);
    memcpy(dest, from, bytes);
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t dest, const void *source, size_t bytes)
{
    char *to = shadow(dest, bytes);

    if (!depth || !to)
        return depth ? INVALID_VALUE : INVALID_CONTEXT;
    __atomic_add_fetch(&fake_cuda_copies, 1, __ATOMIC_RELAXED);
    memcpy(to, source, bytes);
    return 0;
}

int cuMemAllocHost_v2(void **ret_memory, size_t bytes)
{
    if (!depth)
        return INVALID_CONTEXT;
    *ret_memory = aligned_alloc(4096, bytes);
    return *ret_memory ? 0 : 2;
}

int cuGetErrorName(int code, const char **ret_name)
{
    *ret_name = code == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
                                        : "CUDA_ERROR_INVALID_VALUE";
    return 0;
}

int MPIX_Query_cuda_support(void)
{
    return getenv("FAKE_CUDA_AWARE") != NULL;
}
