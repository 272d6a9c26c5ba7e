/* SPDX-License-Identifier: BSD-3-Clause */
/* Making groups of a parent's ranks: agreement, members and names. */
#include "config.h"

#include "lib/call/group-new.h"

#include "lib/base/attr.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/group/world.h"

#include <stdio.h>
#include <string.h>

/* Fills in the attributes: those of attr, else the parent's. */
static dscomm_status_t group_attr_merge(const dscomm_group_t *parent,
                                        const char *name,
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
                           name, merged->timeout_ms, parent->identity.name);
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

dscomm_status_t dscomm_priv_group_attr_fill(const dscomm_group_t *parent,
                                            const char *name,
                                            const dscomm_group_attr_t *attr,
                                            dscomm_group_attr_t *ret_attr)
{
    dscomm_group_attr_t merged = DSCOMM_GROUP_ATTR_INIT;
    dscomm_status_t status = group_attr_merge(parent, name, attr, &merged);

    if (status < 0)
        return status;
    if (!merged.backend)
        merged.backend = parent->module->name;
    if (!merged.timeout_ms)
        merged.timeout_ms = parent->timeout_ms;
    *ret_attr = merged;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_group_attr(dscomm_group_t *parent, const char *name,
                                       const dscomm_group_attr_t *attr,
                                       dscomm_group_attr_t *ret_attr)
{
    dscomm_status_t status = dscomm_priv_group_ready(parent, name);

    if (status < 0)
        return status;
    return dscomm_priv_group_attr_fill(parent, name, attr, ret_attr);
}

static int own_index(const dscomm_group_t *parent, const int *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == parent->rank)
            return i;
    return -1;
}

static dscomm_status_t fail_nesting(const dscomm_group_t *parent)
{
    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "group '%s' is a group of a group and so on, nested "
                       "too deeply for another one; make it from a group that "
                       "is nearer to the world",
                       parent->identity.name);
}

/* Opens the group that plan describes, or refuses it; module, rank and time-out
 * are missing there. It gets plan's name if attr has none. */
static dscomm_status_t open_child(dscomm_group_plan_t plan,
                                  const dscomm_group_attr_t *attr,
                                  dscomm_failure_t *refusal,
                                  dscomm_group_t **ret_group)
{
    dscomm_status_t status =
        dscomm_priv_module_find(attr->backend, &plan.module);

    if (status < 0)
        return status;
    if (plan.count == 1) /* needs no backend, but its name must be right */
        plan.module = dscomm_priv_module_self();
    if (attr->name)
        plan.name = attr->name;
    plan.world = plan.parent->identity.world;
    plan.rank = own_index(plan.parent, plan.ranks, plan.count);
    plan.timeout_ms = attr->timeout_ms;
    return refusal ? dscomm_priv_group_refuse(&plan, refusal)
                   : dscomm_priv_group_open(&plan, ret_group);
}

dscomm_status_t dscomm_priv_group_child(dscomm_group_t *parent,
                                        const int *ranks, int count,
                                        const dscomm_group_attr_t *attr,
                                        int64_t deadline, int discriminator,
                                        dscomm_failure_t *refusal,
                                        dscomm_group_t **ret_group)
{
    unsigned long long number = ++parent->life.children;
    char part[48] = "", id[DSCOMM_GROUP_ID_MAX], name[DSCOMM_ERROR_MAX];

    if (own_index(parent, ranks, count) < 0) {
        *ret_group = NULL;
        return DSCOMM_OK;
    }
    if (discriminator >= 0)
        snprintf(part, sizeof part, ".%d", discriminator);
    snprintf(name, sizeof name, "%s/%llu%s", parent->identity.name, number,
             part);
    if (snprintf(id, sizeof id, "%s.%llu%s", parent->identity.id, number,
                 part) >= (int)sizeof id)
        return fail_nesting(parent);
    return open_child((dscomm_group_plan_t){.parent = parent,
                                            .name = name,
                                            .id = id,
                                            .ranks = ranks,
                                            .count = count,
                                            .deadline = deadline},
                      attr, refusal, ret_group);
}

dscomm_status_t dscomm_priv_group_survivors(dscomm_group_t *failed,
                                            const int *ranks, int count,
                                            const dscomm_group_attr_t *attr,
                                            int64_t deadline, unsigned round,
                                            dscomm_group_t **ret_group)
{
    char id[DSCOMM_GROUP_ID_MAX], name[DSCOMM_ERROR_MAX];

    snprintf(name, sizeof name, "%s/shrunk#%u", failed->identity.name, round);
    if (snprintf(id, sizeof id, "%s.s%u", failed->identity.id, round) >=
        (int)sizeof id)
        return fail_nesting(failed);
    return open_child((dscomm_group_plan_t){.parent = failed,
                                            .after_failure = true,
                                            .name = name,
                                            .id = id,
                                            .ranks = ranks,
                                            .count = count,
                                            .deadline = deadline},
                      attr, NULL, ret_group);
}

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#define HASH_FIRST UINT64_C(0xcbf29ce484222325)

/* A list of ranks for which members_only groups were made. */
struct dscomm_list {
    SLIST_ENTRY(dscomm_list) link;
    uint64_t hash;
    unsigned calls;
};

static void lists_free(dscomm_group_t *group)
{
    struct dscomm_list *list;

    while ((list = SLIST_FIRST(&group->life.lists))) {
        SLIST_REMOVE_HEAD(&group->life.lists, link);
        g_free(list);
    }
}

const dscomm_group_part_t dscomm_priv_lists_part = {.on[PART_FREE] =
                                                        lists_free};

/* Counts the groups made with this list. Returns 0 if there is no memory; the
 * group has then ended, because this rank's count would differ from the
 * others'. */
static unsigned count_call(dscomm_group_t *parent, uint64_t hash)
{
    struct dscomm_list *list;

    SLIST_FOREACH (list, &parent->life.lists, link)
        if (list->hash == hash)
            break;
    if (!list) {
        list = dscomm_priv_group_memory(parent, "dscomm_group_new", 1,
                                        sizeof *list);
        if (!list)
            return 0;
        list->hash = hash;
        SLIST_INSERT_HEAD(&parent->life.lists, list, link);
    }
    return ++list->calls;
}

#define LIST_ROOM 16 /* bytes for a last rank and "..." */

/* Writes "0,2,5", cut off if it is too long. */
static void list_text(const int *ranks, int count, char *text, size_t size)
{
    size_t used = 0;
    int i;

    for (i = 0; i < count && used < size - LIST_ROOM; i++)
        used += (size_t)snprintf(text + used, size - used, i ? ",%d" : "%d",
                                 ranks[i]);
    if (i < count)
        g_strlcat(text, "...", size);
}

/* Makes a members_only group. Its id consists of a hash of the list and the
 * number of groups that were made with it, because the members have nothing
 * else in common. */
static dscomm_status_t open_members_only(dscomm_group_t *parent,
                                         const int *ranks, int count,
                                         const dscomm_group_attr_t *attr,
                                         dscomm_group_t **ret_group)
{
    const uint64_t hash =
        hash_bytes(HASH_FIRST, ranks, (size_t)count * sizeof *ranks);
    char list[48], id[DSCOMM_GROUP_ID_MAX], name[DSCOMM_ERROR_MAX];
    unsigned number;

    if (own_index(parent, ranks, count) < 0) {
        *ret_group = NULL;
        return DSCOMM_OK;
    }
    number = count_call(parent, hash);
    if (!number)
        return DSCOMM_ERR_NO_MEMORY;
    list_text(ranks, count, list, sizeof list);
    snprintf(name, sizeof name, "%s/{%s}#%u", parent->identity.name, list,
             number);
    if (snprintf(id, sizeof id, "%s.m%016llx.%u", parent->identity.id,
                 (unsigned long long)hash, number) >= (int)sizeof id)
        return fail_nesting(parent);
    return open_child(
        (dscomm_group_plan_t){.parent = parent,
                              .name = name,
                              .id = id,
                              .ranks = ranks,
                              .count = count,
                              .deadline = dscomm_priv_clock_after(
                                  dscomm_priv_clock(), attr->timeout_ms)},
        attr, NULL, ret_group);
}

/* Checks the list. The parent's scratch space marks the ranks that were seen.
 */
static dscomm_status_t list_check(dscomm_group_t *parent, const int *ranks,
                                  int count)
{
    const char *name = "dscomm_group_new";
    unsigned char *seen = (unsigned char *)parent->scratch;
    dscomm_status_t status = DSCOMM_OK;

    if (!ranks)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: ranks is NULL; give the ranks of '%s' that "
                           "form the group",
                           name, parent->identity.name);
    if (count < 1 || count > parent->size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: a list of %d ranks of '%s', which has %d", name,
                           count, parent->identity.name, parent->size);
    memset(seen, 0, (size_t)parent->size);
    for (int i = 0; i < count && status == DSCOMM_OK; i++) {
        if (ranks[i] < 0 || ranks[i] >= parent->size)
            status = dscomm_fail(DSCOMM_ERR_INVALID,
                                 "%s: ranks[%d] is %d, not in 0 ... %d of '%s'",
                                 name, i, ranks[i], parent->size - 1,
                                 parent->identity.name);
        else if (seen[ranks[i]]++)
            status = dscomm_fail(DSCOMM_ERR_INVALID,
                                 "%s: rank %d is listed twice", name, ranks[i]);
    }
    return status;
}

static dscomm_status_t list_agree(dscomm_group_t *parent, const int *ranks,
                                  int count, const dscomm_group_attr_t *attr)
{
    uint64_t hash =
        hash_bytes(HASH_FIRST, ranks, (size_t)count * sizeof *ranks);
    char list[64], what[DSCOMM_ERROR_MAX];

    hash = hash_bytes(hash, attr->backend, strlen(attr->backend));
    list_text(ranks, count, list, sizeof list);
    snprintf(what, sizeof what,
             "dscomm_group_new(ranks {%s}, count %d, backend %s)", list, count,
             attr->backend);
    return dscomm_priv_agree(parent, DSCOMM_ROOT_GROUP_NEW, hash, what,
                             "all ranks must give the same list, in the same "
                             "order, and the same backend");
}

dscomm_status_t dscomm_group_new(dscomm_group_t *parent, const int *ranks,
                                 int count, const dscomm_group_attr_t *attr,
                                 dscomm_group_t **ret_group)
{
    const char *name = "dscomm_group_new";
    dscomm_group_attr_t merged;
    const int64_t now = dscomm_priv_clock();
    dscomm_status_t status =
        dscomm_priv_group_attr(parent, name, attr, &merged);

    if (status < 0)
        return status;
    if (!ret_group)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: ret_group is NULL", name);
    status = list_check(parent, ranks, count);
    if (status < 0)
        return status;
    if (merged.members_only)
        return open_members_only(parent, ranks, count, &merged, ret_group);
    status = list_agree(parent, ranks, count, &merged);
    if (status < 0)
        return status;
    return dscomm_priv_group_child(
        parent, ranks, count, &merged,
        dscomm_priv_clock_after(now, merged.timeout_ms), -1, NULL, ret_group);
}
