/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory and its keys. */
#include "config.h"
#include "lib/call/access.h"

#include "lib/base/status.h"
#include "lib/device/device.h"
#include "lib/group/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "DSCM"
#define FLAG_NATIVE 1u

/* The bytes of a key; numbers are little-endian. */
typedef struct {
    char magic[4];
    uint32_t rank;
    uint32_t group; /* a hash of the group's id */
    uint32_t flags;
    uint64_t id, bytes;
    unsigned char native[DSCOMM_BACKEND_KEY];
} packed_t;
G_STATIC_ASSERT(sizeof(packed_t) == DSCOMM_MEM_KEY_BYTES);

dscomm_status_t dscomm_priv_mem_key_read(const dscomm_group_t *group,
                                         const char *name, const void *key,
                                         mem_key_t *ret_key)
{
    packed_t packed;

    if (!key)
        return dscomm_priv_invalid(group, name, "key is NULL");
    memcpy(&packed, key, sizeof packed);
    if (memcmp(packed.magic, MAGIC, sizeof packed.magic) != 0)
        return dscomm_priv_invalid(
            group, name, "key is none; give what dscomm_mem_key() has written");
    if (GUINT32_FROM_LE(packed.group) != g_str_hash(group->identity.id))
        return dscomm_priv_invalid(
            group, name,
            "key is of memory that was registered for another group");
    *ret_key = (mem_key_t){
        .rank = (int)GUINT32_FROM_LE(packed.rank),
        .id = GUINT64_FROM_LE(packed.id),
        .bytes = GUINT64_FROM_LE(packed.bytes),
        .is_native = (GUINT32_FROM_LE(packed.flags) & FLAG_NATIVE) != 0,
    };
    memcpy(ret_key->native, packed.native, sizeof packed.native);
    if (ret_key->rank < 0 || ret_key->rank >= group->size)
        return dscomm_priv_invalid(group, name,
                                   "key is damaged: it is of rank %d, and "
                                   "ranks are 0 ... %d",
                                   ret_key->rank, group->size - 1);
    return DSCOMM_OK;
}

/* Compares a line of /proc/self/maps with the bytes from begin up to, without,
 * end. Sets *ret_refused to their first one that may not be read and written.
 * Returns whether a later line may have one: lines are in order. */
static bool line_look(const char *line, uintptr_t begin, uintptr_t end,
                      uintptr_t *ret_refused)
{
    unsigned long long from = 0, to = 0;
    char access[5] = "";

    if (sscanf(line, "%llx-%llx %4s", &from, &to, access) != 3 || to <= begin)
        return true;
    if (from < end && strncmp(access, "rw", 2))
        *ret_refused = MAX((uintptr_t)from, begin);
    return to < end && !*ret_refused;
}

/* The first of the bytes that may not be read and written: a put would end this
 * process. 0: there is none, or nobody tells. Bytes that are not mapped may
 * be those of a stack, which grows when it is used. */
static uintptr_t range_refuse(uintptr_t begin, uintptr_t end)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t refused = 0;
    char *line = NULL;
    size_t room = 0;

    while (maps && getline(&line, &room, maps) > 0 &&
           line_look(line, begin, end, &refused))
        ;
    free(line);
    if (maps)
        fclose(maps);
    return refused;
}

static dscomm_status_t access_check(const dscomm_group_t *group,
                                    const char *name, const void *address,
                                    size_t bytes)
{
    const uintptr_t begin = (uintptr_t)address;
    const uintptr_t refused = range_refuse(begin, begin + bytes);

    return refused ? dscomm_priv_invalid(
                         group, name,
                         "memory of this process at %p may not be read and "
                         "written; map it with PROT_READ and PROT_WRITE",
                         (void *)refused)
                   : DSCOMM_OK;
}

/* OK, or the reason why the memory cannot be registered. */
static dscomm_status_t register_check(dscomm_group_t *group, const char *name,
                                      const void *address, size_t bytes,
                                      dscomm_mem_t *const *ret_mem)
{
    dscomm_status_t status = dscomm_priv_group_usable(group, name);

    if (status < 0)
        return status;
    if (!address || !ret_mem)
        return dscomm_priv_invalid(group, name, "%s is NULL",
                                   address ? "ret_mem" : "address");
    if (!bytes)
        return dscomm_priv_invalid(group, name, "bytes is 0");
    if (bytes > PTRDIFF_MAX || (uintptr_t)address > UINTPTR_MAX - bytes)
        return dscomm_priv_invalid(group, name,
                                   "%zu bytes from %p on are more than memory "
                                   "has",
                                   bytes, address);
    if (group->capabilities & DSCOMM_CAP_SEPARATE_MATCHING)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s on group '%s': a rank in one of MPI's blocking "
                           "collectives cannot serve puts and gets; set "
                           "DSCOMM_MPI_BLOCKING=no on all ranks",
                           name, group->identity.name);
    if (!group->ops.probe)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s on group '%s': backend %s can neither reach "
                           "memory of other ranks nor probe for messages",
                           name, group->identity.name, group->module->name);
    return DSCOMM_OK;
}

/* Called with the group's lock held: lets the backend, or else messages, reach
 * the memory. */
static dscomm_status_t register_open(dscomm_mem_t *mem)
{
    dscomm_group_t *group = mem->group;
    dscomm_status_t status = DSCOMM_ERR_UNSUPPORTED;

    if (group->ops.mem_register)
        status = group->ops.mem_register(group->impl, mem->address, mem->bytes,
                                         mem->key, &mem->registered);
    mem->native = status == DSCOMM_OK;
    if (status == DSCOMM_ERR_UNSUPPORTED) {
        status = dscomm_priv_access_puts(group)
                     ? DSCOMM_OK
                     : dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                                   "group '%s': no memory for counts of puts",
                                   group->identity.name);
        if (status < 0 && mem->registered)
            group->ops.mem_deregister(group->impl, mem->registered);
    }
    return status;
}

/* Called with the group's lock held: lets the backend reach memory of a device.
 * Messages do not. */
static dscomm_status_t register_device(dscomm_mem_t *mem, const char *name)
{
    dscomm_group_t *group = mem->group;
    dscomm_status_t status = DSCOMM_ERR_UNSUPPORTED;
    dscomm_dma_buf_t memory;
    const char *why = "the backend reaches none";

    if (group->ops.mem_register_device && group->ops.mem_deregister &&
        group->ops.put && group->ops.get)
        why = dscomm_priv_device_dma_buf(mem->address, mem->bytes, &memory);
    if (why) {
        dscomm_log(DSCOMM_LOG_INFO, "core",
                   "group '%s': memory of a device is not registered: %s",
                   group->identity.name, why);
    } else {
        status = group->ops.mem_register_device(group->impl, &memory, mem->key,
                                                &mem->registered);
        close(memory.descriptor);
    }
    mem->native = mem->on_device = status == DSCOMM_OK;
    return status == DSCOMM_OK
               ? status
               : dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                             "%s on group '%s': %p is memory of a device; "
                             "register memory of the host",
                             name, group->identity.name, (void *)mem->address);
}

dscomm_status_t dscomm_mem_register(dscomm_group_t *group, void *address,
                                    size_t bytes, dscomm_mem_t **ret_mem)
{
    const char *name = "dscomm_mem_register";
    dscomm_status_t status =
        register_check(group, name, address, bytes, ret_mem);
    const bool on_device =
        dscomm_priv_device_present() && dscomm_device_owns(address);
    dscomm_mem_t *mem;

    if (status == DSCOMM_OK && !on_device)
        status = access_check(group, name, address, bytes);
    if (status < 0)
        return status;
    mem = g_try_new0(dscomm_mem_t, 1);
    if (!mem)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s: no memory", name);
    mem->group = group;
    mem->address = address;
    mem->bytes = bytes;
    pthread_mutex_lock(&group->works.lock);
    status = on_device ? register_device(mem, name) : register_open(mem);
    if (status == DSCOMM_OK) {
        mem->id = ++group->memory.registrations;
        SLIST_INSERT_HEAD(&group->memory.registered, mem, link);
    }
    pthread_mutex_unlock(&group->works.lock);
    if (status == DSCOMM_OK)
        *ret_mem = mem;
    else
        g_free(mem);
    return status;
}

dscomm_status_t dscomm_mem_key(const dscomm_mem_t *mem, void *key)
{
    const char *name = "dscomm_mem_key";
    dscomm_status_t status;
    packed_t packed;

    if (!mem || !key)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s is NULL", name,
                           mem ? "key" : "mem");
    status = dscomm_priv_group_alive(mem->group, name);
    if (status < 0)
        return status;
    packed = (packed_t){
        .magic = MAGIC,
        .rank = GUINT32_TO_LE((uint32_t)mem->group->rank),
        .group = GUINT32_TO_LE(g_str_hash(mem->group->identity.id)),
        .flags = GUINT32_TO_LE(mem->native ? FLAG_NATIVE : 0),
        .id = GUINT64_TO_LE(mem->id),
        .bytes = GUINT64_TO_LE(mem->bytes),
    };
    memcpy(packed.native, mem->key, sizeof packed.native);
    memcpy(key, &packed, sizeof packed);
    if (!mem->native) {
        pthread_mutex_lock(&mem->group->works.lock);
        if (!mem->group->works.serve)
            dscomm_priv_serve_begin(mem->group);
        pthread_mutex_unlock(&mem->group->works.lock);
    }
    return DSCOMM_OK;
}

/* A work that is complete when nobody uses the memory. */
static void unused_advance(dscomm_work_t *work)
{
    if (!work->call.access.mem->served)
        work->request.status = DSCOMM_OK;
}

static dscomm_status_t unused_start(dscomm_work_t *work)
{
    dscomm_priv_access_begin(work->group);
    unused_advance(work);
    return DSCOMM_OK;
}

/* Blames the rank whose access lasts. */
static dscomm_status_t unused_overdue(dscomm_work_t *work,
                                      dscomm_failure_t *ret_failure)
{
    const dscomm_work_t *w = work->group->works.pending;

    while (w && (w == work || w->call.type != CALL_ACCESS ||
                 w->call.access.mem != work->call.access.mem))
        w = w->next;
    if (!w)
        return DSCOMM_OK;
    dscomm_priv_group_accuse(work->group, w->call.access.peer, ret_failure);
    dscomm_backend_failure_detail(
        ret_failure, "rank %d has not brought a %s to its end",
        w->call.access.peer, w->call.access.gets ? "get" : "put");
    return DSCOMM_OK;
}

static const dscomm_work_kind_t unused_kind = {
    .start = unused_start,
    .advance = unused_advance,
    .cancel = dscomm_priv_access_forget,
    .end = dscomm_priv_access_end,
    .overdue = unused_overdue,
};

/* Waits until the accesses that were begun have ended. */
static dscomm_status_t mem_wait_unused(dscomm_mem_t *mem)
{
    const dscomm_call_t call = {
        .type = CALL_ACCESS,
        .access = {.served = true, .peer = -1, .mem = mem},
    };

    return dscomm_priv_work_block(mem->group, &unused_kind, &call, NULL);
}

/* Lets the backend let go of memory that cannot be found any more. Called with
 * the group's lock held. ERR_STATE: it cannot yet, and the memory stays
 * registered. */
static dscomm_status_t mem_release(dscomm_mem_t *mem)
{
    dscomm_group_t *group = mem->group;
    dscomm_status_t status = DSCOMM_OK;

    if (mem->registered)
        status = group->ops.mem_deregister(group->impl, mem->registered);
    if (status == DSCOMM_OK)
        mem->registered = NULL;
    else
        SLIST_INSERT_HEAD(&group->memory.registered, mem, link);
    return status;
}

/* The failure of a group with which a registration has ended: none of those
 * after which memory stays registered. */
static dscomm_status_t mem_ended(dscomm_status_t status)
{
    if (status == DSCOMM_ERR_STATE || status == DSCOMM_ERR_NO_MEMORY)
        return dscomm_fail(DSCOMM_ERR_ABORTED, "%s", dscomm_last_error());
    return status;
}

/* *ret_ended: mem is not used any more. */
static dscomm_status_t mem_close(dscomm_mem_t *mem, bool *ret_ended)
{
    dscomm_group_t *group = mem->group;
    dscomm_status_t waited = DSCOMM_OK, status;
    bool used;

    pthread_mutex_lock(&group->works.lock);
    SLIST_REMOVE(&group->memory.registered, mem, dscomm_mem, link);
    used = mem->served;
    pthread_mutex_unlock(&group->works.lock);
    if (used)
        waited = mem_wait_unused(mem);
    pthread_mutex_lock(&group->works.lock);
    if (waited < 0 && mem->served && dscomm_group_status(group) == DSCOMM_OK) {
        SLIST_INSERT_HEAD(&group->memory.registered, mem, link);
        pthread_mutex_unlock(&group->works.lock);
        *ret_ended = false;
        return waited;
    }
    if (waited < 0 && !mem->served && dscomm_group_status(group) == DSCOMM_OK)
        waited = DSCOMM_OK; /* the last access has ended meanwhile */
    status = mem_release(mem);
    *ret_ended = status == DSCOMM_OK && !mem->served;
    if (status == DSCOMM_OK && mem->served) {
        /* It is freed with the group's handle. */
        mem->id = 0;
        SLIST_INSERT_HEAD(&group->memory.registered, mem, link);
    }
    pthread_mutex_unlock(&group->works.lock);
    return status < 0 ? status : mem_ended(waited);
}

dscomm_status_t dscomm_mem_deregister(dscomm_mem_t *mem)
{
    dscomm_status_t status;
    bool ended;

    if (!mem)
        return DSCOMM_OK;
    status = dscomm_priv_group_alive(mem->group, "dscomm_mem_deregister");
    if (status < 0)
        return status;
    status = mem_close(mem, &ended);
    if (ended)
        g_free(mem);
    return status;
}

/* Ends the registrations: the memory may be freed when the group is. */
static void registered_end(dscomm_group_t *group)
{
    dscomm_mem_t *mem;

    SLIST_FOREACH (mem, &group->memory.registered, link) {
        if (mem->registered)
            group->ops.mem_deregister(group->impl, mem->registered);
        mem->registered = NULL;
    }
}

static void puts_free(dscomm_group_t *group)
{
    g_clear_pointer(&group->memory.puts, g_free);
}

/* The handles last as long as that of their group. */
static void registered_forget(dscomm_group_t *group)
{
    dscomm_mem_t *mem;

    while ((mem = SLIST_FIRST(&group->memory.registered)) != NULL) {
        SLIST_REMOVE_HEAD(&group->memory.registered, link);
        g_free(mem);
    }
}

const dscomm_group_part_t dscomm_priv_registered_part = {
    .on[PART_END] = registered_end,
    .on[PART_FREE] = puts_free,
    .on[PART_FORGET] = registered_forget,
};
