/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps that are repeated: a call, blocking or not, alone or coalesced
 * with others, with or without a computation beside it. */
#ifndef TOOLS_PERF_STEP_H
#define TOOLS_PERF_STEP_H

#include "tools/perf/operations.h"

/* One repetition for these options. Its last argument is NULL. */
perf_call_fn perf_step(const perf_options_t *options, const perf_call_t *call);

/* The computation alone. */
dscomm_status_t perf_step_compute(const perf_call_t *call,
                                  dscomm_work_t **ret_work);
/* The call with the computation between its start and its wait. */
dscomm_status_t perf_step_overlap(const perf_call_t *call,
                                  dscomm_work_t **ret_work);

/* One of the calls that are coalesced into call. */
perf_call_t perf_coalesced_call(const perf_call_t *call, int number);

#endif
