/* SPDX-License-Identifier: BSD-3-Clause */
/* Splitting a group by colour. */
#include "config.h"

#include "lib/group.h"

#include <stdlib.h>

typedef struct {
    int32_t color, key, rank;
} member_t;

static int by_key(const void *a, const void *b)
{
    const member_t *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Everyone's colour and key. */
static dscomm_status_t gather(dscomm_group_t *parent, int color, int key,
                              member_t *members)
{
    const int32_t own[2] = {color, key};
    int32_t *all = g_new(int32_t, 2 * (gsize)parent->size);
    dscomm_status_t status =
        dscomm_all_gather(parent, own, all, 2, DSCOMM_INT32, NULL);

    for (int i = 0; status == DSCOMM_OK && i < parent->size; i++)
        members[i] = (member_t){all[2 * i], all[2 * i + 1], i};
    g_free(all);
    return status;
}

/* The ranks of one colour, in order; returns how many. */
static int pick(member_t *members, int size, int color, int *ranks)
{
    int count = 0;

    qsort(members, (size_t)size, sizeof *members, by_key);
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
    member_t *members;
    int *ranks, count;
    dscomm_status_t status =
        dscomm_priv_group_attr(parent, name, attr, &merged);

    if (status < 0)
        return status;
    if (!ret_group || color < DSCOMM_NO_COLOR)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s", name,
                           ret_group ? "color is negative; DSCOMM_NO_COLOR "
                                       "joins no group"
                                     : "ret_group is NULL");
    members = g_new(member_t, (gsize)parent->size);
    ranks = g_new(int, (gsize)parent->size);
    status = gather(parent, color, key, members);
    if (status == DSCOMM_OK) {
        count = pick(members, parent->size, color, ranks);
        status = dscomm_priv_group_child(parent, ranks, count, &merged, color,
                                         ret_group);
    }
    g_free(ranks);
    g_free(members);
    return status;
}
