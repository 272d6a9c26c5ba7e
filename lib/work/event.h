/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors by which event loops learn of completions and failures, see
 * dscomm_group_fd(). */
#ifndef LIB_EVENT_H
#define LIB_EVENT_H

#include "lib/group/group.h"

/* Makes the group's descriptor readable, if it has one. The caller holds the
 * group's lock, or the group cannot be freed meanwhile. */
void dscomm_priv_event_write(dscomm_group_t *group);

static inline void dscomm_priv_event_signal(dscomm_group_t *group)
{
    if (G_UNLIKELY(
            atomic_load_explicit(&group->works.event, memory_order_relaxed)))
        dscomm_priv_event_write(group);
}

/* The group's descriptor, or -1; gives it one, which is readable already if the
 * group has failed. */
int dscomm_priv_event_fd(const dscomm_group_t *group);
dscomm_status_t dscomm_priv_event_open(dscomm_group_t *group);

/* The descriptor of a group: a failure makes it readable, and the end of the
 * handle closes it. */
extern const dscomm_group_part_t dscomm_priv_event_part;

/* For the progress thread: 1 if groups have descriptors; a look at each of
 * these, whether it has failed. */
int dscomm_priv_event_wanted(void);
void dscomm_priv_event_look(void);

/* In a forked child: forgets the parent's groups. */
void dscomm_priv_event_forked(void);

#endif
