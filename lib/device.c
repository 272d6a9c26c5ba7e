/* SPDX-License-Identifier: BSD-3-Clause */
/* See device.h. CUDA's driver interface is stable since its version 4, so the
 * few functions and numbers in use are declared here. */
#define _GNU_SOURCE
#include "config.h"
#include "lib/device.h"

#include <dscomm/backend.h>

#include <dlfcn.h>
#include <glib.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define LIBRARY "libcuda.so.1"
#define SHELF 4 /* buffers that are kept */

/* CU_POINTER_ATTRIBUTE_*, CU_MEMORYTYPE_DEVICE */
enum { ATTRIBUTE_CONTEXT = 1, ATTRIBUTE_TYPE = 2, ATTRIBUTE_MANAGED = 8 };
enum { TYPE_DEVICE = 2 };

typedef uint64_t address_t; /* CUdeviceptr */

typedef struct {
    int (*attribute)(void *value, int which, address_t pointer);
    int (*count)(int *count);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*synchronize)(void *stream);
    int (*to_host)(void *dest, address_t source, size_t bytes);
    int (*to_device)(address_t dest, const void *source, size_t bytes);
    int (*host_alloc)(void **memory, size_t bytes);
    int (*error_name)(int code, const char **name);
} driver_t;

#define SLOT(member, symbol)                                                   \
    {                                                                          \
        offsetof(driver_t, member), symbol                                     \
    }
static const struct {
    size_t offset;
    const char *symbol;
} slots[] = {
    SLOT(attribute, "cuPointerGetAttribute"),
    SLOT(count, "cuDeviceGetCount"),
    SLOT(push, "cuCtxPushCurrent_v2"),
    SLOT(pop, "cuCtxPopCurrent_v2"),
    SLOT(synchronize, "cuStreamSynchronize"),
    SLOT(to_host, "cuMemcpyDtoH_v2"),
    SLOT(to_device, "cuMemcpyHtoD_v2"),
    SLOT(host_alloc, "cuMemAllocHost_v2"),
    SLOT(error_name, "cuGetErrorName"),
};

/* Host memory begins with this. */
typedef struct block {
    _Alignas(64) struct block *next;
    size_t size;
    int pinned;
} block_t;

static driver_t functions;
static _Atomic(const driver_t *) driver;
static atomic_ullong loads; /* of libraries, when it was last looked for */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block_t *shelf;
static int shelved;

static int see_loads(struct dl_phdr_info *info, size_t size, void *ret_loads)
{
    (void)size;
    *(unsigned long long *)ret_loads = info->dlpi_adds;
    return 1;
}

/* Stays loaded from here on. */
static int find(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);

    if (!handle)
        return 0;
    for (size_t i = 0; i < G_N_ELEMENTS(slots); i++) {
        void *symbol = dlsym(handle, slots[i].symbol);

        if (!symbol) {
            dlclose(handle);
            return 0;
        }
        *(void **)((char *)&functions + slots[i].offset) = symbol;
    }
    return 1;
}

_Atomic(struct link_map *) dscomm_priv_device_last, dscomm_priv_device_looked;

/* What an object needs comes behind it in the list; it is bound to stay, in
 * case that it came from somewhere else at the same time. */
static void settle(struct link_map *map)
{
    struct link_map *next;

    while ((next = __atomic_load_n(&map->l_next, __ATOMIC_ACQUIRE))) {
        dlopen(next->l_name, RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
        map = next;
    }
    atomic_store_explicit(&dscomm_priv_device_last, map, memory_order_release);
}

void dscomm_priv_device_anchor(void *handle)
{
    struct link_map *map;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
        settle(map);
}

/* Where there is no module: the object that this is in. */
static struct link_map *find_last(void)
{
    struct link_map *map;
    Dl_info info;

    if (!atomic_load_explicit(&dscomm_priv_device_last, memory_order_acquire) &&
        dladdr1(&functions, &info, (void **)&map, RTLD_DL_LINKMAP))
        settle(map);
    return atomic_load_explicit(&dscomm_priv_device_last, memory_order_acquire);
}

/* Looks for the driver where anything was loaded since that was done. */
static int look(void)
{
    unsigned long long now = 0;

    dl_iterate_phdr(see_loads, &now);
    if (now == atomic_load_explicit(&loads, memory_order_relaxed))
        return 0;
    pthread_mutex_lock(&lock);
    if (!driver && find())
        atomic_store_explicit(&driver, &functions, memory_order_release);
    atomic_store_explicit(&loads, now, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return driver != NULL;
}

int dscomm_priv_device_look(void)
{
    struct link_map *last = find_last();

    if (atomic_load_explicit(&driver, memory_order_acquire) || look())
        return 1;
    atomic_store_explicit(&dscomm_priv_device_looked, last,
                          memory_order_release);
    return 0;
}

static address_t address(const void *pointer)
{
    return (address_t)(uintptr_t)pointer;
}

int dscomm_priv_device_owns(const void *pointer)
{
    unsigned type = 0, managed = 0;

    if (!pointer || !dscomm_priv_device_present() ||
        functions.attribute(&type, ATTRIBUTE_TYPE, address(pointer)) ||
        type != TYPE_DEVICE)
        return 0;
    return functions.attribute(&managed, ATTRIBUTE_MANAGED, address(pointer)) ||
           !managed;
}

int dscomm_priv_device_count(void)
{
    int count = 0;

    return dscomm_priv_device_present() && !functions.count(&count) ? count : 0;
}

/* Makes the context of pointer's memory this thread's, until leave(). */
static int enter(const void *pointer)
{
    void *context = NULL;

    return !functions.attribute(&context, ATTRIBUTE_CONTEXT,
                                address(pointer)) &&
           context && !functions.push(context);
}

static void leave(int entered)
{
    void *context;

    if (entered)
        functions.pop(&context);
}

static dscomm_status_t result(int code, const char *what)
{
    const char *name = NULL;

    if (!code)
        return DSCOMM_OK;
    if (functions.error_name(code, &name) || !name)
        name = "an error without a name";
    return dscomm_fail(DSCOMM_ERR_IO, "%s: CUDA says %s (%d)", what, name,
                       code);
}

dscomm_status_t dscomm_priv_device_sync(const void *pointer, void *stream)
{
    int entered = enter(pointer);
    int code = functions.synchronize(stream);

    leave(entered);
    return result(code, "waiting for a device");
}

dscomm_status_t dscomm_priv_device_to_host(void *dest, const void *source,
                                           size_t bytes)
{
    int entered = enter(source);
    int code = functions.to_host(dest, address(source), bytes);

    leave(entered);
    return result(code, "copying from a device");
}

dscomm_status_t dscomm_priv_device_to_device(void *dest, const void *source,
                                             size_t bytes)
{
    int entered = enter(dest);
    int code = functions.to_device(address(dest), source, bytes);

    leave(entered);
    return result(code, "copying to a device");
}

/* The first that is large enough, but not by far. */
static block_t *unshelve(size_t size)
{
    block_t **link = &shelf, *block;

    while ((block = *link) && (block->size < size || block->size / 4 > size))
        link = &block->next;
    if (block) {
        *link = block->next;
        shelved--;
    }
    return block;
}

static block_t *make(const void *pointer, size_t size)
{
    int entered = enter(pointer);
    void *memory = NULL;
    block_t *block;
    const int pinned = !functions.host_alloc(&memory, size);

    leave(entered);
    block = pinned ? memory : aligned_alloc(_Alignof(block_t), size);
    if (block)
        *block = (block_t){.size = size, .pinned = pinned};
    return block;
}

void *dscomm_priv_device_host_take(const void *pointer, size_t bytes)
{
    size_t size = (bytes + sizeof(block_t) + 4095) & ~(size_t)4095;
    block_t *block;

    pthread_mutex_lock(&lock);
    block = unshelve(size);
    pthread_mutex_unlock(&lock);
    if (!block)
        block = make(pointer, size);
    return block ? block + 1 : NULL;
}

/* Pinned memory goes with the process: to give it back takes the context that
 * it is of, which may be gone by then. */
void dscomm_priv_device_host_give(void *memory)
{
    block_t *block = memory ? (block_t *)memory - 1 : NULL;

    if (!block)
        return;
    pthread_mutex_lock(&lock);
    if (block->pinned || shelved < SHELF) {
        block->next = shelf;
        shelf = block;
        shelved++;
        block = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(block);
}
