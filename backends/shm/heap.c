/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers can read and write: each rank's heap is a part of the
 * segment, mapped by its owner at the first allocation and by a peer at the
 * first use. */
#include "config.h"

#include "backends/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A part of this rank's heap. The parts, in order, cover the heap; no two free
 * ones are adjacent. */
typedef struct part {
    struct part *next;
    size_t offset, size;
    bool used; /* allocated, or lost */
    bool lost; /* freed in a broken group, and never given out again */
} part_t;

struct shm_heap {
    part_t *parts;
    unsigned char *maps[]; /* of each rank's heap, NULL = not mapped */
};

static uint64_t heap_offset(const shm_t *shm, int rank)
{
    return shm->layout.heap + (uint64_t)rank * shm->layout.heap_size;
}

/* NULL: no memory. */
static shm_heap_t *heap_of(shm_t *shm)
{
    shm_heap_t *heap = shm->heap;

    if (heap)
        return heap;
    heap = calloc(1, sizeof *heap + (size_t)shm->ranks * sizeof heap->maps[0]);
    if (!heap)
        return NULL;
    heap->parts = calloc(1, sizeof *heap->parts);
    if (!heap->parts) {
        free(heap);
        return NULL;
    }
    heap->parts->size = shm->layout.heap_size;
    shm->heap = heap;
    return heap;
}

static unsigned char *map_heap(shm_t *shm, int rank)
{
    shm_heap_t *heap = heap_of(shm);

    if (!heap)
        return NULL;
    if (!heap->maps[rank]) {
        void *map = mmap(NULL, shm->layout.heap_size, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE, shm->fd,
                         (off_t)heap_offset(shm, rank));

        if (map != MAP_FAILED)
            heap->maps[rank] = map;
    }
    return heap->maps[rank];
}

static dscomm_status_t fail_full(const shm_t *shm, size_t size)
{
    return shm_fail_resource(
        shm, DSCOMM_ERR_NO_MEMORY,
        "%zu more bytes do not fit into the shared heap (%llu bytes); raise "
        "DSCOMM_SHM_HEAP",
        size, (unsigned long long)shm->layout.heap_size);
}

/* Takes the first free part that is large enough; the rest of it stays free. */
static dscomm_status_t take_part(shm_t *shm, size_t size, part_t **ret_part)
{
    part_t *part = shm->heap->parts, *rest;

    while (part && (part->used || part->size < size))
        part = part->next;
    if (!part)
        return fail_full(shm, size);
    if (part->size > size) {
        rest = malloc(sizeof *rest);
        if (!rest)
            return shm_fail_resource(shm, DSCOMM_ERR_NO_MEMORY,
                                     "no memory to note a part of the shared "
                                     "heap");
        *rest = (part_t){part->next, part->offset + size, part->size - size,
                         false, false};
        part->next = rest;
        part->size = size;
    }
    part->used = true;
    *ret_part = part;
    return DSCOMM_OK;
}

/* Joins part with the next one, if both are free. */
static void join_next(part_t *part)
{
    part_t *next = part->next;

    if (!next || part->used || next->used)
        return;
    part->size += next->size;
    part->next = next->next;
    free(next);
}

static void give_part(shm_heap_t *heap, part_t *part)
{
    part_t *before = heap->parts;

    part->used = false;
    while (before != part && before->next != part)
        before = before->next;
    join_next(part);
    if (before != part)
        join_next(before);
}

/* The part that was given out and begins at offset, or NULL. */
static part_t *find_part(const shm_t *shm, size_t offset)
{
    part_t *part = shm->heap ? shm->heap->parts : NULL;

    while (part && !(part->used && !part->lost && part->offset == offset))
        part = part->next;
    return part;
}

void *shm_heap_own(const shm_t *shm, size_t offset)
{
    return shm->heap->maps[shm->rank] + offset;
}

static size_t whole_pages(size_t size)
{
    const size_t page = shm_page();

    return (MAX(size, 1) + page - 1) & ~(page - 1);
}

dscomm_status_t shm_heap_take(shm_t *shm, size_t size, size_t *ret_offset)
{
    const size_t pages = whole_pages(size);
    dscomm_status_t status;
    part_t *part = NULL;

    if (!shm->layout.heap_size || !map_heap(shm, shm->rank))
        return DSCOMM_ERR_UNSUPPORTED;
    status = pages ? take_part(shm, pages, &part) : fail_full(shm, size);
    if (status == DSCOMM_OK)
        *ret_offset = part->offset;
    return status;
}

void shm_heap_give(shm_t *shm, size_t offset)
{
    part_t *part = find_part(shm, offset);

    if (fallocate(shm->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(heap_offset(shm, shm->rank) + offset),
                  (off_t)part->size)) {
        dscomm_log(DSCOMM_LOG_WARN, "shm",
                   "cannot give %zu bytes of shared memory back: %s",
                   part->size, strerror(errno));
        memset(shm_heap_own(shm, offset), 0, part->size);
    }
    /* In a revoked group a peer may still write its result here. */
    part->lost = shm_is_revoked(shm);
    if (!part->lost)
        give_part(shm->heap, part);
}

dscomm_status_t shm_heap_reserve(shm_t *shm, size_t offset, size_t size)
{
    return shm_segment_reserve(shm, shm_heap_own(shm, offset),
                               heap_offset(shm, shm->rank) + offset, size,
                               "heap");
}

bool shm_heap_map(const shm_t *shm, size_t offset, size_t size, void *where)
{
    return mmap(where, size, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_NORESERVE | MAP_POPULATE | MAP_FIXED, shm->fd,
                (off_t)(heap_offset(shm, shm->rank) + offset)) != MAP_FAILED;
}

dscomm_status_t shm_mem_alloc(void *impl, size_t size, void **ret_memory)
{
    shm_t *shm = impl;
    size_t offset;
    dscomm_status_t status = shm_heap_take(shm, size, &offset);

    if (status < 0)
        return status;
    status = shm_heap_reserve(shm, offset, whole_pages(size));
    if (status < 0) {
        shm_heap_give(shm, offset);
        return status;
    }
    *ret_memory = shm_heap_own(shm, offset);
    return DSCOMM_OK;
}

dscomm_status_t shm_mem_free(void *impl, void *memory)
{
    shm_t *shm = impl;
    const uint64_t reference = shm_heap_reference(shm, memory, 1);
    const part_t *part = reference ? find_part(shm, reference - 1) : NULL;

    if (!part)
        return dscomm_fail(
            DSCOMM_ERR_INVALID,
            "dscomm_mem_free on group '%s': %p did not come from "
            "dscomm_mem_alloc of this group, or is freed already",
            shm->name, memory);
    shm_heap_give(shm, part->offset);
    return DSCOMM_OK;
}

void shm_heap_free(shm_t *shm)
{
    shm_heap_t *heap = shm->heap;

    if (!heap)
        return;
    for (int r = 0; r < shm->ranks; r++)
        if (heap->maps[r])
            munmap(heap->maps[r], shm->layout.heap_size);
    while (heap->parts) {
        part_t *part = heap->parts;

        heap->parts = part->next;
        free(part);
    }
    free(heap);
    shm->heap = NULL;
}

uint64_t shm_heap_reference(const shm_t *shm, const void *memory, size_t size)
{
    const unsigned char *map = shm->heap ? shm->heap->maps[shm->rank] : NULL;
    uintptr_t offset = (uintptr_t)memory - (uintptr_t)map;

    if (!map || offset >= shm->layout.heap_size ||
        size > shm->layout.heap_size - offset)
        return 0;
    return offset + 1;
}

void *shm_heap_resolve(shm_t *shm, int rank, uint64_t reference, size_t size)
{
    unsigned char *map = map_heap(shm, rank);
    uint64_t offset = reference - 1;

    if (!map) {
        shm_fail_resource(
            shm, DSCOMM_ERR_NO_MEMORY,
            "cannot map the shared heap of rank %d (%llu bytes): %s; raise the "
            "address space limit (ulimit -v) or lower DSCOMM_SHM_HEAP",
            shm_number(shm, rank), (unsigned long long)shm->layout.heap_size,
            strerror(errno));
        return NULL;
    }
    if (offset >= shm->layout.heap_size ||
        size > shm->layout.heap_size - offset) {
        dscomm_fail(DSCOMM_ERR_PROTOCOL,
                    "rank %d of group '%s' pointed outside of its heap",
                    shm_number(shm, rank), shm->name);
        return NULL;
    }
    return map + offset;
}

/* Copies at once. What this rank publishes later is published after it. */
static dscomm_status_t heap_copy(shm_t *shm, const dscomm_access_t *access,
                                 bool gets, dscomm_request_t *request)
{
    uint64_t reference;
    void *there;

    memcpy(&reference, access->key, sizeof reference);
    if (!reference || reference > shm->layout.heap_size ||
        access->offset > shm->layout.heap_size - reference)
        return dscomm_fail(
            DSCOMM_ERR_INVALID,
            "group '%s': the key of memory of rank %d is damaged", shm->name,
            shm_number(shm, access->peer));
    there = shm_heap_resolve(shm, access->peer, reference + access->offset,
                             access->bytes);
    if (!there)
        return DSCOMM_ERR_NO_MEMORY;
    if (gets)
        memcpy(access->data, there, access->bytes);
    else
        memcpy(there, access->data, access->bytes);
    request->status = DSCOMM_OK;
    return DSCOMM_OK;
}

dscomm_status_t shm_put(void *impl, const dscomm_access_t *access,
                        dscomm_request_t *request)
{
    return heap_copy(impl, access, false, request);
}

dscomm_status_t shm_get(void *impl, const dscomm_access_t *access,
                        dscomm_request_t *request)
{
    return heap_copy(impl, access, true, request);
}
