/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA for PyTorch without a GPU: a library to preload, with those functions of
 * CUDA's runtime and driver that PyTorch and dscomm call for memory, copies,
 * streams and events. There are two devices; they have no kernels. Their memory
 * is that of the fake devices of compression, which the host cannot access. A
 * stream executes nothing until somebody waits for it, so a result for which
 * nobody has waited is never there. */
#define _GNU_SOURCE
#include "config.h"

#include "tests/compression/fake-device.h"
#include "tests/compression/fake-kernels.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 2
#define PINS_MOST 256
#define GIGABYTE ((size_t)1 << 30)

/* An event, and the records of it that were enqueued and executed. */
struct CUevent_st {
    cudaStream_t stream;
    uint64_t recorded, executed;
};

typedef enum { TASK_COPY, TASK_FILL, TASK_RECORD, TASK_WAIT } kind_t;
typedef struct task {
    struct task *next;
    kind_t kind;
    void *dest;
    const void *source;
    int byte; /* of TASK_FILL */
    size_t bytes;
    cudaEvent_t event;
    uint64_t number; /* of the event's record */
} task_t;

struct CUstream_st {
    int device, priority;
    task_t *first, *last;
};

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct CUstream_st defaults[DEVICES] = {{.device = 0}, {.device = 1}};
static char contexts[DEVICES];
static _Thread_local int current;
static struct {
    const char *memory;
    size_t bytes;
} pins[PINS_MOST];

static int is_pinned(const void *pointer)
{
    for (int i = 0; i < PINS_MOST; i++)
        if ((uintptr_t)pointer - (uintptr_t)pins[i].memory < pins[i].bytes)
            return 1;
    return 0;
}

static cudaError_t pin(const void *memory, size_t bytes)
{
    for (int i = 0; i < PINS_MOST; i++)
        if (!pins[i].bytes) {
            pins[i].memory = memory;
            pins[i].bytes = bytes;
            return cudaSuccess;
        }
    return cudaErrorMemoryAllocation;
}

static cudaError_t unpin(const void *memory)
{
    for (int i = 0; i < PINS_MOST; i++)
        if (pins[i].memory == memory) {
            pins[i].memory = NULL;
            pins[i].bytes = 0;
        }
    return cudaSuccess;
}

/* The default streams have several names. */
static cudaStream_t stream_of(cudaStream_t stream)
{
    return (uintptr_t)stream <= 2 ? &defaults[current] : stream;
}

static void stream_run(cudaStream_t stream, cudaEvent_t until, uint64_t number);

static void task_run(const task_t *task)
{
    switch (task->kind) {
    case TASK_COPY:
        memmove(fake_device_shadow(task->dest),
                fake_device_shadow(task->source), task->bytes);
        break;
    case TASK_FILL:
        memset(fake_device_shadow(task->dest), task->byte, task->bytes);
        break;
    case TASK_RECORD:
        task->event->executed = task->number;
        break;
    case TASK_WAIT:
        stream_run(task->event->stream, task->event, task->number);
        break;
    }
}

/* Executes what is on stream, or all up to a record of the event until. */
static void stream_run(cudaStream_t stream, cudaEvent_t until, uint64_t number)
{
    while (stream->first && (!until || until->executed < number)) {
        task_t *task = stream->first;

        stream->first = task->next;
        task_run(task);
        free(task);
    }
}

static void stream_wait(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    stream_run(stream_of(stream), NULL, 0);
    pthread_mutex_unlock(&lock);
}

static cudaError_t stream_add(cudaStream_t stream, task_t described)
{
    task_t *task = malloc(sizeof *task);

    *task = described;
    task->next = NULL;
    pthread_mutex_lock(&lock);
    stream = stream_of(stream);
    if (stream->first)
        stream->last->next = task;
    else
        stream->first = task;
    stream->last = task;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* Memory of the host that is not pinned is read and written before the call
 * returns. */
static int is_lazy(const void *pointer)
{
    return fake_device_room(pointer) || is_pinned(pointer);
}

cudaError_t cudaMemcpyAsync(void *dest, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    stream_add(stream, (task_t){.kind = TASK_COPY,
                                .dest = dest,
                                .source = source,
                                .bytes = bytes});
    if (!is_lazy(dest) || !is_lazy(source))
        stream_wait(stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *dest, const void *source, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    cudaMemcpyAsync(dest, source, bytes, kind, NULL);
    stream_wait(NULL);
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *dest, int dest_device, const void *source,
                                int source_device, size_t bytes,
                                cudaStream_t stream)
{
    (void)dest_device;
    (void)source_device;
    return cudaMemcpyAsync(dest, source, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemsetAsync(void *dest, int byte, size_t bytes,
                            cudaStream_t stream)
{
    return stream_add(stream, (task_t){.kind = TASK_FILL,
                                       .dest = dest,
                                       .byte = byte,
                                       .bytes = bytes});
}

/* Devices */

cudaError_t cudaGetDeviceCount(int *ret_count)
{
    *ret_count = DEVICES;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ret_device)
{
    *ret_device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= DEVICES)
        return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret_properties,
                                    int device)
{
    memset(ret_properties, 0, sizeof *ret_properties);
    snprintf(ret_properties->name, sizeof ret_properties->name, "fake %d",
             device);
    ret_properties->totalGlobalMem = GIGABYTE;
    ret_properties->major = 9;
    ret_properties->multiProcessorCount = 1;
    ret_properties->warpSize = 32;
    ret_properties->maxThreadsPerBlock = 1024;
    ret_properties->maxThreadsPerMultiProcessor = 2048;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *ret_version)
{
    *ret_version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *ret_value, enum cudaDeviceAttr which,
                                   int device)
{
    (void)which;
    (void)device;
    *ret_value = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *ret_id, int bytes, int device)
{
    snprintf(ret_id, (size_t)bytes, "0000:0%d:00.0", device);
    return cudaSuccess;
}

static int unsupported(void)
{
    return cudaErrorNotSupported;
}

cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **ret_function,
                                 unsigned version, unsigned long long flags,
                                 enum cudaDriverEntryPointQueryResult *result)
{
    (void)name;
    (void)version;
    (void)flags;
    *ret_function = (void *)unsupported;
    if (result)
        *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    (void)mode;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *ret_can, int device, int peer)
{
    (void)device;
    (void)peer;
    *ret_can = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    stream_wait(NULL);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
    return cudaSuccess;
}

/* Memory */

cudaError_t cudaMalloc(void **ret_memory, size_t bytes)
{
    *ret_memory = fake_device_alloc_on(current, bytes);
    return *ret_memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    if (memory)
        fake_device_free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
    *ret_free = *ret_total = GIGABYTE;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **ret_memory, size_t bytes, unsigned flags)
{
    (void)flags;
    *ret_memory = malloc(bytes);
    return pin(*ret_memory, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    unpin(memory);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *ret_about,
                                     const void *pointer)
{
    const int device = fake_device_number(pointer);

    memset(ret_about, 0, sizeof *ret_about);
    ret_about->type = device >= 0          ? cudaMemoryTypeDevice
                      : is_pinned(pointer) ? cudaMemoryTypeHost
                                           : cudaMemoryTypeUnregistered;
    ret_about->device = device < 0 ? 0 : device;
    ret_about->devicePointer = (void *)pointer;
    ret_about->hostPointer = device < 0 ? (void *)pointer : NULL;
    return cudaSuccess;
}

/* Streams */

cudaError_t cudaDeviceGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
    *ret_least = 0;
    *ret_greatest = -1;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret_stream,
                                         unsigned flags, int priority)
{
    (void)flags;
    *ret_stream = calloc(1, sizeof **ret_stream);
    (*ret_stream)->device = current;
    (*ret_stream)->priority = priority;
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *ret_priority)
{
    *ret_priority = stream_of(stream)->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *ret_status)
{
    (void)stream;
    *ret_status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     enum cudaStreamCaptureStatus *ret_status,
                                     unsigned long long *ret_id,
                                     cudaGraph_t *ret_graph,
                                     const cudaGraphNode_t **ret_nodes,
                                     const cudaGraphEdgeData **ret_edges,
                                     size_t *ret_count)
{
    (void)ret_id;
    (void)ret_graph;
    (void)ret_nodes;
    (void)ret_edges;
    (void)ret_count;
    return cudaStreamIsCapturing(stream, ret_status);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    stream_wait(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return stream_of(stream)->first ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags)
{
    (void)flags;
    return event->recorded
               ? stream_add(stream, (task_t){.kind = TASK_WAIT,
                                             .event = event,
                                             .number = event->recorded})
               : cudaSuccess;
}

/* Events. They are never freed: a stream may still have a task with one. */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned flags)
{
    (void)flags;
    *ret_event = calloc(1, sizeof **ret_event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->stream = stream_of(stream);
    return stream_add(stream, (task_t){.kind = TASK_RECORD,
                                       .event = event,
                                       .number = ++event->recorded});
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned flags)
{
    (void)flags;
    return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return event->executed < event->recorded ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    if (event->executed < event->recorded)
        stream_run(event->stream, event, event->recorded);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* The driver, for dscomm, and a function of it for PyTorch */

int cuDevicePrimaryCtxGetState(int device, unsigned *ret_flags, int *ret_active)
{
    (void)device;
    *ret_flags = 0;
    *ret_active = 1;
    return cudaSuccess;
}

int cuPointerGetAttribute(void *value, int which, uint64_t pointer)
{
    const void *memory = (void *)(uintptr_t)pointer;
    const int device = fake_device_number(memory);

    if (device < 0 && !is_pinned(memory))
        return cudaErrorInvalidValue;
    if (which == 1)
        *(void **)value = &contexts[device < 0 ? 0 : device];
    else if (which == 2)
        *(unsigned *)value = device < 0 ? 1 : 2;
    else
        *(int *)value = which == 9 ? device : 0;
    return cudaSuccess;
}

int cuDeviceGetCount(int *ret_count)
{
    return cudaGetDeviceCount(ret_count);
}

int cuDeviceGet(int *ret_device, int ordinal)
{
    *ret_device = ordinal;
    return cudaSuccess;
}

int cuDevicePrimaryCtxRetain(void **ret_context, int device)
{
    *ret_context = &contexts[device];
    return cudaSuccess;
}

static _Thread_local int stack[16], depth;

int cuCtxPushCurrent_v2(void *context)
{
    stack[depth++] = current;
    current = (int)((char *)context - contexts);
    return cudaSuccess;
}

int cuCtxPopCurrent_v2(void **ret_context)
{
    *ret_context = &contexts[current];
    current = stack[--depth];
    return cudaSuccess;
}

int cuCtxGetCurrent(void **ret_context)
{
    *ret_context = &contexts[current];
    return cudaSuccess;
}

int cuCtxSetCurrent(void *context)
{
    current = context ? (int)((char *)context - contexts) : 0;
    return cudaSuccess;
}

int cuStreamSynchronize(cudaStream_t stream)
{
    return cudaStreamSynchronize(stream);
}

int cuMemcpyDtoHAsync_v2(void *dest, uint64_t source, size_t bytes,
                         cudaStream_t stream)
{
    return cudaMemcpyAsync(dest, (void *)(uintptr_t)source, bytes,
                           cudaMemcpyDeviceToHost, stream);
}

int cuMemcpyHtoDAsync_v2(uint64_t dest, const void *source, size_t bytes,
                         cudaStream_t stream)
{
    return cudaMemcpyAsync((void *)(uintptr_t)dest, source, bytes,
                           cudaMemcpyHostToDevice, stream);
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    (void)flags;
    return pin(memory, bytes);
}

int cuMemHostUnregister(void *memory)
{
    return unpin(memory);
}

int cuGetErrorName(int code, const char **ret_name)
{
    (void)code;
    *ret_name = "CUDA_ERROR_INVALID_VALUE";
    return cudaSuccess;
}

int cuEventCreate(cudaEvent_t *ret_event, unsigned flags)
{
    return cudaEventCreateWithFlags(ret_event, flags);
}

int cuEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return cudaEventRecord(event, stream);
}

int cuEventQuery(cudaEvent_t event)
{
    return cudaEventQuery(event);
}

int cuEventElapsedTime(float *ret_ms, cudaEvent_t begin, cudaEvent_t end)
{
    (void)begin;
    (void)end;
    *ret_ms = 0;
    return cudaSuccess;
}

int cuEventDestroy_v2(cudaEvent_t event)
{
    return cudaEventDestroy(event);
}
