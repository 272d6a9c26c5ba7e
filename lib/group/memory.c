/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for buffers: the backend's own where it has some, plain pages
 * elsewhere. Addresses are remembered, so that a wrong one is refused and the
 * rest is given back with the group. */
#include "config.h"
#include "lib/group/memory.h"

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

/* A backend may decline; *ret_mapped is the size of plain pages, 0 where the
 * memory is the backend's. */
static dscomm_status_t obtain(dscomm_group_t *group, size_t size,
                              void **ret_memory, size_t *ret_mapped)
{
    dscomm_status_t status = DSCOMM_ERR_UNSUPPORTED;

    if (group->ops.mem_alloc && group->ops.mem_free)
        status = group->ops.mem_alloc(group->impl, size, ret_memory);
    *ret_mapped = status == DSCOMM_ERR_UNSUPPORTED ? size : 0;
    return *ret_mapped ? map_pages(size, ret_memory) : status;
}

static dscomm_status_t give_back(dscomm_group_t *group, void *memory,
                                 size_t mapped)
{
    if (!mapped)
        return group->ops.mem_free(group->impl, memory);
    munmap(memory, mapped);
    return DSCOMM_OK;
}

/* The few that a group has, so that a list does. */
struct dscomm_area {
    struct dscomm_area *next;
    void *memory;
    size_t size;
};

typedef struct dscomm_area area_t;

/* To be filled and put into a list; NULL after dscomm_fail(). */
static area_t *area_new(const char *name)
{
    area_t *area = malloc(sizeof *area);

    if (!area)
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s: no memory", name);
    return area;
}

static void area_add(area_t **list, area_t *area, void *memory, size_t size)
{
    *area = (area_t){*list, memory, size};
    *list = area;
}

/* Where the list points to memory, or its end. */
static area_t **area_find(area_t **list, const void *memory)
{
    while (*list && (*list)->memory != memory)
        list = &(*list)->next;
    return list;
}

/* 1 where memory was in the list, which forgets it. */
static int area_forget(area_t **list, const void *memory, size_t *ret_size)
{
    area_t **place = area_find(list, memory), *area = *place;

    if (!area)
        return 0;
    *place = area->next;
    *ret_size = area->size;
    free(area);
    return 1;
}

static void areas_free(area_t **list)
{
    while (*list) {
        area_t *area = *list;

        *list = area->next;
        free(area);
    }
}

dscomm_status_t dscomm_mem_alloc(dscomm_group_t *group, size_t size,
                                 void **ret_memory)
{
    const char *name = "dscomm_mem_alloc";
    dscomm_status_t status = dscomm_priv_group_usable(group, name);
    area_t *area;
    size_t mapped;
    void *memory;

    if (status < 0)
        return status;
    if (!ret_memory)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: ret_memory is NULL", name);
    if (size == 0)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: size is 0", name);
    if (size > PTRDIFF_MAX)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s: size %zu is out of range",
                           name, size);
    area = area_new(name);
    if (!area)
        return DSCOMM_ERR_NO_MEMORY;
    pthread_mutex_lock(&group->works.lock);
    status = obtain(group, size, &memory, &mapped);
    if (status == DSCOMM_OK) {
        area_add(&group->memory.allocated, area, memory, mapped);
        *ret_memory = memory;
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
    size_t size;

    if (status < 0 || !memory)
        return status;
    if (!area_forget(&group->memory.allocated, memory, &size))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: %p is not what dscomm_mem_alloc() returned for "
                           "group '%s'",
                           name, memory, group->identity.name);
    pthread_mutex_lock(&group->works.lock);
    status = give_back(group, memory, size);
    pthread_mutex_unlock(&group->works.lock);
    return status;
}

dscomm_status_t dscomm_mem_register(dscomm_group_t *group, void *memory,
                                    size_t size)
{
    const char *name = "dscomm_mem_register";
    dscomm_status_t status = dscomm_priv_group_usable(group, name);
    area_t *area;

    if (status < 0)
        return status;
    if (!memory || !size || size > PTRDIFF_MAX)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: no memory: %zu bytes at %p",
                           name, size, memory);
    if (*area_find(&group->memory.registered, memory))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: %p is registered with group '%s' already", name,
                           memory, group->identity.name);
    area = area_new(name);
    if (!area)
        return DSCOMM_ERR_NO_MEMORY;
    if (group->ops.mem_register) {
        pthread_mutex_lock(&group->works.lock);
        status = group->ops.mem_register(group->impl, memory, size);
        pthread_mutex_unlock(&group->works.lock);
    }
    if (status == DSCOMM_OK)
        area_add(&group->memory.registered, area, memory, size);
    else
        free(area);
    return status;
}

dscomm_status_t dscomm_mem_deregister(dscomm_group_t *group, void *memory)
{
    const char *name = "dscomm_mem_deregister";
    dscomm_status_t status = dscomm_priv_group_alive(group, name);
    size_t size;

    if (status < 0)
        return status;
    if (!area_forget(&group->memory.registered, memory, &size))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: %p is not registered with group '%s'", name,
                           memory, group->identity.name);
    if (group->ops.mem_deregister) {
        pthread_mutex_lock(&group->works.lock);
        status = group->ops.mem_deregister(group->impl, memory);
        pthread_mutex_unlock(&group->works.lock);
    }
    return status;
}

void dscomm_priv_memory_release(dscomm_group_t *group)
{
    if (group->ops.mem_deregister)
        for (area_t *area = group->memory.registered; area; area = area->next)
            group->ops.mem_deregister(group->impl, area->memory);
    if (!group->works.held)
        for (area_t *area = group->memory.allocated; area; area = area->next)
            give_back(group, area->memory, area->size);
    dscomm_priv_memory_destroy(group);
}

void dscomm_priv_memory_destroy(dscomm_group_t *group)
{
    areas_free(&group->memory.registered);
    areas_free(&group->memory.allocated);
}
