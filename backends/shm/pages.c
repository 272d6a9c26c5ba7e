/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program that other ranks read and write in place: dscomm_mem_
 * register() copies its pages into this rank's heap and maps that at their
 * addresses. Only private anonymous memory can be changed so without a
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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Bytes that are copied at a time: so many more are needed for a moment. */
#define SLICE ((size_t)4 << 20)

typedef struct {
    unsigned char *begin;
    size_t bytes;
    size_t offset; /* of begin in the heap */
    unsigned uses; /* registrations */
} pages_t;

/* A range of memory; empty if begin is end. */
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

static range_t pages_whole(const pages_t *pages)
{
    return (range_t){page_ceil(pages->begin),
                     page_floor(pages->begin + pages->bytes)};
}

/* The place in this rank's heap of an address in pages. */
static unsigned char *pages_place(const shm_t *shm, const pages_t *pages,
                                  const unsigned char *address)
{
    return (unsigned char *)shm_heap_own(shm, pages->offset) +
           (address - pages->begin);
}

/* Returns the number of the first pages that end above address. */
static guint pages_index(const shm_t *shm, const unsigned char *address)
{
    guint low = 0, high = shm->pages ? shm->pages->len : 0;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        const pages_t *pages = g_ptr_array_index(shm->pages, middle);

        if (pages->begin + pages->bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The pages that have all of such memory, or NULL. */
static pages_t *pages_find(const shm_t *shm, const void *memory, size_t size)
{
    const guint index = pages_index(shm, memory);
    const uintptr_t at = (uintptr_t)memory;
    pages_t *pages;

    if (!shm->pages || index == shm->pages->len)
        return NULL;
    pages = g_ptr_array_index(shm->pages, index);
    return at >= (uintptr_t)pages->begin &&
                   size <= pages->bytes - (at - (uintptr_t)pages->begin)
               ? pages
               : NULL;
}

/* Whether pages have any byte of a range. */
static bool pages_meet(const shm_t *shm, range_t range)
{
    const guint index = pages_index(shm, range.begin);
    const pages_t *pages;

    if (!shm->pages || index == shm->pages->len)
        return false;
    pages = g_ptr_array_index(shm->pages, index);
    return pages->begin < range.end;
}

/* --- what can be shared --- */

/* Flags of a mapping in smaps, see proc(5): those that memory must have, and
 * those that it must not have. */
static const struct {
    char flag[4];
    bool must;
    const char *why;
} flags[] = {
    {" rd", true, "it may not be read"},
    {" wr", true, "it may not be written"},
    {" ex", false, "it may be executed"},
    {" sh", false, "it is shared with other processes"},
    {" gd", false, "it is a stack"},
    {" lo", false, "it is locked in memory"},
    {" ht", false, "it is of huge pages"},
    {" dc", false, "a child would not have it, as if a device used it"},
    {" wf", false, "a child would have zeros there"},
    {" io", false, "it is a device's"},
    {" um", false, "userfaultfd(2) watches it"},
    {" uw", false, "userfaultfd(2) watches it"},
    {" mt", false, "it has memory tags"},
};

static const char *flags_refuse(const char *line)
{
    for (size_t i = 0; i < G_N_ELEMENTS(flags); i++)
        if (!strstr(line, flags[i].flag) == flags[i].must)
            return flags[i].why;
    return NULL;
}

/* Returns why smaps says that a range cannot be shared; NULL: it can. */
static const char *smaps_refuse(FILE *smaps, range_t range)
{
    const char *const hole = "it is not all mapped";
    uintptr_t at = (uintptr_t)range.begin, from = 0, to = 0;
    unsigned long long head[3] = {0};
    const char *why = NULL;
    bool is_file = false;
    char *line = NULL;
    size_t room = 0;

    while (!why && at < (uintptr_t)range.end &&
           getline(&line, &room, smaps) > 0) {
        if (sscanf(line, "%llx-%llx %*4s %*x %*x:%*x %llu", &head[0], &head[1],
                   &head[2]) == 3) {
            from = (uintptr_t)head[0];
            to = (uintptr_t)head[1];
            is_file = head[2] != 0;
        }
        if (strncmp(line, "VmFlags:", 8) != 0 || to <= at)
            continue;
        if (from > at)
            why = hole;
        else if (is_file)
            why = "it is mapped from a file";
        else
            why = flags_refuse(line);
        at = to;
    }
    free(line);
    return why || at >= (uintptr_t)range.end ? why : hole;
}

static const char *range_refuse(const shm_t *shm, range_t range)
{
    const unsigned char *here = (const unsigned char *)&range;
    const char *why;
    FILE *smaps;

    if (!shm->layout.heap_size)
        return "there is no heap";
    if (range.end <= range.begin)
        return "it has no whole page";
    if (here >= range.begin && here < range.end)
        return "it is a stack";
    smaps = fopen("/proc/self/smaps", "re");
    if (!smaps)
        return "/proc/self/smaps cannot be read";
    why = smaps_refuse(smaps, range);
    fclose(smaps);
    return why;
}

/* --- in and out --- */

/* Gives the whole pages up to end private pages of their own again. False: they
 * stay shared. */
static bool pages_privatize(shm_t *shm, const pages_t *pages,
                            unsigned char *end, bool keep)
{
    const range_t whole = pages_whole(pages);
    const size_t bytes = (size_t)(end - whole.begin);
    const size_t offset = pages->offset + (size_t)(whole.begin - pages->begin);
    void *private = bytes ? mmap(whole.begin, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
                          : NULL;

    if (private == MAP_FAILED) {
        shm_heap_map(shm, offset, bytes, whole.begin);
        return false;
    }
    for (size_t at = 0; at < bytes; at += SLICE) {
        const size_t size = MIN(SLICE, bytes - at);

        memcpy(whole.begin + at, shm_heap_own(shm, offset + at), size);
        if (!keep)
            shm_heap_empty(shm, offset + at, size);
    }
    return true;
}

/* Ends pages. keep: peers may still read them in the heap. */
static void pages_end(shm_t *shm, const pages_t *pages, bool keep)
{
    if (pages_privatize(shm, pages, pages_whole(pages).end, keep)) {
        if (!keep)
            shm_heap_give(
                shm, pages->offset -
                         (size_t)(pages->begin - page_floor(pages->begin)));
        return;
    }
    dscomm_log(DSCOMM_LOG_WARN, "shm",
               "group '%s': %zu bytes at %p stay shared: no memory for private "
               "pages",
               shm->name, pages->bytes, (void *)pages->begin);
}

/* Copies the whole pages into the heap, and maps it in their place. */
static bool pages_share(shm_t *shm, const pages_t *pages)
{
    const range_t whole = pages_whole(pages);
    unsigned char *at = whole.begin;

    while (at < whole.end) {
        const size_t size = MIN(SLICE, (size_t)(whole.end - at));
        const size_t offset = pages->offset + (size_t)(at - pages->begin);

        if (shm_heap_reserve(shm, offset, size) < 0)
            break;
        memcpy(shm_heap_own(shm, offset), at, size);
        if (!shm_heap_map(shm, offset, size, at))
            break;
        at += size;
    }
    if (at < whole.end)
        pages_privatize(shm, pages, at, false);
    return at >= whole.end;
}

/* Takes pages of the heap for such memory and the edges beside it. */
static bool pages_take(shm_t *shm, pages_t *pages)
{
    unsigned char *begin = page_floor(pages->begin);
    unsigned char *end = page_ceil(pages->begin + pages->bytes);
    const size_t edge = (size_t)(pages->begin - begin), page = shm_page();
    const range_t whole = pages_whole(pages);

    if (shm_heap_take(shm, (size_t)(end - begin), &pages->offset) < 0)
        return false;
    if ((!edge || !shm_heap_reserve(shm, pages->offset, page)) &&
        (end == whole.end ||
         !shm_heap_reserve(shm, pages->offset + (size_t)(whole.end - begin),
                           page))) {
        pages->offset += edge;
        if (pages_share(shm, pages))
            return true;
        pages->offset -= edge;
    }
    shm_heap_give(shm, pages->offset);
    return false;
}

/* --- edges --- */

/* Copies the part of memory that is in an edge to its place in the heap, or
 * back. */
static void edge_copy(const shm_t *shm, const pages_t *pages, range_t edge,
                      range_t memory, bool back)
{
    unsigned char *begin = MAX(edge.begin, memory.begin);
    unsigned char *end = MIN(edge.end, memory.end);
    unsigned char *place;

    if (begin >= end)
        return;
    place = pages_place(shm, pages, begin);
    if (back)
        memcpy(begin, place, (size_t)(end - begin));
    else
        memcpy(place, begin, (size_t)(end - begin));
}

static void edges_copy(const shm_t *shm, const pages_t *pages, void *memory,
                       size_t size, bool back)
{
    const range_t whole = pages_whole(pages);
    const range_t range = {memory, (unsigned char *)memory + size};

    edge_copy(shm, pages, (range_t){pages->begin, whole.begin}, range, back);
    edge_copy(shm, pages, (range_t){whole.end, pages->begin + pages->bytes},
              range, back);
}

uint64_t shm_own_reference(const shm_t *shm, const void *memory, size_t size)
{
    const uint64_t reference = shm_heap_reference(shm, memory, size);
    const pages_t *pages = reference ? NULL : pages_find(shm, memory, size);

    if (!pages)
        return reference;
    edges_copy(shm, pages, (void *)memory, size, false);
    return pages->offset + ((uintptr_t)memory - (uintptr_t)pages->begin) + 1;
}

void shm_own_written(const shm_t *shm, void *memory, size_t size)
{
    const pages_t *pages = pages_find(shm, memory, size);

    if (pages)
        edges_copy(shm, pages, memory, size, true);
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

static dscomm_status_t pages_begin(shm_t *shm, void *address, size_t bytes,
                                   pages_t **ret_pages)
{
    pages_t *pages = pages_find(shm, address, bytes);
    pages_t fresh = {address, bytes, 0, 0};
    const char *why;

    *ret_pages = pages;
    if (pages)
        return DSCOMM_OK;
    if (pages_meet(shm, (range_t){fresh.begin, fresh.begin + bytes}))
        return refuse(shm, address, bytes, "a part of it is already");
    why = range_refuse(shm, pages_whole(&fresh));
    if (why)
        return refuse(shm, address, bytes, why);
    pages = g_try_new(pages_t, 1);
    if (!pages || !pages_take(shm, &fresh)) {
        g_free(pages);
        return refuse(shm, address, bytes, "there is no room in the heap");
    }
    *pages = fresh;
    if (!shm->pages)
        shm->pages = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_insert(shm->pages, (gint)pages_index(shm, address), pages);
    *ret_pages = pages;
    return DSCOMM_OK;
}

dscomm_status_t shm_mem_register(void *impl, void *address, size_t bytes,
                                 void *key, void **ret_registered)
{
    shm_t *shm = impl;
    uint64_t reference = shm_heap_reference(shm, address, bytes);
    pages_t *pages = NULL;
    dscomm_status_t status =
        reference ? DSCOMM_OK : pages_begin(shm, address, bytes, &pages);

    if (status < 0)
        return status;
    *ret_registered = pages ? (void *)pages : &shm->pages;
    if (pages) {
        const range_t whole = pages_whole(pages);

        pages->uses++;
        if ((unsigned char *)address < whole.begin ||
            (unsigned char *)address + bytes > whole.end)
            return DSCOMM_ERR_UNSUPPORTED;
        reference = shm_own_reference(shm, address, bytes);
    }
    memcpy(key, &reference, sizeof reference);
    return DSCOMM_OK;
}

/* Whether peers may still read or write pages for what this rank has begun. */
static bool pages_used(const shm_t *shm, const pages_t *pages)
{
    if (!shm_list_empty(&shm->queue))
        return true;
    for (int r = 0; r < shm->ranks; r++) {
        const shm_request_t *send = shm->p2p->pairs[r].waiting.head;

        for (; send; send = send->next)
            if (pages_find(shm, send->p2p.message.send,
                           send->p2p.message.bytes) == pages)
                return true;
    }
    return false;
}

dscomm_status_t shm_mem_deregister(void *impl, void *registered)
{
    shm_t *shm = impl;
    pages_t *pages = registered;

    if (registered == &shm->pages)
        return DSCOMM_OK;
    if (pages->uses == 1 && !shm_is_revoked(shm) && pages_used(shm, pages))
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "group '%s': an operation that was begun may use "
                           "the memory at %p; wait for it first",
                           shm->name, (void *)pages->begin);
    if (--pages->uses)
        return DSCOMM_OK;
    pages_end(shm, pages, false);
    g_ptr_array_remove(shm->pages, pages);
    return DSCOMM_OK;
}

void shm_pages_free(shm_t *shm)
{
    for (guint i = 0; shm->pages && i < shm->pages->len; i++) {
        const pages_t *pages = g_ptr_array_index(shm->pages, i);

        pages_end(shm, pages, pages_used(shm, pages));
    }
    g_clear_pointer(&shm->pages, g_ptr_array_unref);
}
