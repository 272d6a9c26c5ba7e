/* SPDX-License-Identifier: BSD-3-Clause */
/* Works that are collectives: schedules, and those of the backend. */
#ifndef LIB_SCHEDULE_COLLECTIVE_H
#define LIB_SCHEDULE_COLLECTIVE_H

#include "lib/work/work.h"

/* What carries out a collective whose algorithm has been chosen. */
const dscomm_work_kind_t *
dscomm_priv_collective_kind(const dscomm_call_t *call);

#endif
