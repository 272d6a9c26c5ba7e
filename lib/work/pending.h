/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of all groups of the process that have works. */
#ifndef LIB_PENDING_H
#define LIB_PENDING_H

#include "lib/group/group.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Called with the group's lock held: add puts the group on the list, settle
 * removes it if it has no works any more. watch: the library's thread must look
 * at the group's deadline, because perhaps nobody waits. */
void dscomm_priv_pending_add(dscomm_group_t *group, bool watch);
void dscomm_priv_pending_settle(dscomm_group_t *group);

/* others returns 1 if a group other than this one has works; none, if no group
 * has. */
int dscomm_priv_pending_others(const dscomm_group_t *group);
bool dscomm_priv_pending_none(void);

/* Calls visit for each group whose lock is free, and holds that lock meanwhile;
 * omits except and groups that have one of the capabilities in unless. Returns
 * the sum of the results. */
unsigned dscomm_priv_pending_walk(const dscomm_group_t *except, uint64_t unless,
                                  unsigned (*visit)(dscomm_group_t *group,
                                                    void *arg),
                                  void *arg);

/* The library's thread looks at works often enough for this deadline, in ns,
 * and need not be notified of works with a longer one. INT64_MAX: it must be
 * notified of all. */
extern _Atomic int64_t dscomm_priv_pending_watched_ns;

/* Called when a work has got a deadline that is shorter than that, from any
 * thread. */
typedef void (*dscomm_pending_wake_t)(int64_t timeout_ns);
void dscomm_priv_pending_set_wake(dscomm_pending_wake_t function);
/* Notes that a work has such a deadline. */
void dscomm_priv_pending_watch(int64_t timeout_ns);

/* In a forked child: drops the parent's groups. */
void dscomm_priv_pending_forked(void);

#endif
