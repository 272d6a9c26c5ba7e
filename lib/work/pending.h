/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of groups with works, in the whole process. */
#ifndef LIB_PENDING_H
#define LIB_PENDING_H

#include "lib/group/group.h"

#include <stdbool.h>

/* With the group's lock held: put the group on the list, take it off if it has
 * no works any more. */
void dscomm_priv_pending_add(dscomm_group_t *group);
void dscomm_priv_pending_settle(dscomm_group_t *group);

/* Whether a group other than this one has works; whether no group has. */
int dscomm_priv_pending_others(const dscomm_group_t *group);
bool dscomm_priv_pending_none(void);

/* Calls visit, with the group's lock held, for each group whose lock is free,
 * but for except and groups with one of the capabilities in unless. Returns the
 * sum of what visit returned. */
unsigned dscomm_priv_pending_walk(const dscomm_group_t *except, uint64_t unless,
                                  unsigned (*visit)(dscomm_group_t *group,
                                                    void *arg),
                                  void *arg);

/* The function is called when a group comes to the list; from any thread. */
typedef void (*dscomm_pending_wake_t)(void);
void dscomm_priv_pending_set_wake(dscomm_pending_wake_t function);

/* In a forked child: forgets the parent's groups. */
void dscomm_priv_pending_forked(void);

#endif
