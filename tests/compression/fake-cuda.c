/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of CUDA's runtime that cuda.c uses, with threads as streams, and
 * cuda.c compiled on it. See fake-device.h. */
#define _GNU_SOURCE
#include "config.h"

#include "compression/cuda/kernels.h"
#include "tests/compression/fake-device.h"
#include "tests/compression/fake-kernels.h"

#include <dscomm/device.h>

#include <glib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CUDART_VERSION 13000
#define cudaDriverGetVersion(ret_version) (*(ret_version) = CUDART_VERSION)
#define cudaGetDeviceCount(ret_count) (*(ret_count) = FAKE_DEVICES, cudaSuccess)
#define cudaDeviceGetAttribute(ret_value, attribute, device)                   \
    (*(ret_value) = 2, cudaSuccess)
#define cudaGetErrorName(error) ((error) == FAKE_ERROR ? "FAKE_ERROR" : "FAKE")
#define cudaGetErrorString(error) ((error) ? "it failed" : "it went well")

typedef enum {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = FAKE_INVALID_DEVICE,
    cudaErrorNotReady = 600,
    cudaErrorFake = FAKE_ERROR
} cudaError_t;
typedef struct fake_stream *cudaStream_t;
typedef struct fake_event *cudaEvent_t;
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

#define LATE_US 300 /* at most */

typedef struct {
    void (*run)(const void *args); /* NULL: the end */
    char args[sizeof(dscomm_device_worker_t) + 64];
} task_t;

struct fake_stream {
    struct fake_stream *next;
    int device;
    atomic_int is_open; /* and the module's */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GQueue tasks; /* that wait */
    unsigned long begun, ended; /* tasks */
};

fake_counts_t fake_counts = {.refused = -1};
static char contexts[FAKE_DEVICES];
/* the program's current context, on any device */
static _Thread_local void *own_context;
static _Thread_local cudaError_t last_error;

/* Never freed, because other streams may wait for their events. */
static _Atomic(struct fake_stream *) streams;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int failing = -1, full, lateness;
static atomic_size_t counts[FAKE_COUNTS];
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static int held; /* with lock */
_Thread_local int fake_device_unmappable;

/* A queue that is stopped before a copy, until something happens on another
 * device; with its lock. */
#define IN_VAIN_S 20
static struct {
    /* device: -1: none; copies: number of copies to the host before that one */
    int device, copies;
    fake_event_t until;
    int happened, met;
} stop = {.device = -1};

void fake_device_stop(int device, int copies, fake_event_t until)
{
    pthread_mutex_lock(&lock);
    stop.device = device;
    stop.copies = copies;
    stop.until = until;
    stop.happened = stop.met = 0;
    pthread_mutex_unlock(&lock);
}

int fake_device_met(void)
{
    int met;

    pthread_mutex_lock(&lock);
    met = stop.met;
    stop.device = -1;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&lock);
    return met;
}

void fake_device_happens(fake_event_t event, const void *pointer)
{
    int device = fake_device_number(pointer);

    pthread_mutex_lock(&lock);
    stop.happened |=
        stop.device >= 0 && event == stop.until && device != stop.device;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&lock);
}

/* Stops, if requested, before a copy to the host or from another process's
 * memory. */
static void stop_if_requested(int device)
{
    struct timespec end;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += IN_VAIN_S;
    pthread_mutex_lock(&lock);
    if (stop.device == device && stop.copies-- == 0) {
        while (!stop.happened && !late && stop.device == device)
            late = pthread_cond_timedwait(&let_go, &lock, &end);
        stop.met = stop.happened || (late && stop.until == FAKE_NEVER);
    }
    pthread_mutex_unlock(&lock);
}

size_t fake_device_counted(fake_count_t what)
{
    return atomic_exchange(&counts[what], 0);
}

void fake_device_hold(int hold)
{
    pthread_mutex_lock(&lock);
    held = hold;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&lock);
}

void fake_device_held(void)
{
    pthread_mutex_lock(&lock);
    while (held)
        pthread_cond_wait(&let_go, &lock);
    pthread_mutex_unlock(&lock);
}

int fake_device_fail(int calls)
{
    return atomic_exchange(&failing, calls);
}

void fake_device_full(int is_full)
{
    full = is_full;
}

static cudaError_t set_last_error(cudaError_t error)
{
    if (error)
        last_error = error;
    return error;
}

void *fake_context_of(int device)
{
    return &contexts[device];
}

void *fake_context(void)
{
    int device = fake_device_chosen();

    return device < 0 ? own_context : fake_context_of(device);
}

void fake_set_context(void *context)
{
    size_t device = (uintptr_t)context - (uintptr_t)contexts;

    fake_device_choose(device < FAKE_DEVICES ? (int)device : -1);
    own_context = context;
}

static cudaError_t cudaSetDevice(int device)
{
    if (device == fake_counts.refused)
        return set_last_error(cudaErrorInvalidDevice);
    fake_counts.made[device] = 1;
    fake_device_choose(device);
    return cudaSuccess;
}

static cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

/* Counts a call that cannot fail. Without a current context it makes device
 * 0's. */
static void count_call(void)
{
    if (!fake_context())
        cudaSetDevice(0);
    fake_counts.calls[MAX(fake_device_chosen(), 0)]++;
}

static cudaError_t call(void)
{
    count_call();
    return failing >= 0 && failing-- == 0 ? set_last_error(cudaErrorFake)
                                          : cudaSuccess;
}

static void *stream_serve(void *argument)
{
    struct fake_stream *stream = argument;
    unsigned salt = 1;
    int is_last = 0;

    while (!is_last) {
        task_t *task;

        pthread_mutex_lock(&stream->lock);
        while (!(task = g_queue_pop_head(&stream->tasks)))
            pthread_cond_wait(&stream->changed, &stream->lock);
        pthread_mutex_unlock(&stream->lock);
        salt = salt * 1103515245u + 12345u;
        usleep(salt >> 16 & 1 ? salt >> 17 & (LATE_US - 1) : 0);
        is_last = !task->run;
        if (!is_last)
            task->run(task->args);
        g_free(task);
        pthread_mutex_lock(&stream->lock);
        stream->ended++;
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->lock);
    }
    return NULL;
}

/* A thread starts when the first task is enqueued; the idle stream never gets
 * one. */
static void stream_put(struct fake_stream *stream, void (*run)(const void *),
                       const void *args, size_t bytes)
{
    task_t *task = g_new0(task_t, 1);

    g_assert(bytes <= sizeof task->args);
    task->run = run;
    if (bytes)
        memcpy(task->args, args, bytes);
    pthread_mutex_lock(&stream->lock);
    if (!stream->begun++)
        pthread_create(&stream->thread, NULL, stream_serve, stream);
    g_queue_push_tail(&stream->tasks, task);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static cudaError_t stream_try(struct fake_stream *stream,
                              void (*run)(const void *), const void *args,
                              size_t bytes)
{
    cudaError_t error = call();

    if (!error)
        stream_put(stream, run, args, bytes);
    return error;
}

/* Returns whether so many tasks have ended; may wait for that. */
static int stream_passed(struct fake_stream *stream, unsigned long tasks,
                         int waits)
{
    int passed;

    pthread_mutex_lock(&stream->lock);
    while (waits && stream->ended < tasks)
        pthread_cond_wait(&stream->changed, &stream->lock);
    passed = stream->ended >= tasks;
    pthread_mutex_unlock(&stream->lock);
    return passed;
}

static unsigned long stream_tasks(struct fake_stream *stream)
{
    unsigned long tasks;

    pthread_mutex_lock(&stream->lock);
    tasks = stream->begun;
    pthread_mutex_unlock(&stream->lock);
    return tasks;
}

void fake_device_wait(void *stream)
{
    stream_passed(stream, stream_tasks(stream), 1);
}

static struct fake_stream *stream_new(int device)
{
    struct fake_stream *stream = g_new0(struct fake_stream, 1);

    stream->device = device;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    pthread_mutex_lock(&lock);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    return stream;
}

void fake_device_stream_free(void *argument)
{
    struct fake_stream *stream = argument;

    if (!stream->begun)
        return;
    stream_put(stream, NULL, NULL, 0);
    pthread_join(stream->thread, NULL);
}

/* Each open queue has some memory of its own, and two streams. */
int fake_device_pieces(void)
{
    int count = 0;

    for (struct fake_stream *s = streams; s; s = s->next)
        count += s->is_open;
    return fake_device_mappings() - count / 2;
}

static cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream,
                                             unsigned flags)
{
    cudaError_t error = call();

    (void)flags;
    if (!error) {
        *ret_stream = stream_new(fake_device_chosen());
        (*ret_stream)->is_open = 1;
    }
    return error;
}

static cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    count_call();
    stream->is_open = 0;
    fake_device_stream_free(stream);
    return cudaSuccess;
}

static cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    fake_device_wait(stream);
    return call();
}

/* The number of a stream's tasks when the event was recorded; NULL: the default
 * stream, which runs everything at once. */
struct fake_event {
    struct fake_stream *stream;
    unsigned long tasks;
    int late; /* number of queries that do not find it reached yet */
};

static cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event,
                                            unsigned flags)
{
    cudaError_t error = call();

    (void)flags;
    if (!error)
        *ret_event = g_new0(struct fake_event, 1);
    return error;
}

static cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    count_call();
    g_free(event);
    return cudaSuccess;
}

static cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = call();

    counts[FAKE_MARKS] += stream != NULL;
    if (!error)
        *event = (struct fake_event){stream, stream ? stream_tasks(stream) : 0,
                                     lateness};
    return error;
}

static void run_await(const void *args)
{
    const struct fake_event *event = args;

    stream_passed(event->stream, event->tasks, 1);
}

static cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                       unsigned flags)
{
    cudaError_t error = call();

    (void)flags;
    if (!error && stream && event->stream)
        stream_put(stream, run_await, event, sizeof *event);
    return error;
}

static cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (event->stream && !stream_passed(event->stream, event->tasks, 0))
        return set_last_error(cudaErrorNotReady);
    return event->late-- > 0 ? set_last_error(cudaErrorNotReady) : call();
}

void fake_device_late(int looks)
{
    lateness = looks;
}

void *fake_device_stream_new(void)
{
    return stream_new(0);
}

typedef struct {
    char *to;
    const char *from;
    size_t to_stride, from_stride, bytes, rows;
} copy_t;

static void run_rows(const void *args)
{
    const copy_t *a = args;

    for (size_t r = 0; r < a->rows; r++)
        memcpy((char *)fake_device_shadow(a->to) + r * a->to_stride,
               (char *)fake_device_shadow(a->from) + r * a->from_stride,
               a->bytes);
}

static void run_write(const void *args)
{
    run_rows(args);
    g_free((void *)((const copy_t *)args)->from);
}

void fake_device_write_on(void *stream, void *to, const void *from,
                          size_t bytes)
{
    copy_t a = {.to = to, .from = g_malloc(bytes), .bytes = bytes, .rows = 1};

    memcpy((void *)a.from, from, bytes);
    stream_put(stream, run_write, &a, sizeof a);
}

void fake_device_read_on(void *stream, void *to, const void *from, size_t bytes)
{
    copy_t a = {.to = to, .from = from, .bytes = bytes, .rows = 1};

    stream_put(stream, run_rows, &a, sizeof a);
}

static cudaError_t find_room(void)
{
    counts[FAKE_REFUSED] += full != 0;
    return full ? set_last_error(cudaErrorFake) : call();
}

static cudaError_t cudaMalloc(void **ret_memory, size_t bytes)
{
    cudaError_t error = find_room();

    if (!error)
        *ret_memory = fake_device_alloc_on(fake_device_chosen(), bytes);
    return error;
}

/* Waits for the device, as CUDA does. */
static cudaError_t cudaFree(void *memory)
{
    count_call();
    for (struct fake_stream *s = streams; s; s = s->next)
        if (s->is_open && s->device == fake_device_chosen())
            fake_device_wait(s);
    if (fake_device_room(memory))
        fake_device_free(memory);
    else
        g_free(memory);
    return cudaSuccess;
}
#define cudaFreeHost cudaFree
#define cudaIpcCloseMemHandle cudaFree

static cudaError_t cudaHostAlloc(void **ret_memory, size_t bytes,
                                 unsigned flags)
{
    cudaError_t error = find_room();

    (void)flags;
    if (!error)
        *ret_memory = g_malloc(bytes);
    return error;
}

static cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *ret_handle,
                                       void *memory)
{
    cudaError_t error = call();

    if (!error)
        fake_device_lend(memory, ret_handle->reserved);
    return error;
}

static cudaError_t cudaIpcOpenMemHandle(void **ret_memory,
                                        cudaIpcMemHandle_t handle,
                                        unsigned flags)
{
    cudaError_t error = call();
    void *memory = NULL;

    (void)flags;
    if (!error && !fake_device_unmappable)
        memory = fake_device_map(fake_device_chosen(), handle.reserved);
    *ret_memory = memory;
    return memory || error ? error : set_last_error(cudaErrorFake);
}

static void run_copy(const void *args)
{
    const copy_t *a = args;
    int from = fake_device_number(a->from), to = fake_device_number(a->to);

    if (from >= 0 && (to < 0 || fake_device_is_mapped(a->from)))
        stop_if_requested(from);
    run_rows(a);
    if (from < 0)
        fake_device_happens(FAKE_UP, a->to);
}

static cudaError_t cudaMemcpy2DAsync(void *to, size_t to_stride,
                                     const void *from, size_t from_stride,
                                     size_t bytes, size_t rows, int kind,
                                     cudaStream_t stream)
{
    copy_t a = {to, from, to_stride, from_stride, bytes, rows};

    (void)kind;
    if (fake_device_number(to) < 0 || fake_device_number(from) < 0)
        counts[FAKE_COPIED] += bytes * rows;
    if (fake_device_is_mapped(from))
        counts[FAKE_READ] += bytes * rows;
    return stream_try(stream, run_copy, &a, sizeof a);
}

static cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                   int kind, cudaStream_t stream)
{
    return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

static void run_clear(const void *args)
{
    const copy_t *a = args;

    memset(fake_device_shadow(a->to), 0, a->bytes);
}

static cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes,
                                   cudaStream_t stream)
{
    copy_t a = {.to = memory, .bytes = bytes};

    (void)value;
    return stream_try(stream, run_clear, &a, sizeof a);
}

/* Starts a kernel; returns an earlier error that was not fetched. */
static int start(const dscomm_cuda_grid_t *grid, void (*run)(const void *),
                 const void *args, size_t size, size_t jobs)
{
    cudaError_t error = call();

    for (size_t i = 0; i < jobs && !error; i++)
        stream_put(grid->stream, run, (const char *)args + i * size, size);
    return (int)cudaGetLastError();
}

#define KERNEL(name)                                                           \
    int dscomm_priv_cuda_##name(const dscomm_cuda_grid_t *grid,                \
                                const dscomm_device_##name##_t *args,          \
                                size_t jobs)                                   \
    {                                                                          \
        counts[FAKE_LAUNCHES]++;                                               \
        return start(grid, fake_device_##name, args, sizeof *args, jobs);      \
    }

KERNEL(worker)
KERNEL(server)
KERNEL(unpack)

int dscomm_priv_cuda_materialise(const dscomm_cuda_grid_t *grid,
                                 const dscomm_device_materialise_t *args)
{
    return start(grid, fake_device_materialise, args, sizeof *args, 1);
}

int dscomm_priv_cuda_take_back(const dscomm_cuda_grid_t *grid,
                               const dscomm_device_take_back_t *args)
{
    return start(grid, fake_device_take_back, args, sizeof *args, 1);
}

static cudaError_t cudaGetDevice(int *ret_device)
{
    *ret_device = fake_device_chosen();
    return cudaSuccess;
}

static cudaError_t
cudaPointerGetAttributes(struct cudaPointerAttributes *ret_attributes,
                         const void *pointer)
{
    int device = fake_device_number(pointer);

    ret_attributes->type = device < 0 ? 0 : cudaMemoryTypeDevice;
    ret_attributes->device = device;
    return cudaSuccess;
}

/* Returns the process that a rank, which is a thread, represents. */
static pid_t fake_process(void)
{
    return fake_device_one_process ? getpid() : gettid();
}

#undef KERNEL
#define FAKE_CUDA
#define getpid fake_process
#define dscomm_device_context fake_context
#define dscomm_device_set_context fake_set_context
#include "compression/cuda/cuda.c"

const int fake_device_real = 0;

const dscomm_device_ops_t *fake_device_table(void)
{
    return dscomm_device_cuda(DSCOMM_DEVICE_ABI);
}
