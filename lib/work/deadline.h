/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines of works: when they have passed, and the diagnosis of who is late
 * or has made another call. */
#ifndef LIB_DEADLINE_H
#define LIB_DEADLINE_H

#include "lib/work/work.h"

/* A wait of this long is looked into, then each that is twice as long. */
#define FIRST_LOOK_MS 100

/* With the group's lock held, which may be let go of meanwhile, by one that
 * waits for work or tests it: 1 when work is complete, since its group came to
 * an end or its own deadline has passed. Internal works have deadlines of their
 * own, which do the group no harm. A work that nobody holds may be gone
 * afterwards. */
int dscomm_priv_work_over(dscomm_work_t *work, int64_t now);
/* With the group's lock held, which is kept, by the progress thread: lets the
 * deadlines of all works pass, as if somebody waited for each. */
void dscomm_priv_works_expire(dscomm_group_t *group, int64_t now);

#endif
