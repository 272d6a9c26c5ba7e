/* SPDX-License-Identifier: BSD-3-Clause */
/* The module cuda.so: codec onebit on CUDA devices, with the runtime inside. Of
 * the process it shares the devices' primary contexts, with every other runtime
 * there. */
#include "config.h"

#include "compression/cuda/kernels.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef BLOCKS_PER_SM /* tests/gpu/variants has others */
#define BLOCKS_PER_SM 4
#endif

struct dscomm_device_queue {
    int device;
    cudaStream_t stream;
    pthread_mutex_t lock; /* of event, from its record to the wait for it */
    cudaEvent_t event;
    dscomm_cuda_grid_t grid;
    void *shared; /* arrived, then partials */
};

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

/* A count of 0 and the several numbers that say the same are one thing to
 * users; the driver's version tells an old one from none. */
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

/* Memory that both can touch is the host's. */
static int device(const void *pointer)
{
    struct cudaPointerAttributes attributes;

    if (cudaPointerGetAttributes(&attributes, pointer) != cudaSuccess) {
        cudaGetLastError();
        return -1;
    }
    return attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
}

/* Makes the queue's device this thread's; returns the one it was. */
static int enter(const dscomm_device_queue_t *queue)
{
    int before = queue->device;

    cudaGetDevice(&before);
    if (before != queue->device)
        cudaSetDevice(queue->device);
    return before;
}

static int leave(const dscomm_device_queue_t *queue, int before, int code)
{
    if (before != queue->device)
        cudaSetDevice(before);
    return code;
}

/* Its stream has nothing to do with the default stream. */
static int prepare(dscomm_device_queue_t *queue)
{
    const size_t lead = 256; /* what is shared has a line for itself */
    int processors = 0;
    cudaError_t error = cudaDeviceGetAttribute(
        &processors, cudaDevAttrMultiProcessorCount, queue->device);
    size_t bytes;

    if (error == cudaSuccess)
        error =
            cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&queue->event, cudaEventDisableTiming);
    queue->grid.blocks = (unsigned)processors * BLOCKS_PER_SM;
    if (queue->grid.blocks < DSCOMM_DEVICE_TOGETHER)
        queue->grid.blocks = DSCOMM_DEVICE_TOGETHER;
    bytes = lead + queue->grid.blocks * sizeof(double);
    if (error == cudaSuccess)
        error = cudaMalloc(&queue->shared, bytes);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(queue->shared, 0, bytes, queue->stream);
    queue->grid.stream = queue->stream;
    queue->grid.arrived = queue->shared;
    queue->grid.partials = (double *)((char *)queue->shared + lead);
    return (int)error;
}

static void close_queue(dscomm_device_queue_t *queue)
{
    int before = enter(queue);

    if (queue->event)
        cudaEventDestroy(queue->event);
    if (queue->stream)
        cudaStreamDestroy(queue->stream);
    cudaFree(queue->shared);
    leave(queue, before, 0);
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
    code = enter(queue);
    code = leave(queue, code, prepare(queue));
    if (code)
        close_queue(queue);
    else
        *ret_queue = queue;
    return code;
}

static int sync(dscomm_device_queue_t *queue)
{
    int before = enter(queue);

    return leave(queue, before, (int)cudaStreamSynchronize(queue->stream));
}

/* What is put on later from here on comes after what first has. */
static int order(dscomm_device_queue_t *queue, cudaStream_t first,
                 cudaStream_t later)
{
    int before = enter(queue);
    cudaError_t error;

    pthread_mutex_lock(&queue->lock);
    error = cudaEventRecord(queue->event, first);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(later, queue->event, 0);
    pthread_mutex_unlock(&queue->lock);
    return leave(queue, before, (int)error);
}

static int follow(dscomm_device_queue_t *queue, void *stream)
{
    return order(queue, stream, queue->stream);
}

static int lead(dscomm_device_queue_t *queue, void *stream)
{
    return order(queue, queue->stream, stream);
}

static int alloc(dscomm_device_queue_t *queue, size_t bytes, int on_host,
                 void **ret_memory)
{
    int before = enter(queue);
    void *memory = NULL;
    cudaError_t error =
        on_host ? cudaHostAlloc(&memory, bytes, cudaHostAllocPortable)
                : cudaMalloc(&memory, bytes);

    if (error == cudaSuccess)
        error = cudaMemsetAsync(memory, 0, bytes, queue->stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(queue->stream);
    if (error == cudaSuccess)
        *ret_memory = memory;
    else if (memory)
        on_host ? cudaFreeHost(memory) : cudaFree(memory);
    cudaGetLastError();
    return leave(queue, before, (int)error);
}

static void release(dscomm_device_queue_t *queue, int on_host, void *memory)
{
    int before = enter(queue);

    on_host ? cudaFreeHost(memory) : cudaFree(memory);
    leave(queue, before, 0);
}

static int copy(dscomm_device_queue_t *queue, void *to, size_t to_stride,
                const void *from, size_t from_stride, size_t bytes, size_t rows)
{
    int before = enter(queue);
    cudaError_t error =
        rows == 1
            ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue->stream)
            : cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, rows,
                                cudaMemcpyDefault, queue->stream);

    return leave(queue, before, (int)error);
}

static int clear(dscomm_device_queue_t *queue, void *memory, size_t bytes)
{
    int before = enter(queue);

    return leave(queue, before,
                 (int)cudaMemsetAsync(memory, 0, bytes, queue->stream));
}

/* A slot of the table that starts a kernel for any number of jobs. */
#define KERNEL(name)                                                           \
    static int name(dscomm_device_queue_t *queue,                              \
                    const dscomm_device_##name##_t *args, size_t jobs)         \
    {                                                                          \
        int before = enter(queue);                                             \
                                                                               \
        return leave(queue, before,                                            \
                     dscomm_priv_cuda_##name(&queue->grid, args, jobs));       \
    }

KERNEL(worker)
KERNEL(server)
KERNEL(unpack)

static int take_back(dscomm_device_queue_t *queue,
                     const dscomm_device_take_back_t *args)
{
    int before = enter(queue);

    return leave(queue, before, dscomm_priv_cuda_take_back(&queue->grid, args));
}

static int materialise(dscomm_device_queue_t *queue,
                       const dscomm_device_materialise_t *args)
{
    int before = enter(queue);
    int code = dscomm_priv_cuda_materialise(&queue->grid, args);

    if (!code)
        code = (int)cudaMemsetAsync(args->s, 0, sizeof *args->s, queue->stream);
    return leave(queue, before, code);
}

const dscomm_device_ops_t *dscomm_device_cuda(uint32_t abi)
{
    static const dscomm_device_ops_t ops = {
        .abi = DSCOMM_DEVICE_ABI,
        .name = "cuda",
        .why = why,
        .text = text,
        .device = device,
        .open = open_queue,
        .close = close_queue,
        .sync = sync,
        .follow = follow,
        .lead = lead,
        .alloc = alloc,
        .release = release,
        .copy = copy,
        .clear = clear,
        .worker = worker,
        .server = server,
        .unpack = unpack,
        .materialise = materialise,
        .take_back = take_back,
    };

    return abi == DSCOMM_DEVICE_ABI ? &ops : NULL;
}
