/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress on groups that have works, by whoever waits and by a thread. */
#ifndef LIB_PROGRESS_H
#define LIB_PROGRESS_H

#include "lib/work/work.h"

/* The works of a group. */
extern const dscomm_group_part_t dscomm_priv_works_part;

/* With the group's lock held: lets the backend advance and retires what is
 * complete; returns how many. */
unsigned dscomm_priv_progress(dscomm_group_t *group);
/* With the group's lock held: sleeps for a moment, where the backend can be
 * woken; hurry: others need this thread as well. */
void dscomm_priv_progress_rest(dscomm_group_t *group, int64_t at_most_ns,
                               int shared);
/* With the group's lock held, which may be let go of meanwhile: lets works on
 * other groups go on. */
void dscomm_priv_progress_others(dscomm_group_t *group);
/* One more, or less, of the works that are their callers' own. */
void dscomm_priv_progress_custom(int more);
/* For the thread: advances all groups; deadlines pass if now is not 0. */
unsigned dscomm_priv_progress_all(int64_t now);

/* In progress-thread.c: one user more, or less, of the progress thread, if the
 * settings ask for one. */
dscomm_status_t dscomm_priv_progress_start(void);
void dscomm_priv_progress_stop(void);

/* In a forked child: forgets groups, thread and locks of the parent. */
void dscomm_priv_progress_forked(void);
void dscomm_priv_progress_thread_forked(void);

#endif
