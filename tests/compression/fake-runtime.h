/* SPDX-License-Identifier: BSD-3-Clause */
/* A runtime and a driver of CUDA for cuda.c, which do nothing but keep account:
 * of each thread's context, of contexts made, of calls by device, and of the
 * error that the runtime has yet to tell of. */
#ifndef TESTS_COMPRESSION_FAKE_RUNTIME_H
#define TESTS_COMPRESSION_FAKE_RUNTIME_H

#include <dscomm/device.h>
#include <stdint.h>
#include <string.h>

#define FAKE_DEVICES 4
#define CUDART_VERSION 13000

typedef enum {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorUnknown = 999
} cudaError_t;
typedef void *cudaStream_t, *cudaEvent_t;
typedef struct {
    char reserved[64];
} cudaIpcMemHandle_t;
struct cudaPointerAttributes {
    int type, device;
};
enum { cudaMemoryTypeDevice = 2, cudaDevAttrMultiProcessorCount = 16 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
enum { cudaHostAllocPortable = 1, cudaMemcpyDefault = 4 };
enum { cudaIpcMemLazyEnablePeerAccess = 1 };

typedef struct {
    int made[FAKE_DEVICES]; /* contexts: 1 where there is one */
    int calls[FAKE_DEVICES];
    int refused; /* the device that cannot be chosen, or -1 */
    int fails; /* 1: calls do */
    int late; /* 1: events have not been reached */
    cudaError_t last;
} fake_runtime_t;
static fake_runtime_t fake = {.refused = -1};
/* The thread's: one of the contexts of devices, or what the program made. */
static void *fake_current;
static char fake_contexts[2 * FAKE_DEVICES];

static inline cudaError_t fake_tell(cudaError_t error)
{
    if (error)
        fake.last = error;
    return error;
}

static inline cudaError_t cudaSetDevice(int device)
{
    if (device == fake.refused)
        return fake_tell(cudaErrorInvalidDevice);
    fake.made[device] = 1;
    fake_current = &fake_contexts[device];
    return cudaSuccess;
}

/* 0 where the thread has none. */
static inline int fake_device(void)
{
    for (int i = 1; i < FAKE_DEVICES; i++)
        if (fake_current == &fake_contexts[i])
            return i;
    return 0;
}

static inline cudaError_t cudaGetDevice(int *ret_device)
{
    *ret_device = fake_device();
    return cudaSuccess;
}

/* Of a call that needs a context: without one it makes that of device 0. */
static inline cudaError_t fake_call(int first, ...)
{
    (void)first;
    if (!fake_current)
        cudaSetDevice(0);
    fake.calls[fake_device()]++;
    return fake_tell(fake.fails ? cudaErrorUnknown : cudaSuccess);
}

static inline cudaError_t fake_query(int first, const void *event)
{
    cudaError_t error = fake_call(first, event);

    return error || !fake.late ? error : fake_tell(cudaErrorNotReady);
}

/* What is opened has its handle's first byte for its place. */
static inline cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *ret_handle,
                                              void *memory)
{
    memset(ret_handle, 7, sizeof *ret_handle);
    return fake_call(0, memory);
}

static inline cudaError_t cudaIpcOpenMemHandle(void **ret_memory,
                                               cudaIpcMemHandle_t handle,
                                               unsigned flags)
{
    *ret_memory = fake_contexts + handle.reserved[63];
    return flags == cudaIpcMemLazyEnablePeerAccess ? fake_call(0)
                                                   : cudaErrorUnknown;
}

static inline cudaError_t
cudaPointerGetAttributes(struct cudaPointerAttributes *ret_attributes,
                         const void *pointer)
{
    *ret_attributes = (struct cudaPointerAttributes){0};
    return fake_call(0, pointer);
}

static inline cudaError_t cudaGetLastError(void)
{
    cudaError_t last = fake.last;

    fake.last = cudaSuccess;
    return last;
}

static inline cudaError_t cudaGetDeviceCount(int *ret_count)
{
    *ret_count = FAKE_DEVICES;
    return cudaSuccess;
}

static inline cudaError_t cudaDriverGetVersion(int *ret_version)
{
    *ret_version = CUDART_VERSION;
    return cudaSuccess;
}

void *dscomm_device_context(void)
{
    return fake_current;
}

void dscomm_device_set_context(void *context)
{
    fake_current = context;
}

#define cudaGetErrorName(error) ((error) ? "FAKE" : "none")
#define cudaGetErrorString(error) ((error) ? "it failed" : "it went well")
#define cudaDeviceGetAttribute(value, ...)                                     \
    (*(value) = 2, fake_call(0, __VA_ARGS__))
#define cudaStreamCreateWithFlags(...) fake_call(0, __VA_ARGS__)
#define cudaStreamDestroy(...) fake_call(0, __VA_ARGS__)
#define cudaStreamSynchronize(...) fake_call(0, __VA_ARGS__)
#define cudaStreamWaitEvent(...) fake_call(0, __VA_ARGS__)
#define cudaEventCreateWithFlags(...) fake_call(0, __VA_ARGS__)
#define cudaEventDestroy(...) fake_call(0, __VA_ARGS__)
#define cudaEventRecord(...) fake_call(0, __VA_ARGS__)
#define cudaEventQuery(...) fake_query(0, __VA_ARGS__)
#define cudaMalloc(...) fake_call(0, __VA_ARGS__)
#define cudaHostAlloc(...) fake_call(0, __VA_ARGS__)
#define cudaFree(...) fake_call(0, __VA_ARGS__)
#define cudaFreeHost(...) fake_call(0, __VA_ARGS__)
#define cudaIpcCloseMemHandle(...) fake_call(0, __VA_ARGS__)
#define cudaMemsetAsync(...) fake_call(0, __VA_ARGS__)
#define cudaMemcpyAsync(...) fake_call(0, __VA_ARGS__)
#define cudaMemcpy2DAsync(...) fake_call(0, __VA_ARGS__)

#endif
