/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines of works, and the diagnosis of which ranks are late or have made
 * another call. */
#ifndef LIB_DEADLINE_H
#define LIB_DEADLINE_H

#include "lib/work/work.h"

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

#endif
