/* SPDX-License-Identifier: BSD-3-Clause */
/* See device.h. CUDA's driver interface has been stable since version 4, so the
 * few functions and constants in use are declared here. */
#define _GNU_SOURCE
#include "config.h"
#include "lib/device/device.h"

#include <dscomm/backend.h>

#include <dlfcn.h>
#include <glib.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#define LIBRARY "libcuda.so.1"
#define PAGE ((size_t)4096)
#define CACHED_MOST 8 /* free blocks in the cache */
#define PINNED_MOST ((size_t)256 << 20) /* bytes, cached or in use */
#define PORTABLE 1 /* CU_MEMHOSTREGISTER_PORTABLE */
#define DEVICES_MOST 64
#define INVALID_DEVICE 101 /* CUDA_ERROR_INVALID_DEVICE */
#define NOT_READY 600 /* CUDA_ERROR_NOT_READY */
#define DMA_BUF_SUPPORTED 124 /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
#define DMA_BUF_FD 1 /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */

/* CU_POINTER_ATTRIBUTE_*, CU_MEMORYTYPE_* */
enum {
    ATTRIBUTE_CONTEXT = 1,
    ATTRIBUTE_TYPE = 2,
    ATTRIBUTE_SYNC = 6,
    ATTRIBUTE_MANAGED = 8,
    ATTRIBUTE_ORDINAL = 9
};
enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };

typedef uint64_t address_t; /* CUdeviceptr */

typedef struct {
    int (*attribute)(void *value, int which, address_t pointer);
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*current)(void **context);
    int (*set)(void *context);
    int (*synchronize)(void *stream);
    int (*to_host)(void *dest, address_t source, size_t bytes, void *stream);
    int (*to_device)(address_t dest, const void *source, size_t bytes,
                     void *stream);
    int (*pin)(void *memory, size_t bytes, unsigned flags);
    int (*unpin)(void *memory);
    int (*error_name)(int code, const char **name);
    int (*event_create)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*event_elapsed)(float *ms, void *begin, void *end);
    int (*event_destroy)(void *event);
    /* NULL with a driver older than version 11.7. */
    int (*set_attribute)(const void *value, int which, address_t pointer);
    int (*device_attribute)(int *value, int which, int device);
    int (*range_handle)(void *handle, address_t begin, size_t bytes, int type,
                        unsigned long long flags);
} driver_t;

#define SLOT(member, symbol)                                                   \
    {                                                                          \
        offsetof(driver_t, member), symbol, false                              \
    }
#define OPTIONAL(member, symbol)                                               \
    {                                                                          \
        offsetof(driver_t, member), symbol, true                               \
    }
static const struct {
    size_t offset;
    const char *symbol;
    bool is_optional;
} slots[] = {
    SLOT(attribute, "cuPointerGetAttribute"),
    SLOT(count, "cuDeviceGetCount"),
    SLOT(get, "cuDeviceGet"),
    SLOT(retain, "cuDevicePrimaryCtxRetain"),
    SLOT(push, "cuCtxPushCurrent_v2"),
    SLOT(pop, "cuCtxPopCurrent_v2"),
    SLOT(current, "cuCtxGetCurrent"),
    SLOT(set, "cuCtxSetCurrent"),
    SLOT(synchronize, "cuStreamSynchronize"),
    SLOT(to_host, "cuMemcpyDtoHAsync_v2"),
    SLOT(to_device, "cuMemcpyHtoDAsync_v2"),
    SLOT(pin, "cuMemHostRegister_v2"),
    SLOT(unpin, "cuMemHostUnregister"),
    SLOT(error_name, "cuGetErrorName"),
    SLOT(event_create, "cuEventCreate"),
    SLOT(event_record, "cuEventRecord"),
    SLOT(event_query, "cuEventQuery"),
    SLOT(event_elapsed, "cuEventElapsedTime"),
    SLOT(event_destroy, "cuEventDestroy_v2"),
    OPTIONAL(set_attribute, "cuPointerSetAttribute"),
    OPTIONAL(device_attribute, "cuDeviceGetAttribute"),
    OPTIONAL(range_handle, "cuMemGetHandleForAddressRange"),
};

/* The header of a block of host memory. The block is allocated by the process,
 * pinned or not, so that it outlives the context for which it was pinned. */
typedef struct block {
    _Alignas(64) TAILQ_ENTRY(block) link;
    size_t size;
    int pinned;
} block_t;
typedef TAILQ_HEAD(blocks, block) blocks_t;

static driver_t functions;
static _Atomic(const driver_t *) driver;
static atomic_ullong loads; /* number of loaded libraries at the last look */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static blocks_t cache = TAILQ_HEAD_INITIALIZER(cache); /* oldest last */
static int cached;
static size_t pinned; /* bytes */
static void *primaries[DEVICES_MOST]; /* contexts, after the first query */

static int see_loads(struct dl_phdr_info *info, size_t size, void *ret_loads)
{
    (void)size;
    *(unsigned long long *)ret_loads = info->dlpi_adds;
    return 1;
}

/* Finds the driver, which then stays loaded. */
static int driver_find(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);

    if (!handle)
        return 0;
    for (size_t i = 0; i < G_N_ELEMENTS(slots); i++) {
        void *symbol = dlsym(handle, slots[i].symbol);

        if (!symbol && !slots[i].is_optional) {
            dlclose(handle);
            return 0;
        }
        *(void **)((char *)&functions + slots[i].offset) = symbol;
    }
    return 1;
}

_Atomic(struct link_map *) dscomm_priv_device_last, dscomm_priv_device_looked;

/* Pins all objects that were loaded after map, and so the libraries that map
 * needs. Another thread may have loaded some of them at the same time; pinning
 * those does no harm. */
static void driver_pin(struct link_map *map)
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
        driver_pin(map);
}

/* Pins all objects that were loaded after that of this file, which is the
 * program if the loader does not find it by its name. */
static void driver_pin_own(void)
{
    void *handle = NULL;
    Dl_info info;

    if (dladdr(&functions, &info))
        handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle)
        handle = dlopen(NULL, RTLD_LAZY);
    if (!handle)
        return;
    dscomm_priv_device_anchor(handle);
    dlclose(handle);
}

/* Returns the last pinned object; if there is no module, the object of this
 * file. */
static struct link_map *find_last(void)
{
    if (!atomic_load_explicit(&dscomm_priv_device_last, memory_order_acquire))
        driver_pin_own();
    return atomic_load_explicit(&dscomm_priv_device_last, memory_order_acquire);
}

void dscomm_priv_device_anchor_rest(void)
{
    struct link_map *map = find_last();

    if (map)
        driver_pin(map);
}

/* Looks for the driver if any object was loaded since the last look. */
static int driver_look(void)
{
    unsigned long long now = 0;

    dl_iterate_phdr(see_loads, &now);
    if (now != atomic_load_explicit(&loads, memory_order_acquire)) {
        pthread_mutex_lock(&lock);
        if (!driver && driver_find())
            atomic_store_explicit(&driver, &functions, memory_order_release);
        atomic_store_explicit(&loads, now, memory_order_release);
        pthread_mutex_unlock(&lock);
    }
    /* Another thread may have found it since. */
    return atomic_load_explicit(&driver, memory_order_acquire) != NULL;
}

int dscomm_priv_device_look(void)
{
    struct link_map *last = find_last();

    if (atomic_load_explicit(&driver, memory_order_acquire) || driver_look())
        return 1;
    atomic_store_explicit(&dscomm_priv_device_looked, last,
                          memory_order_release);
    return 0;
}

static address_t address_of(const void *pointer)
{
    return (address_t)(uintptr_t)pointer;
}

int dscomm_device_owns(const void *pointer)
{
    unsigned type = 0, managed = 0;

    if (!pointer || !dscomm_priv_device_present() ||
        functions.attribute(&type, ATTRIBUTE_TYPE, address_of(pointer)) ||
        type != TYPE_DEVICE)
        return 0;
    return functions.attribute(&managed, ATTRIBUTE_MANAGED,
                               address_of(pointer)) ||
           !managed;
}

int dscomm_device_pinned(const void *pointer)
{
    unsigned type = 0;

    return pointer && dscomm_priv_device_present() &&
           !functions.attribute(&type, ATTRIBUTE_TYPE, address_of(pointer)) &&
           type == TYPE_HOST;
}

void *dscomm_device_context(void)
{
    void *context = NULL;

    return dscomm_priv_device_present() && !functions.current(&context)
               ? context
               : NULL;
}

void dscomm_device_set_context(void *context)
{
    if (dscomm_priv_device_present())
        functions.set(context);
}

int dscomm_priv_device_count(void)
{
    int count = 0;

    return dscomm_priv_device_present() && !functions.count(&count) ? count : 0;
}

/* Returns the primary context of a device, which CUDA's runtime uses. The
 * context exists if the device's memory is in use; its reference is kept. */
static int find_primary(int ordinal, void **ret_context)
{
    int code = 0, device;

    if (ordinal < 0 || ordinal >= DEVICES_MOST)
        return INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if (!primaries[ordinal]) {
        code = functions.get(&device, ordinal);
        if (!code)
            code = functions.retain(&primaries[ordinal], device);
    }
    *ret_context = primaries[ordinal];
    pthread_mutex_unlock(&lock);
    return code;
}

/* Makes the context of pointer's memory the thread's current one, until
 * context_leave(). Memory of a pool has no context; the primary context of its
 * device is used then. Returns CUDA's code. */
static int context_enter(const void *pointer)
{
    void *context = NULL;
    int code, ordinal = -1;

    code =
        functions.attribute(&context, ATTRIBUTE_CONTEXT, address_of(pointer));
    if (!code && !context) {
        code = functions.attribute(&ordinal, ATTRIBUTE_ORDINAL,
                                   address_of(pointer));
        if (!code)
            code = find_primary(ordinal, &context);
    }
    return code ? code : functions.push(context);
}

static void context_leave(void)
{
    void *context;

    functions.pop(&context);
}

static dscomm_status_t device_result(int code, const char *what)
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
    int code = context_enter(pointer);

    if (!code) {
        code = functions.synchronize(stream);
        context_leave();
    }
    return device_result(code, "waiting for a device");
}

void dscomm_priv_device_span_free(dscomm_device_span_t *span)
{
    if (!span->context || functions.push(span->context))
        return; /* there are no events, or their context has ended */
    for (int i = 0; i < 2; i++)
        if (span->events[i])
            functions.event_destroy(span->events[i]);
    context_leave();
    *span = (dscomm_device_span_t){0};
}

/* Makes the events, in the current context. */
static bool span_make(dscomm_device_span_t *span, void *context)
{
    span->context = context;
    for (int i = 0; i < 2; i++)
        if (functions.event_create(&span->events[i], 0)) {
            span->events[i] = NULL;
            return false;
        }
    return true;
}

bool dscomm_priv_device_span_begin(dscomm_device_span_t *span,
                                   const void *pointer, void *stream)
{
    void *context = NULL;
    bool made;

    if (context_enter(pointer))
        return false;
    functions.current(&context);
    if (span->context != context)
        dscomm_priv_device_span_free(span);
    made = span->context || span_make(span, context);
    if (made && functions.event_record(span->events[0], stream))
        made = false;
    context_leave();
    if (!made)
        dscomm_priv_device_span_free(span);
    return made;
}

bool dscomm_priv_device_span_end(const dscomm_device_span_t *span, void *stream)
{
    int code = functions.push(span->context);

    if (code)
        return false;
    code = functions.event_record(span->events[1], stream);
    context_leave();
    return code == 0;
}

int dscomm_priv_device_span_read(const dscomm_device_span_t *span,
                                 int64_t *ret_ns)
{
    float ms = 0;
    int code = functions.push(span->context);

    if (code)
        return -1;
    code = functions.event_query(span->events[1]);
    if (!code)
        code = functions.event_elapsed(&ms, span->events[0], span->events[1]);
    context_leave();
    if (code)
        return code == NOT_READY ? 0 : -1;
    *ret_ns = (int64_t)((double)ms * 1e6);
    return 1;
}

dscomm_status_t dscomm_device_copy(void *dest, const void *source, size_t bytes,
                                   void *stream)
{
    const int is_dest = dscomm_device_owns(dest);
    int code;

    if (!dscomm_priv_device_present())
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "dscomm_device_copy: the process has not loaded "
                           "CUDA");
    if (is_dest == dscomm_device_owns(source))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_device_copy: one of dest and source must be "
                           "device memory, the other one host memory");
    code = context_enter(is_dest ? dest : source);
    if (!code) {
        code =
            is_dest
                ? functions.to_device(address_of(dest), source, bytes, stream)
                : functions.to_host(dest, address_of(source), bytes, stream);
        if (!code)
            code = functions.synchronize(stream);
        context_leave();
    }
    return device_result(code, is_dest ? "copying to a device"
                                       : "copying from a device");
}

/* Whether the device of pointer gives dma-bufs; NULL, or why not. */
static const char *dma_buf_lacks(const void *pointer)
{
    int ordinal = -1, device, gives = 0;

    if (!functions.set_attribute || !functions.device_attribute ||
        !functions.range_handle)
        return "CUDA's driver is older than 11.7";
    if (functions.attribute(&ordinal, ATTRIBUTE_ORDINAL, address_of(pointer)) ||
        functions.get(&device, ordinal) ||
        functions.device_attribute(&gives, DMA_BUF_SUPPORTED, device) || !gives)
        return "the device, or its driver, gives no dma-buf";
    return NULL;
}

const char *dscomm_priv_device_dma_buf(void *pointer, size_t bytes,
                                       dscomm_dma_buf_t *ret_memory)
{
    /* The range is one of whole pages, of the host. */
    const address_t page = (address_t)sysconf(_SC_PAGESIZE);
    const address_t begin = address_of(pointer) & ~(page - 1);
    const address_t end =
        (address_of(pointer) + bytes + page - 1) & ~(page - 1);
    const char *why = dma_buf_lacks(pointer);
    const unsigned yes = 1;
    int code;

    if (why)
        return why;
    *ret_memory = (dscomm_dma_buf_t){.address = pointer,
                                     .bytes = bytes,
                                     .descriptor = -1,
                                     .offset = address_of(pointer) - begin};
    code = context_enter(pointer);
    if (!code) {
        code = functions.range_handle(&ret_memory->descriptor, begin,
                                      (size_t)(end - begin), DMA_BUF_FD, 0);
        /* Other devices see what a synchronous copy wrote only if the copy
         * waits for its end, which some do not. Memory of cuMemMap() has no
         * such attribute. */
        if (!code)
            functions.set_attribute(&yes, ATTRIBUTE_SYNC, address_of(pointer));
        context_leave();
    }
    if (code && (functions.error_name(code, &why) || !why))
        why = "CUDA has an error without a name";
    return why;
}

/* Takes the most recently used block of at least size bytes and at most four
 * times that, or NULL. */
static block_t *cache_take(size_t size)
{
    block_t *block;

    TAILQ_FOREACH (block, &cache, link)
        if (block->size >= size && block->size / 4 <= size)
            break;
    if (block) {
        TAILQ_REMOVE(&cache, block, link);
        cached--;
    }
    return block;
}

static void drop_oldest(blocks_t *dropped)
{
    block_t *block = TAILQ_LAST(&cache, blocks);

    TAILQ_REMOVE(&cache, block, link);
    TAILQ_INSERT_TAIL(dropped, block, link);
    cached--;
    pinned -= block->size;
}

/* Unpins and frees blocks. If a block's context has ended, the block is no
 * longer pinned. */
static void blocks_release(blocks_t *dropped)
{
    block_t *block;

    while ((block = TAILQ_FIRST(dropped)) != NULL) {
        TAILQ_REMOVE(dropped, block, link);
        if (!context_enter(block)) {
            functions.unpin(block);
            context_leave();
        }
        free(block);
    }
}

/* 1 if size more bytes may be pinned; moves blocks from the cache to dropped if
 * they need the room. */
static int cache_reserve(size_t size, blocks_t *dropped)
{
    if (size > PINNED_MOST)
        return 0;
    while (size > PINNED_MOST - pinned && cached)
        drop_oldest(dropped);
    if (size > PINNED_MOST - pinned)
        return 0;
    pinned += size;
    return 1;
}

static block_t *block_make(const void *pointer, size_t size, int reserved)
{
    block_t *block = aligned_alloc(PAGE, size);
    int pins = 0;

    if (block && reserved && dscomm_priv_device_present() &&
        !context_enter(pointer)) {
        pins = !functions.pin(block, size, PORTABLE);
        context_leave();
    }
    if (reserved && !pins) {
        pthread_mutex_lock(&lock);
        pinned -= size;
        pthread_mutex_unlock(&lock);
    }
    if (block)
        *block = (block_t){.size = size, .pinned = pins};
    return block;
}

void *dscomm_device_staging_alloc(const void *pointer, size_t bytes)
{
    size_t size = (bytes + sizeof(block_t) + PAGE - 1) & ~(PAGE - 1);
    blocks_t dropped = TAILQ_HEAD_INITIALIZER(dropped);
    block_t *block;
    int reserved = 0;

    pthread_mutex_lock(&lock);
    block = cache_take(size);
    if (!block)
        reserved = cache_reserve(size, &dropped);
    pthread_mutex_unlock(&lock);
    blocks_release(&dropped);
    if (!block)
        block = block_make(pointer, size, reserved);
    return block ? block + 1 : NULL;
}

void dscomm_device_staging_free(void *memory)
{
    block_t *block = memory ? (block_t *)memory - 1 : NULL;
    blocks_t dropped = TAILQ_HEAD_INITIALIZER(dropped);

    if (!block)
        return;
    if (!block->pinned) {
        free(block);
        return;
    }
    pthread_mutex_lock(&lock);
    TAILQ_INSERT_HEAD(&cache, block, link);
    if (++cached > CACHED_MOST)
        drop_oldest(&dropped);
    pthread_mutex_unlock(&lock);
    blocks_release(&dropped);
}
