/* SPDX-License-Identifier: BSD-3-Clause */
/* A libcuda for tests: three devices, the first two below one bridge of
 * machine.xml, the third on the other NUMA node. Copies are made at once, and
 * advance the clock of their stream by what rate() says, which events read.
 * FAKE_CUDA_DEVICES is the number of devices, FAKE_CUDA_FAIL the name of a
 * function that fails, and with FAKE_CUDA_CORRUPT copies between devices do
 * nothing. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 3
#define OUT_OF_MEMORY 2
#define INVALID 1

static const char *const addresses[DEVICES] = {"0000:03:00.0", "0000:04:00.0",
                                               "0000:81:00.0"};
static char contexts[DEVICES];
static int can_access[DEVICES][DEVICES] = {{0, 1, 0}, {1, 0, 0}, {0, 0, 0}};
static int enabled[DEVICES][DEVICES];
static int current = -1;

typedef struct {
    double us;
} fake_stream_t;
typedef struct {
    double us;
} fake_event_t;

static int fails(const char *name)
{
    const char *fail = getenv("FAKE_CUDA_FAIL");

    return fail && !strcmp(fail, name);
}

/* Bytes of a microsecond from one device to another. */
static double rate(int from, int to)
{
    if (from == to)
        return 1e6;
    if (can_access[from][to])
        return enabled[from][to] ? 24e3 : 8e3;
    return from == 2 && to == 1 ? 3e3 : 6e3;
}

static int context_number(const void *context)
{
    return (int)((const char *)context - contexts);
}

int cuInit(unsigned flags)
{
    return flags || fails("cuInit") ? INVALID : 0;
}

int cuDeviceGetCount(int *ret_count)
{
    const char *count = getenv("FAKE_CUDA_DEVICES");

    *ret_count = count ? atoi(count) : DEVICES;
    return 0;
}

int cuDeviceGet(int *ret_device, int ordinal)
{
    *ret_device = ordinal;
    return ordinal < DEVICES ? 0 : INVALID;
}

int cuDeviceGetPCIBusId(char *address, int size, int device)
{
    snprintf(address, (size_t)size, "%s", addresses[device]);
    return 0;
}

int cuDeviceCanAccessPeer(int *ret_can, int device, int peer)
{
    *ret_can = can_access[device][peer];
    return 0;
}

int cuDevicePrimaryCtxRetain(void **ret_context, int device)
{
    *ret_context = &contexts[device];
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device < DEVICES ? 0 : INVALID;
}

int cuCtxSetCurrent(void *context)
{
    current = context ? context_number(context) : -1;
    return 0;
}

int cuCtxSynchronize(void)
{
    return current < 0 ? INVALID : 0;
}

int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
    const int to = context_number(peer);

    if (current < 0 || flags || !can_access[current][to])
        return INVALID;
    enabled[current][to] = 1;
    return 0;
}

int cuMemAlloc_v2(uint64_t *ret_memory, size_t bytes)
{
    if (current < 0 || fails("cuMemAlloc"))
        return current < 0 ? INVALID : OUT_OF_MEMORY;
    *ret_memory = (uintptr_t)malloc(bytes);
    return 0;
}

int cuMemFree_v2(uint64_t memory)
{
    free((void *)(uintptr_t)memory);
    return 0;
}

int cuMemsetD8_v2(uint64_t memory, unsigned char byte, size_t bytes)
{
    memset((void *)(uintptr_t)memory, byte, bytes);
    return 0;
}

int cuMemAllocHost_v2(void **ret_memory, size_t bytes)
{
    *ret_memory = fails("cuMemAllocHost") ? NULL : malloc(bytes);
    return *ret_memory ? 0 : OUT_OF_MEMORY;
}

int cuMemFreeHost(void *memory)
{
    free(memory);
    return 0;
}

int cuStreamCreate(void **ret_stream, unsigned flags)
{
    *ret_stream = calloc(1, sizeof(fake_stream_t));
    return current < 0 || flags != 1 ? INVALID : 0;
}

int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return 0;
}

int cuStreamSynchronize(void *stream)
{
    return stream ? 0 : INVALID;
}

int cuEventCreate(void **ret_event, unsigned flags)
{
    *ret_event = calloc(1, sizeof(fake_event_t));
    return flags ? INVALID : 0;
}

int cuEventDestroy_v2(void *event)
{
    free(event);
    return 0;
}

int cuEventRecord(void *event, void *stream)
{
    ((fake_event_t *)event)->us = ((fake_stream_t *)stream)->us;
    return 0;
}

int cuEventElapsedTime(float *ret_ms, void *begin, void *end)
{
    *ret_ms =
        (float)((((fake_event_t *)end)->us - ((fake_event_t *)begin)->us) /
                1e3);
    return 0;
}

static int copy(void *dest, const void *source, size_t bytes, double bytes_us,
                void *stream)
{
    memcpy(dest, source, bytes);
    ((fake_stream_t *)stream)->us += (double)bytes / bytes_us;
    return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t dest, uint64_t source, size_t bytes,
                         void *stream)
{
    return copy((void *)(uintptr_t)dest, (void *)(uintptr_t)source, bytes,
                rate(0, 0), stream);
}

int cuMemcpyPeerAsync(uint64_t dest, void *dest_context, uint64_t source,
                      void *source_context, size_t bytes, void *stream)
{
    const double bytes_us =
        rate(context_number(source_context), context_number(dest_context));

    if (getenv("FAKE_CUDA_CORRUPT"))
        return 0;
    return copy((void *)(uintptr_t)dest, (void *)(uintptr_t)source, bytes,
                bytes_us, stream);
}

int cuMemcpyHtoDAsync_v2(uint64_t dest, const void *source, size_t bytes,
                         void *stream)
{
    return copy((void *)(uintptr_t)dest, source, bytes, 20e3, stream);
}

int cuMemcpyDtoHAsync_v2(void *dest, uint64_t source, size_t bytes,
                         void *stream)
{
    return copy(dest, (void *)(uintptr_t)source, bytes, 20e3, stream);
}

int cuGetErrorName(int code, const char **ret_name)
{
    *ret_name = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                      : "CUDA_ERROR_INVALID_VALUE";
    return 0;
}
