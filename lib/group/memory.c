/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for buffers: the backend's if it has some, else plain pages. The
 * addresses are listed, so that a wrong address is refused and the rest is
 * freed with the group. */
#include "config.h"
#include "lib/group/group.h"

#include "lib/base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static dscomm_status_t map_pages(size_t size, void **ret_memory)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (memory == MAP_FAILED)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "dscomm_mem_alloc: mmap of %zu bytes: %s", size,
                           strerror(errno));
    *ret_memory = memory;
    return DSCOMM_OK;
}

/* Allocates memory; the backend may decline. *ret_mapped is the size if it is
 * plain pages, 0 if it is the backend's. */
static dscomm_status_t memory_alloc(dscomm_group_t *group, size_t size,
                                    void **ret_memory, size_t *ret_mapped)
{
    dscomm_status_t status = DSCOMM_ERR_UNSUPPORTED;

    if (group->ops.mem_alloc && group->ops.mem_free)
        status = group->ops.mem_alloc(group->impl, size, ret_memory);
    *ret_mapped = status == DSCOMM_ERR_UNSUPPORTED ? size : 0;
    return *ret_mapped ? map_pages(size, ret_memory) : status;
}

static dscomm_status_t memory_free(dscomm_group_t *group, void *memory,
                                   size_t mapped)
{
    if (!mapped)
        return group->ops.mem_free(group->impl, memory);
    munmap(memory, mapped);
    return DSCOMM_OK;
}

/* One allocation. A group has few. */
struct dscomm_area {
    SLIST_ENTRY(dscomm_area) link;
    void *memory;
    size_t mapped; /* see memory_alloc() */
};

typedef struct dscomm_area area_t;

dscomm_status_t dscomm_mem_alloc(dscomm_group_t *group, size_t size,
                                 void **ret_memory)
{
    const char *name = "dscomm_mem_alloc";
    dscomm_status_t status = dscomm_priv_group_usable(group, name);
    area_t *area;

    if (status < 0)
        return status;
    if (!ret_memory)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: ret_memory is NULL", name);
    if (size == 0)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: size is 0", name);
    if (size > PTRDIFF_MAX)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s: size %zu is out of range",
                           name, size);
    area = malloc(sizeof *area);
    if (!area)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s: no memory", name);
    pthread_mutex_lock(&group->works.lock);
    status = memory_alloc(group, size, &area->memory, &area->mapped);
    if (status == DSCOMM_OK) {
        SLIST_INSERT_HEAD(&group->memory.allocated, area, link);
        *ret_memory = area->memory;
    } else {
        free(area);
    }
    pthread_mutex_unlock(&group->works.lock);
    return status;
}

dscomm_status_t dscomm_mem_free(dscomm_group_t *group, void *memory)
{
    const char *name = "dscomm_mem_free";
    dscomm_status_t status = dscomm_priv_group_alive(group, name);
    area_t *area;

    if (status < 0 || !memory)
        return status;
    SLIST_FOREACH (area, &group->memory.allocated, link)
        if (area->memory == memory)
            break;
    if (!area)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: %p is not what dscomm_mem_alloc() returned for "
                           "group '%s'",
                           name, memory, group->identity.name);
    SLIST_REMOVE(&group->memory.allocated, area, dscomm_area, link);
    pthread_mutex_lock(&group->works.lock);
    status = memory_free(group, memory, area->mapped);
    pthread_mutex_unlock(&group->works.lock);
    free(area);
    return status;
}

/* Drops the list without touching the memory. */
static void memory_forget(dscomm_group_t *group)
{
    while (!SLIST_EMPTY(&group->memory.allocated)) {
        area_t *area = SLIST_FIRST(&group->memory.allocated);

        SLIST_REMOVE_HEAD(&group->memory.allocated, link);
        free(area);
    }
}

static void group_memory_close(dscomm_group_t *group)
{
    area_t *area;

    if (!group->works.held)
        SLIST_FOREACH (area, &group->memory.allocated, link)
            memory_free(group, area->memory, area->mapped);
    memory_forget(group);
}

const dscomm_group_part_t dscomm_priv_memory_part = {
    .on[PART_CLOSE] = group_memory_close,
    .on[PART_FREE] = memory_forget,
};
