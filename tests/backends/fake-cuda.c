/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for CUDA's driver with one device, whose memory the host cannot
 * touch: each allocation is mapped twice, once without access, which is what
 * the program sees. With FAKE_CUDA_OPEN set it can, as an MPI that is
 * CUDA-aware could; FAKE_CUDA_AWARE makes the MPI say that it is; with
 * FAKE_CUDA_POOL memory belongs to no context, as a pool's does. A stream
 * carries out what fake_cuda_later() gives it when somebody waits for it, or
 * copies on it, and not before. */
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
size_t fake_cuda_pinned, fake_cuda_pinned_most; /* bytes, now and at most */
static struct {
    void *memory;
    size_t bytes;
} pins[MOST];
static int pin_count;
static struct {
    void *stream;
    uint64_t pointer;
    uint32_t value;
    size_t count;
} later[MOST];
static int later_count;

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

static int find_pin(const void *memory);

int cuPointerGetAttribute(void *value, int which, uint64_t pointer)
{
    const int pinned = find_pin((void *)(uintptr_t)pointer) >= 0;

    if (find(pointer) < 0 && !pinned)
        return INVALID_VALUE;
    if (which == 1)
        *(void **)value = getenv("FAKE_CUDA_POOL") && !pinned ? NULL : &context;
    else
        *(unsigned *)value = which == 2 ? 2 - (unsigned)pinned : 0;
    return 0;
}

int cuDeviceGetCount(int *ret_count)
{
    *ret_count = 1;
    return 0;
}

int cuDeviceGet(int *ret_device, int ordinal)
{
    *ret_device = ordinal;
    return ordinal ? INVALID_VALUE : 0;
}

int cuDevicePrimaryCtxRetain(void **ret_context, int device)
{
    *ret_context = &context;
    return device ? INVALID_VALUE : 0;
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

int cuCtxGetCurrent(void **ret_context)
{
    *ret_context = depth > 0 ? &context : NULL;
    return 0;
}

static char *shadow(uint64_t pointer, size_t bytes)
{
    int i = find(pointer);
    size_t offset = i < 0 ? 0 : pointer - (uintptr_t)blocks[i].device;

    return i < 0 || offset + bytes > blocks[i].bytes
               ? NULL
               : blocks[i].shadow + offset;
}

/* On stream: count words at pointer become value. */
void fake_cuda_later(void *stream, uint64_t pointer, uint32_t value,
                     size_t words)
{
    later[later_count].stream = stream;
    later[later_count].pointer = pointer;
    later[later_count].value = value;
    later[later_count++].count = words;
}

int cuStreamSynchronize(void *stream)
{
    if (!depth)
        return INVALID_CONTEXT;
    for (int i = 0; i < later_count; i++) {
        uint32_t *words = (void *)shadow(later[i].pointer, 4);

        for (size_t k = 0; later[i].stream == stream && k < later[i].count; k++)
            words[k] = later[i].value;
        if (later[i].stream == stream)
            later[i].count = 0;
    }
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *dest, uint64_t source, size_t bytes,
                         void *stream)
{
    char *from = shadow(source, bytes);

    if (!depth || !from)
        return depth ? INVALID_VALUE : INVALID_CONTEXT;
    __atomic_add_fetch(&fake_cuda_copies, 1, __ATOMIC_RELAXED);
    cuStreamSynchronize(stream);
    memcpy(dest, from, bytes);
    return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t dest, const void *source, size_t bytes,
                         void *stream)
{
    char *to = shadow(dest, bytes);

    if (!depth || !to)
        return depth ? INVALID_VALUE : INVALID_CONTEXT;
    __atomic_add_fetch(&fake_cuda_copies, 1, __ATOMIC_RELAXED);
    cuStreamSynchronize(stream);
    memcpy(to, source, bytes);
    return 0;
}

/* The program's own. */
int cuMemcpyDtoH_v2(void *dest, uint64_t source, size_t bytes)
{
    return cuMemcpyDtoHAsync_v2(dest, source, bytes, NULL);
}

int cuMemcpyHtoD_v2(uint64_t dest, const void *source, size_t bytes)
{
    return cuMemcpyHtoDAsync_v2(dest, source, bytes, NULL);
}

static int find_pin(const void *memory)
{
    for (int i = 0; i < pin_count; i++)
        if (pins[i].memory == memory)
            return i;
    return -1;
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    (void)flags;
    if (!depth || pin_count == MOST)
        return depth ? 2 : INVALID_CONTEXT;
    pins[pin_count].memory = memory;
    pins[pin_count++].bytes = bytes;
    fake_cuda_pinned += bytes;
    if (fake_cuda_pinned > fake_cuda_pinned_most)
        fake_cuda_pinned_most = fake_cuda_pinned;
    return 0;
}

int cuMemHostUnregister(void *memory)
{
    int i = find_pin(memory);

    if (!depth || i < 0)
        return depth ? INVALID_VALUE : INVALID_CONTEXT;
    fake_cuda_pinned -= pins[i].bytes;
    pins[i] = pins[--pin_count];
    return 0;
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
