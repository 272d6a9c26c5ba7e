/* SPDX-License-Identifier: BSD-3-Clause */
/* New groups out of a parent's ranks: who agrees, who is in, what it is
 * called. */
#include "config.h"

#include "lib/group.h"

#include "lib/attr.h"
#include "lib/clock.h"
#include "lib/status.h"
#include "lib/world.h"

#include <stdio.h>
#include <string.h>

/* What attr says, over what the parent has. */
static dscomm_status_t merge(const dscomm_group_t *parent, const char *name,
                             const dscomm_group_attr_t *attr,
                             dscomm_group_attr_t *merged)
{
    char what[64];
    dscomm_status_t status;

    snprintf(what, sizeof what, "%s: attr", name);
    status = dscomm_priv_attr_read(what, "start from DSCOMM_GROUP_ATTR_INIT",
                                   attr, sizeof *attr, merged);

    if (!attr || status < 0)
        return status;
    if (merged->timeout_ms < 0)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: attr.timeout_ms is %d; give milliseconds, or 0 "
                           "for those of '%s'",
                           name, merged->timeout_ms, parent->name);
    if (merged->members_only != 0 && merged->members_only != 1)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: attr.members_only is %d, not 0 or 1", name,
                           merged->members_only);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_group_attr_init(dscomm_group_attr_t *attr, size_t size)
{
    return dscomm_priv_attr_init("dscomm_group_attr_init", attr, size);
}

dscomm_status_t dscomm_priv_group_attr(dscomm_group_t *parent, const char *name,
                                       const dscomm_group_attr_t *attr,
                                       dscomm_group_attr_t *ret_attr)
{
    dscomm_group_attr_t merged = DSCOMM_GROUP_ATTR_INIT;
    dscomm_status_t status = dscomm_priv_group_ready(parent, name);

    if (status == DSCOMM_OK)
        status = merge(parent, name, attr, &merged);
    if (status < 0)
        return status;
    if (!merged.backend)
        merged.backend = parent->module->name;
    if (!merged.timeout_ms)
        merged.timeout_ms = parent->timeout_ms;
    *ret_attr = merged;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_group_explain(const dscomm_group_t *group,
                                          const char *name,
                                          dscomm_status_t status)
{
    char why[DSCOMM_ERROR_MAX];

    g_strlcpy(why, dscomm_last_error(), sizeof why);
    return dscomm_fail(status, "%s on group '%s': %s", name, group->name, why);
}

dscomm_status_t dscomm_priv_group_agree(dscomm_group_t *group, const char *name,
                                        uint64_t hash)
{
    uint64_t *hashes = dscomm_priv_group_memory(
        group, name, (size_t)group->size, sizeof *hashes);
    dscomm_status_t status;

    if (!hashes)
        return DSCOMM_ERR_NO_MEMORY;
    status = dscomm_all_gather(group, &hash, hashes, 1, DSCOMM_UINT64, NULL);
    if (status < 0)
        status = dscomm_priv_group_explain(group, name, status);
    for (int i = 0; status == DSCOMM_OK && i < group->size; i++)
        if (hashes[i] != hash)
            status = dscomm_fail(DSCOMM_ERR_MISMATCH,
                                 "%s on group '%s': rank %d was called with "
                                 "other arguments than this rank, %d",
                                 name, group->name, i, group->rank);
    dscomm_priv_buffer_drop(group, hashes);
    return status;
}

/* Groups of one rank never reach a module, but a wrong name is wrong there,
 * too. */
static dscomm_status_t choose_module(const char *backend, int count,
                                     const dscomm_module_t **ret_module)
{
    dscomm_status_t status = dscomm_priv_module_find(backend, ret_module);

    if (status == DSCOMM_OK && count == 1)
        *ret_module = dscomm_priv_module_self();
    return status;
}

static int own_index(const dscomm_group_t *parent, const int *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == parent->rank)
            return i;
    return -1;
}

static int *to_world(const dscomm_group_t *parent, const int *ranks, int count)
{
    int *world_ranks = g_new(int, (gsize)count);

    for (int i = 0; i < count; i++)
        world_ranks[i] = parent->world_ranks[ranks[i]];
    return world_ranks;
}

/* name is what the group is called if attr has none. */
static dscomm_status_t open_child(dscomm_group_t *parent, const int *ranks,
                                  int count, const dscomm_group_attr_t *attr,
                                  const char *id, const char *name,
                                  dscomm_group_t **ret_group)
{
    const dscomm_module_t *module = NULL;
    dscomm_status_t status = choose_module(attr->backend, count, &module);

    if (status < 0)
        return status;
    return dscomm_priv_group_open(
        &(dscomm_group_plan_t){.world = parent->world,
                               .parent = parent,
                               .module = module,
                               .name = attr->name ? attr->name : name,
                               .id = id,
                               .world_ranks = to_world(parent, ranks, count),
                               .rank = own_index(parent, ranks, count),
                               .count = count,
                               .timeout_ms = attr->timeout_ms,
                               .deadline = dscomm_priv_clock_after(
                                   dscomm_priv_clock(), attr->timeout_ms)},
        ret_group);
}

dscomm_status_t dscomm_priv_group_child(dscomm_group_t *parent,
                                        const int *ranks, int count,
                                        const dscomm_group_attr_t *attr,
                                        int discriminator,
                                        dscomm_group_t **ret_group)
{
    unsigned long long number = ++parent->children;
    char part[48] = "", *id, *name;
    dscomm_status_t status;

    if (own_index(parent, ranks, count) < 0) {
        *ret_group = NULL;
        return DSCOMM_OK;
    }
    if (discriminator >= 0)
        snprintf(part, sizeof part, ".%d", discriminator);
    id = g_strdup_printf("%s.%llu%s", parent->id, number, part);
    name = g_strdup_printf("%s/%llu%s", parent->name, number, part);
    status = open_child(parent, ranks, count, attr, id, name, ret_group);
    g_free(name);
    g_free(id);
    return status;
}

/* How often this list was asked for, without the other ranks. */
static unsigned count_call(dscomm_group_t *parent, const char *list)
{
    gpointer before;

    if (!parent->lists)
        parent->lists =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    before = g_hash_table_lookup(parent->lists, list);
    g_hash_table_insert(parent->lists, g_strdup(list),
                        GUINT_TO_POINTER(GPOINTER_TO_UINT(before) + 1));
    return GPOINTER_TO_UINT(before) + 1;
}

static char *list_text(const int *ranks, int count)
{
    GString *text = g_string_new(NULL);

    for (int i = 0; i < count; i++)
        g_string_append_printf(text, i ? ",%d" : "%d", ranks[i]);
    return g_string_free(text, FALSE);
}

/* The members alone have the list, and how often they asked for it, in common,
 * so that's what they meet by. */
static dscomm_status_t open_apart(dscomm_group_t *parent, const int *ranks,
                                  int count, const dscomm_group_attr_t *attr,
                                  dscomm_group_t **ret_group)
{
    char *list, *digest, *id, *name;
    unsigned number;
    dscomm_status_t status;

    if (own_index(parent, ranks, count) < 0) {
        *ret_group = NULL;
        return DSCOMM_OK;
    }
    list = list_text(ranks, count);
    digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, list, -1);
    number = count_call(parent, list);
    id = g_strdup_printf("%s.m%.16s.%u", parent->id, digest, number);
    name = g_strdup_printf("%s/{%.40s%s}#%u", parent->name, list,
                           strlen(list) > 40 ? "..." : "", number);
    status = open_child(parent, ranks, count, attr, id, name, ret_group);
    g_free(name);
    g_free(id);
    g_free(digest);
    g_free(list);
    return status;
}

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static dscomm_status_t check_list(const dscomm_group_t *parent,
                                  const int *ranks, int count)
{
    const char *name = "dscomm_group_new";
    unsigned char *seen;
    dscomm_status_t status = DSCOMM_OK;

    if (!ranks)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: ranks is NULL; give the ranks of '%s' that "
                           "form the group",
                           name, parent->name);
    if (count < 1 || count > parent->size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: a list of %d ranks of '%s', which has %d", name,
                           count, parent->name, parent->size);
    seen = g_new0(unsigned char, (gsize)parent->size);
    for (int i = 0; i < count && status == DSCOMM_OK; i++) {
        if (ranks[i] < 0 || ranks[i] >= parent->size)
            status =
                dscomm_fail(DSCOMM_ERR_INVALID,
                            "%s: ranks[%d] is %d, not in 0 ... %d of '%s'",
                            name, i, ranks[i], parent->size - 1, parent->name);
        else if (seen[ranks[i]]++)
            status = dscomm_fail(DSCOMM_ERR_INVALID,
                                 "%s: rank %d is listed twice", name, ranks[i]);
    }
    g_free(seen);
    return status;
}

dscomm_status_t dscomm_group_new(dscomm_group_t *parent, const int *ranks,
                                 int count, const dscomm_group_attr_t *attr,
                                 dscomm_group_t **ret_group)
{
    const char *name = "dscomm_group_new";
    dscomm_group_attr_t merged;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    dscomm_status_t status =
        dscomm_priv_group_attr(parent, name, attr, &merged);

    if (status < 0)
        return status;
    if (!ret_group)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: ret_group is NULL", name);
    status = check_list(parent, ranks, count);
    if (status < 0)
        return status;
    if (merged.members_only)
        return open_apart(parent, ranks, count, &merged, ret_group);
    hash = hash_bytes(hash, ranks, (size_t)count * sizeof *ranks);
    hash = hash_bytes(hash, merged.backend, strlen(merged.backend));
    status = dscomm_priv_group_agree(parent, name, hash);
    if (status < 0)
        return status;
    return dscomm_priv_group_child(parent, ranks, count, &merged, -1,
                                   ret_group);
}
