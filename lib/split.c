/* SPDX-License-Identifier: BSD-3-Clause */
/* Splitting a group by colour. */
#include "config.h"

#include "lib/group.h"

#include "lib/clock.h"

#include <stdlib.h>

typedef struct {
    int32_t color, key;
    int32_t backend; /* hash of its name */
    int32_t rank;
} member_t;

#define WORDS (sizeof(member_t) / sizeof(int32_t))

/* By colour, then in the order of the new group. */
static int compare(const void *a, const void *b)
{
    const member_t *x = a, *y = b;

    if (x->color != y->color)
        return x->color < y->color ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* What everyone gave, sorted. All ranks see the same, and so find the same
 * fault in it. */
static dscomm_status_t gather(dscomm_group_t *parent, const member_t *own,
                              member_t *members)
{
    dscomm_status_t status =
        dscomm_all_gather(parent, own, members, WORDS, DSCOMM_INT32, NULL);

    if (status < 0)
        return dscomm_priv_group_explain(parent, "dscomm_group_split", status);
    qsort(members, (size_t)parent->size, sizeof *members, compare);
    for (int i = 1; i < parent->size; i++) {
        const member_t *a = &members[i - 1], *b = &members[i];

        if (a->color == b->color && a->color >= 0 && a->backend != b->backend)
            return dscomm_fail(DSCOMM_ERR_MISMATCH,
                               "dscomm_group_split of '%s': ranks %d and %d "
                               "have color %d, but ask for different backends",
                               parent->name, a->rank, b->rank, a->color);
    }
    return DSCOMM_OK;
}

/* The ranks of one colour, in order; returns how many. */
static int pick(const member_t *members, int size, int color, int *ranks)
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
    status = gather(parent, &own, members);
    if (status == DSCOMM_OK) {
        ranks = (int *)parent->scratch;
        count = pick(members, parent->size, color, ranks);
        status = dscomm_priv_group_child(
            parent, ranks, count, &merged,
            dscomm_priv_clock_after(dscomm_priv_clock(), merged.timeout_ms),
            color, ret_group);
    }
    dscomm_priv_buffer_drop(parent, members);
    return status;
}
