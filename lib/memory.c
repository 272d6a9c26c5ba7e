/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for buffers: the backend's own where it has some, plain pages
 * elsewhere. Addresses are remembered, so that a wrong one is refused and the
 * rest is given back with the group. */
#include "config.h"
#include "lib/memory.h"

#include <errno.h>
#include <sys/mman.h>

static dscomm_status_t map_pages(size_t size, void **ret_memory)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (memory == MAP_FAILED)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "dscomm_mem_alloc: mmap of %zu bytes: %s", size,
                           g_strerror(errno));
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

static void remember(GHashTable **table, void *memory, size_t size)
{
    if (!*table)
        *table = g_hash_table_new(NULL, NULL);
    g_hash_table_insert(*table, memory, GSIZE_TO_POINTER(size));
}

/* 1 where memory was in the table, which forgets it. */
static int forget(GHashTable *table, void *memory, size_t *ret_size)
{
    gpointer size;

    if (!table || !g_hash_table_lookup_extended(table, memory, NULL, &size))
        return 0;
    g_hash_table_remove(table, memory);
    *ret_size = GPOINTER_TO_SIZE(size);
    return 1;
}

dscomm_status_t dscomm_mem_alloc(dscomm_group_t *group, size_t size,
                                 void **ret_memory)
{
    const char *name = "dscomm_mem_alloc";
    dscomm_status_t status = dscomm_priv_group_usable(group, name);
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
    pthread_mutex_lock(&group->lock);
    status = obtain(group, size, &memory, &mapped);
    if (status == DSCOMM_OK) {
        remember(&group->memory, memory, mapped);
        *ret_memory = memory;
    }
    pthread_mutex_unlock(&group->lock);
    return status;
}

dscomm_status_t dscomm_mem_free(dscomm_group_t *group, void *memory)
{
    const char *name = "dscomm_mem_free";
    dscomm_status_t status = dscomm_priv_group_alive(group, name);
    size_t size;

    if (status < 0 || !memory)
        return status;
    if (!forget(group->memory, memory, &size))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: %p is not what dscomm_mem_alloc() returned for "
                           "group '%s'",
                           name, memory, group->name);
    pthread_mutex_lock(&group->lock);
    status = give_back(group, memory, size);
    pthread_mutex_unlock(&group->lock);
    return status;
}

dscomm_status_t dscomm_mem_register(dscomm_group_t *group, void *memory,
                                    size_t size)
{
    const char *name = "dscomm_mem_register";
    dscomm_status_t status = dscomm_priv_group_usable(group, name);

    if (status < 0)
        return status;
    if (!memory || !size || size > PTRDIFF_MAX)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: no memory: %zu bytes at %p",
                           name, size, memory);
    if (group->registered && g_hash_table_contains(group->registered, memory))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: %p is registered with group '%s' already", name,
                           memory, group->name);
    if (group->ops.mem_register) {
        pthread_mutex_lock(&group->lock);
        status = group->ops.mem_register(group->impl, memory, size);
        pthread_mutex_unlock(&group->lock);
    }
    if (status == DSCOMM_OK)
        remember(&group->registered, memory, size);
    return status;
}

dscomm_status_t dscomm_mem_deregister(dscomm_group_t *group, void *memory)
{
    const char *name = "dscomm_mem_deregister";
    dscomm_status_t status = dscomm_priv_group_alive(group, name);
    size_t size;

    if (status < 0)
        return status;
    if (!forget(group->registered, memory, &size))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: %p is not registered with group '%s'", name,
                           memory, group->name);
    if (group->ops.mem_deregister) {
        pthread_mutex_lock(&group->lock);
        status = group->ops.mem_deregister(group->impl, memory);
        pthread_mutex_unlock(&group->lock);
    }
    return status;
}

void dscomm_priv_memory_release(dscomm_group_t *group)
{
    GHashTableIter iter;
    gpointer memory, size;

    if (group->registered && group->ops.mem_deregister) {
        g_hash_table_iter_init(&iter, group->registered);
        while (g_hash_table_iter_next(&iter, &memory, NULL))
            group->ops.mem_deregister(group->impl, memory);
    }
    if (group->memory && !group->held) {
        g_hash_table_iter_init(&iter, group->memory);
        while (g_hash_table_iter_next(&iter, &memory, &size))
            give_back(group, memory, GPOINTER_TO_SIZE(size));
    }
    dscomm_priv_memory_destroy(group);
}

void dscomm_priv_memory_destroy(dscomm_group_t *group)
{
    if (group->registered)
        g_hash_table_destroy(g_steal_pointer(&group->registered));
    if (group->memory)
        g_hash_table_destroy(g_steal_pointer(&group->memory));
}
