/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program that other ranks read and write in place: its pages are
 * copied into this rank's heap, and that is mapped at their addresses. Only
 * private anonymous memory can be changed so without a difference that the
 * program sees; and only whole pages, as another thread may write to the rest
 * of a page meanwhile. */
#define _GNU_SOURCE
#include "config.h"

#include "backends/shm/shm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct shm_shared {
    shm_shared_t *next;
    unsigned char *begin;
    size_t bytes, offset; /* in the heap */
    unsigned uses; /* registrations */
};

/* The shared pages that have such memory, or NULL. */
static shm_shared_t *shared_find(const shm_t *shm, const void *memory,
                                 size_t size)
{
    shm_shared_t *shared = shm->shared;

    while (shared) {
        const uintptr_t at = (uintptr_t)memory - (uintptr_t)shared->begin;

        if (at < shared->bytes && size <= shared->bytes - at)
            break;
        shared = shared->next;
    }
    return shared;
}

/* Returns why a mapping, a line of /proc/self/maps, cannot be shared; NULL: it
 * can. */
static const char *mapping_refuse(const char *line)
{
    unsigned long inode = 0;
    char access[5] = "";
    int path = 0;

    if (sscanf(line, "%*x-%*x %4s %*x %*x:%*x %lu %n", access, &inode, &path) <
        2)
        return "/proc/self/maps cannot be read";
    if (strcmp(access, "rw-p") != 0)
        return "it is shared, or may not be read and written";
    if (inode)
        return "it is mapped from a file, or of huge pages";
    if (!strncmp(line + path, "[stack", 6))
        return "it is a stack";
    return NULL;
}

/* Returns why memory cannot be shared; NULL: it can. */
static const char *memory_refuse(uintptr_t begin, uintptr_t end)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    const char *why = NULL;
    char line[512];

    if (!maps)
        return "/proc/self/maps cannot be read";
    while (!why && begin < end && fgets(line, sizeof line, maps)) {
        uintptr_t from, to;

        if (!strchr(line, '\n'))
            why = "/proc/self/maps cannot be read";
        else if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 &&
                 to > begin) {
            why = from > begin ? "it is not all mapped" : mapping_refuse(line);
            begin = to;
        }
    }
    fclose(maps);
    return why || begin >= end ? why : "it is not all mapped";
}

static dscomm_status_t shared_refuse(const shm_t *shm, const void *address,
                                     size_t bytes, const char *why)
{
    dscomm_log(DSCOMM_LOG_INFO, "shm",
               "group '%s': %zu bytes at %p are not shared in place: %s",
               shm->name, bytes, address, why);
    return DSCOMM_ERR_UNSUPPORTED;
}

dscomm_status_t shm_shared_begin(shm_t *shm, void *address, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)address;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    shm_shared_t *shared = shared_find(shm, address, bytes);
    const char *why;
    size_t offset;

    if (shared) {
        shared->uses++;
        return DSCOMM_OK;
    }
    if ((begin | bytes) & (page - 1))
        return shared_refuse(shm, address, bytes, "they are no whole pages");
    why = memory_refuse(begin, begin + bytes);
    if (why)
        return shared_refuse(shm, address, bytes, why);
    shared = calloc(1, sizeof *shared);
    if (!shared || shm_heap_take(shm, bytes, &offset) < 0) {
        free(shared);
        return shared_refuse(shm, address, bytes,
                             "there is no room in the heap");
    }
    *shared = (shm_shared_t){shm->shared, address, bytes, offset, 1};
    shm->shared = shared;
    memcpy(shm_heap_resolve(shm, shm->rank, offset + 1, bytes), address, bytes);
    if (shm_heap_map(shm, offset, bytes, address) != MAP_FAILED)
        return DSCOMM_OK;
    why = strerror(errno);
    shm->shared = shared->next;
    free(shared);
    shm_heap_give(shm, offset);
    return shared_refuse(shm, address, bytes, why);
}

/* If there is no memory for private pages, the shared ones stay where they
 * are, and their place in the heap is not given out again. */
static void pages_privatize(shm_t *shm, const shm_shared_t *shared)
{
    void *private = mmap(NULL, shared->bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (private != MAP_FAILED) {
        memcpy(private, shared->begin, shared->bytes);
        if (mremap(private, shared->bytes, shared->bytes,
                   MREMAP_MAYMOVE | MREMAP_FIXED,
                   shared->begin) != MAP_FAILED) {
            shm_heap_give(shm, shared->offset);
            return;
        }
        munmap(private, shared->bytes);
    }
    dscomm_log(DSCOMM_LOG_WARN, "shm",
               "group '%s': %zu bytes at %p stay shared: %s", shm->name,
               shared->bytes, (void *)shared->begin, strerror(errno));
}

void shm_shared_end(shm_t *shm, void *address)
{
    shm_shared_t **link = &shm->shared;
    shm_shared_t *shared = shared_find(shm, address, 1);

    if (!shared || --shared->uses)
        return;
    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    pages_privatize(shm, shared);
    free(shared);
}

uint64_t shm_shared_reference(const shm_t *shm, const void *memory, size_t size)
{
    const shm_shared_t *shared = shared_find(shm, memory, size);

    return shared ? shared->offset +
                        ((uintptr_t)memory - (uintptr_t)shared->begin) + 1
                  : 0;
}

void shm_shared_free(shm_t *shm)
{
    while (shm->shared) {
        shm->shared->uses = 1;
        shm_shared_end(shm, shm->shared->begin);
    }
}
