/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of works that are collectives: schedules and native ones. */
#ifndef LIB_SCHEDULE_COLLECTIVE_H
#define LIB_SCHEDULE_COLLECTIVE_H

#include "lib/work/work.h"

/* Returns the kind of work for a collective whose algorithm was chosen. */
const dscomm_work_kind_t *
dscomm_priv_collective_kind(const dscomm_call_t *call);

#endif
