/* SPDX-License-Identifier: BSD-3-Clause */
/* A libcuda for tests: a driver of one device with the memory of the fake
 * devices; in the same process, the fake cuda.so has the same memory.
 * FAKE_CUDA_AWARE makes an MPI say that it is CUDA-aware; with FAKE_CUDA_POOL
 * memory belongs to no context, like that of a pool. A stream runs the tasks of
 * fake_cuda_later() only when somebody waits for it, or copies on it. Each copy
 * takes the device a quarter of a millisecond, of which events note the sum; an
 * event is complete when it was queried fake_cuda_event_delay times. */
#include "config.h"

#include "tests/compression/fake-kernels.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 4096
#define INVALID_VALUE 1
#define INVALID_CONTEXT 201
#define NOT_SUPPORTED 801

static _Thread_local int depth; /* number of pushed contexts */
static char context;
unsigned fake_cuda_copies;
/* bytes of pinned memory, now and at most */
size_t fake_cuda_pinned, fake_cuda_pinned_most;
/* events that cannot be made, are complete only later, and exist */
int fake_cuda_no_events, fake_cuda_event_delay, fake_cuda_events;
/* whether the device gives dma-bufs, and fails to */
int fake_cuda_no_dma_buf, fake_cuda_dma_buf_fails;
/* the memory whose synchronous copies were last made to wait for their end */
uint64_t fake_cuda_waits_for;
/* NULL, or called when somebody waits for a stream */
void (*fake_cuda_waiting)(void);
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

/* Returns where the driver can access so many bytes at pointer; NULL:
 * nowhere. */
static char *shadow(uint64_t pointer, size_t bytes)
{
    const void *memory = (void *)(uintptr_t)pointer;
    const size_t room = fake_device_room(memory);

    return room && bytes <= room ? fake_device_shadow(memory) : NULL;
}

int cuMemAlloc_v2(uint64_t *ret_pointer, size_t bytes)
{
    void *memory = fake_device_alloc_on(0, bytes);

    *ret_pointer = (uintptr_t)memory;
    return memory ? 0 : 2;
}

int cuMemFree_v2(uint64_t pointer)
{
    fake_device_free((void *)(uintptr_t)pointer);
    return 0;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

static int is_pinned(uint64_t pointer)
{
    for (int i = 0; i < pin_count; i++)
        if (pointer - (uintptr_t)pins[i].memory < pins[i].bytes)
            return 1;
    return 0;
}

int cuPointerGetAttribute(void *value, int which, uint64_t pointer)
{
    const int pinned = is_pinned(pointer);

    if (!shadow(pointer, 0) && !pinned)
        return INVALID_VALUE;
    if (which == 1)
        *(void **)value = getenv("FAKE_CUDA_POOL") && !pinned ? NULL : &context;
    else
        *(unsigned *)value = which == 2 ? 2 - (unsigned)pinned : 0;
    return 0;
}

int cuPointerSetAttribute(const void *value, int which, uint64_t pointer)
{
    if (!shadow(pointer, 1) || which != 6 || *(const unsigned *)value != 1)
        return INVALID_VALUE;
    __atomic_store_n(&fake_cuda_waits_for, pointer, __ATOMIC_RELAXED);
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

int cuDeviceGetAttribute(int *ret_value, int which, int device)
{
    *ret_value = !fake_cuda_no_dma_buf;
    return which == 124 && !device ? 0 : INVALID_VALUE;
}

/* The dma-buf is a descriptor of the memory's file, at the position of the
 * range. */
int cuMemGetHandleForAddressRange(void *handle, uint64_t begin, size_t bytes,
                                  int type, unsigned long long flags)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = fake_device_room((void *)(uintptr_t)begin);

    if (!depth)
        return INVALID_CONTEXT;
    if (fake_cuda_dma_buf_fails)
        return NOT_SUPPORTED;
    if (begin % page || !bytes || bytes % page || bytes >= room + page ||
        type != 1 || flags)
        return INVALID_VALUE;
    *(int *)handle = fake_device_open((void *)(uintptr_t)begin);
    return 0;
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

int cuCtxSetCurrent(void *current)
{
    depth = current == &context;
    return current && !depth ? INVALID_CONTEXT : 0;
}

int cuCtxGetCurrent(void **ret_context)
{
    *ret_context = depth > 0 ? &context : NULL;
    return 0;
}

/* Enqueues on stream: count words at pointer become value. */
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
    if (fake_cuda_waiting)
        fake_cuda_waiting();
    for (int i = 0; i < later_count; i++) {
        uint32_t *words = (void *)shadow(later[i].pointer, 4);

        for (size_t k = 0; later[i].stream == stream && k < later[i].count; k++)
            words[k] = later[i].value;
        if (later[i].stream == stream)
            later[i].count = 0;
    }
    return 0;
}

typedef struct {
    float ms;
    int left; /* queries until it is complete; -1: not recorded */
    const void *stream;
} event_t;

int cuEventCreate(void **ret_event, unsigned flags)
{
    event_t *event;

    if (!depth || flags || fake_cuda_no_events)
        return depth ? INVALID_VALUE : INVALID_CONTEXT;
    event = malloc(sizeof *event);
    event->left = -1;
    *ret_event = event;
    fake_cuda_events++;
    return 0;
}

int cuEventDestroy_v2(void *event)
{
    free(event);
    fake_cuda_events--;
    return 0;
}

int cuEventRecord(void *recorded, void *stream)
{
    event_t *event = recorded;

    if (!depth)
        return INVALID_CONTEXT;
    event->stream = stream;
    event->ms = 0.25f * (float)fake_cuda_copies;
    event->left = fake_cuda_event_delay;
    return 0;
}

int cuEventQuery(void *queried)
{
    event_t *event = queried;

    if (!depth || event->left < 0)
        return depth ? INVALID_VALUE : INVALID_CONTEXT;
    return event->left && event->left-- ? 600 : 0;
}

int cuEventElapsedTime(float *ret_ms, void *begin, void *end)
{
    const event_t *first = begin, *last = end;

    if (first->left < 0 || last->left)
        return 600;
    if (first->stream != last->stream)
        return INVALID_VALUE; /* a test needs no such time */
    *ret_ms = last->ms - first->ms;
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
                : code == NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED"
                                        : "CUDA_ERROR_INVALID_VALUE";
    return 0;
}

int MPIX_Query_cuda_support(void)
{
    return getenv("FAKE_CUDA_AWARE") != NULL;
}
