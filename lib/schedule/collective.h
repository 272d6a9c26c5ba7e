/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of works that are collectives: schedules and native ones. */
#ifndef LIB_SCHEDULE_COLLECTIVE_H
#define LIB_SCHEDULE_COLLECTIVE_H

#include "lib/work/work.h"

/* Returns the kind of work for a collective whose algorithm was chosen. */
const dscomm_work_kind_t *
dscomm_priv_collective_kind(const dscomm_call_t *call);

/* Runs the short schedule of a blocking call on an idle group without a work.
 * false: it is not that short, a message did not come soon, or there was a
 * failure. Then the caller blocks on the call's work at once, which goes on
 * with what has begun. */
bool dscomm_priv_collective_now(dscomm_group_t *group,
                                const dscomm_call_t *call);

#endif
