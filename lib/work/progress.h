/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress on groups that have works, by waiting threads and by the progress
 * thread. */
#ifndef LIB_PROGRESS_H
#define LIB_PROGRESS_H

#include "lib/work/work.h"

/* The works of a group. */
extern const dscomm_group_part_t dscomm_priv_works_part;

/* Called with the group's lock held: makes progress in the backend and retires
 * complete works. Returns their number, or 1 if only part of a message has
 * moved. */
unsigned dscomm_priv_progress(dscomm_group_t *group);
/* Called with the group's lock held: sleeps briefly, if the backend can be
 * woken. shared: other groups need this thread too. */
void dscomm_priv_progress_rest(dscomm_group_t *group, int64_t at_most_ns,
                               int shared);
/* Called with the group's lock held, which it may release meanwhile: makes
 * progress on other groups. */
void dscomm_priv_progress_others(dscomm_group_t *group);
/* Adds more, which may be negative, to the number of custom works. */
void dscomm_priv_progress_custom(int more);
/* For the progress thread: advances all groups, and checks deadlines if now is
 * not 0. */
unsigned dscomm_priv_progress_all(int64_t now);

/* The deadlines of works, and the diagnosis of which ranks are late or have
 * made another call: in deadline.c. */

/* Wait before the first diagnosis; later ones come after twice as long each. */
#define FIRST_LOOK_MS 100

/* Called with the group's lock held by a wait or test of work; may release the
 * lock meanwhile. Returns 1 if work is complete because its group has ended or
 * its own deadline has passed. Internal works have their own deadlines, which
 * do not end the group. A work without an owner may be freed afterwards. */
int dscomm_priv_work_over(dscomm_work_t *work, int64_t now);
/* Called by the progress thread with the group's lock held: checks the
 * deadlines of all works, as a wait for each would. */
void dscomm_priv_works_expire(dscomm_group_t *group, int64_t now);

/* In progress-thread.c: start adds a user of the progress thread, if the
 * settings require the thread; stop removes one. */
dscomm_status_t dscomm_priv_progress_start(void);
void dscomm_priv_progress_stop(void);

/* Ends the helper thread of dscomm_help_begin(), if there is one. Called at the
 * end of the last world, when no call is under way. A later call starts another
 * thread. */
void dscomm_priv_helper_stop(void);

/* In a forked child: drop the parent's groups, threads, locks and calls. */
void dscomm_priv_progress_forked(void);
void dscomm_priv_progress_thread_forked(void);
void dscomm_priv_helper_forked(void);

#endif
