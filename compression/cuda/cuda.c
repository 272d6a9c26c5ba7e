/* SPDX-License-Identifier: BSD-3-Clause */
/* The module cuda.so: codec onebit on CUDA devices. It contains CUDA's runtime,
 * and shares the devices' primary contexts with every other runtime in the
 * process. */
#include "config.h"

#include "compression/cuda/kernels.h"

#ifndef FAKE_CUDA /* a test supplies its own runtime */
#include <cuda_runtime_api.h>
#endif
#include <dscomm/device.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* a value may be given at compilation, see tests/gpu/variants */
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM 4
#endif

struct dscomm_device_queue {
    int device;
    cudaStream_t stream;
    cudaStream_t idle; /* nothing is ever enqueued there */
    pthread_mutex_t lock; /* held from the record of event to the wait for it */
    cudaEvent_t event;
    dscomm_cuda_grid_t grid;
    void *shared; /* arrived, then partials */
};

_Static_assert(sizeof(cudaIpcMemHandle_t) ==
                   sizeof((dscomm_device_card_t *)0)->handle,
               "a handle has its room on a card");

/* The table's symbol. */
__attribute__((visibility("default"))) const dscomm_device_ops_t *
dscomm_device_cuda(uint32_t abi);

static const char *text(int code)
{
    static _Thread_local char line[256];
    cudaError_t error = (cudaError_t)code;

    snprintf(line, sizeof line, "%s (%d): %s", cudaGetErrorName(error), code,
             cudaGetErrorString(error));
    return line;
}

/* Makes the reason why no device can be used. CUDA has several codes for "no
 * device"; the driver's version tells an old driver from a missing one. */
static const char *why(void)
{
    static _Thread_local char line[320];
    int devices = 0, version = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);

    if (error == cudaSuccess)
        return devices ? NULL : "no CUDA device";
    if (error == cudaErrorNoDevice)
        return "no CUDA device";
    if (error != cudaErrorInsufficientDriver) {
        snprintf(line, sizeof line, "CUDA says %s", text((int)error));
        return line;
    }
    cudaDriverGetVersion(&version);
    if (!version)
        return "no CUDA driver";
    snprintf(line, sizeof line,
             "the CUDA driver is of version %d.%d, and the module needs %d.%d",
             version / 1000, version % 1000 / 10, CUDART_VERSION / 1000,
             CUDART_VERSION % 1000 / 10);
    return line;
}

/* Memory that host and device can both access counts as the host's. */
static int device(const void *pointer)
{
    struct cudaPointerAttributes attributes;

    if (cudaPointerGetAttributes(&attributes, pointer) != cudaSuccess) {
        cudaGetLastError();
        return -1;
    }
    return attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
}

/* Called only if the thread has a context. */
static int cuda_current(void)
{
    int number = -1;

    return cudaGetDevice(&number) == cudaSuccess ? number : -1;
}

/* Makes the queue's device the thread's current one; cuda_leave() restores the
 * thread's context, also if this fails. The runtime could restore a device, but
 * not the absence of one: it would make a context on device 0. */
static int cuda_enter(const dscomm_device_queue_t *queue, void **ret_before)
{
    *ret_before = dscomm_device_context();
    return (int)cudaSetDevice(queue->device);
}

static int cuda_leave(void *before, int code)
{
    if (code)
        cudaGetLastError(); /* otherwise the next kernel would report it */
    dscomm_device_set_context(before);
    return code;
}

/* The code of a call that is made with the queue's device. */
#define ON_DEVICE(queue, call)                                                 \
    ({                                                                         \
        void *before_call;                                                     \
        int entered = cuda_enter(queue, &before_call);                         \
                                                                               \
        cuda_leave(before_call, entered ? entered : (int)(call));              \
    })

/* The queue's stream is independent of the default stream. */
static int queue_prepare(dscomm_device_queue_t *queue)
{
    /* the shared counter has a cache line of its own */
    const size_t queue_lead = 256;
    int processors = 0;
    cudaError_t error = cudaDeviceGetAttribute(
        &processors, cudaDevAttrMultiProcessorCount, queue->device);
    size_t bytes;

    if (error == cudaSuccess)
        error =
            cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&queue->idle, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&queue->event, cudaEventDisableTiming);
    queue->grid.blocks = (unsigned)processors * BLOCKS_PER_SM;
    if (queue->grid.blocks < DSCOMM_DEVICE_TOGETHER)
        queue->grid.blocks = DSCOMM_DEVICE_TOGETHER;
    bytes = queue_lead + queue->grid.blocks * sizeof(double);
    if (error == cudaSuccess)
        error = cudaMalloc(&queue->shared, bytes);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(queue->shared, 0, bytes, queue->stream);
    queue->grid.stream = queue->stream;
    queue->grid.arrived = queue->shared;
    queue->grid.partials = (double *)((char *)queue->shared + queue_lead);
    return (int)error;
}

static void close_queue(dscomm_device_queue_t *queue)
{
    void *before;
    int code = cuda_enter(queue, &before);

    if (!code && queue->event)
        cudaEventDestroy(queue->event);
    if (!code && queue->idle)
        cudaStreamDestroy(queue->idle);
    if (!code && queue->stream)
        cudaStreamDestroy(queue->stream);
    if (!code)
        code = (int)cudaFree(queue->shared);
    cuda_leave(before, code);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static int open_queue(int number, dscomm_device_queue_t **ret_queue)
{
    dscomm_device_queue_t *queue = calloc(1, sizeof *queue);
    int code;

    if (!queue)
        return cudaErrorMemoryAllocation;
    queue->device = number;
    pthread_mutex_init(&queue->lock, NULL);
    code = ON_DEVICE(queue, queue_prepare(queue));
    if (code)
        close_queue(queue);
    else
        *ret_queue = queue;
    return code;
}

static int sync_queue(dscomm_device_queue_t *queue)
{
    return ON_DEVICE(queue, cudaStreamSynchronize(queue->stream));
}

/* Later work on stream `later` waits for the work that is on stream first
 * now. */
static int order(dscomm_device_queue_t *queue, cudaStream_t first,
                 cudaStream_t later)
{
    void *before;
    int code = cuda_enter(queue, &before);

    pthread_mutex_lock(&queue->lock);
    if (!code)
        code = (int)cudaEventRecord(queue->event, first);
    if (!code)
        code = (int)cudaStreamWaitEvent(later, queue->event, 0);
    pthread_mutex_unlock(&queue->lock);
    return cuda_leave(before, code);
}

static int queue_follow(dscomm_device_queue_t *queue, void *stream)
{
    return order(queue, stream, queue->stream);
}

static int queue_lead(dscomm_device_queue_t *queue, void *stream)
{
    return order(queue, queue->stream, stream);
}

static void *idle(dscomm_device_queue_t *queue)
{
    return queue->idle;
}

static int queue_mark(dscomm_device_queue_t *queue, void **event)
{
    cudaEvent_t made = *event;
    void *before;
    int code = cuda_enter(queue, &before);

    if (!code && !made)
        code = (int)cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    if (!code)
        code = (int)cudaEventRecord(made, queue->stream);
    *event = made;
    return cuda_leave(before, code);
}

/* An event that was not reached is no error, but the runtime stores it as one;
 * cuda_leave() clears it. */
static int reached(dscomm_device_queue_t *queue, void *event, int *ret_reached)
{
    int code = ON_DEVICE(queue, cudaEventQuery(event));

    *ret_reached = code != cudaErrorNotReady;
    return *ret_reached ? code : 0;
}

static void unmark(dscomm_device_queue_t *queue, void *event)
{
    ON_DEVICE(queue, cudaEventDestroy(event));
}

static int cuda_free(int on_host, void *memory)
{
    return (int)(on_host ? cudaFreeHost(memory) : cudaFree(memory));
}

static int alloc(dscomm_device_queue_t *queue, size_t bytes, int on_host,
                 void **ret_memory)
{
    void *before, *memory = NULL;
    int code = cuda_enter(queue, &before);

    if (!code)
        code =
            (int)(on_host ? cudaHostAlloc(&memory, bytes, cudaHostAllocPortable)
                          : cudaMalloc(&memory, bytes));
    if (!code && !on_host)
        code = (int)cudaMemsetAsync(memory, 0, bytes, queue->stream);
    if (!code)
        *ret_memory = memory;
    else if (memory)
        cuda_free(on_host, memory);
    return cuda_leave(before, code);
}

static void queue_release(dscomm_device_queue_t *queue, int on_host,
                          void *memory)
{
    ON_DEVICE(queue, cuda_free(on_host, memory));
}

static int lend(dscomm_device_queue_t *queue, void *memory,
                dscomm_device_card_t *ret_card)
{
    dscomm_device_card_t card = {.process = (uint64_t)getpid()};
    cudaIpcMemHandle_t handle;
    int code = ON_DEVICE(queue, cudaIpcGetMemHandle(&handle, memory));

    if (code)
        return code;
    memcpy(card.handle, &handle, sizeof card.handle);
    *ret_card = card;
    return 0;
}

static int map(dscomm_device_queue_t *queue, const dscomm_device_card_t *card,
               void **ret_memory)
{
    cudaIpcMemHandle_t handle;
    void *memory = NULL;
    int code;

    memcpy(&handle, card->handle, sizeof handle);
    code =
        ON_DEVICE(queue, cudaIpcOpenMemHandle(&memory, handle,
                                              cudaIpcMemLazyEnablePeerAccess));
    if (!code)
        *ret_memory = memory;
    return code;
}

static void unmap(dscomm_device_queue_t *queue, void *memory)
{
    ON_DEVICE(queue, cudaIpcCloseMemHandle(memory));
}

static int queue_copy(dscomm_device_queue_t *queue, void *to, size_t to_stride,
                      const void *from, size_t from_stride, size_t bytes,
                      size_t rows)
{
    return ON_DEVICE(
        queue,
        rows == 1
            ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue->stream)
            : cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, rows,
                                cudaMemcpyDefault, queue->stream));
}

static int queue_clear(dscomm_device_queue_t *queue, void *memory, size_t bytes)
{
    return ON_DEVICE(queue, cudaMemsetAsync(memory, 0, bytes, queue->stream));
}

/* Defines a slot of the table that starts a kernel for any number of jobs. */
#define KERNEL(name)                                                           \
    static int name(dscomm_device_queue_t *queue,                              \
                    const dscomm_device_##name##_t *args, size_t jobs)         \
    {                                                                          \
        return ON_DEVICE(queue,                                                \
                         dscomm_priv_cuda_##name(&queue->grid, args, jobs));   \
    }

KERNEL(worker)
KERNEL(server)
KERNEL(unpack)

static int queue_take_back(dscomm_device_queue_t *queue,
                           const dscomm_device_take_back_t *args)
{
    return ON_DEVICE(queue, dscomm_priv_cuda_take_back(&queue->grid, args));
}

static int queue_materialise(dscomm_device_queue_t *queue,
                             const dscomm_device_materialise_t *args)
{
    int code =
        ON_DEVICE(queue, dscomm_priv_cuda_materialise(&queue->grid, args));

    return code ? code : queue_clear(queue, args->s, sizeof *args->s);
}

const dscomm_device_ops_t *dscomm_device_cuda(uint32_t abi)
{
    static const dscomm_device_ops_t ops = {
        .abi = DSCOMM_DEVICE_ABI,
        .name = "cuda",
        .why = why,
        .text = text,
        .device = device,
        .current = cuda_current,
        .open = open_queue,
        .close = close_queue,
        .sync = sync_queue,
        .follow = queue_follow,
        .lead = queue_lead,
        .idle = idle,
        .mark = queue_mark,
        .reached = reached,
        .unmark = unmark,
        .alloc = alloc,
        .release = queue_release,
        .lend = lend,
        .map = map,
        .unmap = unmap,
        .copy = queue_copy,
        .clear = queue_clear,
        .worker = worker,
        .server = server,
        .unpack = unpack,
        .materialise = queue_materialise,
        .take_back = queue_take_back,
    };

    return abi == DSCOMM_DEVICE_ABI ? &ops : NULL;
}
