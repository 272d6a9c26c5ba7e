/* SPDX-License-Identifier: BSD-3-Clause */
/* What the calls that make groups have in common. */
#ifndef LIB_GROUP_NEW_H
#define LIB_GROUP_NEW_H

#include "lib/group/group.h"

/* New children of a collective over parent: checked attributes, the module, and
 * a plan for the given members (ranks of parent). deadline is that of the call.
 * discriminator is appended to the id where it is >= 0. ret_group gets NULL
 * where this rank is not listed. */
dscomm_status_t dscomm_priv_group_attr(dscomm_group_t *parent, const char *name,
                                       const dscomm_group_attr_t *attr,
                                       dscomm_group_attr_t *ret_attr);
dscomm_status_t dscomm_priv_group_child(dscomm_group_t *parent,
                                        const int *ranks, int count,
                                        const dscomm_group_attr_t *attr,
                                        int64_t deadline, int discriminator,
                                        dscomm_group_t **ret_group);
/* The counts of groups with DSCOMM_GROUP_MEMBERS_ONLY. */
extern const dscomm_group_part_t dscomm_priv_lists_part;

#endif
