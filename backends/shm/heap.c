/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers can read and write: each rank's heap is a part of the
 * segment, mapped by its owner at the first allocation and by a peer at the
 * first use. */
#include "config.h"

#include "backends/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>

#include <glib.h>

#define PAGE ((size_t)4096)

typedef struct {
    size_t offset, size;
} extent_t;

struct shm_heap {
    unsigned char **maps; /* of each rank's heap, NULL = not mapped */
    GArray *free; /* extent_t, by offset, none adjacent */
    GHashTable *used; /* address -> size */
};

static uint64_t heap_offset(const shm_t *shm, int rank)
{
    return shm->layout.heap + (uint64_t)rank * shm->layout.heap_size;
}

static shm_heap_t *heap_of(shm_t *shm)
{
    if (!shm->heap) {
        extent_t all = {0, shm->layout.heap_size};

        shm->heap = g_new0(shm_heap_t, 1);
        shm->heap->maps = g_new0(unsigned char *, (gsize)shm->ranks);
        shm->heap->free = g_array_new(FALSE, FALSE, sizeof(extent_t));
        g_array_append_val(shm->heap->free, all);
        shm->heap->used = g_hash_table_new(g_direct_hash, g_direct_equal);
    }
    return shm->heap;
}

static unsigned char *map_heap(shm_t *shm, int rank)
{
    shm_heap_t *heap = heap_of(shm);

    if (!heap->maps[rank]) {
        void *map = mmap(NULL, shm->layout.heap_size, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE, shm->fd,
                         (off_t)heap_offset(shm, rank));

        if (map != MAP_FAILED)
            heap->maps[rank] = map;
    }
    return heap->maps[rank];
}

/* First fit. */
static bool take_extent(shm_heap_t *heap, size_t size, size_t *ret_offset)
{
    for (guint i = 0; i < heap->free->len; i++) {
        extent_t *extent = &g_array_index(heap->free, extent_t, i);

        if (extent->size < size)
            continue;
        *ret_offset = extent->offset;
        extent->offset += size;
        extent->size -= size;
        if (!extent->size)
            g_array_remove_index(heap->free, i);
        return true;
    }
    return false;
}

static void give_extent(shm_heap_t *heap, extent_t extent)
{
    guint i = 0;
    extent_t *at;

    while (i < heap->free->len &&
           g_array_index(heap->free, extent_t, i).offset < extent.offset)
        i++;
    g_array_insert_val(heap->free, i, extent);
    if (i + 1 < heap->free->len) {
        at = &g_array_index(heap->free, extent_t, i);
        if (at->offset + at->size == at[1].offset) {
            at->size += at[1].size;
            g_array_remove_index(heap->free, i + 1);
        }
    }
    if (i > 0) {
        at = &g_array_index(heap->free, extent_t, i - 1);
        if (at->offset + at->size == at[1].offset) {
            at->size += at[1].size;
            g_array_remove_index(heap->free, i);
        }
    }
}

dscomm_status_t shm_mem_alloc(void *impl, size_t size, void **ret_memory)
{
    shm_t *shm = impl;
    dscomm_status_t status;
    unsigned char *map;
    size_t offset;

    if (!shm->layout.heap_size || !(map = map_heap(shm, shm->rank)))
        return DSCOMM_ERR_UNSUPPORTED;
    size = size ? (size + PAGE - 1) & ~(PAGE - 1) : PAGE;
    if (!size || !take_extent(shm->heap, size, &offset))
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "rank %d: %zu more bytes do not fit into the shared "
                           "heap of group '%s' (%llu bytes); raise "
                           "DSCOMM_SHM_HEAP",
                           shm->rank, size, shm->name,
                           (unsigned long long)shm->layout.heap_size);
    status = shm_segment_reserve(shm, heap_offset(shm, shm->rank) + offset,
                                 size, "heap");
    if (status) {
        fallocate(shm->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(heap_offset(shm, shm->rank) + offset), (off_t)size);
        give_extent(shm->heap, (extent_t){offset, size});
        return status;
    }
    g_hash_table_insert(shm->heap->used, map + offset, GSIZE_TO_POINTER(size));
    *ret_memory = map + offset;
    return DSCOMM_OK;
}

dscomm_status_t shm_mem_free(void *impl, void *memory)
{
    shm_t *shm = impl;
    shm_heap_t *heap = shm->heap;
    size_t size =
        heap ? GPOINTER_TO_SIZE(g_hash_table_lookup(heap->used, memory)) : 0;
    size_t offset;

    if (!size)
        return dscomm_fail(
            DSCOMM_ERR_INVALID,
            "dscomm_mem_free on group '%s': %p did not come from "
            "dscomm_mem_alloc of this group, or is freed already",
            shm->name, memory);
    offset = (size_t)((unsigned char *)memory - heap->maps[shm->rank]);
    g_hash_table_remove(heap->used, memory);
    if (fallocate(shm->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(heap_offset(shm, shm->rank) + offset), (off_t)size)) {
        dscomm_log(DSCOMM_LOG_WARN, "shm",
                   "cannot give %zu bytes of shared memory back: %s", size,
                   strerror(errno));
        memset(memory, 0, size);
    }
    /* Of a broken group a peer may still be writing its result here. */
    if (!shm_is_revoked(shm))
        give_extent(heap, (extent_t){offset, size});
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
    g_hash_table_destroy(heap->used);
    g_array_free(heap->free, TRUE);
    g_free(heap->maps);
    g_free(heap);
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
        dscomm_fail(
            DSCOMM_ERR_NO_MEMORY,
            "rank %d cannot map the shared heap of rank %d (%llu bytes) "
            "of group '%s': %s; raise the address space limit (ulimit "
            "-v) or lower DSCOMM_SHM_HEAP",
            shm->rank, rank, (unsigned long long)shm->layout.heap_size,
            shm->name, strerror(errno));
        return NULL;
    }
    if (offset >= shm->layout.heap_size ||
        size > shm->layout.heap_size - offset) {
        dscomm_fail(DSCOMM_ERR_PROTOCOL,
                    "rank %d of group '%s' pointed outside of its heap", rank,
                    shm->name);
        return NULL;
    }
    return map + offset;
}
