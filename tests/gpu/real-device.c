/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of fake-device.h with the module cuda.so that TEST_CUDA_MODULE
 * names: the tests of the fake device then run on a real one. */
#include "config.h"

#include "tests/compression/fake-device.h"

#include <dlfcn.h>
#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

const int fake_device_real = 1;

static const dscomm_device_ops_t *ops;
static dscomm_device_queue_t *queue;
static gint pieces;
/* Functions of the driver, for streams. */
static struct {
    int (*retain)(void **context, int device);
    int (*set)(void *context);
    int (*create)(void **stream, unsigned flags);
    int (*destroy)(void *stream);
    int (*wait)(void *stream);
    int (*write)(uint64_t to, const void *from, size_t bytes, void *stream);
    int (*read)(void *to, uint64_t from, size_t bytes, void *stream);
    void *context;
} driver;

static void need(int cond, const char *what, const char *why)
{
    if (cond)
        return;
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void must(int code)
{
    need(!code, "device", code ? ops->text(code) : "");
}

const dscomm_device_ops_t *fake_device_table(void)
{
    const char *path = g_getenv("TEST_CUDA_MODULE");
    dscomm_device_module_t entry;
    void *handle;

    if (ops)
        return ops;
    need(path != NULL, "TEST_CUDA_MODULE", "it is not set");
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    need(handle != NULL, path, handle ? "" : dlerror());
    *(void **)&entry = dlsym(handle, DSCOMM_DEVICE_SYMBOL);
    need(entry != NULL, path, "no " DSCOMM_DEVICE_SYMBOL);
    ops = entry(DSCOMM_DEVICE_ABI);
    need(ops != NULL, path, "it has another ABI");
    if (ops->why()) {
        printf("1..0 # SKIP %s\n", ops->why());
        exit(77);
    }
    must(ops->open(0, &queue));
    return ops;
}

static void load_driver(void)
{
    static const char *const names[] = {
        "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
        "cuStreamCreate",           "cuStreamDestroy_v2",
        "cuStreamSynchronize",      "cuMemcpyHtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2"};
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    void **slots = (void **)(void *)&driver;

    need(handle != NULL, "libcuda.so.1", handle ? "" : dlerror());
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        slots[i] = dlsym(handle, names[i]);
        need(slots[i] != NULL, names[i], "libcuda does not have it");
    }
    need(!driver.retain(&driver.context, 0), "context", "there is none");
}

/* Makes the device's context this thread's. */
static void enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_driver);
    need(!driver.set(driver.context), "context", "it cannot be set");
}

/* The stream is independent of the default stream. */
void *fake_device_stream_new(void)
{
    void *stream = NULL;

    enter();
    need(!driver.create(&stream, 1), "stream", "there is none");
    return stream;
}

void fake_device_stream_free(void *stream)
{
    enter();
    driver.destroy(stream);
}

void fake_device_write_on(void *stream, void *to, const void *from,
                          size_t bytes)
{
    enter();
    need(!driver.write((uint64_t)(uintptr_t)to, from, bytes, stream), "copy",
         "it failed");
}

void fake_device_read_on(void *stream, void *to, const void *from, size_t bytes)
{
    enter();
    need(!driver.read(to, (uint64_t)(uintptr_t)from, bytes, stream), "copy",
         "it failed");
}

void fake_device_wait(void *stream)
{
    enter();
    need(!driver.wait(stream), "stream", "it failed");
}

void fake_device_hold(int hold)
{
    (void)hold;
}

void *fake_device_alloc(size_t bytes)
{
    void *memory = NULL;

    must(ops->alloc(queue, MAX(bytes, 1), 0, &memory));
    /* the memory is cleared before other streams write to it */
    must(ops->sync(queue));
    g_atomic_int_inc(&pieces);
    return memory;
}

void fake_device_free(void *memory)
{
    ops->release(queue, 0, memory);
    g_atomic_int_add(&pieces, -1);
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (!bytes)
        return;
    must(ops->copy(queue, to, bytes, from, bytes, bytes, 1));
    must(ops->sync(queue));
}

void fake_device_write(void *to, const void *from, size_t bytes)
{
    copy(to, from, bytes);
}

void fake_device_read(void *to, const void *from, size_t bytes)
{
    copy(to, from, bytes);
}

size_t fake_device_counted(fake_count_t what)
{
    (void)what;
    return 0;
}

int fake_device_pieces(void)
{
    return pieces;
}

int fake_device_fail(int calls)
{
    return calls;
}

void fake_device_full(int full)
{
    (void)full;
}
