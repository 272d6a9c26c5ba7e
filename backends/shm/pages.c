/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program that other ranks read and write in place:
 * dscomm_mem_register() copies its pages into this rank's heap and maps that at
 * their addresses. Only private anonymous memory can be changed so without a
 * difference that the program sees.
 *
 * Only whole pages are changed, as other threads may write to the rest of the
 * first and the last page. The heap has a page for each of these two, next to
 * the others: its bytes are copied there before peers read them, and back after
 * peers wrote them. Puts and gets need no call of the owner, so the backend
 * serves them only if there are no such edges. */
#define _GNU_SOURCE
#include "config.h"

#include "backends/shm/p2p.h"

#include <dscomm/device.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Bytes that are copied at a time, so that so many more are needed for a
 * moment; but at most SLICES, since each may be a mapping of its own. */
#define SLICE ((size_t)4 << 20)
#define SLICES 32

/* Registered memory. Regions do not overlap. */
typedef struct {
    unsigned char *address;
    size_t bytes;
    size_t offset; /* of address in the heap */
    unsigned uses; /* registrations; 0: it could not be given back */
    /* Bytes of whole pages, from the first one, that were shared, and that are
     * private again. */
    size_t shared, given_back;
} region_t;

/* Memory from begin up to, without, end. */
typedef struct {
    unsigned char *begin, *end;
} range_t;

static unsigned char *page_floor(unsigned char *address)
{
    return address - ((uintptr_t)address & (shm_page() - 1));
}

static unsigned char *page_ceil(unsigned char *address)
{
    return page_floor(address + shm_page() - 1);
}

static range_t region_range(const region_t *region)
{
    return (range_t){region->address, region->address + region->bytes};
}

static range_t whole_pages(const region_t *region)
{
    const range_t range = region_range(region);

    return (range_t){page_ceil(range.begin), page_floor(range.end)};
}

/* The offset in this rank's heap of an address of region, or of its edges'
 * pages. */
static size_t heap_offset(const region_t *region, const unsigned char *address)
{
    return region->offset + (size_t)(address - region->address);
}

static size_t part_offset(const region_t *region)
{
    return heap_offset(region, page_floor(region->address));
}

/* The index of the first region that ends above address. */
static guint region_index(const shm_t *shm, const unsigned char *address)
{
    guint low = 0, high = shm->regions ? shm->regions->len : 0;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        const region_t *region = g_ptr_array_index(shm->regions, middle);

        if (region_range(region).end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The first region that has bytes of a range, or NULL. */
static region_t *region_overlap(const shm_t *shm, range_t range)
{
    const guint index = region_index(shm, range.begin);
    region_t *region;

    if (!shm->regions || index == shm->regions->len)
        return NULL;
    region = g_ptr_array_index(shm->regions, index);
    return region->address < range.end ? region : NULL;
}

/* The region that has all of such memory, and is shared; or NULL. */
static region_t *region_find(const shm_t *shm, const void *memory, size_t size)
{
    const uintptr_t at = (uintptr_t)memory;
    region_t *region =
        shm->regions
            ? region_overlap(shm, (range_t){(unsigned char *)at,
                                            (unsigned char *)at + size})
            : NULL;

    return region && region->uses && at >= (uintptr_t)region->address &&
                   size <= region->bytes - (at - (uintptr_t)region->address)
               ? region
               : NULL;
}

/* --- what can be shared --- */

/* Returns why a mapping, a line of maps, cannot be shared; NULL: it can. */
static const char *mapping_refuse(const char *line)
{
    char access[5] = "";
    unsigned long long inode = 0;
    int name = 0;

    sscanf(line, "%*x-%*x %4s %*x %*x:%*x %llu %n", access, &inode, &name);
    if (inode)
        return "it is mapped from a file, or of huge pages";
    if (!name || access[3] != 'p')
        return "it is shared with other processes";
    if (strcmp(access, "rw-p") != 0)
        return "it may not be read and written, or may be executed";
    if (!strncmp(line + name, "[stack", 6))
        return "it is a stack";
    return NULL;
}

/* Returns why a range cannot be shared, as /proc/self/maps says; NULL: it
 * can. */
static const char *maps_refuse(range_t range)
{
    uintptr_t at = (uintptr_t)range.begin;
    FILE *maps = fopen("/proc/self/maps", "re");
    const char *why = NULL;
    char *line = NULL;
    size_t room = 0;

    while (maps && !why && at < (uintptr_t)range.end &&
           getline(&line, &room, maps) > 0) {
        unsigned long long from, to;

        if (sscanf(line, "%llx-%llx", &from, &to) != 2 || to <= at)
            continue;
        if (from > at)
            break;
        why = mapping_refuse(line);
        at = (uintptr_t)to;
    }
    free(line);
    if (maps)
        fclose(maps);
    return why || at >= (uintptr_t)range.end ? why : "it is not all mapped";
}

/* Whether any memory of this process is locked, or pinned for a device. */
static bool process_pins(void)
{
    unsigned long locked = 1, pinned = 1, seen = 0;
    FILE *file = fopen("/proc/self/status", "re");
    char *line = NULL;
    size_t room = 0;

    while (file && seen < 2 && getline(&line, &room, file) > 0)
        seen += sscanf(line, "VmLck: %lu", &locked) == 1 ||
                sscanf(line, "VmPin: %lu", &pinned) == 1;
    free(line);
    if (file)
        fclose(file);
    return locked || pinned;
}

static bool is_own_stack(range_t range)
{
    pthread_attr_t attr;
    void *stack = NULL;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attr))
        return false;
    pthread_attr_getstack(&attr, &stack, &size);
    pthread_attr_destroy(&attr);
    return range.begin < (unsigned char *)stack + size &&
           (unsigned char *)stack < range.end;
}

static const char *range_refuse(const shm_t *shm, range_t range)
{
    const char *why;

    if (!shm->layout.heap_size)
        return "there is no heap";
    if (range.end <= range.begin)
        return "it has no whole page";
    if (is_own_stack(range))
        return "it is a stack";
    if (dscomm_device_pinned(range.begin))
        return "it is pinned for a device";
    why = maps_refuse(range);
    if (!why && process_pins())
        why = "this process has memory that is locked, or pinned for a device";
    return why;
}

/* --- in and out --- */

static const char no_memory[] = "there is no memory for the heap";

static size_t slice_of(size_t bytes)
{
    const size_t least = bytes / SLICES + 1, page = shm_page();

    return MAX(SLICE, (least + page - 1) & ~(page - 1));
}

/* Gives shared pages private ones of their own again. Readers see no difference
 * meanwhile. False: there is no memory for all. */
static bool pages_privatize(shm_t *shm, region_t *region)
{
    while (region->given_back < region->shared) {
        unsigned char *at = whole_pages(region).begin + region->given_back;
        const size_t size =
            MIN(slice_of(region->shared), region->shared - region->given_back);
        void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (copy == MAP_FAILED)
            return false;
        memcpy(copy, shm_heap_own(shm, heap_offset(region, at)), size);
        if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) ==
            MAP_FAILED) {
            munmap(copy, size);
            return false;
        }
        region->given_back += size;
    }
    return true;
}

/* Copies the whole pages into the heap, and maps it in their place. Returns why
 * that cannot be done; some of them are shared then. */
static const char *pages_share(shm_t *shm, region_t *region)
{
    const range_t whole = whole_pages(region);
    const size_t bytes = (size_t)(whole.end - whole.begin);

    while (region->shared < bytes) {
        unsigned char *at = whole.begin + region->shared;
        const size_t size = MIN(SLICE, bytes - region->shared);
        const size_t offset = heap_offset(region, at);

        if (shm_heap_reserve(shm, offset, size) < 0)
            return no_memory;
        memcpy(shm_heap_own(shm, offset), at, size);
        if (!shm_heap_map(shm, offset, size, at))
            return "the heap cannot be mapped there";
        region->shared += size;
    }
    return NULL;
}

/* Takes pages of the heap for region, and those of its edges. Returns why that
 * cannot be done. */
static const char *region_take(shm_t *shm, region_t *region)
{
    const range_t whole = whole_pages(region);
    unsigned char *begin = page_floor(region->address);
    unsigned char *end = page_ceil(region_range(region).end);
    size_t offset;

    if (shm_heap_take(shm, (size_t)(end - begin), &offset) < 0)
        return "there is no room in the heap";
    region->offset = offset + (size_t)(region->address - begin);
    if ((begin == whole.begin || !shm_heap_reserve(shm, offset, shm_page())) &&
        (whole.end == end ||
         !shm_heap_reserve(shm, heap_offset(region, whole.end), shm_page())))
        return NULL;
    shm_heap_give(shm, offset);
    return no_memory;
}

/* --- edges --- */

/* Copies what memory has of an edge to its place in the heap, or back. */
static void edge_copy(const shm_t *shm, const region_t *region, range_t edge,
                      range_t memory, bool back)
{
    unsigned char *begin = MAX(edge.begin, memory.begin);
    unsigned char *end = MIN(edge.end, memory.end);
    unsigned char *place;

    if (begin >= end)
        return;
    place = shm_heap_own(shm, heap_offset(region, begin));
    if (back)
        memcpy(begin, place, (size_t)(end - begin));
    else
        memcpy(place, begin, (size_t)(end - begin));
}

static void edges_copy(const shm_t *shm, const region_t *region, void *memory,
                       size_t size, bool back)
{
    const range_t all = region_range(region), whole = whole_pages(region);
    const range_t range = {memory, (unsigned char *)memory + size};

    edge_copy(shm, region, (range_t){all.begin, whole.begin}, range, back);
    edge_copy(shm, region, (range_t){whole.end, all.end}, range, back);
}

/* *ret_region: the registered pages that memory is in, or NULL. */
static uint64_t own_place(const shm_t *shm, const void *memory, size_t size,
                          const region_t **ret_region)
{
    const uint64_t reference = shm_heap_reference(shm, memory, size);

    *ret_region = reference ? NULL : region_find(shm, memory, size);
    return *ret_region ? heap_offset(*ret_region, memory) + 1 : reference;
}

uint64_t shm_own_place(const shm_t *shm, const void *memory, size_t size)
{
    const region_t *region;

    return own_place(shm, memory, size, &region);
}

uint64_t shm_own_reference(const shm_t *shm, const void *memory, size_t size)
{
    const region_t *region;
    const uint64_t reference = own_place(shm, memory, size, &region);

    if (region)
        edges_copy(shm, region, (void *)memory, size, false);
    return reference;
}

void shm_own_written(const shm_t *shm, void *memory, size_t size)
{
    const region_t *region = region_find(shm, memory, size);

    if (region)
        edges_copy(shm, region, memory, size, true);
}

/* --- registrations --- */

static dscomm_status_t refuse(const shm_t *shm, const void *address,
                              size_t bytes, const char *why)
{
    dscomm_log(DSCOMM_LOG_INFO, "shm",
               "group '%s': %zu bytes at %p are not shared in place: %s",
               shm->name, bytes, address, why);
    return DSCOMM_ERR_UNSUPPORTED;
}

static void region_keep(shm_t *shm, region_t *region)
{
    if (!shm->regions)
        shm->regions = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_insert(shm->regions, (gint)region_index(shm, region->address),
                       region);
}

/* Shares region, or frees it and returns why that cannot be done. */
static const char *region_share(shm_t *shm, region_t *region)
{
    const char *why = range_refuse(shm, whole_pages(region));

    if (!why)
        why = region_take(shm, region);
    if (why) {
        g_free(region);
        return why;
    }
    why = pages_share(shm, region);
    region->uses = !why;
    if (why && pages_privatize(shm, region)) {
        shm_heap_give(shm, part_offset(region));
        g_free(region);
    } else {
        region_keep(shm, region);
    }
    return why;
}

static dscomm_status_t region_open(shm_t *shm, void *address, size_t bytes,
                                   region_t **ret_region)
{
    const range_t range = {address, (unsigned char *)address + bytes};
    region_t *region = region_overlap(shm, range);
    const char *why;

    if (region && region->uses && region->address == address &&
        region->bytes == bytes) {
        region->uses++;
        *ret_region = region;
        return DSCOMM_OK;
    }
    if (region)
        return refuse(shm, address, bytes, "a part of it is already");
    region = g_try_new0(region_t, 1);
    if (!region)
        return refuse(shm, address, bytes, "there is no memory");
    region->address = address;
    region->bytes = bytes;
    why = region_share(shm, region);
    if (why)
        return refuse(shm, address, bytes, why);
    *ret_region = region;
    return DSCOMM_OK;
}

dscomm_status_t shm_mem_register(void *impl, void *address, size_t bytes,
                                 void *key, void **ret_registered)
{
    shm_t *shm = impl;
    uint64_t reference = shm_heap_reference(shm, address, bytes);
    region_t *region = NULL;
    dscomm_status_t status =
        reference ? DSCOMM_OK : region_open(shm, address, bytes, &region);

    if (status < 0)
        return status;
    *ret_registered = region ? (void *)region : &shm->regions;
    if (region) {
        const range_t all = region_range(region), whole = whole_pages(region);

        if (all.begin < whole.begin || whole.end < all.end)
            return DSCOMM_ERR_UNSUPPORTED;
        reference = shm_own_reference(shm, address, bytes);
    }
    memcpy(key, &reference, sizeof reference);
    return DSCOMM_OK;
}

/* Whether a call that was begun has told peers of region. */
static bool region_used(const shm_t *shm, const region_t *region)
{
    const shm_request_t *request;

    for (request = shm->queue.head; request; request = request->next) {
        const dscomm_coll_args_t *args = &request->collective.args;

        if (request->collective.op.referenced &&
            (region_find(shm, args->send, 1) == region ||
             region_find(shm, args->recv, 1) == region))
            return true;
    }
    for (int r = 0; r < shm->ranks; r++)
        for (request = shm->p2p->pairs[r].waiting.head; request;
             request = request->next)
            if (request->p2p.reference &&
                region_find(shm, request->p2p.message.send, 1) == region)
                return true;
    return false;
}

dscomm_status_t shm_mem_deregister(void *impl, void *registered)
{
    shm_t *shm = impl;
    region_t *region = registered;

    if (registered == &shm->regions)
        return DSCOMM_OK;
    if (region->uses > 1) {
        region->uses--;
        return DSCOMM_OK;
    }
    if (!shm_is_revoked(shm) && region_used(shm, region))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "group '%s': an operation that was begun uses the "
                           "memory at %p; wait for it first",
                           shm->name, (void *)region->address);
    region->uses = 0;
    if (!pages_privatize(shm, region))
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "group '%s': no memory for private pages at %p in "
                           "place of shared ones; free some, and try again",
                           shm->name, (void *)region->address);
    shm_heap_give(shm, part_offset(region));
    g_ptr_array_remove(shm->regions, region);
    return DSCOMM_OK;
}

void shm_pages_free(shm_t *shm)
{
    for (guint i = 0; shm->regions && i < shm->regions->len; i++) {
        region_t *region = g_ptr_array_index(shm->regions, i);

        if (!pages_privatize(shm, region))
            dscomm_log(DSCOMM_LOG_WARN, "shm",
                       "group '%s': %zu bytes at %p stay shared: no memory for "
                       "private pages",
                       shm->name, region->bytes, (void *)region->address);
    }
    g_clear_pointer(&shm->regions, g_ptr_array_unref);
}
