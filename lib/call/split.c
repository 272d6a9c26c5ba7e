/* SPDX-License-Identifier: BSD-3-Clause */
/* Splitting a group by colour. */
#include "config.h"

#include "lib/call/group-new.h"

#include "lib/base/clock.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int32_t color, key;
    int32_t backend; /* hash of its name */
    int32_t rank;
} member_t;

/* Order: by colour, then as in the new group. */
static int member_compare(const void *a, const void *b)
{
    const member_t *x = a, *y = b;

    if (x->color != y->color)
        return x->color < y->color ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static dscomm_status_t split_fail_backends(dscomm_group_t *parent,
                                           const member_t *own,
                                           const char *backend, int odd,
                                           int other)
{
    char color[24] = "DSCOMM_NO_COLOR", what[DSCOMM_ERROR_MAX];

    if (own->color >= 0)
        snprintf(color, sizeof color, "color %d", own->color);
    snprintf(what, sizeof what, "dscomm_group_split(%s, key %d, backend %s)",
             color, own->key, backend);
    return dscomm_priv_agree_fail(
        parent, DSCOMM_ROOT_GROUP_SPLIT, odd, other, 0, what,
        "ranks of one color must give the same backend");
}

/* Gathers and sorts all ranks' arguments. All ranks see the same, and so report
 * the same error. */
static dscomm_status_t members_gather(dscomm_group_t *parent,
                                      const member_t *own, const char *backend,
                                      member_t *members)
{
    const member_t *first = members;
    dscomm_status_t status = dscomm_priv_agree_gather(
        parent, DSCOMM_ROOT_GROUP_SPLIT, own, members, sizeof *own);

    if (status < 0)
        return status;
    qsort(members, (size_t)parent->size, sizeof *members, member_compare);
    for (int i = 1; i < parent->size; i++) {
        if (members[i].color != first->color)
            first = &members[i];
        else if (first->color >= 0 && members[i].backend != first->backend)
            return split_fail_backends(parent, own, backend, members[i].rank,
                                       first->rank);
    }
    return DSCOMM_OK;
}

/* Finds the ranks of one colour, in order; returns their number. */
static int members_pick(const member_t *members, int size, int color,
                        int *ranks)
{
    int count = 0;

    for (int i = 0; i < size; i++)
        if (color >= 0 && members[i].color == color)
            ranks[count++] = members[i].rank;
    return count;
}

dscomm_status_t dscomm_group_split(dscomm_group_t *parent, int color, int key,
                                   const dscomm_group_attr_t *attr,
                                   dscomm_group_t **ret_group)
{
    const char *name = "dscomm_group_split";
    dscomm_group_attr_t merged;
    member_t own, *members;
    int *ranks, count;
    const int64_t now = dscomm_priv_clock();
    dscomm_status_t status =
        dscomm_priv_group_attr(parent, name, attr, &merged);

    if (status < 0)
        return status;
    if (merged.members_only)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: attr.members_only is for dscomm_group_new(), "
                           "whose callers know who the members are",
                           name);
    if (!ret_group || color < DSCOMM_NO_COLOR)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s", name,
                           ret_group ? "color is negative; DSCOMM_NO_COLOR "
                                       "joins no group"
                                     : "ret_group is NULL");
    members = dscomm_priv_group_memory(parent, name, (size_t)parent->size,
                                       sizeof *members);
    if (!members)
        return DSCOMM_ERR_NO_MEMORY;
    own = (member_t){color, key, (int32_t)g_str_hash(merged.backend),
                     parent->rank};
    status = members_gather(parent, &own, merged.backend, members);
    if (status == DSCOMM_OK) {
        ranks = (int *)parent->scratch;
        count = members_pick(members, parent->size, color, ranks);
        status = dscomm_priv_group_child(
            parent, ranks, count, &merged,
            dscomm_priv_clock_after(now, merged.timeout_ms), color, NULL,
            ret_group);
    }
    dscomm_priv_buffer_drop(parent, members);
    return status;
}
