/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to the calls that make groups. */
#ifndef LIB_GROUP_NEW_H
#define LIB_GROUP_NEW_H

#include "lib/group/group.h"

/* attr checks attributes and fills in the parent's. child makes a group of the
 * given members (ranks of parent) by deadline, the call's. If discriminator is
 * >= 0, it is appended to the id. *ret_group is NULL if this rank is not
 * listed. */
dscomm_status_t dscomm_priv_group_attr(dscomm_group_t *parent, const char *name,
                                       const dscomm_group_attr_t *attr,
                                       dscomm_group_attr_t *ret_attr);
dscomm_status_t dscomm_priv_group_child(dscomm_group_t *parent,
                                        const int *ranks, int count,
                                        const dscomm_group_attr_t *attr,
                                        int64_t deadline, int discriminator,
                                        dscomm_group_t **ret_group);
/* The counts of members_only groups. */
extern const dscomm_group_part_t dscomm_priv_lists_part;

#endif
