/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that notify event loops of completions and failures, see
 * dscomm_group_fd(). */
#ifndef LIB_EVENT_H
#define LIB_EVENT_H

#include "lib/group/group.h"

/* Makes the group's descriptor readable, if it has one. The caller holds the
 * group's lock, or makes sure that the group is not freed meanwhile. */
void dscomm_priv_event_write(dscomm_group_t *group);

static inline void dscomm_priv_event_signal(dscomm_group_t *group)
{
    if (G_UNLIKELY(
            atomic_load_explicit(&group->works.event, memory_order_relaxed)))
        dscomm_priv_event_write(group);
}

/* fd returns the group's descriptor, or -1. open makes it; it is readable at
 * once if the group has failed. */
int dscomm_priv_event_fd(const dscomm_group_t *group);
dscomm_status_t dscomm_priv_event_open(dscomm_group_t *group);

/* The descriptor of a group: the group's failure makes it readable, and freeing
 * the group closes it. */
extern const dscomm_group_part_t dscomm_priv_event_part;

/* For the progress thread. wanted returns 1 if any group has a descriptor; look
 * checks whether such groups have failed. */
int dscomm_priv_event_wanted(void);
void dscomm_priv_event_look(void);

/* In a forked child: drops the parent's groups. */
void dscomm_priv_event_forked(void);

#endif
